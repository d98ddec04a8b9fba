//! Where the journals are: what must be undone has to be found again, also from another shell. Whoever could
//! write here would have root undo what he likes, so it is a directory of our own and nobody else's.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fstat, fsync, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use trust::path::{create_private, trusted};

/// Root's, where `XDG_STATE_HOME` is not set, or another user's.
const OF_ROOT: &str = "/var/lib/weighbridge";
const JOURNAL: &str = ".journal";
const LOCK: &str = ".lock";
const RUNNING: &str = ".running";
/// A journal holds the host's audit rules, 2 KiB each.
const MAX_JOURNAL_BYTES: u64 = 256 << 20;

/// The directory, held open: its files are found by their names in it and not by a path.
#[derive(Clone)]
pub struct StateDir {
    directory: Arc<OwnedFd>,
    path: PathBuf,
}

impl StateDir {
    /// `$XDG_STATE_HOME/weighbridge`, else `/var/lib/weighbridge` for root and
    /// `~/.local/state/weighbridge` for others; created for its owner only. Root takes the first only where
    /// nobody else can change what is in it (after `sudo -E` or `su` it may be another user's).
    pub fn open() -> io::Result<StateDir> {
        let wanted = env::var_os("XDG_STATE_HOME").filter(|value| !value.is_empty());
        let wanted = wanted.map(|home| PathBuf::from(home).join("weighbridge"));
        if geteuid().is_root() {
            return match wanted.map(|path| create_private(&path)) {
                Some(Ok(path)) => StateDir::at(&path),
                Some(Err(error)) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
                _ => StateDir::at(&create_private(Path::new(OF_ROOT))?),
            };
        }
        let path = match (wanted, env::var_os("HOME")) {
            (Some(path), _) => path,
            (None, Some(home)) => PathBuf::from(home).join(".local/state/weighbridge"),
            (None, None) => {
                let problem = "HOME is not set; set HOME or XDG_STATE_HOME to a directory";
                return Err(io::Error::other(problem));
            }
        };
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|error| {
            let path = path.display();
            let problem = format!(
                "cannot create {path}: {error}; set XDG_STATE_HOME to a different \
                directory"
            );
            io::Error::new(error.kind(), problem)
        })?;
        StateDir::at(&path)
    }

    /// One that is there already.
    ///
    /// # Errors
    /// `PermissionDenied`, where others can change what is in it.
    pub fn at(path: &Path) -> io::Result<StateDir> {
        // Root's is nobody else's on the whole way. A home below a third user's directory is what an
        // ordinary user has: he can only see to his own directory.
        let path = match geteuid().is_root() {
            true => trusted(path).map_err(name_way_out)?,
            false => fs::canonicalize(path)?,
        };
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&path, flags, Mode::empty())?;
        let status = fstat(&directory)?;
        let (uid, mode) = (status.st_uid, status.st_mode);
        if uid != geteuid().as_raw() {
            return Err(refused(&format!(
                "{} belongs to another user (uid {uid})",
                path.display()
            )));
        }
        if mode & 0o002 != 0 {
            return Err(refused(&format!("{} can be written by everybody", path.display())));
        }
        Ok(StateDir { directory: Arc::new(directory), path })
    }

    pub fn place(&self) -> &Path {
        &self.path
    }

    /// Where a file of it is, for people.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A file to be locked; created where it is not there.
    pub fn lock_file(&self, name: &str) -> io::Result<File> {
        lock_file(&self.directory, &self.path, name)
    }

    /// Waits until nobody has a lock of the file. A child that another test forked just then has a copy of
    /// the open file until it executes its program. Taking the lock here would create one more open copy.
    #[cfg(test)]
    pub fn wait_until_unlocked(&self, name: &str) {
        let inode = format!(":{} ", std::fs::metadata(self.path(name)).unwrap().ino());
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let is_free = || !std::fs::read_to_string("/proc/locks").unwrap().contains(&inode);
        assert!(crate::orphans::wait_until(deadline, is_free), "{name} is still locked");
    }

    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&*self.directory, name, flags, Mode::empty())?;
        check(&file, &self.path(name))?;
        at_most(MAX_JOURNAL_BYTES, file.into())
    }

    /// Replaces a file in one step, and returns when it is on disk, with its name.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = half_written(name);
        self.write(&new, bytes)?.sync_all()?;
        renameat(&*self.directory, &new, &*self.directory, name)?;
        match fsync(&*self.directory) {
            // Some file systems have nothing to sync there.
            Err(Errno::INVAL) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Replaces a file in one step, without waiting for the disk. It is for content that is useless
    /// after a reboot.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = half_written(name);
        self.write(&new, bytes)?;
        Ok(renameat(&*self.directory, &new, &*self.directory, name)?)
    }

    fn write(&self, new: &str, bytes: &[u8]) -> io::Result<File> {
        let _ = unlinkat(&*self.directory, new, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file =
            File::from(openat(&*self.directory, new, flags, Mode::from_raw_mode(0o600))?);
        file.write_all(bytes)?;
        Ok(file)
    }

    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&*self.directory, name, AtFlags::empty())?)
    }

    /// Returns true if it has a file of this name, of any kind.
    pub fn has(&self, name: &str) -> io::Result<bool> {
        match statat(&*self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(false),
            other => Ok(other.map(|_| true)?),
        }
    }

    /// Removes a journal, its lock, and what whoever died while he replaced it left beside it.
    ///
    /// # Errors
    /// As `unlink(2)`, where the journal stays.
    pub fn remove_journal(&self, name: &str) -> io::Result<()> {
        match self.remove(name) {
            // On a read-only file system unlink(2) fails even if there is no such file.
            Err(error) if !matches!(self.has(name), Ok(false)) => return Err(error),
            _ => {}
        }
        let running = running_name(name);
        let new = [half_written(name), half_written(&running)];
        for file in [running, lock_name(name)].into_iter().chain(new) {
            let _ = self.remove(&file);
        }
        Ok(())
    }

    /// Which file others find by this name: its device and inode. The directory may have been moved away.
    pub fn identity(&self, name: &str) -> io::Result<(u64, u64)> {
        let found = fs::symlink_metadata(self.path(name))?;
        Ok((found.dev(), found.ino()))
    }

    /// The names of all journals.
    pub fn journals(&self) -> io::Result<Vec<String>> {
        let mut names = self.names()?;
        names.retain(|name| pid_of(name).is_some());
        Ok(names)
    }

    /// The names of journals that were never whole: their processes made the lock, and changed nothing.
    pub fn unfinished_journals(&self) -> io::Result<Vec<String>> {
        let names = self.names()?;
        let of_lock = |name: &String| name.strip_suffix(LOCK).map(|pid| format!("{pid}{JOURNAL}"));
        let mut found: Vec<String> = names.iter().filter_map(of_lock).collect();
        found.retain(|journal| pid_of(journal).is_some() && !names.contains(journal));
        Ok(found)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&*self.directory)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
}

pub fn journal_name(pid: u32) -> String {
    format!("{pid}{JOURNAL}")
}

/// Whose journal has this name.
pub fn pid_of(journal: &str) -> Option<u32> {
    journal.strip_suffix(JOURNAL)?.parse().ok()
}

/// A journal is replaced with every entry, so its lock is on a file of its own beside it.
pub fn lock_name(journal: &str) -> String {
    journal.replace(JOURNAL, LOCK)
}

/// Beside a journal: the command that changes the system now.
pub fn running_name(journal: &str) -> String {
    journal.replace(JOURNAL, RUNNING)
}

fn half_written(file: &str) -> String {
    file.replace(JOURNAL, ".new").replace(RUNNING, ".running-new")
}

fn at_most(limit: u64, file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = file.take(limit + 1).read_to_end(&mut bytes)?;
    match read as u64 > limit {
        true => Err(io::Error::other("it is too long for a journal")),
        false => Ok(bytes),
    }
}

/// A file in this directory to be locked: nothing in it is changed, and no link is followed.
pub(super) fn lock_file(directory: &OwnedFd, path: &Path, name: &str) -> io::Result<File> {
    let flags =
        OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(directory, name, flags, Mode::from_raw_mode(0o600)) {
        // One that is there can be locked also on a file system that was made read-only.
        Err(Errno::ROFS) => {
            let flags = flags - OFlags::RDWR - OFlags::CREATE;
            openat(directory, name, flags, Mode::empty()).map_err(|_| Errno::ROFS)?
        }
        other => other?,
    };
    check(&file, &path.join(name))?;
    Ok(file.into())
}

/// A file of ours has one name, so that none of another's is taken for it.
fn check(file: &OwnedFd, path: &Path) -> io::Result<()> {
    let status = fstat(file)?;
    if status.st_uid != geteuid().as_raw() {
        return Err(not_ours(path, status.st_uid));
    }
    let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    if is_file && status.st_nlink <= 1 {
        return Ok(());
    }
    Err(io::Error::other(format!("{} is not a file of weigh", path.display())))
}

/// With what to do about a directory that is not ours alone.
fn refused(problem: &str) -> io::Error {
    let way_out = "set XDG_STATE_HOME to a directory that only you can write";
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{problem}: {way_out}"))
}

fn name_way_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => refused(&error.to_string()),
        _ => error,
    }
}

fn not_ours(path: &Path, uid: u32) -> io::Error {
    let problem = format!("{} belongs to another user (uid {uid}): remove it", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, problem)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::{chown, symlink};

    use rustix::io::{FdFlags, fcntl_getfd};

    use super::*;

    #[test]
    fn links_and_files_of_others_are_neither_read_nor_locked_nor_truncated() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("state");
        fs::create_dir(&state).unwrap();
        let victim = home.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let plain = home.path().join("plain");
        fs::write(&plain, "{}").unwrap();
        symlink(&plain, state.join("11.journal")).unwrap();
        for name in ["lock", "7.lock", "7.journal", "8.new"] {
            symlink(&victim, state.join(name)).unwrap();
        }
        fs::hard_link(&victim, state.join("9.journal")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, state.join("10.journal"), Mode::from_raw_mode(0o600))
            .unwrap();
        let dir = StateDir::at(&state).unwrap();
        assert!(dir.lock_file("lock").is_err() && dir.lock_file("7.lock").is_err());
        for name in ["7.journal", "9.journal", "10.journal", "11.journal"] {
            assert!(dir.read(name).is_err(), "{name}");
        }
        dir.replace("8.journal", b"{}").unwrap();
        assert_eq!(dir.read("8.journal").unwrap(), b"{}");
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        let all = ["10.journal", "11.journal", "7.journal", "8.journal", "9.journal"];
        assert_eq!(dir.journals().unwrap(), all);
        dir.remove_journal("7.journal").unwrap();
        assert!(victim.exists() && !state.join("7.journal").exists());
    }

    #[test]
    fn no_program_inherits_what_is_opened() {
        let home = tempfile::tempdir().unwrap();
        let dir = StateDir::at(home.path()).unwrap();
        let (lock, new) = (dir.lock_file("7.lock").unwrap(), dir.write("7.new", b"{}").unwrap());
        for file in [dir.directory.as_fd(), lock.as_fd(), new.as_fd()] {
            assert_eq!(fcntl_getfd(file).unwrap(), FdFlags::CLOEXEC);
        }
        assert!(StateDir::at(&home.path().join("7.lock")).is_err(), "that is no directory");
    }

    #[test]
    fn a_file_that_is_too_long_is_not_read_in_part() {
        let home = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = home.path().join("7.journal");
            fs::write(&path, text).unwrap();
            at_most(3, File::open(path).unwrap())
        };
        assert_eq!(read("abc").unwrap(), b"abc");
        assert!(read("abcd").is_err() && read("abcde").is_err());
    }

    #[test]
    fn a_directory_that_everybody_can_write_is_refused_with_the_way_out() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        assert!(StateDir::at(home.path()).is_ok());
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let refused = StateDir::at(home.path()).map(drop).unwrap_err().to_string();
        assert!(refused.contains("can be written by everybody"), "{refused}");
        assert!(refused.contains("set XDG_STATE_HOME"), "{refused}");
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        if !needs::root() {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let dir = StateDir::at(home.path()).unwrap();
        dir.replace("7.journal", b"{}").unwrap();
        chown(home.path().join("7.journal"), Some(65534), None).unwrap();
        let refused = dir.read("7.journal").unwrap_err().to_string();
        assert!(refused.contains("7.journal belongs to another user (uid 65534)"), "{refused}");
        chown(home.path(), Some(65534), None).unwrap();
        assert!(StateDir::at(home.path()).is_err());
    }

    #[test]
    fn a_journal_goes_with_all_that_belongs_to_it_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let dir = StateDir::at(home.path()).unwrap();
        let own = ["7.journal", "7.lock", "7.new", "7.running", "7.running-new"];
        for name in own.into_iter().chain(["8.journal", "8.lock"]) {
            dir.keep(name, b"{}").unwrap();
        }
        assert_eq!([dir.has("7.journal").unwrap(), dir.has("9.journal").unwrap()], [true, false]);
        dir.remove_journal("7.journal").unwrap();
        dir.remove_journal("7.journal").unwrap();
        assert_eq!(own.map(|name| dir.has(name).unwrap()), [false; 5]);
        assert_eq!(dir.journals().unwrap(), ["8.journal"]);
        assert_eq!(dir.read("8.lock").unwrap(), b"{}");
        fs::create_dir(home.path().join("9.journal")).unwrap();
        dir.keep("9.lock", b"").unwrap();
        assert!(dir.remove_journal("9.journal").is_err() && dir.has("9.lock").unwrap());
    }

    #[test]
    fn a_journal_is_unfinished_while_there_is_only_its_lock() {
        let home = tempfile::tempdir().unwrap();
        let dir = StateDir::at(home.path()).unwrap();
        for name in ["7.lock", "8.lock", "8.journal", "lock", "x.lock", "9.running"] {
            dir.keep(name, b"").unwrap();
        }
        assert_eq!(dir.unfinished_journals().unwrap(), ["7.journal"]);
    }

    #[test]
    fn a_file_is_another_once_it_was_replaced() {
        let home = tempfile::tempdir().unwrap();
        let dir = StateDir::at(home.path()).unwrap();
        dir.keep("7.journal", b"{}").unwrap();
        let first = dir.identity("7.journal").unwrap();
        assert_eq!(dir.identity("7.journal").unwrap(), first);
        dir.keep("7.journal", b"{}").unwrap();
        assert_ne!(dir.identity("7.journal").unwrap(), first);
    }
}
