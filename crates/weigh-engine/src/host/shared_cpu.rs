//! A pair of commands that run at the same time on one CPU: an interleaved pair, compared by CPU time.
//!
//! The scheduler gives them slices of a few milliseconds in turns. What disturbs the machine for longer hits
//! both, and hardly changes the ratio of their CPU times. CPU time stands for the time of a command that
//! waits for nothing but a CPU: the sequential pairs of a row's pilot show whether that is so. They also show
//! whether several tasks of a command can run at the same time; both commands then share all CPUs. Which
//! command starts first is the coin's.

use std::fs;
use std::path::Path;

use super::start::is_control;
use super::turns::Failed;
use super::{Host, NotInterleaved};
use crate::platform::{Platform, Readings, SampleError, SampleSlot, Stop};
use weigh_model::ids::{PairId, SetId};
use weigh_model::result::scheme::Scheme;
use weigh_model::role::SampleRole;
use weigh_model::workload::metric::WHOLE_RUNS;
use weigh_model::workload::sample::{Outside, Sample};
use weigh_workload::executable::Length;
use weigh_workload::gate::Gate;
use weigh_workload::launcher::{Job, Launched};

/// A command that waits for less than this share of its time is CPU-bound.
const MOST_WAITING: f64 = 0.05;
/// Share of the CPU time that the first thread of a command has at least, if no other one matters.
const ONE_THREAD: f64 = 0.95;
/// A command that could do less than this share of its work on a second CPU loses nothing on one.
const MOST_PARALLEL: f64 = 0.05;
/// Shorter commands than a few slices of the scheduler run one after the other anyway.
const LEAST_CPU_NS: u64 = 5_000_000;

/// CPU time that looks may see and nobody counts: before the command was let go, and up to a clock tick.
const MOST_UNCOUNTED_NS: u64 = 20_000_000;

const UNCOUNTED: &str = "it ignores SIGCHLD, so the CPU time of its child processes is not counted";
const WAITS: &str = "it waits for more than 5 % of its time";
const WRITES: &str = "it writes files, and two runs at the same time would write the same ones";
const OUTLIVED: &str =
    "it leaves processes running when it ends, and their CPU time does not count";

impl Host<'_> {
    /// Measures a pair of commands at the same time; the readings are in the order of the slots.
    pub(super) fn pair_of_commands(
        &mut self,
        slots: &[SampleSlot; 2],
    ) -> Result<[Readings; 2], Failed> {
        if !self.parallel.contains_key(&slots[0].unit.id()) {
            self.run_alone(slots)?;
        }
        let gate = self.arms.context.place.scratch.join("gate");
        let measured = self.measure_at_gate(slots, &gate);
        // Where it cannot be removed, the next pair cannot make it and says so.
        let _ = fs::remove_dir_all(&gate);
        if let Err((_, SampleError::Workload(reason))) = &measured {
            let reason =
                format!("a command failed while it shared a CPU with the other one: {reason}");
            self.note_not_interleavable(&slots[0], NotInterleaved::found(reason));
        }
        measured
    }

    /// Runs both commands alone, in a session that has not done so yet: an earlier one had the pilot. None of
    /// these runs is a sample.
    fn run_alone(&mut self, slots: &[SampleSlot; 2]) -> Result<(), Failed> {
        self.renew(&slots[0]).map_err(|error| (0, error))?;
        for slot in slots {
            let control =
                SampleSlot { role: SampleRole::Pilot, scheme: Scheme::Sequential, ..*slot };
            let failed = |reason| (slot.position, SampleError::Workload(reason));
            let (job, _) = self.job(&control, Length::of_ms(0)).map_err(failed)?;
            let launched = self.launch(slot.arm, slot.unit.treated_arm, &job);
            let (launched, ..) = launched.map_err(|error| (slot.position, error))?;
            let sample = self.site.works[slot.unit.work].read(&launched).map_err(failed)?;
            self.learn_from_control(&control, &launched, &sample, true);
        }
        match self.why_not_interleaved(&slots[0].unit) {
            Some(reason) => Err((0, SampleError::Workload(reason))),
            None => Ok(()),
        }
    }

    /// Returns true if the commands of a row are known to use several CPUs at the same time.
    pub(super) fn is_parallel(&self, slot: &SampleSlot) -> bool {
        self.parallel.get(&slot.unit.id()).is_some_and(|is_parallel| *is_parallel)
    }

    fn measure_at_gate(
        &mut self,
        slots: &[SampleSlot; 2],
        gate: &Path,
    ) -> Result<[Readings; 2], Failed> {
        self.renew(&slots[0]).map_err(|error| (0, error))?;
        Gate::make(gate).map_err(|error| {
            (0, SampleError::Stop(Stop::Failed(format!("{}: {error}", gate.display()))))
        })?;
        let [first, second] = [self.at_gate(&slots[0], gate)?, self.at_gate(&slots[1], gate)?];
        let started_s = self.elapsed().as_secs_f64();
        let launched = self.launch_both(slots, [&first.0, &second.0])?;
        let works = self.site.works;
        let read = |position: usize| {
            let work = &works[slots[position].unit.work];
            let launched = launched[position].as_ref().ok_or("it did not end")?;
            by_cpu_time(work.read(launched)?, launched)
        };
        let read = |position| {
            read(position).map_err(|reason: String| (position, SampleError::Workload(reason)))
        };
        let samples = [read(0)?, read(1)?];
        self.keep_both(slots, started_s, [first.1, second.1], (launched, samples))
    }

    /// The job of a command that waits for the other one, and the bytes of padding.
    fn at_gate(&self, slot: &SampleSlot, gate: &Path) -> Result<(Job, usize), Failed> {
        let job = self.job(slot, Length::of_ms(0));
        let (mut job, padding_bytes) =
            job.map_err(|reason| (slot.position, SampleError::Workload(reason)))?;
        if let Some(start) = &mut job.start {
            let is_first = slot.position == 0;
            start.gate = Some(Gate { directory: gate.to_owned(), is_first });
        }
        Ok((job, padding_bytes))
    }

    /// Notes what a launch that shared its CPU with nobody shows: why the CPU time of a command does not
    /// stand for its time, or how many CPUs it can use.
    pub(super) fn look_for_waiting(
        &mut self,
        slot: &SampleSlot,
        launched: &Launched,
        sample: &Sample,
    ) {
        // The first pair is there to find that out: it is no news that commands wait.
        let is_first = slot.set == SetId(0) && slot.pair == PairId(0);
        if is_control(slot) {
            self.learn_from_control(slot, launched, sample, is_first);
        }
    }

    fn learn_from_control(
        &mut self,
        slot: &SampleSlot,
        launched: &Launched,
        sample: &Sample,
        is_first: bool,
    ) {
        // Two commands often have files of their own (docs/versus.md).
        let is_same_command = self.site.works[slot.unit.work].contest().is_none();
        let found = match is_same_command && launched.block_output_bytes > 0 {
            true => Err(WRITES),
            false => is_parallel_alone(launched, sample),
        };
        match found {
            Ok(is_parallel) if is_first => {
                *self.parallel.entry(slot.unit.id()).or_default() |= is_parallel;
            }
            // Pairs on one CPU and pairs on all CPUs are no samples of one effect. A later session, which has
            // no first pair, does not know yet.
            Ok(true) if self.parallel.get(&slot.unit.id()) == Some(&false) => {
                let reason = "it uses several CPUs at the same time, but not in every run";
                self.note_not_interleavable(slot, NotInterleaved::found(reason));
            }
            Ok(_) => {}
            Err(reason) => {
                let is_expected = is_first && reason != OUTLIVED;
                let reason = reason.to_owned();
                self.note_not_interleavable(slot, NotInterleaved { reason, is_expected });
            }
        }
    }
}

/// Returns true if a command that ran alone can use several CPUs at the same time.
///
/// # Errors
/// Why its CPU time does not stand for its time.
fn is_parallel_alone(launched: &Launched, sample: &Sample) -> Result<bool, &'static str> {
    if sample.unit.as_deref() != Some(WHOLE_RUNS) {
        return Err("it reports a rate of its own");
    }
    let Some(used) = &launched.cpu_use else {
        return Err("the kernel does not count how long it waits for a CPU");
    };
    if launched.outlived > 0 {
        return Err(OUTLIVED);
    }
    if used.looks.seen_cpu_ns > used.cpu_ns + MOST_UNCOUNTED_NS {
        return Err(UNCOUNTED);
    }
    if used.cpu_ns < LEAST_CPU_NS {
        return Err("it uses less than 5 ms of CPU time");
    }
    let has_one_thread = used.first_thread_ns as f64 >= ONE_THREAD * used.cpu_ns as f64;
    let could_use_another = used.looks.parallel_ns as f64 > MOST_PARALLEL * used.cpu_ns as f64;
    let is_parallel = !has_one_thread && could_use_another;
    // Who never waits is known by the number of waits. Else two clocks must say so: on a busy machine the
    // launcher sees the end late, and how long other tasks than the first wait for a CPU is counted nowhere.
    // So the tasks are looked at, too.
    let busy_ns = (used.cpu_ns + used.queued_ns) as f64;
    let is_busy = used.waits <= 1 || busy_ns >= (1.0 - MOST_WAITING) * launched.wall_ns as f64;
    let looked_idle = used.looks.idle_share().is_none_or(|share| share > MOST_WAITING);
    // More CPU time than time is no proof that several tasks never wait at the same time.
    let waits = looked_idle && (is_parallel || !is_busy);
    if waits { Err(WAITS) } else { Ok(is_parallel) }
}

/// The sample of a command that shared its CPU, on the clock of its own CPU time: how long it took says
/// nothing.
fn by_cpu_time(sample: Sample, launched: &Launched) -> Result<Sample, String> {
    if launched.cpu.is_none() {
        return Err("the arms have no CPU in common".into());
    }
    let used = launched.cpu_use.as_ref().filter(|used| used.cpu_ns > 0);
    let used = used.ok_or("the kernel did not count its CPU time")?;
    if launched.outlived > 0 {
        return Err(OUTLIVED.into());
    }
    // What it took to launch it is system time.
    let launch_ns = (launched.user_ns + launched.system_ns).saturating_sub(used.cpu_ns);
    let system_ns = launched.system_ns.saturating_sub(launch_ns).min(used.cpu_ns);
    // All that it does is in its CPU time, so nothing is outside of it.
    let outside = Outside { ns_per_slice: 0.0, slice_cpu_ns: used.cpu_ns as f64, tasks: 1 };
    Ok(Sample {
        elapsed_ns: used.cpu_ns,
        user_ns: Some(used.cpu_ns - system_ns),
        system_ns: Some(system_ns),
        outside: Some(outside),
        ..sample
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_workload::cpu_use::CpuUse;
    use weigh_workload::task_looks::Looks;

    const MS: u64 = 1_000_000;

    /// A run of 100 ms.
    fn ran(used: CpuUse) -> (Launched, Sample) {
        let (wall_ns, cpu) = (100 * MS, Some(0));
        let launched = Launched {
            wall_ns,
            cpu,
            cpu_use: Some(used),
            user_ns: 60 * MS,
            system_ns: 21 * MS,
            ..Launched::default()
        };
        let unit = Some(WHOLE_RUNS.to_owned());
        let sample = Sample { operations: 1.0, elapsed_ns: wall_ns, unit, ..Sample::default() };
        (launched, sample)
    }

    fn used(cpu_ms: u64, first_thread_ms: u64, queued_ms: u64, waits: u64) -> CpuUse {
        let [cpu_ns, first_thread_ns, queued_ns] =
            [cpu_ms, first_thread_ms, queued_ms].map(|ms| ms * MS);
        CpuUse { cpu_ns, first_thread_ns, queued_ns, waits, looks: Looks::default() }
    }

    fn alone(used: CpuUse) -> Result<bool, &'static str> {
        let (launched, sample) = ran(used);
        is_parallel_alone(&launched, &sample)
    }

    #[test]
    fn a_command_is_cpu_bound_if_it_waits_for_a_cpu_alone() {
        assert_eq!(alone(used(96, 96, 0, 30)), Ok(false));
        assert_eq!(alone(used(20, 20, 76, 30)), Ok(false), "a busy machine");
        assert_eq!(alone(used(20, 20, 10, 1)), Ok(false), "its end was seen late");
        assert_eq!([used(94, 94, 0, 2), used(20, 20, 74, 30)].map(alone), [Err(WAITS); 2]);
        assert_eq!(alone(used(4, 4, 0, 1)), Err("it uses less than 5 ms of CPU time"));
    }

    /// A compiler and its driver, a pipeline, four threads.
    #[test]
    fn several_processes_are_cpu_bound_if_one_of_them_can_always_use_a_cpu() {
        let looked = |cpu_ms, idle, parallel_ms| {
            let looks = Looks { all: 100, idle, parallel_ns: parallel_ms * MS, seen_cpu_ns: 0 };
            alone(CpuUse { looks, ..used(cpu_ms, 1, 0, 9) })
        };
        assert_eq!(looked(97, 50, 0), Ok(false), "its CPU time says so");
        assert_eq!(looked(30, 5, 1), Ok(false), "on a busy machine the looks do");
        assert_eq!(looked(30, 6, 0), Err(WAITS));
        assert_eq!(looked(30, 0, 0), Ok(false), "its end was seen late");
        assert_eq!(looked(190, 2, 90), Ok(true));
        assert_eq!(looked(190, 6, 90), Err(WAITS), "more CPU time than time is no proof");
        assert_eq!(alone(used(30, 1, 0, 9)), Err(WAITS), "nobody looked");
    }

    #[test]
    fn cpu_time_that_was_seen_and_not_counted_is_missed() {
        let seen = |seen_cpu_ms: u64| {
            let looks = Looks { all: 100, seen_cpu_ns: seen_cpu_ms * MS, ..Looks::default() };
            alone(CpuUse { looks, ..used(96, 96, 0, 30) })
        };
        assert_eq!([seen(90), seen(116), seen(117)], [Ok(false), Ok(false), Err(UNCOUNTED)]);
    }

    #[test]
    fn a_command_that_leaves_processes_running_shares_no_cpu() {
        let (launched, sample) = ran(used(96, 96, 0, 1));
        let launched = Launched { outlived: 1, ..launched };
        assert_eq!(is_parallel_alone(&launched, &sample), Err(OUTLIVED));
        assert_eq!(by_cpu_time(sample, &launched).unwrap_err(), OUTLIVED);
    }

    #[test]
    fn what_is_not_known_or_not_a_whole_run_is_not_cpu_bound() {
        let (launched, sample) = ran(used(96, 96, 0, 1));
        let uncounted = Launched { cpu_use: None, ..launched.clone() };
        assert!(is_parallel_alone(&uncounted, &sample).unwrap_err().contains("does not count"));
        assert!(by_cpu_time(sample.clone(), &uncounted).is_err());
        let own = Sample { unit: Some("ops/s".into()), ..sample };
        assert!(is_parallel_alone(&launched, &own).unwrap_err().contains("a rate of its own"));
    }

    #[test]
    fn a_sample_on_a_shared_cpu_is_timed_by_the_cpu_time_after_the_launch() {
        let (launched, sample) = ran(used(80, 30, 80, 1));
        let timed = by_cpu_time(sample.clone(), &launched).unwrap();
        assert_eq!((timed.elapsed_ns, timed.rate()), (80 * MS, 12.5));
        assert_eq!((timed.user_ns, timed.system_ns), (Some(60 * MS), Some(20 * MS)));
        let elsewhere = Launched { cpu: None, ..launched };
        assert!(by_cpu_time(sample, &elsewhere).unwrap_err().contains("no CPU in common"));
    }
}
