//! Of a row whose pairs take turns, what those say that were taken in sequence.

use super::log_ratio::{bound, percent};
use super::pairs::{Measurements, betting};
use crate::format;
use crate::result::scheme::{ControlPairs, Scheme};
use crate::result::summary::Row;
use crate::store::record::Stored;
use crate::workload::metric::Metric;
use paired::betting::{DEFAULT_SCALE, Start};
use paired::design::Design;
use paired::judge::{Judgement, judge_rows};

/// How the pairs of a row were taken, where there was a choice.
pub fn scheme_of(stored: &Stored, row: &Measurements) -> Option<Scheme> {
    let has_choice = stored.header.metrics.contains(&Metric::AllTime);
    has_choice.then_some(row.schedule.main())
}

/// By itself, whatever the other rows are.
pub fn of_row(row: &Measurements, judged: &Judgement, design: &Design) -> Option<ControlPairs> {
    if row.control.is_empty() {
        return None;
    }
    let start = Start { scale: DEFAULT_SCALE, capital: 1.0, ..row.start };
    let design = Design { rows: 1, fixed_pairs: None, ..design.clone() };
    let control = judge_rows([&betting(row.control.iter(), start)], &design).remove(0);
    let [own, other] = [judged.interval, control.interval];
    Some(ControlPairs {
        effect_pct: percent(control.estimate),
        low_pct: bound(other.low),
        high_pct: bound(other.high),
        pairs: row.control.len(),
        differs: own.high < other.low || other.high < own.low,
    })
}

/// What a reader must know of a row of which the two schemes say different things.
pub fn note(row: &Row) -> Option<String> {
    let ControlPairs { effect_pct, low_pct, high_pct, pairs, .. } =
        row.in_sequence.as_ref().filter(|control| control.differs)?;
    Some(format!(
        "the two schemes disagree: in turns {} {}, in sequence {} {} ({pairs} pairs): a process that is \
         switched away every 125 µs is not one that has its CPU for itself",
        format::percent(row.effect_pct),
        format::interval(row.low_pct, row.high_pct),
        format::percent(*effect_pct),
        format::interval(*low_pct, *high_pct),
    ))
}
