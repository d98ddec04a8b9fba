//! Recognises a file by its first bytes, and reads a compressed file as its content.
//!
//! The system's own programs unpack all formats except gzip.
//! They know more about their formats than a library of ours needs to.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::MultiGzDecoder;
use trust::program;
use trust::start::{self, Inherited};

use super::ArchiveError;
use weigh_host::said::{KEPT_BYTES, Keep, Said};

const GZIP: &[u8] = b"\x1f\x8b";
const SQUASHFS: &[u8] = b"hsqs";
/// How a format begins, and the program that unpacks it.
const BY_PROGRAM: [(&[u8], &str); 3] =
    [(b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2")];

pub fn is_squashfs(file: &File) -> io::Result<bool> {
    Ok(begins(file)?.starts_with(SQUASHFS))
}

/// The tar archive that this file is, whatever compressed it.
pub fn open_tar(file: File) -> Result<Box<dyn Read>, ArchiveError> {
    let begins = begins(&file)?;
    if begins.starts_with(GZIP) {
        return Ok(Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, file))));
    }
    match BY_PROGRAM.into_iter().find(|(magic, _)| begins.starts_with(magic)) {
        None => Ok(Box::new(file)),
        Some((_, name)) => Ok(Box::new(ByProgram::start(name, file)?)),
    }
}

fn begins(file: &File) -> io::Result<[u8; 8]> {
    let mut bytes = [0; 8];
    match file.read_exact_at(&mut bytes, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok([0; 8]),
        other => other.map(|()| bytes),
    }
}

/// A program that reads the file and writes what it holds.
struct ByProgram {
    name: &'static str,
    child: Child,
    complaints: Arc<Mutex<Said>>,
}

impl ByProgram {
    fn start(name: &'static str, file: File) -> Result<ByProgram, ArchiveError> {
        let program = program::find(name).map_err(ArchiveError::Unusable)?.ok_or_else(|| {
            ArchiveError::Unusable(format!(
                "it is compressed by {name}, which is not installed: install {name}"
            ))
        })?;
        let mut command = start::command(program, Inherited::Fixed);
        let command = command.args(["-d", "-c"]).stdin(file).stdout(Stdio::piped());
        let (complaints, stderr) = Said::pipe(Keep::Last(KEPT_BYTES))?;
        // One that is not heard waits in write(2), and unpacks no more.
        let complaints = complaints.heard_by_a_thread()?;
        let child = command.stderr(stderr).process_group(0).spawn()?;
        Ok(ByProgram { name, child, complaints })
    }

    /// At the end of its output: whether all of it was good.
    fn finish(&mut self) -> io::Result<()> {
        let status = self.child.wait()?;
        if status.success() {
            return Ok(());
        }
        let words = self.complaints.lock().unwrap_or_else(PoisonError::into_inner).last_words();
        let words =
            words.unwrap_or_else(|| format!("{status}: the archive is damaged or truncated"));
        Err(io::Error::other(format!("{}: {words}", self.name)))
    }
}

impl Read for ByProgram {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(stdout) = &mut self.child.stdout else { return Ok(0) };
        let length = stdout.read(buffer)?;
        if length == 0 && !buffer.is_empty() {
            self.child.stdout = None;
            self.finish()?;
        }
        Ok(length)
    }
}

impl Drop for ByProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
