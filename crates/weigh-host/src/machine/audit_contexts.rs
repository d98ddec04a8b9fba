//! Probe for audit contexts of new processes. The kernel gives every new process an audit context
//! once auditing was switched on for the first time since boot (`audit_ever_enabled` in
//! kernel/auditsc.c). It does so even after auditing is off again. Each system call of such a
//! process then takes the slow path. On the machine that this was written on, getppid took 0.38 µs
//! in place of 0.21 µs.
//!
//! No file shows this. But a context is an allocation of one or two KiB, a size that a thread does
//! not need otherwise. So the kernel's caches of that size grow when many threads begin.

use std::collections::BTreeMap;
use std::thread;
use std::{fs, io};

use rustix::process::{Resource, getrlimit};

/// So many that what the caches keep for reuse after quiet times, about 100 objects, does not hide them.
const THREADS: usize = 512;
const STACK_BYTES: usize = 64 << 10;

/// Most looks. If many processes end meanwhile, they give contexts back, which hides those that the threads
/// take. So one look that finds contexts proves them; to deny them takes two looks that find none.
const LOOKS: usize = 4;

/// `None` if unknown: the check takes root, a kernel with `/proc/slabinfo`, and no memory limit. A thread
/// that starts but finds no memory for its signal stack aborts or hangs this process.
pub fn are_made() -> Option<bool> {
    let is_limited = |resource| getrlimit(resource).current.is_some();
    if [Resource::As, Resource::Data].into_iter().any(is_limited) {
        return None;
    }
    let read = || fs::read_to_string("/proc/slabinfo");
    let mut before = read().ok()?;
    while_threads_live(|begin_more| {
        let mut denials = 0;
        for _ in 0..LOOKS {
            let during = begin_more().and_then(|()| read()).ok()?;
            match judge(&objects(&before), &objects(&during)) {
                Some(true) => return Some(true),
                Some(false) if denials == 1 => return Some(false),
                Some(false) => denials += 1,
                None => (),
            }
            before = during;
        }
        None
    })
}

/// `look` gets what begins [`THREADS`] threads each time; they live until it returns.
fn while_threads_live<T>(look: impl FnOnce(&mut dyn FnMut() -> io::Result<()>) -> T) -> T {
    let mut threads = Vec::new();
    let begin = |_| thread::Builder::new().stack_size(STACK_BYTES).spawn(thread::park);
    let mut begin_more = || {
        let mut begun = (0..THREADS).map(begin);
        begun.try_for_each(|thread| thread.map(|it| threads.push(it)))
    };
    let seen = look(&mut begin_more);
    threads.iter().for_each(|thread| thread.thread().unpark());
    threads.into_iter().for_each(|thread| drop(thread.join()));
    seen
}

/// How many objects are in use in each cache that a context may be from. A kernel may have several of a size,
/// and takes one of them for all contexts (`CONFIG_RANDOM_KMALLOC_CACHES`).
fn objects(slabinfo: &str) -> BTreeMap<&str, u64> {
    slabinfo.lines().filter_map(object_count).collect()
}

fn object_count(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split_whitespace();
    let (name, in_use) = (words.next()?, words.next()?.parse().ok()?);
    let size = name.strip_prefix("kmalloc-")?;
    let of_several = size.strip_prefix("rnd-").and_then(|rest| rest.split_once('-'));
    let size = of_several.map_or(size, |(_, size)| size);
    matches!(size, "1k" | "2k").then_some((name, in_use))
}

/// Judges by the cache that grew most. `None` where it grew for only some of the threads, or where a cache
/// shrank by a similar number because processes ended meanwhile.
fn judge(before: &BTreeMap<&str, u64>, during: &BTreeMap<&str, u64>) -> Option<bool> {
    let growth = |(name, now): (&&str, &u64)| Some(*now as i64 - *before.get(name)? as i64);
    let growths: Vec<i64> = during.iter().filter_map(growth).collect();
    let (least, most) = (growths.iter().min()?, *growths.iter().max()?);
    let few = THREADS as i64 / 8;
    match most {
        most if most >= THREADS as i64 / 2 => Some(true),
        most if most <= few && *least >= -few => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(before: &str, during: &str) -> Option<bool> {
        judge(&objects(before), &objects(during))
    }

    #[test]
    fn caches_of_the_size_grow_by_as_many_as_there_are_threads() {
        let with = |of_1k: u64, of_2k: u64| {
            format!(
                "slabinfo - version: 2.1\n# name <active_objs> <num_objs>\ntask_struct {of_2k} 9 4288\n\
                 kmalloc-cg-2k {of_2k} 300 2048\nkmalloc-2k {of_2k} 9 2048\nkmalloc-1k {of_1k} 9 1024\n"
            )
        };
        assert_eq!(found(&with(500, 200), &with(510, 640)), Some(true));
        assert_eq!(found(&with(500, 200), &with(940, 190)), Some(true));
        assert_eq!(found(&with(500, 200), &with(530, 205)), Some(false));
        assert_eq!(found(&with(500, 200), &with(500, 350)), None);
        assert_eq!(found(&with(500, 900), &with(500, 600)), None, "processes ended");
        let other =
            |count: u64| format!("kmalloc-cg-2k {count} 9 2048\nkmalloc-512 {count} 9 512\n");
        assert_eq!(found(&other(0), &other(999)), None, "none of the caches is there");
        let random =
            |count: u64| format!("kmalloc-rnd-07-2k {count} 9 2048\nkmalloc-2k 5 9 2048\n");
        assert_eq!(found(&random(0), &random(500)), Some(true));
    }
}
