//! A pair of commands that run at the same time on one CPU: an interleaved pair, compared by CPU time.
//!
//! The scheduler gives them slices of a few milliseconds in turns. What disturbs the machine for longer hits
//! both, and hardly changes the ratio of their CPU times. CPU time stands for the time of a command that
//! waits for nothing but a CPU, and that has one thread: the sequential pairs of a row's pilot show whether
//! that is so. Which command starts first is the coin's.

use std::fs;
use std::path::Path;

use super::turns::Failed;
use super::{Host, NotInterleaved};
use crate::platform::{Platform, Readings, SampleError, SampleSlot, Stop};
use weigh_model::role::SampleRole;
use weigh_model::workload::metric::WHOLE_RUNS;
use weigh_model::workload::sample::{Outside, Sample};
use weigh_workload::cpu_use::CpuUse;
use weigh_workload::executable::Length;
use weigh_workload::gate::Gate;
use weigh_workload::launcher::{Job, Launched};

/// A command that waits for less than this share of its time is CPU-bound.
const MOST_WAITING: f64 = 0.05;
/// Share of the CPU time that the first thread of a command has at least, if no other one matters.
const ONE_THREAD: f64 = 0.95;
/// Shorter commands than a few slices of the scheduler run one after the other anyway.
const LEAST_CPU_NS: u64 = 5_000_000;

const OTHER_TASKS: &str = "it has several processes or threads that use CPU time";

impl Host<'_> {
    /// Measures a pair of commands at the same time; the readings are in the order of the slots.
    pub(super) fn pair_of_commands(
        &mut self,
        slots: &[SampleSlot; 2],
    ) -> Result<[Readings; 2], Failed> {
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

    /// Notes why the CPU time of a command does not stand for its time, if a launch that shared its CPU with
    /// nobody shows that.
    pub(super) fn look_for_waiting(
        &mut self,
        slot: &SampleSlot,
        launched: &Launched,
        sample: &Sample,
    ) {
        let Some(reason) = why_not_cpu_bound(launched, sample) else { return };
        // The first pair is there to find that out: it is no news that commands wait.
        let is_expected = slot.role == SampleRole::Pilot && slot.pair.0 == 0;
        let reason = reason.to_owned();
        self.note_not_interleavable(slot, NotInterleaved { reason, is_expected });
    }
}

/// Why the CPU time of a command that ran alone does not stand for its time.
fn why_not_cpu_bound(launched: &Launched, sample: &Sample) -> Option<&'static str> {
    if sample.unit.as_deref() != Some(WHOLE_RUNS) {
        return Some("it reports a rate of its own");
    }
    let Some(used) = &launched.cpu_use else {
        return Some("the kernel does not count how long it waits for a CPU");
    };
    if used.cpu_ns < LEAST_CPU_NS {
        return Some("it uses less than 5 ms of CPU time");
    }
    if !has_one_thread(used) {
        return Some(OTHER_TASKS);
    }
    // On a busy machine the launcher sees the end late, and that is no waiting: who never waits is known by
    // the number of waits.
    let busy_ns = (used.first_thread_ns + used.queued_ns) as f64;
    let waits = used.waits > 1 && busy_ns < (1.0 - MOST_WAITING) * launched.wall_ns as f64;
    waits.then_some("it waits for more than 5 % of its time")
}

fn has_one_thread(used: &CpuUse) -> bool {
    used.first_thread_ns as f64 >= ONE_THREAD * used.cpu_ns as f64
}

/// The sample of a command that shared its CPU, on the clock of its own CPU time: how long it took says
/// nothing.
fn by_cpu_time(sample: Sample, launched: &Launched) -> Result<Sample, String> {
    if launched.cpu.is_none() {
        return Err("the arms have no CPU in common".into());
    }
    let used = launched.cpu_use.as_ref().filter(|used| used.cpu_ns > 0);
    let used = used.ok_or("the kernel did not count its CPU time")?;
    if !has_one_thread(used) {
        return Err(OTHER_TASKS.into());
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
        CpuUse { cpu_ns, first_thread_ns, queued_ns, waits }
    }

    fn why_not(used: CpuUse) -> Option<&'static str> {
        let (launched, sample) = ran(used);
        why_not_cpu_bound(&launched, &sample)
    }

    #[test]
    fn a_command_is_cpu_bound_if_it_waits_for_a_cpu_alone() {
        assert_eq!(why_not(used(96, 96, 0, 30)), None);
        assert_eq!(why_not(used(20, 20, 76, 30)), None, "a busy machine");
        assert_eq!(why_not(used(20, 20, 10, 1)), None, "its end was seen late");
        let waits = Some("it waits for more than 5 % of its time");
        assert_eq!([used(94, 94, 0, 2), used(20, 20, 74, 30)].map(why_not), [waits; 2]);
        assert_eq!(why_not(used(4, 4, 0, 1)), Some("it uses less than 5 ms of CPU time"));
        assert_eq!(why_not(used(100, 94, 0, 1)), Some(OTHER_TASKS));
    }

    #[test]
    fn what_is_not_known_or_not_a_whole_run_is_not_cpu_bound() {
        let (launched, sample) = ran(used(96, 96, 0, 1));
        let uncounted = Launched { cpu_use: None, ..launched.clone() };
        assert!(why_not_cpu_bound(&uncounted, &sample).unwrap().contains("does not count"));
        assert!(by_cpu_time(sample.clone(), &uncounted).is_err());
        let own = Sample { unit: Some("ops/s".into()), ..sample };
        assert!(why_not_cpu_bound(&launched, &own).unwrap().contains("a rate of its own"));
    }

    #[test]
    fn a_sample_on_a_shared_cpu_is_timed_by_the_cpu_time_after_the_launch() {
        let (launched, sample) = ran(used(80, 80, 80, 1));
        let timed = by_cpu_time(sample.clone(), &launched).unwrap();
        assert_eq!((timed.elapsed_ns, timed.rate()), (80 * MS, 12.5));
        assert_eq!((timed.user_ns, timed.system_ns), (Some(60 * MS), Some(20 * MS)));
        let (launched, _) = ran(used(80, 70, 80, 1));
        assert_eq!(by_cpu_time(sample.clone(), &launched).unwrap_err(), OTHER_TASKS);
        let (launched, _) = ran(used(80, 80, 80, 1));
        let elsewhere = Launched { cpu: None, ..launched };
        assert!(by_cpu_time(sample, &elsewhere).unwrap_err().contains("no CPU in common"));
    }
}
