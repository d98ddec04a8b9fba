//! `proc-connector`: a listener of ours receives an event for each fork, exec and exit from the kernel's
//! process connector, as monitors of processes do.
//!
//! Both arms have the listener and the same requests to it, so they differ by the events alone.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::event_receiver::{prove, started};
use crate::listening::{ListenerQuantities, Listening};
use crate::{
    ApplyContext, Kind, Launch, Occupied, Parameter, Probe, Role, Treatment, TreatmentError,
    TreatmentKind, Turns, only_word,
};
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_sensor::events::listener::{Counts, Wanted};
use weigh_sensor::events::processes::{self, WHOLE_LIFE};

pub static KIND: TreatmentKind = TreatmentKind {
    undo,
    ..TreatmentKind::of(
        Kind {
            name: NAME,
            summary: "a listener for the starts and ends of processes (the process connector)",
            parameters: &[Parameter { form: "off", help: "the listener alone, without events" }],
            probe,
        },
        build,
    )
};

const NAME: &str = "proc-connector";
/// Content of the journal: a listener, which may still be counted when it was killed.
const LISTENER: &str = "listener";

/// Events of all processes.
const QUANTITIES: ListenerQuantities = ListenerQuantities::new(
    "process events",
    ["process_events", "process_events_received", "process_events_lost", "process_listener_cpu_s"],
);

fn probe() -> Probe {
    if !rustix::process::geteuid().is_root() {
        return Probe::NeedsRoot("the process connector needs root (CAP_NET_ADMIN)".into());
    }
    found_off().map_or_else(Probe::Broken, |()| Probe::Available)
}

/// The baseline must be without events.
fn found_off() -> Result<(), String> {
    match processes::are_on()? {
        false => Ok(()),
        true => Err(
            "the kernel already makes events of processes: another program listens to the process \
                     connector (`cat /proc/net/netlink`, Eth 11), or did so until it was killed"
                .into(),
        ),
    }
}

fn undo(state: &Value) -> Result<(), String> {
    match state == LISTENER {
        true => processes::end_for_the_dead(),
        false => Err("the journal's entry of the process connector is damaged".into()),
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let has_events = only_word(parameters) != Some("off");
    Ok(Box::new(Heard {
        has_events,
        arm: 0,
        turns: Rc::default(),
        is_asked: false,
        listening: None,
    }))
}

/// Turns at the events of processes.
#[derive(Default)]
struct ListenerTurns(Turns);

struct Heard {
    /// False for two identical arms.
    has_events: bool,
    arm: usize,
    turns: Rc<ListenerTurns>,
    /// True if the listener was asked to begin with this sample.
    is_asked: bool,
    listening: Option<Listening>,
}

impl Heard {
    /// Names its entry in the journal.
    fn entry(&self) -> String {
        format!("{LISTENER} {}", self.arm)
    }

    /// The listener heard the start and the end of the process, so it heard everything in between.
    fn prove(&self, is_treated: bool, counts: &Counts) -> Result<(), TreatmentError> {
        let has_heard = counts.by_process.iter().all(|kinds| *kinds == WHOLE_LIFE);
        let unseen = || {
            format!(
                "the listener did not hear of the treated process's fork, exec and exit (it missed {} events \
                 in all)",
                counts.lost
            )
        };
        prove(
            is_treated && self.has_events,
            has_heard,
            counts.events,
            unseen,
            "the kernel made events of processes without the treatment: another program listens to the \
             process connector",
        )
    }
}

impl Treatment for Heard {
    fn occupies(&self) -> Vec<Occupied> {
        vec![Occupied { what: "the process connector", can_alternate: true }]
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        _: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        self.turns = context.commons.of();
        self.arm = self.turns.0.enlist();
        Ok(Vec::new())
    }

    fn apply(&mut self, context: &ApplyContext, guard: &mut Guard) -> Result<(), TreatmentError> {
        // Again: a program may have begun to listen while weigh waited for its turn.
        found_off().map_err(TreatmentError::Unavailable)?;
        guard.write_down(NAME, &self.entry(), json!(LISTENER)).map_err(|error| {
            TreatmentError::Unavailable(format!("cannot write the journal: {error}"))
        })?;
        self.listening = Some(Listening::start(&Wanted::Processes, context.interrupted)?);
        Ok(())
    }

    fn take_turn(&mut self, role: Role) -> Result<(), TreatmentError> {
        self.turns.0.end(self.arm);
        // The last sample had no result, so nobody asked for its proof.
        if std::mem::take(&mut self.is_asked) {
            started(&mut self.listening)?.end(Vec::new())?;
        }
        if role == Role::Treated {
            self.turns.0.take(self.arm);
        }
        Ok(())
    }

    fn begin_sample(&mut self, role: Role) -> Result<(), TreatmentError> {
        // An arm that has its turn makes events for everybody, and proves them.
        self.is_asked = role == Role::Treated || role == Role::Paired && self.turns.0.is_free();
        let is_on = role == Role::Treated && self.has_events;
        if self.is_asked { started(&mut self.listening)?.begin(is_on) } else { Ok(()) }
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        if !std::mem::take(&mut self.is_asked) {
            return Ok(Evidence::default());
        }
        let (counts, cpu_s) = started(&mut self.listening)?.end(vec![launch.launched.pid])?;
        self.turns.0.end(self.arm);
        self.prove(launch.is_treated, &counts)?;
        Ok(QUANTITIES.evidence(launch.is_treated, &counts, cpu_s))
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        QUANTITIES.list()
    }

    fn facts(&self) -> Vec<String> {
        vec![match self.has_events {
            true => {
                "A listener is told of each fork, exec and exit of all processes of the machine."
                    .into()
            }
            false => "The listener is told of no process.".into(),
        }]
    }

    fn restore(&mut self, guard: &mut Guard) -> Result<(), TreatmentError> {
        let ended = self.listening.take().map(|mut listening| listening.end(Vec::new()));
        let undone = match ended {
            // The kernel counts it no more.
            Some(Ok(_)) => guard.strike_out(NAME, &self.entry()),
            _ => guard.undo(NAME, &self.entry()),
        };
        undone.map_err(TreatmentError::Unavailable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_receiver::assert_proof;

    #[test]
    fn a_sample_counts_if_its_process_was_heard_and_another_if_nobody_was() {
        let is_believed = |has_events, is_treated, events, kinds| {
            let arm = Heard {
                has_events,
                arm: 0,
                turns: Rc::default(),
                is_asked: false,
                listening: None,
            };
            let counts = Counts { events, by_process: vec![kinds], ..Counts::default() };
            arm.prove(is_treated, &counts).is_ok()
        };
        assert_proof(is_believed, &WHOLE_LIFE, &0, &[WHOLE_LIFE - 1]);
    }
}
