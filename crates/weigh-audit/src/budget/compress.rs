//! Size of the samples' log under gzip, found by compressing the log.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use weigh_model::result::budget::Compressed;

/// auditd's files have 8 MiB by default, and a window of gzip sees 32 KiB of them.
const MOST_BYTES: u64 = 8 << 20;

/// Compresses the log below the scratch directory as logrotate does, at gzip's default level. `None`
/// where the log is somebody else's, or nothing is in it.
pub fn compress_log(scratch: &Path) -> io::Result<Option<Compressed>> {
    let Some(log) = find_log(scratch)? else { return Ok(None) };
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST_BYTES)))?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let log_bytes = io::copy(&mut file.take(MOST_BYTES), &mut encoder)?;
    encoder.flush()?;
    let gzip_bytes = encoder.finish()?.len() as u64;
    Ok((log_bytes > 0).then_some(Compressed { log_bytes, gzip_bytes }))
}

/// The fullest of the sink's logs: one that was just rotated is nearly empty.
fn find_log(scratch: &Path) -> io::Result<Option<PathBuf>> {
    let mut directories = vec![scratch.to_owned()];
    for entry in std::fs::read_dir(scratch)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("auditd-") {
            directories.push(entry.path());
        }
    }
    let logs = directories.iter().flat_map(|directory| {
        ["audit.log", "audit.1", "audit.log.1"].map(|name| directory.join(name))
    });
    let size = |log: &PathBuf| std::fs::metadata(log).map_or(0, |metadata| metadata.len());
    Ok(logs.filter(|log| log.is_file()).max_by_key(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_really_compressed() {
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(compress_log(scratch.path()).unwrap(), None);
        let line = "type=SYSCALL msg=audit(1700000000.123:4567): arch=c000003e syscall=110\n";
        std::fs::write(scratch.path().join("audit.log"), line.repeat(1000)).unwrap();
        let compressed = compress_log(scratch.path()).unwrap().unwrap();
        assert_eq!(compressed.log_bytes, 1000 * line.len() as u64);
        assert!(compressed.gzip_bytes > 100 && compressed.ratio() < 0.05, "{compressed:?}");
        let own = scratch.path().join("auditd-x");
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join("audit.log"), line.repeat(2000)).unwrap();
        assert_eq!(find_log(scratch.path()).unwrap(), Some(own.join("audit.log")));
    }
}
