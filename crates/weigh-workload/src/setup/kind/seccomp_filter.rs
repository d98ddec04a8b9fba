//! A seccomp filter that every worker installs on itself just before it executes, once or several times.

use std::io;

use serde::{Deserialize, Serialize};

use crate::setup::Act;

/// The four fields of `struct sock_filter` per instruction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeccompFilter {
    pub program: Vec<(u16, u8, u8, u32)>,
    /// Number of times that it is installed: each call then passes it as often.
    pub times: u32,
}

impl Act for SeccompFilter {
    /// Sets `no_new_privs`, without which that needs `CAP_SYS_ADMIN`.
    fn in_worker(&self) -> io::Result<()> {
        let instruction = |&(code, jt, jf, k): &_| libc::sock_filter { code, jt, jf, k };
        let mut instructions: Vec<libc::sock_filter> =
            self.program.iter().map(instruction).collect();
        let length = u16::try_from(instructions.len())
            .map_err(|_| io::Error::other("a seccomp filter has at most 4096 instructions"))?;
        let filter = libc::sock_fprog { len: length, filter: instructions.as_mut_ptr() };
        rustix::thread::set_no_new_privs(true)?;
        (0..self.times).try_for_each(|_| install(&filter))
    }

    fn forbids(&self) -> bool {
        true
    }
}

fn install(filter: &libc::sock_fprog) -> io::Result<()> {
    // SAFETY: `filter` and the instructions that it points to live across the call.
    let status = unsafe {
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const *filter, 0, 0)
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
