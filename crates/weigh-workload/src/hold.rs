//! Holding a worker at the moment when it has executed its program and done nothing yet, so that it can be
//! looked at however short it is: it is traced until then, and never after.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::getxattr;
use rustix::process::{Pid, WaitId, WaitIdOptions, geteuid, waitid};

/// Returns true if executing a program gives it another user or the capabilities of its file.
///
/// Examples are `sudo` and `ping`. Such a program gains nothing while a process without privileges
/// traces it. `program` is a path, or a name to find in `PATH`.
pub fn gains_privileges(program: &str) -> bool {
    if geteuid().is_root() {
        return false;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let file = match program.contains('/') {
        true => Some(PathBuf::from(program)),
        false => std::env::split_paths(&path).map(|it| it.join(program)).find(|it| it.is_file()),
    };
    let Some(file) = file else { return false };
    let is_others = fs::metadata(&file).is_ok_and(|status| status.mode() & 0o6000 != 0);
    is_others || getxattr(&file, "security.capability", &mut [0_u8; 64][..]).is_ok()
}

/// For the worker, before it executes: from now on its parent traces it. `false` where that is not allowed,
/// as where somebody else does.
pub fn be_held() -> bool {
    let nothing = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: the request takes no address.
    unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, nothing, nothing) == 0 }
}

/// Waits until it has executed, or ended. What it is sent before that reaches it.
pub fn wait_until_executed(worker: Pid) -> io::Result<()> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    loop {
        let Some(status) = waitid(WaitId::Pid(worker), options)? else { continue };
        match status.trapping_signal() {
            // The kernel sends it this one when it has executed.
            Some(libc::SIGTRAP) | None => return Ok(()),
            Some(signal) => ask(libc::PTRACE_CONT, worker, signal)?,
        }
    }
}

/// Waits until a held worker is off its CPU: only then has the kernel counted that it gave it up.
///
/// # Errors
/// As `ptrace(2)`.
pub fn wait_until_off_cpu(worker: Pid) -> io::Result<()> {
    // Any request waits for that (`ptrace_check_attach` in kernel/ptrace.c). This one changes nothing.
    ask(libc::PTRACE_SETOPTIONS, worker, 0)
}

/// Lets it run, traced no more. One that was killed needs nothing.
pub fn let_go(worker: Pid) {
    let _ = ask(libc::PTRACE_DETACH, worker, 0);
}

fn ask(request: libc::c_uint, worker: Pid, signal: i32) -> io::Result<()> {
    let nothing = std::ptr::null_mut::<libc::c_void>();
    let data = signal as usize as *mut libc::c_void;
    // SAFETY: the requests take no address; the data is a number.
    match unsafe { libc::ptrace(request, worker.as_raw_nonzero().get(), nothing, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
