//! A file system that only the processes of an arm see: mounted in a mount namespace of the launcher, so it
//! goes, with its loop device, when the last of them ends, whatever ends it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, Mode, OFlags, fstatvfs, openat, syncfs, unlinkat};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use serde::{Deserialize, Serialize};

use crate::setup::Act;
use trust::program;
use trust::start::{self, Inherited};
use weigh_host::machine::file_system::{ext4_errors, file_system};
use weigh_host::said;

/// Under which name it shows which file system the target is on when the worker executes.
pub const FILE_SYSTEM_SEEN: &str = "file system";
/// Name under which it shows which file system the target is on when the worker has ended.
pub const FILE_SYSTEM_AFTERWARDS: &str = "file system afterwards";
/// Name of the observation of errors that no program was notified of, when the worker had ended.
///
/// Its value is empty if nothing went wrong on the file system.
pub const FILE_SYSTEM_TROUBLE: &str = "file system trouble";
/// Name under which it shows on which file system servers have their data, where they have any there.
pub const DATA_SEEN: &str = "file system of data";
/// In the file system, with the data of servers; a name that no workload uses.
const DATA: &str = ".weigh-data";
/// A name that no workload uses.
const TRIED: &str = ".weigh-still-writable";

/// A write of so many bytes is tried. XFS keeps some blocks back when it says that it is full.
const TRIED_BYTES: usize = 64 << 10;

/// Where this launcher mounted, opened before anything was written: syncfs(2) tells each open file once of
/// what failed since it was opened.
static MOUNTED: OnceLock<File> = OnceLock::new();

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivateMount {
    /// As mount(8) takes it: `ext4`.
    pub file_system: String,
    /// An image, or a name for what has none.
    pub source: PathBuf,
    pub target: PathBuf,
    pub options: String,
    /// Directories whose content moves to it, and is found at the same path.
    pub data: Vec<PathBuf>,
}

impl Act for PrivateMount {
    fn in_launcher(&self) -> Result<(), String> {
        let cannot = |what: &str, error: &dyn std::fmt::Display| {
            format!("cannot mount {} for the samples: {what}: {error}", self.file_system)
        };
        // SAFETY: changes the namespace of the launcher's one thread, and touches no memory.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            return Err(cannot("a private mount namespace", &io::Error::last_os_error()));
        }
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).map_err(|error| cannot("making mounts private", &error))?;
        let mount = program::find("mount").and_then(|found| found.ok_or("it is missing".into()));
        let mount = mount.map_err(|error| cannot("the program `mount`", &error))?;
        let mut command = start::command(mount, Inherited::Fixed);
        command.args(["-t", &self.file_system, "-o", &self.options]);
        command.args([&self.source, &self.target]);
        let output =
            said::output(command).map_err(|error| cannot("the program `mount`", &error))?;
        if !output.status.success() {
            return Err(cannot("`mount`", &said::words(&output.stderr)));
        }
        let root = File::open(&self.target).map_err(|error| cannot("opening the mount", &error))?;
        MOUNTED.get_or_init(|| root);
        let moved = (0..).zip(&self.data).try_for_each(|(at, data)| self.bring(at, data));
        moved.map_err(|problem| cannot("bringing the data of a server", &problem))
    }

    /// The worker is born in the launcher's mount namespace, and so finds there what the launcher does.
    fn look(&self, _: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        seen.insert(FILE_SYSTEM_SEEN.into(), self.shown()?);
        if !self.data.is_empty() {
            seen.insert(DATA_SEEN.into(), self.data_shown()?);
        }
        Ok(())
    }

    fn after_worker(&self, seen: &mut BTreeMap<String, String>) -> io::Result<Option<u32>> {
        // One that has shut down may not even be looked at.
        let trouble = self.trouble().unwrap_or_default();
        let shown = self.shown().unwrap_or_else(|error| error.to_string());
        seen.insert(FILE_SYSTEM_TROUBLE.into(), trouble);
        seen.insert(FILE_SYSTEM_AFTERWARDS.into(), shown);
        for data in &self.data {
            seen.insert(PrivateMount::bytes_in(data), bytes(data)?.to_string());
        }
        Ok(None)
    }
}

impl PrivateMount {
    /// Name under which it shows how many bytes the files of a server's data have when a worker has ended.
    pub fn bytes_in(data: &Path) -> String {
        format!("bytes in {}", data.display())
    }

    /// Copies a directory to the file system, with owners and modes, and lays the copy over it.
    fn bring(&self, at: usize, data: &Path) -> Result<(), String> {
        let place = self.target.join(DATA);
        fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        let copy = place.join(at.to_string());
        let cp = program::find("cp")?.ok_or("the program `cp` is missing")?;
        let mut command = start::command(cp, Inherited::Fixed);
        command.arg("-a").arg(data).arg(&copy);
        let output = said::output(command).map_err(|error| format!("`cp`: {error}"))?;
        if !output.status.success() {
            return Err(format!("{}; a larger size= may help", said::words(&output.stderr)));
        }
        mount_bind(&copy, data).map_err(|error| format!("{}: {error}", data.display()))
    }

    /// The kind of file system on which all servers have their data; its error is that of a look.
    fn data_shown(&self) -> io::Result<String> {
        let own = fs::metadata(&self.target)?.dev();
        for data in &self.data {
            if fs::metadata(data)?.dev() != own {
                return Ok(format!("{}, elsewhere than the workload's files", file_system(data)));
            }
        }
        self.shown()
    }

    /// A write may fail long after write(2) has said that it succeeded.
    fn trouble(&self) -> Option<String> {
        let Some(root) = MOUNTED.get() else { return Some("it was not mounted".into()) };
        if syncfs(root).is_err() {
            return Some("writes to it failed after write(2) had succeeded; see `dmesg`".into());
        }
        match ext4_errors(&self.target) {
            Ok(None | Some(0)) => {}
            Ok(Some(errors)) => return Some(format!("ext4 counted errors: {errors}")),
            Err(error) => return Some(format!("cannot read its number of errors: {error}")),
        }
        let is_asked_for = self.options.split(',').any(|option| option == "ro");
        match is_full(root).and_then(|is_full| Ok(is_full || !has_taken(root)?)) {
            Ok(false) => None,
            Ok(true) | Err(Errno::NOSPC | Errno::DQUOT) => Some(
                "it is full, so a write to it may have failed; use a larger size=, or write less"
                    .into(),
            ),
            Err(Errno::ROFS) if is_asked_for => None,
            Err(error) => Some(format!("it is no longer writable: {error}")),
        }
    }

    /// The kind of file system; said to be none of its own where the target is on the same device as the
    /// directory that it is in, of whatever kind that is.
    fn shown(&self) -> io::Result<String> {
        let device = |path: &Path| fs::metadata(path).map(|status| status.dev());
        let around = self.target.parent().unwrap_or(&self.target);
        let kind = file_system(&self.target);
        match device(&self.target)? == device(around)? {
            true => Ok(format!("{kind}, with nothing mounted")),
            false => Ok(kind),
        }
    }
}

/// Size of the files in a directory, without those of its directories.
fn bytes(directory: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let status = entry?.metadata()?;
        sum += if status.is_file() { status.len() } else { 0 };
    }
    Ok(sum)
}

/// Returns true if no block or no inode is left for users other than root.
///
/// A write that finds no room fails with an error, but a shell may hide the error.
fn is_full(root: &File) -> Result<bool, Errno> {
    let room = fstatvfs(root)?;
    // A tmpfs may have no limit, and Btrfs counts no inodes.
    Ok((room.f_blocks > 0 && room.f_bavail == 0) || (room.f_files > 0 && room.f_favail == 0))
}

/// Returns true if a file can be made, written and removed again.
fn has_taken(root: &File) -> Result<bool, Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(root, TRIED, flags, Mode::RUSR | Mode::WUSR)?;
    let written = rustix::io::write(&file, &[0; TRIED_BYTES]);
    unlinkat(root, TRIED, AtFlags::empty())?;
    Ok(written? == TRIED_BYTES)
}
