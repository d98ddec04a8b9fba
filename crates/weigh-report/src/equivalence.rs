//! Why a row can be equivalent whose interval reaches beyond the margin.

use paired::Verdict;
use weigh_model::format;
use weigh_model::format::quoted;
use weigh_model::result::summary::{Row, Summary};

/// A sentence, where the interval of a row that is called equivalent leaves the margin.
pub fn note(s: &Summary) -> Option<String> {
    let is_claimed = |row: &&Row| row.verdict == Verdict::Equivalent || row.within_margin;
    let reaches = |end: Option<f64>| end.is_none_or(|pct| pct.abs() > s.margin_pct);
    let beyond = |row: &&Row| reaches(row.low_pct) || reaches(row.high_pct);
    let rows: Vec<&Row> = s.results.iter().filter(is_claimed).filter(beyond).collect();
    let first = rows.first()?;
    let others = match rows.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (margin, confidence) = (format::margin(s.margin_pct), format::confidence(s.alpha));
    Some(format!(
        "Equivalent within {margin}: two one-sided tests at {confidence} show that the row is neither slower \
         nor faster by more. The two-sided {confidence} interval is wider, so it can exceed {margin}, as for \
         {}{others}.",
        quoted(&first.workload)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn it_is_said_where_an_interval_leaves_the_margin_and_nowhere_else() {
        let mut s = example::audit();
        assert_eq!(note(&s), None);
        let row = s.results.iter_mut().find(|row| row.verdict == Verdict::Equivalent).unwrap();
        (row.low_pct, row.high_pct) = (Some(-1.04), Some(0.2));
        let said = note(&s).unwrap();
        assert!(said.contains("two one-sided tests") && said.ends_with("as for `dhry2reg`."));
    }
}
