//! The parent's side of a launcher: a process per arm that forks every sample of that arm.
//!
//! An arm needs a process of its own because some treatments attach when a process is forked: a
//! login uid is set once, in the launcher, and every worker is born with it. Both arms are launched
//! by the same code from processes of the same size, so that only the treatment differs.

pub mod trace;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::cpu_use::CpuUse;
use super::kills::Kills;
use super::member::{MemberSeen, StartServer};
use super::setup::Setup;
use super::start_cpu::StartCpu;
use super::stdout_use::{OutputDifference, StdoutUse};
use weigh_host::lines::{LinesError, PROMPTLY};
use weigh_host::machine::pressure::Moment;
use weigh_host::own_program::Helper;
use weigh_model::printable::brief;

/// The hidden subcommand that turns `weigh` into a launcher.
pub const SUBCOMMAND: &str = "__launcher";

/// Time that a launcher may take beyond its member's time to end.
///
/// A launcher that takes longer is killed, with all that it started. So giving up does not take
/// long.
const LOWERED_WITHIN: Duration = Duration::from_secs(5);
/// How often a launch is looked at that is watched.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// One launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub argv: Vec<String>,
    /// Added to the inherited environment.
    pub environment: Vec<(String, String)>,
    pub directory: PathBuf,
    /// After this the whole process group is killed.
    pub timeout_ms: u64,
    pub stdout: StdoutUse,
    /// Where it begins, for one sample of a pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<StartCpu>,
    /// The command that installs its program, if one is known: for the error where the program is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_missing: Option<String>,
}

impl Job {
    /// A launch in the environment and on the CPUs of its launcher.
    pub fn new(argv: Vec<String>, directory: impl Into<PathBuf>, timeout_ms: u64) -> Job {
        Job {
            argv,
            environment: Vec::new(),
            directory: directory.into(),
            timeout_ms,
            stdout: StdoutUse::KeepEnd,
            start: None,
            if_missing: None,
        }
    }
}

/// Outcome of a launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Launched {
    pub pid: u32,
    /// The machine just before the fork and after the end, and how many CPUs it has.
    pub began: Moment,
    pub ended: Moment,
    pub cpus: u32,
    /// The CPU that was drawn for it to begin on.
    #[serde(default)]
    pub cpu: Option<usize>,
    /// Its command line, with what the set-up makes of it.
    pub executed: Vec<String>,
    /// The processes that did what the set-up asks for after the worker had ended.
    pub afterwards: Vec<u32>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    /// Kills among the processes that it started, whatever its exit status is.
    #[serde(default)]
    pub kills: Kills,
    /// The last 64 KiB of each.
    pub stdout: String,
    pub stderr: String,
    /// All that it printed, which may be more than what is kept.
    pub printed_bytes: u64,
    /// Where its stdout is not what it was compared with.
    pub difference: Option<OutputDifference>,
    /// From the execution of the program to its end.
    pub wall_ns: u64,
    /// Least part of the CPU time below that the program itself used.
    pub least_cpu_ns: u64,
    /// And what of that may be of the time before, as the kernel's clock of CPU times may have been behind.
    pub cpu_clock_behind_ns: u64,
    /// CPU use since it was let go; only of a command that was held, on a kernel that counts it.
    #[serde(default)]
    pub cpu_use: Option<CpuUse>,
    /// Processes of a held command that were still running when it ended.
    #[serde(default)]
    pub outlived: usize,
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
    /// The worker's `/proc/PID/status` when it executes its program.
    pub status: String,
    /// Observations by the steps of the set-up, at the execution and after the end, by name.
    pub seen: BTreeMap<String, String>,
}

/// A look that came too late.
#[derive(Debug, thiserror::Error)]
#[error(
    "{who} {ended} before weigh could check its {what}, so nothing proves its treatment: {way_out}"
)]
pub struct NotSeen {
    who: String,
    what: String,
    ended: String,
    way_out: &'static str,
    /// It was killed, so it has no result whatever it was treated with.
    pub is_killed: bool,
}

impl NotSeen {
    const LONGER: &str = "use a command that runs longer, or a less busy machine";
    const LESS: &str = "see `dmesg`; a limit of its arm may be too low";

    /// Makes the error for a member, which is still running.
    pub fn of_member(what: &str, member: &str) -> NotSeen {
        NotSeen {
            who: format!("`{member}`"),
            what: what.to_owned(),
            ended: "ended".to_owned(),
            way_out: NotSeen::LONGER,
            is_killed: false,
        }
    }
}

impl Launched {
    /// Returns the observation that a step of the set-up recorded under this name.
    ///
    /// # Errors
    /// If the step recorded nothing.
    pub fn seen(&self, name: &str) -> Result<&str, NotSeen> {
        self.seen.get(name).map(String::as_str).ok_or_else(|| NotSeen {
            who: "the process".to_owned(),
            what: name.to_owned(),
            ended: match (self.exit_code, self.kills.sentence(), self.signal) {
                (Some(0), ..) => "ended".to_owned(),
                (Some(code), ..) => format!("ended with exit status {code}"),
                (None, Some(kills), _) => format!("was killed ({kills})"),
                (None, None, Some(signal)) => format!("was killed by signal {signal}"),
                (None, None, None) => "was killed".to_owned(),
            },
            way_out: if self.exit_code.is_none() { NotSeen::LESS } else { NotSeen::LONGER },
            is_killed: self.exit_code.is_none(),
        })
    }
}

/// The number behind `NAME:` in the text of a `/proc/PID/status`.
pub fn status_number(status: &str, name: &str) -> Option<u32> {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok();
    status.lines().find_map(value)
}

/// Something with the number by which an answer is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Numbered<T> {
    pub id: u64,
    pub what: T,
}

/// Order to a launcher. The set-up comes first, and once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LauncherOrder {
    SetUp(Setup),
    /// Run one job; whatever it left running is ended, and members live on.
    Run(Job),
    /// Start a member, and wait until it is ready.
    StartServer(StartServer),
    /// Let a member stand still, with all that it started.
    Freeze(String),
    Thaw(String),
    /// Tell what there is of a member.
    Look(String),
    /// End a member in good order, which may take so long, and then all that it started.
    StopServer {
        name: String,
        limit_ms: u64,
    },
}

/// Answer of a launcher to an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LauncherAnswer {
    Done(()),
    Launched(Box<Launched>),
    Member(Box<MemberSeen>),
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
    #[error("the launcher process failed: {0}")]
    Broken(String),
}

impl From<LinesError> for LauncherError {
    fn from(error: LinesError) -> LauncherError {
        match error {
            LinesError::Interrupted => LauncherError::Interrupted,
            other => LauncherError::Broken(other.to_string()),
        }
    }
}

impl From<io::Error> for LauncherError {
    fn from(error: io::Error) -> LauncherError {
        LauncherError::Broken(error.to_string())
    }
}

/// A running launcher. Dropping it ends it and whatever it runs, members too.
pub struct Launcher {
    helper: Helper,
    /// The number of the last order.
    last: u64,
    /// True if it has taken its set-up.
    is_set_up: bool,
}

impl Launcher {
    /// Starts a launcher by this command, and has it take its set-up.
    ///
    /// # Errors
    /// [`LauncherError::Refused`] where a part of the set-up is not permitted.
    pub fn start(
        command: Command,
        setup: &Setup,
        interrupted: &AtomicBool,
    ) -> Result<Launcher, LauncherError> {
        Launcher::over(Helper::start(command)?, setup, interrupted)
    }

    /// Takes over a launcher process that was already started, here or elsewhere, and sets it up.
    ///
    /// # Errors
    /// As [`Launcher::start`].
    pub fn over(
        helper: Helper,
        setup: &Setup,
        interrupted: &AtomicBool,
    ) -> Result<Launcher, LauncherError> {
        let mut launcher = Launcher::begun(helper, setup)?;
        launcher.settle(interrupted)?;
        Ok(launcher)
    }

    /// As [`Launcher::over`], but without waiting until it has taken its set-up: [`Launcher::settle`] does.
    ///
    /// # Errors
    /// Where the process is gone.
    pub fn begun(helper: Helper, setup: &Setup) -> Result<Launcher, LauncherError> {
        let mut launcher = Launcher { helper, last: 0, is_set_up: false };
        launcher.tell(LauncherOrder::SetUp(setup.clone()))?;
        Ok(launcher)
    }

    /// Waits until it has taken its set-up.
    ///
    /// # Errors
    /// As [`Launcher::start`].
    pub fn settle(&mut self, interrupted: &AtomicBool) -> Result<(), LauncherError> {
        if !self.is_set_up {
            let answer = self.answer(Instant::now() + PROMPTLY, interrupted)?;
            answer.ok_or(LinesError::TimedOut)?;
            self.is_set_up = true;
        }
        Ok(())
    }

    /// Runs one job to its end, which the job's timeout bounds.
    ///
    /// # Errors
    /// [`LauncherError::Refused`] where the program cannot be executed; [`LauncherError::Interrupted`].
    pub fn run(&mut self, job: &Job, interrupted: &AtomicBool) -> Result<Launched, LauncherError> {
        self.begin(job)?;
        // It kills the worker when its time is over. Only one that was stopped itself answers later.
        let limit = Duration::from_millis(job.timeout_ms) + PROMPTLY;
        self.end_within(limit, interrupted)?.ok_or_else(|| LinesError::TimedOut.into())
    }

    /// Has it run one job, without waiting for its end.
    ///
    /// # Errors
    /// Where the launcher is gone.
    pub fn begin(&mut self, job: &Job) -> Result<(), LauncherError> {
        self.tell(LauncherOrder::Run(job.clone()))
    }

    /// Waits for the outcome of the running job; `None` if the job has not ended within `time`.
    ///
    /// # Errors
    /// As [`Launcher::run`].
    pub fn end_within(
        &mut self,
        time: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Option<Launched>, LauncherError> {
        match self.answer(Instant::now() + time, interrupted)? {
            None => Ok(None),
            Some(LauncherAnswer::Launched(launched)) => Ok(Some(*launched)),
            Some(other) => Err(unexpected(&other)),
        }
    }

    /// Lets `meanwhile` look again and again, told our process, until the job that was begun has ended.
    ///
    /// # Errors
    /// As [`Launcher::run`].
    pub fn watch(
        &mut self,
        job: &Job,
        interrupted: &AtomicBool,
        meanwhile: &mut dyn FnMut(u32),
    ) -> Result<Launched, LauncherError> {
        let deadline = Instant::now() + Duration::from_millis(job.timeout_ms) + PROMPTLY;
        while Instant::now() < deadline {
            if let Some(launched) = self.end_within(LOOK_AGAIN, interrupted)? {
                return Ok(launched);
            }
            meanwhile(self.pid());
        }
        Err(LinesError::TimedOut.into())
    }

    /// Starts a member, and waits until it is ready.
    ///
    /// # Errors [`LauncherError::Refused`] where it does not start or is not ready in time: then nothing of
    /// it is left.
    pub fn raise(
        &mut self,
        raise: &StartServer,
        interrupted: &AtomicBool,
    ) -> Result<MemberSeen, LauncherError> {
        let limit = Duration::from_millis(raise.timeout_ms);
        self.member(LauncherOrder::StartServer(raise.clone()), limit, interrupted)
    }

    /// A member as it is now.
    ///
    /// # Errors
    /// [`LauncherError::Refused`] where it has ended.
    pub fn look(
        &mut self,
        name: &str,
        interrupted: &AtomicBool,
    ) -> Result<MemberSeen, LauncherError> {
        self.member(LauncherOrder::Look(name.into()), Duration::ZERO, interrupted)
    }

    /// Lets a member stand still, with all that it started.
    ///
    /// # Errors
    /// [`LauncherError::Refused`] where it does not.
    pub fn freeze(&mut self, name: &str, interrupted: &AtomicBool) -> Result<(), LauncherError> {
        self.ask(LauncherOrder::Freeze(name.into()), Duration::ZERO, interrupted).map(drop)
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// [`LauncherError::Refused`] where it has ended.
    pub fn thaw(&mut self, name: &str, interrupted: &AtomicBool) -> Result<(), LauncherError> {
        self.ask(LauncherOrder::Thaw(name.into()), Duration::ZERO, interrupted).map(drop)
    }

    /// Ends a member in good order, which may take so long, and all that it started.
    ///
    /// # Errors
    /// [`LauncherError::Refused`] where there is none.
    pub fn lower(
        &mut self,
        name: &str,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<(), LauncherError> {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self.tell(LauncherOrder::StopServer { name: name.into(), limit_ms })?;
        let answer = self.answer(Instant::now() + limit + LOWERED_WITHIN, interrupted)?;
        answer.map(drop).ok_or_else(|| LinesError::TimedOut.into())
    }

    fn member(
        &mut self,
        order: LauncherOrder,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<MemberSeen, LauncherError> {
        match self.ask(order, limit, interrupted)? {
            LauncherAnswer::Member(seen) => Ok(*seen),
            other => Err(unexpected(&other)),
        }
    }

    /// The answer to this order, which takes no longer than that by itself.
    fn ask(
        &mut self,
        what: LauncherOrder,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<LauncherAnswer, LauncherError> {
        self.tell(what)?;
        let answer = self.answer(Instant::now() + limit + PROMPTLY, interrupted)?;
        answer.ok_or_else(|| LinesError::TimedOut.into())
    }

    fn tell(&mut self, what: LauncherOrder) -> Result<(), LauncherError> {
        self.last += 1;
        trace::order(self.pid(), &what);
        Ok(self.helper.lines.send(&Numbered { id: self.last, what })?)
    }

    /// The answer to the last order; answers to orders that were given up on are passed over.
    fn answer(
        &mut self,
        deadline: Instant,
        interrupted: &AtomicBool,
    ) -> Result<Option<LauncherAnswer>, LauncherError> {
        loop {
            let Numbered { id, what } = match self.helper.lines.receive(interrupted, deadline) {
                Err(LinesError::TimedOut) => return Ok(None),
                received => received.map_err(|error| self.with_last_words(error))?,
            };
            trace::answer(self.pid(), &what);
            match what {
                _ if id != self.last => {}
                LauncherAnswer::Error(problem) => {
                    return Err(LauncherError::Refused(brief(&problem)));
                }
                answer => return Ok(Some(answer)),
            }
        }
    }

    /// Why it does not answer, with what came from elsewhere.
    fn with_last_words(&mut self, error: LinesError) -> LauncherError {
        match (LauncherError::from(error), self.helper.last_words()) {
            (LauncherError::Broken(problem), Some(words)) => {
                LauncherError::Broken(format!("{problem}; it printed: {words}"))
            }
            (error, _) => error,
        }
    }

    /// Lets it go on where somebody stopped it (SIGSTOP), so that it answers.
    pub fn wake(&self) {
        self.helper.wake();
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.helper.pid()
    }

    /// See [`Helper::let_go`].
    pub fn let_go(&mut self) {
        self.helper.let_go();
    }
}

fn unexpected(answer: &LauncherAnswer) -> LauncherError {
    let what = match answer {
        LauncherAnswer::Done(()) => "done",
        LauncherAnswer::Launched(_) => "launched",
        LauncherAnswer::Member(_) => "member",
        LauncherAnswer::Error(_) => "error",
    };
    LauncherError::Broken(format!("it answered a different order ({what})"))
}
