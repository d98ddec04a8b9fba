//! `weigh profile`: what a program asks of the kernel.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;

use super::files::keep;
use super::{Context, ERROR, INTERRUPTED, output, value};
use weigh_audit::profile::file;
use weigh_audit::profile::keeper::{self, Ended};
use weigh_audit::profile::run::{CommandRun, ProfiledCommand};
use weigh_audit::profile::watch;
use weigh_host::interruption::listen_for_signals;
use weigh_host::machine::process::read_proc;
use weigh_model::profile::runs::{ProfileReport, ProfileRuns};
use weigh_model::result::summary::State;
use weigh_model::shell::command_line;
use weigh_store::Store;

const EXAMPLES: &str = "\
Examples:
  weigh profile -- ./my-program
      Count the calls of a command, from its start to its end.
  weigh profile --prepare 'make clean' -- make -j2
      The command runs twice: without --prepare, the second build has no work.
  weigh profile --for 30s -o web.json -- nginx -g 'daemon off;'
      End a server with SIGTERM after 30 s. Give it its usual load in both runs.
  sudo weigh profile --pid $(pidof -s postgres) --for 30s
      Count a running process with its threads and children; it keeps running.
  sudo weigh rules /etc/audit/rules.d --profile profile.json
      Use the profile: what do these rules cost this program?
  weigh profile -o - -- ls -R /usr > ls.json

`weigh rules --profile` also reads a FILE of `strace -c -f -o FILE` or
`perf trace -s -o FILE`.

Exit status: 0 done, 2 error, 130 interrupted (the counts up to then are kept).";

/// The file for the profile where none is named.
const DEFAULT_FILE: &str = "profile.json";

const USAGE: &str = "weigh profile [OPTIONS] -- <COMMAND> [ARGUMENT]...
       weigh profile [OPTIONS] --pid <PID> --for <TIME>";

/// Count the system calls of your program, for `weigh rules` and `weigh budget`
///
/// Runs the command twice: once undisturbed, for its CPU time, and once under ptrace, which counts every
/// call but is slow. Both runs include all child processes and end with the last of them. Standard input is
/// empty. With --pid, observes a running process for two periods of --for, without and with counting, and
/// then leaves it alone.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct ProfileArgs {
    /// File for the profile, as JSON; `-` is stdout [default: profile.json, which is not overwritten]
    #[arg(short = 'o', long = "output", visible_alias = "json", value_name = "FILE")]
    output: Option<PathBuf>,
    /// End the command after this time with SIGTERM, and with SIGKILL 5 s later; with --pid, observe the
    /// process for this time; such as 30s [default: until the command ends]
    #[arg(long = "for", value_name = "TIME", value_parser = value::duration)]
    time: Option<Duration>,
    /// Count the calls of this running process, its threads and children, instead of a command; needs --for
    #[arg(long, value_name = "PID", requires = "time", conflicts_with = "command",
        value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// Write a profile even if the command fails
    #[arg(long, conflicts_with = "pid")]
    ignore_failure: bool,
    /// Run this with `sh` before each of the two runs, for example 'make clean'. Its calls are not counted,
    /// and --for does not limit it. weigh kills processes that it leaves running
    #[arg(long, value_name = "LINE", conflicts_with = "pid")]
    prepare: Option<String>,
    /// Command to count, after `--`
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "pid")]
    command: Vec<String>,
}

impl ProfileArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        self.check_output()?;
        let interrupted = listen_for_signals()?;
        if self.pid.is_none() {
            let forked =
                keeper::fork(&interrupted).map_err(|error| format!("cannot fork: {error}"))?;
            match forked {
                None => {}
                Some(Ended::WithStatus(status)) => return Ok(status.try_into().unwrap_or(ERROR)),
                Some(Ended::BySignal(signal)) => {
                    return Err(format!(
                        "the process that ran the command was killed by signal {signal}: there is no profile"
                    ));
                }
            }
        }
        let store = context.open_store();
        let done = match self.pid {
            Some(process) => self.watch(process, &interrupted),
            None => self.run_twice(&interrupted),
        };
        let (state, status) = match interrupted.load(Ordering::Relaxed) {
            true => (State::Interrupted, INTERRUPTED),
            false => (State::Complete, 0),
        };
        match done? {
            Some(measured) => self.write(&measured, state, store, context)?,
            None => output::problem("interrupted before anything was counted: there is no profile"),
        }
        Ok(status)
    }

    /// Where the profile goes.
    fn output(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new(DEFAULT_FILE))
    }

    /// Checks that the file can be written. As with every other command, a file that is named is
    /// overwritten; what nobody named is left alone.
    fn check_output(&self) -> Result<(), String> {
        self.check_unnamed()?;
        output::check_writable(self.output())
    }

    fn check_unnamed(&self) -> Result<(), String> {
        if self.output.is_none() && Path::new(DEFAULT_FILE).symlink_metadata().is_ok() {
            return Err(format!(
                "{DEFAULT_FILE} exists already: -o {DEFAULT_FILE} overwrites it, and -o FILE writes another \
                 file"
            ));
        }
        Ok(())
    }

    /// `None` where it was interrupted before anything was counted.
    fn run_twice(&self, interrupted: &AtomicBool) -> Result<Option<ProfileRuns>, String> {
        let to_stderr = self.output() == Path::new("-");
        let job = ProfiledCommand { words: &self.command, time: self.time, interrupted, to_stderr };
        let shown =
            weigh_model::format::label(&command_line(self.command.iter().map(String::as_str)));
        let problem = |error: io::Error| format!("cannot run {shown}: {error}");
        if !self.run_before(interrupted)? {
            return Ok(None);
        }
        output::note(&format!("1 of 2: {shown}, without counting{}", self.limit()));
        let plain = job.run().map_err(problem)?;
        self.check(&shown, &plain)?;
        if interrupted.load(Ordering::Relaxed) || !self.run_before(interrupted)? {
            return Ok(None);
        }
        output::note(&format!("2 of 2: the same, counted{}", self.limit()));
        let counted = job.count().map_err(|error| format!("cannot count {shown}: {error}"))?;
        self.check(&shown, &counted)?;
        let measured = ProfileRuns {
            counts: counted.counts,
            plain: plain.period,
            counted: counted.period,
            is_same_work: !plain.is_ended_by_us && !counted.is_ended_by_us,
        };
        if measured.did_less() {
            output::problem(
                "warning: the second run, which was counted, did much less than the first: was there \
                 nothing left to do, as in a build? Use `--prepare` to reset things before each run",
            );
        }
        Ok(Some(measured))
    }

    /// Runs the preparation. Returns true if the command may run now, and false after an interrupt.
    fn run_before(&self, interrupted: &AtomicBool) -> Result<bool, String> {
        let Some(line) = &self.prepare else { return Ok(true) };
        let words = ["/bin/sh", "-c", line].map(String::from);
        let job = ProfiledCommand { words: &words, time: None, interrupted, to_stderr: true };
        let done =
            job.run_alone().map_err(|error| format!("cannot run `--prepare` ({line}): {error}"))?;
        match done.counts.status {
            _ if interrupted.load(Ordering::Relaxed) => Ok(false),
            0 => Ok(true),
            status => Err(format!("`--prepare` ({line}) {}", how_it_ended(status))),
        }
    }

    /// As [`Self::run_twice`].
    fn watch(&self, process: i32, interrupted: &AtomicBool) -> Result<Option<ProfileRuns>, String> {
        let time = self.time.unwrap_or_default();
        let problem = |error: io::Error| match error.raw_os_error() {
            Some(libc::ESRCH) => format!("there is no process {process}, or it has ended"),
            Some(libc::EPERM) => format!(
                "process {process}, or a child of it, may not be traced by this user, or is being traced \
                 already: run weigh as root, and stop strace and debuggers"
            ),
            _ => format!("cannot watch process {process}: {error}"),
        };
        if !Path::new(&format!("/proc/{process}")).exists() {
            return Err(problem(io::Error::from_raw_os_error(libc::ESRCH)));
        }
        output::note(&format!("1 of 2: process {process}, without counting{}", self.limit()));
        let plain = watch::plain(process, time, interrupted).map_err(problem)?;
        if interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        output::note(&format!("2 of 2: the same, counted{}", self.limit()));
        let (counts, counted) = watch::counted(process, time, interrupted).map_err(problem)?;
        Ok(Some(ProfileRuns { counts, plain, counted, is_same_work: false }))
    }

    fn limit(&self) -> String {
        let time = self.time.map(|time| weigh_model::format::seconds(time.as_secs_f64()));
        time.map_or_else(String::new, |time| format!(", for {time}"))
    }

    /// Checks the command's status. A command that fails does something other than its work.
    fn check(&self, shown: &str, outcome: &CommandRun) -> Result<(), String> {
        let status = outcome.counts.status;
        if status == 0 || outcome.is_ended_by_us || self.ignore_failure {
            return Ok(());
        }
        let how = how_it_ended(status);
        Err(format!(
            "{shown} {how}, so there is no profile; if that is expected, use --ignore-failure"
        ))
    }

    /// Writes the profile, stores it, and shows it even if it cannot be stored.
    fn write(
        &self,
        measured: &ProfileRuns,
        state: State,
        store: Result<Store, String>,
        context: &Context,
    ) -> Result<(), String> {
        let command = match self.pid {
            Some(process) => words_of(process),
            None => self.command.clone(),
        };
        let profile = measured.profile(command);
        if profile.total_calls() == 0 {
            return Err("it made no system call while being counted, so there is no profile; a longer time \
                        (--for) may help"
                .into());
        }
        let is_on_stdout = self.output() == Path::new("-");
        let written = match is_on_stdout {
            true => profile
                .json()
                .map_err(|error| error.to_string())
                .and_then(|json| output::print_json(&json)),
            // The command may have made the file meanwhile.
            false => self.check_unnamed().and_then(|()| file::write(&profile, self.output())),
        };
        let report = ProfileReport {
            profile,
            counted: measured.counted.into(),
            id: String::new(),
            again: context.again.to_string(),
            machine: weigh_host::machine::facts::read(),
        };
        let colour = output::wants_colour(context.color, &io::stdout());
        let text = weigh_report::profile::text(&report, output::room(), colour);
        let elapsed = measured.plain.elapsed + measured.counted.elapsed;
        let mut report = report.into();
        let stored =
            store.and_then(|store| keep(&mut report, (elapsed.as_secs_f64(), state), &store));
        if !is_on_stdout {
            let kept = match &stored {
                Ok(()) => format!("kept:    weigh show {}\n", report.id()),
                Err(_) => String::new(),
            };
            let file = match &written {
                Ok(()) => format!("Profile: {}\n", self.output().display()),
                Err(_) => String::new(),
            };
            output::print(&format!("{text}\n{file}{kept}"))?;
        }
        written.and(stored)
    }
}

fn how_it_ended(status: i32) -> String {
    match libc::WIFSIGNALED(status) {
        true => format!("was killed by signal {}", libc::WTERMSIG(status)),
        false => format!("ended with exit status {}", libc::WEXITSTATUS(status)),
    }
}

/// The command line of a running process, as far as it still tells; else its number.
fn words_of(process: i32) -> Vec<String> {
    let bytes = read_proc(process, "cmdline").unwrap_or_default();
    let words: Vec<String> = bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    if words.is_empty() { vec![format!("process {process}")] } else { words }
}
