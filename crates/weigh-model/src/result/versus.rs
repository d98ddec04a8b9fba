//! Commands against each other, by their times.

use serde::{Deserialize, Serialize};

use crate::result::warning::Warning;
use crate::result::work_name::WorkName;
use paired::Verdict;

/// Name of the work of a command that is an arm, in rows and failures.
pub const WORK: &str = "command";

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
    /// Commands that have a result, the fastest first; empty before the first result.
    pub ranking: Vec<Ranked>,
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
