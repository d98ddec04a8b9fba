//! The records that a program makes for certain: of calls that a rule asks for by name, with no further
//! condition. Whether other rules match depends on who calls, on what, and how it ends; no list of calls
//! tells.

use syscalls::Sysno;

use super::assemble::Measured;
use super::operation::Operation;
use super::processes::CALLS_OF_FORK;
use crate::audit::rule::{Rule, field};
use crate::audit::rule_fields::{Action, Decoded, List};
use crate::profile::record::Profile;
use crate::report::rules::{Matched, ProfileRecords};

/// What they take of the program's CPU time; `None` where none is certain, or it is not known what they take.
pub fn records(profile: &Profile, measured: &Measured) -> Option<ProfileRecords> {
    let cpu_ns = profile.cpu_s().filter(|seconds| *seconds > 0.0)? * 1e9;
    // Not as they were weighed: a copy has one condition more.
    let rules: Vec<Decoded> = measured.rules.iter().map(Rule::decode).collect();
    let mut certain = ProfileRecords { calls: Vec::new(), cpu_pct: 0.0 };
    for (name, count) in &profile.calls {
        let Some(call) = name.parse::<Sysno>().ok() else { continue };
        if let Some(call_ns) = record_ns(call, &rules, measured) {
            certain.calls.push(name.clone());
            certain.cpu_pct += 100.0 * *count as f64 * call_ns / cpu_ns;
        }
    }
    (!certain.calls.is_empty()).then_some(certain)
}

/// What making the records of one such call takes. An exemption may come before a rule.
fn record_ns(call: Sysno, rules: &[Decoded], measured: &Measured) -> Option<f64> {
    let number = call.id() as u32;
    let may_spare = |rule: &Decoded| match rule.list {
        List::Exit => rule.action == Action::Never && rule.syscalls.contains(number),
        // It takes records of one kind from everybody, as it did when they were weighed; or those of some.
        List::Exclude => rule.fields.iter().any(|one| one.kind != field::MSGTYPE),
        _ => false,
    };
    if rules.iter().any(may_spare) {
        return None;
    }
    let (rule, decoded) = rules.iter().enumerate().find(|(_, rule)| rule.records_always(number))?;
    let matched = measured.matched.get(rule)?.as_ref()?;
    let recorded = recorded_calls(decoded, matched, measured)?;
    (recorded > 0.0 && matched.elapsed_ns > 0.0).then(|| matched.elapsed_ns / recorded)
}

/// How many calls of the operation on which it was measured were recorded.
fn recorded_calls(rule: &Decoded, matched: &Matched, measured: &Measured) -> Option<f64> {
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
