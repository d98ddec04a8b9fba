//! Noise that has a time scale: what disturbs the machine lasts so many milliseconds. Pairs are taken in
//! sequence, 20 ms each, or in turns, as `workloads/driver/turns.c` does, with slices four times as long.
//!
//! ln(rate) is an Ornstein–Uhlenbeck process, looked at every half millisecond. Each look has noise of its
//! own, and each process the luck of its layout.

use paired::estimate::median;
use paired::simulated::{self, Noise};

use crate::machine::Machine;

/// How long the noise lasts, in milliseconds.
pub const TIME_SCALES_MS: [f64; 4] = [0.1, 1.0, 10.0, 100.0];
/// Scatter of the process, of a look and of a layout, as standard deviations of ln(rate).
const DISTURBED: f64 = 0.05;
const LOOK: f64 = 0.01;
const LAYOUT: f64 = 0.001;
const SLICE_MS: f64 = 0.5;
/// Number of slices in each sample.
const SLICES: usize = 40;
/// Between two samples in sequence, and before a pair.
const LAUNCH_MS: f64 = 10.0;

/// A machine whose samples come in pairs.
pub struct InTime {
    /// Draws normal numbers.
    random: simulated::Machine,
    time_scale_ms: f64,
    interleaved: bool,
    /// ln(rate) as it is disturbed now.
    disturbed: f64,
    /// The second sample of a pair that has begun.
    second: Option<f64>,
}

impl InTime {
    pub fn new(time_scale_ms: f64, interleaved: bool, seed: u64) -> InTime {
        let random = simulated::Machine::new(Noise::White, seed);
        InTime { random, time_scale_ms, interleaved, disturbed: 0.0, second: None }
    }

    fn normal(&mut self) -> f64 {
        self.random.sample() / 0.01
    }

    /// After so many milliseconds.
    fn go_on(&mut self, ms: f64) {
        let kept = (-ms / self.time_scale_ms).exp();
        let new = DISTURBED * (1.0 - kept * kept).sqrt();
        self.disturbed = kept * self.disturbed + new * self.normal();
    }

    fn look(&mut self) -> f64 {
        self.go_on(SLICE_MS);
        self.disturbed + LOOK * self.normal()
    }

    /// ln(rate) of both samples of a pair.
    fn pair(&mut self) -> [f64; 2] {
        self.go_on(LAUNCH_MS);
        let layouts = [LAYOUT * self.normal(), LAYOUT * self.normal()];
        if self.interleaved {
            let ratios: Vec<f64> = (0..SLICES).map(|_| -self.look() + self.look()).collect();
            return [layouts[0], layouts[1] + median(&ratios).unwrap_or_default()];
        }
        layouts.map(|layout| {
            self.go_on(LAUNCH_MS);
            layout + (0..SLICES).map(|_| self.look()).sum::<f64>() / SLICES as f64
        })
    }
}

impl Machine for InTime {
    fn rate(&mut self) -> f64 {
        match self.second.take() {
            Some(second) => second.exp(),
            None => {
                let [first, second] = self.pair();
                self.second = Some(second);
                first.exp()
            }
        }
    }

    fn sample_s(&self) -> f64 {
        (SLICES as f64 * SLICE_MS + LAUNCH_MS) / 1e3
    }
}
