//! Installing a seccomp filter on the calling process.

use std::io;

/// Installs a filter, given as the fields of `struct sock_filter` per instruction, for this process
/// and all that it will start. Sets `no_new_privs`, without which that needs `CAP_SYS_ADMIN`.
///
/// # Errors
/// `EINVAL` where the kernel refuses the program.
pub fn install(program: &[(u16, u8, u8, u32)]) -> io::Result<()> {
    let mut instructions: Vec<libc::sock_filter> =
        program.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    let length = u16::try_from(instructions.len())
        .map_err(|_| io::Error::other("a seccomp filter has at most 4096 instructions"))?;
    let filter = libc::sock_fprog { len: length, filter: instructions.as_mut_ptr() };
    rustix::thread::set_no_new_privs(true)?;
    // SAFETY: `filter` and the instructions that it points to live across the call.
    let status = unsafe {
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter, 0, 0)
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
