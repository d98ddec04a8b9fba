//! Rules that the kernel treats alike have one cost: what is measured of all of them together tells
//! far more of each than what can be measured of one.

use std::collections::HashMap;

use super::scale::{sum, times};
use crate::report::rules::Cost;

/// Which rules are alike, operation by operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pools {
    /// By rule, then by operation: rules with the same number have the same cost there.
    of_rule: Vec<Vec<usize>>,
    /// Rules that are alike everywhere, by index, in the order of their first.
    pub blocks: Vec<Vec<usize>>,
}

impl Pools {
    /// From what decides a rule's cost, by rule and operation.
    pub fn new<K: Eq + std::hash::Hash>(keys: Vec<Vec<K>>) -> Pools {
        let mut numbers: HashMap<(usize, K), usize> = HashMap::new();
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let mut block_of: HashMap<Vec<usize>, usize> = HashMap::new();
        let mut of_rule = Vec::new();
        for (rule, keys) in keys.into_iter().enumerate() {
            let pools: Vec<usize> = keys
                .into_iter()
                .enumerate()
                .map(|key| {
                    let next = numbers.len();
                    *numbers.entry(key).or_insert(next)
                })
                .collect();
            let block = *block_of.entry(pools.clone()).or_insert_with(|| {
                blocks.push(Vec::new());
                blocks.len() - 1
            });
            blocks[block].push(rule);
            of_rule.push(pools);
        }
        Pools { of_rule, blocks }
    }

    pub fn rules(&self) -> usize {
        self.of_rule.len()
    }

    pub fn operations(&self) -> usize {
        self.of_rule.first().map_or(0, Vec::len)
    }
}

/// What each rule costs: that of its pool, or its own where it stands out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    pools: Pools,
    /// By block and operation, of the whole block.
    blocks: Vec<Vec<Cost>>,
    /// By rule.
    own: HashMap<usize, Vec<Cost>>,
    /// By block, of each of its rules: see [`Costs::one_by_one`].
    one_by_one: HashMap<usize, Vec<Cost>>,
}

impl Costs {
    /// From what each block as a whole costs.
    pub fn new(pools: Pools, blocks: Vec<Vec<Cost>>) -> Costs {
        Costs { pools, blocks, ..Costs::default() }
    }

    /// This rule is not like the others of its pools; theirs is what is left.
    pub fn stands_out(&mut self, rule: usize, costs: Vec<Cost>) {
        self.own.insert(rule, costs);
    }

    /// The rules of this block cost as much each, if the others are there, and not as much less as a part of
    /// what they cost together: by the clock the first rules of a list take longer than the next, which the
    /// processor begins before it is done with them.
    pub fn one_by_one(&mut self, block: usize, costs: Vec<Cost>) {
        self.one_by_one.insert(block, costs);
    }

    /// Whether that is so of this rule's block.
    pub fn is_one_by_one(&self, rule: usize) -> bool {
        self.one_by_one.contains_key(&self.block_of(rule))
    }

    /// The same with each rule at its part of what its kind costs together.
    pub fn together(&self) -> Costs {
        Costs { one_by_one: HashMap::new(), ..self.clone() }
    }

    /// The block that a rule is of.
    pub fn block_of(&self, rule: usize) -> usize {
        let holds = |block: &Vec<usize>| block.contains(&rule);
        self.pools.blocks.iter().position(holds).unwrap_or(0)
    }

    /// Per operation, of one rule.
    pub fn of_rule(&self, rule: usize) -> Vec<Cost> {
        match self.known_of(rule) {
            Some(costs) => costs.clone(),
            None => self.of_its_pool(rule),
        }
    }

    /// What leaving out told of it, where that is not what its pool has it.
    fn known_of(&self, rule: usize) -> Option<&Vec<Cost>> {
        let of_block = || self.one_by_one.get(&self.block_of(rule));
        self.own.get(&rule).or_else(of_block)
    }

    /// What a rule would cost that is as most of its pool, whatever was found of this one.
    pub fn of_its_pool(&self, rule: usize) -> Vec<Cost> {
        (0..self.pools.operations()).map(|operation| self.mean(rule, operation)).collect()
    }

    /// The mean over the pool, without those that stand out unless nobody else is in it.
    fn mean(&self, rule: usize, operation: usize) -> Cost {
        let pool = self.pools.of_rule[rule][operation];
        let is_of_pool = |rule: &usize| self.pools.of_rule[*rule][operation] == pool;
        let mut members = 0;
        let mut parts = Vec::new();
        for (block, costs) in self.pools.blocks.iter().zip(&self.blocks) {
            if block.first().is_some_and(&is_of_pool) {
                members += block.len();
                parts.push(costs[operation]);
            }
        }
        let others = self.own.iter().filter(|(rule, _)| is_of_pool(rule));
        let of_apart: Vec<Cost> = others.map(|(_, costs)| times(costs[operation], -1.0)).collect();
        if members > of_apart.len() {
            members -= of_apart.len();
            parts.extend(of_apart);
        }
        times(sum(parts), 1.0 / members as f64)
    }

    /// The sum over some rules and all operations, weighted by rule and operation. What rules of one
    /// pool share is not counted as if it were known of each independently.
    pub fn total(&self, rules: impl IntoIterator<Item = usize>, weights: &[Vec<f64>]) -> Cost {
        let mut parts = Vec::new();
        // By operation, and by pool, or by block where that is known one by one.
        let mut shared: HashMap<(usize, usize, bool), (Cost, f64)> = HashMap::new();
        for rule in rules {
            let block = self.block_of(rule);
            for (operation, weight) in weights[rule].iter().enumerate() {
                if let Some(own) = self.own.get(&rule) {
                    parts.push(times(own[operation], *weight));
                    continue;
                }
                let of_block = self.one_by_one.get(&block);
                let pool = self.pools.of_rule[rule][operation];
                let number = if of_block.is_some() { block } else { pool };
                let entry = shared.entry((operation, number, of_block.is_some()));
                let cost = || match of_block {
                    Some(costs) => costs[operation],
                    None => self.mean(rule, operation),
                };
                entry.or_insert_with(|| (cost(), 0.0)).1 += weight;
            }
        }
        parts.extend(shared.into_values().map(|(cost, weight)| times(cost, weight)));
        sum(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(value: f64) -> Cost {
        Cost { value, low: value, high: value }
    }

    /// Four rules on two operations: all alike on the first, two and two on the second.
    fn costs() -> Costs {
        let pools =
            Pools::new(vec![vec!["m", "a"], vec!["m", "b"], vec!["m", "a"], vec!["m", "b"]]);
        assert_eq!(pools.blocks, [vec![0, 2], vec![1, 3]]);
        Costs::new(pools, vec![vec![exact(4.0), exact(20.0)], vec![exact(8.0), exact(2.0)]])
    }

    #[test]
    fn a_pool_spans_blocks_and_keeps_to_its_operation() {
        let costs = costs();
        let values = |rule| costs.of_rule(rule).iter().map(|cost| cost.value).collect::<Vec<_>>();
        assert_eq!(values(0), [3.0, 10.0]);
        assert_eq!(values(3), [3.0, 1.0]);
        assert_eq!(costs.total(0..4, &vec![vec![1.0, 1.0]; 4]).value, 34.0);
        assert_eq!(costs.total([1], &vec![vec![1.0, 0.5]; 4]).value, 3.5);
    }

    #[test]
    fn who_stands_out_takes_his_part_along_and_the_sum_stays() {
        let mut costs = costs();
        costs.stands_out(2, vec![exact(3.0), exact(18.0)]);
        assert_eq!(costs.of_rule(0)[1].value, 2.0);
        assert_eq!(costs.of_rule(2)[1].value, 18.0);
        assert!((costs.total(0..4, &vec![vec![1.0, 1.0]; 4]).value - 34.0).abs() < 1e-9);
        // Alone in its pool it is what its pool is.
        costs.stands_out(0, vec![exact(3.0), exact(2.0)]);
        assert_eq!(costs.of_its_pool(0)[1].value, 10.0);
    }

    #[test]
    fn what_rules_cost_one_by_one_is_another_matter_than_what_they_cost_together() {
        let mut costs = costs();
        costs.one_by_one(0, vec![exact(1.0), exact(6.0)]);
        assert_eq!(costs.of_rule(2), [exact(1.0), exact(6.0)]);
        assert_eq!(costs.of_rule(1), [exact(3.0), exact(1.0)]);
        let weights = vec![vec![1.0, 1.0]; 4];
        assert_eq!(costs.total([0, 2], &weights).value, 14.0);
        assert_eq!(costs.total(0..4, &weights).value, 22.0);
        assert_eq!(costs.together().total(0..4, &weights).value, 34.0);
    }

    #[test]
    fn what_a_pool_shares_is_not_known_better_by_adding_it_up() {
        let pools = Pools::new(vec![vec![0], vec![0], vec![0], vec![0]]);
        let block = Cost { value: 8.0, low: 4.0, high: 12.0 };
        let costs = Costs::new(pools, vec![vec![block]]);
        let total = costs.total(0..4, &vec![vec![1.0]; 4]);
        assert!((total.low - 4.0).abs() < 1e-9 && (total.high - 12.0).abs() < 1e-9, "{total:?}");
    }
}
