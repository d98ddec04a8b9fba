//! A launch of an arm that is no sample, while a program of the user's looks at its processes. That program
//! is run by the launcher of what is around samples: it is of no arm, has an end, and leaves nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::Host;
use crate::command_comparison::ExpectedExit;
use crate::parse_sample::failure_of;
use crate::perf_report::kernel_symbols;
use crate::platform::{SampleError, SampleSlot, Stop};
use crate::work::{LoadRole, UserLoad, Work};
use trust::program;
use weigh_host::orphans::descendants_of;
use weigh_host::said::end_of;
use weigh_model::result::profiled::{HotSymbol, ProfiledArm};
use weigh_model::shell::command_line;
use weigh_workload::executable::Length;
use weigh_workload::launcher::{Job, Launched, Launcher, LauncherError};

/// How long a workload is looked at that can be of any length.
const LOOKED_AT_MS: u64 = 3000;
/// Time that a profiler may go on after the profiled process has ended: `perf record` writes its
/// file.
const WRITES_WITHIN: Duration = Duration::from_secs(20);
const KILLED_WITHIN: Duration = Duration::from_secs(5);
/// Users are started one after the other: all are waited for. What lasts for a period does not begin before.
const ALL_THERE_WITHIN: Duration = Duration::from_secs(20);
/// The driver of a mix, and what cleans up after it.
const BESIDE_USERS: usize = 2;
/// `perf report` of a large file takes its time.
const REPORT_MS: u64 = 120_000;
/// File for the profiler's output, as `perf record` writes its data to a pipe.
const PRINTED: &str = "printed";
/// Where `perf record` leaves what it saw, unless it is told otherwise.
const PERF_DATA: &str = "perf.data";

impl Host<'_> {
    /// Launches a work once in an arm, and the profiler for its processes.
    ///
    /// # Errors
    /// A sentence where there is no profile, for whatever reason: what was measured stands.
    pub fn profiled(
        &mut self,
        slot: &SampleSlot,
        line: &str,
    ) -> Result<Result<ProfiledArm, String>, Stop> {
        let directory = self.arms.context.place.scratch.join("profiler");
        let _ = fs::remove_dir_all(&directory); // of the arm before
        if let Err(error) = fs::create_dir(&directory) {
            return Ok(Err(format!("{}: {error}", directory.display())));
        }
        let found = self.profile_in(slot, line, &directory);
        let _ = fs::remove_dir_all(&directory);
        match found.map_err(Stop::from) {
            Ok(found) => Ok(Ok(found)),
            Err(Stop::Failed(problem)) => Ok(Err(problem)),
            Err(stop) => Err(stop),
        }
    }

    fn profile_in(
        &mut self,
        slot: &SampleSlot,
        line: &str,
        directory: &Path,
    ) -> Result<ProfiledArm, SampleError> {
        if !self.arms.place(slot.arm).is_here() {
            let problem =
                "its processes run on a different machine, but the profiler runs on this one";
            return Err(SampleError::Workload(problem.into()));
        }
        self.renew(slot)?;
        let work = for_a_look(&self.site.works[self.launched_for(slot)]);
        let order = super::chance_of_pair(self.site.seed, slot);
        let place = self.arms.place(slot.arm);
        let job = work.job(slot.arm, place, Length::of_ms(LOOKED_AT_MS), order);
        let job = self.limited(&job.map_err(SampleError::Workload)?)?;
        let Some(launcher) = self.neutral.take() else {
            return Err(SampleError::Workload("the profiler has no launcher".into()));
        };
        let mut profiler = Profiler::new(launcher, line, directory.to_owned(), processes_of(&work));
        let launched =
            self.arms.launch_watched(slot.arm, slot.unit.treated_arm, &job, &mut |pid| {
                profiler.look(pid);
            });
        let seen = profiler.end();
        self.arms.context.running.forget();
        self.start_neutral_again(profiler)?;
        self.read(&work, &launched?.launched)?;
        let printed = seen.map_err(SampleError::Workload)?;
        let symbols = self.kernel_symbols(directory)?;
        let name = self.site.works[slot.unit.work].name();
        let at = Some(work.name()).filter(|at| *at != name).map(|at| at.to_string());
        let printed = if symbols.is_empty() { printed } else { String::new() };
        Ok(ProfiledArm { arm: self.arms.label(slot.arm).to_owned(), at, symbols, printed })
    }

    /// The launcher goes back where it was; one that ran what would not end is done with, and so is that.
    fn start_neutral_again(&mut self, profiler: Profiler) -> Result<(), SampleError> {
        match profiler.into_launcher() {
            Some(launcher) => self.neutral = Some(launcher),
            None => self.start_neutral(self.arms.context.interrupted).map_err(SampleError::Stop)?,
        }
        Ok(())
    }

    /// Returns the kernel functions that `perf record` saw, if it was the profiler.
    fn kernel_symbols(&mut self, directory: &Path) -> Result<Vec<HotSymbol>, SampleError> {
        if !directory.join(PERF_DATA).exists() {
            return Ok(Vec::new());
        }
        let perf = program::find("perf").map_err(SampleError::Workload)?;
        let (Some(perf), Some(launcher)) = (perf, &mut self.neutral) else { return Ok(Vec::new()) };
        let words = [
            "report",
            "--input",
            PERF_DATA,
            "--stdio",
            "--no-children",
            "--sort",
            "sym",
            "-g",
            "none",
        ];
        let argv = std::iter::once(perf.display().to_string()).chain(words.map(str::to_owned));
        let job = Job::new(argv.collect(), directory, REPORT_MS);
        let launched = launcher.run(&job, self.arms.context.interrupted)?;
        match failure_of(&launched, &ExpectedExit::default()) {
            Some(problem) => Err(SampleError::Workload(format!("`perf report`: {problem}"))),
            None => Ok(kernel_symbols(&launched.stdout)),
        }
    }
}

/// Returns the work with a longer run, if its length is free.
fn for_a_look(work: &Work) -> Work {
    let Work::Load(load) = work else { return work.clone() };
    let mut load = load.clone();
    load.sizes.period_ms = load.sizes.period_ms.or(Some(LOOKED_AT_MS));
    Work::Load(Box::new(UserLoad { role: LoadRole::Named, ..*load }))
}

/// How many processes a launch has when all have started.
fn processes_of(work: &Work) -> usize {
    match work {
        Work::Load(load) => load.users.get() + BESIDE_USERS,
        _ => 1,
    }
}

/// Returns the processes that a launcher launched. In an arm with namespaces of its own, the
/// launcher is itself the child of a launcher.
fn launched_by(launcher: u32) -> Vec<Pid> {
    let image = |process: &str| fs::read_link(format!("/proc/{process}/exe")).ok();
    let own = image("self");
    let mut all = descendants_of(launcher);
    all.retain(|pid| image(&pid.as_raw_nonzero().to_string()) != own);
    all
}

/// Profiler that looks at a launch.
struct Profiler {
    launcher: Launcher,
    line: String,
    directory: PathBuf,
    /// How many processes it is to be told of, and until when they are waited for.
    expected: usize,
    waits_until: Option<Instant>,
    has_begun: bool,
    ended: Option<Result<Launched, LauncherError>>,
    /// True if the profiler was asked to end.
    is_told: bool,
}

impl Profiler {
    fn new(launcher: Launcher, line: &str, directory: PathBuf, expected: usize) -> Profiler {
        Profiler {
            launcher,
            line: line.to_owned(),
            directory,
            expected,
            waits_until: None,
            has_begun: false,
            ended: None,
            is_told: false,
        }
    }

    /// Begins as soon as the processes of the launch are there.
    fn look(&mut self, pid: u32) {
        if self.has_begun {
            return;
        }
        let processes = launched_by(pid);
        let limit = *self.waits_until.get_or_insert(Instant::now() + ALL_THERE_WITHIN);
        let are_missing = processes.len() < self.expected && Instant::now() < limit;
        if processes.is_empty() || are_missing {
            return;
        }
        self.has_begun = true;
        if let Err(error) = self.launcher.begin(&self.job(&processes)) {
            self.ended = Some(Err(error));
        }
    }

    fn job(&self, processes: &[Pid]) -> Job {
        let pids: Vec<String> =
            processes.iter().map(|pid| pid.as_raw_nonzero().to_string()).collect();
        let line = self.line.replace("{pids}", &pids.join(",")).replace("{pid}", &pids[0]);
        let argv = vec!["/bin/sh".into(), "-c".into(), format!("exec >{PRINTED} 2>&1; {line}")];
        Job::new(argv, &self.directory, Work::COMMAND_TIMEOUT_MS)
    }

    /// Waits until it has ended by itself, tells it to, and kills it; what it printed.
    fn end(&mut self) -> Result<String, String> {
        if !self.has_begun {
            return Err("the workload ended before the profiler was started".into());
        }
        let steps = [
            (None, Duration::from_millis(500)),
            (Some(Signal::INT), WRITES_WITHIN),
            (Some(Signal::TERM), KILLED_WITHIN),
            (Some(Signal::KILL), KILLED_WITHIN),
        ];
        for (signal, time) in steps {
            if self.ended.is_some() {
                break;
            }
            if let Some(signal) = signal {
                self.is_told = true;
                if let Some(process) = launched_by(self.launcher.pid()).first() {
                    let _ = kill_process_group(*process, signal);
                }
            }
            self.wait(time);
        }
        let line = command_line(["sh", "-c", &self.line]);
        let launched = match &self.ended {
            None => return Err(format!("{line} did not end when it was killed")),
            Some(Err(error)) => return Err(format!("{line}: {error}")),
            Some(Ok(launched)) => launched,
        };
        let printed = end_of(fs::File::open(self.directory.join(PRINTED)));
        let printed = String::from_utf8_lossy(&printed).trim_end().to_owned();
        let last = printed.lines().next_back().unwrap_or_default();
        // One that was told to end may well have the status of that.
        match failure_of(launched, &ExpectedExit::default()).filter(|_| !self.is_told) {
            Some(problem) if last.is_empty() => Err(format!("{line}: {problem}")),
            Some(problem) => Err(format!("{line}: {problem}: {last}")),
            None => Ok(printed),
        }
    }

    fn wait(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        let never = AtomicBool::new(false);
        let left = deadline.saturating_duration_since(Instant::now());
        self.ended = self.launcher.end_within(left, &never).transpose();
    }

    /// Returns the launcher if it can run something else.
    fn into_launcher(self) -> Option<Launcher> {
        let is_free = !self.has_begun || matches!(self.ended, Some(Ok(_)));
        is_free.then_some(self.launcher)
    }
}
