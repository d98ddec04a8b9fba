//! The side of `weigh`: starts a sensor, and has it run for the length of a sample.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::{Probe, TreatmentError};
use weigh_host::lines::{LinesError, PROMPTLY};
use weigh_host::machine::cpu_time;
use weigh_host::own_program::{self, Helper};
use weigh_sensor::bpf::sensor::{Answer, Counts, Order, SUBCOMMAND, Sensing, Sensor, try_to_load};

/// A sensor that ends when this is dropped.
pub struct Running {
    helper: Helper,
    interrupted: Arc<AtomicBool>,
    cpu_before_ns: Option<u64>,
}

impl Running {
    pub fn start(
        sensing: &Sensing,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Running, TreatmentError> {
        let unavailable = |error: io::Error| {
            TreatmentError::Unavailable(format!("cannot start the sensor: {error}"))
        };
        let helper = Helper::start(own_program::command(SUBCOMMAND)).map_err(unavailable)?;
        let mut running =
            Running { helper, interrupted: Arc::clone(interrupted), cpu_before_ns: None };
        running.helper.lines.send(sensing).map_err(unavailable)?;
        match running.receive()? {
            Answer::Ready => Ok(running),
            other => Err(unexpected(other)),
        }
    }

    /// Counts from now on, with or without programs that run.
    pub fn begin(&mut self, is_attached: bool) -> Result<(), TreatmentError> {
        self.cpu_before_ns = cpu_time::of_process_ns(self.helper.pid());
        match self.ask(&Order::Begin { is_attached })? {
            Answer::Ready => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Lets no program run any longer. Returns the numbers since [`Running::begin`], and the CPU time in
    /// seconds that they took the sensor.
    pub fn end(&mut self, process: u32) -> Result<(Counts, Option<f64>), TreatmentError> {
        let counts = match self.ask(&Order::End { process })? {
            Answer::Counts(counts) => counts,
            other => return Err(unexpected(other)),
        };
        let now_ns = cpu_time::of_process_ns(self.helper.pid());
        let both = now_ns.zip(self.cpu_before_ns);
        let cpu_s = both.map(|(now, before)| now.saturating_sub(before) as f64 / 1e9);
        Ok((counts, cpu_s))
    }

    fn ask(&mut self, order: &Order) -> Result<Answer, TreatmentError> {
        self.helper.lines.send(order).map_err(|error| silent(&error))?;
        self.receive()
    }

    fn receive(&mut self) -> Result<Answer, TreatmentError> {
        match self.helper.lines.receive(&self.interrupted, Instant::now() + PROMPTLY) {
            Ok(answer) => Ok(answer),
            Err(LinesError::Interrupted) => Err(TreatmentError::Interrupted),
            Err(other) => Err(silent(&other)),
        }
    }
}

fn silent(error: &dyn std::fmt::Display) -> TreatmentError {
    TreatmentError::NotInForce(format!("the BPF sensor does not answer: {error}"))
}

fn unexpected(answer: Answer) -> TreatmentError {
    TreatmentError::NotInForce(match answer {
        Answer::Error(problem) => problem,
        Answer::Ready | Answer::Counts(_) => {
            "the BPF sensor answered something else than it was asked".into()
        }
    })
}

/// Tries if the kernel takes the programs of a sensor, and changes nothing.
pub fn probe(sensing: &Sensing) -> Probe {
    let Err(error) = try_to_load(sensing) else { return Probe::Available };
    let counter = Sensing { sensor: Sensor::Counter, proof: sensing.proof.clone() };
    match error.raw_os_error() {
        Some(libc::EPERM) if try_to_load(&counter).is_ok() => Probe::Broken(
            "this kernel takes BPF programs, but refuses one of this kind, even from root; try \
             another form of `bpf`"
                .into(),
        ),
        Some(libc::EPERM) => {
            Probe::NeedsRoot("BPF needs root (CAP_BPF and CAP_PERFMON); use sudo".into())
        }
        Some(libc::ENOSYS) => Probe::Broken("this kernel lacks BPF (CONFIG_BPF_SYSCALL)".into()),
        Some(_) => Probe::Broken(format!("cannot load a BPF program: {error}")),
        None => Probe::Broken(error.to_string()),
    }
}
