//! Outliers: rules that do not cost what the others of their cost class do. Toggling every rule by itself at
//! the end of the list tells which may be some; leaving those out one by one, whether they are, and whether
//! the rules of a block cost one by one what they cost together.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::cost_class::{BlockId, RuleCosts};
use super::cost_meter::{CostMeter, Differences, ProgressFn, centre, centre_at, weighted_sum};
use super::loaded_rules::RuleId;
use super::measurements::Question;
use paired::estimate::{MAD_TO_SD, mad, median};
use weigh_model::result::rules::CostInterval;
use weigh_treatment::TreatmentError;

/// Tolerance between the saving from leaving a rule out and the cost shown for it, in the metric or
/// as a share.
const SLACK: f64 = 0.1;
const SLACK_SHARE: f64 = 0.03;

const PAIRS: usize = 6;
/// With fewer, it finds nothing but noise.
const LEAST_PAIRS: usize = 4;
/// A rule's own toggles are few: only what is this many standard errors off is looked at again. Of
/// 350 rules on five operations, chance alone sends less than one.
const FAR_OFF: f64 = 4.0;
/// Nor is anything looked at again that is this near to its class, in the metric and as a share of the
/// cost: counted instructions scatter so little that chance is no bound.
const NEAR: f64 = 0.5;
const NEAR_SHARE: f64 = 0.03;

/// The rules that are least like their classes, at most as many as are confirmed besides. What was
/// not reached within the time is taken for what its class is.
pub fn screen(
    meter: &mut impl CostMeter,
    question: &Question,
    costs: &RuleCosts,
    allowed: Duration,
    progress: ProgressFn,
) -> Result<Vec<RuleId>, TreatmentError> {
    let rules = question.rules.len();
    let begun = Instant::now();
    let mut pairs = PAIRS;
    let mut off: Vec<(RuleId, Vec<f64>)> = Vec::new();
    for (done, rule) in question.rules.iter().copied().enumerate() {
        let needed = begun.elapsed().mul_f64(rules as f64 / done.max(1) as f64);
        if done % 16 == 15 && needed > allowed {
            pairs = LEAST_PAIRS;
        }
        if begun.elapsed() > allowed {
            break;
        }
        progress("each rule separately", 0.5 + 0.2 * done as f64 / rules as f64);
        let without = question.without(rule);
        let mut with = without.clone();
        with.push(rule);
        question.put_in_order(&mut with);
        let seen = Differences::measure(meter, &without, &with, pairs)?;
        let medians = seen.by_operation.iter().map(|values| median(values).unwrap_or(0.0));
        let expected = costs.of_its_classes(rule);
        let each = medians.zip(expected).map(|(seen, expected)| seen - expected.value);
        off.push((rule, each.collect()));
    }
    Ok(farthest(&off, question, costs))
}

/// By rule and operation, how far each is off its class: those that are too far, the farthest first.
fn farthest(off: &[(RuleId, Vec<f64>)], question: &Question, costs: &RuleCosts) -> Vec<RuleId> {
    let spread = |operation: usize| {
        let column: Vec<f64> = off.iter().map(|(_, row)| row[operation]).collect();
        MAD_TO_SD * mad(&column).unwrap_or(0.0)
    };
    let spreads: Vec<f64> = (0..question.classes.operations()).map(spread).collect();
    let mut suspects: Vec<(RuleId, f64)> = Vec::new();
    for (rule, off) in off {
        let expected = costs.of_its_classes(*rule);
        let bounds_off = spreads.iter().enumerate().filter_map(|(operation, spread)| {
            let near = NEAR.max(NEAR_SHARE * expected[operation].value.abs());
            let times = off[operation].abs() / near.max(FAR_OFF * spread);
            (question.weights[rule][operation] != 0.0 && times > 1.0).then_some(times)
        });
        suspects.extend(bounds_off.max_by(f64::total_cmp).map(|times| (*rule, times)));
    }
    suspects.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    suspects.truncate(question.top);
    suspects.into_iter().map(|(rule, _)| rule).collect()
}

/// Saving from leaving a rule out.
pub struct LeftOut<'a> {
    pub rule: RuleId,
    block: BlockId,
    halves: &'a [Differences; 2],
    /// Savings by pair: of both halves of the time together, and of each half.
    pub all: [Vec<f64>; 3],
    /// True if the rule differs from the other rules of its block.
    pub is_outlier: bool,
}

/// Gives an outlier costs of its own, and a block those that its rules have one by one, where they agree with
/// each other and not with their part of what they cost together.
pub fn find<'a>(
    question: &Question,
    costs: &mut RuleCosts,
    left_out: &'a [(RuleId, [Differences; 2])],
    level: f64,
) -> Vec<LeftOut<'a>> {
    let see = |(rule, halves): &'a (RuleId, [Differences; 2])| {
        let [first, second] = [0, 1].map(|half| halves[half].mixed(&question.weights[rule]));
        let all = [[&first[..], &second].concat(), first, second];
        LeftOut { rule: *rule, block: costs.block_of(*rule), halves, all, is_outlier: false }
    };
    let mut seen: Vec<LeftOut> = left_out.iter().map(see).collect();
    // The one that is farthest off goes first: without it, the others may well be alike.
    seen.sort_by_cached_key(|one| {
        let off = centre(&one.all[0]).value - part_of_block(question, costs, one.rule).value;
        Reverse((off.abs() * 1e6) as u64)
    });
    for place in 0..seen.len() {
        let one = &seen[place];
        let is_other = |other: &&LeftOut| {
            other.block == one.block && other.rule != one.rule && !other.is_outlier
        };
        let of_others: Vec<f64> =
            seen.iter().filter(is_other).flat_map(|other| &other.all[0]).copied().collect();
        let expected = match of_others.is_empty() {
            true => part_of_block(question, costs, one.rule),
            false => centre_at(&of_others, level),
        };
        if are_apart(&one.all, expected, level) {
            costs.set_outlier(one.rule, together(&[one]).costs());
            seen[place].is_outlier = true;
        }
    }
    let blocks: BTreeSet<BlockId> = seen.iter().map(|one| one.block).collect();
    for block in blocks {
        let of_block: Vec<&LeftOut> =
            seen.iter().filter(|one| one.block == block && !one.is_outlier).collect();
        price_one_by_one(question, costs, &of_block, level);
    }
    seen
}

/// Returns the cost of a rule as a part of its block's joint cost.
fn part_of_block(question: &Question, costs: &RuleCosts, rule: RuleId) -> CostInterval {
    let value = weighted_sum(&costs.of_its_classes(rule), &question.weights[&rule]).value;
    CostInterval { value, low: value, high: value }
}

/// Returns true if the centres of all three are on the same side of `expected`.
fn are_apart(all: &[Vec<f64>; 3], expected: CostInterval, level: f64) -> bool {
    let costs = all.each_ref().map(|values| centre_at(values, level));
    costs.iter().all(|cost| cost.low > expected.high)
        || costs.iter().all(|cost| cost.high < expected.low)
}

fn together(left_out: &[&LeftOut]) -> Differences {
    let mut all = Differences::default();
    left_out.iter().flat_map(|one| one.halves).for_each(|half| all.extend(half.clone()));
    all
}

/// Prices the rules of a block one by one. A single rule does not show whether the rule or its
/// block differs from the assumption.
fn price_one_by_one(question: &Question, costs: &mut RuleCosts, of_block: &[&LeftOut], level: f64) {
    let [one, _, ..] = of_block else { return };
    let part = part_of_block(question, costs, one.rule);
    let slack = slack(part.value);
    let expected = CostInterval { low: part.low - slack, high: part.high + slack, ..part };
    let all =
        [0, 1, 2].map(|which| of_block.iter().flat_map(|one| one.all[which].clone()).collect());
    if are_apart(&all, expected, level) {
        costs.set_one_by_one(one.block, together(of_block).costs());
    }
}

/// How far what leaving out gives back may be off this much.
pub fn slack(shown: f64) -> f64 {
    SLACK.max(SLACK_SHARE * shown.abs())
}
