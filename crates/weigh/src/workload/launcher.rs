//! The parent's side of a launcher: a process per arm that forks every sample of that arm.
//!
//! An arm needs a process of its own because some treatments attach when a process is forked: a
//! login uid is set once, in the launcher, and every worker is born with it. Both arms are launched
//! by the same code from processes of the same size, so that only the treatment differs.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::own_program::{self, Helper, PROMPTLY};

/// The hidden subcommand that turns `weigh` into a launcher.
pub const SUBCOMMAND: &str = "__launcher";

/// How the processes of an arm differ from those of the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Written to `/proc/self/loginuid` before the first worker is forked.
    pub loginuid: Option<u32>,
    /// The login uid under which the launcher itself is born, so that a rule can exempt it and what
    /// it does around a sample makes no records.
    pub exempt_loginuid: Option<u32>,
    /// A seccomp filter that every worker installs on itself just before it executes: the four
    /// fields of `struct sock_filter` per instruction.
    pub seccomp: Option<Vec<(u16, u8, u8, u32)>>,
    /// A file that every worker opens just before it executes, and a process of its own just after
    /// the worker ended: what makes a treatment show itself.
    pub canary: Option<PathBuf>,
    /// So many millionths of its work every workload of ours does beside what it reports; with 0 it says
    /// that it did none.
    pub planted_ppm: Option<u32>,
}

impl Setup {
    /// This set-up, with the parts that `own` decides replaced by it.
    pub fn overridden_by(self, own: Setup) -> Setup {
        Setup {
            loginuid: own.loginuid.or(self.loginuid),
            exempt_loginuid: own.exempt_loginuid.or(self.exempt_loginuid),
            seccomp: own.seccomp.or(self.seccomp),
            canary: own.canary.or(self.canary),
            planted_ppm: own.planted_ppm.or(self.planted_ppm),
        }
    }
}

/// One launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub argv: Vec<String>,
    /// Added to the inherited environment.
    pub environment: Vec<(String, String)>,
    pub directory: PathBuf,
    /// After this the whole process group is killed.
    pub timeout_ms: u64,
}

/// What became of a launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Launched {
    pub pid: u32,
    /// The process that opened the canary after the worker had ended.
    pub canary_after_pid: Option<u32>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    /// The last 64 KiB of each.
    pub stdout: String,
    pub stderr: String,
    /// All that it printed, which may be more than what is kept.
    pub printed_bytes: u64,
    /// From the execution of the program to its end.
    pub wall_ns: u64,
    /// Of the CPU time below, what the program itself used at least.
    pub least_cpu_ns: u64,
    /// CPU time since the worker was forked.
    pub user_ns: u64,
    pub system_ns: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    /// The largest resident set of the worker or of a process that it waited for; `None` where it may be that
    /// of the launcher, of which the worker was a copy before it executed its program.
    pub peak_memory_bytes: Option<u64>,
    /// Read from block devices, and written to them at once or later.
    pub block_input_bytes: u64,
    pub block_output_bytes: u64,
    /// `Seccomp:` and `Seccomp_filters:` of the worker's `/proc/PID/status` when it executes its program.
    pub seccomp_mode: Option<u32>,
    pub seccomp_filters: Option<u32>,
}

/// The number behind `NAME:` in the text of a `/proc/PID/status`.
pub fn status_number(status: &str, name: &str) -> Option<u32> {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok();
    status.lines().find_map(value)
}

/// What the launcher answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    Ready,
    Launched(Box<Launched>),
    Error(String),
}

/// Why there is no [`Launched`].
#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    #[error("interrupted")]
    Interrupted,
    /// The launcher said no, in its own words.
    #[error("{0}")]
    Refused(String),
    #[error("the launcher process: {0}")]
    Broken(String),
}

impl From<own_program::HelperError> for LauncherError {
    fn from(error: own_program::HelperError) -> LauncherError {
        match error {
            own_program::HelperError::Interrupted => LauncherError::Interrupted,
            other => LauncherError::Broken(other.to_string()),
        }
    }
}

impl From<io::Error> for LauncherError {
    fn from(error: io::Error) -> LauncherError {
        LauncherError::Broken(error.to_string())
    }
}

/// A running launcher. Dropping it ends it and whatever it runs.
pub struct Launcher(Helper);

impl Launcher {
    /// Starts a launcher and has it take its set-up.
    ///
    /// # Errors
    /// [`LauncherError::Refused`] where a part of the set-up is not permitted.
    pub fn start(setup: &Setup, interrupted: &AtomicBool) -> Result<Launcher, LauncherError> {
        let mut launcher = Launcher(Helper::start(SUBCOMMAND)?);
        launcher.0.send(setup)?;
        match launcher.0.receive(interrupted, Instant::now() + PROMPTLY)? {
            Answer::Ready => Ok(launcher),
            Answer::Error(problem) => Err(LauncherError::Refused(problem)),
            Answer::Launched(_) => {
                Err(LauncherError::Broken("it launched what nobody asked for".into()))
            }
        }
    }

    /// Runs one job to its end, which the job's timeout bounds.
    ///
    /// # Errors
    /// [`LauncherError::Refused`] where the program cannot be executed; [`LauncherError::Interrupted`].
    pub fn run(&mut self, job: &Job, interrupted: &AtomicBool) -> Result<Launched, LauncherError> {
        self.0.send(job)?;
        // It kills the worker when its time is over. Only one that was stopped itself answers later.
        let deadline = Instant::now() + Duration::from_millis(job.timeout_ms) + PROMPTLY;
        match self.0.receive(interrupted, deadline)? {
            Answer::Launched(launched) => Ok(*launched),
            Answer::Error(problem) => Err(LauncherError::Refused(problem)),
            Answer::Ready => Err(LauncherError::Broken("it was ready twice".into())),
        }
    }
}
