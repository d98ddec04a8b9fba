//! A file that forbids Debian's packages to start what they install (invoke-rc.d(8)), for as long as some are
//! installed: a machine that is to measure servers should not run them all the time.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::Value;

use crate::undo::guard::Guard;
use crate::undo::journal::{EntryOwner, Undoing};

/// The journal's entry for it.
const NO_DAEMONS: &str = "policy-rc.d";
const FILE: &str = "/usr/sbin/policy-rc.d";
/// 101: the action is forbidden by policy.
const CONTENT: &str = "#!/bin/sh\n# Made by weigh doctor --install, which removes it.\nexit 101\n";

pub fn undoing() -> Undoing {
    let undo = Box::new(|_: &Value, _: &EntryOwner| undo(Path::new(FILE)));
    Undoing { kind: NO_DAEMONS, ends_with_boot: false, by_command: true, undo }
}

/// Makes it, where the administrator has none, until the guard removes it.
pub fn forbid(guard: &mut Guard) -> Result<(), String> {
    if fs::exists(FILE).map_err(|error| format!("{FILE}: {error}"))? {
        return Ok(());
    }
    guard.write_down(NO_DAEMONS, FILE, Value::Null).map_err(|error| error.to_string())?;
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o755).open(FILE);
    made.and_then(|mut file| file.write_all(CONTENT.as_bytes()))
        .map_err(|error| format!("cannot make {FILE}: {error}"))
}

/// One that somebody else made meanwhile is left alone; one that cannot be read may be ours.
fn undo(file: &Path) -> Result<(), String> {
    let cannot = |error: io::Error| format!("cannot remove {}: {error}", file.display());
    match fs::read(file) {
        Ok(content) if CONTENT.as_bytes().starts_with(&content) => {
            fs::remove_file(file).map_err(cannot)
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_not_taken_for_somebody_elses() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("policy-rc.d");
        assert!(undo(&file).is_ok(), "there is none");
        fs::create_dir(&file).unwrap();
        assert!(undo(&file).unwrap_err().contains("cannot remove"));
        fs::remove_dir(&file).unwrap();
        fs::write(&file, "#!/bin/sh\nexit 0\n").unwrap();
        assert!(undo(&file).is_ok() && file.exists(), "of the administrator");
        fs::write(&file, CONTENT).unwrap();
        assert!(undo(&file).is_ok() && !file.exists());
    }
}
