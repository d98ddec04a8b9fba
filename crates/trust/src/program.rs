//! Programs that root executes: those of the system, not whatever the caller's `PATH` finds first. And that
//! they end with who started them.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, geteuid, getpid, getppid, set_parent_process_death_signal};

use super::path::trusted;

/// Has the command get this signal when the thread that starts it is gone, whatever ended that. It is not
/// executed where that happened before.
pub fn end_with_us(command: &mut Command, signal: Signal) {
    let own = getpid();
    // SAFETY: two system calls between fork and exec, and no allocation.
    unsafe {
        command.pre_exec(move || match follow_parent(own, signal)? {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        });
    }
}

/// For a child that was just forked: from now on the end of its parent sends it this signal. `false` where
/// the parent was gone before, which sends none.
///
/// # Errors
/// As `prctl(2)`.
pub fn follow_parent(parent: Pid, signal: Signal) -> io::Result<bool> {
    set_parent_process_death_signal(Some(signal))?;
    Ok(getppid() == Some(parent))
}

/// Where distributions install what we need. All are root's own there.
pub const DIRECTORIES: [&str; 5] =
    ["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/run/current-system/sw/bin"];

/// Where a program of the system is, or `None`. Root looks in the system's directories alone, others in
/// their `PATH` first.
///
/// # Errors
/// A sentence, where as root it finds one that another user can change.
pub fn find(name: &str) -> Result<Option<PathBuf>, String> {
    find_in(name, directories().into_iter())
}

/// The file of a program, by its name as [`find`] does or by its path.
///
/// # Errors
/// A sentence, where there is none, or as root one that another user can change.
pub fn named(name: &str) -> Result<PathBuf, String> {
    if !name.contains('/') {
        return find(name)?.ok_or_else(|| format!("there is no program `{name}` here"));
    }
    let file = std::path::absolute(name).map_err(|error| format!("{name}: {error}"))?;
    let directory = file.parent().map(Path::to_path_buf);
    let found = file
        .file_name()
        .and_then(|name| name.to_str())
        .map(|name| find_in(name, directory.into_iter()));
    found.transpose()?.flatten().ok_or_else(|| format!("there is no program {}", file.display()))
}

/// The `PATH` of a program that is to find others as [`find`] does.
pub fn search_path() -> OsString {
    std::env::join_paths(directories()).unwrap_or_else(|_| DIRECTORIES.join(":").into())
}

/// Our `PATH` without the directories that others can change: root may have it from whoever had the shell
/// before. Those of the system are in it.
pub fn trusted_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_roots = |directory: &PathBuf| directory.is_absolute() && trusted(directory).is_ok();
    let kept = std::env::split_paths(&path).filter(is_roots);
    std::env::join_paths(kept.chain(DIRECTORIES.map(PathBuf::from)))
        .unwrap_or_else(|_| search_path())
}

fn directories() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").filter(|_| !geteuid().is_root()).unwrap_or_default();
    // Without a `PATH` there is one empty directory in it, which shells take for the current one.
    let own = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
    own.chain(DIRECTORIES.map(PathBuf::from)).collect()
}

fn find_in(
    name: &str,
    directories: impl Iterator<Item = PathBuf>,
) -> Result<Option<PathBuf>, String> {
    let mut candidates = directories.map(|directory| directory.join(name));
    let Some(found) = candidates.find(|candidate| candidate.is_file()) else { return Ok(None) };
    if geteuid().is_root() {
        check(&found)
            .map_err(|error| format!("cannot use {} as root: {error}", found.display()))?;
    }
    Ok(Some(found))
}

/// Not the path without links: a program of many names has to be called by the right one.
fn check(program: &Path) -> io::Result<()> {
    trusted(program).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn who_follows_a_parent_that_is_gone_is_told_so() {
        // SAFETY: the children make system calls and end at once.
        let statuses = [getpid(), Pid::INIT].map(|parent| unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::_exit(follow_parent(parent, Signal::KILL).map_or(2, i32::from));
            }
            let mut status = 0;
            libc::waitpid(child, &raw mut status, 0);
            libc::WEXITSTATUS(status)
        });
        assert_eq!(statuses, [1, 0]);
    }

    #[test]
    fn a_program_of_the_system_is_found_and_one_that_is_not_there_is_none() {
        assert!(find("sh").unwrap().unwrap().ends_with("sh"));
        assert_eq!(find("no-such-program-anywhere").unwrap(), None);
    }

    #[test]
    fn a_program_has_a_name_or_a_path() {
        assert!(named("sh").unwrap().ends_with("sh"));
        assert_eq!(named("/bin/sh").unwrap(), PathBuf::from("/bin/sh"));
        for missing in ["no-such-program-anywhere", "/bin/no-such-program", "/bin/", "/", "./x"] {
            assert!(named(missing).unwrap_err().contains("no program"), "{missing}");
        }
        let path = search_path().into_string().unwrap();
        assert!(std::env::split_paths(&path).all(|place| place.is_absolute()), "{path}");
        assert!(path.ends_with("/run/current-system/sw/bin"), "{path}");
    }

    #[test]
    fn root_executes_nothing_that_others_can_change() {
        if !needs::root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("auditctl");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let look = || find_in("auditctl", [directory.path().to_owned()].into_iter());
        assert_eq!(look().unwrap(), Some(program.clone()));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o757)).unwrap();
        let refused = look().unwrap_err();
        assert!(refused.contains("auditctl can be written by everybody"), "{refused}");
    }
}
