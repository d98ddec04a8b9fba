//! A sensor with BPF programs, and whether the kernel takes these.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::event_receiver::EventReceiver;
use crate::{Probe, TreatmentError};
use weigh_sensor::bpf::sensor::{Counts, Order, SUBCOMMAND, Sensing, Sensor, try_to_load};

/// A sensor that ends when this is dropped.
pub struct Running(EventReceiver<Counts>);

impl Running {
    pub fn start(
        sensing: &Sensing,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Running, TreatmentError> {
        EventReceiver::start(SUBCOMMAND, "BPF sensor".into(), sensing, interrupted).map(Running)
    }

    /// Counts from now on, with or without programs that run.
    pub fn begin(&mut self, is_attached: bool) -> Result<(), TreatmentError> {
        self.0.begin(&Order::Begin { is_attached })
    }

    /// Lets no program run any longer. Returns the numbers since [`Running::begin`], and the CPU time in
    /// seconds that they took the sensor.
    pub fn end(&mut self, process: u32) -> Result<(Counts, Option<f64>), TreatmentError> {
        self.0.end(&Order::End { process })
    }
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
