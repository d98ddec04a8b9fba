//! An image of a squashfs: mounted by root, in a mount namespace of our own, else unpacked.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::mount::{UnmountFlags, unmount};
use trust::program;

use super::Room;
use crate::archive::ArchiveError;
use crate::workload::setup::kind::enter_root::own_mounts;

/// What says that some files could not be made, such as devices without root.
const NOT_ALL: i32 = 2;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Mounted until this is dropped, or this process has ended: nobody else sees it. The loop device goes with
/// the mount.
pub struct MountedImage(PathBuf);

impl Drop for MountedImage {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// Makes the image's root at `tree`.
///
/// # Errors
/// Where it can be neither mounted nor unpacked here.
pub fn bring(
    image: &Path,
    tree: &Path,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<MountedImage>, ArchiveError> {
    let mounted = match rustix::process::geteuid().is_root() {
        true => mount(image, tree),
        false => Err("ordinary users cannot mount it".into()),
    };
    match mounted {
        Ok(mounted) => Ok(Some(mounted)),
        Err(why) => unpack(image, tree, &why, goes_on).map(|()| None),
    }
}

fn mount(image: &Path, tree: &Path) -> Result<MountedImage, String> {
    let program = program::find("mount")?.ok_or("`mount` is not installed")?;
    // Our launchers inherit it.
    own_mounts()?;
    fs::create_dir(tree).map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["-t", "squashfs", "-o", "ro,loop,nodev"]).arg(image).arg(tree);
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(MountedImage(tree.to_owned()));
    }
    fs::remove_dir(tree).map_err(|error| error.to_string())?;
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

fn unpack(
    image: &Path,
    tree: &Path,
    why: &str,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), ArchiveError> {
    let found = program::find("unsquashfs").map_err(ArchiveError::Unusable)?;
    let program = found.ok_or_else(|| {
        ArchiveError::Unusable(format!(
            "this squashfs cannot be mounted ({why}), and `unsquashfs`, which unpacks it, is not installed: \
             install squashfs-tools"
        ))
    })?;
    let mut command = Command::new(program);
    command.args(["-no-progress", "-no-xattrs", "-d"]).arg(tree).arg(image);
    command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    // It may complain of each device node: more than a pipe holds.
    let mut complaints = tempfile::tempfile()?;
    command.stderr(complaints.try_clone()?);
    let mut child = Unsquashing(command.spawn()?);
    let room = Room::of(tree.parent().unwrap_or(tree))?.bytes;
    let status = loop {
        if let Some(status) = child.0.try_wait()? {
            break status;
        }
        let left = Room::of(tree.parent().unwrap_or(tree))?.bytes;
        if left == 0 {
            return Err(ArchiveError::Unusable(
                "it unpacks to more than there is room for; set TMPDIR to another directory".into(),
            ));
        }
        if !goes_on(room.saturating_sub(left)) {
            return Err(ArchiveError::Interrupted);
        }
        sleep(LOOK_AGAIN);
    };
    if status.success() || status.code() == Some(NOT_ALL) && tree.is_dir() {
        return Ok(make_removable(tree)?);
    }
    let mut complaint = String::new();
    complaints.seek(SeekFrom::Start(0))?;
    let _ = complaints.take(1 << 16).read_to_string(&mut complaint);
    Err(ArchiveError::Unusable(format!("unsquashfs: {}", complaint.trim())))
}

/// Ended when we do not wait for it.
struct Unsquashing(Child);

impl Drop for Unsquashing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory that its owner may not write cannot be emptied by him.
fn make_removable(tree: &Path) -> std::io::Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mut open = vec![tree.to_owned()];
    while let Some(directory) = open.pop() {
        let mode = fs::symlink_metadata(&directory)?.permissions().mode();
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode | 0o700))?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(())
}
