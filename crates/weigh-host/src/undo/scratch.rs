//! The private directory of an experiment: where it is made, what is taken for one, and how it is removed.

use std::ffi::CStr;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, Dir, FileType, IFlags, Mode, OFlags, ioctl_getflags, ioctl_setflags, openat, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde_json::Value;

use crate::chance;
use crate::undo::journal::{EntryOwner, Undoing};
use trust::path::{Occupied, occupied, trusted};

/// The journal's entry for it.
pub const SCRATCH: &str = "scratch directory";

/// The one thing of ours that a reboot leaves.
pub fn undoing() -> Undoing {
    let undo = Box::new(|state: &Value, owner: &EntryOwner| remove(state, owner.pid));
    Undoing { kind: SCRATCH, ends_with_boot: false, by_command: false, undo }
}

/// Where private directories may be made: `TMPDIR`, where nobody else can replace what we make in it. What is
/// unpacked there is executed.
pub fn place() -> io::Result<PathBuf> {
    trusted(&std::env::temp_dir())
}

/// A name that nobody can guess, for the directory of this process.
pub fn name(pid: u32) -> io::Result<String> {
    Ok(format!("weigh-{pid}-{:016x}", chance::number()?))
}

/// Makes it, where nothing has its name yet.
pub fn create(directory: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(directory)
}

/// Lets the file system put each directory that is made in this one into a different part of the disk.
///
/// An ext4 without a journal does not reuse the inode of a deleted file for a minute, and looks at each of
/// these whenever a file is made nearby. Copying a database became fifteen times as slow that way.
/// Other file systems refuse the flag or ignore it, so errors do not matter.
pub fn spread(directory: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::open(directory, flags, Mode::empty()) else { return };
    if let Ok(flags) = ioctl_getflags(&opened) {
        let _ = ioctl_setflags(&opened, flags | IFlags::TOPDIR);
    }
}

/// Returns true if a process of this number may have made a directory of this name.
pub fn is_name(name: &str, pid: u32) -> bool {
    let random = name.strip_prefix(&format!("weigh-{pid}-"));
    // Eight digits, before there were sixteen.
    random.is_some_and(|digits| {
        (8..=16).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

/// Returns true if a path leads into the directory of a process of this number.
pub fn is_below(path: &Path, pid: u32) -> bool {
    path.iter().filter_map(|name| name.to_str()).any(|name| is_name(name, pid))
}

/// Removes the directory that a journal of this process names, if it is one of ours, and no link in it is
/// followed.
pub fn remove(state: &Value, pid: u32) -> Result<(), String> {
    let path: PathBuf = serde_json::from_value(state.clone())
        .map_err(|error| format!("the journal's scratch directory is damaged: {error}"))?;
    let refused = |why: &str| format!("{} {why}, so it is not removed", path.display());
    let name = path.file_name().and_then(|name| name.to_str()).filter(|name| is_name(name, pid));
    let (Some(parent), Some(name), true) = (path.parent(), name, path.is_absolute()) else {
        return Err(refused("is not a directory of the experiment"));
    };
    let is_theirs = occupied(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    if let Some(theirs) = is_theirs {
        eprintln!("weigh: {}", what_is_left(&path, &theirs));
        return Ok(());
    }
    let parent = match trusted(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(());
        }
        other => other.map_err(|error| refused(&format!("cannot be removed safely ({error})")))?,
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let parent = rustix::fs::open(&parent, flags, Mode::empty())
        .map_err(|error| format!("{}: {error}", path.display()))?;
    match statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(format!("{}: {error}", path.display())),
        Ok(status) if FileType::from_raw_mode(status.st_mode) != FileType::Directory => {
            return Err(refused("is not a directory"));
        }
        Ok(status) if status.st_uid != geteuid().as_raw() => {
            return Err(refused(&format!("belongs to another user (uid {})", status.st_uid)));
        }
        Ok(_) => {}
    }
    remove_tree(&parent, name).map_err(|error| format!("{}: {error}", path.display()))
}

/// Says what became of a directory of ours whose name, or a place above it, is another user's now. After a
/// reboot anybody may take a name in `/tmp`; or an administrator gave the place away, with ours in it.
///
/// This is no error, which would block every experiment: he decides what is found below a place of his, and
/// whoever mounts a file system shows us any owner. For the same reason nothing there is removed.
fn what_is_left(path: &Path, theirs: &Occupied) -> String {
    let shown = path.display();
    match path.symlink_metadata().map(|found| found.uid() == geteuid().as_raw()) {
        Ok(true) => format!("{shown} is left, because {theirs}: remove it"),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            format!("{shown} may be left, because {theirs} ({error}): look for it, and remove it")
        }
        _ => format!("{shown} is gone: {theirs}, and is left alone"),
    }
}

/// As `rm -r`, which follows no link. Workers that are just being killed may still create and remove files.
fn remove_tree(parent: &OwnedFd, name: &str) -> io::Result<()> {
    const ATTEMPTS: u32 = 20;
    let mut attempt = 1;
    loop {
        let removed = remove_once(parent, name);
        match (statat(parent, name, AtFlags::SYMLINK_NOFOLLOW), removed) {
            (Err(Errno::NOENT), _) => return Ok(()),
            (Err(error), _) => return Err(error.into()),
            (Ok(_), Err(error)) if attempt == ATTEMPTS => return Err(error),
            (Ok(_), Ok(())) if attempt == ATTEMPTS => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            (Ok(_), _) => std::thread::sleep(Duration::from_millis(50)),
        }
        attempt += 1;
    }
}

/// Deepest level that is removed in place. Deeper directories are moved up first, because each level needs an
/// open descriptor.
const DEEPEST: u32 = 64;

fn remove_once(parent: &OwnedFd, name: &str) -> io::Result<()> {
    const MOST_PASSES: u32 = 100_000;
    let top = open_directory(parent, name)?;
    for _ in 0..MOST_PASSES {
        if remove_content(&top, &top, 1)? == 0 {
            return Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?);
        }
    }
    Err(io::Error::other(
        "other processes keep creating files in it: end them, then run `weigh restore`",
    ))
}

/// Removes all in a directory; returns the number of entries found.
fn remove_content(directory: &OwnedFd, top: &OwnedFd, level: u32) -> io::Result<u64> {
    let mut count = 0;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        count += 1;
        match unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR) => remove_directory(directory, name, top, level)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(count)
}

fn remove_directory(parent: &OwnedFd, name: &CStr, top: &OwnedFd, level: u32) -> io::Result<()> {
    match unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTEMPTY | Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    if level == DEEPEST {
        // A random name cannot collide with an existing entry.
        let new = format!("moved-up-{:016x}", chance::number()?);
        return Ok(renameat(parent, name, top, new)?);
    }
    match open_directory(parent, name) {
        Err(Errno::NOENT) => return Ok(()),
        directory => remove_content(&directory?, top, level + 1)?,
    };
    match unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // What was made in it meanwhile is found by the next pass.
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn open_directory(parent: &OwnedFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use rustix::fs::mkdirat;
    use rustix::io::{FdFlags, fcntl_getfd};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;

    fn state(path: &Path) -> Value {
        serde_json::to_value(path).unwrap()
    }

    #[test]
    fn a_directory_of_ours_goes_with_all_in_it_and_links_lead_nowhere() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("victim")).unwrap();
        fs::write(home.path().join("victim/file"), "precious").unwrap();
        let directory = home.path().join(name(7).unwrap());
        create(&directory).unwrap();
        assert!(create(&directory).is_err(), "one that is there already is not ours");
        symlink(home.path().join("victim"), directory.join("link")).unwrap();
        fs::create_dir(directory.join("below")).unwrap();
        remove(&state(&directory), 7).unwrap();
        assert!(!directory.exists() && home.path().join("victim/file").exists());
        remove(&state(&directory), 7).unwrap();
        remove(&state(&home.path().join("gone").join(name(7).unwrap())), 7).unwrap();
    }

    #[test]
    fn what_an_experiment_cannot_have_made_stays() {
        let home = tempfile::tempdir().unwrap();
        let own = name(7).unwrap();
        let [victim, link] = ["victim", "weigh-7-0123456789abcdef"].map(|n| home.path().join(n));
        fs::create_dir_all(victim.join(&own)).unwrap();
        symlink(&victim, &link).unwrap();
        let elsewhere = home.path().join(&own).join("../victim");
        let refused = remove(&state(&link), 7).unwrap_err();
        assert!(refused.ends_with(" is not a directory, so it is not removed"), "{refused}");
        for path in [victim.clone(), elsewhere, "weigh-7-01234567".into(), "/".into()] {
            assert!(remove(&state(&path), 7).is_err(), "{}", path.display());
        }
        assert!(remove(&Value::Null, 7).is_err());
        assert!(remove(&state(&victim.join(&own)), 8).is_err(), "of another process");
        assert!(victim.join(&own).exists());
        if geteuid().is_root() {
            let theirs = home.path().join(name(7).unwrap());
            fs::create_dir(&theirs).unwrap();
            chown(&theirs, Some(65534), None).unwrap();
            let said = |path: &Path| what_is_left(path, &occupied(path).unwrap().unwrap());
            assert_eq!(remove(&state(&theirs), 7), Ok(()), "another user's blocks nothing");
            assert!(said(&theirs).contains(" is gone: "), "{}", said(&theirs));
            chown(&victim, Some(65534), None).unwrap();
            assert_eq!(remove(&state(&victim.join(&own)), 7), Ok(()));
            let told = said(&victim.join(&own));
            assert!(
                told.contains("/victim belongs to another user now (uid 65534): remove it"),
                "{told}"
            );
            let other = said(&victim.join(name(7).unwrap()));
            assert!(other.contains(" is gone: "), "{other}");
            chown(&victim, Some(0), None).unwrap();
            std::fs::set_permissions(&victim, fs::Permissions::from_mode(0o777)).unwrap();
            assert!(remove(&state(&victim.join(&own)), 7).unwrap_err().contains("safely"));
            assert!(theirs.exists() && victim.join(&own).exists());
        }
    }

    #[test]
    fn only_a_directory_is_opened_and_no_program_inherits_it() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("directory")).unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        symlink("directory", home.path().join("link")).unwrap();
        let parent = OwnedFd::from(fs::File::open(home.path()).unwrap());
        let opened = open_directory(&parent, "directory").unwrap();
        assert_eq!(fcntl_getfd(&opened).unwrap(), FdFlags::CLOEXEC);
        for other in ["file", "link"] {
            assert!(open_directory(&parent, other).is_err(), "{other}");
            assert!(remove_tree(&parent, other).is_err() && home.path().join(other).exists());
        }
        assert_eq!(place().unwrap(), std::env::temp_dir().canonicalize().unwrap());
    }

    /// Whoever worked in it may not keep it from being removed.
    #[test]
    fn a_directory_deeper_than_files_may_be_open_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join(name(7).unwrap());
        create(&directory).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut at = rustix::fs::open(&directory, flags, Mode::empty()).unwrap();
        // As by an earlier removal that was killed.
        fs::create_dir_all(directory.join("moved-up-1/x/y")).unwrap();
        for _ in 0..3000 {
            mkdirat(&at, "d", Mode::RWXU).unwrap();
            fs::write(format!("/proc/self/fd/{}/file", at.as_raw_fd()), "").unwrap();
            at = open_directory(&at, "d").unwrap();
        }
        drop(at);
        // Fewer than there are levels; the other tests of this process need fewer still.
        let limit = getrlimit(Resource::Nofile);
        let few = Rlimit { current: Some(1024), maximum: limit.maximum };
        setrlimit(Resource::Nofile, few).unwrap();
        remove(&state(&directory), 7).unwrap();
        assert!(!directory.exists());
    }

    #[test]
    fn a_directory_is_known_by_the_process_and_the_random_digits_of_its_name() {
        assert!(is_name(&name(7).unwrap(), 7) && is_name("weigh-7-01234567", 7));
        for other in [
            "weigh-8-01234567",
            "weigh-7-0123456",
            "weigh-7-0123456789abcdef0",
            "weigh-7-0123456g",
            "weigh-7-",
            "01234567",
        ] {
            assert!(!is_name(other, 7), "{other}");
        }
        let inside = |path: &str| is_below(Path::new(path), 7);
        assert!(inside("/tmp/weigh-7-01234567/auditd/x") && inside("/tmp/weigh-7-01234567"));
        assert!(!inside("/tmp/weigh-8-01234567/x") && !inside("/tmp/x"));
    }
}
