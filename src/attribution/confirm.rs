//! Rules left out of the whole set one by one: what that gives back confirms the cost of a rule, or tells
//! that it is another than that of its class.

use std::time::{Duration, Instant};

use super::attribute::{Attribution, MIN_PAIRS, Progress, Question, mix, pairs_in};
use super::scale::{ALPHA, Differences, Scale, centre, centre_at, is_seen};
use super::screen::screen;
use crate::report::rules::Standing;
use crate::treatment::Error;

/// What leaving a rule out gives back may be so much off what is shown of it, in the metric or as a share.
const NEAR: f64 = 0.1;
const NEAR_SHARE: f64 = 0.03;
/// By then every rule has been toggled by itself, or no more will.
const SCREENED_BY: f64 = 0.65;

/// Has the word of the list without the rule for those that are least like their class, and for the dearest.
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
    let mut dearest: Vec<usize> = (0..rules).collect();
    let value = |rule: &usize| attribution.per_syscall(*rule, weights).value;
    dearest.sort_by(|a, b| value(b).total_cmp(&value(a)));
    dearest.truncate(question.top);
    let mut looked_at = suspects;
    looked_at.extend(dearest);
    looked_at.sort_unstable();
    looked_at.dedup();
    let mut left_out = vec![[(); 2].map(|()| Differences::default()); looked_at.len()];
    let left = question.time.saturating_sub(started.elapsed());
    let result = leave_out(scale, question, &looked_at, &mut left_out, left, progress);
    let known = looked_at.iter().copied().zip(left_out);
    // Two visits each, or none.
    let known: Vec<(usize, [Differences; 2])> =
        known.filter(|(_, visits)| visits.iter().all(|visit| visit.pairs() > 0)).collect();
    judge(question, attribution, &known);
    result
}

/// Weighs the whole set against that without the rule, for each of these twice, at different times.
fn leave_out(
    scale: &mut impl Scale,
    question: &Question,
    looked_at: &[usize],
    left_out: &mut [[Differences; 2]],
    left: Duration,
    progress: Progress,
) -> Result<(), Error> {
    let all: Vec<usize> = (0..question.pools.rules()).collect();
    let first = Instant::now();
    let least = least_pairs(looked_at.len());
    for visit in 0..2 {
        for (place, rule) in looked_at.iter().enumerate() {
            let done = (visit * looked_at.len() + place) as f64 / (2 * looked_at.len()) as f64;
            progress("the dearest, left out one by one", 0.7 + 0.3 * done);
            let without: Vec<usize> = all.iter().copied().filter(|other| other != rule).collect();
            let spent = first.elapsed();
            let pairs = match (visit, place) {
                (0, 0) => least,
                // As long as the first ones took, so long will the others.
                _ => {
                    let so_far: usize = left_out.iter().flatten().map(Differences::pairs).sum();
                    let each = left.as_secs_f64() / (2 * looked_at.len()) as f64;
                    pairs_in(each, spent / (so_far as u32).max(1)).max(least)
                }
            };
            left_out[place][visit] = Differences::weigh(scale, &without, &all, pairs)?;
        }
    }
    Ok(())
}

/// What leaving a rule out gave back.
struct Seen {
    rule: usize,
    /// Of both visits, and of each, by pair.
    all: [Vec<f64>; 3],
    /// Whether the rule is not as its pool.
    stands_out: bool,
}

/// Takes the word of the list without the rule: whether it has a cost of its own, that of its pool,
/// or none that can be seen.
fn judge(
    question: &Question,
    attribution: &mut Attribution,
    left_out: &[(usize, [Differences; 2])],
) {
    let seen = find_apart(question, attribution, left_out);
    attribution.standing = (0..question.pools.rules())
        .map(|rule| attribution.standing_of_pool(rule, question))
        .collect();
    for Seen { rule, all, stands_out } in seen {
        let shown = attribution.per_syscall(rule, &question.weights);
        let slack = NEAR.max(NEAR_SHARE * shown.value.abs());
        // Whether all may be what is shown, which lies between these.
        let agree = |alpha: f64, low: f64, high: f64| {
            all.iter().all(|values| {
                let seen = centre_at(values, alpha);
                seen.low - slack <= high && low <= seen.high + slack
            })
        };
        // A visit by itself has few pairs: that it is no nothing, both tell together.
        let confirms = agree(ALPHA, shown.value, shown.value) && is_seen(&centre(&all[0]));
        let contradicts = !agree(level(left_out.len()), shown.low, shown.high);
        let standing = &mut attribution.standing[rule];
        if *standing == Standing::OfItsClass {
            *standing = match confirms {
                true => Standing::Confirmed,
                // It does not cost what its class would have it, and what it does cost is not told the same
                // way twice.
                false if stands_out || contradicts => Standing::BelowResolution,
                false => Standing::OfItsClass,
            };
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

/// Gives the rules that are not as their pools costs of their own.
fn find_apart(
    question: &Question,
    attribution: &mut Attribution,
    left_out: &[(usize, [Differences; 2])],
) -> Vec<Seen> {
    let pool = |attribution: &Attribution, rule: usize| {
        mix(&attribution.costs.of_its_pool(rule), &question.weights[rule]).value
    };
    let mut found: Vec<_> = left_out
        .iter()
        .map(|(rule, visits)| {
            let [first, second] = [0, 1].map(|visit| visits[visit].mixed(&question.weights[*rule]));
            (*rule, [[&first[..], &second].concat(), first, second], visits)
        })
        .collect();
    // Who is farthest off goes first: without him, the others may well be alike.
    found.sort_by_cached_key(|(rule, all, _)| {
        let off = (centre(&all[0]).value - pool(attribution, *rule)).abs();
        std::cmp::Reverse((off * 1e6) as u64)
    });
    let mut looked = Vec::new();
    for (rule, all, visits) in found {
        let pool = pool(attribution, rule);
        // As sure as what contradicts: of many rules, one or another always seems to be apart.
        let costs = all.each_ref().map(|values| centre_at(values, level(left_out.len())));
        let stands_out =
            costs.iter().all(|cost| cost.low > pool) || costs.iter().all(|cost| cost.high < pool);
        if stands_out {
            let mut both = visits[0].clone();
            both.extend(visits[1].clone());
            attribution.costs.stands_out(rule, both.costs());
        }
        looked.push(Seen { rule, all, stands_out });
    }
    looked
}
