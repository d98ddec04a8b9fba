//! Support for commands compared with each other. It keeps the first command's output for
//! comparison, shows the output of each command, and times the start of their shell.

use std::path::PathBuf;

use super::Host;
use crate::command_comparison::{CommandComparison, ExpectedExit};
use crate::length::SampleLength;
use crate::parse_sample::failure_of;
use crate::platform::{SampleError, Stop};
use crate::request::Printout;
use crate::work::Work;
use paired::estimate::median;
use weigh_model::evidence::Evidence;
use weigh_model::ids::{ArmId, WorkId};
use weigh_model::record::Startup;
use weigh_model::result::versus::SHELL_START_NS;
use weigh_workload::launcher::{Job, LauncherError};
use weigh_workload::stdout_use::StdoutUse;

/// So many starts of a shell tell how long one takes.
const SHELL_STARTS: usize = 10;
const SHELL_TIMEOUT_MS: u64 = 10_000;

impl Host<'_> {
    fn contest(&self) -> Option<&CommandComparison> {
        self.site.works.first().and_then(Work::contest)
    }

    pub(super) fn shell(&self) -> Option<&[String]> {
        self.contest().map(|contest| &*contest.shell).filter(|shell| !shell.is_empty())
    }

    /// Returns the use of a launch's stdout, once the first output was kept.
    pub(super) fn stdout_of(&self, work: WorkId) -> StdoutUse {
        match self.site.works[work].contest() {
            Some(contest) if contest.same_output => StdoutUse::CompareWith(self.expected_output()),
            _ => StdoutUse::KeepEnd,
        }
    }

    fn expected_output(&self) -> PathBuf {
        self.arms.place(ArmId::BASELINE).scratch.join("expected-output")
    }

    /// Launches a command once, where its output is compared or shown; it is no sample.
    pub(super) fn try_contender(&mut self, work: WorkId, arm: ArmId) -> Result<(), SampleError> {
        let Some(contest) = self.site.works[work].contest() else { return Ok(()) };
        let (same_output, show_output) = (contest.same_output, contest.show_output);
        if !same_output && !show_output {
            return Ok(());
        }
        self.prepare(arm)?;
        let length = SampleLength::new(None, false).wanted();
        let job = self.site.works[work].job(arm, self.arms.place(arm), length, 0);
        let mut job = job.map_err(SampleError::Workload)?;
        job.stdout = match arm {
            ArmId::BASELINE if same_output => StdoutUse::SaveTo(self.expected_output()),
            _ => self.stdout_of(work),
        };
        let (launched, ..) = self.launch(arm, arm, &job)?;
        if show_output {
            let (stdout, stderr) = (launched.stdout.clone(), launched.stderr.clone());
            self.shown.push(Printout { arm: self.arms.label(arm).to_owned(), stdout, stderr });
        }
        self.site.works[work].read(&launched).map_err(SampleError::Workload).map(drop)
    }

    /// Checks that the shell can run an empty command, and keeps how long that took.
    ///
    /// # Errors
    /// Where it cannot.
    pub fn check_shell(&mut self) -> Result<(), Stop> {
        self.keep_start_of_shell(1)
    }

    /// Measures how long the shell takes to start and to end, which is part of every sample. It comes after
    /// the samples, as no verdict waits for it, and replaces the one start before them.
    ///
    /// # Errors
    /// Where it cannot run an empty command.
    pub fn measure_shell(&mut self) -> Result<(), Stop> {
        self.keep_start_of_shell(SHELL_STARTS)
    }

    fn keep_start_of_shell(&mut self, starts: usize) -> Result<(), Stop> {
        let Some(start_ns) = median(&self.start_shell(starts)?) else { return Ok(()) };
        let mut evidence = Evidence::default();
        evidence.amounts.set(SHELL_START_NS, start_ns);
        let startup = Startup { work: WorkId(0), arm: ArmId::BASELINE, operations: 1.0, evidence };
        Ok(self.site.store.add_startup(self.site.id, &startup)?)
    }

    /// Starts the shell so often; returns how long each start took, none where there is no shell.
    fn start_shell(&mut self, starts: usize) -> Result<Vec<f64>, Stop> {
        let Some(shell) = self.shell().map(<[String]>::to_vec) else { return Ok(Vec::new()) };
        let (Some(launcher), Some(directory)) = (&mut self.neutral, self.site.works[0].directory())
        else {
            return Ok(Vec::new());
        };
        let argv = shell.iter().cloned().chain([String::new()]).collect();
        let job = Job::new(argv, directory, SHELL_TIMEOUT_MS);
        let mut times_ns = Vec::new();
        for _ in 0..starts {
            let launched = launcher.run(&job, self.arms.context.interrupted);
            let problem = match &launched {
                Ok(launched) => failure_of(launched, &ExpectedExit::default()),
                Err(LauncherError::Refused(problem)) => Some(problem.clone()),
                Err(_) => None,
            };
            if let Some(problem) = problem {
                return Err(Stop::Failed(format!(
                    "the shell `{}` cannot run an empty command: {problem}. Choose a different shell with \
                     --shell, or use -N to run commands without a shell",
                    shell.join(" ")
                )));
            }
            times_ns.push(launched?.wall_ns as f64);
            self.arms.context.running.forget();
        }
        Ok(times_ns)
    }
}
