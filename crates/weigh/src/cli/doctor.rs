//! `weigh doctor`: what about this machine disturbs a measurement, and how to fix it.

mod disk;
mod install;

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use trust::program::end_with_us;
use trust::start::{self, Inherited};

use super::{Context, output};
use weigh_host::machine::Probes;
use weigh_host::machine::check::check;
use weigh_host::machine::fix::{Setting, plan};
use weigh_host::undo::left_behind::put_back_what_was_left;
use weigh_host::undo::settings::Changed;
use weigh_model::finding::Severity;
use weigh_report::checks;
use weigh_station::fitness::probe;
use weigh_treatment::undoings;

const EXAMPLES: &str = "\
Examples:
  weigh doctor
      Show what disturbs a measurement, how, and the command that fixes it.
  sudo weigh doctor --fix -- weigh compare seccomp -w unixbench
      Set the governor and turn boost off, only while this experiment runs.
  sudo weigh doctor --fix
      Do the same until Ctrl-C, while you work in another terminal.
  weigh doctor --disk
      Measure the disk that holds $TMPDIR; --disk=DIR measures another one.
  sudo weigh doctor --install apps
      Install the servers that `weigh run app` measures; asks first.
  sudo weigh doctor --install vm
      Install the programs that build and boot virtual machines for
      `weigh compare vm:…`; asks first.

Exit status: 0 no check has a warning, 1 a check has a warning, 2 error.
With --fix, --disk or --install: 0 done, 2 error. With a COMMAND: the exit
status of the command, or 128 plus the number of the signal that ended it.";

/// A check has a warning.
const WARNED: u8 = 1;

/// How often a command is looked after that runs with the settings changed.
const LOOK_EVERY: Duration = Duration::from_millis(20);

const USAGE: &str = "weigh doctor [OPTIONS]
       weigh doctor --fix [-- <COMMAND> [ARGUMENT]...]";

/// Check whether this machine is fit to measure, and temporarily reduce noise
///
/// Prints warnings (something disturbs measuring) and facts (these disturb nothing, but limit to which
/// machines a result applies). The report of every experiment repeats the warnings; its JSON and HTML also
/// contain the facts (docs/doctor.md).
///
/// Without --fix, --install or --disk, changes nothing. With --fix, sets the governor of the CPUs to
/// performance, turns boost off, and restores both when COMMAND ends. If weigh is killed, a guard process
/// restores them. If the guard is killed too, `weigh restore` does it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct DoctorArgs {
    /// Print the findings as JSON; with --disk, the speeds of the disk
    #[arg(long, conflicts_with = "fix")]
    json: bool,
    /// Set the CPU governor to performance and turn boost off, while COMMAND runs or until Ctrl-C; needs root
    #[arg(long)]
    fix: bool,
    /// Install programs that workloads (`apps`) or guests (`vm`) need, with apt-get. Starts no service; needs
    /// root and asks first. On other distributions, weigh only prints Debian's names of the packages
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["fix", "json"])]
    install: Option<install::Installable>,
    /// Measure the speed of the device that holds DIR, bypassing the page cache, and store it for later
    /// reports. Writes a file of 128 MiB to DIR for about five seconds [default: $TMPDIR, or /tmp]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    #[arg(conflicts_with_all = ["fix", "install"])]
    disk: Option<Option<PathBuf>>,
    /// Do not ask before --install installs packages
    #[arg(long, requires = "install")]
    yes: bool,
    /// Look below this directory instead of /
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
    /// Command to run while --fix is in force
    #[arg(last = true, value_name = "COMMAND", requires = "fix")]
    command: Vec<String>,
}

impl DoctorArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        if let Some(what) = self.install {
            return install::install(what, self.yes);
        }
        if let Some(directory) = &self.disk {
            let directory = directory.clone().unwrap_or_else(std::env::temp_dir);
            return disk::measure(&directory, self.json, context);
        }
        if self.fix {
            return self.fix();
        }
        let facts = weigh_host::machine::facts::read_from(&self.root);
        let probes = match self.root == Path::new("/") {
            true => probe(&context.data_directory()?),
            false => Probes::default(),
        };
        let findings = check(&facts, &probes);
        if self.json {
            output::print_json(&checks::json(&findings).map_err(|error| error.to_string())?)?;
        } else {
            let colour = output::wants_colour(context.color, &io::stdout());
            output::print(&checks::text(&findings, output::room(), colour))?;
        }
        let is_warned = findings.iter().any(|finding| finding.severity == Severity::Warning);
        Ok(if is_warned { WARNED } else { 0 })
    }

    fn fix(&self) -> Result<u8, String> {
        put_back_what_was_left(&self.root, &undoings(), &mut output::note)?;
        let settings = plan(&self.root);
        if settings.is_empty() {
            output::note("Nothing to change: no governor or boost that disturbs is visible here.");
        }
        if settings.is_empty() && self.command.is_empty() {
            return Ok(0);
        }
        let signals = Signals::listen()?;
        let changed = match settings.is_empty() {
            true => None,
            false => Some(Changed::apply(&settings, &self.root)?),
        };
        settings.iter().for_each(announce);
        let outcome = match self.command.split_first() {
            Some((program, arguments)) => {
                run_command(program, arguments, Inherited::Callers, &signals)
            }
            None => {
                output::note("These last until Ctrl-C.");
                signals.wait();
                Ok(0)
            }
        };
        if let Some(Err(left)) = changed.map(Changed::restore) {
            return Err(format!("not all is as it was: {left}\n`weigh restore` tries again"));
        }
        outcome
    }
}

fn announce(setting: &Setting) {
    let file = setting.file.display();
    output::note(&format!("{file}: {} for now, was {}", setting.wanted, setting.was));
}

/// Signals that must not end us before the settings are put back.
struct Signals {
    /// Ctrl-C reaches the command by itself.
    any: Arc<AtomicBool>,
    /// These are sent to us alone.
    to_pass_on: Arc<AtomicBool>,
}

impl Signals {
    fn listen() -> Result<Signals, String> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let (any, to_pass_on) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let flags = [(SIGINT, &any), (SIGTERM, &any), (SIGHUP, &any)];
        for (signal, flag) in
            flags.into_iter().chain([(SIGTERM, &to_pass_on), (SIGHUP, &to_pass_on)])
        {
            signal_hook::flag::register(signal, Arc::clone(flag))
                .map_err(|error| format!("signals: {error}"))?;
        }
        Ok(Signals { any, to_pass_on })
    }

    fn wait(&self) {
        while !self.any.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Runs the command to its end, and gives its exit status as a shell would.
fn run_command(
    program: &str,
    arguments: &[String],
    inherited: Inherited,
    signals: &Signals,
) -> Result<u8, String> {
    let mut command = start::command(program, inherited);
    command.args(arguments);
    // The command does not outlive the settings that it was started for.
    end_with_us(&mut command, Signal::TERM);
    let mut child = command.spawn().map_err(|error| format!("cannot run {program}: {error}"))?;
    let status = wait(&mut child, signals).map_err(|error| format!("{program}: {error}"))?;
    Ok(exit_code(status))
}

/// As a shell would give it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(super::ERROR)
}

fn wait(child: &mut Child, signals: &Signals) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if signals.to_pass_on.swap(false, Ordering::Relaxed) {
            kill_process(Pid::from_child(child), Signal::TERM)?;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::{Cli, ERROR};

    #[test]
    fn the_help_has_every_exit_status() {
        let cli = Cli::command();
        let doctor = cli.find_subcommand("doctor").unwrap();
        let help = doctor.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (_, statuses) = help.split_once("Exit status: ").unwrap();
        for status in [
            "0 no check has a warning".to_owned(),
            format!("{WARNED} a check has a warning"),
            format!("{ERROR} error"),
            "With a COMMAND: the exit\nstatus of the command".to_owned(),
        ] {
            assert!(statuses.contains(&status), "{status}: {statuses}");
        }
        let killed = ExitStatus::from_raw(libc::SIGTERM);
        assert_eq!(exit_code(killed), 128 + libc::SIGTERM as u8);
    }
}
