//! What is launched for a sample: a workload of ours, or any command as a whole.

use std::path::{Path, PathBuf};

use super::contest::Contest;
use super::detail::{self, Look};
use crate::result::curve::OnCurve;
use crate::result::versus::WORK;
use crate::result::work_name::WorkName;
use crate::shell::command_line;
use crate::workload::catalogue::Workload;
use crate::workload::executable::Length;
use crate::workload::launcher::Job;
use crate::workload::place::LaunchPlace;
use crate::workload::stdout_use::StdoutUse;
use crate::workload::suite::Member;

/// A workload that takes longer than this for a sample hangs, where `--timeout` says nothing else.
const KERNEL_TIMEOUT_MS: u64 = 120_000;

/// The unit of a command that is timed as a whole. No sample that a command prints may be in it, so
/// that the two are never held against each other.
pub const WHOLE_RUNS: &str = "runs/s";
/// The unit of the sample that a command prints without one.
pub const OWN_OPERATIONS: &str = "ops/s";

/// Something to launch.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    Builtin {
        workload: Box<Workload>,
        member: Option<Member>,
        copies: usize,
    },
    Command {
        argv: Vec<String>,
        directory: PathBuf,
    },
    /// Commands against each other: which one, the set-up of an arm says.
    Contest {
        contest: Box<Contest>,
        directory: PathBuf,
    },
}

impl Work {
    /// Ours to give up on a command, which may well run for hours.
    pub const COMMAND_TIMEOUT_MS: u64 = 24 * 3600 * 1000;

    /// What rows are called.
    pub fn name(&self) -> WorkName {
        match self {
            Work::Builtin { workload, copies, .. } => WorkName::of_copies(&workload.name, *copies),
            Work::Command { argv, .. } => (*command_line(argv.iter().map(String::as_str))).into(),
            Work::Contest { .. } => WORK.into(),
        }
    }

    /// The unit of the rate. A command that prints a sample of its own may have another.
    pub fn unit(&self) -> String {
        match self {
            Work::Builtin { workload, .. } => workload.unit.clone(),
            Work::Command { .. } | Work::Contest { .. } => WHOLE_RUNS.into(),
        }
    }

    /// Where it is a point of a curve, as the workload declares.
    pub fn on_curve(&self) -> Option<OnCurve> {
        let Work::Builtin { workload, .. } = self else { return None };
        let (series, x) = workload.series.clone().zip(workload.x)?;
        Some(OnCurve { series, x, x_unit: workload.x_unit.clone().unwrap_or_default() })
    }

    pub fn syscalls_per_op(&self) -> Option<f64> {
        match self {
            Work::Builtin { workload, .. } => Some(workload.syscalls_per_op),
            Work::Command { .. } | Work::Contest { .. } => None,
        }
    }

    /// The launch of one sample of about this length; a command takes what it takes.
    pub fn job(&self, place: &LaunchPlace, length: Length) -> Job {
        match self {
            Work::Builtin { workload, copies, .. } => Job {
                argv: place.executable.sample_argv(
                    &workload.name,
                    *copies,
                    Length {
                        has_latencies: length.has_latencies && !workload.only_in_batches,
                        ..length
                    },
                ),
                environment: Vec::new(),
                directory: place.work_directory.clone(),
                timeout_ms: KERNEL_TIMEOUT_MS + 2 * length.target_ms,
                stdout: StdoutUse::KeepEnd,
            },
            Work::Command { argv, directory } => Work::whole(argv.clone(), directory),
            Work::Contest { directory, .. } => Work::whole(Vec::new(), directory),
        }
    }

    fn whole(argv: Vec<String>, directory: &Path) -> Job {
        Job {
            argv,
            environment: Vec::new(),
            directory: directory.to_owned(),
            timeout_ms: Work::COMMAND_TIMEOUT_MS,
            stdout: StdoutUse::KeepEnd,
        }
    }

    /// Where a command is executed.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Work::Builtin { .. } => None,
            Work::Command { directory, .. } | Work::Contest { directory, .. } => Some(directory),
        }
    }

    /// The commands that are held against each other.
    pub fn contest(&self) -> Option<&Contest> {
        match self {
            Work::Contest { contest, .. } => Some(contest),
            Work::Builtin { .. } | Work::Command { .. } => None,
        }
    }

    /// A launch that does as good as nothing, for telling a workload's start from its operations.
    pub fn startup_job(&self, place: &LaunchPlace) -> Option<Job> {
        let Work::Builtin { workload, copies, .. } = self else { return None };
        Some(Job {
            argv: place.executable.operations_argv(&workload.name, *copies, 1),
            environment: Vec::new(),
            directory: place.work_directory.clone(),
            timeout_ms: KERNEL_TIMEOUT_MS,
            stdout: StdoutUse::KeepEnd,
        })
    }

    /// A launch of the detail pass. A command has none, as nothing is known of its operations, and copies
    /// have none, as each would need a histogram of its own.
    pub fn detail_job(&self, place: &LaunchPlace, look: Look) -> Option<Job> {
        let Work::Builtin { workload, copies: 1, .. } = self else { return None };
        if look == Look::Latencies && workload.only_in_batches {
            return None;
        }
        let option = match look {
            Look::Latencies => "--latencies",
            Look::Counters => "--count-instructions",
        };
        Some(Job {
            argv: place.executable.detail_argv(&workload.name, detail::TARGET_MS, option),
            environment: Vec::new(),
            directory: place.work_directory.clone(),
            timeout_ms: KERNEL_TIMEOUT_MS,
            stdout: StdoutUse::KeepEnd,
        })
    }

    /// The same with so many copies at the same time; a command stays alone.
    pub fn with_copies(self, wanted: usize) -> Work {
        match self {
            Work::Builtin { workload, member, .. } => {
                Work::Builtin { workload, member, copies: wanted }
            }
            command => command,
        }
    }
}
