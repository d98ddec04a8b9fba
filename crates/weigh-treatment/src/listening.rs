//! The side of `weigh`: starts a listener, and has it listen for the length of a sample.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::TreatmentError;
use weigh_host::lines::{LinesError, PROMPTLY};
use weigh_host::machine::cpu_time;
use weigh_host::own_program::{self, Helper};
use weigh_sensor::events::listener::{Answer, Counts, Order, SUBCOMMAND, Wanted};

const WAKE_EVERY: Duration = Duration::from_millis(500);

/// A listener that runs, and ends when this is dropped.
pub struct Listening {
    /// The first field, as it is dropped first: its thread must not signal a process that was reaped.
    _waker: Option<Waker>,
    helper: Helper,
    /// Sends the events.
    sender: &'static str,
    interrupted: Arc<AtomicBool>,
    cpu_before_ns: Option<u64>,
}

impl Listening {
    pub fn start(
        wanted: &Wanted,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Listening, TreatmentError> {
        let sender = wanted.sender();
        let unavailable = |error: io::Error| {
            TreatmentError::Unavailable(format!("cannot start the listener of {sender}: {error}"))
        };
        let helper = Helper::start(own_program::command(SUBCOMMAND)).map_err(unavailable)?;
        let waker = wanted.wait().then(|| Waker::of(helper.pid())).transpose();
        let mut listening = Listening {
            _waker: waker.map_err(unavailable)?,
            helper,
            sender,
            interrupted: Arc::clone(interrupted),
            cpu_before_ns: None,
        };
        listening.helper.lines.send(wanted).map_err(unavailable)?;
        match listening.receive()? {
            Answer::Ready => Ok(listening),
            other => Err(listening.unexpected(other)),
        }
    }

    /// Counts from now on, with or without events.
    pub fn begin(&mut self, is_on: bool) -> Result<(), TreatmentError> {
        self.cpu_before_ns = cpu_time::of_process_ns(self.helper.pid());
        match self.ask(&Order::Begin { is_on })? {
            Answer::Ready => Ok(()),
            other => Err(self.unexpected(other)),
        }
    }

    /// Switches the events off. Returns those since [`Listening::begin`], and the CPU time in seconds that
    /// they took the listener.
    pub fn end(&mut self, processes: Vec<u32>) -> Result<(Counts, Option<f64>), TreatmentError> {
        let counts = match self.ask(&Order::End { processes })? {
            Answer::Counts(counts) => counts,
            other => return Err(self.unexpected(other)),
        };
        let now_ns = cpu_time::of_process_ns(self.helper.pid());
        let both = now_ns.zip(self.cpu_before_ns);
        let cpu_s = both.map(|(now, before)| now.saturating_sub(before) as f64 / 1e9);
        Ok((counts, cpu_s))
    }

    fn ask(&mut self, order: &Order) -> Result<Answer, TreatmentError> {
        self.helper.lines.send(order).map_err(|error| self.silent(&error))?;
        self.receive()
    }

    fn receive(&mut self) -> Result<Answer, TreatmentError> {
        match self.helper.lines.receive(&self.interrupted, Instant::now() + PROMPTLY) {
            Ok(answer) => Ok(answer),
            Err(LinesError::Interrupted) => Err(TreatmentError::Interrupted),
            Err(other) => Err(self.silent(&other)),
        }
    }

    fn silent(&self, error: &dyn std::fmt::Display) -> TreatmentError {
        let sender = self.sender;
        TreatmentError::NotInForce(format!("the listener of {sender} does not answer: {error}"))
    }

    fn unexpected(&self, answer: Answer) -> TreatmentError {
        TreatmentError::NotInForce(match answer {
            Answer::Error(problem) => problem,
            Answer::Ready | Answer::Counts(_) => {
                let sender = self.sender;
                format!("the listener of {sender} answered something else than it was asked")
            }
        })
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
