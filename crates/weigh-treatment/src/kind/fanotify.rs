//! `fanotify`: a listener of ours receives an event for each access to the mounts of the workloads' and the
//! user's directory, as a virus scanner or a monitor does. They are marked for the length of each treated
//! sample.
//!
//! Both arms have the listener and the same requests to it, so they differ by the mark alone.

use std::io;
use std::time::Duration;

use QuantityKind::{Made, Spent};
use QuantityUnit::{Count, Seconds};

use crate::canary::Canary;
use crate::event_receiver::{prove, started};
use crate::listening::Listening;
use crate::{
    ApplyContext, Kind, Launch, Parameter, Probe, Role, Treatment, TreatmentError, TreatmentKind,
};
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_model::result::quantity::{EvidenceQuantity, QuantityKind, QuantityUnit};
use weigh_sensor::events::files::{self, CannotListen, Events, WatchedMounts};
use weigh_sensor::events::listener::{Counts, Wanted};
use weigh_workload::setup::Setup;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "fanotify",
        summary: "a listener for the opens or reads of files, as a virus scanner has one",
        parameters: &[
            Parameter { form: "notify", help: "opens and closes, after the fact; the default" },
            Parameter { form: "access", help: "reads and writes, after the fact" },
            Parameter { form: "open-perm", help: "opens, which wait for the listener's answer" },
            Parameter { form: "access-perm", help: "reads, which wait for the listener's answer" },
            Parameter { form: "off", help: "the listener alone, without events" },
            Parameter {
                form: "filesystem",
                help: "mark all mounts of the file system instead of one mount",
            },
            Parameter {
                form: "delay=TIME",
                help: "time that the listener waits before each answer, up to 10ms; default 0",
            },
        ],
        probe: || probe(Events::Notify),
    },
    build,
);

const MODES: [(&str, Events); 5] = [
    ("notify", Events::Notify),
    ("access", Events::Access),
    ("open-perm", Events::OpenPerm),
    ("access-perm", Events::AccessPerm),
    ("off", Events::Off),
];
/// All processes that open files of the mount wait for it.
const LONGEST_DELAY: Duration = Duration::from_millis(10);

/// Events of all processes on the mount.
const EVENTS: EvidenceQuantity =
    EvidenceQuantity::new("fanotify_events", "events", Count, Made, None);
const LISTENER_CPU: EvidenceQuantity =
    EvidenceQuantity::new("listener_cpu_s", "listener", Seconds, Spent, Some("fanotify_events"));

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let asked: Vec<_> = MODES.iter().filter(|(word, _)| parameters.has(word)).collect();
    let events = match asked.as_slice() {
        [] => Events::Notify,
        [(_, events)] => *events,
        [(one, _), (other, _), ..] => {
            return Err(format!("`fanotify` takes `{one}` or `{other}`, not both"));
        }
    };
    let delay = parameters.value("delay").map(delay).transpose()?;
    if delay.is_some() && !events.wait() {
        return Err(
            "delay= needs `open-perm` or `access-perm`: nobody waits for other events".into()
        );
    }
    let watched = WatchedMounts {
        events,
        directories: Vec::new(),
        has_file_system: parameters.has("filesystem"),
        delay: delay.unwrap_or_default(),
    };
    Ok(Box::new(Listened { watched, canary: Canary::default(), listening: None }))
}

fn delay(text: &str) -> Result<Duration, String> {
    let parsed: Option<jiff::SignedDuration> = text.parse().ok();
    let delay = parsed.and_then(|time| Duration::try_from(time).ok());
    delay
        .filter(|delay| *delay <= LONGEST_DELAY)
        .ok_or_else(|| format!("delay={text}: takes a time up to 10ms, such as 100us or 1ms"))
}

struct Listened {
    watched: WatchedMounts,
    canary: Canary,
    listening: Option<Listening>,
}

impl Listened {
    /// The worker read the file before its program, and its launcher did when the worker had ended.
    fn prove(&self, is_treated: bool, counts: &Counts) -> Result<(), TreatmentError> {
        let unseen = || {
            format!(
                "the treated process read {}, but fanotify sent no event: the processes may see another \
                 mount there; try fanotify:filesystem",
                self.canary.file.display()
            )
        };
        prove(
            is_treated && self.watched.events != Events::Off,
            counts.by_process.iter().all(|events| *events > 0),
            counts.events,
            unseen,
            "the listener of fanotify received events of a process without the treatment",
        )
    }
}

impl Treatment for Listened {
    fn check_inputs(&mut self) -> Result<(), String> {
        probe(self.watched.events).obstacle().map_or(Ok(()), |why| Err(why.to_owned()))
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        _: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        self.canary = Canary::prepare(context)?;
        let Canary { of_workloads, of_commands, .. } = &self.canary;
        self.watched.directories = vec![of_workloads.clone(), of_commands.clone()];
        Ok(Vec::new())
    }

    /// Nothing to undo: the marks end with the listener, and the listener with `weigh`.
    fn apply(&mut self, context: &ApplyContext, _: &mut Guard) -> Result<(), TreatmentError> {
        let wanted = Wanted::Mounts(self.watched.clone());
        self.listening = Some(Listening::start(&wanted, context.interrupted)?);
        Ok(())
    }

    fn setup(&self, _: bool) -> Setup {
        self.canary.setup()
    }

    fn begin_sample(&mut self, role: Role) -> Result<(), TreatmentError> {
        let listening = started(&mut self.listening)?;
        if role != Role::Other {
            // Both arms mark the mounts and remove the marks, and the treated one marks them again.
            listening.begin(true)?;
        }
        listening.begin(role == Role::Treated)
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let readers = vec![launch.launched.pid, Canary::reader_afterwards(launch)?];
        let (counts, cpu_s) = started(&mut self.listening)?.end(readers)?;
        self.canary.check_device(launch, "fanotify")?;
        self.prove(launch.is_treated, &counts)?;
        match launch.is_treated {
            true => Ok(Evidence::default()
                .with(&EVENTS, Some(counts.events))
                .with(&LISTENER_CPU, cpu_s)),
            false => Ok(Evidence::default()),
        }
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        vec![EVENTS, LISTENER_CPU]
    }

    fn facts(&self) -> Vec<String> {
        let marked = match self.watched.has_file_system {
            true => "all mounts of the file systems",
            false => "the mounts",
        };
        let directories = self.watched.directories.iter().map(|one| one.display().to_string());
        let place = format!("{marked} of {}", directories.collect::<Vec<_>>().join(" and "));
        let told = match self.watched.events {
            Events::Off => return vec!["The listener receives no events.".into()],
            Events::Notify => "is told of each open and close",
            Events::Access => "is told of each read and write",
            Events::OpenPerm => "allows each open",
            Events::AccessPerm => "allows each read",
        };
        let when = match self.watched.delay {
            Duration::ZERO => String::new(),
            delay => format!(", after {} µs", delay.as_micros()),
        };
        vec![format!("A listener {told} on {place}{when}. It hears all processes of the machine.")]
    }

    fn restore(&mut self, _: &mut Guard) -> Result<(), TreatmentError> {
        self.listening = None;
        Ok(())
    }
}

/// Tries what the listener needs, and changes nothing.
fn probe(events: Events) -> Probe {
    let error = match files::try_to_listen(events) {
        Ok(()) => return Probe::Available,
        Err(CannotListen::Open(error)) => return obstacle(&error),
        Err(CannotListen::Mark(error)) => error,
    };
    Probe::Broken(match error.raw_os_error() {
        Some(libc::EINVAL) => {
            "this kernel has no permission events of fanotify (CONFIG_FANOTIFY_ACCESS_PERMISSIONS)"
                .into()
        }
        _ => format!("cannot try fanotify: {error}"),
    })
}

fn obstacle(error: &io::Error) -> Probe {
    match error.raw_os_error() {
        Some(libc::EPERM) => {
            Probe::NeedsRoot("fanotify needs root (CAP_SYS_ADMIN); use sudo".into())
        }
        Some(libc::ENOSYS) => Probe::Broken("this kernel lacks fanotify (CONFIG_FANOTIFY)".into()),
        _ => Probe::Broken(format!("cannot open fanotify: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_receiver::assert_proof;
    use crate::parse;

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        let refused = |label: &str| parse(label).err().unwrap();
        assert!(refused("fanotify:notify,open-perm").contains("`notify` or `open-perm`, not both"));
        assert!(refused("fanotify:delay=1ms").contains("needs `open-perm` or `access-perm`"));
        for delay in ["11ms", "soon", "-1ms", "5"] {
            let said = refused(&format!("fanotify:open-perm,delay={delay}"));
            assert!(said.contains(&format!("delay={delay}: takes a time up to 10ms")), "{said}");
        }
        assert!(parse("fanotify:access-perm,delay=100us,filesystem").is_ok());
    }

    #[test]
    fn a_sample_counts_if_it_was_heard_and_the_baseline_if_nobody_was() {
        let is_believed = |is_on, is_treated, counted, by_process: [u64; 2]| {
            let watched = WatchedMounts {
                events: if is_on { Events::Notify } else { Events::Off },
                directories: Vec::new(),
                has_file_system: false,
                delay: Duration::ZERO,
            };
            let arm = Listened { watched, canary: Canary::default(), listening: None };
            let by_process = by_process.to_vec();
            let counts = Counts { events: counted, by_process, ..Counts::default() };
            arm.prove(is_treated, &counts).is_ok()
        };
        assert_proof(is_believed, &[4, 1], &[0, 0], &[[4, 0], [0, 1]]);
    }
}
