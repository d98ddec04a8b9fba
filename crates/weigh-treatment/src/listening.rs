//! A listener for events of files or processes, and the quantities of those that can lose events.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::TreatmentError;
use crate::event_receiver::EventReceiver;
use weigh_model::evidence::Evidence;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_model::result::quantity::QuantityKind::{Arrived, Lost, Made, Spent};
use weigh_model::result::quantity::QuantityUnit::{Count, Seconds};
use weigh_sensor::events::listener::{Counts, Order, SUBCOMMAND, Wanted};

const WAKE_EVERY: Duration = Duration::from_millis(500);

/// A listener that runs, and ends when this is dropped.
pub struct Listening {
    /// The first field, as it is dropped first: its thread must not signal a process that was reaped.
    _waker: Option<Waker>,
    receiver: EventReceiver<Counts>,
}

impl Listening {
    pub fn start(
        wanted: &Wanted,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Listening, TreatmentError> {
        let name = format!("listener of {}", wanted.sender());
        // Nobody waits for it before the first sample begins.
        let receiver = EventReceiver::start(SUBCOMMAND, name, wanted, interrupted)?;
        let waker = wanted.wait().then(|| Waker::of(receiver.pid())).transpose();
        let waker = waker.map_err(|error| {
            TreatmentError::Unavailable(format!("cannot watch over the listener: {error}"))
        })?;
        Ok(Listening { _waker: waker, receiver })
    }

    /// Counts from now on, with or without events.
    pub fn begin(&mut self, is_on: bool) -> Result<(), TreatmentError> {
        self.receiver.begin(&Order::Begin { is_on })
    }

    /// Switches the events off. Returns those since [`Listening::begin`], and the CPU time in seconds that
    /// they took the listener.
    pub fn end(&mut self, processes: Vec<u32>) -> Result<(Counts, Option<f64>), TreatmentError> {
        self.receiver.end(&Order::End { processes })
    }
}

/// Quantities of a listener whose queue can be full.
pub struct ListenerQuantities {
    /// Events of all processes.
    made: EvidenceQuantity,
    arrived: EvidenceQuantity,
    lost: EvidenceQuantity,
    cpu: EvidenceQuantity,
}

impl ListenerQuantities {
    /// Quantities with these names. A reader calls the events `noun`.
    pub const fn new(
        noun: &'static str,
        [made, arrived, lost, cpu]: [&'static str; 4],
    ) -> ListenerQuantities {
        ListenerQuantities {
            made: EvidenceQuantity::new(made, noun, Count, Made, None),
            arrived: EvidenceQuantity::new(arrived, noun, Count, Arrived, None),
            lost: EvidenceQuantity::new(lost, noun, Count, Lost, Some(arrived)),
            cpu: EvidenceQuantity::new(cpu, "listener", Seconds, Spent, Some(made)),
        }
    }

    pub fn list(&self) -> Vec<EvidenceQuantity> {
        [&self.made, &self.arrived, &self.lost, &self.cpu].map(Clone::clone).to_vec()
    }

    /// Evidence of a sample, which has events only if it is treated.
    pub fn evidence(&self, is_treated: bool, counts: &Counts, cpu_s: Option<f64>) -> Evidence {
        match is_treated {
            true => Evidence::default()
                .with(&self.made, Some(counts.events))
                .with(&self.arrived, Some(counts.events))
                .with(&self.lost, Some(counts.lost))
                .with(&self.cpu, cpu_s),
            false => Evidence::default(),
        }
    }
}

/// Continues a listener that somebody stopped (SIGSTOP). Until it goes on, nobody can open a marked file,
/// not even `weigh` to restore the system; so a thread that opens nothing does this.
struct Waker {
    end: Option<Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Waker {
    fn of(pid: u32) -> io::Result<Waker> {
        let (end, ended) = mpsc::channel();
        let wake = move || {
            let listener = i32::try_from(pid).ok().and_then(Pid::from_raw);
            while let (Some(listener), Err(RecvTimeoutError::Timeout)) =
                (listener, ended.recv_timeout(WAKE_EVERY))
            {
                // One that has ended is not reaped before this thread has.
                let _ = kill_process(listener, Signal::CONT);
            }
        };
        let thread = std::thread::Builder::new().name("waker".into()).spawn(wake)?;
        Ok(Waker { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
