//! Costs of rules that match, including the records that they make. Each rule that matches an
//! operation is measured. For the other rules, rules of ours are measured on the most similar
//! operation. The module also finds the part of these costs that a program is sure to pay.

use std::time::Instant;

use syscalls::Sysno;

use super::cost_meter::{ProgressFn, centre};
use super::loaded_rules::RuleId;
use super::match_detection::makes_records;
use super::measurements::{MeasuredRule, RuleMeasurements};
use super::mix::matches_like;
use super::operation::{CALLS_OF_FORK, Operation};
use super::prober_process::OperationBatch;
use super::rig::Rig;
use super::session::RulesSession;
use linux_audit::rule::{Rule, field};
use linux_audit::rule_fields::{Action, Decoded, RuleList};
use weigh_model::profile::SyscallProfile;
use weigh_model::result::rules::{Matched, ProfileRecords};
use weigh_treatment::TreatmentError;
use weigh_treatment::audit::TREATED_LOGINUID;

/// Few enough events that the kernel's queue is never near its limit.
const OPERATIONS: u64 = 12;
const PAIRS: usize = 10;

/// Adds what matching takes to the rules, as many as can be measured `until` then; not to those that make no
/// records of system calls. The cost of the others is estimated.
pub fn measure_matches(
    session: &mut RulesSession,
    rules: &mut [MeasuredRule],
    until: Instant,
    progress: ProgressFn,
) -> Result<(), TreatmentError> {
    let ours: Vec<Rule> = Operation::ALL
        .iter()
        .map(|operation| {
            let calls: Vec<u32> = operation.calls().iter().map(|call| call.id() as u32).collect();
            Rule::always_exit_of(&calls, TREATED_LOGINUID)
        })
        .collect();
    let ours = session.admit(&ours)?;
    let estimates: Vec<Matched> = Operation::ALL
        .iter()
        .zip(ours)
        .map(|(operation, rule)| measure_match(&mut session.rig, rule, *operation))
        .collect::<Result<_, _>>()?;
    let all = rules.len() as f64;
    for (done, rule) in rules.iter_mut().enumerate() {
        progress("the cost of matching", done as f64 / all);
        rule.matched = if !makes_records(&rule.decoded) {
            None
        } else if let Some(operation) = rule.matches.first().filter(|_| Instant::now() < until) {
            Some(measure_match(&mut session.rig, rule.id, *operation)?)
        } else {
            let like = matches_like(&rule.decoded) as usize;
            Some(Matched { is_estimate: true, ..estimates[like].clone() })
        };
    }
    Ok(())
}

/// Measures the cost of this rule when it matches this operation.
fn measure_match(
    rig: &mut Rig,
    rule: RuleId,
    operation: Operation,
) -> Result<Matched, TreatmentError> {
    let batches = [OperationBatch { operation, operations: OPERATIONS }; 3];
    let (mut records, mut log_bytes, mut differences) = (0, 0, Vec::new());
    for _ in 0..PAIRS {
        rig.rules.load(&[])?;
        let (hosts, without) = rig.records_of(&batches)?;
        rig.rules.load(&[rule])?;
        let (counts, with) = rig.records_of(&batches)?;
        records += counts.records.saturating_sub(hosts.records);
        log_bytes += counts.log_bytes.saturating_sub(hosts.log_bytes);
        // The first batch of the three warms up.
        let each = |took: &[u64]| took[1].min(took[2]) as f64 / OPERATIONS as f64;
        differences.push(each(&with) - each(&without));
    }
    let operations = PAIRS as f64 * batches.len() as f64 * OPERATIONS as f64;
    Ok(Matched {
        operation: operation.name().into(),
        records: records as f64 / operations,
        log_bytes: log_bytes as f64 / operations,
        elapsed_ns: centre(&differences).value,
        is_estimate: false,
    })
}

/// The records that a program makes whatever it does besides: of calls that a rule asks for by name, with no
/// further condition. Whether other rules match depends on who calls, on what, and how it ends; no list of
/// calls tells. `None` where none is guaranteed, or it is not known what they take.
pub fn guaranteed_records(
    profile: &SyscallProfile,
    measured: &RuleMeasurements,
) -> Option<ProfileRecords> {
    let cpu_ns = profile.cpu_s().filter(|seconds| *seconds > 0.0)? * 1e9;
    // Not as they were measured: a clone has one condition more.
    let rules: Vec<Decoded> = measured.rules.iter().map(|one| one.rule.decode()).collect();
    let mut guaranteed = ProfileRecords { calls: Vec::new(), cpu_pct: 0.0 };
    for (name, count) in &profile.calls {
        let Some(call) = name.parse::<Sysno>().ok() else { continue };
        if let Some(call_ns) = record_ns(call, &rules, measured) {
            guaranteed.calls.push(name.clone());
            guaranteed.cpu_pct += 100.0 * *count as f64 * call_ns / cpu_ns;
        }
    }
    (!guaranteed.calls.is_empty()).then_some(guaranteed)
}

/// Returns the time for making the records of one such call, in ns. An exemption may come before a
/// rule.
fn record_ns(call: Sysno, rules: &[Decoded], measured: &RuleMeasurements) -> Option<f64> {
    let number = call.id() as u32;
    let may_spare = |rule: &Decoded| match rule.list {
        RuleList::Exit => rule.action == Action::Never && rule.syscalls.contains(number),
        // It takes records of one kind from everybody, as it did when they were measured; or those of some.
        RuleList::Exclude => rule.fields.iter().any(|one| one.kind != field::MSGTYPE),
        _ => false,
    };
    if rules.iter().any(may_spare) {
        return None;
    }
    let mut of_files = measured.rules.iter().zip(rules);
    let (rule, decoded) = of_files.find(|(_, decoded)| decoded.records_always(number))?;
    let matched = rule.matched.as_ref()?;
    let recorded = recorded_calls(decoded, matched, measured)?;
    (recorded > 0.0 && matched.elapsed_ns > 0.0).then(|| matched.elapsed_ns / recorded)
}

/// How many calls of the operation on which it was measured were recorded.
fn recorded_calls(rule: &Decoded, matched: &Matched, measured: &RuleMeasurements) -> Option<f64> {
    let operation = Operation::ALL.into_iter().find(|one| one.name() == matched.operation)?;
    if matched.is_estimate {
        return Some(operation.calls().len() as f64);
    }
    let is_recorded = |call: &Sysno| rule.syscalls.contains(call.id() as u32);
    Some(match operation {
        Operation::Exec => {
            let calls = measured.exec.by_name();
            let recorded =
                calls.filter(|(name, _)| name.parse().is_ok_and(|call| is_recorded(&call)));
            recorded.map(|(_, count)| count).sum()
        }
        Operation::Fork => CALLS_OF_FORK.iter().filter(|call| is_recorded(call)).count() as f64,
        _ => operation.calls().iter().filter(|call| is_recorded(call)).count() as f64,
    })
}
