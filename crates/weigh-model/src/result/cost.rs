//! The effect in the words of the field: how many times as long an operation takes, and how much longer.
//!
//! Both follow from the baseline's typical rate and the effect, so every number of a row agrees with the
//! others: `treated = baseline × (1 + effect)`, `factor = 1 / (1 + effect)`, `added = (factor − 1) × time
//! per operation`.

use serde::{Deserialize, Serialize};

use crate::format;
use crate::result::work_name::WorkName;

/// Added cost of an operation; each number is absent where it has no meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AddedCost {
    /// Time that an operation takes under the treatment over that in the baseline: 2 is twice as long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Nanoseconds that the treatment adds to an operation, or to a run of a command; negative where it
    /// takes less. Absent where the rate is no number of operations per time (`KBps`, `MWIPS`), and of
    /// copies, which do many operations at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_ns_per_op: Option<f64>,
    /// Instructions that the treatment adds to an operation, where a path length is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_instructions_per_op: Option<f64>,
}

impl AddedCost {
    /// Computes the cost from a row's baseline rate in `unit` and the effect on it in per cent.
    pub fn of(workload: &WorkName, unit: &str, baseline: f64, effect_pct: f64) -> AddedCost {
        let factor = finite(1.0 / (1.0 + effect_pct / 100.0)).filter(|factor| *factor > 0.0);
        let time_ns = time_ns(workload, unit, baseline);
        let instructions = match unit {
            _ if workload.copies() > 1 => None,
            "ops/Ginstr" | "runs/Ginstr" => Some(1e9 / baseline),
            _ => None,
        };
        let added = |of_one: Option<f64>| {
            factor.zip(of_one).and_then(|(factor, one)| finite((factor - 1.0) * one))
        };
        let (added_ns_per_op, added_instructions_per_op) = (added(time_ns), added(instructions));
        AddedCost { factor, added_ns_per_op, added_instructions_per_op }
    }

    /// Returns true if the added time or instructions of an operation are known.
    pub fn has_added(&self) -> bool {
        self.added_ns_per_op.or(self.added_instructions_per_op).is_some()
    }

    /// Formats the factor and the addition, `×2.04` and `+112 ns`; an unknown one is empty.
    pub fn texts(&self) -> [String; 2] {
        [
            self.factor.map(format::factor).unwrap_or_default(),
            self.added_ns_per_op
                .map(format::added_ns)
                .or_else(|| self.added_instructions_per_op.map(format::added_instructions))
                .unwrap_or_default(),
        ]
    }
}

/// Returns the time of one operation at a rate in `unit`; `None` where it has no meaning.
pub fn time_ns(workload: &WorkName, unit: &str, rate: f64) -> Option<f64> {
    match unit {
        _ if workload.copies() > 1 => None,
        "ops/s" | "runs/s" => Some(1e9 / rate),
        "lpm" => Some(60e9 / rate),
        _ => None,
    }
}

/// The rate that follows from the baseline's and the effect.
pub fn treated(baseline: f64, effect_pct: f64) -> f64 {
    baseline * (1.0 + effect_pct / 100.0)
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_rate_is_twice_the_time() {
        let cost = AddedCost::of(&"getppid".into(), "ops/s", 1e6, -50.0);
        assert_eq!(
            cost,
            AddedCost { factor: Some(2.0), added_ns_per_op: Some(1000.0), ..AddedCost::default() }
        );
        assert_eq!(cost.texts(), ["×2.00", "+1.00 µs"]);
        let run = AddedCost::of(&"make".into(), "runs/s", 2.0, -20.0);
        assert_eq!(run.texts(), ["×1.25", "+125 ms"]);
        assert_eq!(
            AddedCost::of(&"shell1".into(), "lpm", 6000.0, 25.0).texts(),
            ["×0.80", "−2.00 ms"]
        );
    }

    #[test]
    fn of_a_path_length_the_cost_is_in_instructions() {
        let cost = AddedCost::of(&"getppid".into(), "ops/Ginstr", 1e6, -50.0);
        assert_eq!((cost.added_ns_per_op, cost.added_instructions_per_op), (None, Some(1000.0)));
        assert_eq!(cost.texts(), ["×2.00", "+1,000 instr"]);
    }

    #[test]
    fn what_has_no_operations_has_a_factor_only() {
        for (name, unit) in
            [("fstime", "KBps"), ("whetstone", "MWIPS"), ("getppid:copies=2", "ops/s")]
        {
            let cost = AddedCost::of(&WorkName::parse(name).unwrap()[0], unit, 1e6, -50.0);
            assert_eq!((cost.factor, cost.added_ns_per_op), (Some(2.0), None), "{name}");
        }
        for odd in [f64::NAN, -100.0, f64::NEG_INFINITY, f64::INFINITY] {
            assert_eq!(
                AddedCost::of(&"a".into(), "ops/s", 1e6, odd),
                AddedCost::default(),
                "{odd}"
            );
        }
        assert_eq!(AddedCost::of(&"a".into(), "ops/s", 0.0, -50.0).added_ns_per_op, None);
    }

    #[test]
    fn baseline_treated_and_effect_agree() {
        let treated = treated(469_012.0, -85.21);
        assert!((treated / 469_012.0 - 1.0 + 0.8521).abs() < 1e-12);
        let cost = AddedCost::of(&"syscall".into(), "ops/s", 469_012.0, -85.21);
        let added = 1e9 / treated - 1e9 / 469_012.0;
        assert!((cost.added_ns_per_op.unwrap() - added).abs() < 1e-6 * added);
    }
}
