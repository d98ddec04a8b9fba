//! Root file system that a user names: its form, and checks that it stays as it is.

use std::cell::{Cell, OnceCell};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::Room;
use trust::allowed::{executable, executable_tree};
use trust::user_file;
use weigh_archive::{self as archive, MOST_FILES};
use weigh_host::interruption::has_come;
use weigh_host::machine::mounts::unescaped;

/// Looking whether a directory is as it was takes this part of the time at most, and is done so often.
const LOOKS_TAKE: u32 = 50;
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Paths of a root directory that hold programs and libraries. Other paths may belong to users; older
/// distributions give `usr/local` to a group.
const EXECUTED: &str = "\
    bin sbin lib lib32 lib64 libx32 usr/bin usr/sbin usr/lib usr/lib32 usr/lib64 usr/libx32 \
    usr/libexec opt nix gnu etc/alternatives etc/ld.so.cache etc/ld.so.preload \
    etc/ld-musl-x86_64.path etc/ld-musl-aarch64.path";

/// In what form it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootForm {
    /// The root of this system, which changes all the time.
    Host,
    Directory,
    /// Directory of an image: an OCI layout, or an unpacked `docker save` archive.
    ImageDirectory,
    /// Compressed or not; of a root, or of an image.
    Tar,
    Squashfs,
}

/// A path that exists, and what it is.
pub struct RootSource {
    /// As it was written.
    written: String,
    pub file: PathBuf,
    pub form: RootForm,
    digest: OnceCell<Result<Digested, String>>,
    /// When it was last looked at, and how long that took.
    looked: Cell<Option<(Instant, Duration)>>,
}

#[derive(Clone)]
struct Digested {
    hex: String,
    /// By which a file is known to be as it was.
    stamp: (u64, u64, u64, i64, i64, i64),
}

impl RootSource {
    pub fn look(written: &str) -> Result<RootSource, String> {
        let say = |error: &dyn std::fmt::Display| format!("rootfs:{written}: {error}");
        let file = executable(Path::new(written)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                say(&"no such directory or archive (paths are relative to the current directory)")
            }
            _ => say(&error),
        })?;
        let form = match fs::metadata(&file).map_err(|error| say(&error))?.is_dir() {
            true if file == Path::new("/") => RootForm::Host,
            true if archive::is_image(&file).map_err(|error| say(&error))? => {
                RootForm::ImageDirectory
            }
            true if is_ours_in(&file) => {
                return Err(say(
                    &"it contains the directory for temporary files, and an overlay cannot cover itself: \
                      set TMPDIR to a directory elsewhere, or use a different root",
                ));
            }
            true => RootForm::Directory,
            false => {
                let opened = user_file::open(&file).map_err(|error| say(&error))?;
                match archive::is_squashfs(&opened).map_err(|error| say(&error))? {
                    true => RootForm::Squashfs,
                    false => {
                        check_room(&opened).map_err(|problem| say(&problem))?;
                        RootForm::Tar
                    }
                }
            }
        };
        match form {
            RootForm::Directory => executable_tree(&file, &EXECUTED.split(' ').collect::<Vec<_>>()),
            RootForm::ImageDirectory => executable_tree(&file, &[""]),
            _ => Ok(()),
        }
        .map_err(|error| say(&error))?;
        Ok(RootSource {
            written: written.to_owned(),
            file,
            form,
            digest: OnceCell::new(),
            looked: Cell::default(),
        })
    }

    /// As a person knows it.
    pub fn shown(&self) -> &str {
        &self.written
    }

    pub fn open(&self) -> io::Result<File> {
        user_file::open(&self.file)
    }

    /// SHA-256 of the file. Of a directory, of the paths in it, and each file's kind, mode, owner, size and
    /// time of change: contents would take minutes.
    pub fn digest(&self) -> Result<&str, String> {
        Ok(&self.digested()?.hex)
    }

    fn digested(&self) -> Result<&Digested, String> {
        let digested = self.digest.get_or_init(|| {
            let digested = match self.form {
                RootForm::Host => {
                    Ok(Digested { hex: hex(Sha256::new()), stamp: Default::default() })
                }
                RootForm::Directory | RootForm::ImageDirectory => digest_of_tree(&self.file),
                RootForm::Tar | RootForm::Squashfs => self.digest_of_file(),
            };
            digested.map_err(|error| error.to_string())
        });
        digested.as_ref().map_err(Clone::clone)
    }

    fn digest_of_file(&self) -> io::Result<Digested> {
        let mut file = self.open()?;
        let stamp = stamp(&file.metadata()?);
        let mut hash = Sha256::new();
        let mut chunk = vec![0; 1 << 20];
        loop {
            if has_come() {
                return Err(io::Error::other("it was interrupted"));
            }
            match file.read(&mut chunk)? {
                0 => return Ok(Digested { hex: hex(hash), stamp }),
                length => hash.update(&chunk[..length]),
            }
        }
    }

    /// Checks that it is still as it was when it was digested.
    pub fn check_unchanged(&self) -> Result<(), String> {
        let began = Instant::now();
        let was = self.digested()?;
        let is_as_it_was = match self.form {
            RootForm::Host => true,
            RootForm::Directory | RootForm::ImageDirectory => {
                digest_of_tree(&self.file).map_err(|error| error.to_string())?.hex == was.hex
            }
            RootForm::Tar | RootForm::Squashfs => {
                stamp(&fs::metadata(&self.file).map_err(|error| error.to_string())?) == was.stamp
            }
        };
        self.looked.set(Some((Instant::now(), began.elapsed())));
        match is_as_it_was {
            true => Ok(()),
            false => Err("something else changed its content or its timestamps".into()),
        }
    }

    /// Checks that it is unchanged, if it is in use and the last check was long ago.
    pub fn check_now_and_then(&self) -> Result<(), String> {
        let is_due = self
            .looked
            .get()
            .is_none_or(|(when, took)| when.elapsed() > LOOK_AGAIN.max(took * LOOKS_TAKE));
        if self.is_in_use() && is_due { self.check_unchanged() } else { Ok(()) }
    }

    /// Checks that it is unchanged, if it was in use.
    pub fn check_at_the_end(&self) -> Result<(), String> {
        if self.is_in_use() { self.check_unchanged() } else { Ok(()) }
    }

    /// Returns true if the source itself is in use. An unpacked root is a copy of ours.
    fn is_in_use(&self) -> bool {
        matches!(self.form, RootForm::Directory | RootForm::Squashfs)
    }

    /// Where other file systems are mounted in a directory. An overlay takes none of them along.
    pub fn mounted_in_it(&self) -> Vec<PathBuf> {
        let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
        let mut found = match self.form {
            RootForm::Host | RootForm::Directory => mounts_below(&self.file, &mounts),
            _ => Vec::new(),
        };
        found.dedup();
        found
    }

    /// Where file systems with programs of this system are mounted, beside that of the root.
    pub fn programs_apart() -> io::Result<Vec<PathBuf>> {
        let mounts = mounts_below(Path::new("/"), &fs::read("/proc/self/mountinfo")?);
        Ok(mounts.into_iter().filter(|path| has_programs(path) && path.is_dir()).collect())
    }
}

/// Returns true if programs, their libraries or settings are below this path on most systems.
fn has_programs(path: &Path) -> bool {
    let first = path.iter().nth(1).and_then(OsStr::to_str).unwrap_or_default();
    ["bin", "etc", "gnu", "nix", "opt", "sbin", "usr"].contains(&first) || first.starts_with("lib")
}

/// Lists the mounts below a directory, except the mounts that every root gets.
///
/// `mounts` has the form of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
fn mounts_below(directory: &Path, mounts: &[u8]) -> Vec<PathBuf> {
    let points = mounts.split(|byte| *byte == b'\n').filter_map(|line| {
        let field = line.split(|byte| *byte == b' ').nth(4)?;
        Some(PathBuf::from(OsString::from_vec(unescaped(field))))
    });
    let is_left_out = |point: &PathBuf| {
        let inside = point.strip_prefix(directory).unwrap_or(Path::new(""));
        let first = inside.components().next();
        first.is_some_and(|first| {
            !["proc", "sys", "dev"].map(OsStr::new).contains(&first.as_os_str())
        })
    };
    let mut points: Vec<PathBuf> = points.filter(is_left_out).collect();
    points.sort();
    points
}

/// Refuses an archive that is larger than the room for unpacking it.
///
/// It does not become smaller when it is unpacked, and reading it may take hours.
fn check_room(archive: &File) -> Result<(), String> {
    let room = Room::of(&std::env::temp_dir()).map_err(|error| error.to_string())?;
    let length = archive.metadata().map_err(|error| error.to_string())?.len();
    if length <= room.bytes {
        return Ok(());
    }
    Err(format!(
        "it has {} MiB, but there is room to unpack only {} MiB: set TMPDIR to a different directory",
        length >> 20,
        room.bytes >> 20
    ))
}

/// Returns true if the scratch directory will be inside this directory.
fn is_ours_in(directory: &Path) -> bool {
    let temporary = std::env::temp_dir();
    temporary.canonicalize().unwrap_or(temporary).starts_with(directory)
}

fn stamp(metadata: &Metadata) -> (u64, u64, u64, i64, i64, i64) {
    let [modified, changed] = [metadata.mtime_nsec(), metadata.ctime_nsec()];
    (metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime(), modified, changed)
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Digests everything in a directory that is on the directory's own file system.
fn digest_of_tree(directory: &Path) -> io::Result<Digested> {
    let whole = fs::metadata(directory)?;
    let (mut hash, mut files) = (Sha256::new(), 0);
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let mut paths: Vec<PathBuf> = fs::read_dir(&directory)
            .map_err(|error| io::Error::other(format!("{}: {error}", directory.display())))?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()?;
        paths.sort();
        for path in paths {
            let metadata = fs::symlink_metadata(&path)?;
            files += 1;
            if files > MOST_FILES {
                return Err(io::Error::other(format!("it has more than {MOST_FILES} files")));
            }
            hash.update(path.as_os_str().as_bytes());
            let numbers = [
                u64::from(metadata.mode()),
                u64::from(metadata.uid()),
                u64::from(metadata.gid()),
                if metadata.is_dir() { 0 } else { metadata.len() },
                if metadata.is_dir() { 0 } else { metadata.mtime().cast_unsigned() },
                if metadata.is_dir() { 0 } else { metadata.mtime_nsec().cast_unsigned() },
            ];
            numbers.iter().for_each(|number| hash.update(number.to_le_bytes()));
            if metadata.is_symlink() {
                hash.update(fs::read_link(&path)?.as_os_str().as_bytes());
            }
            if metadata.is_dir() && metadata.dev() == whole.dev() {
                open.push(path);
            }
        }
    }
    Ok(Digested { hex: hex(hash), stamp: stamp(&whole) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mounted_in_a_directory_is_told_but_for_what_every_root_has() {
        let line =
            |point: &str| format!("36 35 98:0 / {point} rw,noatime master:1 - ext4 /dev/x rw\n");
        let points = [
            "/",
            "/srv/r",
            "/srv/r/usr",
            "/srv/r/a\\040b",
            "/srv/root2",
            "/srv/r/proc",
            "/srv/r/dev/pts",
        ];
        let text: String = points.into_iter().map(line).collect();
        let found = mounts_below(Path::new("/srv/r"), text.as_bytes());
        assert_eq!(found, ["/srv/r/a b", "/srv/r/usr"].map(PathBuf::from));
        let with_programs = ["/usr", "/usr/share", "/lib64", "/opt"];
        assert!(with_programs.iter().all(|path| has_programs(Path::new(path))));
        assert!(
            !["/", "/home", "/mnt/usr", "/boot"].iter().any(|path| has_programs(Path::new(path)))
        );
    }

    #[test]
    fn an_archive_that_no_room_is_left_for_is_not_read() {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = home.path().join("sparse.tar");
        File::create(&path).unwrap().set_len(1 << 42).unwrap();
        let refused = RootSource::look(path.to_str().unwrap()).err().unwrap();
        assert!(refused.contains("it has 4194304 MiB, but there is room to unpack"), "{refused}");
    }

    #[test]
    fn a_signal_ends_the_reading_of_a_large_archive() {
        let own = std::env::current_exe().unwrap();
        let name = "rootfs::source::tests::read_an_archive_until_a_signal_comes";
        let done = std::process::Command::new(own).args(["--exact", name, "--ignored"]).output();
        let said = String::from_utf8(done.unwrap().stdout).unwrap();
        assert!(said.contains("1 passed; 0 failed"), "{said}");
    }

    #[test]
    #[ignore = "another test runs it, as a signal is the whole process's"]
    fn read_an_archive_until_a_signal_comes() {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = home.path().join("sparse.tar");
        File::create(&path).unwrap().set_len(1 << 30).unwrap();
        let source = RootSource::look(path.to_str().unwrap()).unwrap();
        let interrupted = weigh_host::interruption::listen_for_signals().unwrap();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)
            .unwrap();
        while !interrupted.load(std::sync::atomic::Ordering::Relaxed) {
            std::thread::yield_now();
        }
        assert_eq!(source.digest(), Err("it was interrupted".into()));
    }

    #[test]
    fn a_directory_that_is_changed_is_noticed() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::write(directory.path().join("file"), "one").unwrap();
        let source = RootSource::look(&directory.path().to_string_lossy()).unwrap();
        assert_eq!(source.check_unchanged(), Ok(()));
        fs::write(directory.path().join("file"), "three").unwrap();
        assert_eq!(source.check_now_and_then(), Ok(()), "it was looked at a moment ago");
        assert!(source.check_unchanged().unwrap_err().contains("something else changed"));
    }
}
