//! Things that a set-up may add to this system, so that its clean-up can be checked.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Kinds of things, as a report names them.
const KINDS: [&str; 6] =
    ["file or directory", "kernel module", "mount", "network interface", "package", "user"];
/// A report names so many of a kind.
const NAMED: usize = 20;
/// Beginning of the names of our own directories.
const OURS: &str = "weigh-";

/// Names of the things that exist, by kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Present {
    things: [BTreeSet<String>; KINDS.len()],
}

impl Present {
    /// Looks at the system, and at the names in this directory.
    ///
    /// # Errors
    /// If something cannot be read.
    pub fn now(directory: &Path) -> io::Result<Present> {
        let mut files = names_in(directory)?;
        files.retain(|name| !name.starts_with(OURS));
        let words = |path, at: usize| {
            lines(path).map(|lines| {
                lines
                    .iter()
                    .filter_map(|it| Some(it.split_whitespace().nth(at)?.to_owned()))
                    .collect()
            })
        };
        let users = lines("/etc/passwd")?;
        let users = users.iter().filter_map(|line| line.split(':').next()).map(str::to_owned);
        // As dpkg has them; other systems have no such directory.
        let packages = names_in(Path::new("/var/lib/dpkg/info"))?;
        let packages =
            packages.iter().filter_map(|name| Some(name.strip_suffix(".list")?.to_owned()));
        Ok(Present {
            things: [
                files,
                words("/proc/modules", 0)?,
                words("/proc/self/mounts", 1)?,
                names_in(Path::new("/sys/class/net"))?,
                packages.collect(),
                users.collect(),
            ],
        })
    }

    /// Things that were not there before.
    pub fn beyond(&self, before: &Present) -> Present {
        self.each(|at, names| names - &before.things[at])
    }

    /// Things that are still there.
    pub fn still_in(&self, now: &Present) -> Present {
        self.each(|at, names| names & &now.things[at])
    }

    fn each(&self, change: impl Fn(usize, &BTreeSet<String>) -> BTreeSet<String>) -> Present {
        Present { things: std::array::from_fn(|at| change(at, &self.things[at])) }
    }

    pub fn is_empty(&self) -> bool {
        self.things.iter().all(BTreeSet::is_empty)
    }

    /// The list, as `kernel module loop; mount /mnt`.
    pub fn listed(&self) -> String {
        let kinds = KINDS.iter().zip(&self.things).filter(|(_, names)| !names.is_empty());
        let list = kinds.map(|(kind, names)| {
            let named: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
            let more = match names.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("{kind} {}{more}", named.join(", "))
        });
        list.collect::<Vec<_>>().join("; ")
    }
}

/// Lines of a file of the system; none if this system lacks the file.
fn lines(path: &str) -> io::Result<Vec<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
    }
}

fn names_in(directory: &Path) -> io::Result<BTreeSet<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries?,
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_added_is_listed_until_it_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let before = Present::now(directory.path()).unwrap();
        for name in ["added", "weigh-1-scratch"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let files = |present: &Present| present.things[0].clone();
        let added = Present::now(directory.path()).unwrap().beyond(&before);
        assert_eq!(files(&added), BTreeSet::from(["added".to_owned()]));
        assert!(added.listed().starts_with("file or directory added"), "{}", added.listed());
        fs::remove_file(directory.path().join("added")).unwrap();
        let now = Present::now(directory.path()).unwrap();
        assert!(files(&added.still_in(&now)).is_empty());
        assert!(before.beyond(&before).is_empty());
    }
}
