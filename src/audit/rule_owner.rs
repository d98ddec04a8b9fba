//! Which line of a rule file each rule that the kernel lists anew came from: the kernel writes rules
//! otherwise than they were given, but keeps their order within its lists.

use std::collections::BTreeMap;

use super::rule::Rule;
use super::rule_fields::{Action, List};
use super::rule_set::Line;

/// The line that each of the new rules, in the order of the kernel's lists, came from: rules are
/// appended to their list in the order of the lines, or put before the others.
pub fn assign(new: &[Rule], accepted: &[usize], report: &[Line]) -> Option<Vec<usize>> {
    if new.len() != accepted.len() {
        return None;
    }
    let mut waiting: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for index in accepted {
        let queue = waiting.entry(list_of(&report[*index].text)?).or_default();
        if report[*index].is_prepended {
            queue.insert(0, *index);
        } else {
            queue.push(*index);
        }
    }
    let mut queues: BTreeMap<&str, std::vec::IntoIter<usize>> =
        waiting.into_iter().map(|(list, queue)| (list, queue.into_iter())).collect();
    let mut owners = Vec::with_capacity(new.len());
    for rule in new {
        let decoded = rule.decode();
        let index = queues.get_mut(list_name(decoded.list)?)?.next()?;
        let text = &report[index].text;
        let is_never = text.split_whitespace().nth(1).is_some_and(|word| word.contains("never"));
        if is_never != (decoded.action == Action::Never) && !text.starts_with("-w") {
            return None;
        }
        owners.push(index);
    }
    Some(owners)
}

/// The list that a line names.
fn list_of(text: &str) -> Option<&'static str> {
    if text.starts_with("-w") {
        return Some("exit");
    }
    let option = text.split_whitespace().next()?;
    let value = option.get(2..).filter(|rest| !rest.is_empty());
    let value = value.or_else(|| text.split_whitespace().nth(1))?;
    ["task", "exit", "user", "exclude", "filesystem", "io_uring"]
        .into_iter()
        .find(|list| value.split(',').any(|word| word == *list))
}

fn list_name(list: List) -> Option<&'static str> {
    Some(match list {
        List::Task => "task",
        List::Exit => "exit",
        List::User => "user",
        List::Exclude => "exclude",
        List::Filesystem => "filesystem",
        List::UringExit => "io_uring",
        List::Other(_) => return None,
    })
}
