//! Measuring on this machine: an arm is a launcher, treatments are applied around all of them, and
//! every sample is verified and stored before the next is launched.

mod around;
mod detail;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::around::Around;
use super::length::{SampleLength, sets_in_late};
use super::outcome::{Repeated, hold_unit};
use super::platform::{Platform, SampleError, Slot, Stop};
use super::row::Unit;
use super::work::Work;
use crate::machine::pressure::{Disturbance, Pressure};
use crate::orphans::wait_until;
use crate::report::summary::Failure;
use crate::store::record::{Measured, Startup};
use crate::store::{self, Store};
use crate::treatment::guard::Guard;
use crate::treatment::{Bench, Error, Evidence, Launch, Named, Role};
use crate::workload::launcher::{self, Job, Launched, Launcher, Setup};

/// Mytkowicz et al., "Producing Wrong Data Without Doing Anything Obviously Wrong!" (ASPLOS 2009):
/// the size of the environment moves the stack, and with it the time. So it varies.
const MAX_PADDING_BYTES: usize = 4096;

/// This machine, set up for one set of an experiment.
pub struct Host<'a> {
    pub site: Site<'a>,
    arms: Vec<Arm>,
    /// For what is run around a command, of no arm.
    neutral: Option<Launcher>,
    treatments: Vec<Named>,
    /// The unit of each work's first sample: others cannot be compared with it.
    units: Vec<Option<String>>,
    /// Per work.
    lengths: Vec<SampleLength>,
    /// When the last launch ended, and the counters then.
    idle_since: Option<(Instant, Pressure)>,
}

/// Treatment `n` is applied to arm `n`.
struct Arm {
    label: String,
    launcher: Launcher,
    setup: Setup,
    /// Per work.
    repeated: Vec<Repeated>,
}

/// What is measured, where, and where it is kept.
pub struct Site<'a> {
    pub bench: Bench<'a>,
    pub store: &'a Store,
    pub id: &'a str,
    pub works: &'a [Work],
    pub started: Instant,
    /// Time that earlier sessions measured.
    pub before: Duration,
    /// Per work: length of a sample of a kernel; with `None` the first pairs choose it.
    pub sample_ms: Vec<Option<u64>>,
    /// How long a launch may last, where the user says so.
    pub timeout: Option<Duration>,
    /// What is run around a command.
    pub around: &'a Around,
}

impl<'a> Host<'a> {
    /// Applies the treatments, the baseline's first, and starts a launcher for every arm.
    /// `announce` is told what a person should know before the system is changed.
    ///
    /// # Errors
    /// Where a treatment cannot be applied; what was applied is the guard's to undo.
    pub fn set_up(
        site: Site<'a>,
        mut treatments: Vec<Named>,
        guard: &mut Guard,
        announce: &mut dyn FnMut(&str),
    ) -> Result<Host<'a>, Stop> {
        for named in &mut treatments {
            for sentence in named.treatment.prepare(&site.bench, guard)? {
                announce(&sentence);
            }
        }
        for named in &mut treatments {
            named.treatment.apply(&site.bench, guard)?;
        }
        let mut arms = Vec::new();
        for own in 0..treatments.len() {
            let others = treatments.iter().enumerate().filter(|(index, _)| *index != own);
            let setup = others
                .fold(Setup::default(), |setup, (_, other)| {
                    setup.overridden_by(other.treatment.setup(false))
                })
                .overridden_by(treatments[own].treatment.setup(true));
            let launcher = Launcher::start(&setup, site.bench.interrupted)?;
            let repeated = vec![Repeated::default(); site.works.len()];
            arms.push(Arm { label: treatments[own].label.clone(), launcher, setup, repeated });
        }
        let sets_in_late = sets_in_late(&treatments);
        let length = |ms: &Option<u64>| SampleLength::new(*ms, sets_in_late);
        let lengths: Vec<SampleLength> = site.sample_ms.iter().map(length).collect();
        let units = vec![None; lengths.len()];
        let mut host =
            Host { site, arms, neutral: None, treatments, units, lengths, idle_since: None };
        host.start_neutral()?;
        Ok(host)
    }

    /// From now on samples of this work are so long.
    pub fn set_length(&mut self, work: usize, target_ms: u64) {
        self.lengths[work] = SampleLength::new(Some(target_ms), false);
    }

    /// Stores what the treatments say of themselves and of the baseline.
    ///
    /// # Errors
    /// Where that cannot be stored.
    pub fn store_facts(&self) -> Result<(), Stop> {
        let Site { store, id, .. } = self.site;
        for (arm, named) in self.treatments.iter().enumerate() {
            store.set_facts(id, arm, &named.treatment.facts())?;
        }
        let state = (self.treatments.iter().enumerate())
            .find_map(|(index, named)| named.treatment.state(index == 0));
        Ok(store.set_baseline_state(id, state)?)
    }

    /// What the treatments say of themselves now and did not say when the experiment began, per arm; as
    /// sentences.
    pub fn differences(&self, then: &[Vec<String>]) -> Vec<String> {
        let mut differences = Vec::new();
        for (named, then) in self.treatments.iter().zip(then) {
            let new = named.treatment.facts().into_iter().filter(|fact| !then.contains(fact));
            differences.extend(new.map(|fact| format!("`{}`: {fact}", named.label)));
        }
        differences
    }

    /// Launches every kernel once in every arm for a single operation: one that does not work is
    /// found before anything is measured, and what a start costs is known apart. Those of `failed`, a work
    /// and an arm each, have failed before.
    ///
    /// # Errors
    /// Where the experiment cannot go on. Works that fail are given back with the arm.
    pub fn try_all(
        &mut self,
        has_failed: impl Fn(usize, usize) -> bool,
    ) -> Result<Vec<(usize, usize)>, Stop> {
        let mut failed = Vec::new();
        for work in 0..self.site.works.len() {
            let bench = &self.site.bench;
            let job = self.site.works[work].startup_job(bench.kernels, bench.scratch);
            for arm in (0..self.arms.len()).filter(|arm| !has_failed(work, *arm)) {
                let tried = match &job {
                    Some(job) => self.start_once(work, arm, job),
                    None => self.warm_up(work, arm),
                };
                match tried.map_err(|error| self.settle(error)) {
                    Ok(()) => {}
                    Err(SampleError::Stop(stop)) => return Err(stop),
                    Err(SampleError::Workload(reason)) => {
                        self.keep_failure(work, arm, &reason)?;
                        failed.push((work, arm));
                        if arm == 0 {
                            break;
                        }
                    }
                }
            }
        }
        Ok(failed)
    }

    fn start_once(&mut self, work: usize, arm: usize, job: &Job) -> Result<(), SampleError> {
        let (mut launched, mut evidence, _) = self.launch(arm, arm, job)?;
        // All launches are held against what a start makes.
        if evidence.why_not_counted().is_some() {
            (launched, evidence, _) = self.launch(arm, arm, job)?;
        }
        let sample = self.site.works[work].read(&launched).map_err(SampleError::Workload)?;
        let operations = sample.total_operations.unwrap_or(sample.operations);
        let startup = Startup { work, arm, operations, evidence };
        self.site
            .store
            .add_startup(self.site.id, &startup)
            .map_err(|error| SampleError::Stop(stop(error)))
    }

    /// Launches a job in an arm, for a pair with the treated one, with the treatments told before and
    /// asked after.
    fn launch(
        &mut self,
        arm: usize,
        treated_arm: usize,
        job: &Job,
    ) -> Result<(Launched, Evidence, Disturbance), SampleError> {
        for (index, named) in self.treatments.iter_mut().enumerate() {
            named.treatment.before(Role::of(index, arm, treated_arm))?;
        }
        let timeout_ms = self.site.timeout.map_or(job.timeout_ms, |time| time.as_millis() as u64);
        let mut job = Job { timeout_ms, ..job.clone() };
        if let Some(ppm) = self.arms[arm].setup.planted_ppm {
            job.argv = self.site.bench.kernels.planting_argv(job.argv, ppm);
        }
        let (started, pressure) = (Instant::now(), Pressure::read());
        let launched = self.arms[arm].launcher.run(&job, self.site.bench.interrupted)?;
        let (now, ended) = (Instant::now(), Pressure::read());
        let mut disturbance = ended.since(pressure, now - started);
        // What `--prepare` does waits for itself.
        let idle_since = self.idle_since.replace((now, ended));
        if let Some((since, earlier)) = idle_since.filter(|_| self.site.around.prepare.is_none()) {
            disturbance = disturbance.after(pressure.since(earlier, started - since));
        }
        let mut evidence = Evidence::default();
        // All are asked, not only those of the pair: each has a say in what the other arms are.
        for (index, named) in self.treatments.iter_mut().enumerate() {
            let is_treated = index == arm;
            let launch = Launch { is_treated, setup: &self.arms[arm].setup, launched: &launched };
            let found = named.treatment.after(&launch)?;
            if is_treated {
                evidence = found;
            }
        }
        Ok((launched, evidence, disturbance))
    }

    /// New launchers for both arms of a pair, at the same moment: where a process lies in memory may make
    /// all that it forks a little faster or slower, and no coin would take that out.
    fn renew(&mut self, treated_arm: usize) -> Result<(), SampleError> {
        for arm in BTreeSet::from([0, treated_arm]) {
            let arm = &mut self.arms[arm];
            let started = Launcher::start(&arm.setup, self.site.bench.interrupted);
            arm.launcher = started.map_err(|error| SampleError::Stop(error.into()))?;
        }
        Ok(())
    }

    /// Who ends all processes of a service ends the worker too, perhaps before us. So what fails may have
    /// failed because of an interrupt that is on its way, and a workload is not blamed for that.
    fn settle(&self, error: SampleError) -> SampleError {
        const ON_ITS_WAY: Duration = Duration::from_millis(300);
        let interrupted = || self.site.bench.interrupted.load(Ordering::Relaxed);
        match wait_until(Instant::now() + ON_ITS_WAY, interrupted) {
            true => SampleError::Stop(Stop::Interrupted),
            false => error,
        }
    }

    fn keep_failure(&self, work: usize, arm: usize, reason: &str) -> Result<(), Stop> {
        let failure = Failure {
            workload: self.site.works[work].name(),
            arm: self.arms[arm].label.clone(),
            reason: reason.to_owned(),
        };
        Ok(self.site.store.add_failure(self.site.id, &failure)?)
    }

    /// Ends the launchers, takes the treatments back, last first, and looks whether they are gone.
    ///
    /// # Errors
    /// What is left, and how to undo it.
    pub fn take_down(self, guard: &mut Guard) -> Result<(), String> {
        drop((self.arms, self.neutral));
        let mut left = Vec::new();
        for mut named in self.treatments.into_iter().rev() {
            if let Err(error) = named.treatment.restore(guard) {
                left.push(error.to_string());
            }
        }
        if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
    }
}

impl Platform for Host<'_> {
    fn elapsed(&self) -> Duration {
        self.site.before + self.site.started.elapsed()
    }

    fn sample(&mut self, slot: &Slot) -> Result<f64, SampleError> {
        self.measure(slot).map_err(|error| self.settle(error))
    }

    fn choose_length(&mut self, unit: &Unit, deviation: f64) -> Result<(), Stop> {
        let Some(target_ms) = self.lengths[unit.work].choose(deviation) else {
            return Ok(());
        };
        Ok(self.site.store.set_sample_ms(self.site.id, unit.work, target_ms)?)
    }

    fn failed(&mut self, slot: &Slot, reason: &str) -> Result<(), Stop> {
        self.keep_failure(slot.unit.work, slot.arm, reason)
    }
}

impl Host<'_> {
    fn measure(&mut self, slot: &Slot) -> Result<f64, SampleError> {
        if slot.position == 0 {
            self.renew(slot.unit.treated_arm)?;
        }
        self.prepare()?;
        let started = Instant::now();
        let work = &self.site.works[slot.unit.work];
        let length = self.lengths[slot.unit.work].wanted();
        let mut job = work.job(self.site.bench.kernels, self.site.bench.scratch, length);
        job.environment.push(padding());
        let started_s = self.elapsed().as_secs_f64();
        let (launched, evidence, disturbance) =
            self.launch(slot.arm, slot.unit.treated_arm, &job)?;
        let sample =
            self.site.works[slot.unit.work].read(&launched).map_err(SampleError::Workload)?;
        hold_unit(&mut self.units[slot.unit.work], &sample, work).map_err(SampleError::Workload)?;
        let rate = sample.rate();
        self.arms[slot.arm].repeated[slot.unit.work].hold(rate).map_err(SampleError::Workload)?;
        let measured = Measured {
            work: slot.unit.work,
            arm: slot.arm,
            treated_arm: slot.unit.treated_arm,
            set: slot.set,
            pair: slot.pair,
            position: slot.position,
            started_s,
            sample,
            evidence,
            disturbance: Some(disturbance),
        };
        self.site
            .store
            .add_sample(self.site.id, &measured)
            .map_err(|error| SampleError::Stop(error.into()))?;
        self.lengths[slot.unit.work].learn(&measured.sample, started.elapsed());
        Ok(rate)
    }
}

fn padding() -> (String, String) {
    ("WEIGH_PADDING".into(), "x".repeat(rand::random_range(0..MAX_PADDING_BYTES)))
}

fn stop(error: impl ToString) -> Stop {
    Stop::Failed(error.to_string())
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        match error {
            Error::Interrupted => Stop::Interrupted,
            Error::NotKept(problem) => Stop::NotKept(problem),
            other => stop(other),
        }
    }
}

impl From<store::Error> for Stop {
    fn from(error: store::Error) -> Stop {
        Stop::NotKept(error.to_string())
    }
}

impl From<launcher::Error> for Stop {
    fn from(error: launcher::Error) -> Stop {
        match error {
            launcher::Error::Interrupted => Stop::Interrupted,
            other => stop(other),
        }
    }
}

impl From<Error> for SampleError {
    fn from(error: Error) -> SampleError {
        SampleError::Stop(error.into())
    }
}

impl From<launcher::Error> for SampleError {
    fn from(error: launcher::Error) -> SampleError {
        match error {
            // The launcher could not execute this program; it may well execute another.
            launcher::Error::Refused(reason) => SampleError::Workload(reason),
            other => SampleError::Stop(other.into()),
        }
    }
}
