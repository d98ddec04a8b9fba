//! From what sets of rules cost to what each rule costs.
//!
//! Blocks of rules that the kernel treats alike are put on one after the other, and once more in the
//! opposite order: what a rule costs depends on how many others are loaded, since a long list does
//! not stay in the processor's cache. The steps of one order add up to the total by themselves. Then
//! every rule is toggled by itself, for outliers: those that are not as their block. Of those, and of the
//! most expensive, leaving them out of the whole set decides: what that gives back confirms the cost of a
//! rule, or tells that it is another than that of its class.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::cost_class::RuleCosts;
use super::cost_meter::{
    ALPHA, CostMeter, Differences, MIN_PAIRS, ProgressFn, centre, centre_at, is_seen, pairs_in,
    sum, times,
};
use super::loaded_rules::RuleId;
use super::measurements::{Attribution, Question, Unchecked};
use super::outliers::{self, LeftOut, slack};
use weigh_model::format;
use weigh_model::result::rules::{CostInterval, Standing};
use weigh_treatment::TreatmentError;

/// Limit in the metric: a cost that is certainly not above it counts as nothing.
const NOTHING: f64 = 0.01;
/// Pairs of a block, or of a rule that is left out, per visit. A disturbance of a second or two
/// then affects a few pairs of each block or rule, and not all pairs of one.
pub const PAIRS_PER_VISIT: usize = 2;
/// Share of the time for measuring all rules together. The lines are compared with this total.
const TOTAL_SHARE: f64 = 0.1;
/// Share of the time after which no pass over the blocks begins, if there were enough.
const BLOCKS_BY: f64 = 0.5;
/// Each order has the least number of pairs then.
const LEAST_PASSES: usize = 2 * MIN_PAIRS.div_ceil(PAIRS_PER_VISIT);
/// By then every rule has been toggled by itself, or no more will.
const SCREENED_BY: f64 = 0.65;
/// Share of the time for leaving rules out.
pub const LEAVING_OUT_SHARE: f64 = 1.0 - SCREENED_BY;

/// Measures the set with this meter.
///
/// # Errors
/// As [`CostMeter::measure_with`]; [`TreatmentError::Interrupted`] only before the blocks are known.
pub fn attribute(
    meter: &mut impl CostMeter,
    question: &Question,
    progress: ProgressFn,
) -> Result<Attribution, TreatmentError> {
    let started = Instant::now();
    let all = &question.rules;
    progress("all rules together", 0.0);
    let mut total = Differences::measure(meter, &[], all, MIN_PAIRS)?;
    let pair = started.elapsed() / (MIN_PAIRS as u32);
    let blocks = measure_blocks(meter, question, pair, progress)?;
    let costs = RuleCosts::new(question.classes.clone(), blocks);
    let more = pairs_in(question.time.mul_f64(TOTAL_SHARE).as_secs_f64(), pair);
    total.extend(Differences::measure(meter, &[], all, more)?);
    let mut attribution = Attribution {
        standing: BTreeMap::new(),
        gave_back: BTreeMap::new(),
        unchecked: None,
        costs,
        total: total.costs(),
        pair,
        is_cut_short: false,
        failure: None,
    };
    match confirm(meter, question, &mut attribution, started, progress) {
        Ok(()) => {}
        Err(TreatmentError::Interrupted) => attribution.is_cut_short = true,
        Err(other) => attribution.failure = Some(other),
    }
    if attribution.standing.is_empty() {
        attribution.standing = standings_by_class(question, &attribution);
    }
    Ok(attribution)
}

/// Measures the cost that each block adds, as the mean of two orders.
fn measure_blocks(
    meter: &mut impl CostMeter,
    question: &Question,
    pair: Duration,
    progress: ProgressFn,
) -> Result<Vec<Vec<CostInterval>>, TreatmentError> {
    let blocks = question.classes.blocks();
    let share = question.time.mul_f64(0.35).as_secs_f64() / (2 * blocks.len()).max(1) as f64;
    let passes = 2 * pairs_in(share, pair).div_ceil(PAIRS_PER_VISIT);
    let mut orders = [(); 2].map(|()| vec![Differences::default(); blocks.len()]);
    let limit = question.time.mul_f64(BLOCKS_BY);
    let begun = Instant::now();
    let mut shortest = Duration::MAX;
    for pass in 0..passes {
        // The first pairs may have been faster than these.
        if pass >= LEAST_PASSES && pass % 4 == 0 && begun.elapsed() > limit {
            break;
        }
        // One pass may have been disturbed.
        if pass == 2 {
            let others = pair * 2 * MIN_PAIRS as u32;
            refuse_too_short(question, shortest * LEAST_PASSES as u32 + others)?;
        }
        let pass_begun = Instant::now();
        let forward = pass % 2 == 0;
        let mut below: Vec<RuleId> = Vec::new();
        for step in 0..blocks.len() {
            let done = (pass * blocks.len() + step) as f64 / (passes * blocks.len()) as f64;
            progress("rules by kind", 0.1 + 0.4 * done);
            let block = if forward { step } else { blocks.len() - 1 - step };
            let mut with = below.clone();
            with.extend(&blocks[block]);
            question.put_in_order(&mut with);
            // Rules were put on or off before the first of them: that comes before either kind by turns.
            let first = pass / 2 % 2;
            let pairs = first..first + PAIRS_PER_VISIT;
            let seen = Differences::measure_some(meter, &below, &with, pairs)?;
            orders[usize::from(!forward)][block].extend(seen);
            below = with;
        }
        shortest = shortest.min(pass_begun.elapsed());
    }
    let [forward, backward] = orders;
    let mean = |(a, b): (Differences, Differences)| {
        let both = a.costs().into_iter().zip(b.costs());
        both.map(|(a, b)| times(sum([a, b]), 0.5)).collect()
    };
    Ok(forward.into_iter().zip(backward).map(mean).collect())
}

/// The least number of pairs of every kind may take longer than the user wants to wait.
fn refuse_too_short(question: &Question, needed: Duration) -> Result<(), TreatmentError> {
    if needed <= question.time + question.grace {
        return Ok(());
    }
    Err(TreatmentError::Unavailable(format!(
        "{} of {} kinds take at least {} to measure: use --budget {}, or fewer rules",
        format::plural(question.rules.len(), "rule"),
        question.classes.blocks().len(),
        format::seconds(needed.as_secs_f64()),
        format::budget(needed.as_secs_f64())
    )))
}

/// How well each rule's cost is known from its class.
fn standings_by_class(
    question: &Question,
    attribution: &Attribution,
) -> BTreeMap<RuleId, Standing> {
    let standing = |rule: &RuleId| (*rule, standing_by_class(question, attribution, *rule));
    question.rules.iter().map(standing).collect()
}

/// Only an exemption, which spares the kernel the rules behind it, makes anything cheaper.
fn standing_by_class(question: &Question, attribution: &Attribution, rule: RuleId) -> Standing {
    let cost = attribution.per_syscall(rule, &question.weights);
    if cost.low.abs().max(cost.high.abs()) <= NOTHING {
        return Standing::Nothing;
    }
    if is_seen(&cost) && (cost.value > 0.0 || question.order_matters) {
        Standing::OfItsClass
    } else {
        Standing::BelowResolution
    }
}

/// Leaves out the rules that are least like their class, and those that cost most.
///
/// # Errors
/// As [`CostMeter::measure_with`]; what is known by then is judged.
fn confirm(
    meter: &mut impl CostMeter,
    question: &Question,
    attribution: &mut Attribution,
    started: Instant,
    progress: ProgressFn,
) -> Result<(), TreatmentError> {
    let allowed = question.time.mul_f64(SCREENED_BY).saturating_sub(started.elapsed());
    let suspects = outliers::screen(meter, question, &attribution.costs, allowed, progress)?;
    let value = |rule: &RuleId| attribution.per_syscall(*rule, &question.weights).value;
    let mut most_expensive = question.rules.clone();
    most_expensive.sort_by(|a, b| value(b).total_cmp(&value(a)));
    most_expensive.truncate(question.top);
    // The first are the ones that the time is sure to suffice for.
    let mut looked_at = suspects;
    most_expensive.retain(|rule| !looked_at.contains(rule));
    looked_at.append(&mut most_expensive);
    let mut left_out = Vec::new();
    let left = question.time.saturating_sub(started.elapsed());
    let result = leave_out(meter, question, &looked_at, &mut left_out, left, progress);
    let result = result.map(|unchecked| attribution.unchecked = unchecked);
    // Both times, or not at all.
    let is_known = |(_, visits): &(RuleId, [Differences; 2])| {
        visits.iter().all(|visit| visit.pairs() >= MIN_PAIRS)
    };
    left_out.retain(is_known);
    judge(question, attribution, &left_out);
    result
}

/// Measures the whole set against that without the rule, for each of these in both halves of the time; a few
/// pairs of every rule in each round, so that no rule alone has whatever else the machine does. Returns the
/// rules that the time does not suffice for.
fn leave_out(
    meter: &mut impl CostMeter,
    question: &Question,
    looked_at: &[RuleId],
    left_out: &mut Vec<(RuleId, [Differences; 2])>,
    left: Duration,
    progress: ProgressFn,
) -> Result<Option<Unchecked>, TreatmentError> {
    let what = "the most expensive, left out one by one";
    let mut visit = |rule: RuleId, round: usize| {
        let (without, first) = (question.without(rule), round % 2);
        let pairs = first..first + PAIRS_PER_VISIT;
        Differences::measure_some(meter, &without, &question.rules, pairs)
    };
    let begun = Instant::now();
    let (mut round, mut unchecked) = (Duration::ZERO, None);
    for rule in looked_at {
        progress(what, 0.7);
        let visited = visit(*rule, 0)?;
        let with_it = begun.elapsed();
        let tried = left_out.len() + 1;
        if least_time(tried, with_it) > left.max(question.grace / 2) {
            let of_all = with_it * looked_at.len() as u32 / tried as u32;
            let takes = least_time(looked_at.len(), of_all);
            unchecked = Some(Unchecked { rules: looked_at[left_out.len()..].to_vec(), takes });
            break;
        }
        left_out.push((*rule, [visited, Differences::default()]));
        round = with_it;
    }
    let each = left.as_secs_f64() / (2 * left_out.len()).max(1) as f64;
    let pair = round / (PAIRS_PER_VISIT * left_out.len()).max(1) as u32;
    // Of each half.
    let rounds = pairs_in(each, pair).div_ceil(PAIRS_PER_VISIT).max(least_rounds(left_out.len()));
    for done in 1..2 * rounds {
        for (rule, halves) in left_out.iter_mut() {
            progress(what, 0.7 + 0.3 * done as f64 / (2 * rounds) as f64);
            halves[done / rounds].extend(visit(*rule, done)?);
        }
    }
    Ok(unchecked)
}

/// How long the least number of rounds takes, if one over so many rules takes this long.
fn least_time(rules: usize, round: Duration) -> Duration {
    round * (2 * least_rounds(rules)) as u32
}

/// How many rounds each half takes at least.
fn least_rounds(rules: usize) -> usize {
    least_pairs(rules).div_ceil(PAIRS_PER_VISIT)
}

/// Tells from what leaving a rule out gave back whether it has a cost of its own, that of its class, or none
/// that can be seen.
fn judge(
    question: &Question,
    attribution: &mut Attribution,
    left_out: &[(RuleId, [Differences; 2])],
) {
    let level = level(left_out.len());
    let seen = outliers::find(question, &mut attribution.costs, left_out, level);
    attribution.standing = standings_by_class(question, attribution);
    for LeftOut { rule, all, is_outlier, .. } in seen {
        let shown = attribution.per_syscall(rule, &question.weights);
        let slack = slack(shown.value);
        // Whether all may be what is shown, which lies between these.
        let agree = |alpha: f64, low: f64, high: f64| {
            all.iter().all(|values| {
                let seen = centre_at(values, alpha);
                seen.low - slack <= high && low <= seen.high + slack
            })
        };
        // A visit by itself has few pairs: that it is no nothing, both tell together.
        let back = centre(&all[0]);
        let confirms = agree(ALPHA, shown.value, shown.value) && is_seen(&back);
        let contradicts = !agree(level, shown.low, shown.high);
        if attribution.standing[&rule] == Standing::OfItsClass {
            let standing = match confirms {
                true => Standing::Confirmed,
                // It does not cost what its class would have it, and what it does cost is not told the same
                // way twice.
                false if is_outlier || contradicts => {
                    attribution.gave_back.insert(rule, back);
                    Standing::Contradicted
                }
                false => Standing::OfItsClass,
            };
            attribution.standing.insert(rule, standing);
        }
    }
}

/// The error rate of each of three intervals for each of so many rules, so that the chance is [`ALPHA`]
/// that any rule is contradicted that costs what is shown (Bonferroni).
fn level(rules: usize) -> f64 {
    ALPHA / (3 * rules).max(1) as f64
}

/// How many pairs it takes to contradict anything at that level: of n pairs, all lie on one side of their
/// centre with the chance 2 · 2⁻ⁿ.
fn least_pairs(rules: usize) -> usize {
    ((2.0 / level(rules)).log2().ceil() as usize).max(MIN_PAIRS)
}

/// On a simulated machine, whose rules have known costs.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::cost_class::CostClasses;
    use crate::attribution::cost_meter::MAX_PAIRS;
    use needs::repetitions;
    use paired::simulated::allowed;
    use paired::simulated::{Machine, Noise};

    /// Two operations, of which a rule costs the second twice as much; now and then one is interrupted.
    struct Simulated {
        costs: Vec<f64>,
        noise: Machine,
        /// Scatter of a cost, per standard deviation of the noise.
        scatter: f64,
        measurements: usize,
        give_up_after: usize,
        /// Whose cost is another each time that it is left out.
        fickle: Option<Fickle>,
        /// Extra cost of rules of the second kind, however many of them are loaded.
        shared: f64,
        /// Instead of a user who has enough, something that goes wrong.
        is_broken: bool,
    }

    struct Fickle {
        rule: RuleId,
        /// At the screening, in the first half of the leaving out, and in the second.
        costs: [f64; 3],
        times: usize,
        is_left_out: bool,
    }

    impl Fickle {
        /// Returns the difference from the rule's usual cost, if only this rule is left out.
        fn off(&mut self, loaded: &[RuleId], costs: &[f64]) -> f64 {
            let is_left_out = loaded.len() + 1 == costs.len() && !loaded.contains(&self.rule);
            let is_another = loaded.len() + 1 == costs.len() && !is_left_out;
            if is_left_out && !self.is_left_out {
                self.times += 1;
            }
            // With all loaded, it may be its turn still.
            self.is_left_out = is_left_out || (self.is_left_out && !is_another);
            match is_left_out {
                true => {
                    let half = 1 + MAX_PAIRS / PAIRS_PER_VISIT;
                    let when = usize::from(self.times > 1) + usize::from(self.times > half);
                    costs[self.rule.number()] - self.costs[when]
                }
                false => 0.0,
            }
        }
    }

    impl CostMeter for Simulated {
        fn measure_with(&mut self, loaded: &[RuleId]) -> Result<Vec<f64>, TreatmentError> {
            self.measurements += 1;
            if self.measurements > self.give_up_after {
                return Err(match self.is_broken {
                    true => TreatmentError::Unavailable("no room".into()),
                    false => TreatmentError::Interrupted,
                });
            }
            let off = self.fickle.as_mut().map_or(0.0, |fickle| fickle.off(loaded, &self.costs));
            let is_any = loaded.iter().any(|rule| (40..46).contains(&rule.number()));
            let off = if is_any { off + self.shared } else { off };
            let rules = off + loaded.iter().map(|rule| self.costs[rule.number()]).sum::<f64>();
            let mut noisy = |value: f64| value + self.scatter * self.noise.pair(0.0);
            Ok(vec![noisy(400.0 + rules), noisy(900.0 + 2.0 * rules)])
        }
    }

    /// 40 rules of 2 units, 6 of 30, of which the last costs 90 in truth, and 5 of nothing.
    fn simulated(give_up_after: usize) -> (Simulated, Question) {
        let costs: Vec<f64> = [vec![2.0; 40], vec![30.0; 5], vec![90.0], vec![0.0; 5]]
            .into_iter()
            .flatten()
            .collect();
        let kind = |rule: usize| {
            if rule < 40 {
                "other"
            } else if rule < 46 {
                "all"
            } else {
                "file"
            }
        };
        let rules = RuleId::first(costs.len());
        let classes = rules.iter().map(|rule| (*rule, vec![kind(rule.number()); 2]));
        let question = Question {
            classes: CostClasses::new(classes),
            order_matters: false,
            weights: rules.iter().map(|rule| (*rule, vec![0.6, 0.2])).collect(),
            rules,
            top: 6,
            time: Duration::from_secs(3600),
            grace: Duration::from_secs(3600),
        };
        let noise = Machine::new(Noise::HeavyTailed, 5);
        let (scatter, measurements, fickle, is_broken) = (300.0, 0, None, false);
        let meter = Simulated {
            costs,
            noise,
            scatter,
            measurements,
            give_up_after,
            fickle,
            shared: 0.0,
            is_broken,
        };
        (meter, question)
    }

    fn id(number: usize) -> RuleId {
        RuleId::first(number + 1)[number]
    }

    fn standing(attribution: &Attribution, rules: std::ops::Range<usize>) -> Vec<Standing> {
        rules.map(|rule| attribution.standing[&id(rule)]).collect()
    }

    fn run(give_up_after: usize) -> (Attribution, Question) {
        let (mut meter, question) = simulated(give_up_after);
        let attribution = attribute(&mut meter, &question, &mut |_, _| {}).unwrap();
        (attribution, question)
    }

    #[test]
    fn every_rule_gets_its_cost() {
        let (attribution, question) = run(usize::MAX);
        let cost = |rule| attribution.per_syscall(id(rule), &question.weights).value;
        // Per system call: 0.6 of the first operation and 0.2 of the second, which is twice as expensive.
        assert!((cost(0) - 2.0).abs() < 0.5, "{}", cost(0));
        assert!((cost(41) - 30.0).abs() < 4.0, "{}", cost(41));
        assert!((cost(45) - 90.0).abs() < 10.0, "{}", cost(45));
        assert_ne!(attribution.costs.of_rule(id(45)), attribution.costs.of_its_classes(id(45)));
        assert_eq!(attribution.standing[&id(45)], Standing::Confirmed);
        assert_eq!(attribution.standing[&id(41)], Standing::Confirmed);
        assert_ne!(attribution.standing[&id(0)], Standing::Confirmed);
        let sum = attribution.costs.total(question.rules.clone(), &question.weights);
        assert!((sum.value - 320.0).abs() < 32.0 && is_seen(&sum), "{sum:?}");
        assert!(!attribution.is_cut_short);
    }

    /// As by the clock, where the processor begins with a rule before it is done with the last.
    #[test]
    fn rules_that_cost_less_beside_others_of_their_kind_are_alike_all_the_same() {
        let (mut meter, question) = simulated(usize::MAX);
        meter.shared = 60.0;
        meter.costs[45] = 30.0;
        let attribution = attribute(&mut meter, &question, &mut |_, _| {}).unwrap();
        let costs = &attribution.costs;
        for rule in 40..46 {
            assert_eq!(costs.of_rule(id(rule)), costs.of_rule(id(40)), "{rule}");
            assert_eq!(attribution.standing[&id(rule)], Standing::Confirmed, "{rule}");
        }
        let one = attribution.per_syscall(id(40), &question.weights).value;
        assert!((one - 30.0).abs() < 4.0, "{one}");
        let of_kind = costs.together().total((40..46).map(id), &question.weights).value;
        assert!((of_kind - 240.0).abs() < 24.0, "{of_kind}");
        // Of the others, which add up, nothing else is said.
        assert!(
            costs.is_one_by_one(id(40))
                && !costs.is_one_by_one(id(0))
                && !costs.is_one_by_one(id(46))
        );
    }

    #[test]
    fn what_was_known_when_the_user_gave_up_is_kept() {
        let (mut meter, question) = simulated(10);
        let stopped = attribute(&mut meter, &question, &mut |_, _| {});
        assert!(
            matches!(stopped, Err(TreatmentError::Interrupted)),
            "nothing is known of any class yet"
        );
        let (mut complete, _) = simulated(usize::MAX);
        attribute(&mut complete, &question, &mut |_, _| {}).unwrap();
        let (attribution, question) = run(complete.measurements - 10);
        assert!(attribution.is_cut_short);
        assert_eq!(attribution.standing.len(), question.rules.len());
        assert!((attribution.per_syscall(id(0), &question.weights).value - 2.0).abs() < 0.5);
    }

    #[test]
    fn of_exact_counts_only_what_is_far_from_its_kind_is_looked_at_again() {
        let (mut meter, question) = simulated(usize::MAX);
        meter.scatter = 0.0;
        meter.costs.iter_mut().enumerate().for_each(|(rule, cost)| *cost += 0.01 * rule as f64);
        let attribution = attribute(&mut meter, &question, &mut |_, _| {}).unwrap();
        assert_ne!(attribution.costs.of_rule(id(45)), attribution.costs.of_its_classes(id(45)));
        let confirmed = attribution.standing.values().filter(|s| **s == Standing::Confirmed);
        assert!(confirmed.count() <= question.top + 1);
    }

    #[test]
    fn a_rule_that_leaving_out_does_not_confirm_is_not_shown_as_one_of_its_class() {
        let (mut meter, question) = simulated(usize::MAX);
        meter.scatter = 0.0;
        meter.fickle =
            Some(Fickle { rule: id(45), costs: [90.0, 60.0, 120.0], times: 0, is_left_out: false });
        let attribution = attribute(&mut meter, &question, &mut |_, _| {}).unwrap();
        assert_eq!(attribution.standing[&id(45)], Standing::Contradicted);
        let [shown, back] =
            [attribution.per_syscall(id(45), &question.weights), attribution.gave_back[&id(45)]];
        assert!(back.low <= back.value && back.value <= back.high, "{back:?} {shown:?}");
        assert_eq!(attribution.standing[&id(41)], Standing::Confirmed);
        let steady = attribute(&mut simulated(usize::MAX).0, &question, &mut |_, _| {}).unwrap();
        assert_eq!(steady.standing[&id(45)], Standing::Confirmed);
    }

    /// Leaving out tells of each of them three times, with few pairs; each time it may err.
    #[test]
    fn noise_seldom_contradicts_a_rule_that_costs_what_is_shown() {
        let experiments = repetitions(250, 1000);
        let contradicted = |seed: &u64| {
            let (mut meter, mut question) = simulated(usize::MAX);
            meter.noise = Machine::new(Noise::White, *seed);
            meter.costs[45] = 30.0;
            // Small beside the noise, so that no leeway helps.
            meter.scatter = 1000.0;
            question.time = Duration::ZERO;
            let attribution = attribute(&mut meter, &question, &mut |_, _| {}).unwrap();
            standing(&attribution, 40..46).contains(&Standing::Contradicted)
        };
        let contradicted = (0..experiments).filter(contradicted).count();
        let share = contradicted as f64 / experiments as f64;
        assert!(share <= allowed(experiments), "{contradicted} of {experiments}");
    }

    #[test]
    fn rules_for_which_the_time_does_not_suffice_are_named_with_what_would() {
        assert!(run(usize::MAX).0.unchecked.is_none());
        let (mut meter, mut question) = simulated(usize::MAX);
        (question.time, question.grace) = (Duration::ZERO, Duration::ZERO);
        let (looked_at, mut left_out) = (RuleId::first(6), Vec::new());
        let left = leave_out(
            &mut meter,
            &question,
            &looked_at,
            &mut left_out,
            Duration::ZERO,
            &mut |_, _| {},
        );
        let unchecked = left.unwrap().unwrap();
        assert_eq!((unchecked.rules, left_out.len()), (looked_at, 0));
        assert!(unchecked.takes > Duration::ZERO);
    }

    #[test]
    fn a_budget_that_the_kinds_do_not_fit_is_refused_with_one_that_they_do() {
        let (_, mut question) = simulated(usize::MAX);
        (question.time, question.grace) = (Duration::from_secs(5), Duration::from_secs(20));
        assert!(refuse_too_short(&question, Duration::from_secs(25)).is_ok());
        let refused = refuse_too_short(&question, Duration::from_secs(61)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "51 rules of 3 kinds take at least 1 min 01 s to measure: use --budget 80s, or fewer rules"
        );
    }

    #[test]
    fn what_is_counted_to_be_zero_costs_nothing() {
        let (mut meter, question) = simulated(usize::MAX);
        meter.scatter = 0.0;
        let attribution = attribute(&mut meter, &question, &mut |_, _| {}).unwrap();
        assert_eq!(standing(&attribution, 46..51), [Standing::Nothing; 5]);
        assert!(!standing(&attribution, 0..46).contains(&Standing::Nothing));
    }

    #[test]
    fn what_goes_wrong_while_rules_are_left_out_takes_nothing_from_what_is_known() {
        let (mut complete, question) = simulated(usize::MAX);
        attribute(&mut complete, &question, &mut |_, _| {}).unwrap();
        let (mut meter, _) = simulated(complete.measurements - 10);
        meter.is_broken = true;
        let attribution = attribute(&mut meter, &question, &mut |_, _| {}).unwrap();
        assert!(matches!(attribution.failure, Some(TreatmentError::Unavailable(_))));
        assert!((attribution.per_syscall(id(0), &question.weights).value - 2.0).abs() < 0.5);
        assert!(
            attribution.standing.values().any(|standing| *standing == Standing::Confirmed),
            "those visited twice are judged"
        );
    }
}
