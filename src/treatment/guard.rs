//! The guard: a process that undoes what an experiment changed when `weigh` dies, by whatever
//! signal. Both read the journal, which survives them for `weigh restore`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::Value;

use super::journal::{
    Entry, Journal, SCRATCH, lock_path, remove, undo, undo_all, undo_journal, write,
};
use super::state_dir;
use crate::own_program::see_off;
use crate::{machine, orphans};

/// The hidden subcommand that turns `weigh` into a guard.
pub const SUBCOMMAND: &str = "__guard";

/// The running guard of one experiment.
pub struct Guard {
    path: PathBuf,
    /// Held, so that nobody takes this journal for one that was left behind.
    _lock: File,
    journal: Journal,
    child: Child,
    done: Option<ChildStdin>,
}

impl Guard {
    /// Opens a journal and starts the guard, which holds the claims on what exists once per kernel as
    /// long as it lives: nobody may take it before it is put back.
    ///
    /// # Errors
    /// Where the state directory cannot be written to.
    pub fn arm(claims: Vec<UnixListener>) -> io::Result<Guard> {
        let pid = std::process::id();
        let path = state_dir::path()?.join(format!("{pid}.journal"));
        let journal = Journal { pid, boot_id: machine::boot_id(), entries: Vec::new() };
        // The lock first: a journal without one is taken for one that was left behind.
        let lock = File::open(lock_path(&path)?)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        write(&path, &journal)?;
        let mut command = crate::own_program::command(SUBCOMMAND);
        command.arg(&path).stdin(Stdio::piped()).stdout(Stdio::null());
        // SAFETY: between fork and exec there is one system call per claim, and no allocation.
        unsafe {
            command.pre_exec(move || {
                let inherit = |claim| fcntl_setfd(claim, FdFlags::empty());
                claims.iter().try_for_each(inherit).map_err(io::Error::from)
            });
        }
        let mut child = command.spawn().map_err(|error| {
            // Nothing was changed, so nothing is left to undo.
            remove(&path);
            io::Error::new(error.kind(), format!("cannot start the guard process: {error}"))
        })?;
        orphans::keep(child.id());
        let done = child.stdin.take();
        Ok(Guard { path, _lock: lock, journal, child, done })
    }

    /// Makes a private directory under `TMPDIR` that goes when the experiment does.
    ///
    /// # Errors
    /// Where it cannot be created or journalled.
    pub fn scratch_directory(&mut self) -> io::Result<PathBuf> {
        let name = format!("weigh-{}-{:08x}", self.journal.pid, rand::random::<u32>());
        let directory = std::env::temp_dir().join(name);
        self.write_down(SCRATCH, serde_json::to_value(&directory)?)?;
        fs::DirBuilder::new().mode(0o700).create(&directory).map_err(|error| {
            let place = std::env::temp_dir();
            let problem = format!("cannot create a directory in {}: {error}", place.display());
            io::Error::new(error.kind(), problem + "; set TMPDIR to another")
        })?;
        Ok(directory)
    }

    /// Writes down how to undo what is about to be done; replaces this kind's earlier entry.
    ///
    /// # Errors
    /// Where the journal cannot be written: then the change must not be made.
    pub fn write_down(&mut self, kind: &str, state: Value) -> io::Result<()> {
        match self.journal.entries.iter_mut().find(|entry| entry.kind == kind) {
            Some(entry) => entry.state = state,
            None => self.journal.entries.push(Entry { kind: kind.into(), state }),
        }
        write(&self.path, &self.journal)
    }

    /// Undoes the entry of this kind now, and strikes it out.
    ///
    /// # Errors
    /// A sentence that says what is left; the entry stays.
    pub fn undo(&mut self, kind: &str) -> Result<(), String> {
        let Some(index) = self.journal.entries.iter().position(|entry| entry.kind == kind) else {
            return Ok(());
        };
        undo(&self.journal.entries[index])?;
        self.journal.entries.remove(index);
        write(&self.path, &self.journal).map_err(|error| error.to_string())
    }

    /// Undoes what is left and lets the guard go.
    ///
    /// # Errors
    /// Sentences that say what is left; the journal stays for `weigh restore`.
    pub fn disarm(mut self) -> Result<(), String> {
        let result = undo_all(&self.path, &mut self.journal);
        if let Some(pipe) = &mut self.done {
            let _ = pipe.write_all(b"done");
        }
        drop(self.done.take());
        see_off(&mut self.child);
        result
    }
}

/// The guard process: waits for the end of stdin and, unless it was told that all is done, undoes
/// what the journal holds.
///
/// # Errors
/// A sentence that says what is left.
pub fn run(journal: &Path) -> Result<(), String> {
    let mut said = Vec::new();
    let _ = io::stdin().lock().read_to_end(&mut said);
    if said == b"done" { Ok(()) } else { undo_journal(journal) }
}

/// What `restore` did about one journal.
pub struct Restored {
    pub journal: PathBuf,
    /// `Err` with what is left.
    pub result: Result<(), String>,
}

/// Undoes every journal that was left behind: those whose experiment no longer runs.
///
/// # Errors
/// Where the state directory cannot be read.
pub fn restore_left_behind() -> io::Result<Vec<Restored>> {
    let mut restored = Vec::new();
    for entry in fs::read_dir(state_dir::path()?)? {
        let journal = entry?.path();
        if journal.extension().is_some_and(|extension| extension == "journal")
            && !is_running(&journal)
        {
            let result = undo_journal(&journal);
            restored.push(Restored { journal, result });
        }
    }
    Ok(restored)
}

/// Whether the experiment of this journal still runs: its process lives and holds the lock. (The
/// lock alone may be held by its guard, at work; then it is right to wait for that.)
fn is_running(journal: &Path) -> bool {
    let is_held = lock_path(journal)
        .and_then(File::open)
        .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_err());
    let pid = journal.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
    let is_alive = pid
        .and_then(rustix::process::Pid::from_raw)
        .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok());
    is_held && is_alive
}
