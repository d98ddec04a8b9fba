//! Starting a program that was made just now. None that is started here can reboot this machine.

use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Duration;

/// `CAP_SYS_BOOT`, capabilities(7): a mistake in a test is to end as one.
const SYS_BOOT: libc::c_ulong = 22;

/// Starts it, again where it is open for writing: also in a child of another test's thread that is not yet
/// the program which it is to be.
pub fn spawn(command: &mut Command) -> Child {
    // SAFETY: system calls, and no allocation.
    unsafe {
        command.pre_exec(|| {
            let dropped = libc::prctl(libc::PR_CAPBSET_DROP, SYS_BOOT, 0, 0, 0);
            // Who is not root may drop nothing, and has nothing to drop.
            if dropped == 0 || libc::geteuid() != 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            // A container may lack both the capability and the one to drop it.
            if libc::prctl(libc::PR_CAPBSET_READ, SYS_BOOT, 0, 0, 0) == 0 {
                Ok(())
            } else {
                Err(error)
            }
        });
    }
    const TRIES: u32 = 1000;
    const PAUSE: Duration = Duration::from_millis(10);
    for _ in 1..TRIES {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(PAUSE)
            }
            other => return other.unwrap(),
        }
    }
    command.spawn().unwrap()
}
