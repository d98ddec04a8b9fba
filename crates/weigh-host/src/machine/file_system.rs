//! Which file system a directory is in, and what errors that has had.

use std::fs;
use std::io;
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
