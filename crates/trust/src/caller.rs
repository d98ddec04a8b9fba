//! Finds the user who called `sudo`. Anybody may have set `SUDO_UID` in a root shell, so it counts only if
//! the parent process is `sudo`, which sets it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::process::{geteuid, getppid};

use super::path::trusted;
use super::user::User;

/// The user who called `sudo`, where `sudo` is our parent process; `None` for others than root.
pub fn caller() -> Option<User> {
    static CALLER: OnceLock<Option<User>> = OnceLock::new();
    *CALLER.get_or_init(|| {
        let number = |name| std::env::var(name).ok()?.parse().ok();
        let user = User { uid: number("SUDO_UID")?, gid: number("SUDO_GID")? };
        (user.uid != 0 && geteuid().is_root() && parent_is_sudo()).then_some(user)
    })
}

fn parent_is_sudo() -> bool {
    let Some(parent) = getppid() else { return false };
    let process = format!("/proc/{}", parent.as_raw_nonzero());
    // Whatever cannot be read is no proof, and then nobody is believed.
    let is_roots = fs::metadata(&process).is_ok_and(|metadata| metadata.uid() == 0);
    // One that still asks for the password is the user's, and may adopt a shell of root's that was orphaned.
    // sudo becomes root in full before it runs a command.
    let is_done = fs::read_to_string(format!("{process}/status")).is_ok_and(|it| is_full_root(&it));
    let program = fs::read_link(format!("{process}/exe"));
    // Its number is another process's only if it ended, and then we have another parent.
    is_roots
        && is_done
        && program.is_ok_and(|program| is_sudo(&program))
        && getppid() == Some(parent)
}

/// Tells from a `/proc/PID/status` if a process is root in full: by its real, effective, saved and file
/// system id.
fn is_full_root(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    line.is_some_and(|ids| ids.split_whitespace().all(|id| id == "0"))
}

/// A program of this name that only root can have put there.
fn is_sudo(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name == "sudo") && trusted(program).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn a_sudo_that_asks_for_a_password_is_the_users() {
        assert!(is_full_root("Name:\tsudo\nUid:\t0\t0\t0\t0\nGid:\t0\n"));
        assert!(!is_full_root("Name:\tsudo\nUid:\t1001\t0\t0\t0\nGid:\t0\n"));
        assert!(!is_full_root("Name:\tsudo\n"));
    }

    #[test]
    fn only_a_program_of_roots_is_sudo() {
        if !needs::root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let [sudo, other] = ["sudo", "bash"].map(|name| directory.path().join(name));
        for file in [&sudo, &other] {
            fs::write(file, "").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o4755)).unwrap();
        }
        assert!(is_sudo(&sudo) && !is_sudo(&other));
        chown(&sudo, Some(1001), Some(1001)).unwrap();
        assert!(!is_sudo(&sudo));
        assert!(!is_sudo(&directory.path().join("absent/sudo")));
    }
}
