//! The operations that rules are measured on: one for each way in which a rule meets a system call.

use serde::{Deserialize, Serialize};
use syscalls::Sysno;

/// In so many places the kernel keeps the watches of files by their inode numbers: `AUDIT_INODE_BUCKETS`.
pub const INODE_BUCKETS: u64 = 32;
/// The system calls of one `fork`, of the child as well.
pub const CALLS_OF_FORK: [Sysno; 3] = [Sysno::clone, Sysno::exit_group, Sysno::wait4];

/// Operation that a prober repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// A call that takes nothing and does next to nothing.
    Getppid,
    /// 256 bytes of `/dev/zero`: of a file, it would depend on the place in it.
    Read,
    /// A call with a path.
    Stat,
    OpenClose,
    CreateUnlink,
    /// A new process that ends at once, and the wait for it.
    Fork,
    /// A new process that executes a small program, and the wait for it.
    Exec,
}

impl Operation {
    pub const ALL: [Operation; 7] = [
        Operation::Getppid,
        Operation::Read,
        Operation::Stat,
        Operation::OpenClose,
        Operation::CreateUnlink,
        Operation::Fork,
        Operation::Exec,
    ];

    /// Operations on which single rules are measured. Starting a process takes too long, and its
    /// time varies too much. There, the cost of a rule is added up from the system calls.
    pub const SHORT: [Operation; 5] = [
        Operation::Getppid,
        Operation::Read,
        Operation::Stat,
        Operation::OpenClose,
        Operation::CreateUnlink,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Operation::Getppid => "getppid",
            Operation::Read => "read",
            Operation::Stat => "stat",
            Operation::OpenClose => "open-close",
            Operation::CreateUnlink => "create-unlink",
            Operation::Fork => "fork",
            Operation::Exec => "exec",
        }
    }

    /// The system calls of one operation; of `fork` and `exec` only those that rules are written for.
    pub fn calls(self) -> &'static [Sysno] {
        #[cfg(target_arch = "x86_64")]
        const UNLINK: Sysno = Sysno::unlink;
        #[cfg(not(target_arch = "x86_64"))]
        const UNLINK: Sysno = Sysno::unlinkat;
        // The same call, by the name that the kernel has for it there.
        #[cfg(target_arch = "x86_64")]
        const STAT: Sysno = Sysno::newfstatat;
        #[cfg(not(target_arch = "x86_64"))]
        const STAT: Sysno = Sysno::fstatat;
        match self {
            Operation::Getppid => &[Sysno::getppid],
            Operation::Read => &[Sysno::read],
            Operation::Stat => &[STAT],
            Operation::OpenClose => &[Sysno::openat, Sysno::close],
            Operation::CreateUnlink => &[Sysno::openat, Sysno::close, UNLINK],
            Operation::Fork => &[Sysno::clone],
            Operation::Exec => &[Sysno::execve],
        }
    }

    /// Returns true if the operation starts processes. Then CPU time is measured instead of elapsed
    /// time.
    pub fn is_of_processes(self) -> bool {
        matches!(self, Operation::Fork | Operation::Exec)
    }

    /// After how many the prober is where it began: it goes from file to file.
    pub fn cycle(self) -> u64 {
        match self {
            Operation::Stat | Operation::OpenClose => INODE_BUCKETS,
            _ => 1,
        }
    }

    /// About how long one takes while auditing is on; batches are made of it.
    pub fn usual_ns(self) -> u64 {
        match self {
            Operation::Getppid => 600,
            Operation::Read => 1000,
            Operation::Stat => 2500,
            Operation::OpenClose => 4500,
            Operation::CreateUnlink => 15_000,
            Operation::Fork => 90_000,
            Operation::Exec => 350_000,
        }
    }
}
