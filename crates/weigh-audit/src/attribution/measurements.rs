//! Questions about a set of rules, the measurements that answer them, and their sums.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::baseline_levels::BaselineLevels;
use super::cost_class::{CostClasses, RuleCosts, Weights};
use super::cost_meter::{sum, weighted_sum};
use super::loaded_rules::RuleId;
use super::mix::{self, Mix};
use super::operation::Operation;
use linux_audit::rule::Rule;
use linux_audit::rule_fields::Decoded;
use linux_audit::rule_set;
use weigh_model::facts::Facts;
use weigh_model::result::rules::{
    CostInterval, CostMetric, Matched, NotMeasured, Rewrite, Standing,
};
use weigh_model::result::warning::Warning;
use weigh_treatment::TreatmentError;

pub struct Question {
    /// In the order of loading: by block where the order does not matter to the kernel.
    pub rules: Vec<RuleId>,
    pub order_matters: bool,
    pub classes: CostClasses,
    pub weights: Weights,
    /// How many of the most expensive rules are left out for confirmation.
    pub top: usize,
    pub time: Duration,
    /// By how much the least number of pairs may outlast that.
    pub grace: Duration,
}

impl Question {
    pub fn without(&self, rule: RuleId) -> Vec<RuleId> {
        self.rules.iter().copied().filter(|other| *other != rule).collect()
    }

    /// Puts rules in the order in which they are loaded, where that matters to the kernel.
    pub fn put_in_order(&self, rules: &mut Vec<RuleId>) {
        if self.order_matters {
            let wanted: BTreeSet<RuleId> = rules.drain(..).collect();
            rules.extend(self.rules.iter().filter(|rule| wanted.contains(rule)));
        }
    }
}

#[derive(Debug)]
pub struct Attribution {
    pub costs: RuleCosts,
    pub standing: BTreeMap<RuleId, Standing>,
    /// Saving from leaving out a contradicted rule, per system call of the mix.
    pub gave_back: BTreeMap<RuleId, CostInterval>,
    /// Rules that the time did not suffice to leave out.
    pub unchecked: Option<Unchecked>,
    /// Per operation: all rules together.
    pub total: Vec<CostInterval>,
    /// How long a pair without and with all rules takes.
    pub pair: Duration,
    /// The user ended it before all was confirmed.
    pub is_cut_short: bool,
    /// Any other failure that ended it early; results until then are kept.
    pub failure: Option<TreatmentError>,
}

/// The rules without a second measurement.
#[derive(Debug)]
pub struct Unchecked {
    pub rules: Vec<RuleId>,
    /// How long the second measurement of all rules that should have one takes at least.
    pub takes: Duration,
}

impl Attribution {
    /// Per system call of the mix, of one rule.
    pub fn per_syscall(&self, rule: RuleId, weights: &Weights) -> CostInterval {
        weighted_sum(&self.costs.of_rule(rule), &weights[&rule])
    }
}

pub struct MeasuredRule {
    /// As the files have it.
    pub rule: Rule,
    pub id: RuleId,
    /// Rule that is loaded to measure the cost without a match. It is the rule itself, or its
    /// non-matching clone if the rule matches us. Attributed costs are found under this ID.
    pub measured_as: RuleId,
    /// The rule that is measured in its place.
    pub decoded: Decoded,
    pub matches: Vec<Operation>,
    /// `None` of a rule that makes no records, and where it was not measured any more.
    pub matched: Option<Matched>,
}

/// All that was measured, rules in the order of measuring.
pub struct RuleMeasurements {
    pub rules: Vec<MeasuredRule>,
    pub levels: BaselineLevels,
    /// Levels by the clock, if the metric is not clock time.
    pub elapsed: Option<BaselineLevels>,
    pub attribution: Attribution,
    pub mix: Mix,
    /// The system calls of one `exec`.
    pub exec: Mix,
    pub weights: Weights,
    pub rewrites: Vec<Rewrite>,
    pub not_measured: Vec<NotMeasured>,
    pub lines: Vec<rule_set::RuleLine>,
    pub host: String,
    /// How many rules the host has of its own, which stay in force.
    pub host_rules: usize,
    pub metric: CostMetric,
    pub machine: Facts,
    /// See [`RuleReport::warnings`](weigh_model::result::rules::RuleReport::warnings).
    pub warnings: Vec<Warning>,
    pub is_cut_short: bool,
    pub elapsed_s: f64,
}

impl RuleMeasurements {
    /// Unwraps the result of one more measurement. A failure goes into the report, and does not
    /// affect known results.
    pub fn missing<T>(
        &mut self,
        what: &str,
        result: Result<T, TreatmentError>,
    ) -> Result<Option<T>, TreatmentError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(TreatmentError::Interrupted) => Err(TreatmentError::Interrupted),
            Err(error) => {
                self.not_measured.push(NotMeasured { what: what.into(), why: error.to_string() });
                Ok(None)
            }
        }
    }

    pub fn measured_as(&self) -> impl Iterator<Item = RuleId> {
        self.rules.iter().map(|rule| rule.measured_as)
    }

    /// Per system call of the mix.
    pub fn per_syscall(&self, rule: &MeasuredRule) -> CostInterval {
        self.attribution.per_syscall(rule.measured_as, &self.weights)
    }
}

/// Cost of all rules together per system call of the mix, as measured with all of them loaded.
pub struct Total {
    pub total: CostInterval,
    pub total_ns: CostInterval,
    pub armed: CostInterval,
    /// Cost to which the lines should add up.
    pub of_lines: f64,
    /// By [`Operation::ALL`]: of a system call of the mix.
    pub weights: Vec<f64>,
}

impl Total {
    pub fn of(measured: &RuleMeasurements) -> Total {
        let attribution = &measured.attribution;
        let weights = measured.mix.weights();
        // Processes and programs that are started have a price of their own.
        let starts = mix::beyond_their_likes(&measured.mix, &measured.exec);
        let mut with_starts = starts.clone();
        with_starts.iter_mut().zip(&weights).for_each(|(sum, weight)| *sum += weight);
        // A host that audits already has paid for the first rule.
        let is_armed_anyway = measured.host_rules > 0;
        let armed = match is_armed_anyway {
            true => CostInterval::default(),
            false => measured.levels.armed(&with_starts),
        };
        let of_rules = weighted_sum(&attribution.total, &weights);
        let of_starts = measured.levels.rules(&starts);
        let correction = correction(measured, &measured.mix.without(mix::is_start));
        let total = plus(sum([of_rules, of_starts, armed]), correction);
        let total_ns = match &measured.elapsed {
            None => total,
            Some(elapsed) => {
                let all = match is_armed_anyway {
                    true => elapsed.rules(&with_starts),
                    false => elapsed.full(&with_starts),
                };
                plus(all, correction * all.value / (total.value - correction))
            }
        };
        let of_lines = of_rules.value + self::correction(measured, &measured.mix);
        Total { total, total_ns, armed, of_lines, weights: with_starts }
    }
}

/// Returns the correction for calls of a profile that a rule treats differently from their most
/// similar operation. The costs of the lines determine it.
fn correction(measured: &RuleMeasurements, mix: &Mix) -> f64 {
    let together = measured.attribution.costs.together();
    let total = |weights: &dyn Fn(&MeasuredRule) -> Vec<f64>| {
        let of_rule = |rule: &MeasuredRule| (rule.measured_as, weights(rule));
        let weights: Weights = measured.rules.iter().map(of_rule).collect();
        together.total(measured.measured_as(), &weights).value
    };
    let alike = mix.weights();
    total(&|rule| mix.weights_for(&rule.decoded)) - total(&|_| alike.clone())
}

fn plus(cost: CostInterval, shift: f64) -> CostInterval {
    CostInterval { value: cost.value + shift, low: cost.low + shift, high: cost.high + shift }
}
