//! The file that `weigh profile` writes, and `weigh rules` and `weigh budget` read.

use std::io;
use std::path::Path;

use trust::user_file;
use weigh_model::profile::SyscallProfile;

/// A file that is longer is none of these.
const LONGEST_FILE: u64 = 16 << 20;

/// Reads a file of [`write()`], or a summary of `strace -c` or `perf trace -s`.
pub fn read(path: &Path) -> Result<SyscallProfile, String> {
    let bytes = user_file::read(path, LONGEST_FILE)
        .map_err(|error| format!("cannot read the profile {}: {error}", path.display()))?;
    SyscallProfile::parse(&bytes).map_err(|problem| format!("{}: {problem}", path.display()))
}

pub fn write(profile: &SyscallProfile, path: &Path) -> Result<(), String> {
    let problem = |error: io::Error| format!("cannot write {}: {error}", path.display());
    let text = profile.json().map_err(|error| problem(error.into()))?;
    trust::owner::write(path, text.as_bytes()).map_err(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_what_is_missing_is_named() {
        let json = br#"{"schema":"weighbridge/profile/1","command":["true"],"calls":{"read":7}}"#;
        let profile = SyscallProfile::parse(json);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("profile.json");
        write(profile.as_ref().unwrap(), &path).unwrap();
        assert_eq!(read(&path), profile);
        let missing = read(Path::new("/nonexistent/p.json")).unwrap_err();
        assert!(missing.starts_with("cannot read the profile /nonexistent/p.json: "), "{missing}");
    }
}
