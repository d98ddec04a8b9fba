//! From what sets of rules cost to what each rule costs.
//!
//! Blocks of rules that the kernel treats alike are put on one after the other, and once more in the
//! opposite order: what a rule costs depends on how many others are loaded, since a long list does
//! not stay in the processor's cache. The steps of one order add up to the whole by themselves. Then
//! every rule is toggled by itself, for those that are not as their block. Of those, and of the
//! dearest, leaving them out of the whole set decides.

use std::time::{Duration, Instant};

use super::pools::{Costs, Pools};
use super::scale::{Differences, Scale, centre, is_seen, sum, times};
use super::screen::screen;
use crate::report::rules::{Cost, Standing};
use crate::treatment::Error;

/// What is to be found out.
pub struct Question {
    pub pools: Pools,
    /// The order of loading, by block where it does not matter to the kernel.
    pub order_matters: bool,
    /// By rule: operations per system call of the mix.
    pub weights: Vec<Vec<f64>>,
    /// How many of the dearest rules are left out for confirmation.
    pub top: usize,
    pub time: Duration,
}

/// The answer.
#[derive(Debug)]
pub struct Attribution {
    pub costs: Costs,
    pub standing: Vec<Standing>,
    /// Per operation: all rules together.
    pub total: Vec<Cost>,
    /// The user ended it before all was confirmed.
    pub is_cut_short: bool,
}

/// Who is told how far it is: a phrase, and a share of 1.
pub type Progress<'a> = &'a mut dyn FnMut(&str, f64);

const MIN_PAIRS: usize = 8;
/// What leaving a rule out gives back may be so much off what is shown of it, in the metric or as a share.
const NEAR: f64 = 0.1;
const NEAR_SHARE: f64 = 0.03;
const MAX_PAIRS: usize = 1000;
/// Of the time, for all rules together: what the lines are held against.
const TOTAL_SHARE: f64 = 0.1;
/// By then every rule has been toggled by itself, or no more will.
const SCREENED_BY: f64 = 0.65;

/// Weighs the set on this scale.
///
/// # Errors
/// As [`Scale::weigh`]; [`Error::Interrupted`] only before the blocks are known.
pub fn attribute(
    scale: &mut impl Scale,
    question: &Question,
    progress: Progress,
) -> Result<Attribution, Error> {
    let started = Instant::now();
    let all: Vec<usize> = (0..question.pools.rules()).collect();
    progress("all rules together", 0.0);
    let mut total = Differences::weigh(scale, &[], &all, MIN_PAIRS)?;
    let pair = started.elapsed() / (MIN_PAIRS as u32);
    let blocks = blocks(scale, question, pair, progress)?;
    let costs = Costs::new(question.pools.clone(), blocks);
    let more = pairs_in(question.time.mul_f64(TOTAL_SHARE).as_secs_f64(), pair);
    total.extend(Differences::weigh(scale, &[], &all, more)?);
    let mut attribution =
        Attribution { standing: Vec::new(), costs, total: total.costs(), is_cut_short: false };
    match confirm(scale, question, &mut attribution, started, progress) {
        Err(Error::Interrupted) => attribution.is_cut_short = true,
        other => other?,
    }
    for rule in attribution.standing.len()..question.pools.rules() {
        let standing = attribution.standing_of_pool(rule, question);
        attribution.standing.push(standing);
    }
    Ok(attribution)
}

/// What each block adds, by the mean of two orders.
fn blocks(
    scale: &mut impl Scale,
    question: &Question,
    pair: Duration,
    progress: Progress,
) -> Result<Vec<Vec<Cost>>, Error> {
    let blocks = &question.pools.blocks;
    let share = question.time.mul_f64(0.35).as_secs_f64() / (2 * blocks.len()).max(1) as f64;
    let pairs = pairs_in(share, pair);
    let mut orders = [(); 2].map(|()| vec![Differences::default(); blocks.len()]);
    // Each order twice, at different times.
    for pass in 0..4 {
        let forward = pass % 2 == 0;
        let mut below: Vec<usize> = Vec::new();
        for step in 0..blocks.len() {
            progress(
                "rules by class",
                0.1 + 0.1 * (pass as f64 + step as f64 / blocks.len() as f64),
            );
            let block = if forward { step } else { blocks.len() - 1 - step };
            let mut with = below.clone();
            with.extend(&blocks[block]);
            if question.order_matters {
                with.sort_unstable();
            }
            let seen =
                Differences::weigh(scale, &below, &with, pairs.div_ceil(2).max(MIN_PAIRS / 2))?;
            orders[usize::from(!forward)][block].extend(seen);
            below = with;
        }
    }
    let [forward, backward] = orders;
    let mean = |(a, b): (Differences, Differences)| {
        let both = a.costs().into_iter().zip(b.costs());
        both.map(|(a, b)| times(sum([a, b]), 0.5)).collect()
    };
    Ok(forward.into_iter().zip(backward).map(mean).collect())
}

/// How many pairs of this length fit, within reason.
pub fn pairs_in(seconds: f64, pair: Duration) -> usize {
    let fit = seconds / pair.as_secs_f64().max(1e-6);
    (fit as usize).clamp(MIN_PAIRS, MAX_PAIRS)
}

impl Attribution {
    /// Per system call of the mix, of one rule.
    pub fn per_syscall(&self, rule: usize, weights: &[Vec<f64>]) -> Cost {
        mix(&self.costs.of_rule(rule), &weights[rule])
    }

    /// Only an exemption, which spares the kernel the rules behind it, makes anything cheaper.
    fn standing_of_pool(&self, rule: usize, question: &Question) -> Standing {
        let cost = self.per_syscall(rule, &question.weights);
        if is_seen(&cost) && (cost.value > 0.0 || question.order_matters) {
            Standing::OfItsClass
        } else {
            Standing::BelowResolution
        }
    }
}

/// Weighted by the mix.
pub fn mix(costs: &[Cost], weights: &[f64]) -> Cost {
    sum(costs.iter().zip(weights).map(|(cost, weight)| times(*cost, *weight)))
}

fn confirm(
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
    let all: Vec<usize> = (0..rules).collect();
    let mut left_out = vec![[(); 2].map(|()| Differences::default()); looked_at.len()];
    let visit = started.elapsed();
    let left_s = question.time.saturating_sub(visit).as_secs_f64();
    let first = Instant::now();
    for visit in 0..2 {
        for (place, rule) in looked_at.iter().enumerate() {
            let done = (visit * looked_at.len() + place) as f64 / (2 * looked_at.len()) as f64;
            progress("the dearest, left out one by one", 0.7 + 0.3 * done);
            let without: Vec<usize> = all.iter().copied().filter(|other| other != rule).collect();
            let spent = first.elapsed();
            let pairs = match (visit, place) {
                (0, 0) => MIN_PAIRS,
                // As long as the first ones took, so long will the others.
                _ => {
                    let so_far: usize = left_out.iter().flatten().map(Differences::pairs).sum();
                    let each = left_s / (2 * looked_at.len()) as f64;
                    pairs_in(each, spent / (so_far as u32).max(1))
                }
            };
            left_out[place][visit] = Differences::weigh(scale, &without, &all, pairs)?;
        }
    }
    judge(question, attribution, &looked_at, &left_out);
    Ok(())
}

/// Takes the word of the list without the rule: whether it has a cost of its own, that of its pool,
/// or none that can be seen.
fn judge(
    question: &Question,
    attribution: &mut Attribution,
    looked_at: &[usize],
    left_out: &[[Differences; 2]],
) {
    let mut looked: Vec<(usize, [Cost; 3])> = Vec::new();
    let mut found: Vec<(usize, Cost, &[Differences; 2])> = Vec::new();
    for (&rule, visits) in looked_at.iter().zip(left_out) {
        let mut both = visits[0].mixed(&question.weights[rule]);
        both.extend(visits[1].mixed(&question.weights[rule]));
        found.push((rule, centre(&both), visits));
    }
    let pool = |attribution: &Attribution, rule: usize| {
        mix(&attribution.costs.of_its_pool(rule), &question.weights[rule]).value
    };
    // Who is farthest off goes first: without him, the others may well be alike.
    found.sort_by_cached_key(|(rule, own, _)| {
        std::cmp::Reverse(((own.value - pool(attribution, *rule)).abs() * 1e6) as u64)
    });
    for (rule, own, visits) in found {
        let pool = pool(attribution, rule);
        let each = [0, 1].map(|visit| centre(&visits[visit].mixed(&question.weights[rule])));
        let all = [each[0], each[1], own];
        if all.iter().all(|cost| cost.low > pool) || all.iter().all(|cost| cost.high < pool) {
            let mut both = visits[0].clone();
            both.extend(visits[1].clone());
            attribution.costs.stands_out(rule, both.costs());
        }
        looked.push((rule, all));
    }
    let mut confirmed = vec![false; question.pools.rules()];
    for (rule, all) in looked {
        let shown = attribution.per_syscall(rule, &question.weights);
        let slack = NEAR.max(NEAR_SHARE * shown.value.abs());
        let agrees =
            |seen: &Cost| seen.low - slack <= shown.value && shown.value <= seen.high + slack;
        // A visit by itself has few pairs: that it is no nothing, both tell together.
        let [_, _, both] = &all;
        confirmed[rule] = is_seen(both) && all.iter().all(agrees);
    }
    attribution.standing = (0..confirmed.len())
        .map(|rule| match attribution.standing_of_pool(rule, question) {
            Standing::OfItsClass if confirmed[rule] => Standing::Confirmed,
            other => other,
        })
        .collect();
}
