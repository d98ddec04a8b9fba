//! Measuring on this machine: an arm is a launcher, treatments are applied around all of them, and
//! every sample is verified and stored before the next is launched.

pub mod cell_sizes;
pub mod cells;
mod command_comparison;
mod denied_calls;
mod detail;
mod facts;
mod hook_calls;
mod hooks;
mod interpreters;
pub mod passes;
mod profiler;
mod shared_cpu;
mod start;
pub mod sweeps;
pub mod turns;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::hooks::Hooks;
use super::length::{SampleLength, sets_in_late};
use super::order::{chance_of_pair, padding_bytes};
use super::parse_sample::{Repeated, hold_readings, hold_unit};
use super::platform::{
    AFTER_BUDGET, PairError, PairSlot, Platform, Readings, SampleError, SampleSlot, Stop,
    one_after_the_other,
};
use super::request::{Printout, ProgressSink};
use super::row::RowKey;
use super::work::Work;
use cells::NetBench;
use weigh_host::machine::additions::Present;
use weigh_host::machine::pressure::Moment;
use weigh_host::orphans::wait_until;
use weigh_host::undo::guard::Guard;
use weigh_model::disturbance::Disturbance;
use weigh_model::evidence::Evidence;
use weigh_model::format;
use weigh_model::ids::{ArmId, ExperimentId, RowId, WorkId};
use weigh_model::record::{Measured, Startup};
use weigh_model::result::scheme::Scheme;
use weigh_model::result::summary::Failure;
use weigh_model::result::warning::Warning;
use weigh_model::role::SampleRole;
use weigh_model::workload::clock::PlaceClock;
use weigh_model::workload::metric::{Direction, Metric};
use weigh_model::workload::sample::Sample;
use weigh_model::workload::wrong_answers::{AnswerTally, OnWrong};
use weigh_station::arms::{Arms, ArmsError, Proved};
use weigh_store::Store;
use weigh_treatment::TreatmentError;
use weigh_verdict::late::AGE;
use weigh_workload::executable::Length;
use weigh_workload::launcher::{self, Job, Launched, Launcher};

/// How long a server whose first answer is wrong is looked at.
const LOOK_AT_WRONG_MS: u64 = 1000;
const LONGEST_REASON: usize = 2000;

/// This machine, set up for one set of an experiment.
pub struct Host<'a> {
    pub site: MeasureConfig<'a>,
    /// Treatment `n` is applied to arm `n`.
    arms: Arms<'a>,
    /// For what is run around a command, of no arm.
    neutral: Option<Launcher>,
    /// Things that `--setup` added to the system.
    added: Present,
    /// Per arm and work.
    repeated: Vec<Vec<Repeated>>,
    /// The unit of each work's first sample: others cannot be compared with it.
    pub units: Vec<Option<String>>,
    /// Units and directions of the further readings that programs report, by name.
    readings: Vec<BTreeMap<String, (String, Direction)>>,
    /// Per work.
    lengths: Vec<SampleLength>,
    /// Facts about passes, for the report.
    found: Vec<String>,
    /// Output of commands that is to be shown.
    pub shown: Vec<Printout>,
    /// Load points launched for each arm of the rows of peaks.
    pub peaks: BTreeMap<RowId, [WorkId; 2]>,
    /// Why the pairs of a row cannot be interleaved.
    not_interleaved: BTreeMap<RowId, NotInterleaved>,
    /// True for rows whose commands can use several CPUs at the same time; as far as they ran alone.
    parallel: BTreeMap<RowId, bool>,
    /// Calls that the filter of an arm denies to a work, as evidence.
    denied: BTreeMap<(WorkId, ArmId), Evidence>,
    /// When the last launch ended on each machine, by how that is reached.
    idle_since: BTreeMap<Vec<String>, Moment>,
    /// Answers of each arm to each work, where wrong ones are counted.
    answers: BTreeMap<(WorkId, ArmId), AnswerTally>,
    launches: u32,
    /// When the pair that is measured is ended at the latest.
    pair_ends: Option<Duration>,
}

/// Why the pairs of a row cannot be interleaved.
struct NotInterleaved {
    reason: String,
    /// True if the row's first pair was to find that out, and the report needs no warning.
    is_expected: bool,
}

impl NotInterleaved {
    fn found(reason: impl Into<String>) -> NotInterleaved {
        NotInterleaved { reason: reason.into(), is_expected: false }
    }
}

/// Measured work, its place, and the store of its results.
pub struct MeasureConfig<'a> {
    pub store: &'a Store,
    pub id: &'a ExperimentId,
    pub works: &'a [Work],
    /// Seed of the experiment.
    pub seed: u64,
    pub started: Instant,
    /// Time that earlier sessions measured.
    pub before: Duration,
    /// Per work: length of a sample of a workload; with `None` the first pairs choose it.
    pub sample_ms: Vec<Option<u64>>,
    /// Metrics to judge besides the rate.
    pub metrics: &'a [Metric],
    /// How long a launch may last, where the user says so.
    pub timeout: Option<Duration>,
    /// When the budget is spent, since the experiment began.
    pub end: Option<Duration>,
    /// Per work: the unit of its samples in earlier sets and sessions, where it had any.
    pub units: Vec<Option<String>>,
    /// Directory in which the experiment began; the lines around it run there.
    pub directory: &'a Path,
    /// Lines to run around a command.
    pub around: Option<&'a Hooks>,
    /// True if a profiler looks at launches after all counted samples.
    pub has_profiler: bool,
    pub on_wrong: OnWrong,
    /// Site of a grid's cells, if there are any.
    pub net: Option<NetBench>,
}

impl<'a> Host<'a> {
    /// Around arms that are raised.
    ///
    /// # Errors
    /// Where what runs the lines around a command does not start.
    pub fn set_up(site: MeasureConfig<'a>, arms: Arms<'a>) -> Result<Host<'a>, Stop> {
        let sets_in_late = sets_in_late(arms.treatments());
        let length = |ms: &Option<u64>| SampleLength::new(*ms, sets_in_late);
        let lengths: Vec<SampleLength> = site.sample_ms.iter().map(length).collect();
        let units = site.units.clone();
        let readings = vec![BTreeMap::new(); lengths.len()];
        let repeated = vec![vec![Repeated::default(); site.works.len()]; arms.count()];
        let mut host = Host {
            site,
            arms,
            neutral: None,
            added: Present::default(),
            repeated,
            units,
            readings,
            lengths,
            found: Vec::new(),
            shown: Vec::new(),
            peaks: BTreeMap::new(),
            not_interleaved: BTreeMap::new(),
            parallel: BTreeMap::new(),
            denied: BTreeMap::new(),
            idle_since: BTreeMap::new(),
            answers: BTreeMap::new(),
            launches: 0,
            pair_ends: None,
        };
        host.limit_starts();
        host.start_neutral(host.arms.context.interrupted)?;
        host.start_peers()?;
        Ok(host)
    }

    /// Returns true if all arms measure time.
    pub fn counts_time(&self) -> bool {
        self.arms.ids().all(|arm| self.arms.place(arm).clock == PlaceClock::Time)
    }

    /// From now on samples of this work are so long.
    pub fn set_length(&mut self, work: WorkId, target_ms: u64) {
        self.lengths[work] = SampleLength::new(Some(target_ms), false);
    }

    /// Launches every workload once in every arm for a single operation: one that does not work is
    /// found before anything is measured, and what a start costs is known apart. Those of `failed`, a work
    /// and an arm each, have failed before.
    ///
    /// # Errors
    /// Where the experiment cannot go on. Works that fail are given back with the arm.
    pub fn try_all(
        &mut self,
        has_failed: impl Fn(WorkId, ArmId) -> bool,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<Vec<RowId>, Stop> {
        let mut failed = Vec::new();
        let (arms, of) = (self.arms.count(), self.site.works.len() * self.arms.count());
        for work in (0..self.site.works.len()).map(WorkId) {
            for arm in self.arms.ids().filter(|arm| !has_failed(work, *arm)) {
                let (name, number) = (self.site.works[work].name(), work.0 * arms + arm.0 + 1);
                progress_sink.begins(&format!("trying {name}, launch {number} of {of}"));
                // First, so that nothing is launched again that has failed or hung.
                let denied = self.find_denied_calls(work, arm)?;
                let tried = self.try_once(work, arm);
                match tried.map_err(|error| self.settle(error)) {
                    Ok(()) => self.find_hook_calls(work, arm)?,
                    Err(SampleError::Workload(mut reason)) => {
                        if let Some(calls) = denied {
                            reason += &format!("; the filter denied {calls}");
                        }
                        self.keep_failure(work, arm, &reason)?;
                        failed.push((work, arm));
                        if arm.is_baseline() {
                            break;
                        }
                    }
                    Err(other) => return Err(other.into()),
                }
            }
        }
        Ok(failed)
    }

    /// Launches a work once, with its servers: where it works may be made with them.
    fn try_once(&mut self, work: WorkId, arm: ArmId) -> Result<(), SampleError> {
        self.arms.need(arm, &self.site.works[work].needs());
        self.arms.raise_arm(arm)?;
        match self.site.works[work].startup_job(self.arms.place(arm)) {
            Some(job) => self.start_once(work, arm, &job),
            None => self.warm_up(work, arm),
        }
    }

    fn start_once(&mut self, work: WorkId, arm: ArmId, job: &Job) -> Result<(), SampleError> {
        let (mut launched, mut evidence, _) = self.launch(arm, arm, job)?;
        // All launches are held against what a start makes.
        if evidence.why_not_counted().is_some() {
            (launched, evidence, _) = self.launch(arm, arm, job)?;
        }
        if self.site.works[work].wrong_answers(&launched).is_some() {
            // Of more than one, it can be told what is wrong with them.
            let length =
                Length { endures: self.counts_answers(work), ..Length::of_ms(LOOK_AT_WRONG_MS) };
            let job = self.site.works[work].job(arm, self.arms.place(arm), length, 0);
            let job = job.map_err(SampleError::Workload)?;
            (launched, evidence, _) = self.launch(arm, arm, &job)?;
        }
        let sample = self.read(&self.site.works[work], &launched)?;
        let operations = sample.total_operations.unwrap_or(sample.operations);
        let startup = Startup { work, arm, operations, evidence };
        Ok(self.site.store.add_startup(self.site.id, &startup)?)
    }

    /// The sample of a launch; with `--good-answers`, wrong answers beside good ones are no failure.
    fn read(&self, work: &Work, launched: &Launched) -> Result<Sample, SampleError> {
        let sample = match (self.site.on_wrong, work.wrong_answers(launched)) {
            (OnWrong::Count, Some(wrong)) => match wrong.why_none_counts() {
                Some(why) => Err(why),
                None => work.read_whatever_is_wrong(launched),
            },
            (OnWrong::Fail, Some(_)) if self.arms.count() > 1 => work
                .read(launched)
                .map_err(|reason| reason + "; `--good-answers` compares the good ones"),
            _ => work.read(launched),
        };
        sample.map_err(SampleError::Workload)
    }

    /// True if the samples of a work go on after wrong answers. They last until their time is over, not until
    /// so many answers have come: a client that gets errors alone would be done early.
    fn counts_answers(&self, work: WorkId) -> bool {
        self.site.on_wrong == OnWrong::Count && self.site.works[work].asks()
    }

    /// Counts the answers of a sample. The first wrong one of an arm is a fact at once: whoever stops the
    /// experiment by force must not hide it.
    fn count_answers(
        &mut self,
        of: (WorkId, ArmId),
        launched: &Launched,
        sample: &Sample,
    ) -> Result<(), Stop> {
        if !self.counts_answers(of.0) {
            return Ok(());
        }
        let wrong = self.site.works[of.0].wrong_answers(launched);
        let tally = self.answers.entry(of).or_default();
        let is_first = wrong.is_some() && !tally.has_wrong();
        tally.add(sample, wrong);
        if !is_first {
            return Ok(());
        }
        let (name, arm) = (self.site.works[of.0].name(), self.arms.label(of.1).to_owned());
        self.add_fact(format!(
            "{name} under `{arm}` also gave wrong answers. A warning says how many, unless weigh was killed."
        ))
    }

    /// Launches a job in an arm, for a pair with the treated one.
    fn launch(
        &mut self,
        arm: ArmId,
        treated_arm: ArmId,
        job: &Job,
    ) -> Result<(Launched, Evidence, Disturbance), SampleError> {
        let job = self.limited(job)?;
        self.launches += 1;
        let Proved { launched, evidence } = self.arms.launch(arm, treated_arm, &job)?;
        self.check_ended(&launched)?;
        let disturbance = self.disturbance(arm, &launched);
        Ok((launched, evidence, disturbance))
    }

    /// How long a launch that begins now may last.
    fn launch_left(&self) -> Duration {
        let of_pair = |end: Duration| end.saturating_sub(self.elapsed());
        self.time_left().min(self.pair_ends.map_or(Duration::MAX, of_pair))
    }

    /// With the limit of time that was asked for, and those of the budget and of the pair.
    fn limited(&self, job: &Job) -> Result<Job, SampleError> {
        let own_ms = self.site.timeout.map_or(job.timeout_ms, |time| time.as_millis() as u64);
        let left = self.launch_left();
        if left.is_zero() {
            return Err(SampleError::Stop(Stop::OutOfTime));
        }
        // Not before the time is over: what is killed then is not to blame.
        let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        Ok(Job { timeout_ms: own_ms.min(left_ms), ..job.clone() })
    }

    /// Checks that a launch was not killed because its time was over.
    fn check_ended(&self, launched: &Launched) -> Result<(), SampleError> {
        match launched.timed_out && self.launch_left().is_zero() {
            true => Err(SampleError::Stop(Stop::OutOfTime)),
            false => Ok(()),
        }
    }

    /// Servers and samples of the pair are ended at this moment.
    fn end_pair_at(&mut self, end: Option<Duration>) {
        if self.pair_ends != end {
            self.pair_ends = end;
            self.limit_starts();
        }
    }

    /// From now on the budget is no limit: what follows was asked for beside it, and is announced.
    pub fn lift_limit(&mut self) {
        self.site.end = None;
        self.limit_starts();
    }

    /// Servers start within the time of a sample.
    fn limit_starts(&mut self) {
        let left = self.launch_left();
        self.arms.limit_starts((left < Duration::MAX).then(|| Instant::now() + left));
    }

    /// How long a launch took on average, with all that belongs to it.
    pub fn mean_launch(&self) -> Duration {
        self.site.started.elapsed() / self.launches.max(1)
    }

    /// Returns the disturbances of a launch in an arm.
    fn disturbance(&mut self, arm: ArmId, launched: &Launched) -> Disturbance {
        let Launched { began, ended, .. } = *launched;
        let mut disturbance = ended.since(began);
        // What `--prepare` does waits for itself.
        let machine = self.arms.place(arm).reached_by.clone();
        let idle_since = self.idle_since.insert(machine, ended);
        if let Some(earlier) = idle_since.filter(|_| !self.has_prepare()) {
            disturbance = disturbance.after(began.since(earlier));
        }
        disturbance
    }

    /// Who ends all processes of a service ends the worker too, perhaps before us. So what fails may have
    /// failed because of an interrupt that is on its way, and a workload is not blamed for that. Nor is it
    /// where its time is over: then a server was not given the time to start.
    fn settle(&self, error: SampleError) -> SampleError {
        const ON_ITS_WAY: Duration = Duration::from_secs(1);
        let interrupted = || self.arms.context.interrupted.load(Ordering::Relaxed);
        match wait_until(Instant::now() + ON_ITS_WAY, interrupted) {
            true => SampleError::Stop(Stop::Interrupted),
            false => match error {
                SampleError::Workload(_) if self.launch_left().is_zero() => {
                    SampleError::Stop(Stop::OutOfTime)
                }
                error => error,
            },
        }
    }

    pub(super) fn keep_failure(&self, work: WorkId, arm: ArmId, reason: &str) -> Result<(), Stop> {
        let failure = Failure {
            workload: self.site.works[work].name(),
            arm: self.arms.label(arm).to_owned(),
            // Another machine may send any amount of text.
            reason: format::shorten(reason, LONGEST_REASON),
        };
        Ok(self.site.store.add_failure(self.site.id, &failure)?)
    }

    /// Ends the launchers and takes the treatments back.
    ///
    /// # Errors
    /// What is left, and how to undo it.
    pub fn take_down(
        self,
        guard: &mut Guard,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), String> {
        drop(self.neutral);
        self.arms.lower(guard, &mut |step| progress_sink.begins(step))
    }
}

impl Platform for Host<'_> {
    fn elapsed(&self) -> Duration {
        self.site.before + self.site.started.elapsed()
    }

    fn time_left(&self) -> Duration {
        let left = |end: Duration| (end + AFTER_BUDGET).saturating_sub(self.elapsed());
        self.site.end.map_or(Duration::MAX, left)
    }

    fn sample(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
        if self.arms.context.interrupted.load(Ordering::Relaxed) {
            return Err(SampleError::Stop(Stop::Interrupted));
        }
        match self.site.works[slot.unit.work] {
            Work::Net(_) => self.cell(slot),
            _ => self.measure(slot).map_err(|error| self.settle(error)),
        }
    }

    fn pair(&mut self, slot: &PairSlot) -> Result<[Readings; 2], PairError> {
        // A pair of sweeps was announced with its length, and its cells are not begun again.
        let is_sweep = matches!(self.site.works[slot.unit.work], Work::Net(_));
        self.end_pair_at(slot.until.filter(|_| !is_sweep));
        let measured = match self.site.works[slot.unit.work] {
            Work::Net(_) => self.pair_of_sweeps(slot),
            _ if slot.scheme == Scheme::Interleaved => self.interleaved_pair(slot),
            _ => one_after_the_other(slot, |slot| self.sample(slot)),
        };
        self.end_pair_at(None);
        measured
    }

    fn why_not_interleaved(&self, unit: &RowKey) -> Option<String> {
        let found = self.not_interleaved.get(&unit.id())?;
        Some(found.reason.clone())
    }

    fn left_interleaving(&mut self, unit: &RowKey, reason: &str) -> Result<(), Stop> {
        let found = self.not_interleaved.get(&unit.id());
        if found.is_some_and(|found| found.is_expected) {
            return Ok(());
        }
        self.warn(&Warning::LeftInterleaving {
            workload: self.site.works[unit.work].name(),
            arm: self.arms.label(unit.treated_arm).to_owned(),
            reason: reason.to_owned(),
        })
    }

    fn choose_length(&mut self, unit: &RowKey, deviation: f64) -> Result<(), Stop> {
        let Some(target_ms) = self.lengths[unit.work].choose(deviation) else {
            return Ok(());
        };
        Ok(self.site.store.set_sample_ms(self.site.id, unit.work, target_ms)?)
    }

    fn planned(&mut self, unit: &RowKey, pairs: f64) -> Result<(), Stop> {
        Ok(self.site.store.add_plan(self.site.id, &unit.plan(pairs))?)
    }

    fn failed(&mut self, slot: &SampleSlot, reason: &str) -> Result<(), Stop> {
        self.keep_failure(slot.unit.work, slot.arm, reason)
    }

    fn warn(&mut self, warning: &Warning) -> Result<(), Stop> {
        Ok(self.site.store.add_warning(self.site.id, warning)?)
    }
}

impl Host<'_> {
    /// Measures half of a pair whose other half comes from another boot. Both halves have launchers
    /// of equal age.
    ///
    /// # Errors
    /// [`SampleError`]
    pub fn half(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
        if slot.position != 0 {
            self.renew(slot)?;
        }
        self.sample(slot)
    }

    /// Which work is launched for it: for a peak, the load point that was chosen for this arm.
    fn launched_for(&self, slot: &SampleSlot) -> WorkId {
        let chosen = self.peaks.get(&slot.unit.id());
        chosen.map_or(slot.unit.work, |at| at[slot.arm.side()])
    }

    fn measure(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
        if slot.position == 0 {
            self.renew(slot)?;
        }
        self.prepare(slot.arm)?;
        let started = Instant::now();
        let has_latencies =
            self.site.metrics.iter().any(|metric| matches!(metric, Metric::Latency(_)));
        let wanted = self.lengths[slot.unit.work].wanted();
        let growing_old_ms = if slot.role == SampleRole::Aged { AGE.as_millis() as u64 } else { 0 };
        let warm_up_ms = wanted.warm_up_ms.max(growing_old_ms);
        let endures = self.counts_answers(self.launched_for(slot));
        let has_latencies = has_latencies && !endures;
        let length = Length { has_latencies, warm_up_ms, endures, ..wanted };
        let (job, padding_bytes) = self.job(slot, length).map_err(SampleError::Workload)?;
        let started_s = self.elapsed().as_secs_f64();
        let (launched, evidence, disturbance) =
            self.launch(slot.arm, slot.unit.treated_arm, &job)?;
        self.look_for_records(slot, &evidence);
        let at = self.launched_for(slot);
        let sample = self.read(&self.site.works[at], &launched)?;
        self.count_answers((at, slot.arm), &launched, &sample).map_err(SampleError::Stop)?;
        let work = &self.site.works[at];
        let clock = self.arms.place(slot.arm).clock;
        let sample = clock.read(sample, &work.unit()).map_err(SampleError::Workload)?;
        let cpu = launched.cpu;
        let found = BesidesSample { started_s, padding_bytes, cpu, evidence, disturbance };
        let (readings, sample) = self.keep(slot, found, sample)?;
        match self.site.works[slot.unit.work].is_command() {
            true => self.look_for_waiting(slot, &launched, &sample),
            false => self.look_for_long_operations(slot, &sample),
        }
        if slot.role != SampleRole::Aged {
            self.lengths[slot.unit.work].learn(&sample, started.elapsed());
        }
        Ok(readings)
    }

    /// Returns the job of a sample, and the bytes of padding that lengthen its environment.
    fn job(&self, slot: &SampleSlot, length: Length) -> Result<(Job, usize), String> {
        let work = &self.site.works[self.launched_for(slot)];
        let order = chance_of_pair(self.site.seed, slot);
        let mut job = work.job(slot.arm, self.arms.place(slot.arm), length, order)?;
        // Where instructions are counted, 4 KiB more of it are 1 % of all that `exec` takes, and that is no
        // property of a boot.
        let padding_bytes =
            if self.counts_time() { padding_bytes(self.site.seed, slot) } else { 0 };
        job.environment.push(padding(padding_bytes));
        job.stdout = self.stdout_of(slot.unit.work);
        job.start = self.start(slot);
        Ok((job, padding_bytes))
    }

    /// Holds a sample against those before, and keeps it.
    fn keep(
        &mut self,
        slot: &SampleSlot,
        found: BesidesSample,
        sample: Sample,
    ) -> Result<(Readings, Sample), SampleError> {
        let work = &self.site.works[self.launched_for(slot)];
        hold_unit(&mut self.units[slot.unit.work], &sample, work).map_err(SampleError::Workload)?;
        hold_readings(&mut self.readings[slot.unit.work], &sample)
            .map_err(SampleError::Workload)?;
        let rate = sample.rate();
        let logs = self.site.metrics.iter().filter_map(|metric| {
            let amount = sample.amount(metric)?;
            Some((metric.clone(), amount.log()?))
        });
        let readings = Readings { rate, logs: logs.collect(), outside: sample.outside };
        if self.arms.place(slot.arm).clock == PlaceClock::Time {
            self.repeated[slot.arm][slot.unit.work].hold(rate).map_err(SampleError::Workload)?;
        }
        let BesidesSample { started_s, padding_bytes, cpu, evidence, disturbance } = found;
        let denied = self.denied.get(&(self.launched_for(slot), slot.arm)).cloned();
        let evidence = evidence.joined(denied.unwrap_or_default());
        let proof = (evidence, Some(disturbance));
        let measured = cells::measured(slot, started_s, padding_bytes, sample, proof);
        let measured = Measured { cpu, ..measured };
        self.site.store.add_sample(self.site.id, &measured)?;
        Ok((readings, measured.sample))
    }
}

/// Facts about a sample besides its result.
struct BesidesSample {
    started_s: f64,
    padding_bytes: usize,
    cpu: Option<usize>,
    evidence: Evidence,
    disturbance: Disturbance,
}

fn padding(bytes: usize) -> (String, String) {
    ("WEIGH_PADDING".into(), "x".repeat(bytes))
}

fn stop(error: impl ToString) -> Stop {
    Stop::Failed(error.to_string())
}

impl From<TreatmentError> for Stop {
    fn from(error: TreatmentError) -> Stop {
        match error {
            TreatmentError::Interrupted => Stop::Interrupted,
            TreatmentError::NotKept(problem) => Stop::NotKept(problem),
            other => stop(other),
        }
    }
}

impl From<weigh_store::Error> for Stop {
    fn from(error: weigh_store::Error) -> Stop {
        Stop::NotKept(error.to_string())
    }
}

impl From<weigh_store::Error> for SampleError {
    fn from(error: weigh_store::Error) -> SampleError {
        SampleError::Stop(error.into())
    }
}

impl From<launcher::LauncherError> for Stop {
    fn from(error: launcher::LauncherError) -> Stop {
        match error {
            launcher::LauncherError::Interrupted => Stop::Interrupted,
            other => stop(other),
        }
    }
}

impl From<TreatmentError> for SampleError {
    fn from(error: TreatmentError) -> SampleError {
        match error {
            TreatmentError::NoInstance(problem) => SampleError::Workload(problem),
            other => SampleError::Stop(other.into()),
        }
    }
}

impl From<launcher::LauncherError> for SampleError {
    fn from(error: launcher::LauncherError) -> SampleError {
        match error {
            // The launcher could not execute this program; it may well execute another.
            launcher::LauncherError::Refused(reason) => SampleError::Workload(reason),
            other => SampleError::Stop(other.into()),
        }
    }
}

impl From<ArmsError> for Stop {
    fn from(error: ArmsError) -> Stop {
        SampleError::from(error).into()
    }
}

impl From<ArmsError> for SampleError {
    fn from(error: ArmsError) -> SampleError {
        match error {
            ArmsError::Treatment(error) => error.into(),
            ArmsError::Launcher(error) => error.into(),
            ArmsError::Fixture(problem) => SampleError::Workload(problem),
            ArmsError::Lost(problem) => SampleError::Lost(problem),
        }
    }
}
