//! Times of the runs of commands, from all of their samples: also of those whose pair was not completed. Runs
//! of interleaved pairs shared a CPU, so only their CPU time counts.

use super::command_comparison::CommandComparison;
use weigh_model::ids::ArmId;
use weigh_model::record::Stored;
use weigh_model::result::scheme::Scheme;
use weigh_model::result::versus::CommandTimes;
use weigh_model::samples::{KnownCpu, Point, RowSamples, Totals};
use weigh_model::workload::metric::WHOLE_RUNS;
use weigh_model::workload::sample::PEAK_MEMORY;

/// Returns the times of each command that has a result. One that reports a rate of its own has no time of a
/// run, because that rate is of a part of the run.
pub fn command_times(stored: &Stored, contest: Option<&CommandComparison>) -> Vec<CommandTimes> {
    let has_failed =
        |arm: ArmId| stored.failures.iter().any(|failure| failure.arm == stored.header.arms[arm]);
    let arms = (0..stored.header.arms.len()).map(ArmId).filter(|arm| !has_failed(*arm));
    arms.filter_map(|arm| of_arm(stored, arm, contest)).collect()
}

fn of_arm(
    stored: &Stored,
    arm: ArmId,
    contest: Option<&CommandComparison>,
) -> Option<CommandTimes> {
    let rows = || {
        let of_arm =
            stored.samples.iter().filter(|((_, treated), _)| arm.is_baseline() || *treated == arm);
        of_arm.map(|(_, row)| row)
    };
    let totals: Vec<&Totals> = rows().filter_map(|row| totals(row, arm)).collect();
    if totals.iter().any(|totals| totals.unit.as_ref().is_some_and(|unit| unit != WHOLE_RUNS)) {
        return None;
    }
    let mut runs: Vec<Run> = rows().flat_map(|row| runs(row, arm)).collect();
    runs.sort_by(|one, other| one.started_s.total_cmp(&other.started_s));
    // A clock that was late by one run says nothing against the others.
    let known = totals.iter().map(|totals| totals.known_cpu);
    let known = known.fold(KnownCpu::default(), KnownCpu::with);
    let mean_s = |ns: f64| (known.launches > 0).then(|| ns / 1e9 / known.launches as f64);
    let memory: Option<Vec<u64>> = runs.iter().map(|run| run.memory_bytes).collect();
    let parameters = contest.and_then(|contest| contest.parameters.get(arm.0));
    (!runs.is_empty()).then(|| CommandTimes {
        command: stored.header.arms[arm].clone(),
        parameters: parameters.cloned().unwrap_or_default(),
        times_s: runs.iter().map(|run| run.time_s).collect(),
        user_s: mean_s(known.user_ns),
        system_s: mean_s(known.system_ns),
        exit_codes: runs.iter().map(|run| run.exit_code).collect(),
        peak_memory_bytes: memory.unwrap_or_default(),
    })
}

/// All launches of an arm in the pairs of a row.
fn totals(row: &RowSamples, arm: ArmId) -> Option<&Totals> {
    if arm.is_baseline() { row.baseline.as_ref() } else { row.treated.as_ref() }
}

struct Run {
    started_s: f64,
    time_s: f64,
    exit_code: u8,
    memory_bytes: Option<u64>,
}

fn runs(row: &RowSamples, arm: ArmId) -> impl Iterator<Item = Run> {
    let points = row.points.iter().enumerate();
    let is_its = move |point: &Point| {
        point.is_treated != arm.is_baseline() && point.scheme == Scheme::Sequential
    };
    points.filter(move |(_, point)| is_its(point)).map(|(index, point)| {
        let Point { started_s, elapsed_s, exit_code, .. } = *point;
        let memory_bytes = row.further_of(index, PEAK_MEMORY).map(|bytes| bytes as u64);
        Run { started_s, time_s: elapsed_s, exit_code, memory_bytes }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::request::{Comparison, Plan};
    use weigh_model::example::point;
    use weigh_model::ids::WorkId;
    use weigh_model::record::ExperimentKind;
    use weigh_model::result::summary::Failure;
    use weigh_model::result::versus::WORK;

    /// Totals of launches, one of which lacks its CPU time.
    fn launches(count: usize, unit: &str) -> Option<Totals> {
        let launches = count - 1;
        let ns = |per_launch_s: f64| per_launch_s * 1e9 * launches as f64;
        Some(Totals {
            launches: count,
            unit: Some(unit.into()),
            known_cpu: KnownCpu { launches, user_ns: ns(0.5), system_ns: ns(0.25) },
            ..Totals::default()
        })
    }

    /// Three commands, of which the last one prints a rate of its own.
    fn stored() -> Stored {
        let plan = Plan::Compare(Comparison::default());
        let mut stored = example::stored(plan, [example::work(WORK, WHOLE_RUNS)]);
        stored.header.kind = ExperimentKind::Versus;
        stored.header.arms = ["a", "b", "c"].map(str::to_owned).to_vec();
        for arm in [1, 2] {
            let point = |number: usize| Point {
                is_treated: number % 2 == 1,
                started_s: 10.0 * number as f64 + arm as f64,
                elapsed_s: (number + 1) as f64,
                exit_code: 3,
                ..point(number / 2, 1.0)
            };
            let row = RowSamples {
                points: (0..4).map(point).collect(),
                baseline: launches(2, WHOLE_RUNS),
                treated: launches(2, if arm == 1 { WHOLE_RUNS } else { "ops/s" }),
                ..RowSamples::default()
            };
            stored.samples.insert((WorkId(0), ArmId(arm)), row);
        }
        stored
    }

    #[test]
    fn the_baseline_has_the_runs_of_all_pairs_and_a_rate_is_no_time() {
        let mut stored = stored();
        let times = command_times(&stored, None);
        let found: Vec<(&str, &[f64])> =
            times.iter().map(|one| (one.command.as_str(), &*one.times_s)).collect();
        assert_eq!(found, [("a", &[1.0, 1.0, 3.0, 3.0][..]), ("b", &[2.0, 4.0])]);
        assert_eq!((times[0].user_s, times[1].system_s), (Some(0.5), Some(0.25)));
        assert_eq!((&*times[1].exit_codes, times[1].peak_memory_bytes.len()), (&[3, 3][..], 0));
        // Of the second pair, which shared a CPU, no time is that of a run.
        let mut shared = stored.clone();
        for row in shared.samples.values_mut() {
            row.points[2..].iter_mut().for_each(|point| point.scheme = Scheme::Interleaved);
        }
        assert_eq!(command_times(&shared, None)[1].times_s, [2.0]);
        let (workload, arm, reason) = (WORK.into(), "b".into(), "it hung".into());
        stored.failures.push(Failure { workload, arm, reason });
        assert_eq!(command_times(&stored, None).len(), 1);
    }
}
