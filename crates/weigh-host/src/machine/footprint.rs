//! Memory and open files that processes hold, including files that were deleted.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

use super::stat::family;

/// Memory and files that some processes hold together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessFootprint {
    /// Resident memory, with its share of what several have.
    pub memory_bytes: u64,
    /// On disk or in memory, of regular files; each file once.
    pub open_bytes: u64,
    /// Bytes of deleted files, which take room as long as they are open.
    pub deleted_bytes: u64,
    pub processes: usize,
}

impl ProcessFootprint {
    /// Adds up the holdings of these processes and of all that they started.
    pub fn by(roots: &[u32]) -> ProcessFootprint {
        let mut held = ProcessFootprint::default();
        let mut files = BTreeSet::new();
        for pid in family(roots, None) {
            held.processes += 1;
            held.memory_bytes += memory_bytes(pid);
            let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            for file in open.filter_map(|entry| fs::metadata(entry.path()).ok()) {
                if !file.is_file() || !files.insert((file.dev(), file.ino())) {
                    continue;
                }
                let bytes = file.blocks() * 512;
                held.open_bytes += bytes;
                held.deleted_bytes += if file.nlink() == 0 { bytes } else { 0 };
            }
        }
        held
    }
}

/// Proportional, where the kernel tells that.
fn memory_bytes(pid: u32) -> u64 {
    let line = |file: &str, name: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
        let value = text.lines().find_map(|line| line.strip_prefix(name))?;
        value.split_whitespace().next()?.parse().ok()
    };
    line("smaps_rollup", "Pss:").or_else(|| line("status", "VmRSS:")).unwrap_or_default() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_without_a_name_is_held_as_long_as_it_is_open() {
        let own = [std::process::id()];
        let before = ProcessFootprint::by(&own);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 4 << 20]).unwrap();
        file.sync_all().unwrap();
        let during = ProcessFootprint::by(&own);
        assert!(during.deleted_bytes >= before.deleted_bytes + (4 << 20), "{before:?} {during:?}");
        assert!(during.open_bytes >= during.deleted_bytes && during.memory_bytes > 0);
        assert!(during.processes >= 1);
    }
}
