//! UnixBench's eight tests of Smalley's Table 9, which Whitcher's table has under the same names.

/// Their name of each test, and our workload.
pub const EIGHT_TESTS: [(&str, &str); 8] = [
    ("file copy 4KB", "fsdisk"),
    ("file copy 1KB", "fstime"),
    ("file copy 256B", "fsbuffer"),
    ("pipe", "pipe"),
    ("pipe switching", "context1"),
    ("process creation", "spawn"),
    ("execl", "execl"),
    ("shell scripts (8)", "shell8"),
];

/// Returns true if `name` is this workload, wherever its processes were placed.
pub fn is_test(name: &str, workload: &str) -> bool {
    name == workload || name.split('@').next() == Some(workload)
}
