//! Why some rule files are not weighed at all.

use super::session::Session;
use crate::audit::rule_set::{Outcome, RuleSet};
use crate::report::format;

/// Each is left out in turn, which takes the longer the more there are: 350 take 40 s.
const MOST_RULES: usize = 2000;

/// The kernel goes through all that are loaded for each one that comes or goes.
///
/// # Errors
/// A sentence.
pub fn too_many(set: &RuleSet) -> Result<(), String> {
    if set.rules() <= MOST_RULES {
        return Ok(());
    }
    Err(format!(
        "these files have {} rules, and the time to weigh each grows with the square of their number: give \
         at most {} at a time; what all of them cost together, `weigh compare audit:rules=FILE` tells",
        format::integer(set.rules() as u64),
        format::integer(MOST_RULES as u64)
    ))
}

/// Of a session that loaded none.
pub fn no_rule(session: &Session) -> String {
    if session
        .lines
        .iter()
        .all(|line| matches!(line.outcome, Outcome::Present | Outcome::Skipped(_)))
    {
        return "all rules of these files are in force on this host already, and stay so: what they cost a \
                program here, `weigh compare audit:live -- COMMAND` tells; which of them costs it, \
                `weigh rules` tells on a machine like this one that has not loaded them"
            .into();
    }
    let reasons = session.lines.iter().filter_map(|line| match &line.outcome {
        Outcome::Refused(reason) => Some(format!("line {}: {reason}", line.number)),
        Outcome::Present => Some(format!("line {}: this host has it already", line.number)),
        Outcome::Loaded | Outcome::Skipped(_) => None,
    });
    let reasons: Vec<String> = reasons.take(5).collect();
    format!("no rule of these files could be loaded: {}", reasons.join("; "))
}
