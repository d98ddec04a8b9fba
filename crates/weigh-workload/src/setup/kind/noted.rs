//! A command that may change the system notes itself in a file before it is executed, so that whoever undoes
//! its changes can end it first.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::setup::Act;
use weigh_host::machine::process::process_life;
use weigh_host::undo::running::{MARK, NotedCommand};

/// Has each worker note itself in this file, in place of the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noted {
    pub file: PathBuf,
    pub mark: String,
}

impl Act for Noted {
    fn environment(&self) -> Vec<(String, String)> {
        vec![(MARK.into(), self.mark.clone())]
    }

    fn in_worker(&self) -> io::Result<()> {
        let pid = std::process::id();
        let start = process_life(pid)?.ok_or(io::ErrorKind::NotFound)?.start;
        let note = serde_json::to_vec(&NotedCommand { pid, start, mark: self.mark.clone() })?;
        // Never half a note.
        let new = self.file.with_extension("running-new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).open(&new)?.write_all(&note)?;
        fs::rename(new, &self.file)
    }
}
