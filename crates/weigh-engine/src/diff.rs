//! Holds a stored experiment against an earlier one, row by row. The two were not paired, and nothing
//! here pretends that they were.

use std::fmt::{self, Display, Formatter};

use super::load_protocol::{LoadProtocol, is_of_mix};
use super::run_report;
use super::summarise::summarise;
use paired::Interval;
use paired::betting::{Betting, DEFAULT_SCALE, Start};
use paired::estimate::median;
use paired::unpaired::{difference, median_interval};
use paired::wilcoxon::signed_rank_interval;
use weigh_model::described::machine_changes;
use weigh_model::format;
use weigh_model::ids::WorkId;
use weigh_model::record::{ExperimentKind, Stored};
use weigh_model::result::diff::{Change, Diff, DiffRow, SCHEMA, Side, caveat};
use weigh_model::result::scheme::Scheme;
use weigh_model::result::summary::State;
use weigh_model::result::work_name::WorkName;
use weigh_model::samples::RowSamples;
use weigh_verdict::log_ratio::{bound, percent};
use weigh_verdict::pairs;

/// Error rate of each interval.
const ALPHA: f64 = 0.05;

struct RowOfOne {
    workload: WorkName,
    treatment: String,
    /// True if there is but one arm, whose treatment is none.
    is_of_run: bool,
    unit: String,
    /// ln of the baseline's rates.
    rates: Vec<f64>,
    /// Empty for a run.
    log_ratios: Vec<f64>,
    start: Start,
    /// How its pairs were taken.
    scheme: Scheme,
}

pub fn diff(before: &Stored, after: &Stored) -> Result<Diff, String> {
    for stored in [before, after] {
        if stored.state == State::Failed {
            return Err(format!("{} failed, so its numbers cannot be compared", stored.id));
        }
    }
    if before.header.kind != after.header.kind {
        return Err(format!(
            "cannot compare {} ({}) with {} ({}): use two experiments of the same command",
            before.id,
            before.header.kind.commands(),
            after.id,
            after.header.kind.commands()
        ));
    }
    let (of_before, of_after) = (gather(before), gather(after));
    let how = [LoadProtocol::of(before)?, LoadProtocol::of(after)?];
    let is_of_one_start = how.iter().flatten().any(LoadProtocol::is_of_one_start);
    let (mut results, mut not_compared, mut not_judged) = (Vec::new(), Vec::new(), Vec::new());
    for row in &of_before {
        let Some(other) = of_after.iter().find(|other| other.is_same(row)) else { continue };
        match why_not_compared((before, row), (after, other), &how) {
            Some(reason) => not_compared.push(format!("{row}: {reason}")),
            None => {
                let held = hold_against((before, row), (after, other), is_of_one_start);
                if held.decisive().high_pct.is_none() {
                    not_judged
                        .push(format!("{row}: {}", why_no_interval(row, other, is_of_one_start)));
                }
                results.push(held);
            }
        }
    }
    if results.is_empty() {
        return Err(why_nothing_is_compared(&before.id, &after.id, &not_compared));
    }
    let gone = only_in(&of_before, &of_after);
    let come = only_in(&of_after, &of_before);
    let missed = gone.clone().filter(|row| !was_sought(row, how[0].as_ref(), &of_before));
    let missing_later = missed.map(|row| format!("{row}: {}", why_missing(row, after))).collect();
    let gone = gone.map(|row| format!("{row}: {}", before.id));
    let only_in_one = gone.chain(come.map(|row| format!("{row}: {}", after.id))).collect();
    Ok(Diff {
        schema: SCHEMA,
        before: side(before),
        after: side(after),
        alpha: ALPHA,
        caveat: caveat(&results),
        machine: machine_changes(&before.header.machine, &after.header.machine),
        results,
        only_in_one,
        not_compared,
        not_judged,
        missing_later,
    })
}

/// Says why two reports have no row that can be compared.
pub(super) fn why_nothing_is_compared(
    before: &str,
    after: &str,
    not_compared: &[String],
) -> String {
    match not_compared.first() {
        Some(first) => format!("no row can be compared: {first}"),
        None => format!(
            "{before} and {after} have no workload in common with the same treatment and unit"
        ),
    }
}

/// Rows of one experiment that the other one lacks.
fn only_in<'a>(
    rows: &'a [RowOfOne],
    others: &'a [RowOfOne],
) -> impl Iterator<Item = &'a RowOfOne> + Clone {
    rows.iter().filter(|row| !others.iter().any(|other| other.is_same(row)))
}

/// Returns true if a search for a peak chose this load point by itself: another search may choose
/// other points.
fn was_sought(row: &RowOfOne, how: Option<&LoadProtocol>, rows: &[RowOfOne]) -> bool {
    let is_peak = |other: &RowOfOne| {
        other.workload.name == row.workload.name && other.workload.load.is_none()
    };
    is_of_mix(&row.workload)
        && row.workload.load.is_some()
        && (how.is_some_and(LoadProtocol::chooses_its_loads) || rows.iter().any(is_peak))
}

fn why_no_interval(before: &RowOfOne, after: &RowOfOne, is_of_one_start: bool) -> String {
    if is_of_one_start {
        return "all its passes used one start of the server, and their scatter does not show how much a \
            different start would change. To get an interval, compare several starts (weigh run without \
            --for)"
            .to_owned();
    }
    let count = |row: &RowOfOne| match row.log_ratios.len() {
        0 => format::plural(row.rates.len(), "sample"),
        pairs => format::plural(pairs, "pair"),
    };
    format!("{} and {} are too few for an interval", count(before), count(after))
}

/// Why the later experiment has no such row.
fn why_missing(row: &RowOfOne, after: &Stored) -> String {
    let is_its = |arm: &String| *arm == row.treatment || after.header.arms.first() == Some(arm);
    let mut failures = after.failures.iter();
    match failures.find(|failure| failure.workload == row.workload && is_its(&failure.arm)) {
        Some(failure) => format!("it failed in {} ({})", after.id, failure.reason),
        None => format!("{} has no such row", after.id),
    }
}

fn side(stored: &Stored) -> Side {
    Side {
        id: stored.id.to_string(),
        started: stored.started.clone(),
        command: stored.header.command.clone(),
    }
}

impl Display for RowOfOne {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.is_of_run {
            true => write!(f, "{} ({})", self.workload, self.unit),
            false => write!(f, "{} under {} ({})", self.workload, self.treatment, self.unit),
        }
    }
}

impl RowOfOne {
    fn is_same(&self, other: &RowOfOne) -> bool {
        (&self.workload, &self.treatment, &self.unit)
            == (&other.workload, &other.treatment, &other.unit)
    }
}

/// Explains why the two rows measure different things; `None` if they do not.
fn why_not_compared(
    before: (&Stored, &RowOfOne),
    after: (&Stored, &RowOfOne),
    how: &[Option<LoadProtocol>; 2],
) -> Option<String> {
    if before.1.scheme != after.1.scheme {
        return Some(differ_in_scheme(before, after));
    }
    let ([Some(earlier), Some(later)], work) = (how, &before.1.workload) else { return None };
    let words =
        |how: &LoadProtocol, stored: &Stored| format!("{} in {}", how.words(work), stored.id);
    (!earlier.is_like(later, work)).then(|| {
        format!(
            "it was measured {}, but {}; measure both in the same way",
            words(earlier, before.0),
            words(later, after.0)
        )
    })
}

/// An eighth of a millisecond at a time a process has another rate than alone, and so has the treated one.
fn differ_in_scheme(before: (&Stored, &RowOfOne), after: (&Stored, &RowOfOne)) -> String {
    let of = |(stored, row): (&Stored, &RowOfOne)| match row.scheme {
        Scheme::Interleaved => format!("interleaved in {}", stored.id),
        Scheme::Sequential => format!("sequential in {}", stored.id),
    };
    format!(
        "its pairs were {}, but {}; measure both with --interleave=on, or both with --interleave=off",
        of(before),
        of(after)
    )
}

fn gather(stored: &Stored) -> Vec<RowOfOne> {
    match stored.header.kind {
        ExperimentKind::Compare | ExperimentKind::Versus | ExperimentKind::Calibrate => {
            // Both are in the same order.
            let rows = summarise(stored).results.into_iter().zip(pairs::gather(stored));
            let measured = rows.map(|(row, measured)| RowOfOne {
                rates: row.series.iter().map(|pair| pair.baseline_rate.ln()).collect(),
                log_ratios: row.series.iter().map(|pair| pair.log_ratio()).collect(),
                start: measured.start,
                scheme: measured.schedule.main(),
                is_of_run: false,
                workload: row.workload,
                treatment: row.treatment,
                unit: row.unit,
            });
            measured.collect()
        }
        // Of another machine, which is held against others by its report; or without arms.
        ExperimentKind::Import
        | ExperimentKind::Rules
        | ExperimentKind::Budget
        | ExperimentKind::Profile
        | ExperimentKind::Atlas
        | ExperimentKind::Repeated => Vec::new(),
        ExperimentKind::Run => {
            let rates = |workload: &WorkName| -> Vec<f64> {
                let is_of_it = |work: WorkId| stored.header.works[work].name == *workload;
                let of_it = stored.samples.iter().filter(|((work, _), _)| is_of_it(*work));
                // Those that the report has its figure of.
                let counted = |(_, of_row): (_, &RowSamples)| {
                    let counts = of_row.counted();
                    let points = of_row.points.iter().filter(|point| counts(point));
                    points.map(|point| point.rate.ln()).collect::<Vec<_>>()
                };
                of_it.flat_map(counted).collect()
            };
            let rows = run_report::report(stored).results.into_iter();
            let measured = rows.map(|row| RowOfOne {
                rates: rates(&row.workload),
                log_ratios: Vec::new(),
                start: DEFAULT_SCALE.into(),
                scheme: Scheme::Sequential,
                is_of_run: true,
                workload: row.workload,
                treatment: stored.header.arms.first().cloned().unwrap_or_default(),
                unit: row.unit,
            });
            measured.collect()
        }
    }
}

/// Samples of one start are not drawn independently of each other, so there is no interval from them.
fn hold_against(
    before: (&Stored, &RowOfOne),
    after: (&Stored, &RowOfOne),
    is_of_one_start: bool,
) -> DiffRow {
    let ((_, earlier), (_, later)) = (before, after);
    let middle = |values: &[f64]| median(values).unwrap_or(0.0);
    let intervals = [earlier, later].map(|row| match is_of_one_start {
        true => Interval::UNBOUNDED,
        false => median_interval(&row.rates, ALPHA / 2.0),
    });
    let centres = [middle(&earlier.rates), middle(&later.rates)];
    let has_effect = !earlier.log_ratios.is_empty() && !later.log_ratios.is_empty();
    let effect = has_effect.then(|| {
        let effects = [before, after].map(|(stored, row)| of_effect(stored, row));
        let interval =
            |effect: (f64, Interval)| if is_of_one_start { Interval::UNBOUNDED } else { effect.1 };
        let (centres, intervals) = (effects.map(|effect| effect.0), effects.map(interval));
        change(centres, centres.map(percent), intervals)
    });
    DiffRow {
        workload: earlier.workload.clone(),
        treatment: earlier.treatment.clone(),
        unit: earlier.unit.clone(),
        rate: change(centres, centres.map(f64::exp), intervals),
        effect,
    }
}

/// The effect within its experiment and its interval, at half the error rate: the same two as its report
/// shows.
fn of_effect(stored: &Stored, row: &RowOfOne) -> (f64, Interval) {
    let Ok(betting) = Betting::from_log_ratios(&row.log_ratios, row.start) else {
        return (0.0, Interval::UNBOUNDED);
    };
    let (estimate, interval) = match stored.header.fixed_pairs {
        Some(fixed) if row.log_ratios.len() >= fixed * stored.header.sets => {
            (betting.pseudo_median(), signed_rank_interval(&row.log_ratios, ALPHA / 2.0))
        }
        _ => (betting.estimate(), Some(betting.interval(ALPHA / 2.0))),
    };
    (estimate.unwrap_or(0.0), interval.unwrap_or(Interval::UNBOUNDED))
}

/// `centres` and `intervals` are logarithms, before and after; `shown` is what people read.
pub(super) fn change(centres: [f64; 2], shown: [f64; 2], intervals: [Interval; 2]) -> Change {
    let interval = difference(intervals[0], intervals[1]);
    Change {
        before: shown[0],
        after: shown[1],
        change_pct: percent(centres[1] - centres[0]),
        low_pct: bound(interval.low),
        high_pct: bound(interval.high),
        is_beyond_noise: interval.low > 0.0 || interval.high < 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::request::{Endurance, Passes, Plan, Run};
    use weigh_model::example::point;
    use weigh_model::ids::ArmId;
    use weigh_model::result::summary::Failure;
    use weigh_model::role::SampleRole;

    /// A run of these workloads, whose samples are all near this rate.
    fn run(passes: Passes, names: &[&str], rate: f64) -> Stored {
        let points = (0..20).map(|pass| point(pass, rate + pass as f64 / 1000.0));
        let row = RowSamples { points: points.collect(), ..RowSamples::default() };
        let samples =
            (0..names.len()).map(|work| ((WorkId(work), ArmId::BASELINE), row.clone())).collect();
        let works = names.iter().map(|name| example::work(name, "ops/s"));
        let plan = Plan::Run(Run { passes, ..Run::default() });
        Stored { samples, ..example::stored(plan, works) }
    }

    fn usual() -> Passes {
        Run::default().passes
    }

    #[test]
    fn what_the_later_one_lacks_is_open_and_what_it_has_besides_is_not() {
        let before = run(usual(), &["stat", "pipe", "exec"], 1000.0);
        let mut after = run(usual(), &["stat", "pipe", "spawn"], 1000.0);
        after.id = "m2abcd".to_owned().try_into().unwrap();
        let (workload, arm, reason) = ("pipe".into(), "none".into(), "it broke".into());
        after.failures.push(Failure { workload, arm, reason });
        let found = diff(&before, &after).unwrap();
        let open: Vec<&String> = found.open_rows().collect();
        assert_eq!(
            open,
            [
                "pipe (ops/s): it failed in m2abcd (it broke)",
                "exec (ops/s): m2abcd has no such row"
            ]
        );
        assert_eq!((found.results.len(), found.only_in_one.len()), (1, 3));
        assert_eq!(diff(&before, &before).unwrap().open_rows().count(), 0);
    }

    #[test]
    fn rows_that_were_measured_otherwise_are_not_compared() {
        let all = [
            usual(),
            Passes::Classic,
            Passes::Endure(Endurance { passes: 20, per_1000s: 0 }),
            Passes::Endure(Endurance { passes: 20, per_1000s: 300_000 }),
            Passes::Capacity { p99_ns: 50e6 },
            Passes::Capacity { p99_ns: 20e6 },
        ];
        let of = |passes: &Passes| run(passes.clone(), &["app:kv.get-set@redis"], 1000.0);
        for (at, passes) in all.iter().enumerate() {
            for (other_at, other) in all.iter().enumerate() {
                let found = diff(&of(passes), &of(other));
                assert_eq!(found.is_ok(), at == other_at, "{passes:?}, {other:?}: {found:?}");
            }
        }
        let refused = diff(&of(&all[0]), &of(&all[4])).unwrap_err();
        assert!(refused.contains("it was measured sample by sample in k3f9qx"), "{refused}");
        assert!(refused.contains("a p99 of 50 ms (--capacity) in k3f9qx"), "{refused}");
        // How many samples there are is no difference, nor is a request that was not kept.
        let few = Passes::Planned { plan: "samples".into(), value: "3".into() };
        let mut of_before = of(&few);
        assert!(diff(&of_before, &of(&usual())).is_ok());
        of_before.header.origin = None;
        assert!(diff(&of_before, &of(&all[4])).is_ok());
    }

    #[test]
    fn a_load_point_has_the_figure_of_its_report() {
        let mut stored = run(usual(), &["load:x", "load:x"], 1000.0);
        for (work, users) in [(0, 1), (1, 2)] {
            stored.header.works[work].name = WorkName::of_users("load:x", users);
            // The first five chose the point, by luck.
            let points =
                &mut stored.samples.get_mut(&(WorkId(work), ArmId::BASELINE)).unwrap().points;
            points[..5].iter_mut().for_each(|point| point.rate *= 2.0);
            points[5..].iter_mut().for_each(|point| point.role = SampleRole::Remeasured);
        }
        let rates = run_report::report(&stored).results;
        for (row, shown) in diff(&stored, &stored).unwrap().results.iter().zip(rates) {
            assert!((row.rate.before - shown.rate).abs() < 1e-9, "{row:?}, {}", shown.rate);
        }
    }

    #[test]
    fn passes_over_one_start_have_no_interval() {
        let endured = |rate| {
            run(Passes::Endure(Endurance { passes: 20, per_1000s: 0 }), &["app:web.page"], rate)
        };
        let found = diff(&endured(1000.0), &endured(500.0)).unwrap();
        let rate = found.results[0].rate;
        assert!((rate.change_pct + 50.0).abs() < 0.1, "{rate:?}");
        assert_eq!((rate.low_pct, rate.high_pct, rate.is_beyond_noise), (None, None, false));
        assert!(!rate.is_worse_by(5.0));
        assert!(found.not_judged[0].contains("one start of the server"), "{found:?}");
        assert_eq!(found.open_rows().count(), 1);
        let usual =
            diff(&run(usual(), &["stat"], 1000.0), &run(usual(), &["stat"], 500.0)).unwrap();
        assert!(usual.results[0].rate.is_worse_by(5.0) && usual.not_judged.is_empty());
    }
}
