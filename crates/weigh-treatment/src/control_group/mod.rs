//! A private control group for the processes of an arm: what is written into it, and how it goes again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags, fstatfs, unlinkat};
use serde_json::Value;

use weigh_host::machine::gone::{GROUP_FILES, check_gone};
use weigh_host::machine::hierarchies::Hierarchies;
use weigh_host::orphans::wait_until;
use weigh_host::undo::guard::Guard;
use weigh_host::undo::journal::{EntryOwner, Undoing};
use weigh_host::undo::scratch::is_name;

/// The journal's entry for it.
const CONTROL_GROUP: &str = "control group";
/// Time for killed processes to leave a group, which takes moments.
const LIMIT: Duration = Duration::from_secs(10);

/// Settings to write into a group that is not made yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PlannedGroup {
    /// One in each hierarchy that has a controller of it, and whether that is version 2.
    pub directories: Vec<(PathBuf, bool)>,
    /// Each file with its text, in order.
    pub files: Vec<(PathBuf, String)>,
}

impl PlannedGroup {
    /// A group of this name with settings as version 2 names them; a controller alone has its group without a
    /// setting.
    pub fn new<'a>(
        hierarchies: &Hierarchies,
        name: &str,
        settings: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    ) -> Result<PlannedGroup, String> {
        let mut group = PlannedGroup::default();
        for (key, value) in settings {
            let controller = key.split('.').next().unwrap_or_default();
            let place = hierarchies.place_for(controller)?;
            let directory = place.parent.join(name);
            let known = (directory.clone(), place.is_version_2);
            if !group.directories.contains(&known) {
                group.directories.push(known);
                if controller == "cpuset" && !place.is_version_2 {
                    group.copy_cpuset(&place.parent, &directory)?;
                }
            }
            let files = match value {
                None => Vec::new(),
                Some(value) if place.is_version_2 => vec![(key.to_owned(), value.to_owned())],
                Some(value) => in_version_1(key, value)?,
            };
            group.files.extend(files.into_iter().map(|(file, text)| (directory.join(file), text)));
        }
        Ok(group)
    }

    /// A set of version 1 is empty at first, and nothing can enter it then.
    fn copy_cpuset(&mut self, parent: &Path, directory: &Path) -> Result<(), String> {
        for file in ["cpuset.mems", "cpuset.cpus"] {
            let from = parent.join(file);
            let text = fs::read_to_string(&from).map_err(|error| cannot("read", &from, &error))?;
            self.files.push((directory.join(file), text.trim().to_owned()));
        }
        Ok(())
    }

    /// Makes it, after it was written down. Gives what each file reads then.
    ///
    /// # Errors
    /// A sentence; the guard's journal removes what was made.
    pub fn make(&self, name: &str, guard: &mut Guard) -> Result<Vec<String>, String> {
        let directories: Vec<&PathBuf> = self.directories.iter().map(|(path, _)| path).collect();
        let state = serde_json::to_value(&directories).map_err(|error| error.to_string())?;
        let written = guard.write_down(CONTROL_GROUP, name, state);
        written.map_err(|error| format!("cannot write the journal: {error}"))?;
        for directory in directories {
            fs::create_dir(directory).map_err(|error| cannot("make", directory, &error))?;
        }
        for (file, text) in &self.files {
            // Not created: what is no setting there is none.
            let written = fs::OpenOptions::new().write(true).open(file);
            let written =
                written.and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()));
            written.map_err(|error| {
                let file = cannot("write", file, &error);
                format!("{file}; this kernel does not accept `{text}` there")
            })?;
        }
        self.read()
    }

    /// Reads the current content of each file.
    pub fn read(&self) -> Result<Vec<String>, String> {
        let read = |(file, _): &(PathBuf, String)| {
            let text = fs::read_to_string(file).map_err(|error| cannot("read", file, &error))?;
            Ok(text.trim().to_owned())
        };
        self.files.iter().map(read).collect()
    }
}

pub fn remove(name: &str, guard: &mut Guard) -> Result<(), String> {
    guard.undo(CONTROL_GROUP, name)
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}

/// Translates a setting into the files of version 1.
fn in_version_1(key: &str, value: &str) -> Result<Vec<(String, String)>, String> {
    let wrong = |takes: &str| format!("{key}={value}: takes {takes}");
    let one = |file: &str, text: String| Ok(vec![(file.to_owned(), text)]);
    match key {
        "cpu.max" => {
            let (quota, period) =
                value.split_once(char::is_whitespace).unwrap_or((value, "100000"));
            let quota = if quota == "max" { "-1" } else { quota };
            Ok(vec![
                ("cpu.cfs_period_us".to_owned(), period.trim_start().to_owned()),
                ("cpu.cfs_quota_us".to_owned(), quota.to_owned()),
            ])
        }
        "cpu.weight" => {
            let weight = value.parse().ok().filter(|weight: &u32| (1..=10_000).contains(weight));
            let weight = weight.ok_or_else(|| wrong("a number from 1 to 10000"))?;
            // As the kernel converts between the two: 100 is 1024.
            one("cpu.shares", (weight * 1024 / 100).max(2).to_string())
        }
        "memory.max" => match value {
            "max" => one("memory.limit_in_bytes", "-1".to_owned()),
            bytes if bytes.starts_with(|it: char| it.is_ascii_digit()) => {
                one("memory.limit_in_bytes", bytes.to_owned())
            }
            _ => Err(wrong("bytes, such as 100M, or max")),
        },
        "pids.max" | "cpuset.cpus" | "cpuset.mems" => one(key, value.to_owned()),
        _ => Err(format!(
            "`{key}` exists only in version 2 of control groups, but its controller is in version 1 on \
             this host"
        )),
    }
}

pub fn undoing() -> Undoing {
    let undo = Box::new(|state: &Value, owner: &EntryOwner| undo(state, owner.pid));
    Undoing { kind: CONTROL_GROUP, ends_with_boot: true, by_command: false, undo }
}

/// Removes the groups of the journal's entry: only what has a name of that experiment, and is a control
/// group.
fn undo(state: &Value, pid: u32) -> Result<(), String> {
    let directories: Vec<PathBuf> = serde_json::from_value(state.clone())
        .map_err(|error| format!("cannot read the control groups in the journal: {error}"))?;
    let left: Vec<String> =
        directories.iter().rev().filter_map(|directory| remove_one(directory, pid).err()).collect();
    if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
}

fn remove_one(directory: &Path, pid: u32) -> Result<(), String> {
    let name = directory.file_name().and_then(|name| name.to_str());
    let (Some(parent), Some(name)) = (directory.parent(), name.filter(|name| is_name(name, pid)))
    else {
        return Err(format!(
            "{} is not a control group of this experiment, so weigh does not remove it",
            directory.display()
        ));
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let parent = match rustix::fs::open(parent, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => {
            let gone = check_gone(directory, &GROUP_FILES);
            return gone.map_err(|error| cannot("remove", directory, &error));
        }
        other => other.map_err(|error| cannot("open", parent, &error.into()))?,
    };
    let kind = fstatfs(&parent).map_err(|error| cannot("look at", directory, &error.into()))?;
    if !GROUP_FILES.contains(&(kind.f_type as u32)) {
        return Err(format!(
            "{} is not a control group, so weigh does not remove it",
            directory.display()
        ));
    }
    let mut result = Ok(());
    let is_gone = || {
        result = unlinkat(&parent, name, AtFlags::REMOVEDIR);
        !matches!(result, Err(rustix::io::Errno::BUSY))
    };
    wait_until(Instant::now() + LIMIT, is_gone);
    match result {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(format!(
            "{}: end the processes in {path}/cgroup.procs, then run `rmdir {path}`",
            cannot("remove", directory, &error.into()),
            path = directory.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_host::machine::hierarchies::example::{SYSTEMD, machine};

    #[test]
    fn version_2_takes_it_as_it_is_written() {
        let root = machine(&SYSTEMD);
        let settings = [("cpu.max", "50000 100000"), ("memory.max", "100M"), ("memory.high", "9M")];
        let found = Hierarchies::read(root.path());
        let settings = settings.into_iter().map(|(key, value)| (key, Some(value)));
        let group = PlannedGroup::new(&found, "weigh-1-x", settings).unwrap();
        let words = ["cpu", "memory"].into_iter().map(|controller| (controller, None));
        let without_limits = PlannedGroup::new(&found, "weigh-1-x", words).unwrap();
        assert_eq!(without_limits.directories, group.directories, "the same procedure");
        assert!(without_limits.files.is_empty());
        let below = |path: &str| root.path().join("sys/fs/cgroup/user.slice").join(path);
        assert_eq!(
            group.directories,
            [(below("weigh-1-x"), true), (below("user-7.slice/weigh-1-x"), true)]
        );
        let file = |path: &str, text: &str| (below(path), text.to_owned());
        assert_eq!(
            group.files,
            [
                file("weigh-1-x/cpu.max", "50000 100000"),
                file("user-7.slice/weigh-1-x/memory.max", "100M"),
                file("user-7.slice/weigh-1-x/memory.high", "9M"),
            ]
        );
    }

    #[test]
    fn version_1_has_counterparts_of_some() {
        let of = |key, value| in_version_1(key, value);
        let are = |pairs: &[(&str, &str)]| {
            Ok(pairs.iter().map(|(file, text)| ((*file).into(), (*text).into())).collect())
        };
        let (period, quota) = ("cpu.cfs_period_us", "cpu.cfs_quota_us");
        assert_eq!(of("cpu.max", "50000 200000"), are(&[(period, "200000"), (quota, "50000")]));
        assert_eq!(of("cpu.max", "max"), are(&[(period, "100000"), (quota, "-1")]));
        assert_eq!(of("cpu.weight", "100"), are(&[("cpu.shares", "1024")]));
        assert_eq!(of("memory.max", "max"), are(&[("memory.limit_in_bytes", "-1")]));
        assert!(of("memory.max", "-1").unwrap_err().contains("100M, or max"));
        assert_eq!(of("pids.max", "7"), are(&[("pids.max", "7")]));
        assert!(of("cpu.weight", "0").unwrap_err().contains("from 1 to 10000"));
        assert!(of("memory.high", "1M").unwrap_err().contains("exists only in version 2"));
    }

    #[test]
    fn nothing_but_a_control_group_of_that_experiment_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("weigh-7-0123456789abcdef");
        fs::create_dir(&group).unwrap();
        let undo = |path: &Path| undo(&serde_json::json!([path]), 7);
        assert!(undo(&group).unwrap_err().contains("not a control group,"));
        assert!(undo(root.path()).unwrap_err().contains("not a control group of this experiment"));
        let unseen = undo(Path::new("/absent/weigh-7-0123456789abcdef")).unwrap_err();
        assert!(unseen.contains("not the kernel's file system"), "{unseen}");
        assert!(group.exists());
    }
}
