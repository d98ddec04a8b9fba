//! The rules of a session by their ids: which of them the kernel holds at the moment, and in which order.

use linux_audit::config_diff;
use linux_audit::netlink::Client;
use linux_audit::rule::Rule;
use linux_audit::status::Status;
use weigh_treatment::TreatmentError;
use weigh_treatment::audit::needs;

/// A rule that this session may load. It means the same rule as long as the session lasts, whatever else is
/// admitted, loaded or unloaded: a rule of the files, the clone that is measured in its place, and a rewrite
/// of it have an id each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(usize);

/// The kernel's list, as far as it is ours to change.
pub struct LoadedRules {
    client: Client,
    /// How auditing is set throughout.
    status: Status,
    /// Rules that stay loaded throughout, as the kernel lists them: the host's rules and ours.
    fixed: Vec<Rule>,
    /// All that were ever admitted, by the number of their id.
    admitted: Vec<Rule>,
    loaded: Vec<RuleId>,
}

impl LoadedRules {
    /// With no rules to load yet, and all that is loaded now to stay.
    pub fn new(mut client: Client) -> Result<LoadedRules, TreatmentError> {
        let fixed = client.rules().map_err(needs)?;
        let status = client.status().map_err(needs)?;
        Ok(LoadedRules { client, status, fixed, admitted: Vec::new(), loaded: Vec::new() })
    }

    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The ids under which these rules, as the kernel lists them, can be loaded from now on.
    pub fn admit(&mut self, rules: impl IntoIterator<Item = Rule>) -> Vec<RuleId> {
        let first = self.admitted.len();
        self.admitted.extend(rules);
        (first..self.admitted.len()).map(RuleId).collect()
    }

    pub fn rule(&self, id: RuleId) -> &Rule {
        &self.admitted[id.0]
    }

    /// Has exactly these loaded, in this order. What comes behind the first difference is unloaded and
    /// loaded again: rules are added at the end.
    pub fn load(&mut self, wanted: &[RuleId]) -> Result<(), TreatmentError> {
        let same = self.loaded.iter().zip(wanted).take_while(|(a, b)| a == b).count();
        // One by one: after an error, too, it is known what is loaded.
        while let Some(id) = self.loaded.get(same..).and_then(<[RuleId]>::last) {
            self.client.delete_rule(&self.admitted[id.0]).map_err(interfered)?;
            self.loaded.pop();
        }
        for &id in &wanted[same..] {
            self.client.add_rule(&self.admitted[id.0]).map_err(interfered)?;
            self.loaded.push(id);
        }
        Ok(())
    }

    /// Checks that the kernel holds what it should, and nothing else.
    ///
    /// # Errors
    /// [`TreatmentError::NotInForce`] where somebody else changed the rules or a setting.
    pub fn verify(&mut self) -> Result<(), TreatmentError> {
        let status = self.client.status().map_err(needs)?;
        if status.enabled == 0 {
            return Err(TreatmentError::NotInForce(
                "auditing was switched off during the measurement".into(),
            ));
        }
        let changed = config_diff::settings(&self.status, &status);
        if !changed.is_empty() {
            return Err(TreatmentError::NotInForce(format!(
                "the audit settings were changed during the measurement: {}",
                changed.join("; ")
            )));
        }
        let listed = self.client.rules().map_err(needs)?;
        let ours = self.loaded.iter().map(|id| self.rule(*id));
        let mut expected: Vec<&Rule> = self.fixed.iter().chain(ours).collect();
        // The kernel lists one filter after the other; within each, in the order of loading.
        expected.sort_by_key(|rule| rule.filter());
        if listed.iter().eq(expected.iter().copied()) {
            return Ok(());
        }
        Err(TreatmentError::NotInForce(format!(
            "the audit rules were changed during the measurement: {} were loaded, now there are {}",
            expected.len(),
            listed.len()
        )))
    }
}

fn interfered(error: std::io::Error) -> TreatmentError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EEXIST) => TreatmentError::NotInForce(
            "the audit rules were changed by a different program during the measurement".into(),
        ),
        _ => needs(error),
    }
}

#[cfg(test)]
impl RuleId {
    /// The ids that the first `count` rules of a session get.
    pub fn first(count: usize) -> Vec<RuleId> {
        (0..count).map(RuleId).collect()
    }

    /// Its place among those of [`RuleId::first`].
    pub fn number(self) -> usize {
        self.0
    }
}
