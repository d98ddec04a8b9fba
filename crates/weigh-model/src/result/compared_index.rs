//! A suite's index in a comparison: the geometric mean of the effects on its workloads, with a verdict.

use serde::{Deserialize, Serialize};

use crate::format;
use crate::format::quoted;
use crate::result::work_name::WorkName;
use paired::judge::MIN_PAIRS;
use paired::{Verdict, Withheld};

/// How a treatment changes the index of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedIndex {
    pub suite: String,
    pub treatment: String,
    /// How many of each workload ran at the same time.
    pub copies: usize,
    /// Number of workloads in the mean.
    pub workloads: usize,
    /// Treated index over the baseline's − 1, in per cent: negative is slower.
    pub effect_pct: f64,
    /// The interval of the effect; `None` where it is not bounded.
    pub low_pct: Option<f64>,
    pub high_pct: Option<f64>,
    pub verdict: Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
    pub within_margin: bool,
    /// Number of rounds; each has a pair of every workload.
    pub rounds: usize,
    /// Workloads whose own verdict contradicts this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opposite: Vec<WorkName>,
}

impl ComparedIndex {
    /// States the verdict, and which workloads the mean hides.
    pub fn sentence(&self, margin_pct: f64) -> String {
        let copies = match self.copies {
            1 => String::new(),
            copies => format!(" with {copies} copies"),
        };
        let name =
            format!("Index of {}{copies} under {}", quoted(&self.suite), quoted(&self.treatment));
        let mean = format!("geometric mean of {}", format::plural(self.workloads, "workload"));
        let rounds = format::plural(self.rounds, "round");
        if self.rounds < MIN_PAIRS {
            return format!("{name}: no verdict ({rounds} of at least {MIN_PAIRS}).");
        }
        let verdict = match self.withheld {
            Some(withheld) => format!("no verdict, as {}", format::doubt(withheld.because)),
            None => format::verdict(self.verdict, self.within_margin, margin_pct),
        };
        let effect = format::percent(self.effect_pct);
        let interval = format::interval(self.low_pct, self.high_pct);
        let names: Vec<String> = self.opposite.iter().map(quoted).collect();
        let opposite = match (names.is_empty(), self.verdict) {
            (true, _) => String::new(),
            (false, Verdict::Slower) => format!(", although {} got faster", names.join(", ")),
            (false, Verdict::Faster) => format!(", although {} got slower", names.join(", ")),
            (false, _) => format!(", although {} changed", names.join(", ")),
        };
        format!("{name}: {verdict}, {effect} {interval} ({mean}, {rounds}){opposite}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_what_the_mean_hides() {
        let mut index = ComparedIndex {
            suite: "unixbench".into(),
            treatment: "seccomp".into(),
            copies: 1,
            workloads: 12,
            effect_pct: -3.2,
            low_pct: Some(-4.0),
            high_pct: Some(-2.5),
            verdict: Verdict::Slower,
            withheld: None,
            within_margin: false,
            rounds: 20,
            opposite: vec!["pipe".into(), "execl".into()],
        };
        assert_eq!(
            index.sentence(1.0),
            "Index of `unixbench` under `seccomp`: slower, −3.20 % [−4.00, −2.50] (geometric mean of 12 \
             workloads, 20 rounds), although `pipe`, `execl` got faster."
        );
        index.rounds = 7;
        assert_eq!(
            index.sentence(1.0),
            "Index of `unixbench` under `seccomp`: no verdict (7 rounds of at least 8)."
        );
    }
}
