//! A network namespace that the launcher joins, and with it all that it starts; without root, the user
//! namespace that it belongs to, too. It comes before a step that makes a user namespace of its own.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::setup::Act;
use crate::stamp::map_shared;

/// Memory that the launcher shares with its workers, since it took its set-up.
static SHARED: OnceLock<&'static SeenNetwork> = OnceLock::new();

struct SeenNetwork {
    worker: AtomicU32,
    inode: AtomicU64,
}

/// A network namespace, such as a host of the testbed (`testbed::HostReady` has these).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JoinNetwork {
    pub user_namespace: Option<PathBuf>,
    pub namespace: PathBuf,
    /// The number of the namespace.
    pub inode: u64,
}

impl JoinNetwork {
    /// The number of the namespace in which a worker executed its program.
    pub const SEEN: &str = "network namespace";

    /// Checks by the observations that a worker was in the network namespace.
    pub fn prove(&self, seen: &BTreeMap<String, String>) -> Result<(), String> {
        match seen.get(Self::SEEN) {
            Some(inode) if *inode == self.inode.to_string() => Ok(()),
            Some(inode) => Err(format!(
                "the worker ran in the network namespace {inode}, not in {}",
                self.inode
            )),
            None => Err("nothing shows in which network namespace the worker ran".into()),
        }
    }
}

impl Act for JoinNetwork {
    fn in_launcher(&self) -> Result<(), String> {
        let open = |path: &PathBuf| {
            File::open(path).map_err(|error| {
                format!(
                    "cannot open the network namespace {}: {error}; the process that holds it may have ended",
                    path.display()
                )
            })
        };
        // Both are opened before the first is joined: they are of a process that may not be seen from there.
        let user = self.user_namespace.as_ref().map(open).transpose()?;
        let network = open(&self.namespace)?;
        if let Some(user) = user {
            move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))
                .map_err(|error| format!("cannot join its user namespace: {error}"))?;
        }
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| format!("cannot join the network namespace: {error}"))?;
        let page = map_shared(size_of::<SeenNetwork>()).map_err(|error| error.to_string())?;
        // SAFETY: the mapping is aligned, holds zeros, which atomic numbers may be, and is never unmapped.
        SHARED.get_or_init(|| unsafe { &*page.cast::<SeenNetwork>() });
        Ok(())
    }

    /// The worker looks itself: by the time that its launcher looks it may have ended, and be nowhere.
    fn in_worker(&self) -> io::Result<()> {
        let Some(seen) = SHARED.get() else { return Ok(()) };
        seen.inode.store(inode_of("self")?, Ordering::Relaxed);
        seen.worker.store(std::process::id(), Ordering::Release);
        Ok(())
    }

    fn look(&self, worker: u32, found: &mut BTreeMap<String, String>) -> io::Result<()> {
        let said = SHARED.get().filter(|seen| seen.worker.load(Ordering::Acquire) == worker);
        let inode = match said {
            Some(seen) => seen.inode.load(Ordering::Relaxed),
            // A member, which still runs.
            None => inode_of(&worker.to_string())?,
        };
        found.insert(Self::SEEN.into(), inode.to_string());
        Ok(())
    }
}

fn inode_of(process: &str) -> io::Result<u64> {
    Ok(fs::metadata(Path::new("/proc").join(process).join("ns/net"))?.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_worker_that_was_there_is_proved() {
        let step = JoinNetwork { user_namespace: None, namespace: "/proc/1/fd/3".into(), inode: 7 };
        let seen = |inode: &str| BTreeMap::from([(JoinNetwork::SEEN.to_owned(), inode.to_owned())]);
        assert_eq!(step.prove(&seen("7")), Ok(()));
        assert!(step.prove(&seen("8")).unwrap_err().contains("namespace 8, not in 7"));
        assert!(step.prove(&BTreeMap::new()).is_err());
    }

    #[test]
    fn a_namespace_that_is_gone_is_an_error_that_says_so() {
        let step = JoinNetwork { user_namespace: None, namespace: "/nowhere/ns".into(), inode: 7 };
        assert!(step.in_launcher().unwrap_err().contains("/nowhere/ns"));
    }
}
