//! What a user names as a root file system: what it is, and that it stays as it is.

use std::cell::OnceCell;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::archive::{self, MOST_FILES};
use trust::path::trusted_also;
use trust::user_file;

/// In what form it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootForm {
    Directory,
    /// Of an image: an OCI layout, or an unpacked `docker save` archive.
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
}

#[derive(Clone)]
struct Digested {
    hex: String,
    /// By which a file is known to be as it was.
    stamp: (u64, u64, u64, i64, i64, i64),
}

impl RootSource {
    /// # Errors
    /// A sentence, where there is no such thing, or root may not use it.
    pub fn look(written: &str) -> Result<RootSource, String> {
        let say = |error: &dyn std::fmt::Display| format!("rootfs:{written}: {error}");
        let file = trust(Path::new(written)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                say(&"there is no such directory or archive (a path is relative to the current directory)")
            }
            _ => say(&error),
        })?;
        let form = match fs::metadata(&file).map_err(|error| say(&error))?.is_dir() {
            true if archive::is_image(&file).map_err(|error| say(&error))? => {
                RootForm::ImageDirectory
            }
            true if is_ours_in(&file) => {
                return Err(say(
                    &"the directory for temporary files lies in it, and no overlay can lie over \
                                 itself: set TMPDIR to a directory elsewhere, or name another root",
                ));
            }
            true => RootForm::Directory,
            false => {
                let opened = user_file::open(&file).map_err(|error| say(&error))?;
                match archive::is_squashfs(&opened).map_err(|error| say(&error))? {
                    true => RootForm::Squashfs,
                    false => RootForm::Tar,
                }
            }
        };
        Ok(RootSource { written: written.to_owned(), file, form, digest: OnceCell::new() })
    }

    /// As a person knows it.
    pub fn shown(&self) -> &str {
        &self.written
    }

    /// Opens the file that it is.
    ///
    /// # Errors
    /// As `open(2)`.
    pub fn open(&self) -> io::Result<File> {
        user_file::open(&self.file)
    }

    /// SHA-256 of the file. Of a directory, of the paths in it, and each file's kind, mode, owner, size and
    /// time of change: contents would take minutes.
    ///
    /// # Errors
    /// A sentence, where it cannot be read.
    pub fn digest(&self) -> Result<&str, String> {
        Ok(&self.digested()?.hex)
    }

    fn digested(&self) -> Result<&Digested, String> {
        let digested = self.digest.get_or_init(|| {
            let digested = match self.form {
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
            match file.read(&mut chunk)? {
                0 => return Ok(Digested { hex: hex(hash), stamp }),
                length => hash.update(&chunk[..length]),
            }
        }
    }

    /// Whether the file is the one that was digested.
    ///
    /// # Errors
    /// A sentence, where it is not.
    pub fn check_unchanged(&self) -> Result<(), String> {
        let now = stamp(&fs::metadata(&self.file).map_err(|error| error.to_string())?);
        let is_directory = matches!(self.form, RootForm::Directory | RootForm::ImageDirectory);
        match is_directory || self.digested()?.stamp == now {
            true => Ok(()),
            false => Err("it was changed while it was unpacked".into()),
        }
    }
}

/// What root executes, only root and who called `sudo` may have been able to change.
fn trust(path: &Path) -> io::Result<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        return path.canonicalize();
    }
    let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    trusted_also(path, caller)
}

/// Whether the scratch directory is going to be in it.
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

/// Of all in a directory that is on its file system.
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
