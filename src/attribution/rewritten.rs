//! Rules written otherwise, and what that saves: both sets are loaded in turns.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::assemble::Measured;
use super::attribute::{mix as mixed, pairs_in};
use super::matching::matches;
use super::processes::fork_calls;
use super::run::with_copies;
use super::scale::{Differences, centre};
use super::session::Session;
use crate::audit::rewrite::{Proposal, proposals};
use crate::audit::rule::Rule;
use crate::audit::rule_fields::Decoded;
use crate::audit::rule_set::Line;
use crate::report::rules::Rewrite;
use crate::treatment::{Bench, Error};

/// To learn what a pair takes.
const FIRST_PAIRS: usize = 8;
/// Of the time for attributing, for each.
const SHARE: f64 = 0.06;
/// Of those that replace rules, and of those that only add exemptions.
const MOST: [usize; 2] = [3, 2];

/// Weighs the most promising proposals and adds them to what was measured; also what could not be.
///
/// # Errors
/// [`Error::Interrupted`] alone.
pub fn weigh(
    session: &mut Session,
    bench: &Bench,
    weighed: &[Rule],
    measured: &mut Measured,
    time: Duration,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<(), Error> {
    let chosen = choose(measured);
    for (done, proposal) in chosen.iter().enumerate() {
        progress("rewrites", done as f64 / chosen.len() as f64);
        let what = format!("the rewrite \"{}\"", proposal.title);
        let rewrite = weigh_one(session, bench, weighed, measured, time, proposal);
        let rewrite = measured.missing(&what, rewrite)?;
        measured.rewrites.extend(rewrite);
    }
    Ok(())
}

fn weigh_one(
    session: &mut Session,
    bench: &Bench,
    weighed: &[Rule],
    measured: &Measured,
    time: Duration,
    proposal: &Proposal,
) -> Result<Rewrite, Error> {
    let lines = session.admit_lines(bench, &proposal.with)?;
    let new: Vec<Rule> = lines.iter().flat_map(|line| line.rules.clone()).collect();
    // What they replace makes no records here either.
    session.bridge.ledger.take(new.clone())?;
    let decoded: Vec<Decoded> = new.iter().map(Rule::decode).collect();
    let matches = matches(&mut session.bridge, &decoded, &mut |_, _| {})?;
    let new = with_copies(session, &new, &matches)?;
    let old: Vec<usize> = (0..weighed.len()).collect();
    let rewritten = in_place(proposal, &lines, &measured.lines, &measured.rules);
    session.bridge.ledger.take([weighed, &new[..]].concat())?;
    let begun = Instant::now();
    let mut saving = Differences::weigh(&mut session.bridge, &rewritten, &old, FIRST_PAIRS)?;
    let seconds = time.mul_f64(SHARE).as_secs_f64();
    let more = pairs_in(seconds, begun.elapsed() / FIRST_PAIRS as u32);
    saving.extend(Differences::weigh(&mut session.bridge, &rewritten, &old, more)?);
    session.bridge.verify()?;
    let mut per_operation = saving.costs();
    let started = [fork_calls(), measured.exec.clone()];
    let started = started.map(|calls| mixed(&per_operation, &calls.weights()));
    per_operation.extend(started);
    Ok(Rewrite {
        title: proposal.title.clone(),
        replaces: proposal.replaces.clone(),
        with: proposal.with.clone(),
        is_first: proposal.is_first,
        gives_up: proposal.gives_up.clone(),
        saving_per_operation: per_operation,
        saving_per_syscall: centre(&saving.mixed(&measured.mix.weights())),
    })
}

/// The list with the new rules, which are numbered behind the old ones: each where the rule stood that it
/// replaces. Behind an exemption, or before it, it would have another cost, and another meaning.
fn in_place(proposal: &Proposal, new: &[Line], lines: &[Line], rules: &[Rule]) -> Vec<usize> {
    let mut next = rules.len();
    let numbered = new.iter().map(|line| {
        let numbers: Vec<usize> = (next..next + line.rules.len()).collect();
        next += line.rules.len();
        (line.is_prepended, numbers)
    });
    let numbered: Vec<(bool, Vec<usize>)> = numbered.collect();
    let kept = 0..rules.len();
    if proposal.is_first {
        return listed(&numbered).into_iter().chain(kept).collect();
    }
    let replaced = proposal.replaces.iter().zip(numbered.chunks(proposal.with_each()));
    let mut instead: HashMap<usize, Vec<usize>> = HashMap::new();
    for (line, new) in replaced {
        let mut stood = places(&lines[*line], rules);
        instead.extend(stood.next().map(|first| (first, listed(new))));
        instead.extend(stood.map(|other| (other, Vec::new())));
    }
    kept.flat_map(|rule| instead.remove(&rule).unwrap_or_else(|| vec![rule])).collect()
}

/// Rules of neighbouring lines as the kernel lists them: with `-A`, the last stands first.
fn listed(lines: &[(bool, Vec<usize>)]) -> Vec<usize> {
    let prepended = lines.iter().rev().filter(|(is_prepended, _)| *is_prepended);
    let appended = lines.iter().filter(|(is_prepended, _)| !is_prepended);
    prepended.chain(appended).flat_map(|(_, rules)| rules.clone()).collect()
}

/// Those that replace the most expensive rules, and the first exemptions.
fn choose(measured: &Measured) -> Vec<Proposal> {
    let hot: Vec<(&str, u32)> = measured.mix.hot_calls();
    let all = proposals(&measured.lines, &hot);
    let (mut replacing, mut adding): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|proposal| !proposal.replaces.is_empty());
    let costs = |proposal: &Proposal| -> f64 {
        let rules =
            proposal.replaces.iter().flat_map(|l| places(&measured.lines[*l], &measured.rules));
        rules.map(|rule| measured.attribution.per_syscall(rule, &measured.weights).value).sum()
    };
    replacing.sort_by(|a, b| costs(b).total_cmp(&costs(a)));
    replacing.truncate(MOST[0]);
    adding.truncate(MOST[1]);
    replacing.extend(adding);
    replacing
}

/// Where the rules of a line stand among those that were weighed.
fn places<'a>(line: &'a Line, rules: &'a [Rule]) -> impl Iterator<Item = usize> + 'a {
    line.rules.iter().filter_map(|rule| rules.iter().position(|other| other == rule))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::audit::rule_set::Outcome;

    fn line(text: &str, rule: &Rule) -> Line {
        Line {
            file: Path::new("a.rules").into(),
            number: 1,
            text: text.into(),
            outcome: Outcome::Loaded,
            warnings: Vec::new(),
            rules: vec![rule.clone()],
            is_prepended: text.starts_with("-A"),
            is_confined: false,
        }
    }

    #[test]
    fn what_is_written_otherwise_stands_where_the_old_line_stood() {
        let rules: Vec<Rule> = (0..4).map(|call| Rule::always_exit_of(&[call], 7)).collect();
        let lines: Vec<Line> = rules.iter().map(|rule| line("-a", rule)).collect();
        let new: Vec<Rule> = (10..14).map(|call| Rule::always_exit_of(&[call], 7)).collect();
        let order = |option: &str, replaces: &[usize], is_first| {
            let new: Vec<Line> = new.iter().map(|rule| line(option, rule)).collect();
            let proposal = Proposal {
                title: String::new(),
                replaces: replaces.to_vec(),
                with: vec![option.into(); 4],
                is_first,
                gives_up: None,
            };
            in_place(&proposal, &new, &lines, &rules)
        };
        assert_eq!(order("-a", &[0, 2], false), [4, 5, 1, 6, 7, 3]);
        assert_eq!(order("-A", &[0, 2], false), [5, 4, 1, 7, 6, 3]);
        assert_eq!(order("-a", &[1], false), [0, 4, 5, 6, 7, 2, 3]);
        assert_eq!(order("-a", &[], true), [4, 5, 6, 7, 0, 1, 2, 3]);
    }
}
