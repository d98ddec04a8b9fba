//! The guard: a process that undoes what an experiment changed when `weigh` dies, by whatever
//! signal, and the journal that both read, which survives them for `weigh restore`.
//!
//! A change is written down, and on disk, *before* it is made. Entries are undone last first.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{find, state_dir};
use crate::machine;

/// The hidden subcommand that turns `weigh` into a guard.
pub const SUBCOMMAND: &str = "__guard";

/// An entry that removes a directory tree instead of undoing a treatment.
const SCRATCH: &str = "scratch directory";

#[derive(Debug, Default, Serialize, Deserialize)]
struct Journal {
    /// The process that made the changes.
    pid: u32,
    /// In which life of the kernel it did so.
    boot_id: String,
    entries: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// The kind of treatment that undoes this, or [`SCRATCH`].
    kind: String,
    state: Value,
}

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
    /// Opens a journal and starts the guard.
    ///
    /// # Errors
    /// Where the state directory cannot be written to.
    pub fn arm() -> io::Result<Guard> {
        let pid = std::process::id();
        let path = state_dir::path()?.join(format!("{pid}.journal"));
        let journal = Journal { pid, boot_id: machine::boot_id(), entries: Vec::new() };
        write(&path, &journal)?;
        let lock = File::open(lock_path(&path)?)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let mut child = crate::own_program::command(SUBCOMMAND)
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
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
        fs::DirBuilder::new().mode(0o700).create(&directory)?;
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
        if let Some(mut pipe) = self.done.take() {
            let _ = pipe.write_all(b"done");
        }
        let _ = self.child.wait();
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

/// The journal is replaced with every entry, so the lock is on a file of its own beside it.
fn lock_path(journal: &Path) -> io::Result<PathBuf> {
    let path = journal.with_extension("lock");
    fs::OpenOptions::new().create(true).append(true).open(&path)?;
    Ok(path)
}

fn undo_journal(path: &Path) -> Result<(), String> {
    let say = |error: io::Error| format!("{}: {error}", path.display());
    let lock = File::open(lock_path(path).map_err(say)?).map_err(say)?;
    // The guard and `weigh restore` may both be at it: the second finds nothing left.
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| say(error.into()))?;
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let _ = fs::remove_file(path.with_extension("lock"));
            return Ok(());
        }
        other => other.map_err(say)?,
    };
    let mut journal: Journal = serde_json::from_slice(&text).map_err(|error| {
        format!(
            "the journal {} is damaged ({error}); see what `auditctl -s` and `-l` show",
            path.display()
        )
    })?;
    undo_all(path, &mut journal)
}

fn undo_all(path: &Path, journal: &mut Journal) -> Result<(), String> {
    let mut left = Vec::new();
    // A reboot undoes what was changed in the kernel. What stands there now is not ours to undo.
    if journal.boot_id != machine::boot_id() {
        journal.entries.retain(|entry| entry.kind == SCRATCH);
    }
    for entry in std::mem::take(&mut journal.entries).into_iter().rev() {
        if let Err(problem) = undo(&entry) {
            left.push(problem);
            journal.entries.insert(0, entry);
        }
    }
    if left.is_empty() {
        let _ = fs::remove_file(path);
        let _ = fs::remove_file(path.with_extension("lock"));
        return Ok(());
    }
    let _ = write(path, journal);
    Err(left.join("\n"))
}

fn undo(entry: &Entry) -> Result<(), String> {
    if entry.kind == SCRATCH {
        return remove_scratch(&entry.state);
    }
    match find(&entry.kind) {
        Some(kind) => kind.undo(&entry.state),
        None => {
            Err(format!("the journal names a treatment `{}` that this weigh lacks", entry.kind))
        }
    }
}

fn remove_scratch(state: &Value) -> Result<(), String> {
    let Some(directory) = state.as_str() else { return Ok(()) };
    // Workers that are just being killed may still create files.
    const ATTEMPTS: u32 = 20;
    for attempt in 1..=ATTEMPTS {
        match fs::remove_dir_all(directory) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) if attempt == ATTEMPTS => return Err(format!("{directory}: {error}")),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    }
    Ok(())
}

/// Replaces the journal in one step, and returns when it is on disk.
fn write(path: &Path, journal: &Journal) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(&serde_json::to_vec(journal)?)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(boot_id: String, scratch: &Path) -> Journal {
        let entry = |kind: &str, state| Entry { kind: kind.into(), state };
        // No kind of treatment has this name, so undoing its entry is an error.
        let entries = vec![
            entry(SCRATCH, Value::String(scratch.display().to_string())),
            entry("no such treatment", Value::Null),
        ];
        Journal { pid: 1, boot_id, entries }
    }

    #[test]
    fn what_cannot_be_undone_stays_in_the_journal_and_the_rest_is_undone() {
        let directory = tempfile::tempdir().unwrap();
        let (path, scratch) =
            (directory.path().join("1.journal"), directory.path().join("scratch"));
        fs::create_dir(&scratch).unwrap();
        write(&path, &journal(machine::boot_id(), &scratch)).unwrap();
        assert!(
            undo_journal(&path).unwrap_err().contains("no such treatment") && !scratch.exists()
        );
        let left: Journal = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(left.entries.len(), 1);
    }

    #[test]
    fn a_journal_of_an_earlier_boot_touches_the_kernel_no_more() {
        let directory = tempfile::tempdir().unwrap();
        let (path, scratch) =
            (directory.path().join("1.journal"), directory.path().join("scratch"));
        fs::create_dir(&scratch).unwrap();
        write(&path, &journal("another boot".into(), &scratch)).unwrap();
        assert!(undo_journal(&path).is_ok() && !scratch.exists() && !path.exists());
    }

    #[test]
    fn a_damaged_journal_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.journal");
        fs::write(&path, "{").unwrap();
        assert!(undo_journal(&path).unwrap_err().contains("1.journal is damaged"));
    }
}
