//! Numbers of system calls in the ABIs that a process of this machine can use.

/// `AUDIT_ARCH_I386`.
pub const I386_ARCHITECTURE: u32 = 0x4000_0003;
/// Calls of x32 have the architecture of x86-64, and this bit in their number.
pub const X32_BIT: u32 = 0x4000_0000;
/// ABIs besides the machine's own.
#[cfg(target_arch = "x86_64")]
pub const FOREIGN: [Abi; 2] = [Abi::I386, Abi::X32];
#[cfg(not(target_arch = "x86_64"))]
pub const FOREIGN: [Abi; 0] = [];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    Native,
    I386,
    X32,
}

/// Calls that x32 has from 512 on, in their order, in place of those of x86-64.
const OF_X32: [&str; 36] = [
    "rt_sigaction",
    "rt_sigreturn",
    "ioctl",
    "readv",
    "writev",
    "recvfrom",
    "sendmsg",
    "recvmsg",
    "execve",
    "ptrace",
    "rt_sigpending",
    "rt_sigtimedwait",
    "rt_sigqueueinfo",
    "sigaltstack",
    "timer_create",
    "mq_notify",
    "kexec_load",
    "waitid",
    "set_robust_list",
    "get_robust_list",
    "vmsplice",
    "move_pages",
    "preadv",
    "pwritev",
    "rt_tgsigqueueinfo",
    "recvmmsg",
    "sendmmsg",
    "process_vm_readv",
    "process_vm_writev",
    "setsockopt",
    "getsockopt",
    "io_setup",
    "io_submit",
    "execveat",
    "preadv2",
    "pwritev2",
];
const FIRST_OF_X32: u32 = 512;

impl Abi {
    /// Name in a report.
    pub fn name(self) -> &'static str {
        match self {
            Abi::Native => "this machine",
            Abi::I386 => "i386",
            Abi::X32 => "x32",
        }
    }

    /// Name in a profile.
    pub fn listed(self) -> &'static str {
        match self {
            Abi::Native if cfg!(target_arch = "x86_64") => "SCMP_ARCH_X86_64",
            Abi::Native => "SCMP_ARCH_AARCH64",
            Abi::I386 => "SCMP_ARCH_X86",
            Abi::X32 => "SCMP_ARCH_X32",
        }
    }

    /// Number of a call; `None` if the ABI lacks it.
    pub fn number(self, name: &str) -> Option<u32> {
        let native = || Some(name.parse::<syscalls::Sysno>().ok()?.id() as u32);
        match self {
            Abi::Native => native(),
            Abi::I386 => Some(name.parse::<syscalls::x86::Sysno>().ok()?.id() as u32),
            Abi::X32 => {
                let own = OF_X32.iter().position(|own| *own == name);
                let own = own.map(|at| FIRST_OF_X32 + at as u32);
                own.or_else(native).map(|number| X32_BIT | number)
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Numbers of asm/unistd_32.h and asm/unistd_x32.h.
    #[test]
    fn each_abi_has_numbers_of_its_own() {
        let numbers = |name| [Abi::Native, Abi::I386, Abi::X32].map(|abi| abi.number(name));
        assert_eq!(numbers("getpid"), [Some(39), Some(20), Some(X32_BIT | 39)]);
        assert_eq!(numbers("execve"), [Some(59), Some(11), Some(X32_BIT | 520)]);
        assert_eq!(numbers("pwritev2"), [Some(328), Some(379), Some(X32_BIT | 547)]);
        assert_eq!(numbers("socketcall"), [None, Some(102), None]);
    }
}
