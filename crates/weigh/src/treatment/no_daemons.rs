//! A file that forbids Debian's packages to start what they install (invoke-rc.d(8)), for as long as some are
//! installed: a machine that is to measure servers should not run them all the time.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use serde_json::Value;

use super::guard::Guard;
use super::journal::{EntryOwner, Undoing};

/// The journal's entry for it.
const NO_DAEMONS: &str = "policy-rc.d";
const FILE: &str = "/usr/sbin/policy-rc.d";
/// 101: the action is forbidden by policy.
const CONTENT: &str = "#!/bin/sh\n# Made by weigh doctor --install, which removes it.\nexit 101\n";

/// How it is undone.
pub fn undoing() -> Undoing {
    let undo = Box::new(|_: &Value, _: &EntryOwner| undo());
    Undoing { kind: NO_DAEMONS, ends_with_boot: false, undo }
}

/// Makes it, where the administrator has none, until the guard removes it.
///
/// # Errors
/// A sentence, where it cannot be journalled or made.
pub fn forbid(guard: &mut Guard) -> Result<(), String> {
    if fs::exists(FILE).is_ok_and(|exists| exists) {
        return Ok(());
    }
    guard
        .write_down(NO_DAEMONS, FILE, Value::Null)
        .map_err(|error| format!("the journal: {error}"))?;
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o755).open(FILE);
    made.and_then(|mut file| file.write_all(CONTENT.as_bytes()))
        .map_err(|error| format!("cannot make {FILE}: {error}"))
}

/// One that somebody else made meanwhile is left alone.
fn undo() -> Result<(), String> {
    match fs::read_to_string(FILE) {
        Ok(content) if CONTENT.starts_with(&content) => {
            fs::remove_file(FILE).map_err(|error| format!("cannot remove {FILE}: {error}"))
        }
        _ => Ok(()),
    }
}
