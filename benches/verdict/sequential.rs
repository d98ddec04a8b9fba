//! The other tools' way: all passes of A, then all of B, then one look.

use std::cmp::Ordering;

use crate::machine::Machine;
use crate::rules::{self, Rule};

/// A tool: its rule, and how much it measures per system.
pub struct Tool {
    pub name: &'static str,
    pub rule: Rule,
    pub passes: usize,
    /// A pass that lasts 10 s, as UnixBench's; else one sample is a pass.
    pub is_long: bool,
}

/// The tools, in the order of the table.
pub const TOOLS: [Tool; 5] = [
    Tool { name: "UnixBench, 3 passes", rule: rules::unixbench::differs, passes: 3, is_long: true },
    Tool {
        name: "UnixBench, 10 passes",
        rule: rules::unixbench::differs,
        passes: 10,
        is_long: true,
    },
    Tool { name: "hyperfine", rule: rules::hyperfine::differs, passes: 20, is_long: false },
    Tool { name: "benchstat", rule: rules::benchstat::differs, passes: 20, is_long: false },
    Tool { name: "Welch's t", rule: rules::welch::differs, passes: 20, is_long: false },
];

/// Length of UnixBench's shorter pass, in seconds.
const PASS_S: f64 = 10.0;

impl Tool {
    /// Samples of a pass where each takes `sample_s` and there are `available` for both systems.
    pub fn samples_per_pass(&self, sample_s: f64, available: usize) -> usize {
        let wanted = if self.is_long { (PASS_S / sample_s) as usize } else { 1 };
        wanted.min(available / (2 * self.passes)).max(1)
    }

    /// Compares two systems whose ln(rate) differs by `effect`; returns the tool's answer about B
    /// and the seconds.
    pub fn compare(
        &self,
        machine: &mut dyn Machine,
        samples_per_pass: usize,
        effect: f64,
    ) -> (Option<Ordering>, f64) {
        let mut passes = |factor: f64| -> Vec<f64> {
            let mut pass = || {
                let rates: Vec<f64> = (0..samples_per_pass).map(|_| machine.rate()).collect();
                factor * rules::mean(&rates)
            };
            (0..self.passes).map(|_| pass()).collect()
        };
        let (a, b) = (passes(1.0), passes(effect.exp()));
        let samples = 2 * self.passes * samples_per_pass;
        ((self.rule)(&a, &b), samples as f64 * machine.sample_s())
    }
}
