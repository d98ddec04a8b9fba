//! Rules that differ only in their system calls, as one rule for all of these calls. Generated rule sets have
//! one rule per call. The kernel looks at every rule whenever a call ends, but at one bit for each.

use std::collections::{HashMap, HashSet};

use super::rule::field;
use super::rule_fields::{Action, Decoded, Field, RuleList};
use super::rule_set::{MAX_LINE_BYTES, RuleLine};
use super::rule_words::{RuleWords, written};

/// All of a rule but its system calls.
type Shape = (Action, Vec<Field>);

/// Lines that become one rule, where the first of them stands.
struct Group {
    lines: Vec<usize>,
    /// Words of the first line.
    words: RuleWords,
    /// Calls of all lines, as they are written.
    calls: Vec<String>,
}

/// Index of a line, and what takes its place.
type Replaced = (usize, Vec<String>);

/// Merges all rules that differ only in their system calls: a title, the lines, and what takes the place of
/// each.
///
/// A rule moves to the place of the first of its group. So it joins a group only if no rule in between could
/// have decided about one of its calls before it: with another action, or under another key.
pub(crate) fn merged_calls(lines: &[RuleLine]) -> Option<(String, Vec<Replaced>)> {
    let rules: Vec<Vec<Decoded>> =
        lines.iter().map(|line| line.rules.iter().map(|rule| rule.decode()).collect()).collect();
    let mut groups: Vec<Group> = Vec::new();
    let mut open: HashMap<Shape, usize> = HashMap::new();
    let mut group_of: Vec<Option<usize>> = vec![None; lines.len()];
    for (index, line) in lines.iter().enumerate() {
        let Some((rule, words)) = of_listed_calls(line, &rules[index]) else { continue };
        let calls = calls(&words);
        let shape = (rule.action, rule.fields.clone());
        let joined = open.get(&shape).copied().filter(|group| {
            let between = groups[*group].lines[0] + 1..index;
            let mut others = between.filter(|other| group_of[*other] != Some(*group));
            !others.any(|other| rules[other].iter().any(|other| decides_before(other, rule)))
        });
        let group = joined.unwrap_or_else(|| {
            groups.push(Group { lines: Vec::new(), words, calls: Vec::new() });
            groups.len() - 1
        });
        open.insert(shape, group);
        group_of[index] = Some(group);
        groups[group].lines.push(index);
        groups[group].calls.extend(calls);
    }
    groups.retain(|group| group.lines.len() > 1);
    let replaced: usize = groups.iter().map(|group| group.lines.len()).sum();
    let merged = groups.iter().flat_map(|group| {
        let first = group.lines[0];
        let others = group.lines[1..].iter().map(|line| (*line, Vec::new()));
        std::iter::once((first, of_all_calls(&group.words, &group.calls))).chain(others)
    });
    let merged: Vec<Replaced> = merged.collect();
    let with: usize = merged.iter().map(|(_, with)| with.len()).sum();
    let title =
        format!("merge {replaced} rules that differ only in their system calls into {with}");
    (!merged.is_empty()).then_some((title, merged))
}

/// The rule of a line that lists its system calls, and its words.
fn of_listed_calls<'a>(line: &RuleLine, rules: &'a [Decoded]) -> Option<(&'a Decoded, RuleWords)> {
    let [rule] = rules else { return None };
    let is_plain = rule.list == RuleList::Exit && !rule.syscalls.is_all();
    if !is_plain || line.is_prepended || line.is_confined {
        return None;
    }
    // What was loaded can be parsed.
    let words = RuleWords::parse(&line.text).ok()?;
    Some((rule, words))
}

fn calls(words: &RuleWords) -> Vec<String> {
    let listed = words.options().iter().filter(|(option, _)| *option == "-S");
    listed.flat_map(|(_, value)| value.split(',')).map(str::to_owned).collect()
}

/// Returns true if the first of two rules, where it stands before the other, could take an event from it:
/// then it is not recorded, or under another key.
fn decides_before(first: &Decoded, rule: &Decoded) -> bool {
    let key = |rule: &Decoded| rule.field(field::FILTERKEY).and_then(|key| key.text.clone());
    // Rules that the kernel finds by their file, too: of all that match, the one loaded first decides
    // (`audit_filter_rules` in kernel/auditsc.c compares `prio`).
    first.list == RuleList::Exit
        && (first.action != rule.action || key(first) != key(rule))
        && first.syscalls.share_a_call(&rule.syscalls)
}

/// The line with all of these system calls; more lines, where it would be too long for `auditctl -R`.
fn of_all_calls(first: &RuleWords, calls: &[String]) -> Vec<String> {
    let with = |calls: &[&str]| {
        let mut words: Vec<String> = Vec::new();
        let mut is_listed = false;
        for (option, value) in first.options() {
            match *option {
                "-S" if is_listed => {}
                "-S" => {
                    words.push(written("-S", &calls.join(",")));
                    is_listed = true;
                }
                option => words.push(written(option, value)),
            }
        }
        words.join(" ")
    };
    let room = MAX_LINE_BYTES.saturating_sub(with(&[]).len());
    let mut parts: Vec<(Vec<&str>, usize)> = vec![(Vec::new(), 0)];
    let mut seen = HashSet::new();
    for call in calls.iter().map(String::as_str).filter(|call| seen.insert(*call)) {
        let (part, bytes) = parts.last_mut().expect("there is a first part");
        if part.is_empty() || *bytes + call.len() < room {
            part.push(call);
            *bytes += call.len() + 1;
        } else {
            parts.push((vec![call], call.len() + 1));
        }
    }
    parts.iter().map(|(calls, _)| with(calls)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Rule;

    /// As a generated set has them: one rule per call and login uid.
    fn of_call(number: u32, loginuid: u32) -> RuleLine {
        let text = format!("-a always,exit -F arch=b64 -S {number} -F auid={loginuid}");
        RuleLine::loaded(&text, Rule::always_exit_of(&[number], loginuid))
    }

    /// The merged lines; empty if nothing can be merged.
    fn merged(lines: &[RuleLine]) -> Vec<Replaced> {
        merged_calls(lines).map_or(Vec::new(), |(_, merged)| merged)
    }

    #[test]
    fn one_rule_per_call_becomes_one_rule_where_the_first_stood() {
        let lines = [of_call(2, 7), of_call(3, 8), of_call(4, 7), of_call(5, 8), of_call(6, 7)];
        let (title, merged) = merged_calls(&lines).unwrap();
        assert_eq!(title, "merge 5 rules that differ only in their system calls into 2");
        let [sevens, eights] = [(7, "2,4,6"), (8, "3,5")].map(|(auid, calls)| {
            vec![format!("-a always,exit -F arch=b64 -S {calls} -F auid={auid}")]
        });
        let gone = Vec::new;
        assert_eq!(merged, [(0, sevens), (2, gone()), (4, gone()), (1, eights), (3, gone())]);
        assert_eq!(merged_calls(&lines[..2]), None);
    }

    #[test]
    fn several_calls_of_a_line_are_kept_and_none_is_named_twice() {
        let of = |text: &str, calls: &[u32]| RuleLine::loaded(text, Rule::always_exit_of(calls, 7));
        let lines = [
            of("-a always,exit -S open -F auid=7 -S 3,4 -k a\\ b", &[2, 3, 4]),
            of("-a always,exit -S 4 -S 5 -F auid=7 -k a\\ b", &[4, 5]),
        ];
        assert_eq!(merged(&lines)[0].1, ["-a always,exit -S open,3,4,5 -F auid=7 -k a\\ b"]);
    }

    #[test]
    fn no_rule_passes_one_that_could_decide_before_it() {
        let all = Rule::always_exit(9, "another");
        let between = |rule: Rule| {
            !merged(&[of_call(2, 7), RuleLine::loaded("-a x", rule), of_call(4, 7)]).is_empty()
        };
        assert!(!between(all.clone()), "it would be recorded under this key");
        assert!(between(Rule::always_exit_of(&[3, 5], 9)), "another call");
        assert!(between(Rule::always_exit_of(&[4], 9)), "as that has no key either");
        let watch = Rule::watch(std::path::Path::new("/etc/shadow"), "k").listed();
        assert!(!between(watch), "it would be recorded under that key");
        // What follows such a rule forms a group of its own.
        let lines = [of_call(2, 7), RuleLine::loaded("-a x", all), of_call(4, 7), of_call(5, 7)];
        assert!(merged(&lines).iter().map(|(line, _)| *line).eq([2, 3]));
    }

    #[test]
    fn rules_that_would_change_their_meaning_are_left_alone() {
        let prepended = |number| {
            let RuleLine { rules, .. } = of_call(number, 7);
            RuleLine::loaded("-A always,exit -S 1 -F auid=7", rules[0].clone())
        };
        assert_eq!(merged_calls(&[prepended(2), prepended(3)]), None);
        let every =
            |auid| RuleLine::loaded("-a always,exit -F auid=7", Rule::always_exit(auid, "k"));
        assert_eq!(merged_calls(&[every(7), every(7)]), None);
        let confined = |number| RuleLine { is_confined: true, ..of_call(number, 7) };
        assert_eq!(merged_calls(&[confined(2), confined(3)]), None);
    }

    #[test]
    fn no_merged_line_is_too_long_for_auditctl() {
        let calls: Vec<String> = (1000..3000).map(|call| format!("call-{call}")).collect();
        // A call takes ten bytes, so with one of these keys its last one is the first too many.
        for key_bytes in 1..=10 {
            let key = "k".repeat(key_bytes);
            let text = format!("-a always,exit -F arch=b64 -S call-1000 -k {key}");
            let lines = of_all_calls(&RuleWords::parse(&text).unwrap(), &calls);
            assert!(lines.len() == 4 && lines.iter().all(|line| line.len() <= MAX_LINE_BYTES));
            let named = lines.iter().flat_map(|line| line.split([' ', ',']));
            assert_eq!(named.filter(|word| word.starts_with("call-")).count(), 2000);
        }
    }
}
