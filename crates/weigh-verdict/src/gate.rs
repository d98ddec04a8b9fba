//! Upper limit of a row's cost, and the gate of a CI job (`--fail-above`).
//!
//! A gate that passes is a promise as well: each row is shown to cost less than the limit. If a row
//! is shown to cost neither more nor less, the gate is undecided.
//!
//! These promises are about the program, not about its median slice. So interleaved pairs take the
//! worst of three claims (rate, rate over all time, CPU time), with enough pairs for each claim.
//! Sequential pairs of a process that works outside its slices take the worst of rate and CPU time
//! (`interleaved.rs`).

use super::late::Late;
use super::outside::OutsideUse;
use super::pairs::{Measurements, unmeasured};
use super::sets::{self, Set};
use paired::Withheld;
use paired::betting::Betting;
use paired::bound::{below, lower_bound};
use paired::design::Design;
use paired::doubt::Doubt;
use paired::judge::{Judgement, MIN_PAIRS};
use weigh_model::record::Stored;
use weigh_model::result::gate::{Gate, NamedRow};
use weigh_model::result::scheme::{LEAST_INTERLEAVED, Scheme};
use weigh_model::result::summary::{Row, State};
use weigh_model::workload::metric::Metric;

/// The claims that a promise about a row rests on.
pub struct Promise<'a> {
    /// The rate; then each of [`others`] that has pairs.
    pub bettings: Vec<&'a Betting>,
    pub scheme: Scheme,
    pub outside: &'a OutsideUse,
    pub judgement: &'a Judgement,
    pub late: &'a Late,
}

impl Promise<'_> {
    /// Lower bound of the effect (a log-ratio), with error rate α on this side; `None` while the pairs do not
    /// support a bound, or something speaks against the row.
    pub fn lowest(&self, design: &Design) -> Option<f64> {
        let is_bounded_by_claims = |withheld: Withheld| {
            matches!(withheld.because, Doubt::FewPairs | Doubt::OverallRate | Doubt::CpuTime)
        };
        let is_valid = self.judgement.withheld.is_none_or(is_bounded_by_claims)
            && self.late.doubt(self.judgement.estimate).is_none();
        self.lowest_of_young(design).filter(|_| is_valid)
    }

    /// Returns the bound for the processes that were measured, none of which had run for a second.
    pub fn lowest_of_young(&self, design: &Design) -> Option<f64> {
        let (least_pairs, bias) = match self.scheme {
            Scheme::Sequential => (MIN_PAIRS, 0.0),
            Scheme::Interleaved => (LEAST_INTERLEAVED, 2.0 * self.outside.excess().max(0.0)),
        };
        let is_enough = |betting: &&Betting| betting.pairs() >= least_pairs;
        if !self.bettings.iter().all(is_enough) || !are_believed(self.scheme, self.outside) {
            return None;
        }
        let bounds = self.bettings.iter().map(|betting| lower_bound(betting, design));
        let lowest = bounds.fold(f64::INFINITY, f64::min) - bias;
        lowest.is_finite().then_some(lowest)
    }
}

static OF_INTERLEAVED: [Metric; 2] = [Metric::OverallRate, Metric::CpuTime];
static OF_SEQUENTIAL: [Metric; 1] = [Metric::CpuTime];

/// The claims besides the rate that a promise about a row rests on.
pub fn others(scheme: Scheme, outside: &OutsideUse) -> &'static [Metric] {
    match scheme {
        Scheme::Interleaved => &OF_INTERLEAVED,
        Scheme::Sequential if outside.difference().is_some() => &OF_SEQUENTIAL,
        Scheme::Sequential => &[],
    }
}

fn are_believed(scheme: Scheme, outside: &OutsideUse) -> bool {
    scheme == Scheme::Sequential || outside.difference().is_none()
}

/// Returns true if any claim of a row shows that it costs more than this limit, a log-ratio. The
/// claims of all rows share the promise (Bonferroni).
pub fn is_above(
    bettings: &[&Betting],
    (scheme, outside): (Scheme, &OutsideUse),
    log_limit: f64,
    design: &Design,
) -> bool {
    let design = Design { rows: design.rows * bettings.len(), ..design.clone() };
    let shown = below(bettings.iter().copied(), log_limit, &design);
    shown.contains(&true) && are_believed(scheme, outside)
}

/// The rows shown to cost more than `limit` (a share of the rate), and the undecided rows; `results` are the
/// rows as they are reported.
pub fn gate(
    limit: f64,
    stored: &Stored,
    (rows, results): (&[Measurements], &[Row]),
    (of_set, pooled): (&Design, &Design),
) -> Gate {
    let log_limit = (-limit).ln_1p();
    let (mut above, mut open) = (Vec::new(), Vec::new());
    let reported = |name: &NamedRow| {
        results.iter().find(|row| row.workload == name.workload && row.treatment == name.treatment)
    };
    // A failed experiment gives no conclusion.
    let has_failed = stored.state == State::Failed;
    for row in rows.iter().filter(|_| !has_failed) {
        let name = NamedRow {
            workload: stored.header.works[row.work].name.clone(),
            treatment: stored.header.arms[row.arm].clone(),
        };
        let bettings = bettings(stored, row);
        let bettings: Vec<&Betting> = bettings.iter().collect();
        let is_above = is_above(&bettings, (row.schedule.main(), &row.outside), log_limit, pooled);
        let at_most = reported(&name).and_then(|row| row.cost_at_most_pct);
        if is_above && all_sets_show(row, log_limit, of_set) {
            above.push(name);
        } else if at_most.is_none_or(|pct| pct > limit * 100.0) {
            open.push(name);
        }
    }
    let is_complete =
        !has_failed && stored.failures.is_empty() && unmeasured(stored, rows).is_empty();
    let passed = is_complete && !rows.is_empty() && above.is_empty() && open.is_empty();
    Gate { fail_above_pct: limit * 100.0, passed, above, open }
}

/// Where sets differ, each of them has to show it.
fn all_sets_show(row: &Measurements, log_limit: f64, design: &Design) -> bool {
    let sets = sets::of_row(row, design);
    let shows = |set: &Set| set.judgement.interval.high < log_limit;
    !sets::differ(&sets) || sets.iter().all(shows)
}

/// Returns a row's evidence on each claim of [`Promise`], the rate first.
pub fn bettings(stored: &Stored, row: &Measurements) -> Vec<Betting> {
    let judged = |metric: &&Metric| stored.header.metrics.contains(metric);
    let others = others(row.schedule.main(), &row.outside).iter().filter(judged);
    let others = others.map(|metric| row.betting_of(metric)).filter(|one| one.pairs() > 0);
    std::iter::once(row.betting()).chain(others).collect()
}
