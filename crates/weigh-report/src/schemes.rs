//! How the pairs of each row were taken, if there was a choice.

use weigh_model::format::quoted;
use weigh_model::result::scheme::Scheme;
use weigh_model::result::summary::{Row, Summary};

/// So many workloads are named.
const MOST_NAMED: usize = 6;

/// Which rows took turns, and which did not.
pub fn sentence(s: &Summary) -> Option<String> {
    let of = |scheme| rows_of(s, scheme).collect::<Vec<&Row>>();
    let [in_turns, in_sequence] = [of(Scheme::Interleaved), of(Scheme::Sequential)];
    Some(match (&in_turns[..], &in_sequence[..]) {
        ([], []) => return None,
        (_, []) => "All rows are judged by pairs that took turns on one CPU.".into(),
        ([], _) => "All pairs were taken in sequence.".into(),
        _ => format!(
            "Pairs of {} took turns on one CPU, those of {} were taken in sequence.",
            named(&in_turns),
            named(&in_sequence)
        ),
    })
}

fn rows_of(s: &Summary, scheme: Scheme) -> impl Iterator<Item = &Row> {
    s.results.iter().filter(move |row| row.scheme == Some(scheme))
}

/// `a`, `b` and 3 more.
fn named(rows: &[&Row]) -> String {
    let several = rows.iter().any(|row| row.treatment != rows[0].treatment);
    let name = |row: &&Row| match several {
        true => format!("{} under {}", quoted(&row.workload), quoted(&row.treatment)),
        false => quoted(&row.workload),
    };
    let mut names: Vec<String> = rows.iter().take(MOST_NAMED).map(name).collect();
    let last = match rows.len() - names.len() {
        0 => names.pop().unwrap_or_default(),
        more => format!("{more} more"),
    };
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn each_row_is_told_to_take_turns_or_not() {
        let mut s = example::audit();
        assert_eq!(sentence(&s), None);
        for row in &mut s.results {
            row.scheme = Some(Scheme::Sequential);
        }
        assert_eq!(sentence(&s).unwrap(), "All pairs were taken in sequence.");
        for row in &mut s.results {
            row.scheme = Some(Scheme::Interleaved);
        }
        let all = "All rows are judged by pairs that took turns on one CPU.";
        assert_eq!(sentence(&s).unwrap(), all);
        for row in &mut s.results {
            row.scheme = Some(Scheme::Sequential);
        }
        s.results[0].scheme = Some(Scheme::Interleaved);
        let said = sentence(&s).unwrap();
        let first = quoted(&s.results[0].workload);
        assert!(
            said.starts_with(&format!("Pairs of {first} took turns on one CPU, those")),
            "{said}"
        );
        assert!(said.contains(" and 5 more were taken in sequence"), "{said}");
    }
}
