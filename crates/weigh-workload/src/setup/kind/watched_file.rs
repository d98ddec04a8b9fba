//! A file that every worker opens and reads just before it executes, and its launcher when the worker has
//! ended: a listener for events of files must see both.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::setup::Act;

/// Directory of the last worker. A worker that has ended has none.
static DIRECTORY: Mutex<Option<PathBuf>> = Mutex::new(None);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchedFile {
    pub file: PathBuf,
}

impl WatchedFile {
    /// Name under which the launcher reports its process number.
    pub const READER_AFTERWARDS: &str = "reader of the watched file";
    /// Name under which the launcher reports the device of the worker's directory.
    pub const DEVICE: &str = "device of the directory";
}

impl Act for WatchedFile {
    fn directory(&self, wanted: PathBuf) -> PathBuf {
        *DIRECTORY.lock().unwrap_or_else(PoisonError::into_inner) = Some(wanted.clone());
        wanted
    }

    fn in_worker(&self) -> io::Result<()> {
        fs::read(&self.file).map(drop)
    }

    fn after_worker(&self, seen: &mut BTreeMap<String, String>) -> io::Result<Option<u32>> {
        fs::read(&self.file)?;
        seen.insert(WatchedFile::READER_AFTERWARDS.into(), std::process::id().to_string());
        let directory = DIRECTORY.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = &*directory {
            let device = fs::metadata(directory)?.dev();
            seen.insert(WatchedFile::DEVICE.into(), device.to_string());
        }
        Ok(None)
    }
}
