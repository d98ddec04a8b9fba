//! The part of the CPUs that this process and its children may use. The standard library knows their number
//! (`available_parallelism`), but not the reason or a fraction. It takes an unreadable file for no limit.

use std::collections::BTreeMap;
use std::path::Path;

use crate::machine::hierarchies::Hierarchies;
use crate::machine::source::Source;
use weigh_model::cpu_share::{CpuShare, cpus_of, list_of};

/// Where the kernel lists the CPUs of a hybrid processor of Intel, the fastest first.
const HYBRID: [&str; 3] = ["cpu_core", "cpu_atom", "cpu_lowpower"];

/// Reads it below a root. A file that is there and cannot be read is in `unreadable`.
pub(super) fn read(root: &Path) -> CpuShare {
    let source = Source::new(root);
    let mut share = CpuShare::default();
    let read = [
        read_allowed(&mut share, source),
        read_niceness(&mut share, source),
        read_quota(&mut share, source, root),
        read_kinds(&mut share, root),
    ];
    share.unreadable = read.into_iter().filter_map(Result::err).collect();
    share
}

fn read_allowed(share: &mut CpuShare, source: Source) -> Result<(), String> {
    const STATUS: &str = "/proc/self/status";
    let Some(status) = source.text_if_any(STATUS)? else { return Ok(()) };
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let allowed = line.ok_or_else(|| format!("{STATUS}: it lacks Cpus_allowed_list"))?;
    let mut allowed = list(STATUS, allowed)?;
    // The kernel's list has CPUs that may come later too.
    const ONLINE: &str = "/sys/devices/system/cpu/online";
    if let Some(online) = source.text_if_any(ONLINE)? {
        let online = list(ONLINE, &online)?;
        allowed.retain(|cpu| online.contains(cpu));
    }
    share.allowed = Some(list_of(&allowed));
    Ok(())
}

fn read_niceness(share: &mut CpuShare, source: Source) -> Result<(), String> {
    const STAT: &str = "/proc/self/stat";
    let Some(stat) = source.text_if_any(STAT)? else { return Ok(()) };
    // proc_pid_stat(5): field 19, of which two are before the end of the name.
    let field = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(16));
    let niceness = field.and_then(|nice| nice.parse().ok());
    share.niceness = Some(niceness.ok_or_else(|| format!("{STAT}: it lacks the niceness"))?);
    Ok(())
}

/// The smallest of all quotas around this process: each limits all below its group together.
fn read_quota(share: &mut CpuShare, source: Source, root: &Path) -> Result<(), String> {
    for file in ["/proc/self/mountinfo", "/proc/self/cgroup"] {
        source.text_if_any(file)?;
    }
    for group in Hierarchies::read(root).groups_around("cpu") {
        let group = group.strip_prefix(root).unwrap_or(&group);
        let Some((quota, file)) = quota_of(source, &format!("/{}", group.display()))? else {
            continue;
        };
        if share.quota_cpus.is_none_or(|least| quota < least) {
            (share.quota_cpus, share.quota_file) = (Some(quota), Some(file));
        }
    }
    Ok(())
}

/// Returns the quota of a group in CPUs, with the file that sets it.
fn quota_of(source: Source, group: &str) -> Result<Option<(f64, String)>, String> {
    let group = group.trim_end_matches('/');
    let (file, words) = match source.text_if_any(&format!("{group}/cpu.max"))? {
        Some(text) => (format!("{group}/cpu.max"), text),
        None => {
            let file = format!("{group}/cpu.cfs_quota_us");
            let Some(quota) = source.text_if_any(&file)? else { return Ok(None) };
            let period = source.text_if_any(&format!("{group}/cpu.cfs_period_us"))?;
            (file, format!("{quota} {}", period.unwrap_or_default()))
        }
    };
    let (quota, period) = words.split_once(' ').unwrap_or((&words, ""));
    if matches!(quota, "max" | "-1") {
        return Ok(None);
    }
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0);
    match number(quota).zip(number(period)) {
        Some((quota, period)) => Ok(Some((quota / period, file))),
        None => Err(format!("{file}: `{words}` is not a quota with its period")),
    }
}

fn read_kinds(share: &mut CpuShare, root: &Path) -> Result<(), String> {
    let allowed = share.allowed.as_deref().and_then(cpus_of);
    let is_allowed = |cpu: &usize| allowed.as_ref().is_none_or(|allowed| allowed.contains(cpu));
    let of_kind = |kind: Vec<usize>| kind.into_iter().filter(is_allowed).collect::<Vec<_>>();
    let kinds = kinds(root)?.into_iter().map(of_kind).filter(|kind| !kind.is_empty());
    let kinds: Vec<String> = kinds.map(|kind| list_of(&kind)).collect();
    share.kinds = if kinds.len() > 1 { kinds } else { Vec::new() };
    Ok(())
}

/// The CPUs of a machine whose CPUs are not equally fast, by kind, the fastest first; empty where they are.
pub fn kinds(root: &Path) -> Result<Vec<Vec<usize>>, String> {
    let source = Source::new(root);
    let mut kinds = by_capacity(source)?;
    if kinds.len() < 2 {
        kinds.clear();
        for name in HYBRID {
            let file = format!("/sys/devices/{name}/cpus");
            if let Some(cpus) = source.text_if_any(&file)? {
                kinds.push(list(&file, &cpus)?);
            }
        }
    }
    Ok(if kinds.len() > 1 { kinds } else { Vec::new() })
}

/// As ARM and RISC-V tell them.
fn by_capacity(source: Source) -> Result<Vec<Vec<usize>>, String> {
    let mut kinds: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for name in source.names("/sys/devices/system/cpu") {
        let Some(Ok(cpu)) = name.strip_prefix("cpu").map(str::parse::<usize>) else { continue };
        let file = format!("/sys/devices/system/cpu/{name}/cpu_capacity");
        let Some(text) = source.text_if_any(&file)? else { continue };
        let capacity = text.parse().map_err(|_| format!("{file}: `{text}` is not a number"))?;
        kinds.entry(capacity).or_default().push(cpu);
    }
    kinds.values_mut().for_each(|cpus| cpus.sort_unstable());
    Ok(kinds.into_values().rev().collect())
}

fn list(file: &str, text: &str) -> Result<Vec<usize>, String> {
    let text = text.trim();
    cpus_of(text).ok_or_else(|| format!("{file}: `{text}` is not a list of CPUs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::hierarchies::example::SYSTEMD;
    use crate::machine::source::tests::root_with;

    const STATUS: (&str, &str) = ("/proc/self/status", "Name:\tweigh\nCpus_allowed_list:\t1-127\n");
    const ONLINE: (&str, &str) = ("/sys/devices/system/cpu/online", "0-3\n");

    fn share(files: &[(&str, &str)]) -> CpuShare {
        read(root_with(files).path())
    }

    #[test]
    fn affinity_and_niceness_are_those_of_this_process() {
        let stat = "7 (a ) b) S 2 7 7 0 -1 4194560 5 6 2 62 100 3 46 18 39 19 1 0 208988";
        let found = share(&[STATUS, ONLINE, ("/proc/self/stat", stat)]);
        let expected =
            CpuShare { allowed: Some("1-3".into()), niceness: Some(19), ..CpuShare::default() };
        assert_eq!(found, expected);
        assert_eq!(share(&[]), CpuShare::default());
    }

    #[test]
    fn the_smallest_quota_around_this_process_counts() {
        let with = |quotas: &[(&str, &str)]| {
            let found = share(&[&SYSTEMD[..], quotas].concat());
            assert_eq!(found.unreadable, [""; 0]);
            found.quota_cpus.zip(found.quota_file)
        };
        let slice = "sys/fs/cgroup/user.slice/cpu.max";
        let session = "sys/fs/cgroup/user.slice/user-7.slice/session-1.scope/cpu.max";
        assert_eq!(with(&[(slice, "max 100000"), (session, "max 100000")]), None);
        let docker = with(&[(slice, "max 100000"), (session, "150000 100000\n")]);
        assert_eq!(docker, Some((1.5, format!("/{session}"))));
        let outer = with(&[(slice, "50000 100000"), (session, "150000 100000")]);
        assert_eq!(outer, Some((0.5, format!("/{slice}"))));
    }

    #[test]
    fn a_quota_of_version_1_is_found_too() {
        let root = |quota| {
            share(&[
                (
                    "proc/self/mountinfo",
                    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
                     35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
                ),
                ("proc/self/cgroup", "4:memory:/\n1:cpu,cpuacct:/kubepods/pod1\n"),
                ("sys/fs/cgroup/cpu/kubepods/pod1/cpu.cfs_quota_us", quota),
                ("sys/fs/cgroup/cpu/kubepods/pod1/cpu.cfs_period_us", "100000\n"),
            ])
        };
        assert_eq!(root("-1\n").quota_cpus, None);
        let found = root("25000\n");
        assert_eq!(found.quota_cpus, Some(0.25));
        let file = "/sys/fs/cgroup/cpu/kubepods/pod1/cpu.cfs_quota_us";
        assert_eq!(found.quota_file.as_deref(), Some(file));
    }

    #[test]
    fn what_cannot_be_read_is_said_and_no_default() {
        let slice = "sys/fs/cgroup/user.slice/cpu.max";
        let found = share(&[&SYSTEMD[..], &[(slice, "half 100000")]].concat());
        let expected = format!("/{slice}: `half 100000` is not a quota with its period");
        assert_eq!(found.unreadable, [expected]);
        let odd = [STATUS, ("/sys/devices/system/cpu/online", "all"), ("/proc/self/stat", "7 (a)")];
        let found = share(&odd).unreadable;
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("cpu/online: `all` is not a list"), "{found:?}");
        assert!(found[1].contains("stat: it lacks the niceness"), "{found:?}");
        // A directory cannot be read by anybody, root included.
        let found = share(&[("/proc/self/status/x", "")]).unreadable;
        assert!(found[0].starts_with("/proc/self/status: "), "{found:?}");
    }

    #[test]
    fn cpus_that_are_not_equally_fast_are_found_among_those_allowed() {
        let capacity = |cpu: &str| format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
        let files = ["0", "1", "2", "10"].map(capacity);
        let [little, _, big, last] = &files;
        let arm = [(&**little, "446"), (&*files[1], "446"), (&**big, "1024"), (&**last, "1024\n")];
        let root = root_with(&arm);
        assert_eq!(kinds(root.path()), Ok(vec![vec![2, 10], vec![0, 1]]));
        let bound =
            share(&[&arm[..], &[("/proc/self/status", "Cpus_allowed_list:\t0-2")]].concat());
        assert_eq!(bound.kinds, ["2", "0-1"]);
        let one_kind = [&arm[..], &[("/proc/self/status", "Cpus_allowed_list:\t0-1")]].concat();
        assert_eq!(share(&one_kind).kinds, [""; 0]);
        let intel =
            [("/sys/devices/cpu_core/cpus", "0-3\n"), ("/sys/devices/cpu_atom/cpus", "4-11\n")];
        assert_eq!(share(&intel).kinds, ["0-3", "4-11"]);
        assert_eq!(share(&intel[..1]).kinds, [""; 0]);
        assert!(kinds(root_with(&[(little, "fast")]).path()).unwrap_err().contains("`fast`"));
    }

    #[test]
    fn this_process_has_its_share() {
        let found = crate::machine::facts::read().cpu_share;
        assert_eq!(found.unreadable, [""; 0]);
        assert!(found.allowed_count().unwrap() >= 1 && found.niceness.is_some(), "{found:?}");
    }
}
