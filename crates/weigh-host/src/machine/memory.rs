//! How much memory this process may have: the machine's, or what its control groups leave of it.

use std::path::Path;

use crate::machine::source::Source;

/// In KiB; `None` where the kernel does not say.
pub fn memory_kib() -> Option<u64> {
    memory_below(Source::new(Path::new("/")))
}

fn memory_below(source: Source) -> Option<u64> {
    let total = source.value("/proc/meminfo", "MemTotal", ':')?;
    let total: u64 = total.trim_end_matches("kB").trim().parse().ok()?;
    let groups = source.text("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(|line| limits_of(source, line));
    Some(limits.map(|bytes| bytes / 1024).fold(total, u64::min))
}

/// Reads the memory limits of a group and of the groups above it, from a line of
/// `/proc/PID/cgroup`, version 1 or 2 (cgroups(7)).
fn limits_of(source: Source, line: &str) -> Vec<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
        return Vec::new();
    };
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|one| one == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let groups = Path::new(group).ancestors();
    let limit = |group: &Path| {
        let group = group.to_str()?.trim_end_matches('/');
        source.text(&format!("{root}{group}/{file}"))?.parse().ok()
    };
    groups.filter_map(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::source::tests::root_with;

    #[test]
    fn the_smallest_limit_counts() {
        let with = |group: &str, files: &[(&str, &str)]| {
            let mut all =
                vec![("/proc/meminfo", "MemTotal:  4096 kB\n"), ("/proc/self/cgroup", group)];
            all.extend(files);
            memory_below(Source::new(root_with(&all).path()))
        };
        assert_eq!(with("0::/\n", &[]), Some(4096));
        let limits = [
            ("/sys/fs/cgroup/a/memory.max", "1048576\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
        ];
        assert_eq!(with("0::/a/b\n", &limits), Some(1024));
        let limits = [("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2097152\n")];
        assert_eq!(with("3:cpu:/x\n2:memory:/a\n", &limits), Some(2048));
        assert!(memory_kib() > Some(0));
    }
}
