//! `--interleave`: whether the two processes of a pair alternate on one CPU.

use clap::{Args, ValueEnum};

use weigh_model::workload::metric::Metric;

/// When the two processes of a pair alternate on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Interleave {
    /// Where possible, unless the first pairs of a row show that sequential pairs are four times as
    /// precise, or that interleaved pairs are not valid
    Auto,
    /// Where possible
    On,
    /// Never: one sample runs after the other
    Off,
}

/// The option of all commands that compare arms by pairs.
#[derive(Debug, Args)]
pub struct Interleaving {
    /// Alternate the two processes of each pair on one CPU every 125 microseconds, and compare the
    /// medians of their slices. Possible for workloads on one CPU, under treatments of processes such
    /// as seccomp
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Interleave::Auto)]
    pub interleave: Interleave,
}

impl Interleaving {
    /// Returns true if the first pairs of each row choose.
    pub fn is_chosen_by_pilot(&self) -> bool {
        self.interleave == Interleave::Auto
    }

    /// Returns the metric that rows are judged by besides, if all pairs that can be are interleaved.
    ///
    /// A request in which nothing is chosen has interleaved pairs exactly if it has this metric.
    pub fn metric(&self) -> Option<Metric> {
        (self.interleave == Interleave::On).then_some(Metric::OverallRate)
    }
}
