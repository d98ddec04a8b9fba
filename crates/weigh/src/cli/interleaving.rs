//! `--interleave`: whether the two processes of a pair alternate on one CPU.

use clap::{Args, ValueEnum};

use weigh_engine::request;

/// When the two processes of a pair alternate on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Interleave {
    /// Where possible. A row changes to sequential pairs if a check rejects its interleaved pairs, or if
    /// sequential pairs need at most a quarter of the time for the same precision. With --factorial, all arms
    /// of a workload change together
    Auto,
    /// Where possible, and never change: a row whose interleaved pairs are rejected gets no verdict. Also
    /// with --pairs and latencies. Warn about rows that cannot be interleaved
    On,
    /// Never: the samples of a pair run one after the other (sequential pairs)
    Off,
}

/// The option of all commands that compare arms by pairs.
#[derive(Debug, Args)]
pub struct Interleaving {
    /// Alternate the two processes of each pair on one CPU every 125 microseconds (interleaved pairs), and
    /// compare the medians of these time slices. Possible for workloads on one CPU, and treatments that only
    /// change what their own process does: seccomp, but not nice, cpus or sysctl (docs/interleaving.md)
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Interleave::Auto)]
    #[arg(hide_short_help = true)]
    pub interleave: Interleave,
}

impl Interleaving {
    /// For whole commands. Those that wait have no interleaved pairs, and only sequential pairs show that.
    ///
    /// # Errors
    /// A sentence, where sequential pairs are excluded.
    pub fn of_commands(&self) -> Result<request::Interleave, String> {
        if self.interleave == Interleave::On {
            return Err("--interleave=on: commands need sequential pairs, which show whether they wait. Leave \
                        the option out: CPU-bound commands are interleaved"
                .into());
        }
        Ok(self.requested())
    }

    /// As a request has it.
    pub fn requested(&self) -> request::Interleave {
        match self.interleave {
            Interleave::Auto => request::Interleave::PilotChooses,
            Interleave::On => request::Interleave::WherePossible,
            Interleave::Off => request::Interleave::Never,
        }
    }
}
