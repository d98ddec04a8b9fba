//! How the pairs of each row were taken, where there was a choice; and what the control pairs of rows in
//! turns say, beside those.

use super::readings::MetricTable;
use super::table::{Align, Table};
use super::versus;
use crate::format::{self, quoted};
use crate::result::scheme::Scheme;
use crate::result::summary::{Row, Summary};

/// So many workloads are named.
const MOST_NAMED: usize = 6;
const LONGEST_NAME: usize = 24;

/// Which rows took turns, and which did not.
pub fn sentence(s: &Summary) -> Option<String> {
    let of = |scheme| rows_of(s, scheme).collect::<Vec<&Row>>();
    let [in_turns, in_sequence] = [of(Scheme::InTurns), of(Scheme::InSequence)];
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

/// Both schemes side by side, of the rows that have pairs of both.
pub fn table(s: &Summary) -> Option<MetricTable> {
    let with_control = || s.results.iter().filter_map(|row| Some((row, row.in_sequence.as_ref()?)));
    let (first, _) = with_control().next()?;
    let several = with_control().any(|(row, _)| row.treatment != first.treatment);
    let cells = with_control().map(|(row, control)| {
        let says = match (control.differs, control.low_pct.is_some() && control.high_pct.is_some())
        {
            (true, _) => "differ",
            (false, true) => "agree",
            (false, false) => "too few pairs",
        };
        vec![
            format::shorten(&format::label(&row.workload), LONGEST_NAME),
            if several { format::label(&row.treatment) } else { String::new() },
            format::percent(row.effect_pct),
            format::interval(row.low_pct, row.high_pct),
            format::percent(control.effect_pct),
            format::interval(control.low_pct, control.high_pct),
            says.into(),
            format::integer(control.pairs as u64),
        ]
    });
    let columns = vec![
        (versus::heading(s), Align::Left),
        ("treatment", Align::Left),
        ("in turns", Align::Right),
        ("interval", Align::Left),
        ("in sequence", Align::Right),
        ("interval", Align::Left),
        ("they", Align::Left),
        ("pairs", Align::Right),
    ];
    Some(MetricTable {
        title: "In turns and in sequence".into(),
        legend: "one pair in eight was taken in sequence, as a control",
        table: Table::new(columns, cells.collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::result::scheme::ControlPairs;

    fn control(differs: bool) -> ControlPairs {
        let (low_pct, high_pct) = (Some(-18.0), Some(-16.0));
        ControlPairs { effect_pct: -17.0, low_pct, high_pct, pairs: 12, differs }
    }

    #[test]
    fn each_row_is_told_to_take_turns_or_not() {
        let mut s = sample::audit();
        assert_eq!(sentence(&s), None);
        for row in &mut s.results {
            row.scheme = Some(Scheme::InSequence);
        }
        assert_eq!(sentence(&s).unwrap(), "All pairs were taken in sequence.");
        for row in &mut s.results {
            row.scheme = Some(Scheme::InTurns);
        }
        let all = "All rows are judged by pairs that took turns on one CPU.";
        assert_eq!(sentence(&s).unwrap(), all);
        for row in &mut s.results {
            row.scheme = Some(Scheme::InSequence);
        }
        s.results[0].scheme = Some(Scheme::InTurns);
        let said = sentence(&s).unwrap();
        let first = quoted(&s.results[0].workload);
        assert!(
            said.starts_with(&format!("Pairs of {first} took turns on one CPU, those")),
            "{said}"
        );
        assert!(said.contains(" and 5 more were taken in sequence"), "{said}");
    }

    #[test]
    fn both_schemes_are_side_by_side_where_there_is_a_control() {
        let mut s = sample::audit();
        assert!(table(&s).is_none());
        s.results[0].in_sequence = Some(control(true));
        s.results[1].in_sequence = Some(ControlPairs { low_pct: None, ..control(false) });
        let MetricTable { table, .. } = table(&s).unwrap();
        let line = |row: usize| table.rows[row][3..].join(" ");
        assert!(line(0).ends_with("−17.0 % [−18.0, −16.0] differ 12"), "{}", line(0));
        assert!(line(1).ends_with("too few pairs 12"), "{}", line(1));
    }
}
