//! The process that holds BPF programs, as the agent of a sensor does.
//!
//! Programs and where they run last as long as their descriptors. Only this process has them, and it starts
//! no other, so nothing is left when it ends, however it ends.
//!
//! Its first line is a [`Sensing`], each further one an [`Order`] ([`crate::orders`]).

use std::collections::HashMap;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::btf;
use super::event::{Event, Moment};
use super::hook::{Hook, check_security_module};
use super::kernel::{self, ProgramKind};
pub use super::programs::WatchedInode;
use super::programs::{self, COUNTERS, Counter, InodeOffsets};
use super::ring::Ring;
use crate::orders;
use weigh_host::lines::Lines;
use weigh_workload::setup::kind::proof_calls::ProofCalls;

/// A program that was still running when it was detached takes moments, unless its CPU was taken away.
const LAST_EVENTS: Duration = Duration::from_secs(10);
const LIFE: [(Moment, &CStr); 3] = [
    (Moment::Fork, c"sched_process_fork"),
    (Moment::Exec, c"sched_process_exec"),
    (Moment::Exit, c"sched_process_exit"),
];
/// `PROC_PID_INIT_INO`.
const INITIAL_PIDS: u64 = 0xefff_fffc;

/// The hidden subcommand that turns `weigh` into a sensor.
pub const SUBCOMMAND: &str = "__sensor";

/// Work of a sensor at each of its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sensor {
    /// Nothing: it has no program.
    Off,
    /// Counts each system call.
    Counter,
    /// Counts one system call.
    OneCall { name: String, at: Attachment },
    /// Writes an event for each system call into a ring buffer, and reads it.
    Events { buffer_bytes: u32 },
    /// Writes an event for each fork, exec and exit, and reads it.
    Lifecycle { buffer_bytes: u32 },
    /// Counts opened files, as a security module: those of one file apart from all others.
    FileOpen { watched: WatchedInode },
}

impl Sensor {
    /// Size of its ring buffer, if it has one.
    pub fn buffer_bytes(&self) -> Option<u32> {
        match self {
            Sensor::Events { buffer_bytes } | Sensor::Lifecycle { buffer_bytes } => {
                Some(*buffer_bytes)
            }
            Sensor::Off | Sensor::Counter | Sensor::OneCall { .. } | Sensor::FileOpen { .. } => {
                None
            }
        }
    }
}

/// Ways to run a program at a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attachment {
    /// Tracepoint of all calls.
    RawTracepoint,
    /// Tracepoint of the call.
    Tracepoint,
    /// First instruction of the call's function, by a breakpoint or a jump.
    Kprobe,
    /// First instruction of the call's function, by a call.
    Fentry,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sensing {
    pub sensor: Sensor,
    /// Calls that processes make to prove the sensor.
    pub proof: ProofCalls,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Count from zero, with or without programs that run.
    Begin { is_attached: bool },
    /// Let no program run any longer.
    End { process: u32 },
}

/// Numbers since [`Order::Begin`], of all processes of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub counted: u64,
    /// Calls of the worker that prove the sensor, and of its launcher.
    pub of_worker: u64,
    pub of_launcher: u64,
    /// Events for which the kernel did not run a program, as it was already running on that CPU.
    pub missed: u64,
    /// Events that found no room in the ring buffer.
    pub dropped: u64,
    /// Events that were read from it.
    pub delivered: u64,
    /// Events among them of calls that prove the sensor, by their arguments.
    pub delivered_proofs: u64,
    /// Delivered events of the process that [`Order::End`] names.
    pub execs: u64,
    pub exits: u64,
}

impl Counts {
    fn since(self, before: Counts) -> io::Result<Counts> {
        let difference = |now: u64, before: u64| {
            now.checked_sub(before).ok_or_else(|| {
                io::Error::other(format!("a counter of BPF events fell from {before} to {now}"))
            })
        };
        Ok(Counts {
            counted: difference(self.counted, before.counted)?,
            of_worker: difference(self.of_worker, before.of_worker)?,
            of_launcher: difference(self.of_launcher, before.of_launcher)?,
            missed: difference(self.missed, before.missed)?,
            dropped: difference(self.dropped, before.dropped)?,
            delivered: difference(self.delivered, before.delivered)?,
            delivered_proofs: difference(self.delivered_proofs, before.delivered_proofs)?,
            ..self
        })
    }
}

/// Holds programs until the end of its input.
///
/// # Errors
/// If stdin or stdout fail.
pub fn run() -> io::Result<()> {
    orders::run(|sensing: Sensing, lines| {
        let mut held = Held::load(&sensing)?;
        lines.send(&Answer::Ready)?;
        held.serve(lines)
    })
}

/// Answer of a sensor.
type Answer = orders::Answer<Counts>;

/// Has the kernel load the programs of a sensor, and no more: it changes nothing.
pub fn try_to_load(sensing: &Sensing) -> io::Result<()> {
    Held::load(sensing).map(drop)
}

struct Held {
    proof: ProofCalls,
    counters: OwnedFd,
    ring: Option<Ring>,
    programs: Vec<Program>,
    delivered: u64,
    delivered_proofs: u64,
    /// Number of events by process and moment, since the sample began.
    lives: HashMap<(u32, u64), u64>,
    /// Where the programs run, as long as they are open.
    attached: Vec<OwnedFd>,
    before: Counts,
}

struct Program {
    loaded: OwnedFd,
    hook: Hook,
}

impl Program {
    fn load(
        Sensing { sensor, proof }: &Sensing,
        counters: &OwnedFd,
        ring: Option<&Ring>,
    ) -> io::Result<Option<Program>> {
        let sys_enter = || Hook::RawTracepoint(c"sys_enter".into());
        let mut function = 0;
        let (kind, instructions, hook) = match sensor {
            Sensor::Off | Sensor::Lifecycle { .. } => return Ok(None),
            Sensor::Counter => {
                (ProgramKind::RawTracepoint, programs::counter(counters, proof), sys_enter())
            }
            Sensor::Events { .. } => {
                let missing = || io::Error::other("the ring buffer was not made");
                let ring = ring.ok_or_else(missing)?.map();
                let events = programs::events(counters, ring, std::process::id(), proof);
                (ProgramKind::RawTracepoint, events, sys_enter())
            }
            Sensor::FileOpen { watched } => {
                check_security_module()?;
                function = btf::function("bpf_lsm_file_open")?;
                let count = programs::file_open(counters, inode_offsets()?, *watched);
                (ProgramKind::SecurityModule, count, Hook::Function)
            }
            Sensor::OneCall { at: Attachment::RawTracepoint, .. } => {
                (ProgramKind::RawTracepoint, programs::raw_tracepoint(counters, proof), sys_enter())
            }
            Sensor::OneCall { name, at: Attachment::Tracepoint } => {
                let hook = Hook::tracepoint(name)?;
                (ProgramKind::Tracepoint, programs::tracepoint(counters, proof), hook)
            }
            Sensor::OneCall { name, at: Attachment::Kprobe } => {
                let hook = Hook::kprobe(&function_of(name))?;
                (ProgramKind::Kprobe, programs::kprobe(counters, proof), hook)
            }
            Sensor::OneCall { name, at: Attachment::Fentry } => {
                function = btf::function(&function_of(name))?;
                (ProgramKind::Fentry, programs::fentry(counters, proof), Hook::Function)
            }
        };
        let loaded = kernel::load(kind, function, &instructions)?;
        Ok(Some(Program { loaded, hook }))
    }
}

fn inode_offsets() -> io::Result<InodeOffsets> {
    Ok(InodeOffsets {
        inode_of_file: btf::member("file", "f_inode")?,
        number_of_inode: btf::member("inode", "i_ino")?,
        file_system_of_inode: btf::member("inode", "i_sb")?,
        device_of_file_system: btf::member("super_block", "s_dev")?,
    })
}

/// The kernel's function of a system call of this architecture.
fn function_of(call: &str) -> String {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    format!("__{architecture}_sys_{call}")
}

impl Held {
    fn load(sensing: &Sensing) -> io::Result<Held> {
        let ring = sensing.sensor.buffer_bytes().map(|bytes| {
            check_namespace()?;
            Ring::new(bytes)
        });
        let ring = ring.transpose()?;
        let counters = kernel::counters(COUNTERS)?;
        let programs = match (&sensing.sensor, &ring) {
            (Sensor::Lifecycle { .. }, Some(ring)) => LIFE
                .map(|(moment, tracepoint)| {
                    let instructions = programs::lifecycle(&counters, ring.map(), moment);
                    let loaded = kernel::load(ProgramKind::RawTracepoint, 0, &instructions)?;
                    Ok(Program { loaded, hook: Hook::RawTracepoint(tracepoint.into()) })
                })
                .into_iter()
                .collect::<io::Result<_>>()?,
            _ => Program::load(sensing, &counters, ring.as_ref())?.into_iter().collect(),
        };
        Ok(Held {
            proof: sensing.proof.clone(),
            counters,
            ring,
            programs,
            delivered: 0,
            delivered_proofs: 0,
            lives: HashMap::new(),
            attached: Vec::new(),
            before: Counts::default(),
        })
    }

    fn serve(&mut self, lines: &mut Lines) -> io::Result<()> {
        loop {
            let mut ready = vec![PollFd::new(&*lines, PollFlags::IN)];
            ready.extend(self.ring.iter().map(|ring| PollFd::new(ring, PollFlags::IN)));
            match poll(&mut ready, None) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let has_orders = !ready[0].revents().is_empty();
            self.read_events()?;
            if has_orders && !lines.fill()? {
                return Ok(());
            }
            while let Some(order) = lines.unread() {
                let answer = self.obey(&order?)?;
                lines.send(&answer)?;
            }
        }
    }

    fn read_events(&mut self) -> io::Result<()> {
        let Some(ring) = &mut self.ring else { return Ok(()) };
        let mut is_known = true;
        ring.drain(|bytes| {
            self.delivered += 1;
            match Event::read(bytes) {
                Some(Event { what, arguments: Some([token, ..]), .. }) => {
                    let is_proof =
                        what == u64::from(self.proof.call) && token == u64::from(self.proof.token);
                    self.delivered_proofs += u64::from(is_proof);
                }
                Some(Event { process, what, arguments: None }) => {
                    *self.lives.entry((process, what)).or_default() += 1;
                }
                None => is_known = false,
            }
        });
        match is_known {
            true => Ok(()),
            false => Err(io::Error::other("the ring buffer holds an event of another length")),
        }
    }

    /// Reads events until all are here that were counted: another CPU may still write one.
    fn read_all_events(&mut self) -> io::Result<Counts> {
        let deadline = Instant::now() + LAST_EVENTS;
        loop {
            let counts = self.counts()?;
            let counted = counts.counted + counts.of_worker + counts.of_launcher;
            if self.ring.is_none() || counted == counts.delivered + counts.dropped {
                return Ok(counts);
            }
            if Instant::now() > deadline {
                return Err(io::Error::other(format!(
                    "{counted} events were counted, but {} were delivered and {} dropped",
                    counts.delivered, counts.dropped
                )));
            }
            std::thread::sleep(Duration::from_millis(1));
            self.read_events()?;
        }
    }

    fn obey(&mut self, order: &Order) -> io::Result<Answer> {
        self.attached.clear();
        let counts = self.read_all_events()?;
        match order {
            Order::Begin { is_attached } => {
                self.before = counts;
                self.lives.clear();
                for program in self.programs.iter().filter(|_| *is_attached) {
                    self.attached.push(program.hook.attach(&program.loaded)?);
                }
                Ok(Answer::Ready)
            }
            Order::End { process } => {
                let number = |moment: Moment| {
                    self.lives.get(&(*process, moment as u64)).copied().unwrap_or(0)
                };
                let (execs, exits) = (number(Moment::Exec), number(Moment::Exit));
                Ok(Answer::Counts(Counts { execs, exits, ..counts.since(self.before)? }))
            }
        }
    }

    fn counts(&self) -> io::Result<Counts> {
        let mut missed = 0;
        for program in &self.programs {
            missed += kernel::misses(&program.loaded)?;
        }
        let sum = |counter: Counter| kernel::sum(&self.counters, counter as u32);
        Ok(Counts {
            counted: sum(Counter::Counted)?,
            of_worker: sum(Counter::Worker)?,
            of_launcher: sum(Counter::Launcher)?,
            dropped: sum(Counter::Dropped)?,
            delivered: self.delivered,
            delivered_proofs: self.delivered_proofs,
            missed,
            execs: 0,
            exits: 0,
        })
    }
}

/// A program knows a process by its number in the initial PID namespace.
fn check_namespace() -> io::Result<()> {
    const FILE: &str = "/proc/self/ns/pid";
    match fs::metadata(FILE)?.ino() == INITIAL_PIDS {
        true => Ok(()),
        false => Err(io::Error::other(
            "BPF events need the initial PID namespace: run weigh on the host, not in a container",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_describes_its_types_has_what_tells_a_file() {
        if !fs::exists("/sys/kernel/btf/vmlinux").unwrap() {
            return;
        }
        let found = inode_offsets().unwrap();
        assert_ne!(found.number_of_inode, found.file_system_of_inode);
    }

    #[test]
    fn a_counter_that_fell_is_an_error() {
        let counts = |counted| Counts { counted, ..Counts::default() };
        assert_eq!(counts(9).since(counts(7)).unwrap(), counts(2));
        let problem = counts(7).since(counts(9)).unwrap_err().to_string();
        assert!(problem.contains("fell from 9 to 7"), "{problem}");
    }
}
