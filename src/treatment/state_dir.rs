//! Where the journals are: what must be undone has to be found again, also from another shell.

use std::path::PathBuf;
use std::{env, fs, io};

/// `$XDG_STATE_HOME/weighbridge`, else `/var/lib/weighbridge` for root and
/// `~/.local/state/weighbridge` for others; created for its owner only.
///
/// # Errors
/// Where it cannot be created.
pub fn path() -> io::Result<PathBuf> {
    let directory = match env::var_os("XDG_STATE_HOME").filter(|value| !value.is_empty()) {
        Some(home) => PathBuf::from(home).join("weighbridge"),
        None if rustix::process::geteuid().is_root() => PathBuf::from("/var/lib/weighbridge"),
        None => {
            let home = env::var_os("HOME").ok_or_else(|| {
                io::Error::other("HOME is not set; set it or XDG_STATE_HOME to a directory")
            })?;
            PathBuf::from(home).join(".local/state/weighbridge")
        }
    };
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    Ok(directory)
}
