//! Rules that the kernel treats alike are of one cost class and have one cost: what is measured of all of
//! them together tells far more of each than what can be measured of one.

use std::collections::{BTreeMap, HashMap};

use super::cost_meter::{sum, times};
use super::loaded_rules::RuleId;
use super::operation::Operation;
use linux_audit::rule_fields::{Decoded, Field, Operator};
use linux_audit::rule_kind::RuleKind;
use weigh_model::result::rules::CostInterval;

/// Properties that decide a rule's cost on an operation. For all rules of a class, the kernel takes
/// the same steps there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CostClass {
    /// By system call of the operation.
    kinds: Vec<RuleKind>,
    /// Conditions on the process itself, which decide how far the kernel reads on.
    who: Vec<(u32, Operator, u32)>,
}

/// `AUDIT_EXIT`, which all processes fail alike.
const EXIT: u32 = 103;
/// `AUDIT_ARG0` to `AUDIT_ARG3`.
const ARGUMENTS: std::ops::RangeInclusive<u32> = 200..=203;

/// The classes of a rule, by operation, read from its bytes.
pub fn cost_classes(rule: &Decoded) -> Vec<CostClass> {
    Operation::SHORT.iter().map(|operation| cost_class(rule, *operation)).collect()
}

fn cost_class(rule: &Decoded, operation: Operation) -> CostClass {
    let kinds: Vec<RuleKind> = kinds(rule, operation).collect();
    let is_read = kinds.iter().any(|kind| matches!(kind, RuleKind::Fields { .. }));
    let is_of_process = |field: &&Field| {
        field.text.is_none() && field.kind != EXIT && !ARGUMENTS.contains(&field.kind)
    };
    let who = match is_read {
        true => rule
            .fields
            .iter()
            .filter(is_of_process)
            .map(|f| (f.kind, f.operator, f.number))
            .collect(),
        false => Vec::new(),
    };
    CostClass { kinds, who }
}

fn kinds(rule: &Decoded, operation: Operation) -> impl Iterator<Item = RuleKind> {
    operation.calls().iter().map(|call| rule.kind_for(call.id() as u32))
}

/// Returns the title of a rule: its kind on the operation where the kernel does most with it.
pub fn title(rule: &Decoded) -> String {
    let mut kinds: Vec<RuleKind> = Operation::ALL.iter().flat_map(|o| kinds(rule, *o)).collect();
    let first = kinds.iter().position(|kind| matches!(kind, RuleKind::Fields { .. }));
    kinds.swap_remove(first.unwrap_or(0)).title()
}

/// By rule: operations per system call of the mix.
pub type Weights = BTreeMap<RuleId, Vec<f64>>;

/// Rules that are of the same class on every operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockId(usize);

/// Where a rule belongs.
#[derive(Clone, Debug, PartialEq)]
struct Membership {
    block: BlockId,
    /// By operation, a number for the class.
    classes: Vec<usize>,
}

/// Which rules are alike, operation by operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostClasses {
    rules: BTreeMap<RuleId, Membership>,
    /// By the number of their id, in the order of their first rules.
    blocks: Vec<Vec<RuleId>>,
}

impl CostClasses {
    /// From the classes of each rule, by operation.
    pub fn new<C: Eq + std::hash::Hash>(
        of_rules: impl IntoIterator<Item = (RuleId, Vec<C>)>,
    ) -> CostClasses {
        let mut numbers: HashMap<(usize, C), usize> = HashMap::new();
        let mut block_of: HashMap<Vec<usize>, BlockId> = HashMap::new();
        let mut found = CostClasses::default();
        for (rule, classes) in of_rules {
            let classes: Vec<usize> = classes
                .into_iter()
                .enumerate()
                .map(|class| {
                    let next = numbers.len();
                    *numbers.entry(class).or_insert(next)
                })
                .collect();
            let block = *block_of.entry(classes.clone()).or_insert_with(|| {
                found.blocks.push(Vec::new());
                BlockId(found.blocks.len() - 1)
            });
            found.blocks[block.0].push(rule);
            found.rules.insert(rule, Membership { block, classes });
        }
        found
    }

    /// Rules that are alike everywhere.
    pub fn blocks(&self) -> &[Vec<RuleId>] {
        &self.blocks
    }

    pub fn block_of(&self, rule: RuleId) -> BlockId {
        self.rules[&rule].block
    }

    pub fn operations(&self) -> usize {
        self.rules.values().next().map_or(0, |rule| rule.classes.len())
    }

    fn class_of(&self, rule: RuleId, operation: usize) -> usize {
        self.rules[&rule].classes[operation]
    }
}

/// Cost of each rule: the cost of its class, or its own if it is an outlier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleCosts {
    classes: CostClasses,
    /// By block and operation, of the whole block.
    of_blocks: Vec<Vec<CostInterval>>,
    outliers: BTreeMap<RuleId, Vec<CostInterval>>,
    /// Costs of each rule in a block; see [`RuleCosts::set_one_by_one`].
    one_by_one: BTreeMap<BlockId, Vec<CostInterval>>,
}

impl RuleCosts {
    /// From what each block as a whole costs, in their order.
    pub fn new(classes: CostClasses, of_blocks: Vec<Vec<CostInterval>>) -> RuleCosts {
        RuleCosts { classes, of_blocks, ..RuleCosts::default() }
    }

    /// This rule is not like the others of its classes; theirs is what is left.
    pub fn set_outlier(&mut self, rule: RuleId, costs: Vec<CostInterval>) {
        self.outliers.insert(rule, costs);
    }

    /// The rules of this block cost as much each, if the others are there, and not as much less as a part of
    /// what they cost together: by the clock the first rules of a list take longer than the next, which the
    /// processor begins before it is done with them.
    pub fn set_one_by_one(&mut self, block: BlockId, costs: Vec<CostInterval>) {
        self.one_by_one.insert(block, costs);
    }

    /// Returns true if the rules of this rule's block have costs one by one.
    pub fn is_one_by_one(&self, rule: RuleId) -> bool {
        self.one_by_one.contains_key(&self.block_of(rule))
    }

    /// Returns the costs with each rule at its part of its block's joint cost.
    pub fn together(&self) -> RuleCosts {
        RuleCosts { one_by_one: BTreeMap::new(), ..self.clone() }
    }

    pub fn block_of(&self, rule: RuleId) -> BlockId {
        self.classes.block_of(rule)
    }

    /// Per operation, of one rule.
    pub fn of_rule(&self, rule: RuleId) -> Vec<CostInterval> {
        match self.known_of(rule) {
            Some(costs) => costs.clone(),
            None => self.of_its_classes(rule),
        }
    }

    /// Returns the cost that leaving out the rule showed, if it differs from the cost of its
    /// classes.
    fn known_of(&self, rule: RuleId) -> Option<&Vec<CostInterval>> {
        let of_block = || self.one_by_one.get(&self.block_of(rule));
        self.outliers.get(&rule).or_else(of_block)
    }

    /// Returns the cost of a typical rule of its classes, whatever was found for this rule.
    pub fn of_its_classes(&self, rule: RuleId) -> Vec<CostInterval> {
        (0..self.classes.operations()).map(|operation| self.mean(rule, operation)).collect()
    }

    /// The mean over the class, without outliers unless nobody else is in it.
    fn mean(&self, rule: RuleId, operation: usize) -> CostInterval {
        let class = self.classes.class_of(rule, operation);
        let is_of_class = |rule: &RuleId| self.classes.class_of(*rule, operation) == class;
        let mut members = 0;
        let mut parts = Vec::new();
        for (block, costs) in self.classes.blocks.iter().zip(&self.of_blocks) {
            if block.first().is_some_and(&is_of_class) {
                members += block.len();
                parts.push(costs[operation]);
            }
        }
        let outliers = self.outliers.iter().filter(|(rule, _)| is_of_class(rule));
        let taken_off: Vec<CostInterval> =
            outliers.map(|(_, costs)| times(costs[operation], -1.0)).collect();
        if members > taken_off.len() {
            members -= taken_off.len();
            parts.extend(taken_off);
        }
        times(sum(parts), 1.0 / members as f64)
    }

    /// The sum over some rules and all operations, weighted by rule and operation. What rules of one
    /// class share is not counted as if it were known of each independently.
    pub fn total(
        &self,
        rules: impl IntoIterator<Item = RuleId>,
        weights: &Weights,
    ) -> CostInterval {
        let mut parts = Vec::new();
        let mut shared: BTreeMap<(usize, CostOwner), (CostInterval, f64)> = BTreeMap::new();
        for rule in rules {
            let block = self.block_of(rule);
            for (operation, weight) in weights[&rule].iter().enumerate() {
                if let Some(own) = self.outliers.get(&rule) {
                    parts.push(times(own[operation], *weight));
                    continue;
                }
                let of_block = self.one_by_one.get(&block);
                let by = match of_block {
                    Some(_) => CostOwner::ByBlock(block),
                    None => CostOwner::ByClass(self.classes.class_of(rule, operation)),
                };
                let cost = || match of_block {
                    Some(costs) => costs[operation],
                    None => self.mean(rule, operation),
                };
                shared.entry((operation, by)).or_insert_with(|| (cost(), 0.0)).1 += weight;
            }
        }
        parts.extend(shared.into_values().map(|(cost, weight)| times(cost, weight)));
        sum(parts)
    }
}

/// Which rules have a cost in common: those of a class, or of a block where that is known one by one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum CostOwner {
    ByBlock(BlockId),
    ByClass(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(value: f64) -> CostInterval {
        CostInterval { value, low: value, high: value }
    }

    fn weights(each: &[f64]) -> Weights {
        RuleId::first(4).into_iter().map(|rule| (rule, each.to_vec())).collect()
    }

    /// Four rules on two operations: all alike on the first, two and two on the second.
    fn costs() -> (RuleCosts, Vec<RuleId>) {
        let ids = RuleId::first(4);
        let classes = [vec!["m", "a"], vec!["m", "b"], vec!["m", "a"], vec!["m", "b"]];
        let classes = CostClasses::new(ids.iter().copied().zip(classes));
        assert_eq!(classes.blocks(), [vec![ids[0], ids[2]], vec![ids[1], ids[3]]]);
        let of_blocks = vec![vec![exact(4.0), exact(20.0)], vec![exact(8.0), exact(2.0)]];
        (RuleCosts::new(classes, of_blocks), ids)
    }

    #[test]
    fn a_class_spans_blocks_and_keeps_to_its_operation() {
        let (costs, ids) = costs();
        let values = |rule: usize| {
            costs.of_rule(ids[rule]).iter().map(|cost| cost.value).collect::<Vec<_>>()
        };
        assert_eq!(values(0), [3.0, 10.0]);
        assert_eq!(values(3), [3.0, 1.0]);
        assert_eq!(costs.total(ids.clone(), &weights(&[1.0, 1.0])).value, 34.0);
        assert_eq!(costs.total([ids[1]], &weights(&[1.0, 0.5])).value, 3.5);
    }

    #[test]
    fn an_outlier_takes_its_part_along_and_the_sum_stays() {
        let (mut costs, ids) = costs();
        costs.set_outlier(ids[2], vec![exact(3.0), exact(18.0)]);
        assert_eq!(costs.of_rule(ids[0])[1].value, 2.0);
        assert_eq!(costs.of_rule(ids[2])[1].value, 18.0);
        let total = costs.total(ids.clone(), &weights(&[1.0, 1.0]));
        assert!((total.value - 34.0).abs() < 1e-9);
        // Alone in its class it is what its class is.
        costs.set_outlier(ids[0], vec![exact(3.0), exact(2.0)]);
        assert_eq!(costs.of_its_classes(ids[0])[1].value, 10.0);
    }

    #[test]
    fn what_rules_cost_one_by_one_is_another_matter_than_what_they_cost_together() {
        let (mut costs, ids) = costs();
        costs.set_one_by_one(costs.block_of(ids[0]), vec![exact(1.0), exact(6.0)]);
        assert_eq!(costs.of_rule(ids[2]), [exact(1.0), exact(6.0)]);
        assert_eq!(costs.of_rule(ids[1]), [exact(3.0), exact(1.0)]);
        let weights = weights(&[1.0, 1.0]);
        assert_eq!(costs.total([ids[0], ids[2]], &weights).value, 14.0);
        assert_eq!(costs.total(ids.clone(), &weights).value, 22.0);
        assert_eq!(costs.together().total(ids, &weights).value, 34.0);
    }

    #[test]
    fn what_a_class_shares_is_not_known_better_by_adding_it_up() {
        let ids = RuleId::first(4);
        let classes = CostClasses::new(ids.iter().map(|rule| (*rule, vec![0])));
        let block = CostInterval { value: 8.0, low: 4.0, high: 12.0 };
        let costs = RuleCosts::new(classes, vec![vec![block]]);
        let total = costs.total(ids, &weights(&[1.0]));
        assert!((total.low - 4.0).abs() < 1e-9 && (total.high - 12.0).abs() < 1e-9, "{total:?}");
    }
}
