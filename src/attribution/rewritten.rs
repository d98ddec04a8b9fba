//! Rules written otherwise, and what that saves: both sets are loaded in turns.

use std::time::{Duration, Instant};

use super::assemble::Measured;
use super::attribute::{mix as mixed, pairs_in};
use super::matching::matches;
use super::run::with_twins;
use super::scale::{Differences, centre};
use super::session::Session;
use crate::audit::rewrite::{Proposal, proposals};
use crate::audit::rule::Rule;
use crate::audit::rule_set::Line;
use crate::report::rules::Rewrite;
use crate::treatment::{Bench, Error};

/// To learn what a pair takes.
const FIRST_PAIRS: usize = 8;
/// Of the time for attributing, for each.
const SHARE: f64 = 0.06;
/// Of those that replace rules, and of those that only add exemptions.
const MOST: [usize; 2] = [3, 2];

/// Weighs the most promising proposals and adds them to what was measured.
///
/// # Errors
/// As [`Session::admit`].
pub fn weigh(
    session: &mut Session,
    bench: &Bench,
    weighed: &[Rule],
    measured: &mut Measured,
    time: Duration,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<(), Error> {
    let seconds = time.mul_f64(SHARE).as_secs_f64();
    let chosen = choose(measured);
    for (done, proposal) in chosen.iter().enumerate() {
        progress("rewrites", done as f64 / chosen.len() as f64);
        let new = session.admit_lines(bench, &proposal.with)?;
        let Some(new) = new.filter(|new| !new.is_empty()) else { continue };
        // What they replace makes no records here either.
        session.bridge.ledger.take(new.clone())?;
        let matches = matches(&mut session.bridge, new.len(), &mut |_, _| {})?;
        let new = with_twins(session, &new, &matches)?;
        let replaced: Vec<usize> = proposal
            .replaces
            .iter()
            .flat_map(|line| places(&measured.lines[*line], &measured.rules))
            .collect();
        let old: Vec<usize> = (0..weighed.len()).collect();
        let added = weighed.len()..weighed.len() + new.len();
        let kept = old.iter().copied().filter(|rule| !replaced.contains(rule));
        let rewritten: Vec<usize> = match proposal.is_first {
            true => added.chain(kept).collect(),
            false => kept.chain(added).collect(),
        };
        session.bridge.ledger.take([weighed, &new[..]].concat())?;
        let begun = Instant::now();
        let mut saving = Differences::weigh(&mut session.bridge, &rewritten, &old, FIRST_PAIRS)?;
        let more = pairs_in(seconds, begun.elapsed() / FIRST_PAIRS as u32);
        saving.extend(Differences::weigh(&mut session.bridge, &rewritten, &old, more)?);
        session.bridge.verify()?;
        let mut per_operation = saving.costs();
        per_operation.push(mixed(&per_operation, &measured.exec.weights()));
        measured.rewrites.push(Rewrite {
            title: proposal.title.clone(),
            replaces: proposal.replaces.clone(),
            with: proposal.with.clone(),
            is_first: proposal.is_first,
            gives_up: proposal.gives_up.clone(),
            saving_per_operation: per_operation,
            saving_per_syscall: centre(&saving.mixed(&measured.mix.weights())),
        });
    }
    Ok(())
}

/// Those that replace the dearest rules, and the first exemptions.
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
