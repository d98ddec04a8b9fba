//! `bpf`: a program of BPF runs at events of the kernel, as a sensor has it. It is attached for the length of
//! each treated sample.
//!
//! Both arms have the sensor's process and the same requests to it, so they differ by the attachment alone.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use QuantityKind::{Lost, Made, Spent};
use QuantityUnit::{Count, Seconds};

use rustix::param::page_size;
use syscalls::Sysno;

use crate::event_receiver::started;
use crate::sensing::{self, Running};
use crate::{
    ApplyContext, Kind, Launch, Occupied, Parameter, Role, Treatment, TreatmentError, TreatmentKind,
};
use weigh_host::machine::file_system::device_of_mount;
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_model::result::quantity::{EvidenceQuantity, QuantityKind, QuantityUnit};
use weigh_sensor::bpf::sensor::{Attachment, Counts, Sensing, Sensor, WatchedInode};
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::proof_calls::ProofCalls;
use weigh_workload::setup::kind::watched_file::WatchedFile;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "bpf",
        summary: "a BPF program at events of the kernel, as a sensor has it",
        parameters: &[
            Parameter { form: "counter", help: "counts all system calls; the default" },
            Parameter {
                form: "attach=HOW",
                help: "counts one call, at a raw-tracepoint, a tracepoint, a kprobe or by fentry",
            },
            Parameter { form: "call=NAME", help: "the call that `attach=` counts; default openat" },
            Parameter {
                form: "events",
                help: "sends an event of each call, with its arguments, through a ring buffer",
            },
            Parameter {
                form: "lifecycle",
                help: "sends an event of each fork, exec and exit through a ring buffer",
            },
            Parameter {
                form: "lsm",
                help: "counts opened files as a security module; needs `bpf` in the kernel's lsm=",
            },
            Parameter {
                form: "buffer=KIB",
                help: "size of the ring buffer: a power of two up to 65536; default 8192",
            },
            Parameter { form: "off", help: "the sensor's process alone, without a program" },
        ],
        probe: || {
            let sensor = Sensor::Counter;
            sensing::probe(&Sensing { proof: proof(&sensor, 0), sensor })
        },
    },
    build,
);

/// Events of all processes of the machine: counted ones or, with a buffer, those that were read from it.
const EVENTS: EvidenceQuantity = EvidenceQuantity::new("bpf_events", "events", Count, Made, None);
/// Events for which the kernel did not run the program, and those that found no room in the buffer.
const LOST: EvidenceQuantity =
    EvidenceQuantity::new("bpf_lost", "events", Count, Lost, Some("bpf_events"));
const SENSOR_CPU: EvidenceQuantity =
    EvidenceQuantity::new("sensor_cpu_s", "sensor", Seconds, Spent, Some("bpf_events"));

const DEFAULT_BUFFER_KIB: u32 = 8192;
const LARGEST_BUFFER_KIB: u32 = 65536;
/// Values of `attach=`, and what the report calls them.
const ATTACHMENTS: [(&str, Attachment, &str); 4] = [
    ("raw-tracepoint", Attachment::RawTracepoint, "the raw tracepoint of all calls"),
    ("tracepoint", Attachment::Tracepoint, "the tracepoint of the call"),
    ("kprobe", Attachment::Kprobe, "a kprobe of the call's function"),
    ("fentry", Attachment::Fentry, "the entry of the call's function (fentry)"),
];
/// Calls that fail before they do anything if their first argument is no file descriptor: these can prove a
/// sensor. They have two arguments at least, so that their tracepoints do.
const CALLS: [(&str, Sysno); 5] = [
    ("newfstatat", Sysno::newfstatat),
    ("openat", Sysno::openat),
    ("read", Sysno::read),
    ("unlinkat", Sysno::unlinkat),
    ("write", Sysno::write),
];
/// A call that no kernel has.
const NO_CALL: u32 = 4095;
/// As a file descriptor it is negative, and none of those that mean something (`AT_FDCWD`).
const TOKENS: u32 = 0x8000_0000;

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let sensor = sensor(parameters)?;
    Ok(Box::new(Sensed {
        sensing: Sensing { proof: proof(&sensor, 0), sensor },
        file: PathBuf::new(),
        running: None,
    }))
}

fn sensor(parameters: &Parameters) -> Result<Sensor, String> {
    let attach = parameters.value("attach");
    let forms = ["counter", "events", "lifecycle", "lsm", "off"]
        .into_iter()
        .filter(|word| parameters.has(word));
    let forms: Vec<&str> = forms.chain(attach.map(|_| "attach=")).collect();
    let [call, buffer] = ["call", "buffer"].map(|key| parameters.value(key));
    match (forms.as_slice(), attach) {
        ([one, other, ..], _) => Err(format!("`bpf` takes `{one}` or `{other}`, not both")),
        (_, Some(_)) if buffer.is_some() => Err("buffer= needs `events` or `lifecycle`".into()),
        (_, Some(how)) => one_call(how, call.unwrap_or("openat")),
        _ if call.is_some() => Err("call= needs attach=, such as attach=tracepoint".into()),
        ([form @ ("events" | "lifecycle")], _) => {
            let buffer_bytes = buffer.map_or(Ok(DEFAULT_BUFFER_KIB), kib)? << 10;
            Ok(match *form {
                "events" => Sensor::Events { buffer_bytes },
                _ => Sensor::Lifecycle { buffer_bytes },
            })
        }
        _ if buffer.is_some() => Err("buffer= needs `events` or `lifecycle`".into()),
        (["off"], _) => Ok(Sensor::Off),
        (["lsm"], _) => Ok(Sensor::FileOpen { watched: WatchedInode::default() }),
        _ => Ok(Sensor::Counter),
    }
}

fn kib(text: &str) -> Result<u32, String> {
    // A buffer is of whole pages.
    let smallest = (page_size() >> 10) as u32;
    let is_size =
        |kib: &u32| kib.is_power_of_two() && (smallest..=LARGEST_BUFFER_KIB).contains(kib);
    text.parse().ok().filter(is_size).ok_or_else(|| {
        format!(
            "buffer={text}: takes a power of two from {smallest} to {LARGEST_BUFFER_KIB}, in KiB"
        )
    })
}

fn one_call(how: &str, call: &str) -> Result<Sensor, String> {
    let known = |words: Vec<&str>| words.join(", ");
    let Some((_, at, _)) = ATTACHMENTS.iter().find(|(word, ..)| *word == how) else {
        let all = known(ATTACHMENTS.iter().map(|(word, ..)| *word).collect());
        return Err(format!("attach={how}: takes one of {all}"));
    };
    if !CALLS.iter().any(|(name, _)| *name == call) {
        let all = known(CALLS.iter().map(|(name, _)| *name).collect());
        return Err(format!(
            "call={call}: takes one of {all}, which `weigh` can make without effect"
        ));
    }
    Ok(Sensor::OneCall { name: call.to_owned(), at: *at })
}

fn proof(sensor: &Sensor, seed: u64) -> ProofCalls {
    let call = match sensor {
        Sensor::OneCall { name, .. } => CALLS.iter().find(|(call, _)| call == name),
        _ => None,
    };
    let call = call.map_or(NO_CALL, |(_, call)| call.id() as u32);
    ProofCalls { call, token: TOKENS | (seed as u32 >> 2) }
}

struct Sensed {
    sensing: Sensing,
    /// A file that each process of all arms reads before its program, if opens are counted.
    file: PathBuf,
    running: Option<Running>,
}

impl Sensed {
    fn prove(&self, is_treated: bool, counts: &Counts) -> Result<(), TreatmentError> {
        let problem = match self.sensing.sensor {
            Sensor::Lifecycle { .. } => problem_of_life(is_treated, counts),
            Sensor::FileOpen { .. } => problem_of_opens(is_treated, counts),
            Sensor::Off => problem_of_calls(false, false, counts),
            Sensor::Events { .. } => problem_of_calls(is_treated, true, counts),
            Sensor::Counter | Sensor::OneCall { .. } => problem_of_calls(is_treated, false, counts),
        };
        problem.map_or(Ok(()), |problem| Err(TreatmentError::NotInForce(problem.into())))
    }
}

/// Writes the file whose opens prove the program, and returns how the kernel knows it.
fn write_watched(path: &Path) -> io::Result<WatchedInode> {
    fs::write(path, "opened to prove that BPF works\n")?;
    let file = File::open(path)?;
    Ok(WatchedInode { number: file.metadata()?.ino(), device: device_of_mount(&file)? })
}

/// The worker made its calls before its program, and its launcher did when the worker had ended.
fn problem_of_calls(is_attached: bool, is_buffered: bool, counts: &Counts) -> Option<&'static str> {
    let proofs = counts.of_worker + counts.of_launcher;
    match is_attached {
        true if counts.of_worker == 0 => Some(
            "the BPF program did not run at the calls that the treated process made to prove it",
        ),
        true if counts.of_launcher == 0 => Some(
            "the BPF program ran when the treated process began, but no longer when it had ended",
        ),
        true if is_buffered && counts.dropped == 0 && counts.delivered_proofs < proofs => {
            Some("events of calls that prove the BPF program came without their arguments")
        }
        false if proofs > 0 => {
            Some("the BPF program ran at calls of a process without the treatment")
        }
        _ => None,
    }
}

/// The worker opened the file before its program, and its launcher did when the worker had ended.
fn problem_of_opens(is_attached: bool, counts: &Counts) -> Option<&'static str> {
    match (is_attached, counts.of_worker) {
        (true, 0 | 1) => Some(
            "the BPF program did not run at both opens of the file that proves it: before the program of \
             the treated process, and after its end",
        ),
        (false, 1..) => {
            Some("the BPF program ran when a process without the treatment opened a file")
        }
        _ => None,
    }
}

/// The worker executed its program and ended.
fn problem_of_life(is_attached: bool, counts: &Counts) -> Option<&'static str> {
    match is_attached {
        true if counts.execs > 0 && counts.exits > 0 => None,
        true if counts.dropped > 0 => Some(
            "events of the treated process were lost, so that nothing proves the sensor; use a larger \
             buffer=",
        ),
        true => Some("the sensor received no event of the exec or the exit of the treated process"),
        false if counts.execs + counts.exits > 0 => {
            Some("the sensor received events of a process without the treatment")
        }
        false => None,
    }
}

impl Treatment for Sensed {
    fn occupies(&self) -> Vec<Occupied> {
        vec![Occupied { what: "BPF", can_alternate: true }]
    }

    fn check_inputs(&mut self) -> Result<(), String> {
        sensing::probe(&self.sensing).obstacle().map_or(Ok(()), |why| Err(why.to_owned()))
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        _: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        let Sensor::FileOpen { watched } = &mut self.sensing.sensor else { return Ok(Vec::new()) };
        self.file = context.place.scratch.join("watched");
        *watched = write_watched(&self.file).map_err(|error| {
            TreatmentError::Unavailable(format!("cannot write {}: {error}", self.file.display()))
        })?;
        Ok(Vec::new())
    }

    /// Nothing to undo: the program ends with the sensor, and the sensor with `weigh`.
    fn apply(&mut self, context: &ApplyContext, _: &mut Guard) -> Result<(), TreatmentError> {
        self.sensing.proof = proof(&self.sensing.sensor, context.seed);
        self.running = Some(Running::start(&self.sensing, context.interrupted)?);
        Ok(())
    }

    fn setup(&self, _: bool) -> Setup {
        match self.sensing.sensor {
            Sensor::FileOpen { .. } => {
                Setup::default().with(WatchedFile { file: self.file.clone() })
            }
            _ => Setup::default().with(self.sensing.proof.clone()),
        }
    }

    fn begin_sample(&mut self, role: Role) -> Result<(), TreatmentError> {
        let running = started(&mut self.running)?;
        if role != Role::Other {
            // Both arms attach and detach before a sample, and the treated one attaches again.
            running.begin(true)?;
        }
        running.begin(role == Role::Treated)
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let (counts, cpu_s) = started(&mut self.running)?.end(launch.launched.pid)?;
        self.prove(launch.is_treated, &counts)?;
        if !launch.is_treated {
            return Ok(Evidence::default());
        }
        let evidence = Evidence::default().with(&LOST, Some(counts.missed + counts.dropped));
        Ok(match self.sensing.sensor.buffer_bytes().is_some() {
            true => evidence.with(&EVENTS, Some(counts.delivered)).with(&SENSOR_CPU, cpu_s),
            false => evidence.with(&EVENTS, Some(counts.counted)),
        })
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        match self.sensing.sensor.buffer_bytes().is_some() {
            true => vec![EVENTS, LOST, SENSOR_CPU],
            false => vec![EVENTS, LOST],
        }
    }

    fn facts(&self) -> Vec<String> {
        let what = match &self.sensing.sensor {
            Sensor::Off => return vec!["The sensor has no BPF program.".into()],
            Sensor::Counter => {
                "A BPF program at the raw tracepoint sys_enter counts each system call".to_owned()
            }
            Sensor::Events { buffer_bytes } => format!(
                "A BPF program at the raw tracepoint sys_enter sends an event of each system call through \
                 a ring buffer of {} KiB",
                buffer_bytes >> 10
            ),
            Sensor::Lifecycle { buffer_bytes } => format!(
                "Three BPF programs send an event of each fork, exec and exit through a ring buffer of \
                 {} KiB",
                buffer_bytes >> 10
            ),
            Sensor::FileOpen { .. } => {
                "A BPF program at a hook of security modules counts and allows each open of a file"
                    .to_owned()
            }
            Sensor::OneCall { name, at } => {
                let place = ATTACHMENTS.iter().find(|(_, one, _)| one == at);
                let place = place.map_or("", |(.., place)| place);
                format!("A BPF program at {place} counts each {name}")
            }
        };
        vec![format!("{what}, of all processes of the machine.")]
    }

    fn restore(&mut self, _: &mut Guard) -> Result<(), TreatmentError> {
        self.running = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn a_sample_counts_if_its_calls_were_counted_and_the_baseline_if_none_were() {
        let is_believed = |sensor, is_treated, of_worker, of_launcher| {
            let sensing = Sensing { proof: proof(&sensor, 7), sensor };
            let arm = Sensed { sensing, file: PathBuf::new(), running: None };
            let counts = Counts { counted: 9, of_worker, of_launcher, ..Counts::default() };
            arm.prove(is_treated, &counts).is_ok()
        };
        assert!(is_believed(Sensor::Counter, true, 3, 3));
        assert!(!is_believed(Sensor::Counter, true, 0, 3));
        assert!(!is_believed(Sensor::Counter, true, 3, 0), "it was detached");
        assert!(is_believed(Sensor::Counter, false, 0, 0));
        assert!(!is_believed(Sensor::Counter, false, 1, 0), "it was left");
        assert!(is_believed(Sensor::Off, true, 0, 0));
        assert!(!is_believed(Sensor::Off, true, 1, 1));
    }

    #[test]
    fn events_that_were_not_dropped_must_have_arrived_with_their_arguments() {
        let is_believed = |dropped, delivered_proofs| {
            let sensor = Sensor::Events { buffer_bytes: 4096 };
            let sensing = Sensing { proof: proof(&sensor, 7), sensor };
            let (of_worker, of_launcher) = (3, 3);
            let counts =
                Counts { of_worker, of_launcher, dropped, delivered_proofs, ..Counts::default() };
            Sensed { sensing, file: PathBuf::new(), running: None }.prove(true, &counts).is_ok()
        };
        assert!(is_believed(0, 6));
        assert!(!is_believed(0, 5));
        assert!(is_believed(900, 1));
    }

    #[test]
    fn the_life_of_the_treated_process_must_have_been_reported() {
        let is_believed = |is_treated, execs, exits, dropped| {
            let counts = Counts { execs, exits, dropped, ..Counts::default() };
            problem_of_life(is_treated, &counts).is_none()
        };
        assert!(is_believed(true, 1, 1, 0));
        assert!(is_believed(true, 1, 4, 9));
        assert!(!is_believed(true, 1, 0, 0));
        assert!(!is_believed(true, 0, 1, 9));
        assert!(is_believed(false, 0, 0, 0));
        assert!(!is_believed(false, 0, 1, 0));
    }

    #[test]
    fn both_opens_of_the_file_must_have_been_counted() {
        let is_believed = |is_treated, of_worker| {
            problem_of_opens(is_treated, &Counts { of_worker, ..Counts::default() }).is_none()
        };
        assert!(is_believed(true, 2) && is_believed(true, 3) && is_believed(false, 0));
        assert!(!is_believed(true, 1) && !is_believed(true, 0) && !is_believed(false, 1));
    }

    #[test]
    fn a_sensor_has_one_form() {
        let refused = |label: &str| parse(label).err().unwrap();
        assert!(refused("bpf:counter,off").contains("`counter` or `off`"));
        assert!(refused("bpf:off,attach=kprobe").contains("`off` or `attach=`"));
        assert!(refused("bpf:call=openat").contains("call= needs attach="));
        assert!(refused("bpf:attach=uprobe").contains("takes one of raw-tracepoint, tracepoint"));
        assert!(refused("bpf:attach=kprobe,call=kill").contains("one of newfstatat, openat"));
        assert!(refused("bpf:buffer=64").contains("buffer= needs `events` or `lifecycle`"));
        assert!(
            refused("bpf:attach=kprobe,buffer=64")
                .contains("buffer= needs `events` or `lifecycle`")
        );
        for buffer in ["0", "48", "131072", "8M"] {
            let said = refused(&format!("bpf:events,buffer={buffer}"));
            assert!(said.contains("takes a power of two from"), "{said}");
        }
        assert!(parse("bpf:events,buffer=64").is_ok());
        assert!(parse("bpf").is_ok());
        assert!(parse("bpf:attach=fentry,call=read").is_ok());
    }
}
