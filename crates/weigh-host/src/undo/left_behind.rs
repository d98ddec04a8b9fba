//! Remains of experiments that died with their guards: where their journals are, and how they are
//! undone.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::undo::claim::{Claim, LOCKS, journals_of_claims};
use crate::undo::journal::{JournalPlace, Undoing, undo_journal};
use crate::undo::state_dir::{StateDir, lock_name, pid_of};
use trust::path::occupied;

pub struct Restored {
    pub journal: PathBuf,
    /// `Err` with what is left.
    pub result: Result<(), String>,
}

/// Findings about experiments that died.
pub struct LeftBehind {
    /// The state directories that were searched.
    pub searched: Vec<PathBuf>,
    pub restored: Vec<Restored>,
}

/// Undoes every journal that was left behind: those whose experiment no longer runs. It looks in our own
/// state directory, and as root in those of all who have claimed something of the kernel since it booted.
/// `root` is that of the settings.
pub fn restore_left_behind(root: &Path, undoings: &[Undoing]) -> Result<LeftBehind, String> {
    let own = own_state_dir()?;
    let mut found = LeftBehind { searched: Vec::new(), restored: Vec::new() };
    restore_in(&own, root, undoings, &mut found)?;
    // A machine that is made up of files is that of one caller alone.
    if root != Path::new("/") {
        return Ok(found);
    }
    let journals = journals_of_claims().unwrap_or_else(|error| {
        let result = Err(format!("cannot read root's locks, which name other journals: {error}"));
        found.restored.push(Restored { journal: LOCKS.into(), result });
        Vec::new()
    });
    let parents = journals.iter().filter_map(|journal| journal.parent().map(Path::to_owned));
    let others: BTreeSet<PathBuf> = parents.filter(|path| *path != own.place()).collect();
    for other in others {
        let searched = existing(&other).and_then(|directory| match directory {
            Some(directory) => restore_in(&directory, root, undoings, &mut found),
            None => Ok(()),
        });
        if searched.is_err() {
            found.restored.push(Restored { journal: other, result: searched });
        }
    }
    Ok(found)
}

/// Opens the state directory of this user.
///
/// # Errors
/// A sentence.
pub fn own_state_dir() -> Result<StateDir, String> {
    StateDir::open().map_err(|error| format!("cannot use the state directory: {error}"))
}

/// Opens another state directory; `None` where it is gone, also if another user has its place now: nobody
/// else's directory was one of ours, and it must not block us.
fn existing(path: &Path) -> Result<Option<StateDir>, String> {
    let is_theirs = occupied(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if let Some(theirs) = is_theirs {
        let path = path.display();
        eprintln!("weigh: the journals in {path} are gone: {theirs}, and is left alone");
        return Ok(None);
    }
    match StateDir::at(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some).map_err(|error| {
            format!(
                "cannot use the state directory {} of an earlier experiment: {error}",
                path.display()
            )
        }),
    }
}

fn restore_in(
    directory: &StateDir,
    root: &Path,
    undoings: &[Undoing],
    found: &mut LeftBehind,
) -> Result<(), String> {
    let say = |error: io::Error| format!("{}: {error}", directory.place().display());
    // Nothing was changed yet by who died before its journal was whole. One that lives may only just have
    // made the lock.
    for name in directory.unfinished_journals().map_err(say)? {
        if !is_alive(&name) && !is_locked(directory, &name).map_err(say)? {
            let _ = directory.remove_journal(&name);
        }
    }
    for name in directory.journals().map_err(say)? {
        restore_one(directory, &name, (root, undoings), found);
    }
    found.searched.push(directory.place().to_owned());
    Ok(())
}

/// One that may still run is left alone, and what keeps us from knowing is told.
fn restore_one(
    directory: &StateDir,
    name: &str,
    (root, undoings): (&Path, &[Undoing]),
    found: &mut LeftBehind,
) {
    let result = match is_running(directory, name) {
        Ok(true) => return,
        Ok(false) => undo_journal(&JournalPlace { directory, name, root, undoings }),
        Err(error) => Err(format!("{}: {error}", directory.path(&lock_name(name)).display())),
    };
    found.restored.push(Restored { journal: directory.path(name), result });
}

/// Puts back what weighs that died had changed in the system below `root`, before another changes anything or
/// takes what was changed for how the machine is; tells of it.
pub fn put_back_what_was_left(
    root: &Path,
    undoings: &[Undoing],
    announce: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let mut found = LeftBehind { searched: Vec::new(), restored: Vec::new() };
    restore_in(&own_state_dir()?, root, undoings, &mut found)?;
    tell(found, announce)
}

/// Undoes the changes of dead experiments that had these claims before us, in any state directory.
/// The present holder of a claim knows that the last claimant is dead, with its guard.
pub fn put_back_what_was_claimed(
    claims: &[Claim],
    undoings: &[Undoing],
    announce: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let mut found = LeftBehind { searched: Vec::new(), restored: Vec::new() };
    for claim in claims {
        let journal = claim.last_journal().map_err(|error| error.to_string())?;
        let Some((place, name)) = journal.as_deref().and_then(in_directory) else { continue };
        let Some(directory) = existing(place)? else { continue };
        if directory.has(name).map_err(|error| format!("{}: {error}", place.display()))? {
            restore_one(&directory, name, (Path::new("/"), undoings), &mut found);
        }
    }
    tell(found, announce)
}

fn in_directory(journal: &Path) -> Option<(&Path, &str)> {
    Some((journal.parent()?, journal.file_name()?.to_str()?))
}

fn tell(found: LeftBehind, announce: &mut dyn FnMut(&str)) -> Result<(), String> {
    for one in found.restored {
        one.result.map_err(|problem| {
            format!("cannot undo the changes of an earlier experiment: {problem}")
        })?;
        announce("Undid the changes of an earlier experiment that was killed.");
    }
    Ok(())
}

/// Returns true if the experiment of this journal still runs: its process lives and holds the lock.
/// (If the guard is at work, it may hold the lock alone; then it is right to wait for the guard.)
fn is_running(directory: &StateDir, journal: &str) -> io::Result<bool> {
    Ok(is_alive(journal) && is_locked(directory, journal)?)
}

fn is_locked(directory: &StateDir, journal: &str) -> io::Result<bool> {
    let lock = directory.lock_file(&lock_name(journal))?;
    match flock(&lock, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Ok(true),
        other => Ok(other.map(|()| false)?),
    }
}

/// Also one that we may not signal.
fn is_alive(journal: &str) -> bool {
    let pid = pid_of(journal).and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::undo::state_dir::journal_name;

    /// A number that no process can have.
    const DEAD: u32 = 5_000_000;

    fn state_dir() -> (tempfile::TempDir, StateDir) {
        let home = tempfile::tempdir().unwrap();
        let directory = StateDir::at(home.path()).unwrap();
        (home, directory)
    }

    fn add_journal(directory: &StateDir, pid: u32) {
        let journal = format!(r#"{{"pid":{pid},"boot_id":"","entries":[]}}"#);
        directory.replace(&journal_name(pid), journal.as_bytes()).unwrap();
    }

    fn restored(directory: &StateDir) -> LeftBehind {
        let mut found = LeftBehind { searched: Vec::new(), restored: Vec::new() };
        restore_in(directory, Path::new("/nonexistent"), &[], &mut found).unwrap();
        assert_eq!(found.searched, [directory.place()]);
        found
    }

    #[test]
    fn a_journal_is_undone_unless_its_process_lives_and_has_its_lock() {
        let (_home, directory) = state_dir();
        let own = journal_name(std::process::id());
        [DEAD, std::process::id()].iter().for_each(|pid| add_journal(&directory, *pid));
        let lock = directory.lock_file(&lock_name(&own)).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let found = restored(&directory).restored;
        assert_eq!((found.len(), &found[0].result), (1, &Ok(())));
        assert_eq!(found[0].journal, directory.path(&journal_name(DEAD)));
        assert_eq!(directory.journals().unwrap(), [&*own]);
        // Its number is that of another process by now.
        drop(lock);
        directory.wait_until_unlocked(&lock_name(&own));
        assert_eq!(restored(&directory).restored.len(), 1);
        assert_eq!(directory.journals().unwrap(), [""; 0]);
    }

    #[test]
    fn a_lock_without_a_journal_goes_unless_somebody_may_need_it() {
        let (_home, directory) = state_dir();
        let [own, dead, guarded] =
            [std::process::id(), DEAD, DEAD + 1].map(|pid| lock_name(&journal_name(pid)));
        let locks = [&own, &dead, &guarded].map(|lock| directory.lock_file(lock).unwrap());
        flock(&locks[2], FlockOperation::LockExclusive).unwrap();
        assert_eq!(restored(&directory).restored.len(), 0);
        assert_eq!(
            [own, dead, guarded].map(|lock| directory.has(&lock).unwrap()),
            [true, false, true]
        );
    }

    #[test]
    fn a_journal_that_cannot_be_undone_is_told_with_its_problem() {
        let (_home, directory) = state_dir();
        let mut told = Vec::new();
        add_journal(&directory, DEAD);
        tell(restored(&directory), &mut |line| told.push(line.to_owned())).unwrap();
        assert_eq!(told, ["Undid the changes of an earlier experiment that was killed."]);
        directory.replace(&journal_name(DEAD), b"{").unwrap();
        let problem = tell(restored(&directory), &mut |line| told.push(line.to_owned()));
        assert!(problem.unwrap_err().contains("is damaged") && told.len() == 1);
    }

    #[test]
    fn another_state_directory_may_be_gone_but_not_refuse_itself() {
        use std::os::unix::fs::PermissionsExt;
        let (home, directory) = state_dir();
        let found = existing(home.path()).unwrap().expect("it is there");
        assert_eq!(found.place(), directory.place());
        assert!(existing(&home.path().join("gone")).unwrap().is_none());
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let refused = existing(home.path()).map(drop).unwrap_err();
        assert!(refused.starts_with("cannot use the state directory"), "{refused}");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(home.path(), Some(65534), None).unwrap();
            assert!(existing(home.path()).unwrap().is_none(), "another user's blocks nothing");
            assert!(existing(&home.path().join("below")).unwrap().is_none());
        }
        let journal = Path::new("/state/7.journal");
        assert_eq!(in_directory(journal), Some((Path::new("/state"), "7.journal")));
    }
}
