//! The table of `--sets N`: the same experiment done N times over, set against itself.
//!
//! It is Table 2 of Nitzberg's thesis: Delta-1 and Delta-2 are the effects of the two sets, Delta-3
//! how far they lie apart. He had to judge by eye whether that is much; the intervals do it here.

use super::table::{Align, Table};
use weigh_model::format;
use weigh_model::result::summary::{Row, SetEffect, Summary};

/// One row per workload that was measured in sets; `None` when none was.
pub fn sets_table(s: &Summary) -> Option<Table> {
    let rows: Vec<&Row> = s.results.iter().filter(|row| row.sets.len() > 1).collect();
    let sets = rows.iter().map(|row| row.sets.len()).max()?;
    let several = super::has_several_treatments(s);
    let deltas: Vec<String> = (1..=sets).map(|n| format!("Delta-{n}")).collect();
    let spread = if sets == 2 { "Delta-3" } else { "largest − smallest" };
    let mut columns = vec![("workload", Align::Left), ("treatment", Align::Left)];
    columns.extend(deltas.iter().map(|title| (title.as_str(), Align::Right)));
    columns.extend([(spread, Align::Right), ("", Align::Left)]);
    let cells = rows.iter().map(|row| {
        let mut cells = vec![
            format::label(&row.workload),
            if several { format::label(&row.treatment) } else { String::new() },
        ];
        let effect = |set: &SetEffect| match has_estimate(set) {
            true => format::percent(set.effect_pct),
            false => format::NONE.to_owned(),
        };
        cells.extend((0..sets).map(|i| row.sets.get(i).map(effect).unwrap_or_default()));
        let apart = apart(&row.sets).map(|apart| format!("{} %", format::unsigned(apart)));
        cells.push(apart.unwrap_or_else(|| format::NONE.to_owned()));
        cells.push(if disagree(&row.sets) { "sets disagree" } else { "" }.to_owned());
        cells
    });
    Some(Table::new(columns, cells.collect()))
}

/// An estimate that nothing bounds is that of too few pairs.
fn has_estimate(set: &SetEffect) -> bool {
    set.low_pct.is_some() || set.high_pct.is_some()
}

/// Returns true if two of the sets contradict each other: their intervals have no value in common.
fn disagree(sets: &[SetEffect]) -> bool {
    let lows = sets.iter().filter_map(|set| set.low_pct);
    let highs = sets.iter().filter_map(|set| set.high_pct);
    lows.fold(f64::NEG_INFINITY, f64::max) > highs.fold(f64::INFINITY, f64::min)
}

/// The difference of the outermost effects; of two, the absolute difference.
fn apart(sets: &[SetEffect]) -> Option<f64> {
    let effects = || sets.iter().filter(|set| has_estimate(set)).map(|set| set.effect_pct);
    let highest = effects().max_by(f64::total_cmp)?;
    Some(highest - effects().min_by(f64::total_cmp)?).filter(|_| effects().count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn two_sets_make_the_table_of_the_thesis() {
        let s = example::two_sets();
        let table = sets_table(&s).expect("the sample has sets");
        let titles: Vec<&str> = table.columns.iter().map(|(title, _)| title.as_str()).collect();
        assert_eq!(titles, ["workload", "Delta-1", "Delta-2", "Delta-3", ""]);
        assert_eq!(table.rows[0], ["syscall", "−85.2 %", "−84.8 %", "0.42 %", ""]);
        assert_eq!(table.rows[1][4], "sets disagree");
    }

    #[test]
    fn an_unbounded_set_disagrees_with_nobody() {
        let set = |effect, low, high| SetEffect {
            effect_pct: effect,
            low_pct: low,
            high_pct: high,
            pairs: 8,
        };
        assert!(!disagree(&[set(-5.0, None, None), set(5.0, Some(4.0), Some(6.0))]));
        assert!(disagree(&[set(-5.0, None, Some(-4.0)), set(5.0, Some(4.0), None)]));
    }

    #[test]
    fn without_sets_there_is_no_table() {
        assert!(sets_table(&example::audit()).is_none());
    }
}
