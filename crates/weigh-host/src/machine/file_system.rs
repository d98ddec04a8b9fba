//! Which file system a directory is in, and what errors that has had.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub fn file_system(directory: &Path) -> String {
    let kind = rustix::fs::statfs(directory).map(|stat| stat.f_type).unwrap_or(0);
    let name = match kind {
        0xef53 => "ext4",
        0x0102_1994 => "tmpfs",
        0x9123_683e => "btrfs",
        0x5846_5342 => "xfs",
        0x794c_7630 => "overlayfs",
        0x6969 => "NFS",
        0x0102_1997 => "9p",
        other => return format!("a file system of type {other:#x}"),
    };
    name.to_owned()
}

/// How many errors ext4 has counted on the device of this directory; `None` of other file systems, and of
/// kernels that do not count them.
pub fn ext4_errors(directory: &Path) -> io::Result<Option<u64>> {
    let device = fs::metadata(directory)?.dev();
    let link = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    let Ok(device) = fs::read_link(link) else { return Ok(None) };
    let name = device.file_name().unwrap_or_default();
    let counter = Path::new("/sys/fs/ext4").join(name).join("errors_count");
    match fs::read_to_string(counter) {
        Ok(text) => text.trim().parse().map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The device of the file system that a file is in, as the kernel writes the number (`s_dev`). stat(2) does
/// not tell it: btrfs and overlayfs give their files other devices.
///
/// # Errors
/// Where `/proc` does not know the file's mount.
pub fn device_of_mount(file: &File) -> io::Result<u32> {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let mount = about.lines().find_map(|line| line.strip_prefix("mnt_id:")).map(str::trim);
    let mounts = fs::read("/proc/self/mountinfo")?;
    let device = mount.and_then(|mount| device_in(&String::from_utf8_lossy(&mounts), mount));
    device.ok_or_else(|| io::Error::other("/proc/self/mountinfo does not name its file system"))
}

/// The device of a mount, in a text that has the form of proc_pid_mountinfo(5).
fn device_in(mounts: &str, mount: &str) -> Option<u32> {
    let line = mounts.lines().find(|line| line.split(' ').next() == Some(mount))?;
    let (major, minor) = line.split(' ').nth(2)?.split_once(':')?;
    // `MKDEV` of include/linux/kdev_t.h.
    Some(major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_of_a_file_is_that_of_its_mount() {
        let mounts = "21 1 8:2 / / rw - btrfs /dev/sda2 rw\n1 21 0:36 / /tmp rw - tmpfs tmpfs rw\n";
        assert_eq!(device_in(mounts, "1"), Some(36));
        assert_eq!(device_in(mounts, "21"), Some(8 << 20 | 2));
        assert_eq!(device_in(mounts, "2"), None);
        let file = File::open("/proc/self/stat").unwrap();
        let device = file.metadata().unwrap().dev();
        let expected = libc::major(device) << 20 | libc::minor(device);
        assert_eq!(device_of_mount(&file).unwrap(), expected);
    }
}
