//! Reading the small files in which the kernel and the distribution tell about themselves. The root may be
//! one that somebody else made: its files are read as those that a user names.

use std::fs;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::{Path, PathBuf};

use trust::user_file;

/// More than the largest of them has, a C library.
const MOST_BYTES: u64 = 16 << 20;

/// A root directory: `/`, or a made-up one in tests.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    root: &'a Path,
}

impl<'a> Source<'a> {
    pub(super) fn new(root: &'a Path) -> Source<'a> {
        Source { root }
    }

    /// The path of an absolute `file` under this root.
    pub(super) fn path(self, file: &str) -> PathBuf {
        self.root.join(file.trim_start_matches('/'))
    }

    /// The file's content; `None` when it cannot be read, has no end, or is too large for what it is.
    pub(super) fn bytes(self, file: &str) -> Option<Vec<u8>> {
        user_file::read(&self.path(file), MOST_BYTES).ok()
    }

    /// The file's text without white space at its ends; `None` when it cannot be read or is empty.
    pub(super) fn text(self, file: &str) -> Option<String> {
        let bytes = self.bytes(file)?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_string())
    }

    /// The file's text as [`Source::text`], `None` where there is no such file.
    pub(super) fn text_if_any(self, file: &str) -> Result<Option<String>, String> {
        match user_file::read_text(&self.path(file), MOST_BYTES) {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
            Err(error) => Err(format!("{file}: {error}")),
        }
    }

    /// The value after `key` and `separator`, in the first such line of the file.
    pub(super) fn value(self, file: &str, key: &str, separator: char) -> Option<String> {
        self.text(file)?.lines().find_map(|line| {
            let (name, value) = line.split_once(separator)?;
            (name.trim() == key).then(|| value.trim().to_string())
        })
    }

    /// The names in a directory, in order.
    pub(super) fn names(self, directory: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(directory)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    /// A root with the files given, for as long as the result lives.
    pub(in crate::machine) fn root_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = Source::new(root.path()).path(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn what_is_absent_or_empty_is_none() {
        let root = root_with(&[("/proc/empty", "\n"), ("/proc/full", " yes \n")]);
        let source = Source::new(root.path());
        assert_eq!(source.text("/proc/absent"), None);
        assert_eq!(source.text("/proc/empty"), None);
        assert_eq!(source.text("/proc/full").as_deref(), Some("yes"));
        assert!(source.names("/absent").is_empty());
        assert_eq!(source.names("/proc"), ["empty", "full"]);
    }

    #[test]
    fn a_file_that_never_begins_or_never_ends_is_none() {
        let root = root_with(&[("/etc/name", "x")]);
        let fifo = root.path().join("etc/fifo");
        mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
        symlink("/dev/zero", root.path().join("etc/endless")).unwrap();
        let large = fs::File::create(root.path().join("etc/large")).unwrap();
        large.set_len(MOST_BYTES + 1).unwrap();
        for file in ["/etc/fifo", "/etc/endless", "/etc/large"] {
            assert_eq!(Source::new(root.path()).text(file), None, "{file}");
        }
    }

    #[test]
    fn the_first_value_of_a_key_is_found() {
        let root = root_with(&[("/proc/cpuinfo", "processor\t: 0\nflags\t\t: a b\nflags : c\n")]);
        let source = Source::new(root.path());
        assert_eq!(source.value("/proc/cpuinfo", "flags", ':').as_deref(), Some("a b"));
        assert_eq!(source.value("/proc/cpuinfo", "flag", ':'), None);
    }
}
