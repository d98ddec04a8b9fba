//! Who is treated where workloads ask a server: that, the client, or both. A client that is exempt is a
//! process of ours with a launcher of its own, which has nothing of the treatment: what the arm's worker was
//! to do it hands over to that, and waits (workloads/driver/client.c). So all that is proved of a worker is
//! proved as ever.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::workload::launcher::{Launcher, LauncherError};
use crate::workload::member::{MemberSeen, Raise, Readiness};
use crate::workload::place::LaunchPlace;
use crate::workload::setup::Setup;
use crate::workload::setup::kind::login_uid::{LOGIN_UID_SEEN, LoginUid};

const NAME: &str = "client";
/// Where a worker finds it.
const VARIABLE: &str = "WEIGH_CLIENT";
const STARTS_WITHIN_MS: u64 = 10_000;

/// Who has the treatment of an arm, of a server and of who asks it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum WhoIsTreated {
    /// The servers; who asks them is exempt
    Server,
    /// Who asks them; the servers are exempt
    Client,
    /// All of them
    // As it was before there was a choice.
    #[default]
    Both,
}

impl WhoIsTreated {
    /// For the report; nothing where all are.
    pub fn sentence(self) -> Option<&'static str> {
        match self {
            WhoIsTreated::Server => Some(
                "The servers are treated. The client that asks them is exempt: it is a process without the \
                 treatment, on the same machine.",
            ),
            WhoIsTreated::Client => Some(
                "The client is treated. The servers that it asks are exempt: they are processes without the \
                 treatment, on the same machine.",
            ),
            WhoIsTreated::Both => None,
        }
    }
}

/// An exempt client that waits for orders.
pub struct ExemptClient {
    launcher: Launcher,
    started: MemberSeen,
    login_uid: Option<String>,
    directory: PathBuf,
}

impl ExemptClient {
    /// # Errors
    /// Where it does not start.
    pub fn start(
        place: &LaunchPlace,
        setup: &Setup,
        interrupted: &AtomicBool,
    ) -> Result<ExemptClient, LauncherError> {
        let directory = place.scratch.join(format!("{NAME}-{:08x}", rand::random::<u32>()));
        let cannot =
            |error: io::Error| LauncherError::Refused(format!("{}: {error}", directory.display()));
        DirBuilder::new().mode(0o700).create(&directory).map_err(cannot)?;
        let socket = directory.join("s");
        let words = [place.executable.path(), NAME.as_ref(), &*socket];
        let raise = Raise {
            name: NAME.into(),
            argv: words.iter().map(|word| word.display().to_string()).collect(),
            environment: Vec::new(),
            directory: place.work_directory.clone(),
            log: directory.join("log"),
            ready: Readiness::Exists(socket),
            timeout_ms: STARTS_WITHIN_MS,
            is_disposable: true,
            is_asked: false,
            user: None,
            has_own_pids: false,
        };
        let mut launcher = place.start_launcher(setup, interrupted)?;
        let started = launcher.raise(&raise, interrupted)?;
        let login_uid = setup.get::<LoginUid>().map(|uid| uid.workers.to_string());
        Ok(ExemptClient { launcher, started, login_uid, directory })
    }

    /// What a worker is told that is to leave its work to it.
    pub fn told(&self) -> (String, String) {
        (VARIABLE.into(), self.directory.join("s").display().to_string())
    }

    /// That it is the process that was started, without the login uid of its arm.
    ///
    /// # Errors
    /// A sentence that says what it is.
    pub fn hold(&mut self, interrupted: &AtomicBool) -> Result<(), LauncherError> {
        let seen = self.launcher.look(NAME, interrupted)?;
        if (seen.pid, seen.start) != (self.started.pid, self.started.start) {
            return Err(LauncherError::Refused(
                "the client was restarted during the sample".into(),
            ));
        }
        match &self.login_uid {
            Some(uid) if seen.seen.get(LOGIN_UID_SEEN) != Some(uid) => Err(LauncherError::Refused(
                "the client is not exempt: it has another login uid".into(),
            )),
            _ => Ok(()),
        }
    }
}

impl Drop for ExemptClient {
    fn drop(&mut self) {
        // The rest goes with its launcher, and with the scratch directory.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
