//! The host made ready for measuring rules: auditing on, every line tried, processes that feel what is
//! loaded. What is changed here is in the guard's journal before.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::cost_meter::ProgressFn;
use super::loaded_rules::{LoadedRules, RuleId};
use super::prober::Prober;
use super::prober_process::ProberSetup;
use super::rig::{Probers, Rig};
use linux_audit::netlink::Client;
use linux_audit::rule::Rule;
use linux_audit::rule_load::{Watcher, find_auditctl};
use linux_audit::rule_set::{LineOutcome, RuleLine, RuleSet};
use linux_audit::status::AuditSetting;
use weigh_host::machine::counter::Counter;
use weigh_host::undo::guard::Guard;
use weigh_model::result::rules::CostMetric;
use weigh_treatment::audit::host::{HostAuditing, look_at_host};
use weigh_treatment::audit::rcu_expedited;
use weigh_treatment::audit::receiver::Receiver;
use weigh_treatment::audit::state::Snapshot;
use weigh_treatment::audit::stream::Stream;
use weigh_treatment::audit::{BASELINE_LOGINUID, TREATED_LOGINUID, needs, system};
use weigh_treatment::{ApplyContext, TreatmentError};

/// Backlog limit in the rule files of Debian and Red Hat. With the kernel's own limit of 64, we
/// would measure waiting.
const BACKLOG_LIMIT: u32 = 8192;
const KEY: &str = "weigh";
/// A call that nobody here makes: kexec_load(2).
const RARE_CALL: u32 = syscalls::Sysno::kexec_load as u32;

/// The host with auditing on, and the rig to measure rules on it.
pub struct RulesSession<'a> {
    pub guard: &'a mut Guard,
    snapshot: Snapshot,
    pub host: HostAuditing,
    pub lines: Vec<RuleLine>,
    /// Every rule that was ever ours, as the kernel lists it.
    ours: Vec<Rule>,
    pub metric: CostMetric,
    pub rig: Rig<'a>,
}

impl<'a> RulesSession<'a> {
    /// Loads the rules once, and unloads them again: what became of each line is known then. Leaves
    /// auditing on, with no rule of ours that concerns anybody, and starts the probers.
    ///
    /// # Errors
    /// Where auditing cannot be had here; the guard's journal undoes what was done.
    pub fn begin(
        context: &ApplyContext<'a>,
        guard: &'a mut Guard,
        set: &RuleSet,
        progress: ProgressFn,
    ) -> Result<RulesSession<'a>, TreatmentError> {
        let auditctl = find_auditctl().map_err(TreatmentError::Unavailable)?;
        let mut client = Client::open().map_err(needs)?;
        let mut snapshot = Snapshot::take(&mut client)?;
        progress("looking at the host", 0.0);
        let host = look_at_host(context, guard, &mut client, &mut snapshot)?;
        rcu_expedited::expedite(guard);
        let prober_cpu = leave_a_cpu_to_the_probers()?;
        let canary = context.place.scratch.join("canary");
        std::fs::write(&canary, "opened to prove that auditing works\n").map_err(system)?;
        let daemon = snapshot.healthy_daemon();
        snapshot.has_switched = true;
        snapshot.added = None;
        snapshot.write_down(guard)?;
        let receiver = daemon.map_or(Receiver::Own, Receiver::Host);
        let stream = Stream::start(context, &canary, receiver)?;
        if daemon.is_none() {
            let limit = snapshot.status.backlog_limit.max(BACKLOG_LIMIT);
            client.set(AuditSetting::BacklogLimit(limit)).map_err(needs)?;
        }
        let (lines, mut ours) =
            load_once(context, &auditctl, set, &snapshot, &mut client, progress)?;
        for rule in [
            Rule::always_exit_of(&[RARE_CALL], BASELINE_LOGINUID),
            Rule::watch(&canary, KEY),
            Rule::silent_changes(std::process::id()),
        ] {
            client.add_rule(&rule).map_err(needs)?;
        }
        ours.extend(client.rules().map_err(needs)?);
        snapshot.added = Some(snapshot.not_in(&ours));
        snapshot.write_down(guard)?;
        // Only what is born from now on is sure to carry an audit context.
        client.set(AuditSetting::Enabled(1)).map_err(needs)?;
        let metric =
            if Counter::works() { CostMetric::Instructions } else { CostMetric::Nanoseconds };
        let rig = set_up(context, metric, prober_cpu, (client, stream, canary))?;
        Ok(RulesSession { guard, snapshot, host, lines, ours, metric, rig })
    }

    /// The rules that this host has of its own.
    pub fn host_rules(&self) -> Vec<Rule> {
        self.snapshot.host()
    }

    /// The rules of the set that are loaded, in the kernel's order.
    pub fn rules(&self) -> Vec<Rule> {
        let of_lines: HashSet<&Rule> = self.lines.iter().flat_map(|line| &line.rules).collect();
        self.ours.iter().filter(|rule| of_lines.contains(rule)).cloned().collect()
    }

    /// Why none of the rules could be loaded, a sentence.
    pub fn why_no_rule(&self) -> String {
        if self
            .lines
            .iter()
            .all(|line| matches!(line.outcome, LineOutcome::Present | LineOutcome::Skipped(_)))
        {
            return "all rules of these files are already in force on this host. `weigh compare audit:live \
                    -- COMMAND` measures their cost together; for the cost of each rule, run `weigh rules` \
                    on a similar machine without these rules"
                .into();
        }
        let reasons = self.lines.iter().filter_map(|line| match &line.outcome {
            LineOutcome::Refused(reason) => Some((line, reason.as_str())),
            LineOutcome::Present => Some((line, "this host already has this rule")),
            LineOutcome::Loaded | LineOutcome::Skipped(_) => None,
        });
        let reasons: Vec<String> = reasons
            .take(5)
            .map(|(line, reason)| format!("{}:{}: {reason}", line.file.display(), line.number))
            .collect();
        format!("no rule of these files could be loaded: {}", reasons.join("; "))
    }

    /// Loads rules of ours once, so that the journal has them as the kernel lists them; in that form they
    /// are admitted, in the order of its lists. None may be loaded already.
    pub fn admit(&mut self, rules: &[Rule]) -> Result<Vec<RuleId>, TreatmentError> {
        self.rig.rules.load(&[])?;
        self.snapshot.added = None;
        self.snapshot.write_down(self.guard)?;
        let client = self.rig.rules.client();
        let before: HashSet<Rule> = client.rules().map_err(needs)?.into_iter().collect();
        rules.iter().try_for_each(|rule| client.add_rule(rule)).map_err(needs)?;
        let mut new = client.rules().map_err(needs)?;
        new.retain(|rule| !before.contains(rule));
        new.iter().rev().try_for_each(|rule| client.delete_rule(rule)).map_err(needs)?;
        self.ours.extend(new.iter().cloned());
        self.snapshot.added = Some(self.snapshot.not_in(&self.ours));
        self.snapshot.write_down(self.guard)?;
        Ok(self.rig.rules.admit(new))
    }

    /// Admits lines that people write, and returns the outcome of each line.
    pub fn admit_lines(
        &mut self,
        context: &ApplyContext,
        lines: &[String],
    ) -> Result<Vec<RuleLine>, TreatmentError> {
        let file = context.place.scratch.join("rewrite.rules");
        std::fs::write(&file, lines.join("\n")).map_err(system)?;
        let set = RuleSet::read(&[file]).map_err(TreatmentError::Unavailable)?;
        self.rig.rules.load(&[])?;
        self.snapshot.added = None;
        self.snapshot.write_down(self.guard)?;
        let auditctl = find_auditctl().map_err(TreatmentError::Unavailable)?;
        let client = self.rig.rules.client();
        let (lines, new) =
            load_once(context, &auditctl, &set, &self.snapshot, client, &mut |_, _| {})?;
        self.ours.extend(new.iter().cloned());
        self.snapshot.added = Some(self.snapshot.not_in(&self.ours));
        self.snapshot.write_down(self.guard)?;
        let not_loaded = lines.iter().find_map(|line| match &line.outcome {
            LineOutcome::Loaded => None,
            LineOutcome::Present => Some("it is already among the rules".to_owned()),
            LineOutcome::Refused(why) | LineOutcome::Skipped(why) => Some(why.clone()),
        });
        not_loaded.map_or(Ok(lines), |why| Err(TreatmentError::Unavailable(why)))
    }

    /// Switches auditing back and ends the sink; the guard does the rest.
    pub fn end(mut self) -> Result<(), TreatmentError> {
        let client = self.rig.rules.client();
        let untouched = self.snapshot.check_host(client);
        // First off, then the sink: without one, the kernel prints records to its console.
        client.set(AuditSetting::Enabled(self.snapshot.status.enabled)).map_err(needs)?;
        untouched
    }
}

/// Loads the lines, and unloads them again. Returns each line's outcome, and the new rules as the
/// kernel lists them.
fn load_once(
    context: &ApplyContext,
    auditctl: &Path,
    set: &RuleSet,
    snapshot: &Snapshot,
    client: &mut Client,
    progress: ProgressFn,
) -> Result<(Vec<RuleLine>, Vec<Rule>), TreatmentError> {
    let mut set = set.clone();
    set.confine_to = snapshot.is_audited().then_some(TREATED_LOGINUID);
    let as_set = client.status().map_err(needs)?;
    let before: HashSet<Rule> = client.rules().map_err(needs)?.into_iter().collect();
    let mut watcher = Watcher {
        progress: &mut |done, of| progress("loading the rules", done as f64 / of as f64),
        is_interrupted: &|| context.interrupted.load(Ordering::Relaxed),
        run: &|command| context.running.output(command),
    };
    let loaded = set.load(auditctl, client, &mut watcher);
    // First: what a line has done to the host is why the next was not loaded.
    snapshot.check_loaded(client, &as_set)?;
    let lines = loaded.map_err(|problem| match context.interrupted.load(Ordering::Relaxed) {
        true => TreatmentError::Interrupted,
        false => TreatmentError::Unavailable(problem),
    })?;
    let mut ours = client.rules().map_err(needs)?;
    ours.retain(|rule| !before.contains(rule));
    ours.iter().rev().try_for_each(|rule| client.delete_rule(rule)).map_err(needs)?;
    Ok((lines, ours))
}

fn set_up<'a>(
    context: &ApplyContext<'a>,
    metric: CostMetric,
    cpu: Option<usize>,
    (client, stream, canary): (Client, Stream, PathBuf),
) -> Result<Rig<'a>, TreatmentError> {
    let created_in = context.place.scratch.join("created");
    std::fs::create_dir(&created_in).map_err(system)?;
    let start = |name: &str, loginuid, counts_instructions| {
        let setup = ProberSetup {
            loginuid,
            cpu,
            directory: context.place.scratch.join(name),
            new: created_in.join(name),
            program: context.place.executable.path().to_owned(),
            canary: canary.clone(),
            counts_instructions,
        };
        Prober::start(&setup, context.interrupted)
    };
    let both = |counts: bool| -> Result<Probers, TreatmentError> {
        let name = |who: &str| format!("{who}-{}", if counts { "counting" } else { "timing" });
        Ok(Probers {
            audited: start(&name("audited"), TREATED_LOGINUID, counts)?,
            exempt: start(&name("exempt"), BASELINE_LOGINUID, counts)?,
        })
    };
    let counts = metric == CostMetric::Instructions;
    Ok(Rig {
        probers: both(counts)?,
        timed: counts.then(|| both(false)).transpose()?,
        rules: LoadedRules::new(client)?,
        stream,
        interrupted: context.interrupted,
        batch_operations: Vec::new(),
        last_verified: Instant::now(),
    })
}

/// With two CPUs or more, this process and those that it starts keep to the others.
fn leave_a_cpu_to_the_probers() -> Result<Option<usize>, TreatmentError> {
    let mut others = sched_getaffinity(None).map_err(system)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| others.is_set(*cpu));
    if let Some(cpu) = last.filter(|_| others.count() > 1) {
        others.unset(cpu);
        sched_setaffinity(None, &others).map_err(system)?;
    }
    Ok(last)
}
