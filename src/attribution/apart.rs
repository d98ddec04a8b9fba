//! Of rules that were left out one by one: which are not as their kind, and which kinds are not one by one
//! what they are together.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::attribute::{Question, mix};
use super::confirm::slack;
use super::pools::Costs;
use super::scale::{Differences, centre, centre_at};
use crate::report::rules::Cost;

/// What leaving a rule out gave back.
pub struct Seen<'a> {
    pub rule: usize,
    block: usize,
    halves: &'a [Differences; 2],
    /// Of both halves of the time, and of each, by pair.
    pub all: [Vec<f64>; 3],
    /// Whether the rule is not as its kind.
    pub stands_out: bool,
}

/// Gives a rule that is not as its kind costs of its own, and a kind those that its rules have one by one,
/// where they agree with each other and not with their part of what they cost together.
pub fn find<'a>(
    question: &Question,
    costs: &mut Costs,
    left_out: &'a [(usize, [Differences; 2])],
    level: f64,
) -> Vec<Seen<'a>> {
    let see = |(rule, halves): &'a (usize, [Differences; 2])| {
        let [first, second] = [0, 1].map(|half| halves[half].mixed(&question.weights[*rule]));
        let all = [[&first[..], &second].concat(), first, second];
        Seen { rule: *rule, block: costs.block_of(*rule), halves, all, stands_out: false }
    };
    let mut seen: Vec<Seen> = left_out.iter().map(see).collect();
    // Who is farthest off goes first: without him, the others may well be alike.
    seen.sort_by_cached_key(|one| {
        let off = centre(&one.all[0]).value - part_of_kind(question, costs, one.rule).value;
        Reverse((off.abs() * 1e6) as u64)
    });
    for place in 0..seen.len() {
        let one = &seen[place];
        let is_sibling =
            |other: &&Seen| other.block == one.block && other.rule != one.rule && !other.stands_out;
        let of_siblings: Vec<f64> =
            seen.iter().filter(is_sibling).flat_map(|other| &other.all[0]).copied().collect();
        let expected = match of_siblings.is_empty() {
            true => part_of_kind(question, costs, one.rule),
            false => centre_at(&of_siblings, level),
        };
        if are_apart(&one.all, expected, level) {
            costs.stands_out(one.rule, together(&[one]).costs());
            seen[place].stands_out = true;
        }
    }
    let blocks: BTreeSet<usize> = seen.iter().map(|one| one.block).collect();
    for block in blocks {
        let kind: Vec<&Seen> =
            seen.iter().filter(|one| one.block == block && !one.stands_out).collect();
        weigh_one_by_one(question, costs, &kind, level);
    }
    seen
}

/// What a rule of that kind costs as a part of what all of them cost together.
fn part_of_kind(question: &Question, costs: &Costs, rule: usize) -> Cost {
    let value = mix(&costs.of_its_pool(rule), &question.weights[rule]).value;
    Cost { value, low: value, high: value }
}

/// Whether the centres of all three lie on the same side of it.
fn are_apart(all: &[Vec<f64>; 3], expected: Cost, level: f64) -> bool {
    let costs = all.each_ref().map(|values| centre_at(values, level));
    costs.iter().all(|cost| cost.low > expected.high)
        || costs.iter().all(|cost| cost.high < expected.low)
}

fn together(kind: &[&Seen]) -> Differences {
    let mut all = Differences::default();
    kind.iter().flat_map(|one| one.halves).for_each(|half| all.extend(half.clone()));
    all
}

/// Of one rule alone it cannot be told whether it or its kind is another than was thought.
fn weigh_one_by_one(question: &Question, costs: &mut Costs, kind: &[&Seen], level: f64) {
    let [one, _, ..] = kind else { return };
    let part = part_of_kind(question, costs, one.rule);
    let slack = slack(part.value);
    let expected = Cost { low: part.low - slack, high: part.high + slack, ..part };
    let all = [0, 1, 2].map(|which| kind.iter().flat_map(|one| one.all[which].clone()).collect());
    if are_apart(&all, expected, level) {
        costs.one_by_one(one.block, together(kind).costs());
    }
}
