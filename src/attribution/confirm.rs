//! Rules left out of the whole set one by one: what that gives back confirms the cost of a rule, or tells
//! that it is another than that of its class.

use std::time::{Duration, Instant};

use super::apart::{self, Seen};
use super::attribute::{Attribution, MIN_PAIRS, PAIRS_PER_VISIT, Progress, Question, pairs_in};
use super::scale::{ALPHA, Differences, Scale, centre, centre_at, is_seen};
use super::screen::screen;
use crate::report::rules::Standing;
use crate::treatment::Error;

/// What leaving a rule out gives back may be so much off what is shown of it, in the metric or as a share.
const NEAR: f64 = 0.1;
const NEAR_SHARE: f64 = 0.03;
/// By then every rule has been toggled by itself, or no more will.
const SCREENED_BY: f64 = 0.65;

/// Has the word of the list without the rule for those that are least like their class, and for those that
/// cost most.
///
/// # Errors
/// As [`Scale::weigh`]; what is known by then is judged.
pub fn confirm(
    scale: &mut impl Scale,
    question: &Question,
    attribution: &mut Attribution,
    started: Instant,
    progress: Progress,
) -> Result<(), Error> {
    let allowed = question.time.mul_f64(SCREENED_BY).saturating_sub(started.elapsed());
    let suspects = screen(scale, question, &attribution.costs, allowed, progress)?;
    let rules = question.pools.rules();
    let weights = &question.weights;
    let mut costliest: Vec<usize> = (0..rules).collect();
    let value = |rule: &usize| attribution.per_syscall(*rule, weights).value;
    costliest.sort_by(|a, b| value(b).total_cmp(&value(a)));
    costliest.truncate(question.top);
    let mut looked_at = suspects;
    looked_at.extend(costliest);
    looked_at.sort_unstable();
    looked_at.dedup();
    let mut left_out = vec![[(); 2].map(|()| Differences::default()); looked_at.len()];
    let left = question.time.saturating_sub(started.elapsed());
    let result = leave_out(scale, question, &looked_at, &mut left_out, left, progress);
    let known = looked_at.iter().copied().zip(left_out);
    // Both times, or not at all.
    let is_known = |visits: &[Differences; 2]| visits.iter().all(|v| v.pairs() >= MIN_PAIRS);
    let known: Vec<(usize, [Differences; 2])> =
        known.filter(|(_, visits)| is_known(visits)).collect();
    judge(question, attribution, &known);
    result
}

/// Weighs the whole set against that without the rule, for each of these in both halves of the time; a few
/// pairs of every rule in each round, so that no rule alone has whatever else the machine does.
fn leave_out(
    scale: &mut impl Scale,
    question: &Question,
    looked_at: &[usize],
    left_out: &mut [[Differences; 2]],
    left: Duration,
    progress: Progress,
) -> Result<(), Error> {
    let all: Vec<usize> = (0..question.pools.rules()).collect();
    let begun = Instant::now();
    let least = least_pairs(looked_at.len()).div_ceil(PAIRS_PER_VISIT);
    // Of each half; how many the time allows, the first one tells.
    let mut rounds = least;
    let mut done = 0;
    while done < 2 * rounds {
        let share = done as f64 / (2 * rounds) as f64;
        progress("the most expensive, left out one by one", 0.7 + 0.3 * share);
        for (rule, halves) in looked_at.iter().zip(left_out.iter_mut()) {
            let without: Vec<usize> = all.iter().copied().filter(|other| other != rule).collect();
            let first = done % 2;
            let pairs = first..first + PAIRS_PER_VISIT;
            halves[done / rounds].extend(Differences::visit(scale, &without, &all, pairs)?);
        }
        done += 1;
        if done == 1 {
            let each = left.as_secs_f64() / (2 * looked_at.len()).max(1) as f64;
            let pair = begun.elapsed() / (PAIRS_PER_VISIT * looked_at.len()).max(1) as u32;
            rounds = pairs_in(each, pair).div_ceil(PAIRS_PER_VISIT).max(least);
        }
    }
    Ok(())
}

/// Takes the word of the list without the rule: whether it has a cost of its own, that of its pool,
/// or none that can be seen.
fn judge(
    question: &Question,
    attribution: &mut Attribution,
    left_out: &[(usize, [Differences; 2])],
) {
    let level = level(left_out.len());
    let seen = apart::find(question, &mut attribution.costs, left_out, level);
    attribution.standing = (0..question.pools.rules())
        .map(|rule| attribution.standing_of_pool(rule, question))
        .collect();
    for Seen { rule, all, stands_out, .. } in seen {
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
        let standing = &mut attribution.standing[rule];
        if *standing == Standing::OfItsClass {
            *standing = match confirms {
                true => Standing::Confirmed,
                // It does not cost what its class would have it, and what it does cost is not told the same
                // way twice.
                false if stands_out || contradicts => {
                    attribution.gave_back.insert(rule, back);
                    Standing::Contradicted
                }
                false => Standing::OfItsClass,
            };
        }
    }
}

/// How far what leaving out gives back may be off this much.
pub(super) fn slack(shown: f64) -> f64 {
    NEAR.max(NEAR_SHARE * shown.abs())
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
