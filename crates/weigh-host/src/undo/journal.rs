//! The journal: what was changed and how to undo it, in a file that survives every process.
//!
//! A change is written down, and on disk, *before* it is made. Entries are undone last first.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::machine;
use crate::orphans::wait_until;
use crate::undo::running::CurrentCommand;
use crate::undo::state_dir::{StateDir, lock_name, pid_of};
use weigh_model::printable;

/// The guard undoes a journal in moments; one that was stopped meanwhile, or another container's, may never.
const LOCK_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Journal {
    /// The process that made the changes.
    pub pid: u32,
    /// In which life of the kernel it did so.
    pub boot_id: String,
    pub entries: Vec<JournalEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Kind of the [`Undoing`] which undoes this.
    pub kind: String,
    /// Which of those of this kind: what was changed, in a word.
    #[serde(default)]
    pub instance: String,
    pub state: Value,
}

impl JournalEntry {
    /// Returns the changed thing, for messages.
    fn shown(&self) -> String {
        printable::line(&format!("{} {}", self.kind, self.instance)).trim_end().to_owned()
    }
}

/// How the entries of one kind are undone. The journal knows no kind by itself: whoever writes entries brings
/// this along.
pub struct Undoing {
    pub kind: &'static str,
    /// True if a reboot undoes it, as for all changes in the kernel.
    pub ends_with_boot: bool,
    /// True if a command may make the change: then it cannot be undone before that command has
    /// ended.
    pub by_command: bool,
    pub undo: Box<UndoState>,
}

/// Undoes the state of an entry; an error says what is left.
pub type UndoState = dyn Fn(&Value, &EntryOwner) -> Result<(), String>;

/// Whose entries they are: nothing but what this process can have changed is undone.
pub struct EntryOwner<'a> {
    pub pid: u32,
    /// Where a command is kept that undoes.
    pub running: &'a CurrentCommand,
    /// Below which settings are: `/`, but for a machine that is made up of files.
    pub root: &'a Path,
}

/// Where a journal is, and what its entries may be about: whatever they say, nothing else is touched.
pub struct JournalPlace<'a> {
    pub directory: &'a StateDir,
    pub name: &'a str,
    /// As [`EntryOwner::root`].
    pub root: &'a Path,
    pub undoings: &'a [Undoing],
}

impl JournalPlace<'_> {
    /// Where the command is kept that changes the system now.
    pub fn running(&self) -> CurrentCommand {
        CurrentCommand::of(self.directory, self.name)
    }

    fn undoing(&self, kind: &str) -> Option<&Undoing> {
        self.undoings.iter().find(|undoing| undoing.kind == kind)
    }
}

/// Undoes a journal of an experiment that is dead.
pub fn undo_journal(place: &JournalPlace) -> Result<(), String> {
    let path = place.directory.path(place.name);
    let say = |error: io::Error| format!("{}: {error}", path.display());
    let lock = place.directory.lock_file(&lock_name(place.name)).map_err(say)?;
    // The guard and `weigh restore` may both be at it: the second finds nothing left.
    let is_ours = || flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    if !wait_until(Instant::now() + LOCK_LIMIT, is_ours) {
        return Err(format!(
            "{}: a different process is undoing this journal and did not finish within {} s. To find that \
             process, run `fuser` on the lock file next to the journal",
            path.display(),
            LOCK_LIMIT.as_secs()
        ));
    }
    let text = match place.directory.read(place.name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return place.directory.remove_journal(place.name).map_err(say);
        }
        other => other.map_err(say)?,
    };
    let damaged = |what: &str| {
        format!(
            "the journal {} is damaged ({what}); check what that experiment changed, such as auditing \
             (`auditctl -s`, `auditctl -l`), correct what is wrong, and delete the file",
            path.display()
        )
    };
    let mut journal: Journal =
        serde_json::from_slice(&text).map_err(|error| damaged(&error.to_string()))?;
    if pid_of(place.name) != Some(journal.pid) {
        return Err(damaged("its process is not the process in the file name"));
    }
    undo_all(place, &mut journal).map_err(|problem| {
        // A journal that cannot be undone blocks every experiment until somebody deletes it.
        format!(
            "{problem}\nIf `weigh restore` fails too, undo these changes by hand and delete {}",
            path.display()
        )
    })
}

/// Undoes all entries, and removes the journal; those that cannot be undone stay.
pub fn undo_all(place: &JournalPlace, journal: &mut Journal) -> Result<(), String> {
    let mut stopped = Ok(());
    // A reboot undoes what was changed in the kernel. What stands there now is not ours to undo.
    if !is_of_another_boot(&journal.boot_id, machine::boot_id()) {
        stopped = place.running().stop();
    } else {
        // An unknown kind stays, and is told: perhaps no reboot undoes it.
        let stays = |kind: &str| place.undoing(kind).is_none_or(|undoing| !undoing.ends_with_boot);
        journal.entries.retain(|entry| stays(&entry.kind));
    }
    let has_to_wait = |entry: &JournalEntry| {
        stopped.is_err() && place.undoing(&entry.kind).is_some_and(|undoing| undoing.by_command)
    };
    let mut left: Vec<String> = stopped.clone().err().into_iter().collect();
    for entry in std::mem::take(&mut journal.entries).into_iter().rev() {
        let undone = match has_to_wait(&entry) {
            true => Err(format!("not undone, because that command still runs: {}", entry.shown())),
            false => undo(place, &entry, journal.pid),
        };
        if let Err(problem) = undone {
            left.push(problem);
            journal.entries.insert(0, entry);
        }
    }
    if left.is_empty() {
        return place.directory.remove_journal(place.name).map_err(|error| {
            format!(
                "all changes are undone, but {} cannot be removed ({error}). The next weigh would undo them \
                 again: make the directory of that file writable, and run `weigh restore`",
                place.directory.path(place.name).display()
            )
        });
    }
    // Where it cannot be written, it still names all of this, and more.
    let _ = write(place, journal);
    Err(left.join("\n"))
}

/// Only where both are known: one that could not be read is this one.
fn is_of_another_boot(written: &str, now: io::Result<String>) -> bool {
    !written.is_empty() && now.is_ok_and(|now| now != written)
}

/// Undoes one entry of the journal of this process.
pub fn undo(place: &JournalPlace, entry: &JournalEntry, pid: u32) -> Result<(), String> {
    match place.undoing(&entry.kind) {
        Some(undoing) => {
            let running = &place.running();
            (undoing.undo)(&entry.state, &EntryOwner { pid, running, root: place.root })
        }
        None => Err(format!(
            "the journal names a treatment `{}`, which this version of weigh does not have",
            entry.kind
        )),
    }
}

/// Replaces the journal in one step, and returns when it is on disk.
///
/// # Errors
/// With what can be done; then the change must not be made.
pub fn write(place: &JournalPlace, journal: &Journal) -> io::Result<()> {
    place.directory.replace(place.name, &serde_json::to_vec(journal)?).map_err(|error| {
        let problem = format!(
            "cannot write the journal of changes, {}: {error}; nothing is changed without it. Free some \
             space there, or set XDG_STATE_HOME to a different directory",
            place.directory.path(place.name).display()
        );
        io::Error::new(error.kind(), problem)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::PathBuf;
    use std::process::{Child, Command};

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::machine::process::process_start;
    use crate::undo::scratch;
    use crate::undo::scratch::SCRATCH;
    use crate::undo::settings;
    use crate::undo::settings::SETTINGS;
    use crate::undo::started;
    use crate::undo::started::STARTED;
    use crate::undo::undo_command;

    fn boot_id() -> String {
        machine::boot_id().unwrap()
    }

    #[test]
    fn a_boot_id_that_cannot_be_read_is_that_of_this_boot() {
        let unreadable = || Err(io::ErrorKind::NotFound.into());
        assert!(
            is_of_another_boot("a", Ok("b".into())) && !is_of_another_boot("a", Ok("a".into()))
        );
        assert!(!is_of_another_boot("a", unreadable()) && !is_of_another_boot("", Ok("b".into())));
    }

    /// A directory of journals, and others that are none of its business.
    struct Home {
        directory: tempfile::TempDir,
        state: StateDir,
        undoings: Vec<Undoing>,
    }

    impl Home {
        fn new() -> Home {
            let directory = tempfile::tempdir().unwrap();
            fs::create_dir(directory.path().join("state")).unwrap();
            let state = StateDir::at(&directory.path().join("state")).unwrap();
            Home {
                directory,
                state,
                undoings: vec![
                    scratch::undoing(),
                    settings::undoing(),
                    started::undoing(),
                    undo_command::undoing(),
                ],
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn place(&self) -> JournalPlace<'_> {
            let (directory, root) = (&self.state, self.directory.path());
            JournalPlace { directory, name: "7.journal", root, undoings: &self.undoings }
        }

        fn undo(&self, bytes: &[u8]) -> Result<(), String> {
            self.state.replace("7.journal", bytes).unwrap();
            undo_journal(&self.place())
        }

        /// All but the journals: what leads where, and what is in it.
        fn files(&self) -> BTreeMap<PathBuf, String> {
            let mut found = BTreeMap::new();
            let mut open = vec![self.directory.path().to_owned()];
            while let Some(directory) = open.pop() {
                for entry in fs::read_dir(directory).unwrap() {
                    let path = entry.unwrap().path();
                    let content = match fs::symlink_metadata(&path).unwrap().file_type() {
                        kind if kind.is_dir() && path.ends_with("state") => continue,
                        kind if kind.is_dir() => {
                            open.push(path.clone());
                            "directory".into()
                        }
                        kind if kind.is_symlink() => format!("{:?}", fs::read_link(&path).unwrap()),
                        _ => fs::read_to_string(&path).unwrap(),
                    };
                    found.insert(path, content);
                }
            }
            found
        }
    }

    fn journal(boot_id: String, scratch: &Path) -> Vec<u8> {
        let instance = String::new();
        let entry = |kind: &str, state| JournalEntry {
            kind: kind.into(),
            instance: instance.clone(),
            state,
        };
        // No kind of treatment has this name, so undoing its entry is an error.
        let entries = vec![
            entry(SCRATCH, Value::String(scratch.display().to_string())),
            entry("no such treatment", Value::Null),
        ];
        serde_json::to_vec(&Journal { pid: 7, boot_id, entries }).unwrap()
    }

    #[test]
    fn what_cannot_be_undone_stays_in_the_journal_and_the_rest_is_undone() {
        let home = Home::new();
        let scratch = home.path("weigh-7-01234567");
        fs::create_dir(&scratch).unwrap();
        let left = home.undo(&journal(boot_id(), &scratch)).unwrap_err();
        assert!(left.contains("no such treatment") && !scratch.exists());
        // It blocks every experiment, so the way out is told.
        assert!(
            left.ends_with(&format!("delete {}", home.path("state/7.journal").display())),
            "{left}"
        );
        let left: Journal = serde_json::from_slice(&home.state.read("7.journal").unwrap()).unwrap();
        assert_eq!(left.entries.len(), 1);
    }

    /// As two arms have them that change the same kind of thing.
    #[test]
    fn of_one_kind_every_instance_is_undone_the_last_first() {
        let mut home = Home::new();
        let undone = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let seen = std::rc::Rc::clone(&undone);
        let undo = move |state: &Value, _: &EntryOwner| {
            seen.borrow_mut().push(state.clone());
            Ok(())
        };
        home.undoings.push(Undoing {
            kind: "switch",
            ends_with_boot: true,
            by_command: false,
            undo: Box::new(undo),
        });
        let entries = json!([
            { "kind": "switch", "instance": "a", "state": 1 },
            { "kind": "switch", "instance": "b", "state": 2 },
            { "kind": "switch", "state": 3 },
        ]);
        let journal = json!({ "pid": 7, "boot_id": boot_id(), "entries": entries });
        home.undo(journal.to_string().as_bytes()).unwrap();
        assert_eq!(*undone.borrow(), [3, 2, 1]);
        let journal = json!({ "pid": 7, "boot_id": "another boot", "entries": entries });
        home.undo(journal.to_string().as_bytes()).unwrap();
        assert_eq!(undone.borrow().len(), 3, "undone in the kernel of another boot");
    }

    #[test]
    fn a_journal_of_an_earlier_boot_touches_the_kernel_no_more() {
        let home = Home::new();
        let scratch = home.path("weigh-7-01234567");
        fs::create_dir(&scratch).unwrap();
        let told = home.undo(&journal("another boot".into(), &scratch)).unwrap_err();
        assert!(told.contains("no such treatment") && !scratch.exists(), "{told}");
        let of_kernel = String::from_utf8(journal("another boot".into(), &scratch)).unwrap();
        let of_kernel = of_kernel.replace("no such treatment", SETTINGS);
        home.undo(of_kernel.as_bytes()).unwrap();
        assert!(!home.path("state/7.journal").exists());
        fs::write(home.path("state/7.new"), "{").unwrap();
        home.undo(of_kernel.as_bytes()).unwrap();
        assert_eq!(fs::read_dir(home.path("state")).unwrap().count(), 0);
    }

    #[test]
    fn who_comes_second_waits_and_finds_nothing_left() {
        let home = Home::new();
        let lock = home.state.lock_file("7.lock").unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let first = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(lock);
        });
        assert_eq!(undo_journal(&home.place()), Ok(()));
        first.join().unwrap();
        assert_eq!(fs::read_dir(home.path("state")).unwrap().count(), 0, "the lock");
    }

    #[test]
    fn a_journal_that_cannot_be_read_is_not_taken_for_none() {
        let home = Home::new();
        std::os::unix::fs::symlink("/nonexistent", home.path("state/7.journal")).unwrap();
        fs::write(home.path("state/7.running"), "{}").unwrap();
        assert!(undo_journal(&home.place()).unwrap_err().contains("7.journal"));
        assert!(home.path("state/7.running").exists(), "what belongs to it stays");
    }

    /// Nothing was undone at all.
    #[test]
    fn a_command_that_cannot_be_ended_keeps_only_what_commands_change_from_being_undone() {
        let home = Home::new();
        let [made, scratch] = ["made", "weigh-7-01234567"].map(|name| home.path(name));
        fs::write(&made, "").unwrap();
        fs::create_dir(&scratch).unwrap();
        // As good as one that does not end.
        fs::write(home.path("state/7.running"), "{").unwrap();
        let undo = json!({ "line": format!("rm {}", made.display()), "directory": "/" });
        let entries = json!([
            { "kind": SCRATCH, "state": scratch },
            { "kind": "undo command", "instance": "rm made", "state": undo },
        ]);
        let journal = json!({ "pid": 7, "boot_id": boot_id(), "entries": entries });
        let left = home.undo(journal.to_string().as_bytes()).unwrap_err();
        assert!(left.contains("cannot end the command") && left.contains("rm made"), "{left}");
        assert!(made.exists() && !scratch.exists());
        let left: Journal = serde_json::from_slice(&home.state.read("7.journal").unwrap()).unwrap();
        assert_eq!(left.entries.len(), 1);
        fs::remove_file(home.path("state/7.running")).unwrap();
        undo_journal(&home.place()).unwrap();
        assert!(!made.exists() && !home.path("state/7.journal").exists());
    }

    #[test]
    fn a_damaged_journal_is_named() {
        let home = Home::new();
        assert!(home.undo(b"{").unwrap_err().contains("7.journal is damaged"));
        let other = br#"{"pid":8,"boot_id":"","entries":[]}"#;
        assert!(home.undo(other).unwrap_err().contains("not the process in the file name"));
    }

    /// Things that somebody would like root to remove, overwrite or end.
    struct Victims {
        home: Home,
        process: Child,
    }

    impl Victims {
        fn new() -> Victims {
            let home = Home::new();
            for directory in ["victim/weigh-7-01234567", "sys/kernel", "weigh-8-0123456789abcdef"] {
                fs::create_dir_all(home.path(directory)).unwrap();
            }
            for file in ["victim/file", "victim/weigh-7-01234567/file", "sys/kernel/other"] {
                fs::write(home.path(file), "precious").unwrap();
            }
            for link in ["weigh-7-0123456789abcdef", "sys/kernel/rcu_expedited"] {
                std::os::unix::fs::symlink(home.path("victim/file"), home.path(link)).unwrap();
            }
            // Nobody would trust a journal whose scratch lies where others can write.
            use std::os::unix::fs::PermissionsExt;
            let open = fs::Permissions::from_mode(0o777);
            fs::set_permissions(home.path("victim"), open).unwrap();
            Victims { home, process: Command::new("sleep").arg("600").spawn().unwrap() }
        }

        /// States that are well formed and name what no experiment can have made or changed.
        fn states(&self) -> Vec<Value> {
            let paths = [
                "victim",
                "victim/file",
                "victim/weigh-7-01234567",
                "weigh-7-0123456789abcdef",
                "",
                "weigh-7-0123456789abcdef/",
                "weigh-7-01234567/../victim",
                "weigh-7-",
                "sys",
                "weigh-8-0123456789abcdef",
                "sys/kernel/rcu_expedited",
                "sys/kernel/other",
                "sys/devices/system/cpu/cpufreq/policy0/../../../../../../victim/file",
                "sys/devices/system/cpu/cpufreq/policy0/scaling_governor/../../../../victim/file",
            ];
            let paths: Vec<PathBuf> = paths.into_iter().map(|path| self.home.path(path)).collect();
            let mut states: Vec<Value> = paths.iter().map(|path| json!(path)).collect();
            for was in ["0", "performance", "a b", "", "../x"] {
                let setting = |file| json!([{ "file": file, "was": was, "wanted": "1" }]);
                states.extend(paths.iter().map(setting));
            }
            let pid = self.process.id();
            states.push(json!({ "pid": pid, "start": process_start(pid).unwrap() }));
            states.push(json!({ "pid": 1, "start": process_start(1).unwrap() }));
            states.push(json!({ "pid": 0, "start": 0 }));
            states
        }
    }

    impl Drop for Victims {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    /// Every kind with every state, in this boot of the kernel.
    #[test]
    fn a_forged_journal_removes_overwrites_and_ends_nothing() {
        let mut victims = Victims::new();
        let before = victims.home.files();
        for state in victims.states() {
            for kind in
                [SCRATCH, SETTINGS, STARTED, "control group", "undo command", "audit", "none", ""]
            {
                let entries = [json!({ "kind": kind, "state": state })];
                let forged = json!({ "pid": 7, "boot_id": boot_id(), "entries": entries });
                let _ = victims.home.undo(forged.to_string().as_bytes());
                assert_eq!(victims.home.files(), before, "{forged}");
            }
        }
        assert!(victims.process.try_wait().unwrap().is_none(), "the process was ended");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_bytes_as_a_journal_change_nothing_else(
            journals in proptest::collection::vec(bytes_of_journal(), 32)
        ) {
            let mut victims = Victims::new();
            let before = victims.home.files();
            for journal in journals {
                let _ = victims.home.undo(&journal);
                prop_assert_eq!(victims.home.files(), before.clone());
            }
            prop_assert!(victims.process.try_wait().unwrap().is_none());
        }
    }

    /// Bytes of any kind, and journals of this boot with any state, some cut off.
    fn bytes_of_journal() -> impl Strategy<Value = Vec<u8>> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z0-9/.\\-]{0,40}".prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        let key =
            prop_oneof!["file", "was", "wanted", "pid", "start", "status", "rules", "[a-z]{1,5}"];
        let state = leaf.prop_recursive(4, 32, 4, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(key.clone(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        let kind = prop_oneof![
            Just(SCRATCH.to_owned()),
            Just(SETTINGS.to_owned()),
            Just(STARTED.to_owned()),
            Just("audit".to_owned()),
            any::<String>(),
        ];
        let entries = proptest::collection::vec((kind, state), 0..4);
        let journal = (entries, 0..4000usize).prop_map(|(entries, length)| {
            let entries: Vec<Value> = entries
                .into_iter()
                .map(|(kind, state)| json!({ "kind": kind, "state": state }))
                .collect();
            let text = json!({ "pid": 7, "boot_id": boot_id(), "entries": entries });
            let mut bytes = text.to_string().into_bytes();
            bytes.truncate(length);
            bytes
        });
        prop_oneof![proptest::collection::vec(any::<u8>(), 0..300), journal]
    }
}
