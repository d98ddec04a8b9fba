//! Digests of files that an experiment is made of.

use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use trust::user_file;
use weigh_host::interruption;

/// The SHA-256 of a file, in hexadecimal.
///
/// # Errors
/// Where it cannot be read, or is no file; `Interrupted` where the user gives up.
// A program may be larger than memory should hold, and what is named as one may be a pipe.
pub fn digest_of_file(path: &Path) -> io::Result<String> {
    let mut file = user_file::open(path)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        if interruption::has_come() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match file.read(&mut chunk)? {
            0 => return Ok(hex(&hash.finalize())),
            length => hash.update(&chunk[..length]),
        }
    }
}

/// The SHA-256 of bytes in memory, in hexadecimal.
pub fn digest_of_bytes(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

/// In hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
