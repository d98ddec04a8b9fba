//! The guard: a process that undoes what an experiment changed when `weigh` dies, by whatever
//! signal. It reads the journal, which survives both for `weigh restore`. If somebody removed that file, it
//! uses the copy in memory that it shares with `weigh`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, MemfdFlags, flock, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::machine;
use crate::orphans;
use crate::orphans::wait_until;
use crate::own_program::see_off;
use crate::undo::claim::Claim;
use crate::undo::journal::{
    Journal, JournalEntry, JournalPlace, Undoing, undo, undo_all, undo_journal, write,
};
use crate::undo::queue::Holder;
use crate::undo::running::CurrentCommand;
use crate::undo::scratch;
use crate::undo::scratch::SCRATCH;
use crate::undo::state_dir::{StateDir, journal_name, lock_name};
use trust::start;

/// The hidden subcommand that turns `weigh` into a guard.
pub const SUBCOMMAND: &str = "__guard";

/// Time limit for the guard to undo what `weigh` could not. This may include the user's commands.
const TRIES_FOR: Duration = Duration::from_secs(180);

pub struct Guard {
    directory: StateDir,
    name: String,
    /// As [`JournalPlace::root`].
    root: PathBuf,
    /// Held, so that nobody takes this journal for one that was left behind.
    lock: Option<File>,
    /// Also held by the guard: no other experiment can claim a setting before the guard restores it.
    _claims: Vec<Claim>,
    journal: Journal,
    undoings: Vec<Undoing>,
    child: Child,
    done: Option<ChildStdin>,
    /// Copy of the journal, in memory shared with the guard. If empty, the guard uses only the file.
    copy: File,
    running: Rc<CurrentCommand>,
}

impl Guard {
    /// Opens a journal of what `undoings` can undo, and starts the guard. Both hold the claims on what exists
    /// once per kernel.
    pub fn arm(claims: Vec<Claim>, undoings: Vec<Undoing>) -> io::Result<Guard> {
        Guard::arm_below(Path::new("/"), claims, undoings)
    }

    /// Opens a journal and starts the guard, for settings below `root`.
    pub fn arm_below(root: &Path, claims: Vec<Claim>, undoings: Vec<Undoing>) -> io::Result<Guard> {
        // Before the first child is started: existing children count as those of the calling shell.
        orphans::adopt()?;
        let pid = std::process::id();
        let (directory, name) = (StateDir::open()?, journal_name(pid));
        let journal = Journal { pid, boot_id: machine::boot_id()?, entries: Vec::new() };
        let place = JournalPlace { directory: &directory, name: &name, root, undoings: &undoings };
        // Lock first: a journal without a lock counts as left over from a dead experiment.
        let lock = lock_new_journal(&place)?;
        let nothing_to_undo = |error| {
            let _ = directory.remove_journal(&name);
            error
        };
        // Whoever finds a claim taken reads there whose it is. A disk that takes no name takes no journal.
        let _ = Holder::this().map_err(nothing_to_undo)?.write_into(&lock);
        write(&place, &journal).map_err(nothing_to_undo)?;
        let path = directory.path(&name);
        claims.iter().try_for_each(|claim| claim.name_journal(&path)).map_err(nothing_to_undo)?;
        let mut command = crate::own_program::command(SUBCOMMAND);
        let copy = memfd_create("journal", MemfdFlags::CLOEXEC);
        let copy = File::from(copy.map_err(io::Error::from).map_err(nothing_to_undo)?);
        let its_copy = format!("/proc/self/fd/{}", copy.as_raw_fd());
        command.arg(path).arg(root).arg(its_copy).stdin(Stdio::piped()).stdout(Stdio::null());
        let files = claims.iter().flat_map(Claim::files).map(|file| file.as_raw_fd());
        let files: Vec<RawFd> = files.chain([copy.as_raw_fd()]).collect();
        // They are open until the claims are dropped.
        start::hand_over(&mut command, files);
        let mut child = command.spawn().map_err(nothing_to_undo).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot start the guard process: {error}"))
        })?;
        orphans::keep(child.id());
        let done = child.stdin.take();
        let running = Rc::new(CurrentCommand::of(&directory, &name).guarded_by(&child));
        running.know_journal()?;
        let (root, lock, _claims) = (root.to_owned(), Some(lock), claims);
        Ok(Guard {
            directory,
            name,
            root,
            lock,
            _claims,
            journal,
            undoings,
            child,
            done,
            copy,
            running,
        })
    }

    /// Where commands are kept that change the system, for as long as they run.
    pub fn running(&self) -> &Rc<CurrentCommand> {
        &self.running
    }

    fn place(&self) -> JournalPlace<'_> {
        let Guard { directory, name, root, undoings, .. } = self;
        JournalPlace { directory, name, root, undoings }
    }

    /// Makes a private directory under `TMPDIR` that goes when the experiment does.
    pub fn scratch_directory(&mut self) -> io::Result<PathBuf> {
        let cannot_create = |error: io::Error| {
            let place = std::env::temp_dir();
            let problem = format!("cannot create a directory in {}: {error}", place.display());
            io::Error::new(error.kind(), problem + "; set TMPDIR to a different directory")
        };
        self.private_directory(&std::env::temp_dir()).map_err(cannot_create)
    }

    /// Makes a private directory in this one that goes when the experiment does.
    ///
    /// # Errors
    /// As [`trust::path::trusted`]: the path may come from a store, and its owner may have changed since.
    pub fn private_directory(&mut self, place: &Path) -> io::Result<PathBuf> {
        let directory = trust::path::trusted(place)?.join(scratch::name(self.journal.pid)?);
        let instance = directory.display().to_string();
        self.write_down(SCRATCH, &instance, serde_json::to_value(&directory)?)?;
        scratch::create(&directory)?;
        Ok(directory)
    }

    /// Journals how to undo the next change of `instance`, and replaces an earlier entry for it. `instance`
    /// names the changed thing within its `kind`.
    ///
    /// # Errors
    /// If the journal cannot be written, or the journal or the guard is gone. Do not make the change then.
    pub fn write_down(&mut self, kind: &str, instance: &str, state: Value) -> io::Result<()> {
        self.running.check_undoing()?;
        match self.position(kind, instance) {
            Some(index) => self.journal.entries[index].state = state,
            None => {
                let (kind, instance) = (kind.to_owned(), instance.to_owned());
                self.journal.entries.push(JournalEntry { kind, instance, state });
            }
        }
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        write(&self.place(), &self.journal)?;
        let mut copy = serde_json::to_vec(&self.journal)?;
        copy.push(b'\n');
        // What is behind the first line is of an older, longer copy, if `weigh` dies before it is cut off.
        self.copy.write_all_at(&copy, 0)?;
        self.copy.set_len(copy.len() as u64)?;
        self.running.know_journal()
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
        self.write().map_err(|error| error.to_string())
    }

    /// Strikes out what was undone by other means.
    pub fn strike_out(&mut self, kind: &str, instance: &str) -> Result<(), String> {
        let Some(index) = self.position(kind, instance) else { return Ok(()) };
        self.journal.entries.remove(index);
        self.write().map_err(|error| error.to_string())
    }

    /// Undoes the remaining entries and ends the guard. If this process fails (out of memory or files, say),
    /// the guard tries: it has its own of both.
    ///
    /// # Errors
    /// Sentences that say what is left; the journal stays for `weigh restore`.
    pub fn disarm(mut self) -> Result<(), String> {
        let mut journal = std::mem::take(&mut self.journal);
        // From here on the guard uses only the file: if it is missing, nothing is left to undo.
        let emptied = self.copy.set_len(0).map_err(|error| error.to_string());
        let mut result = emptied.and(undo_all(&self.place(), &mut journal));
        let mut done = self.done.take();
        if result.is_err() {
            // Release the lock: the guard undoes the journal only once it holds the lock itself.
            self.lock = None;
            done = None;
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::CONT);
            let child = &mut self.child;
            wait_until(Instant::now() + TRIES_FOR, || !matches!(child.try_wait(), Ok(None)));
            if self.directory.has(&self.name).is_ok_and(|is_left| !is_left) {
                result = Ok(());
            }
        }
        if let Some(mut pipe) = done {
            let _ = pipe.write_all(b"done");
        }
        see_off(&mut self.child);
        result
    }
}

/// Locks the name of a journal that is to be written. Numbers of processes repeat, in containers above all: a
/// journal that has this name already is undone first.
///
/// # Errors
/// Where that journal cannot be undone, or its experiment still runs elsewhere; it stays as it is.
fn lock_new_journal(place: &JournalPlace) -> io::Result<File> {
    const ATTEMPTS: usize = 5;
    let JournalPlace { directory, name, .. } = *place;
    let lock_name = lock_name(name);
    for _ in 0..ATTEMPTS {
        let lock = directory.lock_file(&lock_name)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(used_elsewhere(&directory.path(name))),
            Err(error) => return Err(error.into()),
        }
        let found = lock.metadata()?;
        let is_named = match directory.identity(&lock_name) {
            // Whoever had it removed it, after we had opened it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            other => other? == (found.dev(), found.ino()),
        };
        if is_named && !directory.has(name)? {
            return Ok(lock);
        }
        // Undoing takes the lock itself, and removes it with the journal.
        drop(lock);
        if is_named {
            undo_journal(place).map_err(|problem| {
                let what = "cannot undo the changes of an earlier experiment that had the same PID";
                io::Error::other(format!("{what}: {problem}"))
            })?;
        }
    }
    Err(used_elsewhere(&directory.path(name)))
}

fn used_elsewhere(journal: &Path) -> io::Error {
    io::Error::other(format!(
        "another weigh, perhaps in another container, uses the journal {}: give each container its own \
         XDG_STATE_HOME",
        journal.display()
    ))
}

/// Runs the guard process: waits for the end of stdin, then undoes the journal unless stdin held `done`.
///
/// Arguments: path of the journal, root of the settings, path of the shared copy of the journal.
pub fn run(
    mut arguments: impl Iterator<Item = OsString>,
    undoings: &[Undoing],
) -> Result<(), String> {
    let (Some(journal), Some(root), Some(copy)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("the guard needs a journal, a root and a copy".into());
    };
    let journal = Path::new(&journal);
    let say = |error: io::Error| format!("{}: {error}", journal.display());
    let copy = File::open(copy).map_err(say)?;
    let mut said = Vec::new();
    // A read error does not count as `done`.
    let _ = io::stdin().lock().read_to_end(&mut said);
    if said == b"done" {
        return Ok(());
    }
    let mut content = Vec::new();
    io::BufReader::new(copy).read_until(b'\n', &mut content).map_err(say)?;
    let (Some(parent), Some(name)) =
        (journal.parent(), journal.file_name().and_then(|name| name.to_str()))
    else {
        return Err(format!("{} is not the path of a journal", journal.display()));
    };
    let directory = StateDir::at(parent).map_err(say)?;
    if !content.is_empty() && !directory.has(name).map_err(say)? {
        eprintln!(
            "weigh: the journal {} was removed: undoing its changes from the guard's copy",
            journal.display()
        );
        directory.replace(name, &content).map_err(say)?;
    }
    undo_journal(&JournalPlace { directory: &directory, name, root: Path::new(&root), undoings })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::process::Command;

    use serde_json::json;

    use super::*;
    use crate::undo::journal::EntryOwner;
    use crate::undo::undo_command::{self, UserCommand};

    type Undone = Rc<RefCell<Vec<Value>>>;

    /// Notes what it undoes, all but `stuck`.
    fn noting(kind: &'static str, undone: &Undone) -> Undoing {
        let undone = Rc::clone(undone);
        let undo = move |state: &Value, _: &EntryOwner| match state == "stuck" {
            true => Err("it is stuck".to_owned()),
            false => {
                undone.borrow_mut().push(state.clone());
                Ok(())
            }
        };
        Undoing { kind, ends_with_boot: true, by_command: false, undo: Box::new(undo) }
    }

    /// A guard whose process only waits for the end of its input.
    fn guard(home: &Path) -> (Guard, Undone) {
        let directory = StateDir::at(home).unwrap();
        let (pid, boot_id) = (std::process::id(), machine::boot_id().unwrap());
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let undone = Undone::default();
        let guard = Guard {
            running: Rc::new(CurrentCommand::of(&directory, "7.journal").guarded_by(&child)),
            directory,
            name: "7.journal".into(),
            root: "/".into(),
            lock: None,
            _claims: Vec::new(),
            journal: Journal { pid, boot_id, entries: Vec::new() },
            undoings: ["switch", "lever"].map(|kind| noting(kind, &undone)).into(),
            done: child.stdin.take(),
            child,
            copy: tempfile::tempfile().unwrap(),
        };
        (guard, undone)
    }

    /// Kinds, instances and states in the journal, of which the guard has a copy.
    fn entries(guard: &Guard) -> Vec<(String, String, Value)> {
        let text = guard.directory.read("7.journal").unwrap();
        let mut copy = vec![0; guard.copy.metadata().unwrap().len() as usize];
        guard.copy.read_exact_at(&mut copy, 0).unwrap();
        assert_eq!(copy, [&text[..], b"\n"].concat());
        let journal: Journal = serde_json::from_slice(&text).unwrap();
        let entry = |entry: JournalEntry| (entry.kind, entry.instance, entry.state);
        journal.entries.into_iter().map(entry).collect()
    }

    #[test]
    fn owners_of_the_same_undo_command_have_an_entry_each() {
        let home = tempfile::tempdir().unwrap();
        let (mut guard, _) = guard(home.path());
        let undo = UserCommand { line: "true".into(), directory: "/".into() };
        for owner in ["a", "b", "a"] {
            undo_command::write_down(owner, &undo, &mut guard).unwrap();
        }
        undo_command::strike_out("b", &undo, &mut guard).unwrap();
        let left = entries(&guard);
        assert_eq!((left.len(), &*left[0].1), (1, "true (a)"));
        drop(guard.done.take());
        guard.child.wait().unwrap();
    }

    /// In a container, each `weigh` may have the same number.
    #[test]
    fn a_journal_with_the_number_of_this_process_is_undone_before_it_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let directory = StateDir::at(home.path()).unwrap();
        let undone = Undone::default();
        let undoings = [noting("switch", &undone)];
        let (root, name) = (Path::new("/"), "7.journal");
        let place = JournalPlace { directory: &directory, name, root, undoings: &undoings };
        let leave = |state: &str| {
            let entry =
                JournalEntry { kind: "switch".into(), instance: "a".into(), state: json!(state) };
            let boot_id = machine::boot_id().unwrap();
            write(&place, &Journal { pid: 7, boot_id, entries: vec![entry] }).unwrap();
        };
        leave("1");
        let lock = lock_new_journal(&place).unwrap();
        assert_eq!(*undone.borrow(), [json!("1")]);
        assert!(!directory.has(name).unwrap() && directory.has("7.lock").unwrap());
        leave("stuck");
        let taken = lock_new_journal(&place).unwrap_err().to_string();
        assert!(taken.starts_with("another weigh, perhaps in another container"), "{taken}");
        drop(lock);
        directory.wait_until_unlocked("7.lock");
        let stuck = lock_new_journal(&place).unwrap_err().to_string();
        assert!(
            stuck.starts_with("cannot undo the changes of an earlier experiment that had"),
            "{stuck}"
        );
        assert!(stuck.contains("it is stuck"), "{stuck}");
        let left: Journal = serde_json::from_slice(&directory.read(name).unwrap()).unwrap();
        assert_eq!(left.entries[0].state, json!("stuck"));
    }

    #[test]
    fn an_entry_is_known_by_its_kind_and_instance() {
        let home = tempfile::tempdir().unwrap();
        let (mut guard, undone) = guard(home.path());
        let entry = |kind: &str, instance: &str, state: &str| {
            (kind.to_owned(), instance.to_owned(), json!(state))
        };
        let written = [("switch", "a", "longer"), ("switch", "b", "2"), ("lever", "a", "3")];
        for (kind, instance, state) in written.into_iter().chain([("switch", "a", "1")]) {
            guard.write_down(kind, instance, json!(state)).unwrap();
        }
        let [a, b, lever] =
            [entry("switch", "a", "1"), entry("switch", "b", "2"), entry("lever", "a", "3")];
        assert_eq!(entries(&guard), [a.clone(), b, lever.clone()]);
        guard.undo("switch", "b").unwrap();
        guard.undo("lever", "b").unwrap();
        assert_eq!(
            (entries(&guard), undone.borrow().clone()),
            (vec![a.clone(), lever], vec![json!("2")])
        );
        guard.strike_out("lever", "a").unwrap();
        guard.strike_out("lever", "a").unwrap();
        assert_eq!((entries(&guard), undone.borrow().len()), (vec![a], 1));
        guard.write_down("switch", "b", json!("stuck")).unwrap();
        assert_eq!(guard.undo("switch", "b"), Err("it is stuck".into()));
        assert_eq!(entries(&guard).len(), 2);
        // Disarming it would end the processes of other tests.
        drop(guard.done.take());
        guard.child.wait().unwrap();
    }
}
