//! Checks that a host's audit configuration is as it was, field by field and rule by rule.
//!
//! It puts changed settings and rules back.

use std::io;

use crate::netlink::Client;
use crate::rule::Rule;
use crate::status::Status;

/// A setting, and where it is in a status.
type StatusField = (&'static str, fn(&Status) -> u32);

/// Names, as `auditctl -s` has them, of the settings that differ, with both values.
pub fn settings(was: &Status, now: &Status) -> Vec<String> {
    let fields: [StatusField; 6] = [
        ("enabled", |status| status.enabled),
        ("failure", |status| status.failure),
        ("pid", |status| status.pid),
        ("rate_limit", |status| status.rate_limit),
        ("backlog_limit", |status| status.backlog_limit),
        ("backlog_wait_time", |status| status.backlog_wait_time),
    ];
    let changed = fields.iter().filter(|(_, value)| value(was) != value(now));
    changed.map(|(name, value)| format!("{name} was {}, is {}", value(was), value(now))).collect()
}

/// Describes a change of the rules that were there; ignores new rules.
pub fn rules(was: &[Rule], now: &[Rule]) -> Option<String> {
    let still: Vec<&Rule> = now.iter().filter(|rule| was.contains(rule)).collect();
    if still.iter().copied().eq(was) {
        return None;
    }
    Some(match (was.len() - still.len(), was.len()) {
        (0, _) => "the rules are in a different order".into(),
        (_, 1) => "the rule is missing".into(),
        (gone, several) => format!("rules missing: {gone} of {several}"),
    })
}

/// Loads the rules that are missing, each in its old place among those that were there. The kernel adds at
/// the two ends of a list only; so what stands between the place and the nearer end is loaded anew.
///
/// Gives those that no longer can be loaded: the directory of what they watch is gone, and the kernel took
/// the rule away with it.
///
/// # Errors
/// As [`Client::add_rule`], the first. The others are put back all the same.
pub fn put_back_rules(client: &mut Client, was: &[Rule]) -> io::Result<Vec<Rule>> {
    let now = client.rules()?;
    let mut lists: Vec<u32> = was.iter().map(Rule::filter).collect();
    lists.dedup();
    let (mut result, mut gone) = (Ok(()), Vec::new());
    for list in lists {
        let of_list = |rules: &[Rule]| -> Vec<Rule> {
            let rules = rules.iter().filter(|rule| rule.filter() == list && was.contains(rule));
            rules.cloned().collect()
        };
        for change in changes(&of_list(was), &of_list(&now)) {
            let done = match change {
                RuleChange::Delete(rule) => client.delete_rule(&rule),
                RuleChange::Add(rule) => match client.add_rule(&rule) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        gone.push(rule.listed());
                        Ok(())
                    }
                    other => other,
                },
            };
            result = result.and(done);
        }
    }
    result.map(|()| gone)
}

#[derive(Clone, Debug, PartialEq)]
enum RuleChange {
    Delete(Rule),
    Add(Rule),
}

/// The way from some of the rules of one list to all of them, in their order.
fn changes(was: &[Rule], now: &[Rule]) -> Vec<RuleChange> {
    let front = was.iter().zip(now).take_while(|(a, b)| a == b).count();
    let most = now.len() - front;
    let back =
        was.iter().rev().zip(now.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let delete = |rules: &[Rule]| rules.iter().cloned().map(RuleChange::Delete).collect::<Vec<_>>();
    let (behind, before) = (&was[front..], &was[..was.len() - back]);
    if behind.len() <= before.len() {
        let add = behind.iter().cloned().map(RuleChange::Add);
        return delete(&now[front..]).into_iter().chain(add).collect();
    }
    let add = before.iter().rev().map(|rule| RuleChange::Add(rule.prepended()));
    delete(&now[..now.len() - back]).into_iter().chain(add).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbered(numbers: &[u32]) -> Vec<Rule> {
        numbers.iter().map(|number| Rule::always_exit_of(&[*number], 7)).collect()
    }

    /// Applies the changes as the kernel would.
    fn carry_out(mut list: Vec<Rule>, changes: &[RuleChange]) -> Vec<Rule> {
        for change in changes {
            match change {
                RuleChange::Delete(rule) => list.retain(|other| other != rule),
                RuleChange::Add(rule) if *rule == rule.clone().listed() => list.push(rule.clone()),
                RuleChange::Add(rule) => list.insert(0, rule.clone().listed()),
            }
        }
        list
    }

    #[test]
    fn every_setting_that_differs_is_named() {
        let was = Status { backlog_wait_time: 15_000, lost: 1, ..Status::default() };
        let now = Status {
            enabled: 1,
            failure: 2,
            pid: 3,
            rate_limit: 77,
            backlog_limit: 5,
            backlog_wait_time: 6,
            ..Status::default()
        };
        assert_eq!(
            settings(&was, &now),
            [
                "enabled was 0, is 1",
                "failure was 0, is 2",
                "pid was 0, is 3",
                "rate_limit was 0, is 77",
                "backlog_limit was 0, is 5",
                "backlog_wait_time was 15000, is 6"
            ]
        );
        assert_eq!(settings(&was, &Status { backlog: 9, ..was }), Vec::<String>::new());
    }

    #[test]
    fn what_is_gone_and_what_moved_are_told_and_what_came_is_not() {
        let was = numbered(&[1, 2, 3]);
        let said = |now: &[u32]| rules(&was, &numbered(now));
        assert_eq!(said(&[9, 1, 8, 2, 3, 7]), None);
        assert_eq!(said(&[9, 1, 3]).unwrap(), "rules missing: 1 of 3");
        assert_eq!(said(&[1, 3, 2]).unwrap(), "the rules are in a different order");
    }

    #[test]
    fn one_that_is_missing_at_an_end_moves_no_other() {
        let [was, first, last] = [&[1, 2, 3, 4][..], &[2, 3, 4], &[1, 2, 3]].map(numbered);
        assert_eq!(changes(&was, &first), [RuleChange::Add(was[0].prepended())]);
        assert_eq!(changes(&was, &last), [RuleChange::Add(was[3].clone())]);
        assert_eq!(changes(&was, &was), []);
    }

    proptest! {
        #[test]
        fn whatever_happened_to_a_list_it_is_as_before(
            count in 0..12u32,
            seed in any::<u64>(),
        ) {
            use rand::{RngExt, SeedableRng, seq::SliceRandom};
            let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
            let was: Vec<u32> = (0..count).collect();
            let mut now: Vec<u32> = was.iter().copied().filter(|_| chance.random_bool(0.7)).collect();
            if chance.random_bool(0.5) {
                now.shuffle(&mut chance);
            }
            let (was, now) = (numbered(&was), numbered(&now));
            prop_assert_eq!(carry_out(now.clone(), &changes(&was, &now)), was);
        }
    }
}
