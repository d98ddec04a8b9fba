//! Proving with every sample that auditing is on as we set it, for the treated and for nobody else,
//! and collecting what it produced.

use std::path::PathBuf;
use std::time::Duration;

use super::limits::Limits;
use super::quantities::{
    BACKLOG_WAIT, KAUDITD_CPU, LOG_BYTES, LOST, RECEIVED, RECORDS, SHIPPED, SINK_CPU,
};
use super::receiver::Receiver;
use super::stream::{Cpu, Stream};
use super::{BASELINE_LOGINUID, needs, system};
use crate::{ApplyContext, Launch, TreatmentError};
use linux_audit::config_diff;
use linux_audit::netlink::Client;
use linux_audit::rule::Rule;
use linux_audit::status::{AuditSetting, Status, jiffies_to_s};
use linux_audit::tally::RecordCounts;
use weigh_model::evidence::Evidence;
use weigh_workload::setup::kind::login_uid::LoginUid;

/// The kernel counts records anew when it drops one, if it has not for a second (`audit_rate_check`).
const QUOTA_REFILLS: Duration = Duration::from_millis(1100);

/// Watch over auditing, from the moment that it is on.
pub struct Watch {
    client: Client,
    stream: Stream,
    pub canary: PathBuf,
    /// Rules that the kernel lists as long as nobody interferes; `status` has its settings.
    rules: Vec<Rule>,
    status: Status,
    status_before_sample: Status,
    cpu_before_sample: Cpu,
    of_pair: OfPair,
    /// Records per second that the kernel takes in samples, if that is set.
    rate: Option<u32>,
    /// Status at the end of the sample, before the rate limit was lifted.
    limited: Option<Status>,
    is_limited: bool,
}

/// Which of two launches that lived at the same time were asked about.
enum OfPair {
    /// It was one launch.
    Alone,
    /// Neither was.
    Expected,
    /// One was: this is of both.
    Seen(RecordCounts, Cpu),
}

impl Watch {
    /// Creates the canary and starts draining records, or counting those that another receives.
    pub fn start(context: &ApplyContext, receiver: Receiver) -> Result<Watch, TreatmentError> {
        let client = Client::open().map_err(needs)?;
        let canary = context.place.scratch.join("canary");
        std::fs::write(&canary, "opened to prove that auditing works\n").map_err(system)?;
        let stream = Stream::start(context, &canary, receiver)?;
        let status = Status::default();
        Ok(Watch {
            client,
            stream,
            canary,
            rules: Vec::new(),
            status,
            status_before_sample: status,
            cpu_before_sample: Cpu::default(),
            of_pair: OfPair::Alone,
            rate: None,
            limited: None,
            is_limited: false,
        })
    }

    /// Takes what is loaded and set now for what it has to stay, and counts processes of this login uid.
    pub fn begin(
        &mut self,
        rules: Vec<Rule>,
        loginuid: u32,
        rate: Option<u32>,
    ) -> Result<(), TreatmentError> {
        self.lift_rate_limit()?;
        (self.rules, self.rate) = (rules, rate);
        self.stream.treated_loginuid = loginuid;
        self.status = self.client.status().map_err(needs)?;
        self.stream.window(&mut self.client).map(drop)
    }

    /// From now on, these rules and limits, and processes of this login uid; to get there, we made so many
    /// changes. Their records are no part of the next sample.
    ///
    /// # Errors
    /// [`TreatmentError::NotInForce`] where somebody else made changes as well.
    pub fn expect(
        &mut self,
        rules: Vec<Rule>,
        limits: Limits,
        loginuid: u32,
        our_changes: usize,
    ) -> Result<(), TreatmentError> {
        // Lifted here only after a sample that failed.
        let our_changes = our_changes + usize::from(self.is_limited);
        self.lift_rate_limit()?;
        (self.rules, self.rate) = (rules, limits.rate);
        self.stream.treated_loginuid = loginuid;
        self.status.backlog_limit = limits.backlog;
        self.status.backlog_wait_time = limits.wait;
        let counts = self.stream.window(&mut self.client)?;
        let changes: Vec<_> =
            counts.config_changes.iter().filter_map(|c| self.interference(c)).collect();
        match changes.last() {
            Some((what, change)) if changes.len() > our_changes => Err(changed(what, change)),
            _ => Ok(()),
        }
    }

    /// Both samples of a pair go through this, and wait until the kernel takes a second's records again.
    pub fn begin_sample(&mut self) -> Result<(), TreatmentError> {
        if let Some(rate) = self.rate {
            std::thread::sleep(QUOTA_REFILLS);
            self.is_limited = true;
            self.client.set(AuditSetting::RateLimit(rate)).map_err(needs)?;
        }
        self.status_before_sample = self.client.status().map_err(needs)?;
        self.cpu_before_sample = self.stream.cpu();
        self.of_pair = OfPair::Alone;
        Ok(())
    }

    /// Announces a pair whose launches live at the same time; after [`Watch::begin_sample`].
    pub fn begin_pair(&mut self) {
        self.of_pair = OfPair::Expected;
    }

    /// All that was recorded of the launch, or of the two that lived at the same time.
    fn window(&mut self) -> Result<(RecordCounts, Cpu), TreatmentError> {
        let of_pair = std::mem::replace(&mut self.of_pair, OfPair::Alone);
        if let OfPair::Seen(counts, cpu) = of_pair {
            return Ok((counts, cpu));
        }
        self.lift_rate_limit()?;
        let counts = self.stream.window(&mut self.client)?;
        let cpu = self.stream.cpu().since(self.cpu_before_sample);
        if matches!(of_pair, OfPair::Expected) {
            self.of_pair = OfPair::Seen(counts.clone(), cpu);
        }
        Ok((counts, cpu))
    }

    /// Ends the limit of a sample: it would drop the record that marks the end, too.
    pub fn lift_rate_limit(&mut self) -> Result<(), TreatmentError> {
        if self.is_limited {
            self.limited = Some(self.client.status().map_err(needs)?);
            self.client.set(AuditSetting::RateLimit(self.status.rate_limit)).map_err(needs)?;
            self.is_limited = false;
        }
        Ok(())
    }

    /// Status of the sample's end, for which the kernel took as many records as it should.
    fn limited(&self, now: Status) -> Result<Status, TreatmentError> {
        match (self.rate, self.limited) {
            (None, _) => Ok(now),
            (Some(rate), Some(limited)) if limited.rate_limit == rate => {
                Ok(Status { lost: limited.lost, ..now })
            }
            (_, limited) => Err(changed(
                "settings",
                &format!("rate_limit={}", limited.unwrap_or(now).rate_limit),
            )),
        }
    }

    /// As [`interference`], except our own changes of the rate limit.
    fn interference<'a>(&self, change: &'a str) -> Option<(&'static str, &'a str)> {
        let is_ours = self.rate.is_some() && change.contains("op=set audit_rate_limit=");
        if is_ours { None } else { interference(change) }
    }

    pub fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        if self.client.status().map_err(needs)?.enabled == 0 {
            return Err(TreatmentError::NotInForce(
                "auditing was switched off during the measurement".into(),
            ));
        }
        let (counts, cpu) = self.window()?;
        if let Some((what, change)) =
            counts.config_changes.iter().find_map(|c| self.interference(c))
        {
            return Err(changed(what, change));
        }
        let status = self.check_configuration().and_then(|now| self.limited(now))?;
        let mut evidence = self.evidence(&status, &counts, cpu);
        let has_missed = self.stream.has_missed(&counts);
        let has_lost = evidence.whole(&LOST) > Some(0) || has_missed;
        if has_lost && !has_missed && !counts.canaries.contains(&launch.launched.pid) {
            // The beginning cannot be told. The few records before it are less than all that would be missed.
            evidence = evidence
                .with(&RECORDS, Some(counts.treated_records))
                .with(&LOG_BYTES, Some(counts.treated_log_bytes));
        }
        self.check_canaries(launch, &counts, has_lost)?;
        Ok(evidence)
    }

    /// The process of an auditd that we started.
    pub fn own_auditd(&self) -> Option<u32> {
        self.stream.own_auditd()
    }

    /// Who drains and stores the records.
    pub fn fact(&self) -> String {
        self.stream.fact()
    }

    /// Checks that exactly our rules and settings are loaded, with every sample before it counts.
    fn check_configuration(&mut self) -> Result<Status, TreatmentError> {
        let now = self.client.status().map_err(needs)?;
        let settings = config_diff::settings(&self.status, &now);
        if !settings.is_empty() {
            return Err(TreatmentError::NotInForce(format!(
                "the audit settings (`auditctl -s`) were changed during the measurement: {}",
                settings.join("; ")
            )));
        }
        let rules = self.client.rules().map_err(needs)?;
        if rules != self.rules {
            return Err(TreatmentError::NotInForce(format!(
                "the audit rules were changed during the measurement: {} were loaded before, {} are now",
                self.rules.len(),
                rules.len()
            )));
        }
        Ok(now)
    }

    fn check_canaries(
        &self,
        launch: &Launch,
        counts: &RecordCounts,
        has_lost: bool,
    ) -> Result<(), TreatmentError> {
        let was_seen = |pid: Option<&u32>| pid.is_some_and(|pid| counts.canaries.contains(pid));
        let launched = launch.launched;
        let seen = [Some(&launched.pid), launched.afterwards.first()].map(was_seen);
        // Whichever of several arms it is of.
        let login_uid = launch.setup.get::<LoginUid>().map(|uid| uid.workers);
        let is_audited = login_uid.is_some_and(|uid| uid != BASELINE_LOGINUID);
        // Where records were dropped, a canary's may be among them; what did arrive is proof as well.
        let is_proved = seen == [true, true] || (has_lost && counts.treated_events > 0);
        if is_audited && !is_proved && has_lost {
            return Err(TreatmentError::NotInForce(
                "whether the treated process was audited is unknown: none of its records arrived, and the \
                 kernel dropped records. Raise backlog=N or rate=N, or let processes wait for room (without \
                 `wait=0`)"
                    .into(),
            ));
        }
        if is_audited && !is_proved {
            return Err(TreatmentError::NotInForce(format!(
                "the treated process was not audited: it opened the file {}, but the kernel sent no \
                 record of the open. Check the audit rules (`auditctl -l`)",
                self.canary.display()
            )));
        }
        if !is_audited && counts.exempt_messages > 0 {
            return Err(TreatmentError::NotInForce(
                "records that the baseline wrote itself were kept, although a `never,user` rule should drop \
                 them: check `auditctl -l`"
                    .into(),
            ));
        }
        if !is_audited && seen != [false, false] {
            return Err(TreatmentError::NotInForce(
                "the baseline was audited, although a `never,task` rule should exempt it: check \
                 `auditctl -l`"
                    .into(),
            ));
        }
        Ok(())
    }

    fn evidence(&self, now: &Status, counts: &RecordCounts, cpu: Cpu) -> Evidence {
        let before = &self.status_before_sample;
        let waited = now.backlog_wait_time_actual.zip(before.backlog_wait_time_actual);
        let waited_s = waited.map(|(now, before)| jiffies_to_s(now.wrapping_sub(before)));
        let mut evidence = Evidence::default()
            .with(&RECORDS, Some(counts.records))
            .with(&LOG_BYTES, Some(counts.log_bytes))
            .with(&LOST, Some(u64::from(now.lost.wrapping_sub(before.lost))))
            .with(&RECEIVED, Some(counts.received))
            .with(&BACKLOG_WAIT, waited_s)
            .with(&SINK_CPU, cpu.sink_s())
            .with(&KAUDITD_CPU, cpu.kauditd_s())
            .with(&SHIPPED, counts.shipped);
        if self.stream.has_missed(counts) {
            // Whoever else receives them has them all; we, who read along, have not, and so cannot say how
            // many. Of those that only we receive the kernel may have dropped some, and has not counted them
            // as lost (`kauditd_hold_skb` in kernel/audit.c).
            let incomplete = [&RECORDS, &LOG_BYTES, &RECEIVED];
            evidence.not_counted(&incomplete, self.stream.why_not_counted());
        }
        evidence
    }
}

fn changed(what: &str, change: &str) -> TreatmentError {
    TreatmentError::NotInForce(format!(
        "the audit {what} were changed during the measurement ({change})"
    ))
}

/// Rules that come or go, settings that change. The kernel also records when a watched file comes or
/// goes, which is its own doing.
fn interference(text: &str) -> Option<(&'static str, &str)> {
    let is_of_rules = ["op=add_rule", "op=remove_rule"].iter().any(|change| text.contains(change));
    if is_of_rules {
        return Some(("rules", text));
    }
    text.contains("op=set audit_").then_some(("settings", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_somebody_did_is_interference() {
        let what = |text| interference(text).map(|(what, _)| what);
        assert_eq!(what("audit(1:2): op=remove_rule key=\"weigh\" list=4 res=1"), Some("rules"));
        assert_eq!(what("audit(1:2): op=set audit_enabled=0 old=1 auid=0 res=1"), Some("settings"));
        assert_eq!(what("audit(1:2): op=updated_rules path=\"/etc/x\" list=4 res=1"), None);
    }
}
