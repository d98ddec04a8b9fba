//! Workshop for things that are built once and kept.
//!
//! They are in a subdirectory of the state directory, each under a name that identifies its material.
//! Each is made in a directory next to it, which the guard removes, and gets its name when it is whole.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{statvfs, sync};

use super::program;
use crate::TreatmentError;
use trust::start::{self, Inherited};
use weigh_host::interruption;
use weigh_host::said;
use weigh_host::said::{Heard, KEPT_BYTES, Keep};
use weigh_host::undo::guard::Guard;
use weigh_host::undo::scratch;
use weigh_host::undo::scratch::SCRATCH;
use weigh_host::undo::state_dir::StateDir;
use weigh_model::printable;

/// A step that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(1200);
/// Time limit of a program that only looks.
const LOOKS_WITHIN: Duration = Duration::from_secs(60);
/// Interval of the progress lines while an image is built.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// A root file system twice, as a tree and as an image, with the packages that it is made of.
const ROOM_BYTES: u64 = 2 << 30;
/// Most bytes of a program's output: lists of a package manager are long.
const MOST_PRINTED: usize = 16 << 20;
/// So much of what a step says is told.
const TOLD_LINES: usize = 4;

pub struct Workshop<'a> {
    directory: WorkshopDirectory,
    guard: &'a mut Guard,
    interrupted: &'a AtomicBool,
}

/// Where everything that was built is. When dropped, it is removed if nothing was built.
struct WorkshopDirectory(PathBuf);

impl Drop for WorkshopDirectory {
    fn drop(&mut self) {
        // The kernel refuses to remove a directory with anything in it, and an empty one does no harm.
        let _ = fs::remove_dir(&self.0);
    }
}

impl<'a> Workshop<'a> {
    /// Below the directory of the state.
    pub fn open(
        guard: &'a mut Guard,
        interrupted: &'a AtomicBool,
    ) -> Result<Workshop<'a>, TreatmentError> {
        let directory = StateDir::open().map_err(unavailable)?.path("vm");
        if !directory.is_dir() {
            scratch::create(&directory).map_err(|error| within(&directory, &error))?;
        }
        Ok(Workshop { directory: WorkshopDirectory(directory), guard, interrupted })
    }

    /// Where all of it is.
    pub fn directory(&self) -> &Path {
        &self.directory.0
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
        let wanted = self.directory().join(name);
        if wanted.is_dir() {
            return Ok(wanted);
        }
        let status = statvfs(self.directory()).map_err(|error| unavailable(error.into()))?;
        let free = status.f_bavail.saturating_mul(status.f_frsize);
        if free < ROOM_BYTES {
            return Err(TreatmentError::Unavailable(format!(
                "building a virtual machine needs {} MiB in {}, but {} MiB are free: set XDG_STATE_HOME \
                 to a directory with more space",
                ROOM_BYTES >> 20,
                self.directory().display(),
                free >> 20
            )));
        }
        let beside = self.directory().join(scratch::name(std::process::id()).map_err(unavailable)?);
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

pub struct BuildStep<'a> {
    interrupted: &'a AtomicBool,
    /// For what is not kept.
    pub beside: &'a Path,
}

impl BuildStep<'_> {
    /// Runs a program in mount and process namespaces of its own, so that nothing of it outlives it; `what`
    /// is told while it takes. Gives what it printed.
    pub fn run(&self, what: &str, words: &[&str]) -> Result<String, TreatmentError> {
        let refused = |problem: String| TreatmentError::Unavailable(format!("{what}: {problem}"));
        let system = |error: io::Error| refused(error.to_string());
        let unshare = program("unshare").map_err(refused)?;
        let mut command = start::command(unshare, Inherited::Fixed);
        command.args(["--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--"]);
        command.args(words).env("LC_ALL", "C").env("TMPDIR", self.beside);
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .current_dir(self.beside)
            .stdin(Stdio::null());
        let mut heard = Heard::start_joined(command, Keep::Last(KEPT_BYTES)).map_err(system)?;
        let (began, mut told) = (Instant::now(), Instant::now());
        let ended = heard.wait(LIMIT, |_| {
            if told.elapsed() > TELL_EVERY {
                told = Instant::now();
                let seconds = began.elapsed().as_secs();
                let line = printable::line(&format!("{what}: {seconds} s"));
                let _ = writeln!(io::stderr(), "{line}");
            }
            !self.interrupted.load(Ordering::Relaxed)
        });
        self.goes_on()?;
        let text = heard.stdout.text();
        match ended.map_err(system)?.success() {
            true => Ok(text),
            false => Err(refused(last_words(&text))),
        }
    }

    /// Refuses to go on where the user gave up.
    pub fn goes_on(&self) -> Result<(), TreatmentError> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(TreatmentError::Interrupted),
            false => Ok(()),
        }
    }
}

/// Runs a program that only looks; returns its output and whether it succeeded.
///
/// # Errors
/// A sentence, also where the user gives up.
pub(super) fn output_of(program: &Path, words: &[&OsStr]) -> Result<(Vec<u8>, bool), String> {
    let say = |error: io::Error| format!("{}: {error}", program.display());
    let mut command = start::command(program, Inherited::Fixed);
    command.args(words).env("LC_ALL", "C").stdin(Stdio::null());
    let keep = [Keep::First(MOST_PRINTED), Keep::First(0)];
    let mut heard = Heard::start(command, keep).map_err(say)?;
    let status = heard.wait(LOOKS_WITHIN, |_| !interruption::has_come()).map_err(say)?;
    match heard.stdout.is_cut() {
        true => Err(format!("{} printed more than {} MiB", program.display(), MOST_PRINTED >> 20)),
        false => Ok((heard.stdout.bytes().to_owned(), status.success())),
    }
}

/// Returns advice where there is some, then the last lines of a program's output, each from its beginning.
fn last_words(printed: &str) -> String {
    let lines: Vec<&str> = printed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut last = &lines[lines.len().saturating_sub(TOLD_LINES)..];
    while last.len() > 1 && last.join("; ").chars().count() > said::WORDS_CHARS {
        last = &last[1..];
    }
    let last = said::words(last.join("\n").as_bytes());
    let last = last.trim_end_matches('.');
    match advice(printed) {
        Some(advice) => format!("{advice}. Last output: {last}"),
        None => last.to_owned(),
    }
}

/// Returns what is wrong and what to do.
fn advice(printed: &str) -> Option<&'static str> {
    const UNREACHED: [&str; 4] = [
        "Temporary failure resolving",
        "Could not resolve",
        "Could not connect",
        "Unable to connect",
    ];
    if printed.contains("No space left on device") {
        Some("the disk is full: set XDG_STATE_HOME to a directory with 2 GiB of free space")
    } else if UNREACHED.iter().any(|words| printed.contains(words)) {
        Some(
            "cannot reach the distribution's mirror: connect this machine, or use a local root file system \
             and kernel (vm:root=PATH,kernel=PATH)",
        )
    } else if printed.contains("Unable to locate package") || printed.contains("No packages found")
    {
        Some("apt's lists may be missing or old: run apt-get update")
    } else {
        None
    }
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
        assert!(
            of("write: No space left on device").starts_with("the disk is full: set XDG_STATE")
        );
        let unreached = of("Temporary failure resolving 'deb.debian.org'");
        assert!(unreached.starts_with("cannot reach the distribution's mirror: "), "{unreached}");
        let unknown = of("E: Unable to locate package x");
        assert!(
            unknown.contains("run apt-get update. Last output: two; three; four; E: "),
            "{unknown}"
        );
    }

    #[test]
    fn no_line_begins_in_its_middle() {
        let line = |name: &str| format!("Err:{name} {}\n", "x".repeat(150));
        let said = last_words(&["1", "2", "3", "4"].map(line).concat());
        assert!(said.starts_with("Err:3 xxx") && said.contains("; Err:4 xxx"), "{said}");
    }

    #[test]
    fn a_directory_is_left_only_if_something_is_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("vm");
        for (kept, is_left) in [(None, false), (Some("image"), true)] {
            fs::create_dir(&directory).unwrap();
            let workshop = WorkshopDirectory(directory.clone());
            kept.iter().for_each(|name| fs::write(directory.join(name), "").unwrap());
            drop(workshop);
            assert_eq!(directory.exists(), is_left, "{kept:?}");
        }
    }
}
