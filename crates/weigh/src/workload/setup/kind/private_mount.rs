//! A file system that only the processes of an arm see: mounted in a mount namespace of the launcher, so it
//! goes, with its loop device, when the last of them ends, whatever ends it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::mount::{MountPropagationFlags, mount_change};
use serde::{Deserialize, Serialize};

use crate::machine::file_system::file_system;
use crate::workload::setup::Act;
use trust::program;

/// Under which name it shows which file system the target is on when the worker executes.
pub const FILE_SYSTEM_SEEN: &str = "file system";
/// The same when the worker has ended.
pub const FILE_SYSTEM_AFTERWARDS: &str = "file system afterwards";

/// What is mounted, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivateMount {
    /// As mount(8) takes it: `ext4`.
    pub file_system: String,
    /// An image, or a name for what has none.
    pub source: PathBuf,
    pub target: PathBuf,
    pub options: String,
}

impl Act for PrivateMount {
    fn in_launcher(&self) -> Result<(), String> {
        let cannot = |what: &str, error: &dyn std::fmt::Display| {
            format!("cannot mount {} for the samples: {what}: {error}", self.file_system)
        };
        // SAFETY: changes the namespace of the launcher's one thread, and touches no memory.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            return Err(cannot("a mount namespace of its own", &io::Error::last_os_error()));
        }
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).map_err(|error| cannot("making it private", &error))?;
        let mount = program::find("mount").and_then(|found| found.ok_or("it is not there".into()));
        let mount = mount.map_err(|error| cannot("the program `mount`", &error))?;
        let output = Command::new(mount)
            .args(["-t", &self.file_system, "-o", &self.options])
            .args([&self.source, &self.target])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| cannot("the program `mount`", &error))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(cannot("`mount`", &String::from_utf8_lossy(&output.stderr).trim())),
        }
    }

    /// The worker is born in the launcher's mount namespace, and so finds there what the launcher does.
    fn look(&self, _: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        seen.insert(FILE_SYSTEM_SEEN.into(), self.shown()?);
        Ok(())
    }

    fn after_worker(&self, seen: &mut BTreeMap<String, String>) -> io::Result<Option<u32>> {
        seen.insert(FILE_SYSTEM_AFTERWARDS.into(), self.shown()?);
        Ok(None)
    }
}

impl PrivateMount {
    /// The kind of file system; said to be none of its own where the target is on the same device as the
    /// directory that it is in, of whatever kind that is.
    fn shown(&self) -> io::Result<String> {
        let device = |path: &Path| fs::metadata(path).map(|status| status.dev());
        let around = self.target.parent().unwrap_or(&self.target);
        let kind = file_system(&self.target);
        match device(&self.target)? == device(around)? {
            true => Ok(format!("{kind}, and nothing mounted")),
            false => Ok(kind),
        }
    }
}
