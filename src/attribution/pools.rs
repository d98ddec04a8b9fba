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
}

impl Costs {
    /// From what each block as a whole costs.
    pub fn new(pools: Pools, blocks: Vec<Vec<Cost>>) -> Costs {
        Costs { pools, blocks, own: HashMap::new() }
    }

    /// This rule is not like the others of its pools; theirs is what is left.
    pub fn stands_out(&mut self, rule: usize, costs: Vec<Cost>) {
        self.own.insert(rule, costs);
    }

    /// Per operation, of one rule.
    pub fn of_rule(&self, rule: usize) -> Vec<Cost> {
        match self.own.get(&rule) {
            Some(own) => own.clone(),
            None => {
                (0..self.pools.operations()).map(|operation| self.mean(rule, operation)).collect()
            }
        }
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
        let mut shared: HashMap<usize, (Cost, f64)> = HashMap::new();
        for rule in rules {
            for (operation, weight) in weights[rule].iter().enumerate() {
                if let Some(own) = self.own.get(&rule) {
                    parts.push(times(own[operation], *weight));
                    continue;
                }
                let pool = self.pools.of_rule[rule][operation];
                let entry = shared.entry(pool);
                entry.or_insert_with(|| (self.mean(rule, operation), 0.0)).1 += weight;
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
    fn what_a_pool_shares_is_not_known_better_by_adding_it_up() {
        let pools = Pools::new(vec![vec![0], vec![0], vec![0], vec![0]]);
        let block = Cost { value: 8.0, low: 4.0, high: 12.0 };
        let costs = Costs::new(pools, vec![vec![block]]);
        let total = costs.total(0..4, &vec![vec![1.0]; 4]);
        assert!((total.low - 4.0).abs() < 1e-9 && (total.high - 12.0).abs() < 1e-9, "{total:?}");
    }
}
