//! Toggling every rule by itself at the end of the list: which are not like the others of their kind?

use std::time::{Duration, Instant};

use super::attribute::{Progress, Question};
use super::pools::Costs;
use super::scale::{Differences, Scale};
use crate::stats::estimate::{mad, median};
use crate::treatment::Error;

const PAIRS: usize = 6;
/// With fewer, it finds nothing but noise.
const LEAST_PAIRS: usize = 4;
/// A rule's own toggles are few: only what is this many standard errors off is looked at again. Of
/// 350 rules on five operations, chance alone sends less than one.
const FAR_OFF: f64 = 4.0;
/// Nor is anything looked at again that is this near to its kind, in the metric and as a share of the
/// cost: counted instructions scatter so little that chance is no bound.
const NEAR: f64 = 0.5;
const NEAR_SHARE: f64 = 0.03;
/// From the median absolute deviation of a normal distribution to its standard deviation.
const NORMAL: f64 = 1.4826;

/// The rules that are least like their pools, at most as many as are confirmed besides. Who was not
/// reached within the time is taken for what its kind is.
///
/// # Errors
/// As [`Scale::weigh`].
pub fn screen(
    scale: &mut impl Scale,
    question: &Question,
    costs: &Costs,
    allowed: Duration,
    progress: Progress,
) -> Result<Vec<usize>, Error> {
    let rules = question.pools.rules();
    let begun = Instant::now();
    let mut pairs = PAIRS;
    let mut off: Vec<Vec<f64>> = Vec::new();
    for rule in 0..rules {
        let needed = begun.elapsed().mul_f64(rules as f64 / rule.max(1) as f64);
        if rule % 16 == 15 && needed > allowed {
            pairs = LEAST_PAIRS;
        }
        if begun.elapsed() > allowed {
            break;
        }
        progress("each rule by itself", 0.5 + 0.2 * rule as f64 / rules as f64);
        let without: Vec<usize> = (0..rules).filter(|other| *other != rule).collect();
        let mut with = without.clone();
        with.push(rule);
        if question.order_matters {
            with.sort_unstable();
        }
        let seen = Differences::weigh(scale, &without, &with, pairs)?;
        let medians = seen.by_operation.iter().map(|values| median(values).unwrap_or(0.0));
        let pool = costs.of_its_pool(rule);
        off.push(medians.zip(pool).map(|(seen, pool)| seen - pool.value).collect());
    }
    Ok(farthest(&off, question, costs))
}

/// By rule and operation, how far each is off its pool: those that are too far, the farthest first.
fn farthest(off: &[Vec<f64>], question: &Question, costs: &Costs) -> Vec<usize> {
    let spread = |operation: usize| {
        let column: Vec<f64> = off.iter().map(|row| row[operation]).collect();
        NORMAL * mad(&column).unwrap_or(0.0)
    };
    let spreads: Vec<f64> = (0..question.pools.operations()).map(spread).collect();
    let mut suspects: Vec<(usize, f64)> = Vec::new();
    for (rule, off) in off.iter().enumerate() {
        let pool = costs.of_its_pool(rule);
        let bounds_off = spreads.iter().enumerate().filter_map(|(operation, spread)| {
            let near = NEAR.max(NEAR_SHARE * pool[operation].value.abs());
            let times = off[operation].abs() / near.max(FAR_OFF * spread);
            (question.weights[rule][operation] != 0.0 && times > 1.0).then_some(times)
        });
        suspects.extend(bounds_off.max_by(f64::total_cmp).map(|times| (rule, times)));
    }
    suspects.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    suspects.truncate(question.top);
    suspects.into_iter().map(|(rule, _)| rule).collect()
}
