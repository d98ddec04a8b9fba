//! Files that are no luckier than others.
//!
//! The kernel keeps the watches of files in a table by their inode numbers, and goes through all that it
//! finds in the place of whatever file is used (`kernel/audit.h`, `audit_hash_ino`; `auditfilter.c`).
//! Of one file, a watch costs a hundred instructions or none, by chance. Over a file in each place of the
//! table it costs what it costs on average.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// `AUDIT_INODE_BUCKETS`.
pub const COUNT: u64 = 32;
/// Inode numbers mostly come one after the other; no file system needs nearly as many.
const MOST_TRIES: usize = 1024;

/// The names of [`COUNT`] such files; fewer only where the file system gives no such inode numbers.
///
/// # Errors
/// Where the directory cannot be written to.
pub fn make(directory: &Path) -> io::Result<Vec<CString>> {
    let mut by_bucket: BTreeMap<u64, PathBuf> = BTreeMap::new();
    for number in 0..MOST_TRIES {
        if by_bucket.len() as u64 == COUNT {
            break;
        }
        let file = directory.join(number.to_string());
        std::fs::write(&file, "")?;
        by_bucket.entry(std::fs::metadata(&file)?.ino() % COUNT).or_insert(file);
    }
    let name = |file: PathBuf| Ok(CString::new(file.into_os_string().into_vec())?);
    by_bucket.into_values().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_file_for_every_place_of_the_table() {
        let directory = tempfile::tempdir().unwrap();
        let places = make(directory.path()).unwrap();
        let mut buckets: Vec<u64> = places
            .iter()
            .map(|place| std::fs::metadata(place.to_str().unwrap()).unwrap().ino() % COUNT)
            .collect();
        buckets.sort_unstable();
        assert_eq!(buckets, (0..COUNT).collect::<Vec<_>>());
    }
}
