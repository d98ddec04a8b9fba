//! A tar archive into a directory: by itself, or as a layer above others, whose whiteouts remove what is
//! beneath.

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, chmodat, chownat, futimens,
    linkat, mkdirat, mknodat, openat, symlinkat,
};
use sha2::{Digest, Sha256};
use tar::{Archive, Entry, EntryType};

use super::rooted_dir::{RootedDir, kind_of, names_in, parts, remove};
use super::{ArchiveError, Unpacking};

/// Names the file beside it that a layer takes away.
const WHITEOUT: &[u8] = b".wh.";
/// Says that nothing of what lower layers have in its directory is left.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Prefix of the other files that old layers keep for their own use.
const INTERNAL: &[u8] = b".wh..wh.";
/// Most bytes between the contents of two files: headers and long names.
const MOST_HEADER_BYTES: u64 = 4 << 20;
const CHUNK_BYTES: usize = 1 << 20;

/// Unpacks a tar archive. `is_layer`: it lies above what is there already.
///
/// # Errors
/// Where it is damaged or hostile, or there is no room; what was unpacked by then stays.
pub fn unpack(
    tar: impl Read,
    into: &RootedDir,
    is_layer: bool,
    unpacking: &mut Unpacking,
) -> Result<(), ArchiveError> {
    let left = Rc::new(Cell::new(MOST_HEADER_BYTES));
    let mut archive = Archive::new(Metered { inner: tar, left: Rc::clone(&left) });
    let mut layer = Layer { into, is_layer, own: HashSet::new(), unpacking };
    let mut entries = archive.entries()?;
    loop {
        left.set(MOST_HEADER_BYTES);
        let Some(entry) = entries.next() else { return Ok(()) };
        let entry = entry.map_err(|error| {
            // It quotes what the archive has, lines and all.
            let problem = error.to_string();
            let problem = problem.split(char::is_control).next().unwrap_or_default();
            ArchiveError::Unusable(format!("not a valid tar archive: {problem}"))
        })?;
        // What is read of its content is counted where it is written.
        left.set(u64::MAX);
        layer.take(entry)?;
    }
}

/// Ends a reading that goes on and on.
struct Metered<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(io::Error::other("a header in it is too long"));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let length = self.inner.read(&mut buffer[..most])?;
        if left != u64::MAX {
            self.left.set(left - length as u64);
        }
        Ok(length)
    }
}

/// Archive that is being unpacked, and the tree that it goes into.
struct Layer<'a, 'b> {
    into: &'a RootedDir,
    is_layer: bool,
    /// The paths that it has brought itself, which none of its whiteouts concerns: no more than there are
    /// files, and of a path as long as it likes only this.
    own: HashSet<PathHash>,
    unpacking: &'a mut Unpacking<'b>,
}

impl Layer<'_, '_> {
    fn take(&mut self, mut entry: Entry<'_, impl Read>) -> Result<(), ArchiveError> {
        let path = entry.path_bytes().into_owned();
        let parts = parts(&path)?;
        self.unpacking.add_file()?;
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XGlobalHeader) {
            return Ok(());
        }
        let Some((name, above)) = parts.split_last() else {
            return self.own_directory(&entry);
        };
        if self.is_layer && name.as_bytes().starts_with(WHITEOUT) {
            return self.white_out(name.as_bytes(), above);
        }
        if matches!(kind, EntryType::Char | EntryType::Block) {
            self.unpacking.devices += 1;
            return Ok(());
        }
        let parent = self.into.parent(&parts, self.unpacking)?;
        if self.is_layer {
            self.own.extend(hashes(&parts));
        }
        let is_directory = kind == EntryType::Directory;
        match kind_of(&parent, name)? {
            Some(FileType::Directory) if is_directory => {}
            Some(_) => remove(parent.as_fd(), name)?,
            None => {}
        }
        self.make(&mut entry, kind, parent.as_fd(), name).map_err(|error| match error {
            ArchiveError::Unusable(problem) => {
                let shown = String::from_utf8_lossy(&path);
                ArchiveError::Unusable(format!("{problem} (at `{shown}`)"))
            }
            other => other,
        })
    }

    fn make(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        kind: EntryType,
        parent: BorrowedFd,
        name: &OsStr,
    ) -> Result<(), ArchiveError> {
        match kind {
            EntryType::Directory => {
                if kind_of(parent, name)?.is_none() {
                    mkdirat(parent, name, Mode::RWXU)?;
                }
                self.set_owner_and_mode(entry, parent, name)
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                self.write_file(entry, parent, name)?;
                self.set_owner_and_mode(entry, parent, name)
            }
            EntryType::Symlink => {
                symlinkat(target(entry)?.as_slice(), parent, name)?;
                self.set_owner(entry, parent, name)
            }
            EntryType::Link => {
                let target = target(entry)?;
                let target = parts(&target)?;
                let Some(old) = target.last() else {
                    return Err(ArchiveError::Unusable("a hard link points to the root".into()));
                };
                let directory = self.into.parent_of_existing(&target)?;
                Ok(linkat(directory, *old, parent, name, AtFlags::empty())?)
            }
            EntryType::Fifo => {
                mknodat(parent, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
                self.set_owner_and_mode(entry, parent, name)
            }
            other => Err(ArchiveError::Unusable(format!(
                "it has an entry of an unknown kind ({:?}): unpack it yourself, and give the directory",
                char::from(other.as_byte())
            ))),
        }
    }

    fn write_file(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        parent: BorrowedFd,
        name: &OsStr,
    ) -> Result<(), ArchiveError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(parent, name, flags, Mode::RUSR | Mode::WUSR)?);
        let expected = entry.size();
        let room = usize::try_from(expected).unwrap_or(usize::MAX).clamp(1, CHUNK_BYTES);
        let (mut written, mut chunk) = (0, vec![0; room]);
        loop {
            let length = entry.read(&mut chunk)?;
            if length == 0 {
                break;
            }
            self.unpacking.add_bytes(length as u64)?;
            file.write_all(&chunk[..length])?;
            written += length as u64;
        }
        if written != expected {
            return Err(ArchiveError::Unusable("it ends in the middle of a file".into()));
        }
        let modified = entry.header().mtime().unwrap_or_default();
        let modified = Timespec { tv_sec: i64::try_from(modified).unwrap_or_default(), tv_nsec: 0 };
        futimens(&file, &Timestamps { last_access: modified, last_modification: modified })?;
        Ok(())
    }

    fn set_owner_and_mode(
        &self,
        entry: &Entry<'_, impl Read>,
        parent: BorrowedFd,
        name: &OsStr,
    ) -> Result<(), ArchiveError> {
        // In this order: a change of the owner takes the setuid bit away.
        self.set_owner(entry, parent, name)?;
        Ok(chmodat(parent, name, self.mode(entry)?, AtFlags::empty())?)
    }

    fn mode(&self, entry: &Entry<'_, impl Read>) -> Result<Mode, ArchiveError> {
        let mode = entry.header().mode()? & 0o7777;
        let is_directory = entry.header().entry_type() == EntryType::Directory;
        Ok(Mode::from_raw_mode(match (self.unpacking.keeps_owners, is_directory) {
            (true, _) => mode,
            // Ours, and to be removed by us.
            (false, true) => mode & 0o1777 | 0o700,
            (false, false) => mode & 0o1777 | 0o400,
        }))
    }

    fn set_owner(
        &self,
        entry: &Entry<'_, impl Read>,
        parent: BorrowedFd,
        name: &OsStr,
    ) -> Result<(), ArchiveError> {
        if !self.unpacking.keeps_owners {
            return Ok(());
        }
        let number = |number: u64| {
            let small = u32::try_from(number).ok().filter(|small| *small != u32::MAX);
            small.ok_or_else(|| {
                ArchiveError::Unusable(format!("invalid number of a user or group: {number}"))
            })
        };
        let user = Uid::from_raw(number(entry.header().uid()?)?);
        let group = Gid::from_raw(number(entry.header().gid()?)?);
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(chownat(parent, name, Some(user), Some(group), flags)?)
    }

    /// The root itself, which an archive may list as `./`.
    fn own_directory(&self, entry: &Entry<'_, impl Read>) -> Result<(), ArchiveError> {
        match entry.header().entry_type() {
            EntryType::Directory => {
                self.set_owner_and_mode(entry, self.into.as_fd(), OsStr::new("."))
            }
            _ => Err(ArchiveError::Unusable("its root is not a directory".into())),
        }
    }

    fn white_out(&self, name: &[u8], above: &[&OsStr]) -> Result<(), ArchiveError> {
        if name == OPAQUE {
            let directory = self.into.existing(above)?;
            return directory.map_or(Ok(()), |directory| self.empty(directory.as_fd(), above));
        }
        let hidden = &name[WHITEOUT.len()..];
        if name.starts_with(INTERNAL) {
            return Ok(());
        }
        if [&b""[..], b".", b".."].contains(&hidden) {
            return Err(ArchiveError::Unusable("it has a whiteout without a file's name".into()));
        }
        let hidden = [above, &[OsStr::from_bytes(hidden)]].concat();
        let Some(parent) = self.into.existing(above)? else { return Ok(()) };
        let name = hidden[hidden.len() - 1];
        if !self.has_brought(&hidden) {
            return remove(parent.as_fd(), name);
        }
        // What replaces it came first.
        if kind_of(&parent, name)? != Some(FileType::Directory) {
            return Ok(());
        }
        let directory = self.into.existing(&hidden)?;
        directory.map_or(Ok(()), |directory| self.empty(directory.as_fd(), &hidden))
    }

    fn has_brought(&self, path: &[&OsStr]) -> bool {
        hashes(path).last().is_some_and(|hash| self.own.contains(&hash))
    }

    /// Removes what lower layers have in a directory.
    fn empty(&self, directory: BorrowedFd, path: &[&OsStr]) -> Result<(), ArchiveError> {
        for name in names_in(directory)? {
            let name = OsStr::from_bytes(&name);
            let whole = [path, &[name]].concat();
            if !self.has_brought(&whole) {
                remove(directory, name)?;
            } else if kind_of(directory, name)? == Some(FileType::Directory)
                && let Some(inner) = self.into.existing(&whole)?
            {
                self.empty(inner.as_fd(), &whole)?;
            }
        }
        Ok(())
    }
}

/// Stands for a path: half of a SHA-256.
type PathHash = [u8; 16];

/// Returns the hashes of a path and of all its parent directories, the shortest first.
fn hashes(parts: &[&OsStr]) -> impl Iterator<Item = PathHash> {
    let mut hash = Sha256::new();
    parts.iter().map(move |part| {
        hash.update(part.as_bytes());
        hash.update(b"/");
        let whole: [u8; 32] = hash.clone().finalize().into();
        PathHash::try_from(&whole[..16]).expect("there are 32")
    })
}

/// Where a link leads, in the archive's own words.
fn target(entry: &Entry<'_, impl Read>) -> Result<Vec<u8>, ArchiveError> {
    let target = entry.link_name_bytes().map(|target| target.into_owned());
    target
        .filter(|target| !target.is_empty() && !target.contains(&0))
        .ok_or_else(|| ArchiveError::Unusable("a link in it lacks a valid target".into()))
}
