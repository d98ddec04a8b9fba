//! Effects that the pairs do not exclude: a typical run shows nothing about rare long delays.

use paired::Verdict;
use weigh_model::format;
use weigh_model::result::summary::{Row, StallSummary, Summary};

/// Sentence about the rows that are equivalent, or differ by less than the margin; `None` without such rows.
pub fn not_excluded(s: &Summary) -> Option<String> {
    let is_claimed = |row: &&Row| row.verdict == Verdict::Equivalent || row.within_margin;
    let claimed = s.results.iter().filter(is_claimed);
    let stalls = claimed.filter_map(|row| row.stalls.map(|stalls| (row, stalls)));
    let share = |(_, stalls): &(&Row, StallSummary)| stalls.treated_at_most_pct;
    let (row, worst) = stalls.max_by(|a, b| share(a).total_cmp(&share(b)))?;
    let many = (100.0 / worst.treated_at_most_pct).floor();
    let runs = match many >= 2.0 {
        true => format!("fewer than 1 in {many} treated runs"),
        false => format!("up to {} % of the treated runs", worst.treated_at_most_pct.ceil()),
    };
    let seen = match worst.treated {
        0 => "; more pairs would lower this bound".to_owned(),
        treated => format!(" ({treated} of {} did)", row.pairs),
    };
    let longer = format::unsigned(worst.longer_pct);
    let name = format::label(&row.workload);
    Some(format!("Rare stalls: {runs} of {name} could take at least {longer} % longer{seen}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn the_claim_that_is_worst_supported_decides() {
        let mut s = example::audit();
        assert_eq!(not_excluded(&s), None);
        let stalls = |treated_at_most_pct, treated| {
            Some(StallSummary { longer_pct: 7.1, baseline: 0, treated, treated_at_most_pct })
        };
        s.results[0].stalls = stalls(99.0, 0);
        for (row, at_most) in s.results.iter_mut().skip(1).zip([7.68, 3.0]) {
            row.verdict = Verdict::Equivalent;
            row.stalls = stalls(at_most, 0);
        }
        assert_eq!(
            not_excluded(&s).unwrap(),
            "Rare stalls: fewer than 1 in 13 treated runs of dhry2reg could take at least 7.10 % longer; \
             more pairs would lower this bound."
        );
        s.results[2].stalls = stalls(60.2, 3);
        assert!(
            not_excluded(&s)
                .unwrap()
                .contains(": up to 61 % of the treated runs of whetstone could take")
        );
        assert!(not_excluded(&s).unwrap().ends_with("(3 of 30 did)."));
    }
}
