//! Goes along a path once. Each part is opened without following links, asked by its descriptor whose it is,
//! and the next part is opened in it. So no name is looked up twice, and nobody can exchange what was seen.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat};
use rustix::fs::{fstat, fstatfs, mkdirat, open, openat, readlinkat};
use rustix::io::Errno;

/// As the kernel (path_resolution(7)).
const MAX_LINKS: u32 = 40;
const PART: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Check of each part, with its path without links; an error of it ends the walk.
pub(crate) type LookAtPart<'a> = &'a mut dyn FnMut(&Path, &Stat) -> io::Result<()>;

/// Where a path leads.
pub(crate) struct Reached {
    /// Without links.
    pub path: PathBuf,
    /// The directory of the last part, and the name of the last part in it.
    pub directory: OwnedFd,
    pub name: OsString,
    /// The last part; `None` where nothing is there. It is a link only to a stream that is open, as
    /// `/proc/self/fd/1` is.
    pub last: Option<Stat>,
}

/// Goes along a path from `/` on. With `make`, directories that are not there are made with this mode.
///
/// # Errors
/// What `look` says; else as `open(2)`, `NotFound` for a directory on the way.
pub(crate) fn walk(path: &Path, make: Option<Mode>, look: LookAtPart) -> io::Result<Reached> {
    let root = open("/", PART | OFlags::DIRECTORY, Mode::empty())?;
    look(Path::new("/"), &fstat(&root)?)?;
    let (mut held, mut real) = (vec![root], PathBuf::from("/"));
    let mut ahead = parts(&std::path::absolute(path)?);
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        if part == ".." {
            if held.len() > 1 {
                held.pop();
                real.pop();
            }
            continue;
        }
        let directory = &held[held.len() - 1];
        let opened = match open_part(directory, &part, make) {
            Err(Errno::NOENT) if ahead.is_empty() => {
                let directory = held.swap_remove(held.len() - 1);
                return Ok(Reached { path: real.join(&part), directory, name: part, last: None });
            }
            other => other?,
        };
        let stat = fstat(&opened)?;
        look(&real.join(&part), &stat)?;
        if !is_link(&stat) {
            real.push(&part);
            held.push(opened);
            continue;
        }
        if ahead.is_empty() && fstatfs(&opened)?.f_type == PROC_SUPER_MAGIC {
            let (path, directory) = (real.join(&part), held.swap_remove(held.len() - 1));
            return Ok(Reached { path, directory, name: part, last: Some(stat) });
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        let target = PathBuf::from(OsString::from_vec(readlinkat(&opened, "", Vec::new())?.into()));
        if target.is_absolute() {
            held.truncate(1);
            real = PathBuf::from("/");
        }
        ahead.extend(parts(&target));
    }
    let last = held.swap_remove(held.len() - 1);
    let stat = Some(fstat(&last)?);
    let name = real.file_name().unwrap_or(".".as_ref()).to_owned();
    Ok(Reached { path: real, directory: held.pop().unwrap_or(last), name, last: stat })
}

/// `O_DIRECTORY` has an automounter mount what belongs there.
fn open_part(directory: &OwnedFd, part: &OsString, make: Option<Mode>) -> Result<OwnedFd, Errno> {
    let part_of = |flags| openat(directory, part, PART | flags, Mode::empty());
    let opened = match part_of(OFlags::DIRECTORY) {
        Err(Errno::NOTDIR) => part_of(OFlags::empty()),
        other => other,
    };
    match (opened, make) {
        (Err(Errno::NOENT), Some(mode)) => {
            match mkdirat(directory, part, mode) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            part_of(OFlags::empty())
        }
        (other, _) => other,
    }
}

/// The last part first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    let mut parts: Vec<OsString> = parts.collect();
    parts.reverse();
    parts
}

pub(crate) fn is_link(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}

pub(crate) fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

pub(crate) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Returns true if a descriptor is of the file that was seen on the way.
pub(crate) fn is_same(opened: impl AsFd, seen: &Stat) -> io::Result<bool> {
    let stat = fstat(opened)?;
    Ok((stat.st_dev, stat.st_ino) == (seen.st_dev, seen.st_ino))
}
