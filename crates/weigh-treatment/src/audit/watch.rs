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

/// Time after which the kernel counts records anew as soon as its quota is used up: a second
/// (`audit_rate_check`), and some more.
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
    /// The limit that is set now.
    rate_in_force: Option<u32>,
    /// Status at the end of the sample, before the rate limit was lifted; `None` if none was set.
    limited: Option<Status>,
    /// Our own changes of the rate limit since the last drain, as the kernel records them.
    own_changes: Vec<String>,
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
            rate_in_force: None,
            limited: None,
            own_changes: Vec::new(),
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
        self.drain().map(drop)
    }

    /// From now on, these rules and limits, and processes of this login uid; to get there, we made so many
    /// changes. Their records are no part of the next sample. No rate limit may be set: it drops records.
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
        (self.rules, self.rate) = (rules, limits.rate);
        self.stream.treated_loginuid = loginuid;
        self.status.backlog_limit = limits.backlog;
        self.status.backlog_wait_time = limits.wait;
        let counts = self.drain()?;
        let changes: Vec<_> =
            counts.config_changes.iter().filter_map(|c| interference(c)).collect();
        match changes.last() {
            Some((what, change)) if changes.len() > our_changes => Err(changed(what, change)),
            _ => Ok(()),
        }
    }

    /// Once before each sample or simultaneous pair, whatever arm it is of: so both samples of a pair wait
    /// for the same time.
    pub fn settle(&mut self, waits_for_quota: bool) -> Result<(), TreatmentError> {
        // It is still set after a launch that failed, and was not proved.
        self.lift_rate_limit()?;
        self.limited = None;
        if waits_for_quota {
            std::thread::sleep(QUOTA_REFILLS);
        }
        Ok(())
    }

    /// Sets the rate limit of the arm whose turn it is, if it has one; after [`Watch::settle`].
    pub fn set_rate_limit(&mut self) -> Result<(), TreatmentError> {
        if let (Some(rate), None) = (self.rate, self.rate_in_force) {
            self.rate_in_force = Some(rate);
            self.change_rate_limit(self.status.rate_limit, rate)?;
        }
        Ok(())
    }

    /// Remembers the change, as the kernel records it like anybody's.
    fn change_rate_limit(&mut self, old: u32, new: u32) -> Result<(), TreatmentError> {
        self.client.set(AuditSetting::RateLimit(new)).map_err(needs)?;
        self.own_changes.push(rate_limit_change(old, new));
        Ok(())
    }

    /// All that was recorded since the last call, without our own changes of the rate limit.
    fn drain(&mut self) -> Result<RecordCounts, TreatmentError> {
        let mut counts = self.stream.window(&mut self.client)?;
        remove_own(&mut counts.config_changes, std::mem::take(&mut self.own_changes));
        Ok(counts)
    }

    /// Right before a sample, with everything set.
    pub fn begin_sample(&mut self) -> Result<(), TreatmentError> {
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
        let counts = self.drain()?;
        let cpu = self.stream.cpu().since(self.cpu_before_sample);
        if matches!(of_pair, OfPair::Expected) {
            self.of_pair = OfPair::Seen(counts.clone(), cpu);
        }
        Ok((counts, cpu))
    }

    /// Ends the limit of a sample: it would drop the record that marks the end, too.
    pub fn lift_rate_limit(&mut self) -> Result<(), TreatmentError> {
        if let Some(rate) = self.rate_in_force {
            self.limited = Some(self.client.status().map_err(needs)?);
            self.change_rate_limit(rate, self.status.rate_limit)?;
            self.rate_in_force = None;
        }
        Ok(())
    }

    /// Status at the end of the sample; checks that the rate limit was in force, if it was set.
    fn limited(&self, now: Status) -> Result<Status, TreatmentError> {
        match self.limited {
            None => Ok(now),
            Some(limited) if Some(limited.rate_limit) == self.rate => {
                Ok(Status { lost: limited.lost, ..now })
            }
            Some(limited) => {
                Err(changed("settings", &format!("rate_limit={}", limited.rate_limit)))
            }
        }
    }

    pub fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        if self.client.status().map_err(needs)?.enabled == 0 {
            return Err(TreatmentError::NotInForce(
                "auditing was switched off during the measurement".into(),
            ));
        }
        let (counts, cpu) = self.window()?;
        if let Some((what, change)) = counts.config_changes.iter().find_map(|c| interference(c)) {
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

/// The kernel's record of a change of the rate limit, up to who made it (`audit_log_config_change`).
fn rate_limit_change(old: u32, new: u32) -> String {
    format!("op=set audit_rate_limit={new} old={old} ")
}

/// Removes one record for each of our own changes. Some may be missing: the rate limit drops records.
fn remove_own(changes: &mut Vec<String>, mut own: Vec<String>) {
    changes.retain(|change| match own.iter().position(|one| change.contains(one.as_str())) {
        Some(index) => {
            own.swap_remove(index);
            false
        }
        None => true,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_changes_of_the_rate_limit_are_removed_and_each_once() {
        let record =
            |old: u32, new: u32| format!("audit(1:2): {}auid=0 res=1", rate_limit_change(old, new));
        let own = vec![rate_limit_change(0, 300), rate_limit_change(300, 0)];
        let mut changes = vec![record(0, 300), record(300, 0)];
        remove_own(&mut changes, own.clone());
        assert_eq!(changes, Vec::<String>::new());
        // The record of the second is missing, and somebody made the first again.
        let mut changes = vec![record(0, 300), record(0, 300), record(0, 30), record(3, 300)];
        remove_own(&mut changes, own);
        assert_eq!(changes, [record(0, 300), record(0, 30), record(3, 300)]);
    }

    #[test]
    fn only_what_somebody_did_is_interference() {
        let what = |text| interference(text).map(|(what, _)| what);
        assert_eq!(what("audit(1:2): op=remove_rule key=\"weigh\" list=4 res=1"), Some("rules"));
        assert_eq!(what("audit(1:2): op=set audit_enabled=0 old=1 auid=0 res=1"), Some("settings"));
        assert_eq!(what("audit(1:2): op=updated_rules path=\"/etc/x\" list=4 res=1"), None);
    }
}
