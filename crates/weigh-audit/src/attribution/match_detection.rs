//! Which operations the rules match, and the non-matching clones that are measured in the place of those that
//! match any.

use std::collections::BTreeMap;

use super::cost_meter::ProgressFn;
use super::loaded_rules::RuleId;
use super::operation::Operation;
use super::prober_process::OperationBatch;
use super::rig::Rig;
use super::session::RulesSession;
use linux_audit::rule::Rule;
use linux_audit::rule_fields::{Action, Decoded, RuleList};
use weigh_treatment::TreatmentError;
use weigh_treatment::audit::BASELINE_LOGINUID;

/// The operations that each of these rules makes records of, when it is the only one loaded: more records
/// than the rules of the host alone make. One that exempts is not tried: it makes none, and may keep those
/// away by which the prober is known to be audited.
pub fn detect_matches(
    rig: &mut Rig,
    rules: &[RuleId],
    progress: ProgressFn,
) -> Result<BTreeMap<RuleId, Vec<Operation>>, TreatmentError> {
    let once = |operation: &Operation| OperationBatch { operation: *operation, operations: 1 };
    let all: Vec<OperationBatch> = Operation::ALL.iter().map(once).collect();
    rig.rules.load(&[])?;
    let hosts_of_all = rig.records_of(&all)?.0.records;
    let hosts: Vec<u64> = all
        .iter()
        .map(|batch| Ok(rig.records_of(&[*batch])?.0.records))
        .collect::<Result<_, TreatmentError>>()?;
    let mut matches = BTreeMap::new();
    for (done, &rule) in rules.iter().enumerate() {
        progress("which operations the rules match", done as f64 / rules.len() as f64);
        let mut of_rule = Vec::new();
        if makes_records(&rig.rules.rule(rule).decode()) {
            rig.rules.load(&[rule])?;
            if rig.records_of(&all)?.0.records > hosts_of_all {
                for (batch, hosts) in all.iter().zip(&hosts) {
                    if rig.records_of(&[*batch])?.0.records > *hosts {
                        of_rule.push(batch.operation);
                    }
                }
            }
        }
        matches.insert(rule, of_rule);
    }
    Ok(matches)
}

/// Returns true if system calls that the rule matches are recorded.
pub fn makes_records(rule: &Decoded) -> bool {
    rule.list == RuleList::Exit && rule.action == Action::Always
}

/// A non-matching clone of each rule that matches an operation: it evaluates all that the rule does, and
/// makes no record.
pub fn non_matching_clones(
    session: &mut RulesSession,
    matches: &BTreeMap<RuleId, Vec<Operation>>,
) -> Result<BTreeMap<RuleId, RuleId>, TreatmentError> {
    let does_match =
        |(rule, operations): (&RuleId, &Vec<Operation>)| (!operations.is_empty()).then_some(*rule);
    let matching: Vec<RuleId> = matches.iter().filter_map(does_match).collect();
    let clones: Option<Vec<Rule>> = matching
        .iter()
        .map(|rule| session.rig.rules.rule(*rule).for_nobody(BASELINE_LOGINUID))
        .collect();
    let clones = clones.ok_or_else(|| {
        TreatmentError::Unavailable(
            "a rule with 64 conditions cannot be weighed: it matches weigh's own process".into(),
        )
    })?;
    Ok(matching.into_iter().zip(session.admit(&clones)?).collect())
}
