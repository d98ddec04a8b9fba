//! Claims on things that exist once per kernel. One `weigh` changes them at a time, whichever state
//! directory it has.
//!
//! Root locks a file of its own in `/run`, which nobody else can open, and so nobody else can lock.
//! A container may have a `/run` of its own and still share the kernel's audit configuration. So
//! root also locks the root directory of `debugfs`: a kernel has just one, whatever the namespaces.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, fstatfs, openat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::process::geteuid;

use crate::undo::queue::{Holder, Refused};
use crate::undo::state_dir::{StateDir, lock_file, lock_name, pid_of};
use trust::path::{create_private, trusted};

/// Claim of every treatment that changes auditing.
pub const AUDIT: &str = "the kernel's audit configuration";
/// The governors, and what else `weigh doctor --fix` changes.
pub const CPUS: &str = "the settings of the CPUs";

/// Root's locks. `/run` is empty after a boot, as is what they stand for.
pub(super) const LOCKS: &str = "/run/weighbridge";
const DEBUGFS: &str = "/sys/kernel/debug";
/// `DEBUGFS_MAGIC` of `include/uapi/linux/magic.h`.
const DEBUGFS_MAGIC: u32 = 0x6462_6720;
/// So many sessions may end while another one begins.
const MOST_ENDS: usize = 3;
/// As the kernel: `PATH_MAX`.
const LONGEST_PATH: u64 = 4096;

/// A thing that is ours as long as this lives, or a process that got its files from us.
#[derive(Debug)]
pub struct Claim {
    files: Vec<OwnedFd>,
    /// Root's lock file, which holds the path of the last claimant's journal, in any state
    /// directory.
    names_journal: Option<File>,
}

impl Claim {
    /// The locked files: whoever inherits them holds the claim too.
    pub fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.files.iter().map(AsFd::as_fd)
    }

    /// Locks its files, or else names who holds the one that is locked.
    fn locked(self, resource: &str) -> Result<Claim, Refused> {
        let mut held = None;
        for (number, file) in self.files.iter().enumerate() {
            let is_ours = try_lock(file)
                .map_err(|error| Refused::Failed(format!("cannot lock {resource}: {error}")))?;
            if !is_ours {
                held = Some(number);
                break;
            }
        }
        let journal = match held {
            None => return Ok(self),
            // The first one alone names anybody.
            Some(0) => self.last_journal(),
            Some(_) => Ok(None),
        };
        let cannot = |error| Refused::Failed(format!("cannot lock {resource}: {error}"));
        Err(Refused::Busy(in_use(resource, journal.map_err(cannot)?.as_deref())))
    }

    /// Where the journal was of whoever had this claim before us.
    ///
    /// # Errors
    /// Where the lock cannot be read.
    pub fn last_journal(&self) -> io::Result<Option<PathBuf>> {
        let Some(file) = &self.names_journal else { return Ok(None) };
        let mut bytes = vec![0; file.metadata()?.len().min(LONGEST_PATH) as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(journal_in(bytes))
    }

    /// Has the claim name this journal from now on.
    ///
    /// # Errors
    /// Where the lock cannot be written.
    pub fn name_journal(&self, journal: &Path) -> io::Result<()> {
        let Some(file) = &self.names_journal else { return Ok(()) };
        file.set_len(0)?;
        file.write_all_at(journal.as_os_str().as_bytes(), 0)
    }
}

/// Where the journals are, or were, of all who claimed something of the kernel since it booted, as far as we
/// may know.
///
/// # Errors
/// Where root's locks cannot be read.
pub fn journals_of_claims() -> io::Result<Vec<PathBuf>> {
    if !geteuid().is_root() {
        return Ok(Vec::new());
    }
    journals_in(Path::new(LOCKS))
}

fn journals_in(locks: &Path) -> io::Result<Vec<PathBuf>> {
    let locks = match trusted(locks) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        locks => locks?,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(locks)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "lock") {
            found.extend(journal_in(fs::read(path)?));
        }
    }
    Ok(found)
}

/// Before the first experiment there is none.
fn journal_in(bytes: Vec<u8>) -> Option<PathBuf> {
    let path = PathBuf::from(OsString::from_vec(bytes));
    path.is_absolute().then_some(path)
}

/// Claims a thing of the kernel.
///
/// # Errors
/// [`Refused`], where another process holds it, or no lock can be had.
pub fn claim(resource: &str) -> Result<Claim, Refused> {
    let is_root = geteuid().is_root();
    let name = format!("{}.lock", resource.replace(|c: char| !c.is_alphanumeric(), "-"));
    let cannot = |error| Refused::Failed(format!("cannot lock {resource}: {error}"));
    let file = if is_root { lock_in(Path::new(LOCKS), &name) } else { own_lock(&name) };
    let file = file.map_err(cannot)?;
    let names_journal = is_root.then(|| file.try_clone()).transpose().map_err(cannot)?;
    let mut files = vec![file.into()];
    if is_root && resource == AUDIT {
        files.extend(root_of_debugfs());
    }
    Claim { files, names_journal }.locked(resource)
}

/// Claims the settings of the CPUs: of this machine, or of one made up of files below a directory.
///
/// # Errors
/// As [`claim`].
pub fn claim_cpus(root: &Path) -> Result<Claim, Refused> {
    if root == Path::new("/") {
        return claim(CPUS);
    }
    let directory = File::open(root)
        .map_err(|error| Refused::Failed(format!("{}: {error}", root.display())))?;
    Claim { files: vec![directory.into()], names_journal: None }.locked(CPUS)
}

/// Says who uses a thing, if this is its journal.
fn in_use(resource: &str, journal: Option<&Path>) -> String {
    let shown = journal.and_then(owner_of).and_then(Holder::shown);
    let who = shown.map_or(String::new(), |shown| format!(": {shown}"));
    format!("another experiment on this host is using {resource}{who}")
}

/// The `weigh` of a journal, as the lock beside it says. `None` where that does not say it: the number in the
/// journal's name alone may be another process's by now, or another container's.
fn owner_of(journal: &Path) -> Option<Holder> {
    let name = journal.file_name()?.to_str().filter(|name| pid_of(name).is_some())?;
    let written =
        StateDir::at(journal.parent()?).and_then(|directory| directory.read(&lock_name(name)));
    Holder::read(&String::from_utf8_lossy(&written.ok()?))
}

/// Two experiments at once would measure each other, and undo each other's changes. The file says who holds
/// it.
///
/// # Errors
/// [`Refused`], where another runs, or the state directory cannot be used.
pub fn only_one_at_a_time() -> Result<File, Refused> {
    let directory = StateDir::open().map_err(cannot_use)?;
    lock_as_holder(&directory, "lock", "another experiment is running on this host")
}

/// Lock of a thing that is measured by several sessions, one after the other. Its file goes with it.
pub struct SessionLock {
    directory: StateDir,
    name: String,
    _file: File,
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // Whoever waits for the file finds that it has no name any more.
        let _ = self.directory.remove(&self.name);
    }
}

/// Two sessions of one thing would both measure what is left of it. `name` is that of the lock, and `what` is
/// for people.
///
/// # Errors
/// [`Refused`], where another session runs, or the state directory cannot be used.
pub fn only_one_session(name: &str, what: &str) -> Result<SessionLock, Refused> {
    only_one_session_in(StateDir::open().map_err(cannot_use)?, name, what)
}

fn only_one_session_in(
    directory: StateDir,
    name: &str,
    what: &str,
) -> Result<SessionLock, Refused> {
    let (name, busy) =
        (format!("{name}.lock"), format!("another session of {what} is running on this host"));
    for _ in 0..MOST_ENDS {
        let file = lock_as_holder(&directory, &name, &busy)?;
        let ours = file.metadata().map_err(cannot_use)?;
        // The session that had it may have ended, and removed it, since it was opened here.
        if directory.identity(&name).is_ok_and(|found| found == (ours.dev(), ours.ino())) {
            return Ok(SessionLock { directory, name, _file: file });
        }
    }
    Err(Refused::Busy(busy))
}

fn cannot_use(error: io::Error) -> Refused {
    Refused::Failed(format!("cannot use the state directory: {error}"))
}

/// Locks a file of the state directory and writes this process into it, or else names the one that holds it.
fn lock_as_holder(directory: &StateDir, name: &str, busy: &str) -> Result<File, Refused> {
    let mut lock = directory.lock_file(name).map_err(cannot_use)?;
    if !try_lock(&lock).map_err(cannot_use)? {
        let mut written = Vec::new();
        Read::by_ref(&mut lock).take(LONGEST_PATH).read_to_end(&mut written).map_err(cannot_use)?;
        let shown = Holder::read(&String::from_utf8_lossy(&written)).and_then(Holder::shown);
        let who = shown.map_or(String::new(), |shown| format!(": {shown}"));
        return Err(Refused::Busy(format!("{busy}{who}")));
    }
    let holder = Holder::this().map_err(cannot_use)?;
    // A disk that takes no name takes no journal either, and whoever opens that says so.
    let _ = holder.write_into(&lock);
    Ok(lock)
}

/// Locks a file; `false` if another process has locked it.
///
/// # Errors
/// Where the file system knows no locks, or has no room for one.
fn try_lock(file: impl AsFd) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Locks a file for a thing that only its owner may change: a lock among the owner's own processes
/// is enough.
fn own_lock(name: &str) -> io::Result<File> {
    StateDir::open()?.lock_file(name)
}

fn lock_in(directory: &Path, name: &str) -> io::Result<File> {
    let path = create_private(directory)?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(&path, flags, Mode::empty())?;
    lock_file(&directory, &path, name)
}

/// The root directory of the kernel's `debugfs`, where only root can open it: as it is mounted, or mounted at
/// no place for as long as it is open. `None` where this kernel has none or does not let us.
fn root_of_debugfs() -> Option<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let is_debugfs =
        |root: &OwnedFd| fstatfs(root).is_ok_and(|of| of.f_type as u32 == DEBUGFS_MAGIC);
    let mounted = rustix::fs::open(DEBUGFS, flags, Mode::empty()).ok().filter(is_debugfs);
    let root = mounted.or_else(|| {
        let context = fsopen("debugfs", FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
        fsconfig_create(&context).ok()?;
        let mount =
            fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty()).ok()?;
        openat(&mount, ".", flags, Mode::empty()).ok()
    })?;
    // Whoever can open it can lock it, and so keep us out.
    let is_roots = fstat(&root).is_ok_and(|status| status.st_mode & 0o077 == 0);
    is_roots.then_some(root)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::orphans::wait_until;

    #[test]
    fn a_link_in_place_of_a_lock_is_refused_and_what_it_leads_to_is_whole() {
        let home = tempfile::tempdir().unwrap();
        let victim = home.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let locks = home.path().join("locks");
        lock_in(&locks, "one.lock").unwrap();
        assert!(lock_in(&victim, "one.lock").is_err(), "that is no directory");
        symlink(&victim, locks.join("two.lock")).unwrap();
        assert!(lock_in(&locks, "two.lock").is_err());
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    }

    #[test]
    fn a_claim_names_the_journal_of_who_had_it_last() {
        let home = tempfile::tempdir().unwrap();
        let lock = lock_in(home.path(), "one.lock").unwrap();
        lock_in(home.path(), "two.lock").unwrap();
        let claim = Claim { files: Vec::new(), names_journal: Some(lock) };
        assert_eq!(claim.last_journal().unwrap(), None);
        for journal in ["/a/longer/path/7.journal", "/b/8.journal"] {
            claim.name_journal(Path::new(journal)).unwrap();
            assert_eq!(claim.last_journal().unwrap(), Some(journal.into()));
        }
        assert_eq!(journals_in(home.path()).unwrap(), [PathBuf::from("/b/8.journal")]);
        assert_eq!(journals_in(&home.path().join("absent")).unwrap(), [""; 0].map(PathBuf::from));
        assert!(journals_in(&home.path().join("one.lock/x")).is_err(), "that is no directory");
    }

    #[test]
    fn a_claim_is_of_the_process_that_wrote_the_lock_and_not_of_any_with_its_number() {
        let home = tempfile::tempdir().unwrap();
        let directory = StateDir::at(home.path()).unwrap();
        let name = format!("{}.journal", std::process::id());
        let journal = directory.path(&name);
        let nobody = "another experiment on this host is using a switch";
        let said = || in_use("a switch", Some(&journal));
        assert_eq!(said(), nobody, "there is no lock");
        let lock = directory.lock_file(&lock_name(&name)).unwrap();
        assert_eq!(said(), nobody, "of an older weigh");
        Holder::this().unwrap().write_into(&lock).unwrap();
        let numbered = format!("` (process {}, for ", std::process::id());
        assert!(said().starts_with(&format!("{nobody}: `")) && said().contains(&numbered));
        lock.set_len(0).unwrap();
        lock.write_all_at(format!("{} 1\n", std::process::id()).as_bytes(), 0).unwrap();
        assert_eq!(said(), nobody, "its number has come again");
    }

    #[test]
    fn a_session_keeps_others_out_until_it_ends_and_leaves_no_file() {
        let home = tempfile::tempdir().unwrap();
        let take = |name: &str| {
            let directory = StateDir::at(home.path()).unwrap();
            only_one_session_in(directory, name, "atlas k3f9qx")
        };
        let first = take("atlas-k3f9qx").map_err(Refused::without_waiting).unwrap();
        let refused = take("atlas-k3f9qx").err().unwrap().without_waiting();
        let holder = format!("` (process {}, for ", std::process::id());
        assert!(
            refused.starts_with("another session of atlas k3f9qx is running on this host: `")
                && refused.contains(&holder),
            "{refused}"
        );
        assert!(take("atlas-another").is_ok());
        drop(first);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        // A session that was killed leaves the file.
        fs::write(home.path().join("atlas-k3f9qx.lock"), "7 8\n").unwrap();
        assert!(take("atlas-k3f9qx").is_ok());
    }

    /// Waits for a lock to be free. A child that another test forked just then has a copy of the file until
    /// it executes its program.
    fn soon(is_so: impl FnMut() -> bool) -> bool {
        wait_until(Instant::now() + Duration::from_secs(20), is_so)
    }

    /// The lock goes when its last holder does: a guard outlives its `weigh`.
    #[test]
    fn who_holds_a_file_of_a_claim_holds_the_claim() {
        let home = tempfile::tempdir().unwrap();
        let take = || {
            let lock = lock_in(home.path(), "lock").unwrap();
            flock(&lock, FlockOperation::NonBlockingLockExclusive)
                .map(|()| Claim { files: vec![lock.into()], names_journal: None })
        };
        let claim = take().unwrap();
        let inherited: Vec<OwnedFd> =
            claim.files().map(|file| file.try_clone_to_owned().unwrap()).collect();
        drop(claim);
        assert!(take().is_err());
        drop(inherited);
        assert!(soon(|| take().is_ok()));
    }

    #[test]
    fn the_settings_of_a_machine_are_claimed_once_and_those_of_others_besides() {
        let [machine, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let first = claim_cpus(machine.path()).unwrap();
        let refused = claim_cpus(machine.path()).unwrap_err().without_waiting();
        assert!(refused.contains("is using the settings of the CPUs"), "{refused}");
        let second = claim_cpus(other.path()).unwrap();
        assert_eq!([first.files().count(), second.files().count()], [1, 1]);
        drop(first);
        assert!(soon(|| claim_cpus(machine.path()).is_ok()));
    }
}
