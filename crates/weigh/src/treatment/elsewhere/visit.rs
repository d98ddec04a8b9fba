//! A machine that is visited: connected to, and again where the connection was lost.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::ssh::Ssh;
use crate::orphans::wait_until;
use crate::treatment::{Bench, TreatmentError};

/// A connection that is lost so often is none to measure over.
const RECONNECTIONS: usize = 5;
/// A machine that boots takes longer, and is another one then.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(1);

pub struct Visit {
    pub ssh: Ssh,
    pub connection: Option<Connection>,
    /// A private directory of here.
    scratch: PathBuf,
    interrupted: Arc<AtomicBool>,
    connections: usize,
}

impl Visit {
    pub fn to(ssh: Ssh) -> Visit {
        let (scratch, interrupted) = (PathBuf::new(), Arc::default());
        Visit { ssh, connection: None, scratch, interrupted, connections: 0 }
    }

    /// Connects for the first time.
    ///
    /// # Errors
    /// What is in the way, and what to do.
    pub fn begin(&mut self, bench: &Bench) -> Result<(), TreatmentError> {
        if let Some(file) = &bench.place.executable.foreign {
            return Err(TreatmentError::Unavailable(format!(
                "the workloads of {} are not on {}: unset WEIGH_WORKLOADS",
                file.display(),
                self.ssh.destination
            )));
        }
        self.scratch.clone_from(&bench.place.scratch);
        self.interrupted = Arc::clone(bench.interrupted);
        self.connect()
    }

    /// Whether there is no connection any more.
    pub fn is_lost(&mut self) -> bool {
        self.connection.as_mut().is_none_or(Connection::is_lost)
    }

    /// Where its processes are, in the words of [`Whereabouts`](crate::workload::setup::kind::whereabouts).
    pub fn whereabouts(&self) -> Option<&str> {
        self.connection.as_ref().map(|connection| connection.arrival.whereabouts.as_str())
    }

    fn connect(&mut self) -> Result<(), TreatmentError> {
        // Its end first: what it left there is removed.
        self.connection = None;
        let name = format!("ssh-{:08x}", rand::random::<u32>());
        let opened = Connection::open(&self.ssh, &self.scratch.join(name), &self.interrupted)?;
        self.connections += 1;
        self.connection = Some(opened);
        Ok(())
    }

    /// Connects again, to a machine that may be away for a while.
    ///
    /// # Errors
    /// Where that was done too often, or it does not come back.
    pub fn come_back(&mut self) -> Result<(), TreatmentError> {
        if self.connections > RECONNECTIONS {
            return Err(TreatmentError::Unavailable(format!(
                "the connection to {} was lost {} times",
                self.ssh.destination, self.connections
            )));
        }
        let deadline = Instant::now() + COMES_BACK_WITHIN;
        while let Err(error) = self.connect() {
            let is_away = matches!(error, TreatmentError::Unavailable(_));
            if !is_away || Instant::now() > deadline {
                return Err(error);
            }
            let again = Instant::now() + PAUSE;
            if wait_until(again, || self.interrupted.load(Ordering::Relaxed)) {
                return Err(TreatmentError::Interrupted);
            }
        }
        Ok(())
    }
}
