//! Failures that no exit status shows: a shell may hide that a process of its own was killed or could not be
//! started. The kernel counts both for each control group. The launcher reads these counts before and after a
//! worker, for the groups of the worker and for its own, whose limits somebody else has set. Of those that
//! died by an error it hears from `deaths.rs`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::setup::Setup;
use super::setup::kind::control_group::ControlGroup;
use weigh_host::machine::hierarchies::Hierarchies;

/// No such file is longer.
const MOST_BYTES: usize = 4096;

/// Kills and refused forks among the processes of one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kills {
    /// How many the out-of-memory killer killed.
    pub out_of_memory: u64,
    /// How often no process could be made, as `pids.max` was reached.
    pub refused: u64,
    /// The signals of errors that killed processes of the worker: of all of them as root, else of orphans.
    pub signals: Vec<i32>,
}

impl Kills {
    /// Describes the kills and refusals as a clause; `None` if nothing happened.
    pub fn sentence(&self) -> Option<String> {
        let processes = |count: u64| match count {
            1 => "1 process".to_owned(),
            count => format!("{count} processes"),
        };
        let different: BTreeSet<i32> = self.signals.iter().copied().collect();
        let signals: Vec<String> = different.iter().map(i32::to_string).collect();
        let all = [
            (self.out_of_memory > 0).then(|| {
                format!("the out-of-memory killer killed {}", processes(self.out_of_memory))
            }),
            (self.refused > 0).then(|| {
                format!("the limit pids.max refused to start {}", processes(self.refused))
            }),
            (!signals.is_empty()).then(|| {
                let killed = processes(self.signals.len() as u64);
                format!("{killed} died by signal {}", signals.join(", "))
            }),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", and "))
    }

    pub fn since(self, earlier: &Kills) -> Kills {
        Kills {
            out_of_memory: self.out_of_memory.saturating_sub(earlier.out_of_memory),
            refused: self.refused.saturating_sub(earlier.refused),
            signals: self.signals,
        }
    }

    /// With those of another worker that did a part of the same work.
    pub fn with(mut self, other: &Kills) -> Kills {
        self.out_of_memory = self.out_of_memory.saturating_add(other.out_of_memory);
        self.refused = self.refused.saturating_add(other.refused);
        self.signals.extend(&other.signals);
        self
    }
}

/// The files that count, opened before the launcher enters another root.
pub struct KillCounters {
    out_of_memory: Vec<File>,
    refused: Vec<File>,
}

impl KillCounters {
    /// For workers with this set-up.
    pub fn open(setup: &Setup) -> io::Result<KillCounters> {
        let own = Hierarchies::read(Path::new("/"));
        let entered = setup.get::<ControlGroup>().map(|group| group.directories.clone());
        let groups = entered.into_iter().flatten().chain(own.own_groups());
        KillCounters::of(&groups.collect::<Vec<_>>())
    }

    fn of(groups: &[PathBuf]) -> io::Result<KillCounters> {
        let (mut memory, mut pids) = (BTreeSet::new(), BTreeSet::new());
        for group in groups {
            let in_version_1 = group.join("memory.oom_control");
            memory.extend(in_version_1.exists().then_some(in_version_1));
            // Counts of version 2 include the groups below.
            let mut in_version_2 = upwards(group).map(|above| above.join("memory.events"));
            memory.extend(in_version_2.find(|file| file.exists()));
            // Since Linux 6.11 the group whose limit it is counts, before that the group of the process.
            let local = upwards(group).map(|above| above.join("pids.events.local"));
            let local: Vec<PathBuf> = local.filter(|file| file.exists()).collect();
            let own = Some(group.join("pids.events")).filter(|file| file.exists());
            pids.extend(match local.is_empty() {
                true => own.into_iter().collect(),
                false => local,
            });
        }
        let groups: Vec<PathBuf> =
            memory.iter().filter_map(|file| Some(file.parent()?.to_owned())).collect();
        let is_counted_above = |file: &PathBuf| {
            let directory = file.parent().unwrap_or(file);
            file.ends_with("memory.events")
                && groups.iter().any(|group| directory != group && directory.starts_with(group))
        };
        memory.retain(|file| !is_counted_above(file));
        let opened = |files: BTreeSet<PathBuf>| -> io::Result<Vec<File>> {
            files.iter().map(File::open).collect()
        };
        Ok(KillCounters { out_of_memory: opened(memory)?, refused: opened(pids)? })
    }

    pub fn read(&self) -> io::Result<Kills> {
        let sum = |files: &[File], key: &str| files.iter().map(|file| count(file, key)).sum();
        let out_of_memory: io::Result<u64> = sum(&self.out_of_memory, "oom_kill");
        let refused: io::Result<u64> = sum(&self.refused, "max");
        Ok(Kills { out_of_memory: out_of_memory?, refused: refused?, signals: Vec::new() })
    }
}

/// A control group and those above it.
fn upwards(group: &Path) -> impl Iterator<Item = &Path> {
    group.ancestors().take_while(|above| above.join("cgroup.procs").exists())
}

/// The number behind a key. Kernels before 4.13 have no `oom_kill`, and count nothing.
fn count(file: &File, key: &str) -> io::Result<u64> {
    let mut text = [0; MOST_BYTES];
    let length = file.read_at(&mut text, 0)?;
    let text = String::from_utf8_lossy(&text[..length]);
    let value = |line: &str| Some(line.strip_prefix(key)?.strip_prefix(' ')?.trim().to_owned());
    match text.lines().find_map(value) {
        None => Ok(0),
        Some(number) => number.parse().map_err(io::Error::other),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use weigh_host::machine::hierarchies::example::machine;

    fn counted(files: &[(&str, &str)], groups: &[&str]) -> Kills {
        let root = machine(files);
        let groups: Vec<PathBuf> = groups.iter().map(|group| root.path().join(group)).collect();
        let counters = KillCounters::of(&groups).unwrap();
        let before = counters.read().unwrap();
        for (file, text) in files.iter().filter(|(_, text)| !text.is_empty()) {
            fs::write(root.path().join(file), text.replace('1', "3")).unwrap();
        }
        counters.read().unwrap().since(&before)
    }

    #[test]
    fn kills_are_counted_once_in_either_version() {
        let of = |out_of_memory, refused| Kills { out_of_memory, refused, signals: Vec::new() };
        let version_1 = [
            ("m/weigh/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
            ("m/outer/memory.oom_control", "oom_kill_disable 0\noom_kill 1\n"),
            ("p/weigh/pids.events", "max 1\n"),
            ("p/other/pids.events", "max 1\n"),
        ];
        assert_eq!(counted(&version_1, &["m/weigh", "m/outer", "p/weigh", "absent"]), of(4, 2));
        // The outer group's events have those of the inner one in them, and its own limit refused two.
        let version_2 = [
            ("c/outer/cgroup.procs", ""),
            ("c/outer/in/cgroup.procs", ""),
            ("c/outer/in/weigh/cgroup.procs", ""),
            ("c/outer/in/weigh/memory.events", "oom 1\noom_kill 1\noom_group_kill 0\n"),
            ("c/outer/in/memory.events", "oom_kill 1\n"),
            ("c/outer/pids.events", "max 1\n"),
            ("c/outer/pids.events.local", "max 1\n"),
        ];
        assert_eq!(counted(&version_2, &["c/outer/in/weigh", "c/outer/in"]), of(2, 2));
    }

    #[test]
    fn the_sentence_has_the_numbers() {
        let kills = Kills { out_of_memory: 2, refused: 1, signals: vec![11, 31] };
        assert_eq!(
            kills.sentence().unwrap(),
            "the out-of-memory killer killed 2 processes, and the limit pids.max refused to start 1 process, \
             and 2 processes died by signal 11, 31"
        );
        assert_eq!(Kills::default().sentence(), None);
    }
}
