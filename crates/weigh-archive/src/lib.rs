//! Unpacks root file systems from archives of unknown origin: tar, and the layers of container images.
//!
//! Whatever an archive contains, nothing is written outside the target directory, no link is followed, and no
//! more is written than the disk has space for. The crate does not know who uses the root file system.
//!
//! - [`unpack_tar`] and [`unpack_image`] unpack a whole root; [`Packed`] says what was found;
//! - [`unpack()`] unpacks one archive, within the limits of [`Unpacking`];
//! - [`open_tar`] and [`is_squashfs`] recognise a file; [`RootedDir`] is a directory that no path leaves;
//! - [`ArchiveError`] says what is wrong with an archive.
//!
//! Start with [`unpack_tar`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod compressed;
mod image;
mod root;
mod rooted_dir;
mod unpack;

#[cfg(test)]
mod tests;

use std::io;

pub use compressed::{is_squashfs, open_tar};
pub use root::{Packed, is_image, unpack_image, unpack_tar};
pub use rooted_dir::RootedDir;
pub use unpack::unpack;

/// Files, directories and links; a distribution's root with a desktop has half a million.
pub const MOST_FILES: u64 = 8_000_000;

/// Why an archive is not unpacked, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("{0}")]
    Unusable(String),
    #[error("interrupted")]
    Interrupted,
}

impl From<io::Error> for ArchiveError {
    fn from(error: io::Error) -> ArchiveError {
        ArchiveError::Unusable(error.to_string())
    }
}

impl From<rustix::io::Errno> for ArchiveError {
    fn from(error: rustix::io::Errno) -> ArchiveError {
        io::Error::from(error).into()
    }
}

/// How much may be unpacked, and how much was.
pub struct Unpacking<'a> {
    pub most_bytes: u64,
    pub most_files: u64,
    /// Told how many bytes there are by now, again and again; `false` ends it.
    pub goes_on: &'a mut dyn FnMut(u64) -> bool,
    /// Without privileges all files are the user's own.
    pub keeps_owners: bool,
    pub files: u64,
    pub bytes: u64,
    /// Device nodes, which are left out: what a root needs of them is the same in all.
    pub devices: u64,
}

/// Space that a file takes besides its content: an inode and part of a directory.
const BYTES_PER_FILE: u64 = 512;

impl<'a> Unpacking<'a> {
    /// Nothing yet, and at most this.
    pub fn new(
        most_bytes: u64,
        most_files: u64,
        goes_on: &'a mut dyn FnMut(u64) -> bool,
    ) -> Unpacking<'a> {
        let keeps_owners = rustix::process::geteuid().is_root();
        Unpacking { most_bytes, most_files, goes_on, keeps_owners, files: 0, bytes: 0, devices: 0 }
    }

    fn add_file(&mut self) -> Result<(), ArchiveError> {
        self.files += 1;
        if self.files > self.most_files.min(MOST_FILES) {
            return Err(ArchiveError::Unusable(format!(
                "it has more than {} files, too many for the free space: set TMPDIR to a different \
                 directory",
                self.most_files.min(MOST_FILES)
            )));
        }
        self.add_bytes(BYTES_PER_FILE)
    }

    fn add_bytes(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.most_bytes {
            return Err(ArchiveError::Unusable(format!(
                "it unpacks to more than {} MiB, too much for the free space: set TMPDIR to a different \
                 directory",
                self.most_bytes >> 20
            )));
        }
        match (self.goes_on)(self.bytes) {
            true => Ok(()),
            false => Err(ArchiveError::Interrupted),
        }
    }
}
