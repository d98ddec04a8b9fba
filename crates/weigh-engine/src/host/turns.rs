//! A pair whose two processes live at the same time and alternate on one CPU every 125 µs.
//!
//! What disturbs a machine lasts about a millisecond and more, so it meets slices that lie next to each
//! other in the same way. The reading of such a pair is the median of ln(treated / baseline) over its
//! slices. Who has the first turn is the coin's: for a pair of equal arms it is as likely to be above zero
//! as below.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use super::{BesidesSample, Host, NotInterleaved};
use crate::platform::{PairError, PairSlot, Platform, Readings, SampleError, SampleSlot, Stop};
use crate::row::RowKey;
use crate::work::Work;
use paired::estimate::median;
use weigh_model::evidence::Evidence;
use weigh_model::ids::WorkId;
use weigh_model::result::warning::Warning;
use weigh_model::result::work_name::WorkName;
use weigh_model::role::SampleRole;
use weigh_model::workload::metric::{CLIPPED, Direction, INTERLEAVED};
use weigh_model::workload::sample::{OwnReading, Sample};
use weigh_station::arms::{LaunchOfPairError, Proved};
use weigh_treatment::{Named, Reach};
use weigh_verdict::late::AGE;
use weigh_workload::executable::Length;
use weigh_workload::launcher::{Job, Launched};

/// Size of the memory that two processes share, in bytes; `workloads/driver/turns.c` uses the first
/// bytes of it.
const SHARED_BYTES: u64 = 4096;
/// The exit status of a process whose partner is gone (`workloads/driver/main.c`).
const LEFT_ALONE: i32 = 3;

/// How long both are timed where nobody says so: twenty slices each, which is precise enough. On a busy
/// machine a pair takes many times its CPU time.
const TURNS_MS: u64 = 10;
/// Longer samples than this are not interleaved. With the fixed 20 ms of `--pairs` they still are.
const LONGEST_SAMPLE_MS: u64 = 20;

/// Slices are clipped at so many times the median slice.
const CLIPPED_AT: f64 = 3.0;
/// An interleaved pair has eight slices of each process at least, and a slice one operation. With `shell8`,
/// of 28 ms, that takes 1.3 to 1.7 s, a sequential pair 0.26 s; with `shell1`, of 3 ms, interleaved pairs
/// find −1 % in a fifth of the time (docs/verdicts.md).
const LONGEST_OPERATION_NS: f64 = 10e6;
const RECORDS: &str = "the treatment makes records, which the kernel processes in the slices of the other \
                       process";

/// A sample of the pair that failed, by its position.
pub(super) type Failed = (usize, SampleError);

impl Host<'_> {
    /// Returns true if the pairs of a row can be interleaved.
    pub fn can_interleave(&self, unit: &RowKey) -> bool {
        self.site.works[unit.work].can_interleave()
            && self.arms_can_interleave()
            && self.fits_in_slices(unit.work)
    }

    /// A hundred slices are the most: longer samples, which were asked for, would be cut to that.
    fn fits_in_slices(&self, work: WorkId) -> bool {
        self.site.sample_ms[work].is_none_or(|sample_ms| sample_ms <= LONGEST_SAMPLE_MS)
    }

    fn arms_can_interleave(&self) -> bool {
        let is_here = |arm| self.arms.place(arm).is_here();
        self.arms.ids().all(is_here)
            && obstacle(self.arms.treatments()).is_none()
            && !self.has_prepare()
    }

    /// Obstacle to interleaving, if there is one.
    pub fn about_interleaving(&self) -> Option<Warning> {
        if let Some(named) = obstacle(self.arms.treatments()) {
            let (arm, reason) = (named.label.clone(), reason(named).to_owned());
            return Some(Warning::CannotInterleave { arm, reason });
        }
        if !self.arms_can_interleave() {
            return Some(Warning::ArmElsewhere);
        }
        if let Some(work) =
            (0..self.site.works.len()).map(WorkId).find(|work| !self.fits_in_slices(*work))
        {
            let sample_ms = self.site.sample_ms[work].unwrap_or_default();
            return Some(Warning::SamplesTooLong { sample_ms, longest_ms: LONGEST_SAMPLE_MS });
        }
        let others = self.site.works.iter().filter(|work| !work.can_interleave());
        let workloads: Vec<WorkName> = others.map(Work::name).collect();
        (!workloads.is_empty()).then_some(Warning::SequentialPairs { workloads })
    }

    /// Measures an interleaved pair.
    ///
    /// # Errors
    /// [`PairError`]
    pub(super) fn interleaved_pair(&mut self, slot: &PairSlot) -> Result<[Readings; 2], PairError> {
        let slots = slot.slots();
        let measured = match self.site.works[slot.unit.work].is_command() {
            true => self.pair_of_commands(&slots),
            false => {
                let file = self.arms.context.place.scratch.join("turns");
                let measured = self.measure_interleaved(&slots, &file);
                let _ = fs::remove_file(&file);
                measured
            }
        };
        let readings =
            measured.map_err(|(position, error)| self.settle(error).of_pair(position))?;
        let [first, second] = readings;
        Ok(if slots[0].arm.is_baseline() { [first, second] } else { [second, first] })
    }

    /// The readings in the order of the slots.
    fn measure_interleaved(
        &mut self,
        slots: &[SampleSlot; 2],
        file: &PathBuf,
    ) -> Result<[Readings; 2], Failed> {
        self.renew(&slots[0]).map_err(|error| (0, error))?;
        make_shared(file).map_err(|error| (0, SampleError::Stop(error)))?;
        let prepare = |slot: SampleSlot| {
            let warm_up_ms = if slot.role == SampleRole::Aged { AGE.as_millis() as u64 } else { 0 };
            let length = Length { warm_up_ms, ..Length::of_ms(self.interleaved_ms(&slot)) };
            let job = self.job(&slot, length);
            let (mut job, padding_bytes) =
                job.map_err(|reason| (slot.position, SampleError::Workload(reason)))?;
            job.argv.extend(["--turns".into(), format!("{},{}", slot.position, file.display())]);
            Ok::<_, Failed>((job, padding_bytes))
        };
        let prepared = [prepare(slots[0])?, prepare(slots[1])?];
        let started_s = self.elapsed().as_secs_f64();
        let jobs = [&prepared[0].0, &prepared[1].0];
        let launched = self.launch_both(slots, jobs)?;
        let mut samples = self.read_both(slots, &launched)?;
        let log_ratio = log_ratio(slots, &samples).map_err(|reason| {
            (
                1,
                SampleError::Workload(format!(
                    "its slices do not match those of the other process: {reason}"
                )),
            )
        })?;
        add_readings(slots, &mut samples, log_ratio);
        let padding_bytes = [prepared[0].1, prepared[1].1];
        self.keep_both(slots, started_s, padding_bytes, (launched, samples))
    }

    /// Proves both launches of a pair, and keeps their samples.
    pub(super) fn keep_both(
        &mut self,
        slots: &[SampleSlot; 2],
        started_s: f64,
        padding_bytes: [usize; 2],
        (mut launched, samples): ([Option<Launched>; 2], [Sample; 2]),
    ) -> Result<[Readings; 2], Failed> {
        let mut readings = [Readings::default(), Readings::default()];
        let store = self.site.store;
        let mut samples = samples.into_iter().enumerate();
        let mut keep = |(position, sample): (usize, Sample)| {
            let launched = launched[position].take().expect("it was read");
            let padding_bytes = padding_bytes[position];
            let kept =
                self.prove_and_keep(&slots[position], started_s, padding_bytes, (launched, sample));
            readings[position] = kept.map_err(|error| (position, error))?;
            Ok::<_, Failed>(())
        };
        // Both wait for the disk once. If the second one is not proved, the first is stored all the same.
        let kept =
            store.in_one_commit(|| Ok::<_, weigh_store::Error>(samples.try_for_each(&mut keep)));
        kept.map_err(|error| (1, error.into()))??;
        Ok(readings)
    }

    pub(super) fn launch_both(
        &mut self,
        slots: &[SampleSlot; 2],
        jobs: [&Job; 2],
    ) -> Result<[Option<Launched>; 2], Failed> {
        let arms = slots.map(|slot| slot.arm);
        let limited = |job| self.limited(job).map_err(|error| (0, error));
        let limited = [limited(jobs[0])?, limited(jobs[1])?];
        self.launches += 2;
        let launched = self.arms.launch_both(arms, slots[0].unit.treated_arm, &limited);
        let launched =
            launched.map_err(|LaunchOfPairError { position, error }| (position, error.into()))?;
        let mut ended = launched.iter().flatten();
        ended.try_for_each(|launched| self.check_ended(launched)).map_err(|error| (0, error))?;
        Ok(launched)
    }

    /// One that was left alone is not to blame.
    fn read_both(
        &self,
        slots: &[SampleSlot; 2],
        launched: &[Option<Launched>; 2],
    ) -> Result<[Sample; 2], Failed> {
        let work = &self.site.works[slots[0].unit.work];
        let read = |position: usize| match &launched[position] {
            Some(launched) => work.read(launched),
            None => Err("it did not exit after the other process of its pair failed".into()),
        };
        let is_alone = |position: usize| {
            let exit_code = launched[position].as_ref().map(|launched| launched.exit_code);
            matches!(exit_code, None | Some(Some(LEFT_ALONE)))
        };
        let order = if is_alone(0) { [1, 0] } else { [0, 1] };
        let mut samples = order.map(|position| {
            read(position).map_err(|reason| (position, SampleError::Workload(reason)))
        });
        if order == [1, 0] {
            samples.swap(0, 1);
            // The one to blame comes first.
            if let [_, Err(blamed)] = samples {
                return Err(blamed);
            }
        }
        let [first, second] = samples;
        Ok([first?, second?])
    }

    fn prove_and_keep(
        &mut self,
        slot: &SampleSlot,
        started_s: f64,
        padding_bytes: usize,
        (launched, sample): (Launched, Sample),
    ) -> Result<Readings, SampleError> {
        let Proved { launched, evidence } = self.arms.prove(slot.arm, launched, &[])?;
        if self.look_for_records(slot, &evidence) {
            return Err(SampleError::Workload(format!("{RECORDS}; use --interleave=off")));
        }
        let disturbance = self.disturbance(slot.arm, &launched);
        let cpu = launched.cpu;
        let found = BesidesSample { started_s, padding_bytes, cpu, evidence, disturbance };
        Ok(self.keep(slot, found, sample)?.0)
    }

    /// Returns true if a treatment made records meanwhile, which are processed in the partner's
    /// slices. The row then leaves turns.
    pub(super) fn look_for_records(&mut self, slot: &SampleSlot, evidence: &Evidence) -> bool {
        let makes_records = !self.arms.left_no_async_work(slot.arm, evidence);
        if makes_records {
            self.note_not_interleavable(slot, NotInterleaved::found(RECORDS));
        }
        makes_records
    }

    /// One that takes many slices has nothing of short ones.
    pub(super) fn look_for_long_operations(&mut self, slot: &SampleSlot, sample: &Sample) {
        if sample.cpu_ns_per_op().is_some_and(|cpu_ns| cpu_ns > LONGEST_OPERATION_NS) {
            let reason = "one operation takes more than 10 ms of CPU time";
            self.note_not_interleavable(slot, NotInterleaved::found(reason));
        }
    }

    pub(super) fn note_not_interleavable(&mut self, slot: &SampleSlot, found: NotInterleaved) {
        let row = slot.unit.id();
        self.not_interleaved.entry(row).or_insert(found);
    }

    fn interleaved_ms(&self, slot: &SampleSlot) -> u64 {
        self.site.sample_ms[slot.unit.work].unwrap_or(TURNS_MS)
    }
}

/// The first treatment that keeps two arms from living at the same time: by itself, or as another one needs
/// the same thing in the kernel.
pub fn obstacle<'a>(treatments: impl Iterator<Item = &'a Named>) -> Option<&'a Named> {
    let mut occupied = Vec::new();
    for named in treatments {
        let own: Vec<_> = named.treatment.occupies().into_iter().map(|one| one.what).collect();
        if !named.treatment.can_interleave() || own.iter().any(|what| occupied.contains(what)) {
            return Some(named);
        }
        occupied.extend(own);
    }
    None
}

/// Why this treatment keeps two arms from living at the same time.
fn reason(obstacle: &Named) -> &'static str {
    match obstacle.treatment.reach() {
        _ if obstacle.treatment.can_interleave() => {
            "needs a part of the kernel that another arm needs, too"
        }
        Reach::Processes => {
            "changes how its process is scheduled or started, but the two processes of an interleaved pair \
             hand one CPU to each other and must differ in nothing else"
        }
        Reach::System => {
            "also affects other processes, and the two processes of an interleaved pair run at the same time"
        }
        Reach::Elsewhere | Reach::Guest => "runs its processes on a different machine",
    }
}

impl Work {
    /// Returns true if a process of the work can alternate with another process, while its own
    /// other processes stand still, or share a CPU with it. Work alongside an activity cannot: the
    /// activity must run for the time of a sample of one arm.
    pub fn can_interleave(&self) -> bool {
        match self {
            Work::Builtin { workload, copies: 1, server: None, beside: None, .. } => {
                // The processes of @same-cpu are where the turn is; others read what is not in memory, or
                // need a second CPU.
                let name = workload.name.strip_suffix("@same-cpu").unwrap_or(&workload.name);
                !name.contains('@') && workload.group != "feel" && !workload.leaves_work
            }
            // Its first pair shows whether it waits.
            Work::Command { .. } | Work::CommandComparison { .. } => true,
            _ => false,
        }
    }
}

fn make_shared(file: &PathBuf) -> Result<(), Stop> {
    let _ = fs::remove_file(file); // of a pair that was interrupted
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    made.and_then(|made| made.set_len(SHARED_BYTES))
        .map_err(|error| Stop::Failed(format!("{}: {error}", file.display())))
}

/// The median over the slices of ln(treated / baseline).
fn log_ratio(slots: &[SampleSlot; 2], samples: &[Sample; 2]) -> Result<f64, String> {
    let [first, second] = [samples[0].slice_rates(), samples[1].slice_rates()];
    if first.len() != second.len() {
        return Err(format!("{} and {} slices", first.len(), second.len()));
    }
    let sign = if slots[0].arm.is_baseline() { 1.0 } else { -1.0 };
    let ratios: Vec<f64> =
        first.iter().zip(&second).map(|(first, second)| sign * (second / first).ln()).collect();
    median(&ratios).filter(|d| d.is_finite()).ok_or_else(|| "no slice has a valid rate".to_owned())
}

/// The baseline's reading is the rate of its median slice; the treated one's is as much more as the slices
/// say. Beside it, the rate over all slices: clipped at three times the median of both processes' slices, or
/// one stall would outweigh a cost that comes in every tenth slice. To swap the arms swaps the sign of both
/// log-ratios.
fn add_readings(slots: &[SampleSlot; 2], samples: &mut [Sample; 2], log_ratio: f64) {
    let baseline = usize::from(!slots[0].arm.is_baseline());
    let rate = median(&samples[baseline].slice_rates()).unwrap_or_default();
    let all_ns: Vec<f64> = (samples.iter())
        .flat_map(|sample| sample.slices_ns.iter().flatten().map(|ns| *ns as f64))
        .collect();
    let longest_ns =
        CLIPPED_AT * median(&all_ns).expect("their ratio is known, so there are slices");
    for (slot, sample) in slots.iter().zip(samples) {
        let by_median = if slot.arm.is_baseline() { rate } else { rate * log_ratio.exp() };
        let readings = [(INTERLEAVED, by_median), (CLIPPED, sample.clipped_rate(longest_ns))];
        let unit = sample.unit.clone().unwrap_or_default();
        let reading = |(name, value)| OwnReading::new(name, value, &*unit, Direction::Higher);
        sample.readings.extend(readings.map(reading));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_against_interleaving_is_that_of_the_treatment() {
        let why = |label: &str| {
            let named = weigh_treatment::parse(label).unwrap();
            obstacle([&named].into_iter()).map(reason)
        };
        assert_eq!(why("seccomp"), None);
        for label in ["nice:5", "cpus:0", "nice:5+seccomp"] {
            assert!(
                why(label).unwrap().starts_with("changes how its process is scheduled"),
                "{label}"
            );
        }
        assert!(
            why("cmd:apply=true,undo=true,verify=true").unwrap().starts_with("also affects other")
        );
    }
}
