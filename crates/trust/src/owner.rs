//! Root in another user's directory works as that user: what it makes belongs to him, and the kernel checks
//! every name on the way as his. So no link of his leads root to a file that he could not write himself.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, fstatfs, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::caller::caller;
use super::path::{check, owners, refused};
use super::user::{Acting, User, is_root_for_others};
use super::walk::{Reached, is_directory, is_file, is_link, is_same, walk};

const SETGID: u32 = 0o2000;
/// The group `nogroup` or `nobody`, which owns nothing.
const NO_GROUP: u32 = 65534;
/// Number of looks at a file that another program keeps replacing.
const TRIES: u32 = 10;
/// Longest wait for the reader of a pipe.
const LONGEST_WAIT: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

/// statfs(2): procfs, sysfs, both kinds of control groups, debugfs, tracefs, securityfs, configfs, selinuxfs,
/// bpf, efivarfs.
const OF_KERNEL: [u64; 11] = [
    0x9fa0,
    0x6265_6572,
    0x27_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0x6265_6570,
    0xf97c_ff8c,
    0xcafe_4a11,
    0xde5e_81e4,
];

/// Where a path leads. While it lives, this thread works as the first user other than root who owns something
/// on the way: all behind that is in his hands.
struct FilePlace {
    reached: Reached,
    user: Option<User>,
    _acting: Option<Acting>,
}

impl FilePlace {
    /// To write, no third user may be able to exchange what is on the way. Directories that are not there are
    /// made with the mode `make`.
    fn of(path: &Path, make: Option<Mode>, is_to_write: bool) -> io::Result<FilePlace> {
        let is_root = is_root_for_others();
        // In a user namespace, what is root's outside belongs to a uid that is none of ours, as `/` does.
        let of_root = [0, fs::metadata("/")?.uid()];
        let (mut user, mut acting, mut gives_its_group) = (None, None, false);
        let reached = walk(path, make, &mut |path, stat| {
            // A file leads nowhere, whosever it is.
            let leads_on = is_link(stat) || is_directory(stat);
            if is_root && user.is_none() && leads_on && !of_root.contains(&stat.st_uid) {
                // In a directory that gives its group to all in it, the group is not the user's.
                let gid = if gives_its_group { NO_GROUP } else { stat.st_gid };
                let first = User { uid: stat.st_uid, gid };
                (user, acting) = (Some(first), Some(first.enter()?));
            }
            gives_its_group = is_directory(stat) && stat.st_mode & SETGID != 0;
            match user {
                Some(User { uid, .. }) if is_to_write => {
                    check(path, stat, &owners(Some(uid))?, false)
                }
                _ => Ok(()),
            }
        });
        let reached = reached.map_err(|error| explained(error, user))?;
        if user.is_some() && is_of_kernel(&reached.directory)? {
            return Err(refused(format!(
                "{}: as root, weigh follows no path of another user into a file system of the kernel",
                reached.path.display()
            )));
        }
        Ok(FilePlace { reached, user, _acting: acting })
    }

    /// Opens what was seen, or makes a file where nothing was; `None` where it is something else by now.
    fn open(&self, flags: OFlags) -> io::Result<Option<File>> {
        let Reached { directory, name, last, .. } = &self.reached;
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        // A stream that is open already, as `/dev/stdout`, but by no link of another user.
        let is_stream = last.as_ref().is_some_and(is_link) && self.user.is_none();
        let more = match last {
            None => OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW,
            Some(_) if is_stream => OFlags::empty(),
            Some(_) => OFlags::NOFOLLOW,
        };
        let file = match openat(directory, name, flags | more, Mode::from_raw_mode(0o666)) {
            Err(Errno::NOENT | Errno::EXIST) => return Ok(None),
            Err(Errno::NXIO) => {
                return Err(io::Error::other("it is a pipe, and no program reads from it"));
            }
            other => File::from(other.map_err(|error| explained(error.into(), self.user))?),
        };
        let is_it = match last {
            Some(last) => is_stream || is_same(&file, last)?,
            None => true,
        };
        Ok(is_it.then_some(file))
    }

    /// Tells if another user may have given one of root's files this name as well (a hard link).
    fn is_doubtful(&self) -> io::Result<bool> {
        let has_names = self.reached.last.as_ref().is_some_and(|it| is_file(it) && it.st_nlink > 1);
        let as_root = is_root_for_others() && self.user.is_none();
        Ok(as_root && has_names && fstat(&self.reached.directory)?.st_mode & 0o022 != 0)
    }

    fn is_new(&self) -> bool {
        self.reached.last.is_none()
    }

    /// Removes a file that was made here, unless another has its name by now.
    fn remove_made(&self, made: &File) -> io::Result<()> {
        let Reached { directory, name, .. } = &self.reached;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = openat(directory, name, flags, Mode::empty())?;
        match is_same(found, &fstat(made)?)? {
            true => Ok(unlinkat(directory, name, AtFlags::empty())?),
            false => Ok(()),
        }
    }
}

/// Tells if the kernel makes up the files of this directory. Some of them ask for the effective user
/// (proc_sys_permission() in fs/proc/proc_sysctl.c), which stays root.
fn is_of_kernel(directory: &OwnedFd) -> io::Result<bool> {
    Ok(OF_KERNEL.contains(&(fstatfs(directory)?.f_type as u64 & 0xffff_ffff)))
}

fn explained(error: io::Error, user: Option<User>) -> io::Error {
    match user {
        Some(User { uid, .. }) if error.raw_os_error() == Some(libc::EACCES) => io::Error::new(
            error.kind(),
            format!("the owner of the path (uid {uid}) has no permission for it"),
        ),
        _ => error,
    }
}

/// Opens a file without waiting for anybody, as the user whose it is.
fn open(path: &Path, flags: OFlags, is_to_write: bool) -> io::Result<(File, FilePlace)> {
    for _ in 0..TRIES {
        let place = FilePlace::of(path, None, is_to_write)?;
        if place.is_new() && !is_to_write {
            return Err(Errno::NOENT.into());
        }
        if let Some(file) = place.open(flags)? {
            return Ok((file, place));
        }
    }
    Err(io::Error::other(
        "another program keeps replacing it: stop that program, or use a different file",
    ))
}

/// Opens a file to read it, as the user whose it is.
///
/// # Errors
/// As `open(2)`.
pub(crate) fn open_to_read(path: &Path) -> io::Result<File> {
    open(path, OFlags::RDONLY, false).map(|(file, _)| file)
}

/// A file to write.
fn open_to_write(path: &Path, flags: OFlags) -> io::Result<(File, FilePlace)> {
    let (file, place) = open(path, flags | OFlags::WRONLY, true)?;
    if place.is_doubtful()? {
        return Err(io::Error::other(
            "it has a second name (hard link), and all users can write to this directory: use a different \
             file",
        ));
    }
    check_special(&file, &place)?;
    Ok((file, place))
}

/// Refuses another user's pipe or terminal, which could block root for ever. An open stream such as
/// `/dev/stdout` is accepted, and blocks as usual.
fn check_special(file: &File, place: &FilePlace) -> io::Result<()> {
    let is_special = |stat: &Stat| !is_file(stat) && !is_link(stat);
    let last = place.reached.last.as_ref();
    if let Some(last) = last.filter(|last| is_root_for_others() && is_special(last))
        && !owners(caller().map(|user| user.uid))?.contains(&Some(last.st_uid))
    {
        let uid = last.st_uid;
        return Err(refused(format!("uid {uid} owns this pipe or device: use a regular file")));
    }
    // Stays non-blocking: `write_all_to` waits with a limit.
    if last.is_some_and(is_special) {
        return Ok(());
    }
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags - OFlags::NONBLOCK)?)
}

/// Writes all bytes. Fails if nobody reads from a named pipe for 30 s.
fn write_all_to(file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => await_reader(file)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn await_reader(file: &File) -> io::Result<()> {
    let mut wanted = [PollFd::new(file, PollFlags::OUT)];
    match poll(&mut wanted, Some(&LONGEST_WAIT)) {
        Ok(0) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no program read from this pipe for {} s", LONGEST_WAIT.tv_sec),
        )),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Checks that a file can be written. A missing file is made for the check, and then removed: its
/// content may never come.
///
/// # Errors
/// As `open(2)`; and where it is a named pipe that nobody reads, which would be waited for without
/// end.
pub fn try_to_write(path: &Path) -> io::Result<()> {
    let (file, place) = open_to_write(path, OFlags::APPEND)?;
    if place.is_new() {
        // Another may have been quicker, and where nothing can be removed the file stays.
        let _ = place.remove_made(&file);
    }
    Ok(())
}

/// Replaces what is in a file by this, as the user whose it is. Of a new one no part is left where not all of
/// it can be written.
///
/// # Errors
/// As `open(2)` and `write(2)`.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (mut file, place) = open_to_write(path, OFlags::empty())?;
    let emptied = if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) };
    let written = emptied.and_then(|()| write_all_to(&mut file, bytes));
    if written.is_err() && place.is_new() {
        // What kept it from being written is what is told.
        let _ = place.remove_made(&file);
    }
    written
}

/// Replaces a file by one with these bytes in one step, as the user who owns its directory. A reader finds
/// the old or the new file, even if this process dies meanwhile.
///
/// # Errors
/// As `open(2)`, `write(2)` and `rename(2)`; then the old file stays.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let place = FilePlace::of(path, None, true)?;
    let Reached { directory, name, .. } = &place.reached;
    let mut new = name.clone();
    new.push(format!(".new-{}", std::process::id()));
    // Of one that had our number and died.
    let _ = unlinkat(directory, &new, AtFlags::empty());
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let written = || -> io::Result<()> {
        let mut file = File::from(openat(directory, &new, flags, Mode::from_raw_mode(0o666))?);
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(renameat(directory, &new, directory, name)?)
    };
    written().map_err(|error| {
        let _ = unlinkat(directory, &new, AtFlags::empty());
        explained(error, place.user)
    })
}

/// Adds this to a file, as the user whose it is.
///
/// # Errors
/// As `open(2)` and `write(2)`.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (mut file, _place) = open_to_write(path, OFlags::APPEND)?;
    write_all_to(&mut file, bytes)
}

/// Removes a file, as the user whose it is.
///
/// # Errors
/// As `unlink(2)`.
pub fn remove(path: &Path) -> io::Result<()> {
    let FilePlace { reached, _acting, .. } = FilePlace::of(path, None, true)?;
    Ok(unlinkat(&reached.directory, &reached.name, AtFlags::empty())?)
}

/// Makes a file that only its owner can read, where none is, as the user whose directory it is in.
///
/// # Errors
/// As `open(2)`.
pub fn create_private_file(path: &Path) -> io::Result<()> {
    let place = FilePlace::of(path, None, true)?;
    let Reached { directory, name, .. } = &place.reached;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(directory, name, flags, Mode::RUSR | Mode::WUSR) {
        Ok(_) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(explained(error.into(), place.user)),
    }
}

/// Makes a directory and those above it, as the user whose they are.
///
/// # Errors
/// As `mkdir(2)`.
pub fn create_directory(path: &Path, mode: u32) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let place = FilePlace::of(path, Some(Mode::from_raw_mode(mode)), true)?;
    match place.reached.last.as_ref().is_some_and(is_directory) {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::path::PathBuf;

    use super::*;

    const NOBODY: u32 = 65534;

    /// A directory of another user's in one of ours that he can enter; `None` without root.
    fn theirs() -> Option<(tempfile::TempDir, PathBuf)> {
        if !needs::root() {
            return None;
        }
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let theirs = home.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
        Some((home, theirs))
    }

    fn owner(path: &Path) -> (u32, u32) {
        let metadata = fs::symlink_metadata(path).unwrap();
        (metadata.uid(), metadata.gid())
    }

    /// The kernel takes us for root there.
    #[test]
    fn a_link_of_another_user_leads_root_to_no_setting_of_the_kernel() {
        let Some((_home, theirs)) = theirs() else { return };
        let link = theirs.join("link");
        for setting in
            ["/proc/sys/kernel/domainname", "/sys/kernel/mm/transparent_hugepage/enabled"]
        {
            symlink(setting, &link).unwrap();
            let before = fs::read(setting).unwrap();
            let problem = write(&link, b"{").unwrap_err().to_string();
            assert!(problem.contains("a file system of the kernel"), "{problem}");
            assert!(open_to_read(&link).is_err());
            assert_eq!(fs::read(setting).unwrap(), before);
            fs::remove_file(&link).unwrap();
        }
    }

    #[test]
    fn what_root_makes_in_a_users_directory_is_his() {
        let Some((home, theirs)) = theirs() else { return };
        create_directory(&theirs.join("a/b"), 0o700).unwrap();
        write(&theirs.join("a/b/report"), b"first").unwrap();
        write(&theirs.join("a/b/report"), b"2nd").unwrap();
        for name in ["a", "a/b", "a/b/report"] {
            assert_eq!(owner(&theirs.join(name)), (NOBODY, NOBODY), "{name}");
        }
        assert_eq!(fs::read(theirs.join("a/b/report")).unwrap(), b"2nd");
        // And root is root again.
        write(&home.path().join("ours"), b"").unwrap();
        assert_eq!(owner(&home.path().join("ours")), (0, 0));
    }

    #[test]
    fn a_file_is_replaced_in_one_step_or_stays() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        replace(&file, b"old").unwrap();
        let mut old = File::open(&file).unwrap();
        replace(&file, b"new").unwrap();
        let mut read = String::new();
        io::Read::read_to_string(&mut old, &mut read).unwrap();
        assert_eq!((read.as_str(), fs::read_to_string(&file).unwrap().as_str()), ("old", "new"));
        fs::create_dir(home.path().join("directory")).unwrap();
        assert!(replace(&home.path().join("directory"), b"new").is_err());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2, "a half is left");
        let Some((_home, theirs)) = theirs() else { return };
        replace(&theirs.join("file"), b"new").unwrap();
        assert_eq!(owner(&theirs.join("file")), (NOBODY, NOBODY));
    }

    #[test]
    fn a_link_in_a_users_directory_leads_root_nowhere_that_he_could_not_go() {
        let Some((home, theirs)) = theirs() else { return };
        let ours = home.path().join("ours");
        fs::write(&ours, "ours").unwrap();
        symlink(&ours, theirs.join("file")).unwrap();
        symlink(home.path(), theirs.join("directory")).unwrap();
        symlink(home.path().join("new"), theirs.join("dangling")).unwrap();
        for name in ["file", "directory/ours", "directory/new", "dangling"] {
            let problem = write(&theirs.join(name), b"theirs").unwrap_err();
            assert_eq!(problem.kind(), io::ErrorKind::PermissionDenied, "{name}");
        }
        assert!(create_directory(&theirs.join("directory/deep"), 0o700).is_err());
        assert_eq!(fs::read(&ours).unwrap(), b"ours");
        assert!(!home.path().join("new").exists() && !home.path().join("deep").exists());
    }

    #[test]
    fn what_is_tried_is_as_it_was_afterwards() {
        let home = tempfile::tempdir().unwrap();
        let (new, old) = (home.path().join("new"), home.path().join("old"));
        fs::write(&old, "old").unwrap();
        try_to_write(&new).unwrap();
        try_to_write(&old).unwrap();
        assert!(!new.exists());
        assert_eq!(fs::read(&old).unwrap(), b"old");
        assert!(try_to_write(&home.path().join("no/such")).is_err());
        let link = home.path().join("link");
        symlink(&old, &link).unwrap();
        try_to_write(&link).unwrap();
        assert!(link.is_symlink() && old.exists());
    }

    #[test]
    fn no_part_of_a_new_file_is_left() {
        let own = std::env::current_exe().unwrap();
        let name = "owner::tests::write_to_a_full_disk";
        let done = std::process::Command::new(own).args(["--exact", name, "--ignored"]).output();
        let said = String::from_utf8(done.unwrap().stdout).unwrap();
        assert!(said.contains("1 passed; 0 failed"), "{said}");
    }

    /// A limit on files is a disk that is full.
    #[test]
    #[ignore = "another test runs it, as the limit is the whole process's"]
    fn write_to_a_full_disk() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        const LIMIT: u64 = 64 << 10;
        let home = tempfile::tempdir().unwrap();
        let (new, old) = (home.path().join("new"), home.path().join("old"));
        fs::write(&old, "old").unwrap();
        let before = getrlimit(Resource::Fsize);
        // SAFETY: nothing waits for this signal; ignored, the write says why.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        setrlimit(Resource::Fsize, Rlimit { current: Some(LIMIT), ..before }).unwrap();
        let text = vec![b'x'; 2 * LIMIT as usize];
        let written = [&new, &old].map(|path| write(path, &text));
        assert!(written.iter().all(Result::is_err), "{written:?}");
        assert!(!new.exists() && old.exists());
    }

    #[test]
    fn what_took_the_place_of_a_new_file_is_not_removed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        let (file, place) = open_to_write(&path, OFlags::APPEND).unwrap();
        assert!(place.is_new());
        fs::rename(&path, home.path().join("moved")).unwrap();
        fs::write(&path, "another's").unwrap();
        place.remove_made(&file).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"another's");
    }

    #[test]
    fn a_try_in_a_users_directory_is_his_and_follows_no_link_of_his() {
        let Some((home, theirs)) = theirs() else { return };
        try_to_write(&theirs.join("new")).unwrap();
        symlink(home.path().join("new"), theirs.join("dangling")).unwrap();
        assert!(try_to_write(&theirs.join("dangling")).is_err());
        let left: Vec<_> = fs::read_dir(&theirs).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["dangling"]);
        assert!(!home.path().join("new").exists());
    }

    #[test]
    fn root_writes_to_no_named_pipe_of_another_user() {
        let Some((_home, theirs)) = theirs() else { return };
        let pipe = theirs.join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        chown(&pipe, Some(NOBODY), Some(NOBODY)).unwrap();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let _reader = rustix::fs::open(&pipe, flags, rustix::fs::Mode::empty()).unwrap();
        let problem = write(&pipe, b"x").unwrap_err().to_string();
        assert!(problem.contains("uid 65534 owns this pipe or device"), "{problem}");
    }

    #[test]
    fn a_pipe_is_written_to_while_somebody_reads_it() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let problem = write(&pipe, b"x").unwrap_err().to_string();
        assert_eq!(problem, "it is a pipe, and no program reads from it");
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        // More than a pipe holds, so that the writer waits for the reader.
        let text = vec![b'x'; 1 << 20];
        while write(&pipe, &text).is_err() {
            std::thread::yield_now();
        }
        assert_eq!(reader.join().unwrap(), text);
    }

    #[test]
    fn a_link_of_ours_is_followed_also_to_what_is_not_there_yet() {
        let home = tempfile::tempdir().unwrap();
        let (link, file) = (home.path().join("link"), home.path().join("file"));
        symlink(&file, &link).unwrap();
        for text in ["first", "2nd"] {
            write(&link, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    fn a_link_to_a_stream_that_is_open_is_written_to() {
        assert!(try_to_write(Path::new("/dev/null")).is_ok());
        let home = tempfile::tempdir().unwrap();
        let file = File::create(home.path().join("file")).unwrap();
        let stream = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        write(Path::new(&stream), b"text").unwrap();
        assert_eq!(fs::read(home.path().join("file")).unwrap(), b"text");
    }

    #[test]
    fn what_a_third_user_could_exchange_is_not_written() {
        let Some((_home, theirs)) = theirs() else { return };
        let [thirds, open] = ["thirds", "open"].map(|name| theirs.join(name));
        for directory in [&thirds, &open] {
            create_directory(directory, 0o755).unwrap();
        }
        chown(&thirds, Some(1001), Some(1001)).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        for (directory, why) in [(thirds, "(uid 1001)"), (open, "written by everybody")] {
            let file = directory.join("report");
            for problem in [write(&file, b"x"), try_to_write(&file), append(&file, b"x")] {
                let problem = problem.unwrap_err().to_string();
                assert!(problem.contains(why), "{problem}");
            }
            assert!(create_directory(&directory.join("deep"), 0o700).is_err());
            assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        }
    }

    /// The file that was opened decides, not the name that it had before.
    #[test]
    fn what_was_exchanged_since_it_was_seen_is_not_opened() {
        let Some((home, theirs)) = theirs() else { return };
        let (ours, file) = (home.path().join("ours"), theirs.join("file"));
        fs::write(&ours, "ours").unwrap();
        write(&file, b"theirs").unwrap();
        let seen = FilePlace::of(&file, None, true).unwrap();
        assert_eq!(seen.user.map(|user| user.uid), Some(NOBODY));
        fs::rename(&file, theirs.join("moved")).unwrap();
        fs::write(&file, "another").unwrap();
        assert!(seen.open(OFlags::WRONLY).unwrap().is_none());
        // Nor is a link followed that came in its place.
        fs::remove_file(&file).unwrap();
        symlink(&ours, &file).unwrap();
        assert!(seen.open(OFlags::WRONLY).is_err());
        drop(seen);
        let absent = FilePlace::of(&theirs.join("absent"), None, true).unwrap();
        symlink(&ours, theirs.join("absent")).unwrap();
        assert!(absent.open(OFlags::WRONLY).unwrap().is_none());
        drop(absent);
        assert_eq!(fs::read(&ours).unwrap(), b"ours");
    }

    #[test]
    fn another_name_of_a_file_of_roots_is_not_written_where_anybody_can_make_one() {
        let Some((home, _)) = theirs() else { return };
        let [shared, own] = ["shared", "own"].map(|name| home.path().join(name));
        for directory in [&shared, &own] {
            fs::create_dir(directory).unwrap();
            fs::write(home.path().join("precious"), "precious").unwrap();
            fs::hard_link(home.path().join("precious"), directory.join("name")).unwrap();
        }
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(
            write(&shared.join("name"), b"x").unwrap_err().to_string().contains("a second name")
        );
        assert_eq!(fs::read(home.path().join("precious")).unwrap(), b"precious");
        write(&own.join("name"), b"x").unwrap();
    }

    #[test]
    fn a_group_that_a_directory_gives_is_not_the_users() {
        let Some((home, _)) = theirs() else { return };
        let shared = home.path().join("shared");
        fs::create_dir(&shared).unwrap();
        chown(&shared, None, Some(42)).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o3777)).unwrap();
        let link = shared.join("link");
        symlink(home.path(), &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(1001), Some(42)).unwrap();
        let place = FilePlace::of(&link.join("file"), None, false).unwrap();
        assert_eq!(place.user, Some(User { uid: 1001, gid: NO_GROUP }));
    }

    #[test]
    fn a_file_for_its_owner_is_made_once_and_kept() {
        let Some((home, theirs)) = theirs() else { return };
        for (directory, uid) in [(home.path(), 0), (&theirs, NOBODY)] {
            let file = directory.join("private");
            create_private_file(&file).unwrap();
            let made = fs::metadata(&file).unwrap();
            assert_eq!((made.mode() & 0o777, made.uid()), (0o600, uid));
            fs::write(&file, "kept").unwrap();
            create_private_file(&file).unwrap();
            assert_eq!(fs::read(&file).unwrap(), b"kept");
            remove(&file).unwrap();
            assert!(!file.exists());
        }
    }
}
