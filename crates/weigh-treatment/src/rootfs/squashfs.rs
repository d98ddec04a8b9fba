//! An image of a squashfs: mounted by root, in a mount namespace of our own, else unpacked.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use rustix::mount::{UnmountFlags, unmount};
use trust::start::{self, Inherited};
use trust::{program, user_file};

use super::{Filled, Room};
use weigh_archive::{ArchiveError, MOST_FILES};
use weigh_host::said;
use weigh_host::said::{Heard, KEPT_BYTES, Keep};
use weigh_model::printable;
use weigh_workload::setup::kind::enter_root::own_mounts;

/// Exit status of unsquashfs if it could not make some files, such as devices without root.
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
pub fn bring(
    image: &Path,
    tree: &Path,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Filled, ArchiveError> {
    let mounted = match rustix::process::geteuid().is_root() {
        true => mount(image, tree),
        false => Err("ordinary users cannot mount it".into()),
    };
    match mounted {
        Ok(mounted) => Ok(Filled { mounted: Some(mounted), ..Filled::default() }),
        Err(why) => unpack(image, tree, &why, goes_on),
    }
}

fn mount(image: &Path, tree: &Path) -> Result<MountedImage, String> {
    let program = program::find("mount")?.ok_or("`mount` is not installed")?;
    // Our launchers inherit it.
    own_mounts()?;
    fs::create_dir(tree).map_err(|error| error.to_string())?;
    let mut command = start::command(program, Inherited::Fixed);
    command.args(["-t", "squashfs", "-o", "ro,loop,nodev"]).arg(image).arg(tree);
    let output = said::output(command).map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(MountedImage(tree.to_owned()));
    }
    fs::remove_dir(tree).map_err(|error| error.to_string())?;
    Err(said::words(&output.stderr))
}

fn unpack(
    image: &Path,
    tree: &Path,
    why: &str,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Filled, ArchiveError> {
    let found = program::find("unsquashfs").map_err(ArchiveError::Unusable)?;
    let program = found.ok_or_else(|| {
        ArchiveError::Unusable(format!(
            "cannot mount this squashfs ({why}), and `unsquashfs`, which could unpack it, is not \
             installed: install squashfs-tools"
        ))
    })?;
    let room = Room::of(tree.parent().unwrap_or(tree))?;
    let files = inodes(image)?;
    if files > room.files.min(MOST_FILES) {
        return Err(ArchiveError::Unusable(format!(
            "it has {files} files, too many for the free space: set TMPDIR to a different directory"
        )));
    }
    let mut command = start::command(program, Inherited::Fixed);
    command.args(["-no-progress", "-no-xattrs", "-d"]).arg(tree).arg(image);
    command.stdin(Stdio::null());
    // It may complain of each device node: more than a pipe holds.
    let mut heard = Heard::start(command, [Keep::First(0), Keep::First(KEPT_BYTES)])?;
    let status = loop {
        if let Some(status) = heard.ended()? {
            break status;
        }
        let left = Room::of(tree.parent().unwrap_or(tree))?;
        if left.bytes == 0 || left.files == 0 {
            return Err(ArchiveError::Unusable(
                "not enough space to unpack it: set TMPDIR to a different directory".into(),
            ));
        }
        if !goes_on(room.bytes.saturating_sub(left.bytes)) {
            return Err(ArchiveError::Interrupted);
        }
        sleep(LOOK_AGAIN);
    };
    let complaints = String::from_utf8_lossy(heard.stderr()).into_owned();
    if status.success() || status.code() == Some(NOT_ALL) && tree.is_dir() {
        let devices = tidy(tree)?;
        let refused = complaints.lines().filter(|line| is_of_device(line)).count() as u64;
        let lacks = (!status.success()).then(|| what_it_lacks(&complaints)).flatten();
        return Ok(Filled { devices: devices + refused, lacks, ..Filled::default() });
    }
    Err(ArchiveError::Unusable(format!("unsquashfs: {}", said::words(complaints.as_bytes()))))
}

/// How many inodes the image says that it has: the second number of its superblock.
fn inodes(image: &Path) -> Result<u64, ArchiveError> {
    let mut start = [0; 8];
    user_file::open(image)?.read_exact(&mut start)?;
    Ok(u64::from(u32::from_le_bytes([start[4], start[5], start[6], start[7]])))
}

/// Returns true if the line complains that a device node may not be made.
fn is_of_device(line: &str) -> bool {
    ["could not create character device", "could not create block device"]
        .iter()
        .any(|words| line.contains(words))
}

/// The first complaint that is about no device node, and how many more there are.
fn what_it_lacks(said: &str) -> Option<String> {
    let mut complaints =
        said.lines().map(str::trim).filter(|line| !line.is_empty() && !is_of_device(line));
    let first = printable::line(complaints.next()?);
    Some(match complaints.count() {
        0 => format!("unsquashfs reports `{first}`"),
        more => format!("unsquashfs reports `{first}` (and {more} more)"),
    })
}

/// Removes device nodes, which are left out of all roots, and gives their number. A directory that its owner
/// may not write is made one that he can empty.
fn tidy(tree: &Path) -> std::io::Result<u64> {
    let is_root = rustix::process::geteuid().is_root();
    let (mut devices, mut open) = (0, vec![tree.to_owned()]);
    while let Some(directory) = open.pop() {
        if !is_root {
            let mode = fs::symlink_metadata(&directory)?.permissions().mode();
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode | 0o700))?;
        }
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_block_device() || kind.is_char_device() {
                fs::remove_file(entry.path())?;
                devices += 1;
            }
        }
    }
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// An image of a directory with this many files, and a device node where that may be made.
    fn image(place: &Path, files: usize) -> Option<(PathBuf, bool)> {
        let (root, file) = (place.join("root"), place.join("image"));
        fs::create_dir(&root).unwrap();
        (0..files).for_each(|number| fs::write(root.join(number.to_string()), "").unwrap());
        let node = root.join("node");
        let made = Command::new("mknod").arg(&node).args(["c", "1", "3"]).output();
        let has_node = made.is_ok_and(|made| made.status.success());
        let made = Command::new("mksquashfs").arg(&root).arg(&file).arg("-quiet").output();
        if !made.is_ok_and(|made| made.status.success()) {
            needs::skip("squashfs", "needs squashfs-tools");
            return None;
        }
        Some((file, has_node))
    }

    #[test]
    fn what_is_unpacked_has_no_device_nodes() {
        let place = tempfile::tempdir().unwrap();
        let Some((file, has_node)) = image(place.path(), 3) else { return };
        let tree = place.path().join("tree");
        let filled = unpack(&file, &tree, "tried", &mut |_| true).unwrap();
        assert_eq!((filled.devices, filled.lacks), (u64::from(has_node), None));
        assert_eq!(fs::read_dir(&tree).unwrap().count(), 3);
        assert_eq!(inodes(&file).unwrap(), 4 + u64::from(has_node));
    }

    #[test]
    fn an_image_of_too_many_files_is_not_unpacked() {
        let place = tempfile::tempdir().unwrap();
        let Some((file, _)) = image(place.path(), 1) else { return };
        let mut bytes = fs::read(&file).unwrap();
        bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        fs::write(&file, bytes).unwrap();
        let tree = place.path().join("tree");
        let refused = unpack(&file, &tree, "tried", &mut |_| true).err().unwrap();
        assert!(refused.to_string().contains("4294967295 files"), "{refused}");
        assert!(!tree.exists());
    }

    #[test]
    fn what_is_missing_is_told_but_for_devices() {
        let device =
            "create_inode: could not create character device x, because you're not superuser!";
        assert_eq!(what_it_lacks(&format!("{device}\n")), None);
        let said = format!("{device}\nNo space left on device\n\nanother\n");
        let lacks = what_it_lacks(&said).unwrap();
        assert_eq!(lacks, "unsquashfs reports `No space left on device` (and 1 more)");
    }
}
