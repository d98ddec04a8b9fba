//! Where the noise comes from: a simulated machine, or samples recorded on this one.

use paired::simulated::{self, Noise};

/// Gives the rates of identical launches, one after the other.
pub trait Machine {
    /// The rate of the next sample, in any one unit.
    fn rate(&mut self) -> f64;
    /// Seconds that a sample takes, launch and all.
    fn sample_s(&self) -> f64;
}

/// Seconds that a sample of a simulated machine is taken to last: 70 ms timed, 30 ms around it.
pub const SIMULATED_S: f64 = 0.1;

/// The noise of `crates/paired/src/simulated.rs`, with the name that the table gives it.
pub const NOISES: [(&str, Noise); 5] = [
    ("N0 white", Noise::White),
    ("N1 heavy tails", Noise::HeavyTailed),
    ("N2 tails, AR(1) drift", Noise::Wandering),
    ("N3 drift, bursts, warm-up", Noise::Drifting),
    ("period 2", Noise::Alternating),
];

/// A simulated machine.
pub struct Simulated(simulated::Machine);

impl Simulated {
    /// With the same seed the same rates.
    pub fn new(noise: Noise, seed: u64) -> Simulated {
        Simulated(simulated::Machine::new(noise, seed))
    }
}

impl Machine for Simulated {
    fn rate(&mut self) -> f64 {
        self.0.sample().exp()
    }

    fn sample_s(&self) -> f64 {
        SIMULATED_S
    }
}

/// Rates of identical launches of one workload, in the order measured.
#[derive(Clone, Debug)]
pub struct Trace {
    pub workload: String,
    pub rates: Vec<f64>,
    /// Seconds per sample, launch and all.
    pub sample_s: f64,
    /// True if each two rates are a pair whose processes were interleaved.
    pub interleaved: bool,
}

/// A trace from some place on; behind its end it begins again.
pub struct Replay<'a> {
    trace: &'a Trace,
    next: usize,
}

impl<'a> Replay<'a> {
    /// From sample `start` on, counted around the trace. What is a pair stays one.
    pub fn new(trace: &'a Trace, start: usize) -> Replay<'a> {
        let start = if trace.interleaved { start & !1 } else { start };
        Replay { trace, next: start % trace.rates.len() }
    }
}

impl Machine for Replay<'_> {
    fn rate(&mut self) -> f64 {
        let rate = self.trace.rates[self.next];
        self.next = (self.next + 1) % self.trace.rates.len();
        rate
    }

    fn sample_s(&self) -> f64 {
        self.trace.sample_s
    }
}
