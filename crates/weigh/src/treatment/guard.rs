//! The guard: a process that undoes what an experiment changed when `weigh` dies, by whatever
//! signal. Both read the journal, which survives them for `weigh restore`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::Value;

use super::claim::Claim;
use super::journal::{
    Journal, JournalEntry, JournalPlace, Undoing, undo, undo_all, undo_journal, write,
};
use super::scratch::{self, SCRATCH};
use super::state_dir::{StateDir, journal_name, lock_name, pid_of};
use crate::own_program::see_off;
use crate::{machine, orphans};

/// The hidden subcommand that turns `weigh` into a guard.
pub const SUBCOMMAND: &str = "__guard";

/// The running guard of one experiment.
pub struct Guard {
    directory: StateDir,
    name: String,
    /// As [`JournalPlace::root`].
    root: PathBuf,
    /// Held, so that nobody takes this journal for one that was left behind.
    _lock: File,
    /// Held by the guard too: nobody may take what they are on before it is put back.
    _claims: Vec<Claim>,
    journal: Journal,
    undoings: Vec<Undoing>,
    child: Child,
    done: Option<ChildStdin>,
}

impl Guard {
    /// Opens a journal of what `undoings` can undo, and starts the guard. Both hold the claims on what exists
    /// once per kernel.
    ///
    /// # Errors
    /// Where the state directory cannot be written to.
    pub fn arm(claims: Vec<Claim>, undoings: Vec<Undoing>) -> io::Result<Guard> {
        Guard::arm_below(Path::new("/"), claims, undoings)
    }

    /// The same for settings below this directory.
    ///
    /// # Errors
    /// As [`Guard::arm`].
    pub fn arm_below(root: &Path, claims: Vec<Claim>, undoings: Vec<Undoing>) -> io::Result<Guard> {
        // Before the first child of ours, so that it is not taken for one that was there before.
        orphans::adopt()?;
        let pid = std::process::id();
        let (directory, name) = (StateDir::open()?, journal_name(pid));
        let journal = Journal { pid, boot_id: machine::boot_id(), entries: Vec::new() };
        // The lock first: a journal without one is taken for one that was left behind.
        let lock = directory.lock_file(&lock_name(&name))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let nothing_to_undo = |error| {
            directory.remove_journal(&name);
            error
        };
        let place = JournalPlace { directory: &directory, name: &name, root, undoings: &undoings };
        write(&place, &journal).map_err(nothing_to_undo)?;
        let mut command = crate::own_program::command(SUBCOMMAND);
        command.arg(directory.path(&name)).arg(root).stdin(Stdio::piped()).stdout(Stdio::null());
        let files: Vec<RawFd> =
            claims.iter().flat_map(Claim::files).map(|file| file.as_raw_fd()).collect();
        // SAFETY: between fork and exec there is one system call per claim, and no allocation; the files
        // are open until the claims are dropped.
        unsafe {
            command.pre_exec(move || {
                let mut files = files.iter().map(|&file| BorrowedFd::borrow_raw(file));
                files.try_for_each(|file| Ok(fcntl_setfd(file, FdFlags::empty())?))
            });
        }
        let mut child = command.spawn().map_err(nothing_to_undo).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot start the guard process: {error}"))
        })?;
        orphans::keep(child.id());
        let done = child.stdin.take();
        let (root, _lock, _claims) = (root.to_owned(), lock, claims);
        Ok(Guard { directory, name, root, _lock, _claims, journal, undoings, child, done })
    }

    fn place(&self) -> JournalPlace<'_> {
        let Guard { directory, name, root, undoings, .. } = self;
        JournalPlace { directory, name, root, undoings }
    }

    /// Makes a private directory under `TMPDIR` that goes when the experiment does.
    ///
    /// # Errors
    /// Where it cannot be created or journalled, or others could replace it.
    pub fn scratch_directory(&mut self) -> io::Result<PathBuf> {
        let cannot_create = |error: io::Error| {
            let place = std::env::temp_dir();
            let problem = format!("cannot create a directory in {}: {error}", place.display());
            io::Error::new(error.kind(), problem + "; set TMPDIR to another")
        };
        let place = scratch::place().map_err(cannot_create)?;
        let directory = place.join(scratch::name(self.journal.pid));
        let instance = directory.display().to_string();
        self.write_down(SCRATCH, &instance, serde_json::to_value(&directory)?)?;
        scratch::create(&directory).map_err(cannot_create)?;
        Ok(directory)
    }

    /// Writes down how to undo what is about to be done to `instance`, which tells it from others of this
    /// kind: what is changed, in a word. Replaces its earlier entry.
    ///
    /// # Errors
    /// Where the journal cannot be written: then the change must not be made.
    pub fn write_down(&mut self, kind: &str, instance: &str, state: Value) -> io::Result<()> {
        match self.position(kind, instance) {
            Some(index) => self.journal.entries[index].state = state,
            None => {
                let (kind, instance) = (kind.to_owned(), instance.to_owned());
                self.journal.entries.push(JournalEntry { kind, instance, state });
            }
        }
        write(&self.place(), &self.journal)
    }

    fn position(&self, kind: &str, instance: &str) -> Option<usize> {
        let mut entries = self.journal.entries.iter();
        entries.position(|entry| entry.kind == kind && entry.instance == instance)
    }

    /// Undoes this entry now, and strikes it out.
    ///
    /// # Errors
    /// A sentence that says what is left; the entry stays.
    pub fn undo(&mut self, kind: &str, instance: &str) -> Result<(), String> {
        let Some(index) = self.position(kind, instance) else { return Ok(()) };
        undo(&self.place(), &self.journal.entries[index], self.journal.pid)?;
        self.journal.entries.remove(index);
        write(&self.place(), &self.journal).map_err(|error| error.to_string())
    }

    /// Strikes out what was undone by other means.
    ///
    /// # Errors
    /// A sentence, where the journal cannot be written.
    pub fn strike_out(&mut self, kind: &str, instance: &str) -> Result<(), String> {
        let Some(index) = self.position(kind, instance) else { return Ok(()) };
        self.journal.entries.remove(index);
        write(&self.place(), &self.journal).map_err(|error| error.to_string())
    }

    /// Undoes what is left and lets the guard go.
    ///
    /// # Errors
    /// Sentences that say what is left; the journal stays for `weigh restore`.
    pub fn disarm(mut self) -> Result<(), String> {
        let mut journal = std::mem::take(&mut self.journal);
        let result = undo_all(&self.place(), &mut journal);
        if let Some(pipe) = &mut self.done {
            let _ = pipe.write_all(b"done");
        }
        drop(self.done.take());
        see_off(&mut self.child);
        result
    }
}

/// The guard process, told its journal and the root of its settings: waits for the end of stdin and, unless
/// it was told that all is done, undoes what the journal holds.
///
/// # Errors
/// A sentence that says what is left.
pub fn run(
    mut arguments: impl Iterator<Item = OsString>,
    undoings: &[Undoing],
) -> Result<(), String> {
    let (Some(journal), Some(root)) = (arguments.next(), arguments.next()) else {
        return Err("the guard needs a journal and a root".into());
    };
    let mut said = Vec::new();
    let _ = io::stdin().lock().read_to_end(&mut said);
    if said == b"done" {
        return Ok(());
    }
    let journal = Path::new(&journal);
    let say = |error: io::Error| format!("{}: {error}", journal.display());
    let (Some(parent), Some(name)) =
        (journal.parent(), journal.file_name().and_then(|name| name.to_str()))
    else {
        return Err(format!("{} is no journal", journal.display()));
    };
    let directory = StateDir::at(parent).map_err(say)?;
    undo_journal(&JournalPlace { directory: &directory, name, root: Path::new(&root), undoings })
}

/// What `restore` did about one journal.
pub struct Restored {
    pub journal: PathBuf,
    /// `Err` with what is left.
    pub result: Result<(), String>,
}

/// Undoes every journal that was left behind: those whose experiment no longer runs. `root` is that of the
/// settings.
///
/// # Errors
/// Where the state directory cannot be read.
pub fn restore_left_behind(root: &Path, undoings: &[Undoing]) -> io::Result<Vec<Restored>> {
    let directory = StateDir::open()?;
    // Nothing was changed yet by who died before its journal was whole. One that lives may only just have
    // made the lock.
    for name in directory.unfinished_journals()? {
        if !is_alive(&name) && !is_locked(&directory, &name) {
            directory.remove_journal(&name);
        }
    }
    let mut restored = Vec::new();
    for name in directory.journals()? {
        if !is_running(&directory, &name) {
            let place = JournalPlace { directory: &directory, name: &name, root, undoings };
            let result = undo_journal(&place);
            restored.push(Restored { journal: directory.path(&name), result });
        }
    }
    Ok(restored)
}

/// Puts back what weighs that died had changed in the system below `root`, before another changes anything or
/// takes what was changed for how the machine is; tells of it.
///
/// # Errors
/// A sentence that says what is left.
pub fn put_back_what_was_left(
    root: &Path,
    undoings: &[Undoing],
    announce: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let restored = restore_left_behind(root, undoings)
        .map_err(|error| format!("the state directory: {error}"))?;
    for one in restored {
        one.result.map_err(|problem| format!("an earlier weigh left this behind: {problem}"))?;
        announce("Put back what an earlier weigh, now dead, had changed.");
    }
    Ok(())
}

/// Whether the experiment of this journal still runs: its process lives and holds the lock. (The
/// lock alone may be held by its guard, at work; then it is right to wait for that.)
fn is_running(directory: &StateDir, journal: &str) -> bool {
    is_locked(directory, journal) && is_alive(journal)
}

fn is_locked(directory: &StateDir, journal: &str) -> bool {
    directory
        .lock_file(&lock_name(journal))
        .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_err())
}

fn is_alive(journal: &str) -> bool {
    let pid = pid_of(journal).and_then(|pid| i32::try_from(pid).ok());
    pid.and_then(rustix::process::Pid::from_raw)
        .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}
