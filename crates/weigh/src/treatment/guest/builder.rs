//! What is built once and kept: in a directory below that of the state, each thing under a name that says
//! what went in. It is made in a directory beside, which the guard removes, and gets its name when it is
//! whole.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{statvfs, sync};
use rustix::process::{Pid, Signal, kill_process_group};

use super::program;
use crate::orphans;
use crate::printable;
use crate::treatment::TreatmentError;
use crate::treatment::guard::Guard;
use crate::treatment::scratch::{self, SCRATCH};
use crate::treatment::state_dir::StateDir;
use trust::program::{end_with_us, search_path};

/// A step that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(1200);
/// The same of one that only looks.
const LOOKS_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Who waits longer is told for what.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// A root file system twice, as a tree and as an image, with the packages that it is made of.
const ROOM_BYTES: u64 = 2 << 30;
/// So much of what a step says is told.
const TOLD_LINES: usize = 4;

pub struct Workshop<'a> {
    directory: PathBuf,
    guard: &'a mut Guard,
    interrupted: &'a AtomicBool,
}

impl<'a> Workshop<'a> {
    /// Below the directory of the state.
    ///
    /// # Errors
    /// Where that cannot be written to.
    pub fn open(
        guard: &'a mut Guard,
        interrupted: &'a AtomicBool,
    ) -> Result<Workshop<'a>, TreatmentError> {
        let directory = StateDir::open().map_err(unavailable)?.path("vm");
        if !directory.is_dir() {
            scratch::create(&directory).map_err(|error| within(&directory, &error))?;
        }
        Ok(Workshop { directory, guard, interrupted })
    }

    /// Where all of it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory of this name, which is made where it is not there: `make` is given an empty one.
    ///
    /// # Errors
    /// Where it cannot be made; nothing is left then.
    pub fn have(
        &mut self,
        name: &str,
        make: impl FnOnce(&BuildStep, &Path) -> Result<(), TreatmentError>,
    ) -> Result<PathBuf, TreatmentError> {
        let wanted = self.directory.join(name);
        if wanted.is_dir() {
            return Ok(wanted);
        }
        let status = statvfs(&self.directory).map_err(|error| unavailable(error.into()))?;
        let free = status.f_bavail.saturating_mul(status.f_frsize);
        if free < ROOM_BYTES {
            return Err(TreatmentError::Unavailable(format!(
                "a virtual machine takes {} MiB in {} while it is built, and {} MiB are free: set \
                 XDG_STATE_HOME to a directory with more",
                ROOM_BYTES >> 20,
                self.directory.display(),
                free >> 20
            )));
        }
        let beside = self.directory.join(scratch::name(std::process::id()));
        let instance = beside.display().to_string();
        let state = serde_json::to_value(&beside).map_err(|error| unavailable(error.into()))?;
        self.guard.write_down(SCRATCH, &instance, state).map_err(unavailable)?;
        scratch::create(&beside).map_err(|error| within(&beside, &error))?;
        let whole = beside.join("whole");
        let made = fs::create_dir(&whole).map_err(|error| within(&whole, &error));
        let step = BuildStep { interrupted: self.interrupted, beside: &beside };
        let made = made.and_then(|()| make(&step, &whole)).and_then(|()| {
            // It has its name only when all of it is on disk.
            sync();
            fs::rename(&whole, &wanted).map_err(|error| within(&wanted, &error))
        });
        let removed = self.guard.undo(SCRATCH, &instance).map_err(TreatmentError::Unavailable);
        made.and(removed).map(|()| wanted)
    }
}

/// What a step of building has.
pub struct BuildStep<'a> {
    interrupted: &'a AtomicBool,
    /// For what is not kept.
    pub beside: &'a Path,
}

impl BuildStep<'_> {
    /// Runs a program in mount and process namespaces of its own, so that nothing of it outlives it; `what`
    /// is told while it takes. Gives what it printed.
    ///
    /// # Errors
    /// With its last words.
    pub fn run(&self, what: &str, words: &[&str]) -> Result<String, TreatmentError> {
        let refused = |problem: String| TreatmentError::Unavailable(format!("{what}: {problem}"));
        let system = |error: io::Error| refused(error.to_string());
        let unshare = program("unshare").map_err(refused)?;
        let mut said = tempfile::tempfile_in(self.beside).map_err(system)?;
        let mut command = Command::new(unshare);
        command.args(["--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--"]);
        command
            .args(words)
            .env("PATH", search_path())
            .env("LC_ALL", "C")
            .env("TMPDIR", self.beside);
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .current_dir(self.beside)
            .stdin(Stdio::null());
        command.stdout(said.try_clone().map_err(system)?).process_group(0);
        command.stderr(said.try_clone().map_err(system)?);
        end_with_us(&mut command, Signal::KILL);
        let mut child = command.spawn().map_err(system)?;
        orphans::keep(child.id());
        let (began, mut told) = (Instant::now(), Instant::now());
        let ended = loop {
            match child.try_wait().map_err(system)? {
                Some(status) => break Ok(status),
                None if self.interrupted.load(Ordering::Relaxed) => {
                    break Err(TreatmentError::Interrupted);
                }
                None if began.elapsed() > LIMIT => break Err(refused("it does not end".into())),
                None => std::thread::sleep(LOOK_EVERY),
            }
            if told.elapsed() > TELL_EVERY {
                told = Instant::now();
                let seconds = began.elapsed().as_secs();
                let line = printable::line(&format!("{what}: {seconds} s"));
                let _ = writeln!(io::stderr(), "{line}");
            }
        };
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let _ = child.wait();
        orphans::forget(child.id());
        let text = text(&mut said);
        match ended?.success() {
            true => Ok(text),
            false => Err(refused(last_words(&text))),
        }
    }

    /// Refuses to go on where the user gave up.
    ///
    /// # Errors
    /// [`TreatmentError::Interrupted`]
    pub fn goes_on(&self) -> Result<(), TreatmentError> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(TreatmentError::Interrupted),
            false => Ok(()),
        }
    }
}

/// What a program printed that only looks, and whether it succeeded.
///
/// # Errors
/// A sentence, where it cannot be started or does not end.
pub(super) fn output_of(program: &Path, words: &[&OsStr]) -> Result<(Vec<u8>, bool), String> {
    let say = |error: io::Error| format!("{}: {error}", program.display());
    let mut printed = tempfile::tempfile().map_err(say)?;
    let mut command = Command::new(program);
    command.args(words).env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null());
    command.stdout(printed.try_clone().map_err(say)?);
    end_with_us(&mut command, Signal::KILL);
    let mut child = command.spawn().map_err(say)?;
    let began = Instant::now();
    let status = loop {
        match child.try_wait().map_err(say)? {
            Some(status) => break status,
            None if began.elapsed() < LOOKS_WITHIN => {
                std::thread::sleep(Duration::from_millis(5));
            }
            None => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{} does not end", program.display()));
            }
        }
    };
    let mut bytes = Vec::new();
    printed.rewind().and_then(|()| printed.read_to_end(&mut bytes)).map_err(say)?;
    Ok((bytes, status.success()))
}

/// What a program said last, with what to do about it.
fn last_words(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(TOLD_LINES)..].join("; ");
    let advice = if said.contains("No space left on device") {
        ". There is no room: set XDG_STATE_HOME to a directory with 2 GiB"
    } else if [
        "Temporary failure resolving",
        "Could not resolve",
        "Could not connect",
        "Unable to connect",
    ]
    .iter()
    .any(|words| said.contains(words))
    {
        ". The distribution's mirror cannot be reached: connect this machine, or name a root file system and \
         a kernel that are here (vm:root=PATH,kernel=PATH)"
    } else if said.contains("Unable to locate package") || said.contains("No packages found") {
        ". apt's lists may be missing or old: apt-get update"
    } else {
        ""
    };
    format!("{}{advice}", last.trim_end_matches('.'))
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(super) fn unavailable(error: io::Error) -> TreatmentError {
    TreatmentError::Unavailable(error.to_string())
}

pub(super) fn within(path: &Path, error: &io::Error) -> TreatmentError {
    TreatmentError::Unavailable(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_follows_what_a_program_said() {
        let of = |said: &str| last_words(&format!("one\ntwo\n\nthree\nfour\n{said}\n"));
        assert_eq!(of("five."), "two; three; four; five");
        assert!(of("write: No space left on device").contains("XDG_STATE_HOME"));
        assert!(of("Temporary failure resolving 'deb.debian.org'").contains("cannot be reached"));
        assert!(of("E: Unable to locate package x").ends_with("apt-get update"));
    }
}
