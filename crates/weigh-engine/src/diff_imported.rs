//! Compares two reports, at least one of them imported. An import has rows with effects and intervals, but no
//! samples.

use std::fmt::{self, Display, Formatter};

use super::diff::{change, why_nothing_is_compared};
use paired::Interval;
use weigh_model::described::machine_changes;
use weigh_model::result::diff::{Diff, DiffRow, SCHEMA, Side, caveat};
use weigh_model::result::scheme::Scheme;
use weigh_model::result::summary::{Row, State, Summary};

const NO_SAMPLES: &str = "An import has no samples, so its rates have no interval. The interval of a changed \
                          effect comes from the intervals in the two reports, each with its own error rate.";

pub fn diff(before: &Summary, after: &Summary) -> Result<Diff, String> {
    for report in [before, after] {
        if report.imported.as_ref().is_some_and(|imported| imported.is_figures()) {
            return Err(format!(
                "{} has results of a different program. To compare them, import both files together: `weigh \
                 import A B`",
                report.id
            ));
        }
        if report.state == State::Failed {
            return Err(format!("{} failed, so its numbers cannot be compared", report.id));
        }
    }
    let (mut results, mut not_compared, mut not_judged) = (Vec::new(), Vec::new(), Vec::new());
    for row in &before.results {
        let Some(other) = after.results.iter().find(|other| is_same(row, other)) else { continue };
        if scheme(row) != scheme(other) {
            not_compared.push(format!(
                "{}: one experiment has interleaved pairs, the other has sequential pairs",
                RowName(row)
            ));
            continue;
        }
        let held = hold_against(row, other);
        if held.decisive().high_pct.is_none() {
            not_judged.push(format!("{}: one of the two effects has no interval", RowName(row)));
        }
        results.push(held);
    }
    if results.is_empty() {
        return Err(why_nothing_is_compared(&before.id, &after.id, &not_compared));
    }
    let missing_later: Vec<String> = only_in(before, after)
        .map(|row| format!("{}: {} has no such row", RowName(row), after.id))
        .collect();
    let gone = only_in(before, after).map(|row| format!("{}: {}", RowName(row), before.id));
    let come = only_in(after, before).map(|row| format!("{}: {}", RowName(row), after.id));
    Ok(Diff {
        schema: SCHEMA,
        before: side(before),
        after: side(after),
        alpha: before.alpha + after.alpha,
        caveat: format!("{} {NO_SAMPLES}", caveat(&results)),
        machine: machine_changes(&before.machine, &after.machine),
        only_in_one: gone.chain(come).collect(),
        results,
        not_compared,
        not_judged,
        missing_later,
    })
}

struct RowName<'a>(&'a Row);

impl Display for RowName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} under {} ({})", self.0.workload, self.0.treatment, self.0.unit)
    }
}

fn only_in<'a>(one: &'a Summary, other: &'a Summary) -> impl Iterator<Item = &'a Row> {
    one.results.iter().filter(|row| !other.results.iter().any(|it| is_same(row, it)))
}

fn is_same(one: &Row, other: &Row) -> bool {
    (&one.workload, &one.treatment, &one.unit, &one.metric)
        == (&other.workload, &other.treatment, &other.unit, &other.metric)
}

/// The scheme of a row; sequential if the row had no choice.
fn scheme(row: &Row) -> Scheme {
    row.scheme.unwrap_or(Scheme::Sequential)
}

fn side(report: &Summary) -> Side {
    Side { id: report.id.clone(), started: report.started.clone(), command: report.command.clone() }
}

fn hold_against(before: &Row, after: &Row) -> DiffRow {
    let rates = [before.baseline, after.baseline];
    let effects = [before.effect_pct, after.effect_pct];
    let [rate, effect] = [
        change(rates.map(f64::ln), rates, [Interval::UNBOUNDED; 2]),
        change(effects.map(log), effects, [before, after].map(interval)),
    ];
    DiffRow {
        workload: before.workload.clone(),
        treatment: before.treatment.clone(),
        unit: before.unit.clone(),
        rate,
        effect: Some(effect),
    }
}

fn log(effect_pct: f64) -> f64 {
    (effect_pct / 100.0).ln_1p()
}

fn interval(row: &Row) -> Interval {
    Interval {
        low: row.low_pct.map_or(f64::NEG_INFINITY, log),
        high: row.high_pct.map_or(f64::INFINITY, log),
    }
}
