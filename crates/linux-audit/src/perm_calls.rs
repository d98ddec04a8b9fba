//! The system calls behind `perm=` of a rule, as x86-64 kernels class them
//! (`include/asm-generic/audit_*.h`, `audit_match_perm` in `kernel/auditsc.c`).
//!
//! A call too many does no harm in a rule that has `perm=` too: the kernel still asks.

/// The last kernel that added calls to these lists; later ones may.
pub const NEWEST_KERNEL: &str = "6.17";

/// Calls that the kernel counts as opening, whatever `perm=` is asked for, by their flags.
const OPEN: [&str; 3] = ["open", "openat", "openat2"];
const EXECUTE: [&str; 2] = ["execve", "execveat"];
const WRITE: &str = "\
    rename mkdir rmdir creat link unlink symlink mknod mkdirat mknodat unlinkat renameat linkat \
    symlinkat renameat2 acct swapon quotactl truncate ftruncate bind fallocate";
const READ: &str =
    "readlink quotactl listxattr llistxattr flistxattr getxattr lgetxattr fgetxattr readlinkat";
const ATTRIBUTES: &str = "\
    chmod fchmod chown fchown lchown setxattr lsetxattr fsetxattr removexattr lremovexattr \
    fremovexattr fchownat fchmodat link linkat";
/// Newer than the tables of `auditctl` 3, which takes their numbers: the same in both ABIs.
const QUOTACTL_FD: &str = "443";
const FCHMODAT2: &str = "452";
const SETXATTRAT: &str = "463";
const GETXATTRAT: &str = "464";
const LISTXATTRAT: &str = "465";
const REMOVEXATTRAT: &str = "466";
const FILE_GETATTR: &str = "468";
const FILE_SETATTR: &str = "469";

/// The calls of some of the letters `rwxa`, for `-S` after `-F arch=b64` or, with those that only
/// 32-bit processes have, `b32`.
pub fn calls(perm: &str, is_32_bit: bool) -> Vec<&'static str> {
    let mut calls: Vec<&str> = Vec::new();
    let has = |letter| perm.contains(letter);
    if has('r') || has('w') {
        calls.extend(OPEN);
    }
    if has('w') {
        calls.extend(WRITE.split(' '));
        calls.push(QUOTACTL_FD);
        if is_32_bit {
            calls.extend(["truncate64", "ftruncate64", "socketcall"]);
        }
    }
    if has('r') {
        calls.extend(READ.split(' '));
        calls.extend([QUOTACTL_FD, GETXATTRAT, LISTXATTRAT, FILE_GETATTR]);
    }
    if has('x') {
        calls.extend(EXECUTE);
    }
    if has('a') {
        calls.extend(ATTRIBUTES.split(' '));
        calls.extend([FCHMODAT2, SETXATTRAT, REMOVEXATTRAT, FILE_SETATTR]);
        if is_32_bit {
            calls.extend(["chown32", "fchown32", "lchown32"]);
        }
    }
    let mut seen = std::collections::HashSet::new();
    calls.retain(|call| seen.insert(*call));
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_has_its_calls_and_opening_is_reading_and_writing() {
        for (call, letters) in [
            ("openat", "rw"),
            ("rename", "w"),
            ("readlink", "r"),
            ("quotactl", "rw"),
            ("execve", "x"),
            ("chmod", "a"),
            ("link", "wa"),
            (QUOTACTL_FD, "rw"),
            (GETXATTRAT, "r"),
            (FCHMODAT2, "a"),
        ] {
            for letter in ["r", "w", "x", "a"] {
                let has = calls(letter, false).contains(&call);
                assert_eq!(has, letters.contains(letter), "{call} {letter}");
            }
        }
        assert_eq!(calls("", true), [""; 0]);
    }

    #[test]
    fn calls_of_32_bit_processes_are_listed_for_them_alone_and_none_twice() {
        for (perm, call) in [("w", "truncate64"), ("a", "chown32")] {
            assert!(calls(perm, true).contains(&call) && !calls(perm, false).contains(&call));
        }
        let all = calls("rwxa", true);
        let different: std::collections::BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), different.len());
    }
}
