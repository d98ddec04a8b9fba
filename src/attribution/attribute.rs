//! From what sets of rules cost to what each rule costs.
//!
//! Blocks of rules that the kernel treats alike are put on one after the other, and once more in the
//! opposite order: what a rule costs depends on how many others are loaded, since a long list does
//! not stay in the processor's cache. The steps of one order add up to the whole by themselves. Then
//! every rule is toggled by itself, for those that are not as their block. Of those, and of the
//! most expensive, leaving them out of the whole set decides ([`super::confirm`]).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::confirm::confirm;
use super::pools::{Costs, Pools};
use super::scale::{Differences, Scale, is_seen, sum, times};
use crate::report::rules::{Cost, Standing};
use crate::treatment::Error;

/// What is to be found out.
pub struct Question {
    pub pools: Pools,
    /// The order of loading, by block where it does not matter to the kernel.
    pub order_matters: bool,
    /// By rule: operations per system call of the mix.
    pub weights: Vec<Vec<f64>>,
    /// How many of the most expensive rules are left out for confirmation.
    pub top: usize,
    pub time: Duration,
}

/// The answer.
#[derive(Debug)]
pub struct Attribution {
    pub costs: Costs,
    pub standing: Vec<Standing>,
    /// Of rules that are contradicted: what leaving them out gave back, per system call of the mix.
    pub gave_back: HashMap<usize, Cost>,
    /// Per operation: all rules together.
    pub total: Vec<Cost>,
    /// The user ended it before all was confirmed.
    pub is_cut_short: bool,
    /// What else ended it early; what was known by then is kept.
    pub failure: Option<Error>,
}

/// Who is told how far it is: a phrase, and a share of 1.
pub type Progress<'a> = &'a mut dyn FnMut(&str, f64);

pub(super) const MIN_PAIRS: usize = 8;
/// What is surely no more than this, in the metric, is nothing.
const NOTHING: f64 = 0.01;
pub(super) const MAX_PAIRS: usize = 1000;
/// Of a block, or of a rule that is left out, at a time. Whatever else the machine does for a second or two
/// then disturbs a few pairs of every one, and not all of one.
pub(super) const PAIRS_PER_VISIT: usize = 2;
/// Of the time, for all rules together: what the lines are held against.
const TOTAL_SHARE: f64 = 0.1;

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
    let mut attribution = Attribution {
        standing: Vec::new(),
        gave_back: HashMap::new(),
        costs,
        total: total.costs(),
        is_cut_short: false,
        failure: None,
    };
    match confirm(scale, question, &mut attribution, started, progress) {
        Ok(()) => {}
        Err(Error::Interrupted) => attribution.is_cut_short = true,
        Err(other) => attribution.failure = Some(other),
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
    let passes = 2 * pairs_in(share, pair).div_ceil(PAIRS_PER_VISIT);
    let mut orders = [(); 2].map(|()| vec![Differences::default(); blocks.len()]);
    for pass in 0..passes {
        let forward = pass % 2 == 0;
        let mut below: Vec<usize> = Vec::new();
        for step in 0..blocks.len() {
            let done = (pass * blocks.len() + step) as f64 / (passes * blocks.len()) as f64;
            progress("rules by class", 0.1 + 0.4 * done);
            let block = if forward { step } else { blocks.len() - 1 - step };
            let mut with = below.clone();
            with.extend(&blocks[block]);
            if question.order_matters {
                with.sort_unstable();
            }
            // Rules were put on or off before the first of them: that comes before either kind by turns.
            let first = pass / 2 % 2;
            let seen = Differences::visit(scale, &below, &with, first..first + PAIRS_PER_VISIT)?;
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
    pub(super) fn standing_of_pool(&self, rule: usize, question: &Question) -> Standing {
        let cost = self.per_syscall(rule, &question.weights);
        if cost.low.abs().max(cost.high.abs()) <= NOTHING {
            return Standing::Nothing;
        }
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
