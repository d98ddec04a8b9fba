//! A directory in which files are made by paths that an archive gives. Each part of a path is opened by
//! itself and no link is followed, so that no path leads out.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::{ArchiveError, Unpacking};

/// `PATH_MAX`.
const LONGEST_PATH: usize = 4096;
/// Who removes a tree has a directory open for each.
const DEEPEST: usize = 256;
/// Mode of directories that an archive has files in but does not list.
const UNLISTED: u32 = 0o755;

const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Directory in which the files are made, held open.
pub struct RootedDir(OwnedFd);

/// The parts of a path in an archive, none of which leads up; empty for the root itself.
pub(super) fn parts(path: &[u8]) -> Result<Vec<&OsStr>, ArchiveError> {
    let refused = |why: &str| {
        let shown = String::from_utf8_lossy(&path[..path.len().min(200)]);
        Err(ArchiveError::Unusable(format!("weigh refuses it, as its path `{shown}` {why}")))
    };
    if path.first() == Some(&b'/') {
        return refused("is absolute");
    }
    if path.contains(&0) {
        return refused("contains a zero byte");
    }
    let named = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let parts: Vec<&OsStr> = named.map(OsStr::from_bytes).collect();
    if parts.iter().any(|part| *part == "..") {
        return refused("leads up (`..`)");
    }
    if path.len() > LONGEST_PATH || parts.len() > DEEPEST {
        return refused("is too long");
    }
    Ok(parts)
}

impl RootedDir {
    pub fn open(directory: &Path) -> io::Result<RootedDir> {
        Ok(RootedDir(openat(CWD, directory, DIRECTORY, Mode::empty())?))
    }

    /// The directory that these parts lead to; none where it is not there.
    pub(super) fn existing(&self, parts: &[&OsStr]) -> Result<Option<OwnedFd>, ArchiveError> {
        self.walk(parts, None)
    }

    /// Opens the directory at a path. With `unpacking`, makes and counts missing directories.
    ///
    /// Without it, returns `None` if one is missing.
    fn walk(
        &self,
        parts: &[&OsStr],
        mut unpacking: Option<&mut Unpacking>,
    ) -> Result<Option<OwnedFd>, ArchiveError> {
        let mut at = self.0.try_clone()?;
        for (index, part) in parts.iter().enumerate() {
            at = match openat(&at, *part, DIRECTORY, Mode::empty()) {
                Err(Errno::NOENT) => {
                    let Some(unpacking) = &mut unpacking else { return Ok(None) };
                    unpacking.add_file()?;
                    mkdirat(&at, *part, Mode::from_raw_mode(UNLISTED))?;
                    openat(&at, *part, DIRECTORY, Mode::empty())?
                }
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    let shown: std::path::PathBuf = parts[..=index].iter().collect();
                    return Err(ArchiveError::Unusable(format!(
                        "weigh refuses it, as a path in it leads through `{}`, which is a link or a file",
                        shown.display()
                    )));
                }
                other => other?,
            };
        }
        Ok(Some(at))
    }

    /// The directory that a path's last part is in; what is missing is made, and counted.
    pub(super) fn parent(
        &self,
        parts: &[&OsStr],
        unpacking: &mut Unpacking,
    ) -> Result<OwnedFd, ArchiveError> {
        let found = self.walk(above(parts), Some(unpacking))?;
        found.ok_or_else(|| Errno::NOENT.into())
    }

    /// Opens the directory that a path's last part is in; a missing one is an error.
    pub(super) fn parent_of_existing(&self, parts: &[&OsStr]) -> Result<OwnedFd, ArchiveError> {
        self.existing(above(parts))?.ok_or_else(|| Errno::NOENT.into())
    }

    /// A regular file, opened to be read.
    pub fn file(&self, path: &str) -> Result<File, ArchiveError> {
        let say =
            |error: &dyn std::fmt::Display| ArchiveError::Unusable(format!("{path}: {error}"));
        let parts = parts(path.as_bytes())?;
        let name = parts.last().ok_or_else(|| say(&"not a file"))?;
        let parent = self.parent_of_existing(&parts)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(parent, *name, flags, Mode::empty()).map_err(|error| say(&error))?;
        let file = File::from(file);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(say(&"not a regular file")),
        }
    }

    pub fn read(&self, path: &str, most_bytes: u64) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        self.file(path)?.take(most_bytes + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > most_bytes {
            true => {
                Err(ArchiveError::Unusable(format!("{path} is larger than {most_bytes} bytes")))
            }
            false => Ok(bytes),
        }
    }

    /// Returns true if the directory has an entry of this name, of any file type.
    pub fn has(&self, name: &str) -> bool {
        statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }
}

impl AsFd for RootedDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn above<'a>(parts: &'a [&'a OsStr]) -> &'a [&'a OsStr] {
    &parts[..parts.len().saturating_sub(1)]
}

/// Returns the file type of a name, or `None` if it does not exist.
pub(super) fn kind_of(parent: impl AsFd, name: &OsStr) -> Result<Option<FileType>, ArchiveError> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) => Ok(Some(FileType::from_raw_mode(status.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes what has this name, with all in it. That nothing has it is fine.
pub(super) fn remove(parent: BorrowedFd, name: &OsStr) -> Result<(), ArchiveError> {
    match kind_of(parent, name)? {
        None => Ok(()),
        Some(FileType::Directory) => {
            let directory = openat(parent, name, DIRECTORY, Mode::empty())?;
            for inner in names_in(directory.as_fd())? {
                remove(directory.as_fd(), OsStr::from_bytes(&inner))?;
            }
            Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
        }
        Some(_) => Ok(unlinkat(parent, name, AtFlags::empty())?),
    }
}

pub(super) fn names_in(directory: BorrowedFd) -> Result<Vec<Vec<u8>>, ArchiveError> {
    let mut names = Vec::new();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for entry in Dir::new(openat(directory, ".", flags, Mode::empty())?)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    Ok(names)
}
