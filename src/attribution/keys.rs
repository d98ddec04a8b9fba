//! What decides a rule's cost on an operation, read from its bytes.

use super::operation::Operation;
use crate::audit::rule_fields::{Decoded, Field, Operator};
use crate::audit::rule_kind::Kind;

/// Rules with the same keys take the kernel the same steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// By system call of the operation.
    kinds: Vec<Kind>,
    /// What is asked of the process itself, which tells how far the kernel reads on.
    who: Vec<(u32, Operator, u32)>,
}

/// `AUDIT_EXIT`, which all processes fail alike.
const EXIT: u32 = 103;
/// `AUDIT_ARG0` to `AUDIT_ARG3`.
const ARGUMENTS: std::ops::RangeInclusive<u32> = 200..=203;

/// The keys of a rule, by operation.
pub fn keys(rule: &Decoded) -> Vec<Key> {
    Operation::SHORT.iter().map(|operation| key(rule, *operation)).collect()
}

fn key(rule: &Decoded, operation: Operation) -> Key {
    let kinds: Vec<Kind> = kinds(rule, operation).collect();
    let is_read = kinds.iter().any(|kind| matches!(kind, Kind::Fields { .. }));
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
    Key { kinds, who }
}

fn kinds(rule: &Decoded, operation: Operation) -> impl Iterator<Item = Kind> {
    operation.calls().iter().map(|call| rule.kind_for(call.id() as u32))
}

/// What the rule is to a reader: what the kernel does with it where it does most.
pub fn title(rule: &Decoded) -> String {
    let mut kinds: Vec<Kind> = Operation::ALL.iter().flat_map(|o| kinds(rule, *o)).collect();
    let first = kinds.iter().position(|kind| matches!(kind, Kind::Fields { .. }));
    kinds.swap_remove(first.unwrap_or(0)).title()
}
