//! Running what the user has run around his command: by a launcher of its own, whose processes no arm's
//! treatment concerns. Like a worker it is killed when its time is over, with all that it left running.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Host;
use crate::command_comparison::ExpectedExit;
use crate::hooks::Hooks;
use crate::length::SampleLength;
use crate::parse_sample::failure_of;
use crate::platform::{Platform, SampleError, Stop};
use crate::request::ProgressSink;
use crate::work::Work;
use weigh_host::machine::additions::Present;
use weigh_model::ids::{ArmId, WorkId};
use weigh_model::result::warning::Warning;
use weigh_treatment::Named;
use weigh_workload::launcher::Job;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::canary::Canary;
use weigh_workload::setup::kind::noted::Noted;

/// Things in the list of what a set-up added.
const LOOKED_FOR: &str = "files of the current directory, kernel modules, mounts, network interfaces, \
                          Debian packages, users";
/// After an interrupt, what cleans up gets no longer.
const AFTER_INTERRUPT_MS: u64 = 10_000;

/// The set-up of processes that are of no arm.
pub(super) fn neutral<'t>(treatments: impl Iterator<Item = &'t Named>) -> Setup {
    let setup = treatments
        .fold(Setup::default(), |setup, named| setup.overridden_by(named.treatment.setup(false)));
    setup.without::<Canary>()
}

/// A line of the user's, by when it runs.
#[derive(Clone, Copy, PartialEq)]
enum Hook {
    Setup,
    Prepare,
    Cleanup,
}

impl Hook {
    fn option(self) -> &'static str {
        match self {
            Hook::Setup => "--setup",
            Hook::Prepare => "--prepare",
            Hook::Cleanup => "--cleanup",
        }
    }

    /// Returns true if the budget limits it. What `--cleanup` removes must not stay because the budget is
    /// spent.
    fn is_in_budget(self) -> bool {
        self != Hook::Cleanup
    }
}

impl Host<'_> {
    /// Runs `--setup`.
    ///
    /// # Errors
    /// Where it fails; [`Stop::OutOfTime`] where it outlasts the budget.
    pub fn run_setup(&mut self) -> Result<(), Stop> {
        let line = self.site.around.and_then(|around| around.setup.clone());
        if line.is_none() {
            return Ok(());
        }
        let before = self.present().map_err(Stop::Failed)?;
        let ran = self.run_line(Hook::Setup, line);
        // A line that fails may have added something, too.
        self.added = self.present().map_err(Stop::Failed)?.beyond(&before);
        ran?;
        self.add_fact(match self.added.is_empty() {
            true => format!("`--setup` added nothing that weigh looks for: {LOOKED_FOR}."),
            false => format!("While `--setup` ran, these were added: {}.", self.added.listed()),
        })
    }

    /// Things on this system, and in the directory in which lines run.
    fn present(&self) -> Result<Present, String> {
        Present::now(self.site.directory)
            .map_err(|error| format!("cannot list what `--setup` adds: {error}"))
    }

    /// Runs `--cleanup`, also after an interrupt. A failure is reported and kept as a warning: whatever it
    /// is, the results stand.
    ///
    /// # Errors
    /// Where the warning cannot be kept.
    pub fn clean_up(&mut self, progress_sink: &mut dyn ProgressSink) -> Result<(), Stop> {
        progress_sink.begins("cleaning up");
        let Err(problem) = self.run_cleanup().and_then(|()| self.find_left()) else {
            return Ok(());
        };
        progress_sink.announce(&problem);
        self.warn(&Warning::CleanupFailed { problem })
    }

    /// By a new launcher after an interrupt, as the old one may still run what was given up on.
    fn run_cleanup(&mut self) -> Result<(), String> {
        let line = self.site.around.and_then(|around| around.cleanup.clone());
        let Some(line) = line else { return Ok(()) };
        let failed = |stop: Stop| format!("`--cleanup` ({line}) did not run: {}", reason(stop));
        if self.arms.context.interrupted.load(Ordering::Relaxed) {
            self.neutral = None;
            // Before another command is noted in its place.
            self.arms.context.running.stop().map_err(|problem| failed(Stop::Failed(problem)))?;
            self.start_neutral(&AtomicBool::new(false)).map_err(failed)?;
        }
        match self.run_line(Hook::Cleanup, Some(line.clone())) {
            Err(SampleError::Workload(problem)) => Err(problem),
            other => other.map_err(|error| failed(error.into())),
        }
    }

    /// Finds things that `--setup` added and `--cleanup` did not remove.
    fn find_left(&self) -> Result<(), String> {
        if self.added.is_empty() {
            return Ok(());
        }
        let left = self.added.still_in(&self.present()?);
        let has_cleanup = self.site.around.is_some_and(|around| around.cleanup.is_some());
        match left.is_empty() {
            true => Ok(()),
            false if has_cleanup => {
                Err(format!("`--cleanup` did not remove what `--setup` added: {}", left.listed()))
            }
            false => Err(format!(
                "there was no `--cleanup`, so what `--setup` added is still there: {}",
                left.listed()
            )),
        }
    }

    /// Returns true if a line runs before each launch.
    pub(super) fn has_prepare(&self) -> bool {
        self.site.around.is_some_and(Hooks::has_prepare)
    }

    pub(super) fn prepare(&mut self, arm: ArmId) -> Result<(), SampleError> {
        let line = self.site.around.and_then(|around| around.prepare_of(arm)).cloned();
        self.run_line(Hook::Prepare, line)
    }

    /// Launches a command as often as it is to be warmed up in an arm; nothing of it is kept.
    pub(super) fn warm_up(&mut self, work: WorkId, arm: ArmId) -> Result<(), SampleError> {
        self.try_contender(work, arm)?;
        for _ in 0..self.site.around.map_or(0, |around| around.warm_ups) {
            self.prepare(arm)?;
            let length = SampleLength::new(None, false).wanted();
            let job = self.site.works[work].job(arm, self.arms.place(arm), length, 0);
            let job = job.map_err(SampleError::Workload)?;
            let (launched, ..) = self.launch(arm, arm, &job)?;
            self.site.works[work].read(&launched).map_err(SampleError::Workload)?;
        }
        Ok(())
    }

    fn run_line(&mut self, hook: Hook, line: Option<String>) -> Result<(), SampleError> {
        let Some(line) = line else { return Ok(()) };
        let directory = self.site.directory.to_owned();
        let is_interrupted = self.arms.context.interrupted.load(Ordering::Relaxed);
        let limit =
            self.site.timeout.map_or(Work::COMMAND_TIMEOUT_MS, |time| time.as_millis() as u64);
        let limit = if is_interrupted { limit.min(AFTER_INTERRUPT_MS) } else { limit };
        let argv = vec!["/bin/sh".into(), "-c".into(), line.clone()];
        let job = Job::new(argv, &directory, limit);
        let job = if hook.is_in_budget() { self.limited(&job)? } else { job };
        let Some(launcher) = &mut self.neutral else { return Ok(()) };
        let never = AtomicBool::new(false);
        let interrupted = if is_interrupted { &never } else { &**self.arms.context.interrupted };
        let launched = launcher.run(&job, interrupted)?;
        self.arms.context.running.forget();
        if hook.is_in_budget() {
            self.check_ended(&launched)?;
        }
        match failure_of(&launched, &ExpectedExit::default()) {
            Some(problem) => {
                let option = hook.option();
                Err(SampleError::Workload(format!("`{option}` ({line}): {problem}")))
            }
            None => Ok(()),
        }
    }

    /// Starts one where there is something to run.
    pub(super) fn start_neutral(&mut self, interrupted: &AtomicBool) -> Result<(), Stop> {
        let has_lines = self.site.around.is_some_and(Hooks::has_lines);
        if has_lines || self.site.has_profiler || self.shell().is_some() {
            let place = self.arms.context.running.note_place();
            let (file, mark) = place.map_err(|error| Stop::Failed(error.to_string()))?;
            let setup = neutral(self.arms.treatments()).with(Noted { file, mark });
            self.neutral = Some(self.arms.context.place.start_launcher(&setup, interrupted)?);
        }
        Ok(())
    }
}

fn reason(stop: Stop) -> String {
    match stop {
        Stop::Failed(problem) | Stop::NotKept(problem) => problem,
        Stop::Interrupted | Stop::NextBoot => "it was interrupted".to_owned(),
        Stop::OutOfTime => "the budget was spent".to_owned(),
    }
}
