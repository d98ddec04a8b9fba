//! Files that root may execute, load, or open as a database: only root, and the user who called `sudo`, may
//! be able to change them. Ordinary users may use whatever they like.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Stat, fstat, lstat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::caller::caller;
use super::path::{check, owners, refused, trusted_also};
use super::user::{User, is_root_for_others};
use super::walk::{is_directory, is_file, is_link, walk};

/// The path without links of what will be executed or loaded. As root, only root and the user who called
/// `sudo` may be able to change it; others execute what they like.
///
/// # Errors
/// If others can change the file or a directory on its path. The error says what to do.
pub fn executable(path: &Path) -> io::Result<PathBuf> {
    if !geteuid().is_root() {
        return path.canonicalize();
    }
    trusted_also(path, caller().map(|user| user.uid)).map_err(advised)
}

/// Adds advice to a permission error.
fn advised(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => refused(format!(
            "{error}. As root, weigh executes only files that only root, or the user who called sudo, can \
             change. Run `sudo -u USER weigh …` as the owner, or use a copy that belongs to root"
        )),
        _ => error,
    }
}

/// Refuses a tree from which root will execute or load something, if others can change anything in it. Checks
/// each path of `parts` that exists, everything below it on the same file system, and its parents. Does not
/// follow links.
///
/// # Errors
/// For the first that others can change, with what to do; else as `lstat(2)`.
pub fn executable_tree(root: &Path, parts: &[&str]) -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let owners = owners(caller().map(|user| user.uid))?;
    let device = lstat(root)?.st_dev;
    let look = |path: &Path| -> io::Result<Option<Stat>> {
        let stat = match lstat(path) {
            Err(Errno::NOENT) => return Ok(None),
            other => other.map_err(|error| named(path, error.into()))?,
        };
        // A sticky bit does not help: others could still create a missing file here.
        let is_open = is_directory(&stat) && stat.st_mode & 0o022 != 0;
        let looked = match is_open {
            true => Err(refused(format!("{} can be written by others", path.display()))),
            false => check(path, &stat, &owners, true),
        };
        looked.map_err(|error| {
            refused(format!(
                "{error}, and root would execute it: correct its owner and mode, or use a tar archive \
                 of the root file system"
            ))
        })?;
        Ok((stat.st_dev == device).then_some(stat))
    };
    let mut open = Vec::new();
    'parts: for part in parts {
        for way in Path::new(part).ancestors().skip(1) {
            match look(&root.join(way))? {
                // Absent, or another file system, which is mounted here only.
                None => continue 'parts,
                Some(stat) if is_link(&stat) => {
                    let path = root.join(way);
                    return Err(refused(format!(
                        "{} is a link, so root cannot check {part} behind it: use a tar archive of the root",
                        path.display()
                    )));
                }
                Some(_) => {}
            }
        }
        open.push(root.join(part));
    }
    while let Some(path) = open.pop() {
        if look(&path)?.is_some_and(|stat| is_directory(&stat)) {
            let entries = std::fs::read_dir(&path).map_err(|error| named(&path, error))?;
            for entry in entries {
                open.push(entry.map_err(|error| named(&path, error))?.path());
            }
        }
    }
    Ok(())
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Refuses a path that root may not execute, as [`executable`]. If nothing is there yet, nobody else may be
/// able to create it.
///
/// # Errors
/// As [`executable`].
pub fn executable_or_absent(path: &Path) -> io::Result<()> {
    let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match executable(path) {
        Err(error) if is_absent(&error) && geteuid().is_root() => {}
        Err(error) if is_absent(&error) => return Ok(()),
        other => return other.map(drop),
    }
    let path = std::path::absolute(path)?;
    for parent in path.ancestors().skip(1) {
        match executable(parent) {
            Err(error) if is_absent(&error) => {}
            other => {
                let directory = other?;
                // Sticky or not: there everybody can make what is absent.
                if std::fs::metadata(&directory)?.permissions().mode() & 0o022 == 0 {
                    return Ok(());
                }
                return Err(refused(format!(
                    "{} does not exist, and other users can create it in {}",
                    path.display(),
                    directory.display()
                )));
            }
        }
    }
    Ok(())
}

/// Where root's database may be, which need not exist: where nobody but root, or the user who called `sudo`,
/// can change anything. SQLite also believes files beside it, so a directory in which everybody may make
/// files is refused. Gives the path without links, and as whom root works there.
///
/// # Errors
/// `PermissionDenied` with a sentence that names what is whose; else as `open(2)`, `NotFound` where its
/// directory is not there.
pub fn database(path: &Path) -> io::Result<(PathBuf, Option<User>)> {
    if !is_root_for_others() {
        walk(path, None, &mut |_, _| Ok(()))?;
        return Ok((path.to_owned(), None));
    }
    let caller = caller();
    let owners = owners(caller.map(|user| user.uid))?;
    let (mut user, mut acting) = (None, None);
    let reached = walk(path, None, &mut |path, stat| {
        if user.is_none() && caller.is_some_and(|caller| caller.uid == stat.st_uid) {
            // Root may not enter that user's directories elsewhere than on this machine.
            (user, acting) = (caller, caller.map(User::enter).transpose()?);
        }
        // What is neither is no database, and who opens it says so.
        if !is_link(stat) && !is_directory(stat) && !is_file(stat) {
            return Ok(());
        }
        check(path, stat, &owners, true).map_err(|error| {
            refused(format!(
                "{error}. As root, weigh opens only databases that only root, or the user who called sudo, \
                 can change. Run `sudo -u USER weigh …` as the owner; the owner exports results with `weigh \
                 export --json`, and root imports them"
            ))
        })
    })?;
    drop(acting);
    let may_be_one = reached.last.as_ref().is_none_or(is_file);
    if may_be_one && fstat(&reached.directory)?.st_mode & 0o022 != 0 {
        let directory = reached.path.parent().unwrap_or(&reached.path).display();
        return Err(refused(format!(
            "other users can create files in {directory}, and SQLite may read these as part of the database: \
             use a file in a new directory, which weigh creates"
        )));
    }
    Ok((reached.path, user))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn root_executes_nothing_from_a_tree_that_others_can_change() {
        if !needs::root() {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let parts = ["bin", "usr/lib", "absent"];
        for directory in ["bin", "usr/lib/deep", "home/theirs"] {
            fs::create_dir_all(home.path().join(directory)).unwrap();
        }
        chown(home.path().join("home/theirs"), Some(1001), Some(1001)).unwrap();
        symlink("/nowhere", home.path().join("bin/link")).unwrap();
        executable_tree(home.path(), &parts).unwrap();
        mode(&home.path().join("usr/lib/deep"), 0o777);
        let refused = executable_tree(home.path(), &parts).unwrap_err().to_string();
        assert!(refused.contains("usr/lib/deep can be written by others"), "{refused}");
        mode(&home.path().join("usr/lib/deep"), 0o755);
        // Others could make there what is absent, or put another directory in the place of one.
        for (part, bits) in [("usr", 0o1777), ("bin", 0o1777)] {
            mode(&home.path().join(part), bits);
            executable_tree(home.path(), &parts).unwrap_err();
            mode(&home.path().join(part), 0o755);
        }
        executable_tree(home.path(), &parts).unwrap();
        // What is behind a link is not looked at, so it is refused.
        symlink("usr", home.path().join("local")).unwrap();
        let refused = executable_tree(home.path(), &["local/lib"]).unwrap_err().to_string();
        assert!(refused.contains("local is a link"), "{refused}");
        fs::write(home.path().join("bin/sh"), "").unwrap();
        chown(home.path().join("bin/sh"), Some(1001), Some(1001)).unwrap();
        let refused = executable_tree(home.path(), &parts).unwrap_err().to_string();
        assert!(refused.contains("bin/sh belongs to another user (uid 1001)"), "{refused}");
        chown(home.path().join("bin/sh"), Some(0), Some(0)).unwrap();
        executable_tree(home.path(), &parts).unwrap();
        let refused = executable_tree(home.path(), &[""]).unwrap_err().to_string();
        assert!(refused.contains("home/theirs"), "{refused}");
    }

    #[test]
    fn root_executes_nothing_of_another_user_and_says_what_to_do() {
        if !needs::root() {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("evil.so");
        fs::write(&file, "").unwrap();
        assert_eq!(executable(&file).unwrap(), file.canonicalize().unwrap());
        chown(&file, Some(1001), Some(1001)).unwrap();
        let refused = executable(&file).unwrap_err().to_string();
        assert!(refused.contains("(uid 1001)") && refused.contains("sudo -u USER"), "{refused}");
        let absent = home.path().join("no/such");
        assert_eq!(executable(&absent).unwrap_err().kind(), io::ErrorKind::NotFound);
        executable_or_absent(&absent).unwrap();
        mode(home.path(), 0o1777);
        let refused = executable_or_absent(&absent).unwrap_err().to_string();
        assert!(refused.contains("other users can create it in"), "{refused}");
    }

    #[test]
    fn a_database_of_roots_lies_where_nobody_else_can_make_a_file() {
        if !needs::root() {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("w.db");
        assert_eq!(database(&file).unwrap(), (file.clone(), None), "it need not exist");
        fs::write(&file, "").unwrap();
        assert_eq!(database(&file).unwrap(), (file.clone(), None));
        let refused = |path: &Path| database(path).unwrap_err().to_string();
        // As `/tmp`: SQLite's log beside it may be anybody's.
        mode(home.path(), 0o1777);
        assert!(
            refused(&file).starts_with("other users can create files in"),
            "{}",
            refused(&file)
        );
        assert!(refused(&home.path().join("absent")).starts_with("other users"));
        mode(home.path(), 0o755);
        chown(&file, Some(1001), Some(1001)).unwrap();
        assert!(refused(&file).contains("w.db belongs to another user (uid 1001)"));
        // The owner of the file that is reached decides, whoever made the link.
        let link = home.path().join("link");
        symlink(&file, &link).unwrap();
        assert!(refused(&link).contains("(uid 1001)"));
    }
}
