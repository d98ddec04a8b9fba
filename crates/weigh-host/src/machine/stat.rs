//! `/proc/PID/stat`: a process or a thread in one line, proc_pid_stat(5). Also of one that has ended and
//! was not reaped.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;

const STATE: usize = 3;
const PARENT: usize = 4;

/// The fields from the state on: the name before it is in parentheses, and may hold anything.
#[derive(Clone, Debug)]
pub struct Stat(String);

impl Stat {
    pub fn of(process: impl Display) -> io::Result<Stat> {
        Stat::read(Path::new(&format!("/proc/{process}/stat")))
    }

    pub fn read(file: &Path) -> io::Result<Stat> {
        fs::read(file).map(|line| Stat::parse(&String::from_utf8_lossy(&line)))
    }

    /// A line that was cut within the name has no fields.
    pub fn parse(line: &str) -> Stat {
        Stat(line.rsplit_once(')').map_or_else(String::new, |(_, behind)| behind.to_owned()))
    }

    /// The field that has this number in the manual page.
    pub fn field(&self, number: usize) -> Option<&str> {
        self.0.split_whitespace().nth(number.checked_sub(STATE)?)
    }

    pub fn number<T: FromStr>(&self, number: usize) -> Option<T> {
        self.field(number)?.parse().ok()
    }

    /// A letter; empty where the line is cut.
    pub fn state(&self) -> &str {
        self.field(STATE).unwrap_or_default()
    }

    pub fn parent(&self) -> Option<u32> {
        self.number(PARENT)
    }
}

/// The numbers of all processes that can be seen.
pub fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// These processes and all that descend from them, each once; but of `except` neither it nor its own.
pub fn family(roots: &[u32], except: Option<u32>) -> Vec<u32> {
    let parent = |pid: u32| Some((pid, Stat::of(pid).ok()?.parent()?));
    let parents: Vec<(u32, u32)> =
        pids().filter(|pid| Some(*pid) != except).filter_map(parent).collect();
    let mut family = roots.to_vec();
    family.sort_unstable();
    family.dedup();
    let mut next = 0;
    while let Some(&of) = family.get(next) {
        for (child, _) in parents.iter().filter(|(_, parent)| *parent == of) {
            if !family.contains(child) {
                family.push(*child);
            }
        }
        next += 1;
    }
    family
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat =
            Stat::parse("7 (a) b 1 (c) S 2 7 7 0 -1 4194560 5 6 2 62 100 3 46 18 20 0 1 0 8");
        assert_eq!((stat.state(), stat.parent()), ("S", Some(2)));
        assert_eq!((stat.number(14), stat.number(15)), (Some(100), Some(3)));
        assert_eq!((stat.number::<i64>(22), stat.field(23), stat.field(1)), (Some(8), None, None));
        let cut = Stat::parse("7 (a");
        assert_eq!((cut.state(), cut.parent()), ("", None));
    }

    #[test]
    fn a_family_has_the_children_and_nobody_else() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let ours = std::process::id();
        let [all, without] = [None, Some(child.id())].map(|except| family(&[ours, ours], except));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(all[0], ours);
        assert!(all.contains(&child.id()) && !all.contains(&1), "{all:?}");
        assert!(!without.contains(&child.id()), "{without:?}");
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in ".{0,200}", number in 0_usize..60) {
            let _ = Stat::parse(&line).number::<u64>(number);
        }
    }
}
