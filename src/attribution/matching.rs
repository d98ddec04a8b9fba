//! What rules cost where they match: which operations they match, and what making the records takes.

use super::bridge::Bridge;
use super::operation::Operation;
use super::prober_process::Run;
use super::scale::centre;
use crate::audit::rule_fields::{Action, Decoded, List};
use crate::report::rules::Matched;
use crate::treatment::Error;

/// Few enough events that the kernel's queue is never near its limit.
const OPERATIONS: u64 = 12;
const PAIRS: usize = 10;

/// The operations that each of the ledger's rules makes records of, when it is the only one loaded: more
/// records than the rules of the host alone make. One that exempts is not tried: it makes none, and may keep
/// those away by which the prober is known to be audited.
///
/// # Errors
/// [`Error::NotInForce`] where the prober is not audited.
pub fn matches(
    bridge: &mut Bridge,
    rules: &[Decoded],
    progress: &mut dyn FnMut(&str, f64),
) -> Result<Vec<Vec<Operation>>, Error> {
    let once = |operation: &Operation| Run { operation: *operation, operations: 1 };
    let all: Vec<Run> = Operation::ALL.iter().map(once).collect();
    bridge.ledger.load(&[])?;
    let hosts_of_all = bridge.records_of(&all)?.0.records;
    let hosts: Vec<u64> = all
        .iter()
        .map(|run| Ok(bridge.records_of(&[*run])?.0.records))
        .collect::<Result<_, Error>>()?;
    let mut matches = Vec::with_capacity(rules.len());
    for (rule, decoded) in rules.iter().enumerate() {
        progress("what the rules match", rule as f64 / rules.len() as f64);
        let mut of_rule = Vec::new();
        if !makes_records(decoded) {
            matches.push(of_rule);
            continue;
        }
        bridge.ledger.load(&[rule])?;
        if bridge.records_of(&all)?.0.records > hosts_of_all {
            for (run, hosts) in all.iter().zip(&hosts) {
                if bridge.records_of(&[*run])?.0.records > *hosts {
                    of_rule.push(run.operation);
                }
            }
        }
        matches.push(of_rule);
    }
    Ok(matches)
}

/// Whether system calls that it matches are recorded.
pub fn makes_records(rule: &Decoded) -> bool {
    rule.list == List::Exit && rule.action == Action::Always
}

/// What it takes when this rule of the ledger's matches this operation.
///
/// # Errors
/// As [`Bridge::records_of`].
pub fn weigh(bridge: &mut Bridge, rule: usize, operation: Operation) -> Result<Matched, Error> {
    let run = [Run { operation, operations: OPERATIONS }; 3];
    let (mut records, mut log_bytes, mut differences) = (0, 0, Vec::new());
    for _ in 0..PAIRS {
        bridge.ledger.load(&[])?;
        let (hosts, without) = bridge.records_of(&run)?;
        bridge.ledger.load(&[rule])?;
        let (counts, with) = bridge.records_of(&run)?;
        records += counts.records.saturating_sub(hosts.records);
        log_bytes += counts.log_bytes.saturating_sub(hosts.log_bytes);
        // The first batch of the three warms up.
        let each = |took: &[u64]| took[1].min(took[2]) as f64 / OPERATIONS as f64;
        differences.push(each(&with) - each(&without));
    }
    let operations = PAIRS as f64 * run.len() as f64 * OPERATIONS as f64;
    Ok(Matched {
        operation: operation.name().into(),
        records: records as f64 / operations,
        log_bytes: log_bytes as f64 / operations,
        elapsed_ns: centre(&differences).value,
        is_estimate: false,
    })
}
