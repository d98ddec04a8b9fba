//! Checks that only root and ourselves can change where a path leads.

use std::fmt::{self, Display};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::Stat;
use rustix::process::geteuid;

use super::walk::{is_directory, is_link, walk};

const STICKY: u32 = 0o1000;

/// The path without links, if every directory and link on the way, and what it leads to, is root's or our own
/// and nobody else's to write. Then nobody can change it behind our back.
///
/// # Errors
/// `PermissionDenied` with a sentence that names what is whose; else as `open(2)`.
pub fn trusted(path: &Path) -> io::Result<PathBuf> {
    trusted_also(path, None)
}

/// Returns the path without links, as [`trusted`] does, where this user is trusted too.
pub(crate) fn trusted_also(path: &Path, other: Option<u32>) -> io::Result<PathBuf> {
    let (owners, is_root) = (owners(other)?, geteuid().is_root());
    let reached = walk(path, None, &mut |path, stat| check(path, stat, &owners, is_root))?;
    match reached.last {
        None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        Some(last) if is_link(&last) => {
            Err(io::Error::other("it is an open stream; save the content to a file first"))
        }
        Some(_) => Ok(reached.path),
    }
}

/// A part of a path that is another user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupied {
    pub place: PathBuf,
    /// Not known where he does not even let root look, as in a FUSE file system.
    pub owner: Option<u32>,
}

impl Display for Occupied {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} belongs to another user now", self.place.display())?;
        self.owner.map_or(Ok(()), |uid| write!(f, " (uid {uid})"))
    }
}

/// The first part of this path that belongs to another user. `None` where nobody else has a part of it, or
/// the path ends before.
///
/// # Errors
/// As `lstat(2)`, except where we may not look.
pub fn occupied(path: &Path) -> io::Result<Option<Occupied>> {
    let owners = owners(None)?;
    let mut prefixes: Vec<&Path> =
        path.ancestors().filter(|it| !it.as_os_str().is_empty()).collect();
    prefixes.reverse();
    for prefix in prefixes {
        let owner = match fs::symlink_metadata(prefix) {
            Ok(found) if owners.contains(&Some(found.uid())) => continue,
            Ok(found) => Some(found.uid()),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound => return Ok(None),
                // Nothing above is anybody else's, and we may look into what is ours.
                io::ErrorKind::PermissionDenied => None,
                _ => return Err(error),
            },
        };
        return Ok(Some(Occupied { place: prefix.to_owned(), owner }));
    }
    Ok(None)
}

/// Whoever owns `/` can replace all programs; in a user namespace that is no uid of ours.
pub(crate) fn owners(other: Option<u32>) -> io::Result<[Option<u32>; 4]> {
    Ok([Some(0), Some(geteuid().as_raw()), Some(fs::metadata("/")?.uid()), other])
}

/// # Errors
/// A sentence with what another user can do here.
pub(crate) fn check(
    path: &Path,
    stat: &Stat,
    owners: &[Option<u32>],
    is_root: bool,
) -> io::Result<()> {
    match complaint(stat, owners, is_root) {
        None => Ok(()),
        Some(complaint) => Err(refused(format!("{} {complaint}", path.display()))),
    }
}

pub(crate) fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Makes a directory that only we can enter, and those above it, where nobody else can interfere.
///
/// # Errors
/// As [`trusted`] and `mkdir(2)`.
pub fn create_private(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let mut prefixes: Vec<&Path> = absolute.ancestors().collect();
    prefixes.reverse();
    for prefix in prefixes {
        match trusted(prefix) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => {
                other?;
                continue;
            }
        }
        match fs::DirBuilder::new().mode(0o700).create(prefix) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
    }
    trusted(&absolute)
}

/// Returns the objection to this part of a path, in words that follow the path.
fn complaint(stat: &Stat, owners: &[Option<u32>], is_root: bool) -> Option<String> {
    let (uid, mode) = (stat.st_uid, stat.st_mode);
    if !owners.contains(&Some(uid)) {
        return Some(format!("belongs to another user (uid {uid})"));
    }
    // A link has no mode of its own; in a sticky directory others cannot replace what is not theirs.
    if is_link(stat) || (is_directory(stat) && mode & STICKY != 0) {
        return None;
    }
    // The group of an ordinary user is mostly himself; the bit may also stand for an access control list.
    match mode & 0o022 {
        0 => None,
        0o020 => is_root.then(|| "can be written by its group".to_owned()),
        _ => Some("can be written by everybody".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_can_write_is_named_also_on_the_way() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("a/b");
        fs::create_dir_all(&directory).unwrap();
        let real = directory.canonicalize().unwrap();
        assert_eq!(trusted(&directory).unwrap(), real);
        mode(&home.path().join("a"), 0o777);
        let refused = trusted(&directory).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert!(refused.to_string().ends_with("/a can be written by everybody"), "{refused}");
        // As `/tmp` is.
        mode(&home.path().join("a"), 0o1777);
        assert_eq!(trusted(&directory).unwrap(), real);
        assert_eq!(trusted(&directory.join("c")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_link_is_followed_and_what_it_leads_to_is_looked_at() {
        let home = tempfile::tempdir().unwrap();
        let [open, link] = ["open", "link"].map(|name| home.path().join(name));
        fs::create_dir_all(open.join("below")).unwrap();
        symlink("open/below", &link).unwrap();
        let real = open.join("below").canonicalize().unwrap();
        assert_eq!(trusted(&link).unwrap(), real);
        assert_eq!(trusted(&home.path().join("open/../link/.")).unwrap(), real);
        mode(&open, 0o777);
        assert!(trusted(&link).is_err());
        symlink("round", home.path().join("round")).unwrap();
        assert!(trusted(&home.path().join("round")).is_err(), "a link to itself");
    }

    #[test]
    fn a_path_is_occupied_where_the_first_part_of_another_user_is() {
        let home = tempfile::tempdir().unwrap();
        let theirs = home.path().join("theirs");
        assert_eq!(occupied(&theirs.join("below")).unwrap(), None, "there is nothing");
        fs::create_dir(&theirs).unwrap();
        assert_eq!(occupied(&theirs).unwrap(), None);
        if !needs::root() {
            return;
        }
        chown(&theirs, Some(65534), None).unwrap();
        let found = occupied(&theirs.join("below")).unwrap().unwrap();
        assert_eq!(found, Occupied { place: theirs.clone(), owner: Some(65534) });
        let shown =
            |found: Occupied| found.to_string().split_off(theirs.display().to_string().len());
        assert_eq!(shown(found), " belongs to another user now (uid 65534)");
        let unknown = Occupied { place: theirs.clone(), owner: None };
        assert_eq!(shown(unknown), " belongs to another user now");
    }

    #[test]
    fn another_users_directory_is_not_trusted_and_nothing_is_made_in_it() {
        if !needs::root() {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let theirs = home.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(65534), Some(65534)).unwrap();
        let refused = create_private(&theirs.join("state/weighbridge")).unwrap_err().to_string();
        assert!(refused.contains("belongs to another user (uid 65534)"), "{refused}");
        assert!(!theirs.join("state").exists());
        assert!(trusted_also(&theirs, Some(65534)).is_ok());
        // A link that they can change is not trusted either, wherever it leads.
        let link = home.path().join("link");
        symlink(home.path(), &link).unwrap();
        assert!(trusted(&link).is_ok());
        std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).unwrap();
        assert!(trusted(&link).is_err());
        let ours = home.path().join("ours/deep");
        let made = create_private(&ours).unwrap();
        assert_eq!(fs::metadata(made).unwrap().mode() & 0o777, 0o700);
    }
}
