//! Upper bounds on a treatment's cost, for rows whose verdict does not state one.

use super::stalls::not_excluded;
use paired::Verdict;
use weigh_model::format;
use weigh_model::result::summary::{Row, Summary};

/// The bound of one row, e.g. `0.42 %`; empty where there is none, as while the pairs are too few.
pub fn of(row: &Row) -> String {
    match row.cost_at_most_pct {
        Some(pct) if pct > 0.0 => format::at_most(pct),
        Some(_) => "nothing".to_owned(),
        None => String::new(),
    }
}

/// One sentence with the bounds of all rows that are equivalent or undecided; `None` without any.
pub fn sentence(s: &Summary) -> Option<String> {
    let is_open = |row: &&Row| matches!(row.verdict, Verdict::Equivalent | Verdict::Inconclusive);
    let several = super::by_treatment(s).len() > 1;
    let shown = |row: &Row| {
        let treatment = format::label(&row.treatment);
        let under = if several { format!(" under {treatment}") } else { String::new() };
        format!("{}{under} {}", format::label(&row.workload), of(row))
    };
    let bounded = s.results.iter().filter(is_open).filter(|row| row.cost_at_most_pct.is_some());
    let bounds: Vec<String> = bounded.map(shown).collect();
    let confidence = format::confidence(s.alpha);
    (!bounds.is_empty()).then(|| {
        format!(
            "Costs at most, in a typical run ({confidence} confidence for each row alone): {}.{}",
            bounds.join(", "),
            not_excluded(s).map(|stalls| format!(" {stalls}")).unwrap_or_default()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn rows_without_a_difference_say_what_they_may_cost() {
        let mut s = example::audit();
        for (row, bound) in s.results.iter_mut().zip([Some(85.5), None, Some(0.4), Some(-0.2)]) {
            row.cost_at_most_pct = bound;
        }
        s.results.truncate(4);
        s.results[2].verdict = Verdict::Equivalent;
        s.results[3].verdict = Verdict::Inconclusive;
        let [a, b] = [2, 3].map(|i| s.results[i].workload.clone());
        let sentence = sentence(&s).unwrap();
        assert!(sentence.ends_with(&format!("row alone): {a} 0.40 %, {b} nothing.")), "{sentence}");
        s.results.truncate(2);
        assert_eq!(super::sentence(&s), None);
    }
}
