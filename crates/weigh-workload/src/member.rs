//! A process that stays while samples come and go: how it is started, and what it is then.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use trust::start::Inherited;

use super::listening::is_free;

/// A process that stays: a server that samples need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartServer {
    /// By which it is frozen, thawed and lowered.
    pub name: String,
    pub argv: Vec<String>,
    /// Added to its other variables: see `is_users_own`.
    pub environment: Vec<(String, String)>,
    /// True for a command or workload of the user, which gets all of the user's environment.
    ///
    /// A server gets a fixed environment, because programs that run as its user can read it.
    pub is_users_own: bool,
    pub directory: PathBuf,
    /// Where what it prints is kept.
    pub log: PathBuf,
    pub ready: Readiness,
    /// It is given up if it is not ready by then.
    pub timeout_ms: u64,
    /// True if its data are worthless: it is killed at once, without being asked to end.
    pub is_disposable: bool,
    /// True if workloads send requests to it, so that its CPU time is part of theirs.
    pub is_asked: bool,
    /// As whom it runs, in place of its launcher's user: a user and a group of this number.
    pub user: Option<u32>,
    /// True if it is the first process of a PID namespace.
    ///
    /// All that it starts then ends with it, even frozen processes.
    pub has_own_pids: bool,
    /// File in which it counts or times what it does, as a `u64` of its machine.
    pub progress: Option<PathBuf>,
    /// True if it runs on the client's machine; then `weigh` makes its directory there.
    ///
    /// Its paths are below a scratch directory of that machine.
    pub is_away: bool,
}

impl StartServer {
    /// Which variables it gets besides its own.
    pub fn inherited(&self) -> Inherited {
        if self.is_users_own { Inherited::Callers } else { Inherited::Fixed }
    }

    /// A copy that is given up after `limit`, if that is sooner.
    pub fn within(&self, limit: Option<Duration>) -> StartServer {
        let limit_ms = limit.and_then(|limit| u64::try_from(limit.as_millis()).ok());
        let timeout_ms = limit_ms.map_or(self.timeout_ms, |limit| limit.min(self.timeout_ms));
        StartServer { timeout_ms, ..self.clone() }
    }

    /// Returns true if another process has the port that it should listen at.
    pub fn is_kept_out(&self) -> bool {
        matches!(self.ready, Readiness::AcceptsAt(address) if !is_free(address))
    }
}

/// How one knows that a member is ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    /// There is this file.
    Exists(PathBuf),
    /// It accepts connections to this Unix socket.
    Accepts(PathBuf),
    /// It accepts connections to this port of this address.
    AcceptsAt(SocketAddrV4),
    /// It has printed this.
    Prints(String),
}

/// A member as it is now. Another start is another process, whatever its number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberSeen {
    pub name: String,
    pub pid: u32,
    /// In clock ticks since boot.
    pub start: i64,
    /// True if it and all that it started are frozen.
    pub is_frozen: bool,
    /// How long it was on a CPU since its start, of one that is disposable with what it started and still
    /// runs; `None` where the kernel does not tell (CONFIG_SCHED_INFO).
    pub cpu_ns: Option<u64>,
    /// The number in its [`StartServer::progress`].
    pub progress: Option<u64>,
    /// Its `/proc/PID/status`.
    pub status: String,
    /// Observations by the steps of the set-up, by name.
    pub seen: BTreeMap<String, String>,
}

/// A member as it was before a sample and after it: the same process.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberDuring {
    pub before: MemberSeen,
    pub after: MemberSeen,
    /// True if it ran on the client's machine, where no treatment is.
    pub is_away: bool,
}

impl MemberDuring {
    /// How long it was on a CPU meanwhile; 0 too where processes that it had started have ended.
    pub fn cpu_ns(&self) -> Option<u64> {
        Some(self.after.cpu_ns?.saturating_sub(self.before.cpu_ns?))
    }
}
