//! Which file system a directory is in.

use std::path::Path;

/// What it is called, for the report.
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
