//! Rulesets of Landlock, by system calls that have no function in the C library.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use serde::{Deserialize, Serialize};

/// linux/landlock.h
const CREATE_RULESET_VERSION: libc::c_uint = 1;
const RULE_PATH_BENEATH: libc::c_int = 1;
const RULE_NET_PORT: libc::c_int = 2;
/// Rights that a rule for a file may have: to execute, write, read, truncate it, and ioctl(2) on devices.
pub const RIGHTS_OF_FILE: u64 = 0b111 | 1 << 14 | 1 << 15;

/// Rights that a ruleset handles: only its rules allow them. Each number is a set of bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Handled {
    pub files: u64,
    pub ports: u64,
    pub scopes: u64,
}

/// A ruleset that can still get rules.
pub struct Ruleset(OwnedFd);

#[repr(C)]
struct PortRule {
    allowed: u64,
    port: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: libc::c_int,
}

/// The version of the kernel's interface.
///
/// # Errors
/// `ENOSYS` where it has none, `EOPNOTSUPP` where it is not among its security modules.
pub fn version() -> io::Result<i64> {
    // SAFETY: it takes no structure with this flag.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u64>(),
            0usize,
            CREATE_RULESET_VERSION,
        )
    };
    if version < 0 { Err(io::Error::last_os_error()) } else { Ok(version) }
}

impl Ruleset {
    pub fn new(handled: &Handled) -> io::Result<Ruleset> {
        // An older kernel takes only the beginning that it knows.
        let length = match handled {
            Handled { ports: 0, scopes: 0, .. } => size_of::<u64>(),
            Handled { scopes: 0, .. } => 2 * size_of::<u64>(),
            _ => size_of::<Handled>(),
        };
        let number = libc::SYS_landlock_create_ruleset;
        // SAFETY: the structure has at least that length.
        let ruleset = unsafe { libc::syscall(number, std::ptr::from_ref(handled), length, 0) };
        if ruleset < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just opened for us.
        Ok(Ruleset(unsafe { OwnedFd::from_raw_fd(ruleset as libc::c_int) }))
    }

    pub fn add_path(&self, parent: &OwnedFd, allowed: u64) -> io::Result<()> {
        let rule = PathBeneath { allowed, parent: parent.as_raw_fd() };
        self.add(RULE_PATH_BENEATH, (&raw const rule).cast())
    }

    pub fn add_port(&self, port: u16, allowed: u64) -> io::Result<()> {
        let rule = PortRule { allowed, port: port.into() };
        self.add(RULE_NET_PORT, (&raw const rule).cast())
    }

    /// Adds a rule of that type, whose structure lives.
    fn add(&self, kind: libc::c_int, rule: *const libc::c_void) -> io::Result<()> {
        // SAFETY: an open descriptor, and a structure of that type.
        let done = unsafe {
            libc::syscall(libc::SYS_landlock_add_rule, self.0.as_raw_fd(), kind, rule, 0)
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Puts this process into a layer with these rules, for good.
    pub fn restrict(&self) -> io::Result<()> {
        // SAFETY: an open descriptor.
        let done =
            unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.0.as_raw_fd(), 0) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
