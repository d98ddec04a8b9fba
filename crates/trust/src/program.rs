//! Programs that root executes: those of the system, not whatever the caller's `PATH` finds first.

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::path::trusted;

/// Where distributions install what we need. All are root's own there.
const DIRECTORIES: [&str; 5] =
    ["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/run/current-system/sw/bin"];

/// Where a program of the system is, or `None`. Root looks in the system's directories alone, others in
/// their `PATH` first.
///
/// # Errors
/// A sentence, where as root it finds one that another user can change.
pub fn find(name: &str) -> Result<Option<PathBuf>, String> {
    let path = std::env::var_os("PATH").filter(|_| !geteuid().is_root()).unwrap_or_default();
    find_in(name, std::env::split_paths(&path).chain(DIRECTORIES.map(PathBuf::from)))
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
    fn a_program_of_the_system_is_found_and_one_that_is_not_there_is_none() {
        assert!(find("sh").unwrap().unwrap().ends_with("sh"));
        assert_eq!(find("no-such-program-anywhere").unwrap(), None);
    }

    #[test]
    fn root_executes_nothing_that_others_can_change() {
        if !geteuid().is_root() {
            println!("skipped: needs root");
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
