//! `audit:live`: what the rules cost that are loaded on this host, without unloading them.
//!
//! The baseline is exempt by one `never,task` rule, and a watch on a file of ours proves that the
//! treated processes are audited. Nothing else is changed, so that the host is audited throughout.

use super::host::look_at_host;
use super::probe::is_about_ours;
use super::receiver::Receiver;
use super::state::Snapshot;
use super::watch::Watch;
use super::{BASELINE_LOGINUID, TREATED_LOGINUID, needs, quantities, setup, system};
use crate::{ApplyContext, Launch, Occupied, Role, Treatment, TreatmentError};
use linux_audit::netlink::Client;
use linux_audit::rule::{KEY, Rule};
use weigh_host::undo::claim;
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_workload::setup::Setup;

pub struct HostRules {
    /// As the kernel listed them when this was made.
    rules: Vec<Rule>,
    snapshot: Option<Snapshot>,
    /// Only while it is applied.
    watch: Option<Watch>,
}

impl HostRules {
    pub fn new() -> Result<HostRules, String> {
        let look = |mut client: Client| Ok((client.status()?.enabled, client.rules()?));
        let found = Client::open().and_then(look).ok();
        let lacks = |(enabled, rules): &(u32, Vec<Rule>)| {
            nothing_to_weigh(*enabled, rules.iter().filter(|rule| !is_about_ours(rule)).count())
        };
        match found.as_ref().and_then(lacks) {
            Some(why) => Err(why.into()),
            None => {
                let mut rules = found.map(|(_, rules)| rules).unwrap_or_default();
                rules.retain(|rule| !is_about_ours(rule));
                Ok(HostRules { rules, snapshot: None, watch: None })
            }
        }
    }
}

impl Treatment for HostRules {
    fn occupies(&self) -> Vec<Occupied> {
        vec![Occupied { what: claim::AUDIT, can_alternate: false }]
    }

    fn sets_in_late(&self) -> bool {
        true
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        guard: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        let mut client = Client::open().map_err(needs)?;
        let mut snapshot = Snapshot::take(&mut client)?;
        look_at_host(context, guard, &mut client, &mut snapshot)?;
        let sentence = sentence(snapshot.host_rules());
        self.snapshot = Some(snapshot);
        Ok(vec![sentence])
    }

    fn apply(&mut self, context: &ApplyContext, guard: &mut Guard) -> Result<(), TreatmentError> {
        let snapshot = self.snapshot.as_mut().ok_or_else(|| system("apply before prepare"))?;
        // Where there is no audit daemon, we do not become one.
        let receiver = snapshot.healthy_daemon().map_or(Receiver::Nobody, Receiver::Host);
        let mut watch = Watch::start(context, receiver)?;
        let rule = Rule::watch(&watch.canary, KEY);
        snapshot.added = Some(Snapshot::ours([rule.clone().listed()]));
        snapshot.write_down(guard)?;
        let mut client = Client::open().map_err(needs)?;
        client.add_rule(&rule).map_err(needs)?;
        let rules = client.rules().map_err(needs)?;
        if !snapshot.is_all_but_ours(&rules) {
            return Err(TreatmentError::NotInForce(
                "something changed this host's audit rules while weigh was starting: run weigh again".into(),
            ));
        }
        watch.begin(rules, TREATED_LOGINUID, None)?;
        self.watch = Some(watch);
        Ok(())
    }

    fn setup(&self, is_treated: bool) -> Setup {
        let loginuid = if is_treated { TREATED_LOGINUID } else { BASELINE_LOGINUID };
        setup(loginuid, self.watch.as_ref().map(|watch| watch.canary.clone()))
    }

    fn begin_sample(&mut self, _: Role) -> Result<(), TreatmentError> {
        self.watch.as_mut().ok_or_else(|| system("sample before apply"))?.begin_sample()
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        self.watch.as_mut().ok_or_else(|| system("sample before apply"))?.verify_sample(launch)
    }

    fn content(&self) -> Vec<u8> {
        format!("{:?}", self.rules).into_bytes()
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        quantities::ALL.to_vec()
    }

    fn facts(&self) -> Vec<String> {
        let (Some(watch), Some(snapshot)) = (&self.watch, &self.snapshot) else {
            return Vec::new();
        };
        vec![
            sentence(snapshot.host_rules()),
            watch.fact(),
            format!(
                "Treated processes have a login uid of their own ({TREATED_LOGINUID}), as a user's \
                 would. A `never,task` rule exempts the baseline's login uid ({BASELINE_LOGINUID}), so \
                 its processes carry no audit context."
            ),
        ]
    }

    fn state(&self, is_treated: bool) -> Option<&'static str> {
        Some(if is_treated { "audited" } else { "clean" })
    }

    fn restore(&mut self, guard: &mut Guard) -> Result<(), TreatmentError> {
        self.watch = None;
        Snapshot::put_back(guard)
    }
}

fn sentence(rules: usize) -> String {
    let stay = match rules {
        1 => "The one audit rule of this host stays".into(),
        _ => format!("The {rules} audit rules of this host stay"),
    };
    format!(
        "{stay} loaded throughout. weigh adds two rules with the key \"{KEY}\": one exempts the \
         baseline, the second watches weigh's canary file."
    )
}

/// A host that is not audited now has nothing that could be weighed as it is.
fn nothing_to_weigh(enabled: u32, rules: usize) -> Option<&'static str> {
    match (enabled, rules) {
        (0, _) => Some(
            "auditing is off, so `audit:live` has nothing to weigh: switch auditing on with `auditctl -e \
             1`, or weigh a rule file with `audit:rules=FILE`",
        ),
        (_, 0) => Some(
            "no audit rule is loaded, so `audit:live` has nothing to weigh: load the host's rules \
             (`augenrules --load`, or `auditctl -R FILE`), or weigh a rule file with `audit:rules=FILE`",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_what_can_be_done() {
        assert!(nothing_to_weigh(0, 7).unwrap().contains("`auditctl -e 1`"));
        assert!(nothing_to_weigh(1, 0).unwrap().contains("`auditctl -R FILE`"));
        assert_eq!(nothing_to_weigh(1, 1), None);
    }
}
