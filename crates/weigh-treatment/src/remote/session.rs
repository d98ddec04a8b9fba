//! A machine that is visited: connected to, and again where the connection was lost.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::ssh::Ssh;
use crate::{ApplyContext, TreatmentError};
use weigh_host::chance;
use weigh_host::orphans::wait_until;
use weigh_model::described::machine_changes;
use weigh_model::facts::Facts;

/// A connection that is lost so often is none to measure over.
const RECONNECTIONS: usize = 5;
/// A machine that boots takes longer, and is another one then.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(1);

pub struct RemoteSession {
    pub ssh: Ssh,
    pub connection: Option<Connection>,
    /// Facts about the machine when it was reached for the first time.
    first: Option<Facts>,
    /// A private directory of here.
    scratch: PathBuf,
    interrupted: Arc<AtomicBool>,
    connections: usize,
}

impl RemoteSession {
    pub fn to(ssh: Ssh) -> RemoteSession {
        let (scratch, interrupted) = (PathBuf::new(), Arc::default());
        RemoteSession { ssh, connection: None, first: None, scratch, interrupted, connections: 0 }
    }

    pub fn begin(&mut self, context: &ApplyContext) -> Result<(), TreatmentError> {
        if let Some(file) = &context.place.executable.foreign {
            return Err(TreatmentError::Unavailable(format!(
                "the workloads of {} do not run on {}: unset WEIGH_WORKLOADS",
                file.display(),
                self.ssh.destination
            )));
        }
        self.scratch.clone_from(&context.place.scratch);
        self.interrupted = Arc::clone(context.interrupted);
        self.connect()?;
        self.hold_identity()
    }

    /// Returns true if the connection no longer exists.
    pub fn is_lost(&mut self) -> bool {
        self.connection.as_mut().is_none_or(Connection::is_lost)
    }

    /// Where its processes are, in the words of [`Whereabouts`](weigh_workload::setup::kind::whereabouts).
    pub fn whereabouts(&self) -> Option<&str> {
        self.connection.as_ref().map(|connection| connection.arrival.whereabouts.as_str())
    }

    fn connect(&mut self) -> Result<(), TreatmentError> {
        let unavailable = |error: std::io::Error| TreatmentError::Unavailable(error.to_string());
        // Its end first: what it left there is removed.
        self.connection = None;
        let name = format!("ssh-{:08x}", chance::small().map_err(unavailable)?);
        let opened = Connection::open(&self.ssh, &self.scratch.join(name), &self.interrupted)?;
        self.connections += 1;
        self.connection = Some(opened);
        Ok(())
    }

    /// Checks that this machine is the one reached first, in the same boot.
    ///
    /// A name may lead to another machine.
    fn hold_identity(&mut self) -> Result<(), TreatmentError> {
        let Some(Connection { arrival, .. }) = &self.connection else { return Ok(()) };
        let first = self.first.get_or_insert_with(|| arrival.machine.clone());
        what_changed(first, &arrival.machine).map_or(Ok(()), |changed| {
            Err(TreatmentError::Unavailable(format!(
                "{} changed while the connection was lost: {changed}. Finished pairs are kept; compare \
                 with this machine in a new experiment",
                self.ssh.destination
            )))
        })
    }

    /// Connects again, to a machine that may be away for a while.
    ///
    /// # Errors
    /// Where that was done too often, it does not come back, or it is another machine or boot by then.
    pub fn come_back(&mut self) -> Result<(), TreatmentError> {
        if self.connections > RECONNECTIONS {
            return Err(TreatmentError::Unavailable(format!(
                "the connection to {} was lost {} times: check the network",
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
        self.hold_identity()
    }
}

/// The first fact of a machine that is another than before, where one is.
fn what_changed(first: &Facts, now: &Facts) -> Option<String> {
    let of_boot =
        [("boot id", &first.boot_id, &now.boot_id), ("name", &first.hostname, &now.hostname)];
    if let Some((what, before, after)) =
        of_boot.into_iter().find(|(_, before, after)| before != after)
    {
        return Some(format!("its {what} was `{before}` and is `{after}`"));
    }
    let change = machine_changes(first, now).into_iter().next()?;
    Some(format!("`{}` was `{}` and is `{}`", change.fact, change.before, change.after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_or_another_boot_is_not_taken_for_the_first() {
        let first = Facts {
            boot_id: "a".into(),
            hostname: "one".into(),
            kernel: "6.1".into(),
            uptime_s: Some(1.0),
            ..Facts::default()
        };
        assert_eq!(what_changed(&first, &Facts { uptime_s: Some(9.0), ..first.clone() }), None);
        let changed = |now: Facts| what_changed(&first, &now).unwrap();
        let booted = changed(Facts { boot_id: "b".into(), ..first.clone() });
        assert_eq!(booted, "its boot id was `a` and is `b`");
        let other = changed(Facts { hostname: "two".into(), ..first.clone() });
        assert_eq!(other, "its name was `one` and is `two`");
        let kernel = changed(Facts { kernel: "6.2".into(), ..first.clone() });
        assert_eq!(kernel, "`kernel` was `6.1` and is `6.2`");
    }
}
