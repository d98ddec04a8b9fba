//! Reading a file that a user named. What waits for a writer (a pipe) or has no end (a device) is refused
//! before it is read: otherwise weigh would hang, or take all memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::owner::open_to_read;

/// All bytes of a regular file, of which there may be `most_bytes`.
///
/// # Errors
/// As `open(2)` and `read(2)`; and a phrase, where it is no regular file, or a larger one.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One that is being written may grow after its size was looked at.
    open(path)?.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(io::Error::other(format!(
            "it is larger than {}, the maximum",
            size(most_bytes)
        )));
    }
    Ok(bytes)
}

/// Reads a text file of at most `most_bytes`.
///
/// # Errors
/// As [`read`]; and a phrase with the line where it is not UTF-8.
pub fn read_text(path: &Path, most_bytes: u64) -> io::Result<String> {
    String::from_utf8(read(path, most_bytes)?).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        io::Error::other(format!("line {line} is not text (UTF-8)"))
    })
}

/// Opens without waiting, as the user whose it is, and looks at what was opened: the name may stand for
/// something else a moment later.
///
/// # Errors
/// As `open(2)`; and a phrase, where it is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let file = open_to_read(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let what = if kind.is_dir() { "it is a directory" } else { "it is not a regular file" };
    Err(io::Error::other(format!("{what}; save the content to a regular file first")))
}

fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};

    fn problem(path: &Path) -> String {
        read(path, 8).unwrap_err().to_string()
    }

    #[test]
    fn what_never_ends_or_never_begins_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
        for path in [fifo.as_path(), Path::new("/dev/zero"), Path::new("/dev/null")] {
            assert!(problem(path).contains("not a regular file; save"), "{}", path.display());
        }
        assert!(problem(directory.path()).contains("a directory"));
        let missing = read(&directory.path().join("missing"), 8).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_read_up_to_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "12345678").unwrap();
        assert_eq!(read(&path, 8).unwrap(), b"12345678");
        std::fs::write(&path, "123456789").unwrap();
        assert_eq!(problem(&path), "it is larger than 8 bytes, the maximum");
        assert_eq!(size(64 << 20), "64 MiB");
        std::fs::write(&path, b"a\nb\n\xff").unwrap();
        assert_eq!(read_text(&path, 8).unwrap_err().to_string(), "line 3 is not text (UTF-8)");
    }

    #[test]
    fn a_link_of_another_user_shows_root_no_file_that_he_cannot_read() {
        if !needs::root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let [secret, link, own] = ["secret", "link", "own"].map(|it| directory.path().join(it));
        std::fs::write(&secret, "secret").unwrap();
        std::fs::write(&own, "own").unwrap();
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(1002), Some(1002)).unwrap();
        std::os::unix::fs::chown(&own, Some(1002), Some(1002)).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode;
        std::fs::set_permissions(directory.path(), mode(0o755)).unwrap();
        std::fs::set_permissions(&secret, mode(0o600)).unwrap();
        let problem = problem(&link);
        assert!(problem.contains("(uid 1002) has no permission"), "{problem}");
        assert_eq!(read(&own, 8).unwrap(), b"own");
        assert_eq!(read(&secret, 8).unwrap(), b"secret");
    }
}
