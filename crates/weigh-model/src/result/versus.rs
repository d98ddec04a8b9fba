//! Commands against each other, by their times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::result::warning::Warning;
pub use crate::result::work_name::WORK;
use crate::result::work_name::WorkName;
use paired::Verdict;
use paired::estimate::median;

/// Returns the name of a row or a failure without its arm; for commands against each other, the
/// command.
pub fn name(workload: &WorkName, arm: &str) -> String {
    if workload.name == WORK { arm.to_owned() } else { workload.to_string() }
}

/// A workload in an arm: of commands against each other, the command.
pub fn name_in_arm(workload: &WorkName, arm: &str) -> String {
    match workload.name == WORK {
        true => arm.to_owned(),
        false => format!("{workload} under {arm}"),
    }
}

/// Among what a launch costs besides, in nanoseconds: that of a shell with nothing to do.
pub const SHELL_START_NS: &str = "shell_start_ns";
/// A shell that takes so much of a run is worth a warning.
const MOST_OF_IT: f64 = 0.5;

/// Additional results of an experiment of commands against each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Versus {
    /// Shell that executes the commands, as `/bin/sh -c`; absent where they are executed without a
    /// shell.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shell: Option<String>,
    /// How long that takes with nothing to do: part of the time of every run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shell_start_ms: Option<f64>,
    /// Number of runs of each command, if it was fixed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub runs: Option<usize>,
    /// Times of the commands in their order; without those that failed or report a rate of their own.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub commands: Vec<CommandTimes>,
    /// Commands that have a result, the fastest first; empty before the first result.
    pub ranking: Vec<Ranked>,
}

/// Times of the runs of a command, at least one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandTimes {
    /// Its label: the command, or its name.
    pub command: String,
    /// Values of the parameters in it, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub parameters: BTreeMap<String, String>,
    /// Every run in the order measured, in seconds.
    pub times_s: Vec<f64>,
    /// Mean CPU time of a run; absent where it is not known of every run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub system_s: Option<f64>,
    /// Exit status of each run.
    pub exit_codes: Vec<u8>,
    /// Peak memory of each run; empty where it is not known of every run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub peak_memory_bytes: Vec<u64>,
}

impl CommandTimes {
    pub fn mean_s(&self) -> f64 {
        self.times_s.iter().sum::<f64>() / self.times_s.len() as f64
    }

    /// Standard deviation of the runs; `None` of one run.
    pub fn deviation_s(&self) -> Option<f64> {
        let (mean, count) = (self.mean_s(), self.times_s.len());
        let squares: f64 = self.times_s.iter().map(|time| (time - mean).powi(2)).sum();
        (count > 1).then(|| (squares / (count - 1) as f64).sqrt())
    }

    pub fn median_s(&self) -> f64 {
        median(&self.times_s).unwrap_or(f64::NAN)
    }

    pub fn shortest_s(&self) -> f64 {
        self.times_s.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn longest_s(&self) -> f64 {
        self.times_s.iter().copied().fold(0.0, f64::max)
    }
}

/// A command, by its time over that of the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    pub command: String,
    /// How long a run takes; absent where the command reports a rate of its own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub run_ms: Option<f64>,
    /// 1 for the first command; 2 takes twice as long.
    pub times: f64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub times_low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub times_high: Option<f64>,
    /// Against the first command; absent of itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub verdict: Option<Verdict>,
}

impl Versus {
    /// Returns a warning if most of the measured time is the start of the shell.
    pub fn warning(&self) -> Option<Warning> {
        let (shell, start_ms) = (self.shell.clone()?, self.shell_start_ms?);
        let run_ms =
            self.ranking.iter().filter_map(|ranked| Some((ranked.run_ms?, &ranked.command)));
        let (run_ms, command) = run_ms.min_by(|one, other| one.0.total_cmp(&other.0))?;
        let command = command.clone();
        let is_most = start_ms >= run_ms * MOST_OF_IT;
        is_most.then_some(Warning::ShellStart { shell, start_ms, command, run_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_runs_are_summarised_as_hyperfine_does() {
        let mut times = CommandTimes {
            command: "a".into(),
            parameters: BTreeMap::new(),
            times_s: vec![0.1, 0.4, 0.1],
            user_s: None,
            system_s: None,
            exit_codes: vec![0; 3],
            peak_memory_bytes: Vec::new(),
        };
        let found = [times.mean_s(), times.deviation_s().unwrap(), times.median_s()];
        let wanted = [0.2, 0.03_f64.sqrt(), 0.1];
        assert!(found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-12));
        assert_eq!((times.shortest_s(), times.longest_s()), (0.1, 0.4));
        times.times_s.truncate(1);
        assert_eq!(times.deviation_s(), None);
    }

    #[test]
    fn a_start_that_is_most_of_the_shortest_run_is_a_warning() {
        let warning = |start_ms: f64| {
            let ranked = |command: &str, run_ms| Ranked {
                command: command.to_owned(),
                run_ms: Some(run_ms),
                times: 1.0,
                times_low: None,
                times_high: None,
                verdict: None,
            };
            let versus = Versus {
                shell: Some("/bin/sh -c".into()),
                shell_start_ms: Some(start_ms),
                runs: None,
                commands: Vec::new(),
                ranking: vec![ranked(":", 0.69), ranked("sleep 1", 1000.0)],
            };
            versus.warning()
        };
        assert_eq!(warning(0.3), None);
        let (shell, command) = ("/bin/sh -c".to_owned(), ":".to_owned());
        let most = Warning::ShellStart { shell, start_ms: 0.5, command, run_ms: 0.69 };
        assert_eq!(warning(0.5), Some(most));
    }
}
