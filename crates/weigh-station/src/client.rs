//! Who is treated where workloads ask a server: that, the client, or both. A client that is exempt has a
//! launcher of its own, here or on another machine, which has nothing of the treatment. What the arm's worker
//! was to do, that launcher does, while the worker waits (workloads/driver/delegate.c): so all that is proved
//! of a worker is proved as ever.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use weigh_host::chance;
use weigh_host::lines::{LinesError, PROMPTLY};
use weigh_model::printable::brief;
use weigh_workload::launcher::{Job, Launched, Launcher, LauncherError};
use weigh_workload::place::LaunchPlace;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::login_uid::{LOGIN_UID_SEEN, LoginUid};
use weigh_workload::setup::kind::whereabouts::Whereabouts;

/// Where a worker finds who does its work.
const VARIABLE: &str = "WEIGH_CLIENT";
/// So often it is looked whether the worker has ended without asking.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const SOON: Duration = Duration::from_millis(1);

/// Who has the treatment of an arm, of a server and of who asks it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum WhoIsTreated {
    /// The servers; the clients are exempt
    Server,
    /// The clients, which send the requests; the servers are exempt
    Client,
    /// Servers and clients
    // As it was before there was a choice.
    #[default]
    Both,
}

impl WhoIsTreated {
    /// As it is written on the command line.
    pub fn word(self) -> &'static str {
        match self {
            WhoIsTreated::Server => "server",
            WhoIsTreated::Client => "client",
            WhoIsTreated::Both => "both",
        }
    }

    /// For the report, of clients that are here; nothing where all are treated.
    pub fn sentence(self) -> Option<&'static str> {
        match self {
            WhoIsTreated::Server => Some(
                "The servers are treated. The client is exempt: it is a process without the treatment, on \
                 the same machine.",
            ),
            WhoIsTreated::Client => Some(
                "The client is treated. The servers are exempt: they are processes without the treatment, on \
                 the same machine.",
            ),
            WhoIsTreated::Both => None,
        }
    }
}

pub struct ExemptClient {
    launcher: Launcher,
    place: LaunchPlace,
    setup: Setup,
    listener: UnixListener,
    directory: PathBuf,
}

impl ExemptClient {
    /// `scratch` is a private directory of here, whatever the place is.
    pub fn start(
        scratch: &Path,
        place: &LaunchPlace,
        setup: &Setup,
        interrupted: &AtomicBool,
    ) -> Result<ExemptClient, LauncherError> {
        let directory = scratch.join(format!("client-{:08x}", chance::small()?));
        let cannot =
            |error: io::Error| LauncherError::Refused(format!("{}: {error}", directory.display()));
        DirBuilder::new().mode(0o700).create(&directory).map_err(cannot)?;
        let listener = UnixListener::bind(directory.join("s")).map_err(cannot)?;
        let launcher = place.start_launcher(setup, interrupted)?;
        let (place, setup) = (place.clone(), setup.clone());
        Ok(ExemptClient { launcher, place, setup, listener, directory })
    }

    /// Returns true if the client is on this machine.
    pub fn is_here(&self) -> bool {
        self.place.is_here()
    }

    /// How its processes differ from others.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Has `worker` run a job that leaves its work to the client. What became of both; of the client nothing,
    /// where the worker did not ask.
    pub fn run(
        &mut self,
        worker: &mut Launcher,
        job: &Job,
        interrupted: &AtomicBool,
    ) -> Result<(Launched, Option<Launched>), LauncherError> {
        let deadline = Instant::now() + Duration::from_millis(job.timeout_ms) + PROMPTLY;
        let mut delegating = job.clone();
        let socket = self.directory.join("s").display().to_string();
        delegating.environment.push((VARIABLE.into(), socket));
        worker.begin(&delegating)?;
        let stream = loop {
            if let Some(stream) = self.asked()? {
                break stream;
            }
            if let Some(launched) = worker.end_within(SOON, interrupted)? {
                return Ok((launched, None));
            }
            if Instant::now() > deadline {
                return Err(LinesError::TimedOut.into());
            }
        };
        let launched = self.launcher.run(&self.own(job), interrupted)?;
        // Where its time is over, so is the worker's.
        if !launched.timed_out {
            // A worker that is gone says so itself.
            let _ = answer(stream, &launched);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let worker = worker.end_within(left.max(SOON), interrupted)?;
        Ok((worker.ok_or(LinesError::TimedOut)?, Some(launched)))
    }

    /// The worker, once it asks.
    fn asked(&self) -> io::Result<Option<UnixStream>> {
        let limit = Timespec { tv_sec: 0, tv_nsec: LOOK_AGAIN.as_nanos() as i64 };
        match poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], Some(&limit)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(None),
            Ok(_) => Ok(Some(self.listener.accept()?.0)),
            Err(error) => Err(error.into()),
        }
    }

    /// The job as the client does it, by its own build: that of the arm may be what is weighed.
    fn own(&self, job: &Job) -> Job {
        let mut own = job.clone();
        if let Some(program) = own.argv.first_mut() {
            *program = self.place.executable.path().display().to_string();
        }
        own.directory.clone_from(&self.place.work_directory);
        own
    }

    /// Checks, by the process that did the work, that the client was exempt.
    pub fn hold(&self, launched: &Launched) -> Result<(), LauncherError> {
        let login_uid = self.setup.get::<LoginUid>().map(|uid| uid.workers.to_string());
        match login_uid {
            Some(uid) if launched.seen.get(LOGIN_UID_SEEN) != Some(&uid) => {
                Err(LauncherError::Refused(
                    "the client is not exempt: it has a different login uid".into(),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Checks, by boot, name and connection, that the client ran at the place `there`.
    pub fn hold_place(&self, launched: &Launched, there: &str) -> Result<(), LauncherError> {
        hold_place(&launched.seen, there)
    }
}

/// Checks that a process that shows this ran at the place `there`.
pub fn hold_place(seen: &BTreeMap<String, String>, there: &str) -> Result<(), LauncherError> {
    match seen.get(Whereabouts::SEEN) {
        Some(found) if found == there => Ok(()),
        found => Err(LauncherError::Refused(format!(
            "the client ran at `{}`, but should have run at `{there}`",
            brief(found.map_or("", String::as_str))
        ))),
    }
}

/// Sends what the client's process printed, and its exit status in a shell's form.
fn answer(mut stream: UnixStream, launched: &Launched) -> io::Result<()> {
    stream.set_write_timeout(Some(PROMPTLY))?;
    let status =
        launched.exit_code.unwrap_or_else(|| launched.signal.map_or(1, |signal| 128 + signal));
    let size = |text: &str| u32::try_from(text.len()).unwrap_or(u32::MAX);
    let Launched { stdout, stderr, .. } = launched;
    for number in [status as u32, size(stdout), size(stderr)] {
        stream.write_all(&number.to_ne_bytes())?;
    }
    stream.write_all(stdout.as_bytes())?;
    stream.write_all(stderr.as_bytes())
}

impl Drop for ExemptClient {
    fn drop(&mut self) {
        // The rest goes with its launcher, and with the scratch directory.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
