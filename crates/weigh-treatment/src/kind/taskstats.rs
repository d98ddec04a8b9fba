//! `taskstats`: a listener of ours receives the kernel's record of each task that ends, as `iotop`,
//! `atop` and accounting daemons do.
//!
//! Both arms have the listener and the same requests to it, so they differ by the registration alone.

use crate::event_receiver::{prove, started};
use crate::listening::{ListenerQuantities, Listening};
use crate::{
    ApplyContext, Kind, Launch, Parameter, Probe, Role, Treatment, TreatmentError, TreatmentKind,
    only_word,
};
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_sensor::events::listener::{Counts, Wanted};
use weigh_sensor::events::task_records;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "taskstats",
        summary: "a listener for the kernel's records of tasks that end (taskstats)",
        parameters: &[Parameter { form: "off", help: "the listener alone, without records" }],
        probe,
    },
    build,
);

/// Records of all tasks: of each thread of each process. Lost are full queues, each of which dropped one
/// record or more.
const QUANTITIES: ListenerQuantities = ListenerQuantities::new(
    "task records",
    ["task_records", "task_records_received", "task_queue_overflows", "task_listener_cpu_s"],
);

fn probe() -> Probe {
    if !rustix::process::geteuid().is_root() {
        return Probe::NeedsRoot("taskstats needs root (CAP_NET_ADMIN)".into());
    }
    match task_records::try_out() {
        Ok(()) => Probe::Available,
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
            Probe::Broken("this kernel lacks taskstats (CONFIG_TASKSTATS)".into())
        }
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Probe::Broken(
            "taskstats needs the initial PID and user namespaces: run weigh on the host, not in a \
             container"
                .into(),
        ),
        Err(error) => Probe::Broken(format!("cannot listen to taskstats: {error}")),
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let has_records = only_word(parameters) != Some("off");
    Ok(Box::new(Recorded { has_records, is_asked: false, listening: None }))
}

struct Recorded {
    /// False for two identical arms.
    has_records: bool,
    /// True if the listener was asked to begin with this sample.
    is_asked: bool,
    listening: Option<Listening>,
}

impl Recorded {
    /// The listener received the record of the process, so it was registered until its end.
    fn prove(&self, is_treated: bool, counts: &Counts) -> Result<(), TreatmentError> {
        let has_record = counts.by_process.iter().all(|records| *records > 0);
        let unseen = || {
            format!(
                "the listener did not receive the treated process's record (its queue was full {} times)",
                counts.lost
            )
        };
        let stray = "the listener received records although it was not registered";
        prove(is_treated && self.has_records, has_record, counts.events, unseen, stray)
    }
}

impl Treatment for Recorded {
    fn apply(&mut self, context: &ApplyContext, _: &mut Guard) -> Result<(), TreatmentError> {
        self.listening = Some(Listening::start(&Wanted::Tasks, context.interrupted)?);
        Ok(())
    }

    fn take_turn(&mut self, _: Role) -> Result<(), TreatmentError> {
        // The last sample had no result, so nobody asked for its proof.
        if std::mem::take(&mut self.is_asked) {
            started(&mut self.listening)?.end(Vec::new())?;
        }
        Ok(())
    }

    fn begin_sample(&mut self, role: Role) -> Result<(), TreatmentError> {
        self.is_asked = role != Role::Other;
        let is_on = role == Role::Treated && self.has_records;
        if self.is_asked { started(&mut self.listening)?.begin(is_on) } else { Ok(()) }
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        if !std::mem::take(&mut self.is_asked) {
            return Ok(Evidence::default());
        }
        let (counts, cpu_s) = started(&mut self.listening)?.end(vec![launch.launched.pid])?;
        self.prove(launch.is_treated, &counts)?;
        Ok(QUANTITIES.evidence(launch.is_treated, &counts, cpu_s))
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        QUANTITIES.list()
    }

    fn facts(&self) -> Vec<String> {
        vec![match self.has_records {
            true => "A listener receives a record of every task that ends on this machine.".into(),
            false => "The listener receives no records.".into(),
        }]
    }

    /// The kernel forgets a listener that has ended.
    fn restore(&mut self, _: &mut Guard) -> Result<(), TreatmentError> {
        drop(self.listening.take());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_receiver::assert_proof;

    #[test]
    fn a_sample_counts_if_its_process_has_a_record_and_another_if_nobody_has() {
        let is_believed = |has_records, is_treated, events, records| {
            let arm = Recorded { has_records, is_asked: false, listening: None };
            let counts = Counts { events, by_process: vec![records], ..Counts::default() };
            arm.prove(is_treated, &counts).is_ok()
        };
        assert_proof(is_believed, &1, &0, &[]);
    }
}
