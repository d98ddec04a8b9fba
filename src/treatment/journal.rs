//! The journal: what was changed and how to undo it, in a file that survives every process.
//!
//! A change is written down, and on disk, *before* it is made. Entries are undone last first.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::find;
use super::settings::{self, SETTINGS};
use super::started::{self, STARTED};
use crate::machine;

/// An entry that removes a directory tree instead of undoing a treatment.
pub const SCRATCH: &str = "scratch directory";

/// What one experiment changed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Journal {
    /// The process that made the changes.
    pub pid: u32,
    /// In which life of the kernel it did so.
    pub boot_id: String,
    pub entries: Vec<Entry>,
}

/// One change.
#[derive(Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The kind of treatment that undoes this, or [`SCRATCH`], [`SETTINGS`] or [`STARTED`].
    pub kind: String,
    pub state: Value,
}

/// The journal is replaced with every entry, so the lock is on a file of its own beside it.
pub fn lock_path(journal: &Path) -> io::Result<PathBuf> {
    let path = journal.with_extension("lock");
    fs::OpenOptions::new().create(true).append(true).open(&path)?;
    Ok(path)
}

/// Undoes a journal of an experiment that is dead.
///
/// # Errors
/// A sentence that says what is left.
pub fn undo_journal(path: &Path) -> Result<(), String> {
    let say = |error: io::Error| format!("{}: {error}", path.display());
    let lock = File::open(lock_path(path).map_err(say)?).map_err(say)?;
    // The guard and `weigh restore` may both be at it: the second finds nothing left.
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| say(error.into()))?;
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            remove(path);
            return Ok(());
        }
        other => other.map_err(say)?,
    };
    let mut journal: Journal = serde_json::from_slice(&text).map_err(|error| {
        format!(
            "the journal {} is damaged ({error}); see what `auditctl -s` and `-l` show, mend that, and \
             delete the file",
            path.display()
        )
    })?;
    undo_all(path, &mut journal)
}

/// Undoes all entries, and removes the journal; those that cannot be undone stay.
///
/// # Errors
/// A sentence for each that stays.
pub fn undo_all(path: &Path, journal: &mut Journal) -> Result<(), String> {
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
        remove(path);
        return Ok(());
    }
    let _ = write(path, journal);
    Err(left.join("\n"))
}

/// Whoever died while it replaced a journal left the new one beside it.
pub fn remove(path: &Path) {
    for file in [path.to_owned(), path.with_extension("new"), path.with_extension("lock")] {
        let _ = fs::remove_file(file);
    }
}

/// Undoes one entry.
///
/// # Errors
/// A sentence that says what is left.
pub fn undo(entry: &Entry) -> Result<(), String> {
    if entry.kind == SCRATCH {
        return remove_scratch(&entry.state);
    }
    if entry.kind == SETTINGS {
        return settings::undo(&entry.state);
    }
    if entry.kind == STARTED {
        return started::undo(&entry.state);
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
pub fn write(path: &Path, journal: &Journal) -> io::Result<()> {
    let new = path.with_extension("new");
    let replace = || -> io::Result<()> {
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(journal)?)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    replace().map_err(|error| {
        let problem = format!(
            "cannot write the journal of changes, {}: {error}; without it nothing is changed. Make room \
             there, or set XDG_STATE_HOME to another directory",
            path.display()
        );
        io::Error::new(error.kind(), problem)
    })
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
        let half_written = path.with_extension("new");
        fs::write(&half_written, "{").unwrap();
        assert!(undo_journal(&path).is_ok() && !scratch.exists() && !path.exists());
        assert!(!half_written.exists());
    }

    #[test]
    fn a_damaged_journal_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.journal");
        fs::write(&path, "{").unwrap();
        assert!(undo_journal(&path).unwrap_err().contains("1.journal is damaged"));
    }
}
