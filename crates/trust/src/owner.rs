//! Root in another user's directory works as that user: what it makes belongs to him, and the kernel checks
//! every name on the way as his. So no link of his leads root to a file that he could not write himself.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::process::geteuid;

use super::path::walk;

/// The user whom root works as, with his directory's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    uid: u32,
    gid: u32,
}

/// The first user other than root who owns something on the way to this path, which need not exist: all
/// behind that is in his hands. `None` for others than root, who can do no more than they may anyway.
pub fn of(path: &Path) -> Option<Owner> {
    let mut owner = None;
    if geteuid().is_root() && can_be_others() {
        // In a user namespace, what is root's outside belongs to a uid that is none of ours, as `/` does.
        let of_root = fs::metadata("/").map_or(0, |metadata| metadata.uid());
        // What is not there yet ends the way.
        let _ = walk(path, &mut |path, metadata| {
            // `/dev/stdout` and the like lead to what is open already.
            if owner.is_some() || path.starts_with("/proc") {
                return Err(io::ErrorKind::Other.into());
            }
            if ![0, of_root].contains(&metadata.uid()) {
                owner = Some(Owner { uid: metadata.uid(), gid: metadata.gid() });
            }
            Ok(())
        });
    }
    owner
}

/// Not in a user namespace where groups are fixed (user_namespaces(7)): there root is an ordinary user's, and
/// can do no more than he may.
fn can_be_others() -> bool {
    fs::read_to_string("/proc/self/setgroups").map_or(true, |text| text.trim() != "deny")
}

/// Does something with files below this path as the user whose they are.
///
/// # Errors
/// Where root may not become that user, or what `work` says.
pub fn as_owner<T, E: From<io::Error>>(
    path: &Path,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let _acting = of(path).map(Owner::enter).transpose()?;
    work()
}

/// Opens a file to write, which is created where it is not there, as the user whose it is.
///
/// # Errors
/// As `open(2)`; and where it is a named pipe that nobody reads, which would be waited for without end.
pub fn open_to_write(path: &Path, options: &OpenOptions) -> io::Result<File> {
    open_or_make(path, options).map(|(file, _)| file)
}

/// The same, and whether it is new: not there before, nor the end of a link.
fn open_or_make(path: &Path, options: &OpenOptions) -> io::Result<(File, bool)> {
    // Where nothing is yet, a link that somebody puts there meanwhile is not followed.
    let made = as_owner(path, || open(path, options.clone().create_new(true), 0));
    let is_new = made.is_ok();
    let file = match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let owner = of(path);
            let is_ours = |link: fs::Metadata| link.is_symlink() && link.uid() == 0;
            // Nor one that takes the place of what was there when we looked whose it is.
            let follows = owner.is_some()
                || !geteuid().is_root()
                || fs::symlink_metadata(path).is_ok_and(is_ours);
            let _acting = owner.map(Owner::enter).transpose()?;
            open(path, options.clone().create(true), if follows { 0 } else { libc::O_NOFOLLOW })
        }
        other => other,
    }?;
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - rustix::fs::OFlags::NONBLOCK)?;
    Ok((file, is_new))
}

/// Whether a file can be written. One that is not there is made for that, and then removed: what it is for
/// may never come.
///
/// # Errors
/// As [`open_to_write`].
pub fn try_to_write(path: &Path) -> io::Result<()> {
    let (file, is_new) = open_or_make(path, OpenOptions::new().append(true))?;
    if is_new {
        // Another may have been quicker, and where nothing can be removed the file stays.
        let _ = remove_made(path, &file);
    }
    Ok(())
}

/// Removes a file that was made here, as the user whose it is, unless another has its name by now.
fn remove_made(path: &Path, file: &File) -> io::Result<()> {
    let made = file.metadata()?;
    as_owner(path, || {
        let found = fs::symlink_metadata(path)?;
        match (found.dev(), found.ino()) == (made.dev(), made.ino()) {
            true => fs::remove_file(path),
            false => Ok(()),
        }
    })
}

fn open(path: &Path, options: &OpenOptions, flags: i32) -> io::Result<File> {
    let file = options.clone().custom_flags(flags | libc::O_NONBLOCK).open(path);
    file.map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => io::Error::other("it is a pipe, and no program reads from it"),
        _ => error,
    })
}

/// Replaces what is in a file by this, as the user whose it is. Of a new one no part is left where not all of
/// it can be written.
///
/// # Errors
/// As `open(2)` and `write(2)`.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (mut file, is_new) = open_or_make(path, OpenOptions::new().write(true).truncate(true))?;
    let written = file.write_all(bytes);
    if written.is_err() && is_new {
        // What kept it from being written is what is told.
        let _ = remove_made(path, &file);
    }
    written
}

/// Makes a directory and those above it, as the user whose they are.
///
/// # Errors
/// As `mkdir(2)`.
pub fn create_directory(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    as_owner(path, || fs::DirBuilder::new().recursive(true).mode(mode).create(path))
}

impl Owner {
    /// This thread opens and makes files as this user until the result is dropped.
    ///
    /// # Errors
    /// Where the kernel does not permit it.
    pub fn enter(self) -> io::Result<Acting> {
        let groups = groups()?;
        let acting = Acting { groups, _thread: PhantomData };
        set_groups(&[])?;
        set_file_ids(self.uid, self.gid)?;
        Ok(acting)
    }
}

/// While it lives, this thread works as another user.
pub struct Acting {
    groups: Vec<u32>,
    /// These are a thread's own: it stays where it was made.
    _thread: PhantomData<*const ()>,
}

impl Drop for Acting {
    fn drop(&mut self) {
        // Whoever stays another user would fail at the next thing that needs root, and say so.
        let _ = set_file_ids(0, 0);
        let _ = set_groups(&self.groups);
    }
}

/// The calls themselves: those of the C library change all threads.
fn set_file_ids(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: both take a number, and change only what this thread may do with files.
    let is_now = unsafe {
        libc::syscall(libc::SYS_setfsgid, gid);
        libc::syscall(libc::SYS_setfsuid, uid);
        // An id that is none changes nothing and tells the one in force (setfsuid(2)).
        libc::syscall(libc::SYS_setfsuid, u32::MAX) as u32
    };
    if is_now == uid { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

fn groups() -> io::Result<Vec<u32>> {
    let groups = rustix::process::getgroups()?;
    Ok(groups.into_iter().map(|group| group.as_raw()).collect())
}

fn set_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: the kernel reads so many numbers from where they are.
    let status = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::path::PathBuf;

    use super::*;

    const NOBODY: u32 = 65534;

    /// A directory of another user's in one of ours that he can enter; `None` without root.
    fn theirs() -> Option<(tempfile::TempDir, PathBuf)> {
        if !geteuid().is_root() {
            println!("skipped: needs root");
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
        assert_eq!(of(&home.path().join("ours")), None);
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
        let (file, is_new) = open_or_make(&path, OpenOptions::new().append(true)).unwrap();
        assert!(is_new);
        fs::rename(&path, home.path().join("moved")).unwrap();
        fs::write(&path, "another's").unwrap();
        remove_made(&path, &file).unwrap();
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
    fn root_of_a_user_namespace_with_fixed_groups_works_as_itself() {
        let denied = fs::read_to_string("/proc/self/setgroups").is_ok_and(|text| text == "deny\n");
        assert_eq!(can_be_others(), !denied);
        let owner = fs::metadata("/").unwrap().uid();
        assert_eq!(of(Path::new("/")), None, "uid {owner}");
    }

    #[test]
    fn a_link_to_a_stream_that_is_open_is_nobodys() {
        assert_eq!(of(Path::new("/dev/stdout")), None);
        assert_eq!(of(Path::new("/proc/self/fd/1")), None);
    }
}
