//! What each rule takes where it matches: measured where it matches an operation, and for the others
//! by rules of ours on the operation that they are most like.

use super::assemble::Measured;
use super::matching;
use super::mix::matches_like;
use super::operation::Operation;
use super::session::Session;
use crate::audit::rule::Rule;
use crate::report::rules::Matched;
use crate::treatment::Error;
use crate::treatment::audit::TREATED_LOGINUID;

/// By rule, as many as could be weighed; `None` of rules that make no records of system calls.
///
/// # Errors
/// As [`matching::weigh`].
pub fn weigh(
    session: &mut Session,
    measured: &Measured,
    all: &mut Vec<Option<Matched>>,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<(), Error> {
    let ours: Vec<Rule> = Operation::ALL
        .iter()
        .map(|operation| {
            let calls: Vec<u32> = operation.calls().iter().map(|call| call.id() as u32).collect();
            Rule::always_exit_of(&calls, TREATED_LOGINUID)
        })
        .collect();
    let ours = session.admit(&ours)?;
    session.bridge.ledger.take(ours)?;
    let estimates: Vec<Matched> = Operation::ALL
        .iter()
        .enumerate()
        .map(|(rule, operation)| matching::weigh(&mut session.bridge, rule, *operation))
        .collect::<Result<_, _>>()?;
    session.bridge.ledger.take(measured.rules.clone())?;
    for (rule, matches) in measured.matches.iter().enumerate() {
        progress("what matching takes", rule as f64 / measured.rules.len() as f64);
        let decoded = &measured.decoded[rule];
        all.push(if !matching::makes_records(decoded) {
            None
        } else if let Some(operation) = matches.first() {
            Some(matching::weigh(&mut session.bridge, rule, *operation)?)
        } else {
            let like = matches_like(decoded) as usize;
            Some(Matched { is_estimate: true, ..estimates[like].clone() })
        });
    }
    Ok(())
}
