//! In which root file system a worker executes, for the proof. The worker looks itself, just before it
//! executes: afterwards it may have ended by the time that the launcher looks, and then it has no root any
//! more. Executing a program changes none.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::setup::Act;
use crate::stamp::map_shared;

/// A file that lies above each root of ours, with its number in hexadecimal.
pub const MARK: &str = ".weigh-root";
/// Name of the observation of a worker's root; its value is empty if the root is not ours.
pub const SEEN: &str = "root";

/// Memory that the launcher shares with its workers, since it took its set-up.
static SHARED: OnceLock<&'static Seen> = OnceLock::new();

struct Seen {
    worker: AtomicU32,
    /// The root's number, or 0.
    root: AtomicU64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RootSeen {}

impl Act for RootSeen {
    fn in_launcher(&self) -> Result<(), String> {
        let page = map_shared(size_of::<Seen>()).map_err(|error| error.to_string())?;
        // SAFETY: the mapping is aligned, holds zeros, which atomic numbers may be, and is never unmapped.
        SHARED.get_or_init(|| unsafe { &*page.cast::<Seen>() });
        Ok(())
    }

    fn in_worker(&self) -> io::Result<()> {
        let Some(seen) = SHARED.get() else { return Ok(()) };
        seen.root.store(mark_in(Path::new("/"))?, Ordering::Relaxed);
        seen.worker.store(std::process::id(), Ordering::Release);
        Ok(())
    }

    fn look(&self, worker: u32, found: &mut BTreeMap<String, String>) -> io::Result<()> {
        let said = SHARED.get().filter(|seen| seen.worker.load(Ordering::Acquire) == worker);
        let root = match said {
            Some(seen) => seen.root.load(Ordering::Relaxed),
            // A member, which still runs.
            None => {
                let root = PathBuf::from(format!("/proc/{worker}/root"));
                fs::metadata(&root)?;
                mark_in(&root)?
            }
        };
        let root = if root == 0 { String::new() } else { format!("{root:016x}") };
        found.insert(SEEN.into(), root);
        Ok(())
    }
}

/// The number of the root that is there, or 0.
fn mark_in(root: &Path) -> io::Result<u64> {
    match fs::read_to_string(root.join(MARK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        mark => u64::from_str_radix(mark?.trim(), 16).map_err(io::Error::other),
    }
}
