//! Names that are cut where there is no room for them, but never so that two of them look the same.

use std::collections::BTreeMap;

use crate::format;

/// Each name as it is shown.
pub struct Names(BTreeMap<String, String>);

impl Names {
    /// Cuts names to at most `room` characters, keeping the place behind an `@`.
    pub fn cut<'a>(names: impl IntoIterator<Item = &'a str>, room: usize) -> Names {
        let cut = |name: &'a str| (name.to_owned(), format::shorten_name(name, room));
        Names::of(names.into_iter().map(cut), room)
    }

    /// Takes names with the form in which each is shown if no other name has that form. Names of one form are
    /// cut in another place: what they share in the middle goes, and what differs stays.
    pub fn of(names: impl IntoIterator<Item = (String, String)>, room: usize) -> Names {
        let mut shown: BTreeMap<String, String> = names.into_iter().collect();
        for alike in alike(&shown) {
            let shared = shared(&alike);
            shown.extend(alike.into_iter().map(|name| {
                let cut = without_middle(&name, shared, room);
                (name, cut)
            }));
        }
        for alike in alike(&shown) {
            shown.extend(alike.into_iter().zip(1..).map(|(name, number)| {
                let end = format!("…{number}");
                let start = room.saturating_sub(end.chars().count());
                let cut = name.chars().take(start).chain(end.chars()).collect();
                (name, cut)
            }));
        }
        Names(shown)
    }

    /// How a name is shown; one that was not given is shown whole.
    pub fn shown<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.get(name).map_or(name, String::as_str)
    }
}

/// Returns the groups of names that are shown in the same form.
fn alike(shown: &BTreeMap<String, String>) -> Vec<Vec<String>> {
    let mut of_form: BTreeMap<&String, Vec<String>> = BTreeMap::new();
    for (name, form) in shown {
        of_form.entry(form).or_default().push(name.clone());
    }
    of_form.into_values().filter(|names| names.len() > 1).collect()
}

/// Returns how many characters at the beginning all of these names share.
fn shared(names: &[String]) -> usize {
    let first = &names[0];
    let with_first = |name: &String| {
        first.chars().zip(name.chars()).take_while(|(one, other)| one == other).count()
    };
    names.iter().map(with_first).min().unwrap_or(0)
}

/// Cuts out a part of what a name shares with others, up to the character before the first difference.
fn without_middle(name: &str, shared: usize, room: usize) -> String {
    let head = room / 2;
    let tail = room.saturating_sub(head + 1);
    let length = name.chars().count();
    let from = shared.saturating_sub(1).min(length.saturating_sub(tail)).max(head);
    let rest: String = name.chars().skip(from).collect();
    let start: String = name.chars().take(head).collect();
    format::shorten(&format!("{start}…{}", format::shorten(&rest, tail)), room)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_that_fit_are_whole_and_one_alone_loses_its_end() {
        let names = Names::cut(["getppid", "create-unlink-in-tmpfs"], 12);
        assert_eq!(names.shown("getppid"), "getppid");
        assert_eq!(names.shown("create-unlink-in-tmpfs"), "create-unli…");
        assert_eq!(names.shown("another"), "another");
    }

    #[test]
    fn names_that_begin_alike_keep_what_differs() {
        let [few, many] = ["getppid seccomp:compares=50", "getppid seccomp:compares=500"];
        let names = Names::cut([few, many, few], 20);
        assert_eq!(names.shown(few), "getppid se…mpares=50");
        assert_eq!(names.shown(many), "getppid se…pares=500");
        let [one, other] =
            ["stat seccomp:profile=/a/strict.json", "stat seccomp:profile=/b/strict.json"];
        let names = Names::cut([one, other], 20);
        assert_eq!(
            (names.shown(one), names.shown(other)),
            ("stat secco…/a/stric…", "stat secco…/b/stric…")
        );
    }

    #[test]
    fn names_without_a_place_that_tells_them_apart_are_numbered() {
        let wide = "x".repeat(30);
        let texts = ["a", "b"].map(|at| format!("{wide}{at}{wide}c{wide}{wide}"));
        let third = format!("{wide}a{wide}d{wide}{wide}");
        let all = [texts[0].as_str(), &texts[1], &third];
        for room in 6..40 {
            let names = Names::cut(all, room);
            let shown: BTreeSet<&str> = all.iter().map(|name| names.shown(name)).collect();
            assert_eq!(shown.len(), 3, "{room}: {shown:?}");
            assert!(shown.iter().all(|name| name.chars().count() <= room), "{room}: {shown:?}");
        }
    }
}
