//! Arms that differ in one number: the cost of a workload over that number, from the judged pairs.

use std::collections::BTreeSet;

use paired::Doubt;
use paired::dose::{Dose, DosePair, Estimate, LEAST_DOSES, Line, line};
use weigh_model::ids::{PairId, SetId};
use weigh_model::record::Stored;
use weigh_model::result::cost::time_ns;
use weigh_model::result::dose::{DoseCost, DoseCurve, DosePoint, DoseUnit};
use weigh_model::result::summary::{Pair, Row, State};

/// The curves of an experiment. Nothing is concluded from one that failed.
pub fn of(stored: &Stored, rows: &[Row]) -> Vec<DoseCurve> {
    match stored.state {
        State::Failed => Vec::new(),
        _ => of_rows(rows, stored.header.alpha, stored.header.seed),
    }
}

/// Rows of one workload whose labels differ in one number.
struct Series<'a> {
    label: NumberedLabel<'a>,
    rows: Vec<(f64, &'a Row)>,
}

fn of_rows(rows: &[Row], alpha: f64, seed: u64) -> Vec<DoseCurve> {
    let mut all: Vec<Series> = Vec::new();
    for row in rows.iter().filter(|row| !is_in_doubt(row)) {
        for label in numbered(&row.treatment) {
            let point = (label.number, row);
            let is_its = |series: &&mut Series| {
                series.label.is_alike(&label) && series.rows[0].1.workload == row.workload
            };
            match all.iter_mut().find(is_its) {
                Some(series) => series.rows.push(point),
                None => all.push(Series { label, rows: vec![point] }),
            }
        }
    }
    let lines = all.len();
    all.into_iter().filter_map(|series| curve(series, (alpha, lines), seed)).collect()
}

/// A row whose pairs depend on what ran before them has no cost to draw a line through.
fn is_in_doubt(row: &Row) -> bool {
    let because = row.withheld.map(|withheld| withheld.because);
    matches!(because, Some(Doubt::CarryOver | Doubt::OrderMatters | Doubt::WorksOutside))
}

fn curve(series: Series, (alpha, lines): (f64, usize), seed: u64) -> Option<DoseCurve> {
    let Series { label, mut rows } = series;
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let unit = unit(rows[0].1);
    let of_rows = rows.iter().flat_map(|(_, row)| &row.series);
    let rounds: BTreeSet<Round> = of_rows.map(round).collect();
    let rounds: Vec<Round> = rounds.into_iter().collect();
    let doses: Vec<Dose> =
        rows.iter().map(|(dose, row)| pairs(*dose, row, unit, &rounds)).collect();
    let Line { baseline, per_unit, at_zero, added, bend } =
        line(&doses, alpha, lines, seed).filter(|_| rows.len() >= LEAST_DOSES)?;
    let point = |(dose, added): (&Dose, &Estimate)| DosePoint {
        dose: dose.dose,
        pairs: dose.pairs.len(),
        cost: cost(*added),
    };
    Some(DoseCurve {
        workload: rows[0].1.workload.clone(),
        treatment: label.template(),
        parameter: label.parameter.to_owned(),
        unit,
        baseline,
        per_unit: cost(per_unit),
        at_zero: cost(at_zero),
        points: doses.iter().zip(&added).map(point).collect(),
        bend,
    })
}

fn cost(Estimate { value, low, high }: Estimate) -> DoseCost {
    DoseCost { added: value, low, high }
}

fn unit(row: &Row) -> DoseUnit {
    match row.unit.as_str() {
        unit if time_ns(&row.workload, unit, row.baseline).is_some() => DoseUnit::Nanoseconds,
        "ops/Ginstr" | "runs/Ginstr" => DoseUnit::Instructions,
        _ => DoseUnit::Percent,
    }
}

/// Set and number of a pair: the pairs of one round of all rows share them.
type Round = (SetId, PairId);

fn round(pair: &Pair) -> Round {
    (pair.set, pair.number)
}

fn pairs(dose: f64, row: &Row, unit: DoseUnit, rounds: &[Round]) -> Dose {
    let without = |pair: &Pair| match unit {
        DoseUnit::Nanoseconds => time_ns(&row.workload, &row.unit, pair.baseline_rate),
        DoseUnit::Instructions => Some(1e9 / pair.baseline_rate),
        DoseUnit::Percent => Some(100.0),
    };
    let costs = |pair: &Pair| {
        let without = without(pair)?;
        let with = without * (-pair.log_ratio()).exp();
        let are_costs = [without, with].iter().all(|cost| cost.is_finite() && *cost > 0.0);
        let block = rounds.binary_search(&round(pair)).ok()?;
        are_costs.then_some(DosePair { block, without, with })
    };
    Dose { dose, pairs: row.series.iter().filter_map(costs).collect() }
}

/// A label with one of its whole numbers taken out.
#[derive(Clone, Copy)]
struct NumberedLabel<'a> {
    before: &'a str,
    parameter: &'a str,
    number: f64,
    after: &'a str,
}

impl NumberedLabel<'_> {
    fn is_alike(&self, other: &NumberedLabel) -> bool {
        self.before == other.before && self.after == other.after
    }

    fn template(&self) -> String {
        format!("{}N{}", self.before, self.after)
    }
}

/// Each `PARAMETER=NUMBER` of a label. A quoted value is not a number.
fn numbered(label: &str) -> Vec<NumberedLabel<'_>> {
    let ends = [',', '+', ':'];
    let one = |(at, _)| {
        let (before, rest) = label.split_at(at + 1);
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let name = before.trim_end_matches('=').rsplit(ends).next()?;
        let is_whole = after.is_empty() || after.starts_with(ends);
        let number = number.parse().ok().filter(|_| is_whole && !name.is_empty())?;
        Some(NumberedLabel { before, parameter: name, number, after })
    };
    label.match_indices('=').filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    /// Rows with these labels, whose operations take 1000 ns and the added time.
    fn rows(arms: &[(&str, f64)]) -> Vec<Row> {
        let example = example::audit();
        let pair = example.results[0].series[0].clone();
        let row = |(label, added): &(&str, f64)| {
            let pair =
                Pair { baseline_rate: 1e6, treated_rate: 1e9 / (1000.0 + added), ..pair.clone() };
            Row {
                workload: "getppid".into(),
                treatment: (*label).to_owned(),
                unit: "ops/s".into(),
                baseline: 1e6,
                withheld: None,
                series: (0..12)
                    .map(|number| Pair { number: PairId(number), ..pair.clone() })
                    .collect(),
                ..example.results[0].clone()
            }
        };
        arms.iter().map(row).collect()
    }

    #[test]
    fn arms_that_differ_in_one_number_have_a_slope_in_any_order() {
        let rows = rows(&[
            ("seccomp:compares=100", 150.0),
            ("seccomp:compares=10,filters=2", 900.0),
            ("seccomp:compares=10", 60.0),
            ("nice:5", 0.0),
            ("seccomp:compares=50", 100.0),
        ]);
        let [curve] = &of_rows(&rows, 0.05, 1)[..] else { panic!("one curve") };
        assert_eq!((&*curve.treatment, &*curve.parameter), ("seccomp:compares=N", "compares"));
        assert!((curve.per_unit.added - 1.0).abs() < 1e-6, "{curve:?}");
        assert!((curve.at_zero.added - 50.0).abs() < 1e-6 && curve.bend.is_none(), "{curve:?}");
        assert_eq!(curve.ends(), [10.0, 50.0, 100.0]);
        assert_eq!(curve.unit, DoseUnit::Nanoseconds);
    }

    #[test]
    fn rates_that_are_no_number_of_operations_have_a_slope_in_per_cent() {
        let arms =
            [("landlock:layers=1", 10.0), ("landlock:layers=2", 20.0), ("landlock:layers=4", 40.0)];
        let mut rows = rows(&arms);
        rows.iter_mut().for_each(|row| row.unit = "KBps".into());
        let curves = of_rows(&rows, 0.05, 1);
        assert_eq!((curves[0].unit, curves[0].baseline.round()), (DoseUnit::Percent, 100.0));
        assert!((curves[0].per_unit.added - 1.0).abs() < 1e-6, "{curves:?}");
    }

    #[test]
    fn two_arms_a_doubted_arm_and_few_pairs_have_none() {
        let arms =
            [("landlock:layers=1", 10.0), ("landlock:layers=2", 20.0), ("landlock:layers=4", 40.0)];
        assert!(of_rows(&rows(&arms[..2]), 0.05, 1).is_empty());
        let mut doubted = rows(&arms);
        doubted[1].withheld =
            Some(paired::Withheld { verdict: paired::Verdict::Slower, because: Doubt::CarryOver });
        assert!(of_rows(&doubted, 0.05, 1).is_empty());
        let mut few = rows(&arms);
        few[0].series.truncate(7);
        assert!(of_rows(&few, 0.05, 1).is_empty());
    }

    #[test]
    fn only_whole_values_are_numbers() {
        let names = |label| numbered(label).iter().map(|one| one.template()).collect::<Vec<_>>();
        assert_eq!(
            names("landlock:layers=2,rules=15+nice:5"),
            ["landlock:layers=N,rules=15+nice:5", "landlock:layers=2,rules=N+nice:5"]
        );
        assert!(names("fanotify:delay=100us").is_empty());
        assert!(names("cgroup:cpu.max=\"5000 10000\"").is_empty());
    }
}
