//! Residual cost of auditing after it is switched off.
//!
//! The kernel's `audit_ever_enabled` gives every later process an audit context (`audit_alloc()` in
//! `kernel/auditsc.c`), until a reboot. A process that is forked while a `never,task` rule is loaded
//! gets no context.

use super::context::cost_of_context;
use super::host::{CONTEXT_RATIO, HostAuditing, look_at_host};
use super::state::Snapshot;
use super::{BASELINE_LOGINUID, TREATED_LOGINUID, needs, setup, system};
use crate::{ApplyContext, Launch, Occupied, Treatment, TreatmentError};
use linux_audit::netlink::Client;
use linux_audit::rule::Rule;
use linux_audit::status::AuditSetting;
use weigh_host::undo::claim;
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_workload::setup::Setup;

/// `audit:residual`: auditing was enabled and is off again.
#[derive(Default)]
pub struct Residual {
    client: Option<Client>,
    rules: Vec<Rule>,
    ratio: f64,
    host: Option<(HostAuditing, Snapshot)>,
}

impl Treatment for Residual {
    fn occupies(&self) -> Vec<Occupied> {
        vec![Occupied { what: claim::AUDIT, can_alternate: false }]
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        guard: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        let mut client = Client::open().map_err(needs)?;
        let mut snapshot = Snapshot::take(&mut client)?;
        if snapshot.status.enabled != 0 {
            return Err(TreatmentError::Unavailable(
                "auditing is on, so its residual cost cannot be measured: use `audit`".into(),
            ));
        }
        let host = look_at_host(context, guard, &mut client, &mut snapshot)?;
        self.rules = client.rules().map_err(needs)?;
        self.client = Some(client);
        self.host = Some((host, snapshot));
        Ok(vec![host.sentence()])
    }

    fn apply(&mut self, context: &ApplyContext, guard: &mut Guard) -> Result<(), TreatmentError> {
        let missing = || system("apply before prepare");
        let client = self.client.as_mut().ok_or_else(missing)?;
        let (_, snapshot) = self.host.as_mut().ok_or_else(missing)?;
        // What somebody else switches on later is not ours to switch off.
        for (has_switched, enabled) in [(true, 1), (false, 0)] {
            snapshot.has_switched |= has_switched;
            snapshot.write_down(guard)?;
            client.set(AuditSetting::Enabled(enabled)).map_err(needs)?;
        }
        snapshot.has_switched = false;
        snapshot.write_down(guard)?;
        self.ratio = cost_of_context(context)?;
        if self.ratio > CONTEXT_RATIO {
            return Ok(());
        }
        Err(TreatmentError::NotInForce(format!(
            "auditing left no measurable cost behind: getppid takes {:.2} times as long as in an exempt \
             process",
            self.ratio
        )))
    }

    fn setup(&self, is_treated: bool) -> Setup {
        let loginuid = if is_treated { TREATED_LOGINUID } else { BASELINE_LOGINUID };
        setup(loginuid, None)
    }

    /// The context itself is invisible from outside; what gives it to one arm and keeps it from the
    /// other is not.
    fn verify_sample(&mut self, _: &Launch) -> Result<Evidence, TreatmentError> {
        let client = self.client.as_mut().ok_or_else(|| system("sample before apply"))?;
        if client.status().map_err(needs)?.enabled != 0 {
            return Err(TreatmentError::NotInForce(
                "auditing was switched on during the measurement".into(),
            ));
        }
        if client.rules().map_err(needs)? != self.rules {
            return Err(TreatmentError::NotInForce(
                "the audit rules were changed during the measurement".into(),
            ));
        }
        Ok(Evidence::default())
    }

    fn facts(&self) -> Vec<String> {
        let mut facts = vec![
            "Auditing was enabled once and is off again: treated processes carry the audit context that \
             remains. A `never,task` rule exempts the baseline."
                .into(),
            format!(
                "When the treatment was applied, getppid took {:.2} times as long as in an exempt \
                 process.",
                self.ratio
            ),
        ];
        facts.extend(self.host.iter().map(|(host, _)| host.sentence()));
        facts
    }

    fn state(&self, is_treated: bool) -> Option<&'static str> {
        Some(if is_treated { "residual" } else { "clean" })
    }

    fn restore(&mut self, guard: &mut Guard) -> Result<(), TreatmentError> {
        Snapshot::put_back(guard)
    }
}
