//! `weigh doctor --install`: the servers that workloads ask, or what boots virtual machines, from the
//! distribution's packages.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use clap::ValueEnum;
use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::{LOOK_EVERY, Signals, exit_code};
use crate::cli::{ask, output};
use trust::program;
use trust::start::{self, Inherited};
use weigh_fixture::{FIXTURES, FixtureKind};
use weigh_host::undo::guard::Guard;
use weigh_host::undo::left_behind::put_back_what_was_left;
use weigh_host::undo::no_daemons;
use weigh_host::undo::running::CurrentCommand;
use weigh_treatment::{guest, undoings};

/// Component that can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Installable {
    /// Servers to which the workloads of the suite `app` send requests
    Apps,
    /// Programs that build and boot the virtual machines of `weigh compare vm:…`
    Vm,
}

/// Missing parts of a component: their names, their packages, and the use of the whole.
struct Missing {
    names: String,
    packages: BTreeSet<&'static str>,
    use_it: &'static str,
}

impl Installable {
    fn missing(self) -> Missing {
        match self {
            Installable::Apps => {
                let is_missing = |fixture: &&&FixtureKind| {
                    !fixture.packages.is_empty() && (fixture.kind.probe)().obstacle().is_some()
                };
                let fixtures: Vec<_> = FIXTURES.iter().filter(is_missing).collect();
                let names: Vec<&str> = fixtures.iter().map(|fixture| fixture.kind.name).collect();
                // Two of them may need the same.
                let packages =
                    fixtures.iter().flat_map(|fixture| fixture.packages).copied().collect();
                let use_it = "`weigh run app` measures them";
                Missing { names: names.join(", "), packages, use_it }
            }
            Installable::Vm => Missing {
                names: "virtual machines".into(),
                packages: guest::lacking().into_iter().collect(),
                use_it: "`weigh compare vm:selinux --base vm -w unixbench` boots guests",
            },
        }
    }

    /// As it is written.
    fn name(self) -> &'static str {
        match self {
            Installable::Apps => "apps",
            Installable::Vm => "vm",
        }
    }
}

/// Installs what is missing, after a question.
pub fn install(what: Installable, is_sure: bool) -> Result<u8, String> {
    let Missing { names, packages, use_it } = what.missing();
    if packages.is_empty() {
        output::note(&format!("All of it is there: {use_it}."));
        return Ok(0);
    }
    let packages: Vec<&str> = packages.into_iter().collect();
    let listed = packages.join(" ");
    let Some(apt) = program::find("apt-get")? else {
        return Err(format!(
            "{names}: there is no apt-get here; install what your distribution calls (in Debian) {listed}"
        ));
    };
    if !geteuid().is_root() {
        return Err(format!(
            "{names}: installing needs root: sudo weigh doctor --install {}, or apt-get install {listed}",
            what.name()
        ));
    }
    if !is_sure {
        ask::ask(
            &format!("This installs {listed} with apt-get, without starting their services"),
            "--yes",
        )?;
    }
    put_back_what_was_left(Path::new("/"), &undoings(), &mut output::note)?;
    let signals = Signals::listen()?;
    let mut guard = Guard::arm(Vec::new(), undoings()).map_err(|error| error.to_string())?;
    let installed = no_daemons::forbid(&mut guard)
        .and_then(|()| run_apt(&apt, &packages, &signals, guard.running()));
    let left = guard.disarm();
    let code = installed?;
    left?;
    match code {
        0 => output::note(&format!("Done: {use_it}.")),
        _ => return Err(format!("apt-get failed with status {code}; what it said is above")),
    }
    Ok(0)
}

/// Lists of packages may be missing or old, so they are fetched first.
fn run_apt(
    apt: &Path,
    packages: &[&str],
    signals: &Signals,
    running: &CurrentCommand,
) -> Result<u8, String> {
    let mut update = start::command(apt, Inherited::Fixed);
    update.args(["update", "-q"]).stdin(Stdio::null());
    let updated = run(update, signals, running)?;
    if updated != 0 {
        return Ok(updated);
    }
    let mut install = start::command(apt, Inherited::Fixed);
    install.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    install.args(["install", "-y", "-q", "--no-install-recommends"]).args(packages);
    run(install, signals, running)
}

/// To its end. The first signal asks apt-get to end, which lets dpkg finish its package; the second ends all
/// that it started.
fn run(command: Command, signals: &Signals, running: &CurrentCommand) -> Result<u8, String> {
    let problem = |error: io::Error| format!("apt-get: {error}");
    let mut child = running.start(command).map_err(problem)?;
    let mut is_asked = false;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(problem)? {
            break status;
        }
        if signals.any.swap(false, Ordering::Relaxed) {
            match std::mem::replace(&mut is_asked, true) {
                true => running.stop()?,
                false => {
                    let _ = kill_process(Pid::from_child(&child), Signal::TERM);
                }
            }
        }
        std::thread::sleep(LOOK_EVERY);
    };
    running.forget();
    Ok(exit_code(status))
}
