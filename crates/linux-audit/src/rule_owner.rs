//! Which line of a rule file each rule that the kernel lists anew came from: the kernel writes rules
//! otherwise than they were given, but keeps their order within its lists.

use std::collections::HashMap;

use super::rule::Rule;
use super::rule_fields::Action;
use super::rule_words::RuleWords;

/// The line that each of the new rules, in the order of the kernel's lists, came from: rules are
/// appended to their list in the order of the lines, or put before the others. `accepted` are the lines
/// that were loaded, by their numbers.
pub fn assign(new: &[Rule], accepted: &[(usize, &RuleWords)]) -> Option<Vec<usize>> {
    if new.len() != accepted.len() {
        return None;
    }
    let mut queues = HashMap::new();
    for (index, words) in accepted {
        let queue: &mut Vec<(usize, Action)> = queues.entry(words.list).or_default();
        let place = if words.is_prepended() { 0 } else { queue.len() };
        queue.insert(place, (*index, words.action));
    }
    let mut queues: HashMap<_, _> =
        queues.into_iter().map(|(list, queue)| (list, queue.into_iter())).collect();
    let mut owners = Vec::with_capacity(new.len());
    for rule in new {
        let decoded = rule.decode();
        let (index, action) = queues.get_mut(&decoded.list)?.next()?;
        if action != decoded.action {
            return None;
        }
        owners.push(index);
    }
    Some(owners)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(lines: &[&str], new: &[&Rule]) -> Option<Vec<usize>> {
        let words: Vec<RuleWords> =
            lines.iter().map(|line| RuleWords::parse(line).unwrap()).collect();
        let accepted: Vec<(usize, &RuleWords)> = (10..).zip(&words).collect();
        let new: Vec<Rule> = new.iter().map(|rule| (*rule).clone()).collect();
        assign(&new, &accepted)
    }

    #[test]
    fn each_list_has_the_rules_of_its_lines_in_their_order() {
        let (exit, task) = (&Rule::always_exit(7, "k"), &Rule::never_task(7));
        let lines = [
            "-a always,exit -S open",
            "-a never,task",
            "-A always,exit -S read",
            "-a always,exit -S write",
        ];
        assert_eq!(owners(&lines, &[task, exit, exit, exit]), Some(vec![11, 12, 10, 13]));
        assert_eq!(owners(&lines, &[exit, exit, exit]), None, "one is missing");
        assert_eq!(owners(&lines, &[task, task, exit, exit]), None, "one is of another list");
        assert_eq!(owners(&["-a never,exit -S open"], &[exit]), None, "of another action");
        assert_eq!(owners(&[], &[]), Some(Vec::new()));
    }
}
