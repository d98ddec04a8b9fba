//! Costs of an operation at three levels: without an audit context, with a context and a rule for
//! nobody, and with all rules.

use super::cost_meter::{ProgressFn, centre};
use super::loaded_rules::RuleId;
use super::operation::Operation;
use super::rig::{CostUnit, Rig};
use weigh_model::result::rules::CostInterval;
use weigh_treatment::TreatmentError;

const ROUNDS: usize = 16;

/// By operation of [`Operation::ALL`], round after round, so that what drifts is in all levels alike.
#[derive(Clone, Debug, Default)]
pub struct BaselineLevels {
    clean: Vec<Vec<f64>>,
    armed: Vec<Vec<f64>>,
    full: Vec<Vec<f64>>,
}

impl BaselineLevels {
    /// Measures all operations at all levels, in this unit.
    pub fn measure(
        rig: &mut Rig,
        all: &[RuleId],
        unit: CostUnit,
        progress: ProgressFn,
    ) -> Result<BaselineLevels, TreatmentError> {
        let none = || vec![Vec::new(); Operation::ALL.len()];
        let mut levels = BaselineLevels { clean: none(), armed: none(), full: none() };
        for round in 0..ROUNDS {
            progress("without rules, and with all", round as f64 / ROUNDS as f64);
            rig.rules.load(&[])?;
            push(&mut levels.clean, rig.measure_exempt(&Operation::ALL, unit)?);
            push(&mut levels.armed, rig.measure_audited(&Operation::ALL, unit)?);
            rig.rules.load(all)?;
            push(&mut levels.full, rig.measure_audited(&Operation::ALL, unit)?);
        }
        Ok(levels)
    }

    /// Clean, armed and full, of an operation.
    pub fn of_operation(&self, operation: usize) -> [CostInterval; 3] {
        [&self.clean, &self.armed, &self.full].map(|level| centre(&level[operation]))
    }

    /// Per system call of a mix, what any rule at all adds.
    pub fn armed(&self, weights: &[f64]) -> CostInterval {
        added(&self.clean, &self.armed, weights)
    }

    /// Per system call of a mix, what all rules add to that.
    pub fn rules(&self, weights: &[f64]) -> CostInterval {
        added(&self.armed, &self.full, weights)
    }

    /// Per system call of a mix, what all rules add to no auditing.
    pub fn full(&self, weights: &[f64]) -> CostInterval {
        added(&self.clean, &self.full, weights)
    }
}

fn push(level: &mut [Vec<f64>], costs: Vec<f64>) {
    level.iter_mut().zip(costs).for_each(|(values, cost)| values.push(cost));
}

/// The difference of two levels, by round, weighted.
fn added(below: &[Vec<f64>], above: &[Vec<f64>], weights: &[f64]) -> CostInterval {
    let of_round = |round: usize| -> f64 {
        let operations = below.iter().zip(above).zip(weights);
        operations.map(|((below, above), weight)| weight * (above[round] - below[round])).sum()
    };
    let rounds = below.first().map_or(0, Vec::len);
    centre(&(0..rounds).map(of_round).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_compared_round_by_round() {
        let drift =
            |start: f64| vec![(0..16).map(|round| start + 10.0 * f64::from(round)).collect()];
        let levels =
            BaselineLevels { clean: drift(100.0), armed: drift(130.0), full: drift(150.0) };
        let (armed, full) = (levels.armed(&[0.5]), levels.full(&[0.5]));
        assert_eq!((armed.value, armed.low, armed.high), (15.0, 15.0, 15.0));
        assert_eq!((full.value, levels.rules(&[0.5]).value), (25.0, 10.0));
        assert_eq!(levels.of_operation(0)[0].value, 175.0);
    }
}
