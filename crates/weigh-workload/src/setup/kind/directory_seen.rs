//! Which directory the processes of an arm find under a path, for the proof: they may see other mounts than
//! `weigh` does, and somebody may mount over it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::setup::Act;

/// Where they look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectorySeen {
    pub directory: PathBuf,
}

impl DirectorySeen {
    /// Names of the directory's identity when the worker executes, and when the worker has ended.
    ///
    /// The values are as [`DirectorySeen::identity`] returns them.
    pub const MOMENTS: [&str; 2] = ["directory", "directory afterwards"];

    /// The device and the inode that a path leads to.
    pub fn identity(directory: &Path) -> io::Result<String> {
        let status = fs::metadata(directory)?;
        Ok(format!("{}:{}", status.dev(), status.ino()))
    }

    fn tell(&self, moment: usize, seen: &mut BTreeMap<String, String>) {
        let what =
            DirectorySeen::identity(&self.directory).unwrap_or_else(|error| error.to_string());
        seen.insert(DirectorySeen::MOMENTS[moment].into(), what);
    }
}

impl Act for DirectorySeen {
    /// The worker is born in the launcher's mount namespace, and so finds there what the launcher does.
    fn look(&self, _: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        self.tell(0, seen);
        Ok(())
    }

    fn after_worker(&self, seen: &mut BTreeMap<String, String>) -> io::Result<Option<u32>> {
        self.tell(1, seen);
        Ok(None)
    }
}
