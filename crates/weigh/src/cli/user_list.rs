//! Numbers of users on a command line: `1,2,4`, `10..500:10`.

use std::num::NonZero;

use weigh_model::result::work_name::MOST_USERS;

/// More load points than this nobody waits for.
pub const MOST_POINTS: usize = 1000;

/// Numbers of users, ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct UserList(pub Vec<NonZero<usize>>);

impl UserList {
    /// Reads one.
    pub fn parse(text: &str) -> Result<UserList, String> {
        let mut users = Vec::new();
        for part in text.split(',') {
            users.extend(range(part).ok_or_else(|| {
                format!(
                    "`{part}` is no number of users from 1 to {MOST_USERS}, and no FROM..TO:STEP"
                )
            })?);
            if users.len() > MOST_POINTS {
                return Err(format!("these are more than {MOST_POINTS} load points"));
            }
        }
        users.sort_unstable();
        users.dedup();
        Ok(UserList(users))
    }
}

/// A number from 1 to the most that there may be.
pub fn users(text: &str) -> Option<NonZero<usize>> {
    text.parse().ok().filter(|n: &NonZero<usize>| n.get() <= MOST_USERS)
}

fn range(text: &str) -> Option<Vec<NonZero<usize>>> {
    let Some((from, to)) = text.split_once("..") else { return Some(vec![users(text)?]) };
    let (to, step) = to.split_once(':').unwrap_or((to, "1"));
    let (from, to, step) = (users(from)?, users(to)?, users(step)?);
    let users = (from.get()..=to.get()).step_by(step.get()).filter_map(NonZero::new);
    (from <= to).then(|| users.take(MOST_POINTS + 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_listed_or_in_steps() {
        let read = |text: &str| {
            UserList::parse(text).map(|list| list.0.into_iter().map(NonZero::get).collect())
        };
        assert_eq!(read("4,1,2,2"), Ok(vec![1, 2, 4]));
        assert_eq!(read("1,10..30:10"), Ok(vec![1, 10, 20, 30]));
        assert_eq!(read("2..4"), Ok(vec![2, 3, 4]));
        for bad in ["", "0", "x", "4..2", "1..5:0", "1,,2", "1..1000000"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
