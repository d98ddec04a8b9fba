//! `audit`: kernel auditing, every system call by default, or a rule file.
//!
//! Both arms run while auditing is on. The baseline's processes are born under a login uid that a
//! `never,task` rule exempts, so they carry no audit context at all; the treated ones under another.
//! Rules are only ever added, and the socket of a healthy audit daemon is left to it.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::audit::netlink::Client;
use crate::audit::rule::Rule;
use crate::audit::rule_file::{self, Line, Outcome, RuleFile};
use crate::audit::status::{Setting, Status, jiffies_to_s};
use crate::treatment::audit::residual::Residual;
use crate::treatment::audit::state::{Host, Snapshot, host_sentences, look_at_host, probe};
use crate::treatment::audit::stream::Stream;
use crate::treatment::audit::{BASELINE_LOGINUID, TREATED_LOGINUID, needs, system};
use crate::treatment::guard::Guard;
use crate::treatment::label::Parameters;
use crate::treatment::{
    Bench, Error, Evidence, Kind, Launch, Parameter, Probe, Treatment, absolute,
};
use crate::workload::launcher::Setup;

pub static KIND: Audit = Audit;

/// What Debian's and Red Hat's rule files set; the kernel's own 64 would have us measure waiting.
const DEFAULT_BACKLOG_LIMIT: u32 = 8192;
const KEY: &str = "weigh";

pub struct Audit;

impl Kind for Audit {
    fn name(&self) -> &'static str {
        "audit"
    }

    fn summary(&self) -> &'static str {
        "kernel auditing of every system call, or of what a rule file says"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                form: "rules=FILE",
                help: "load these rules instead of auditing everything",
            },
            Parameter {
                form: "backlog=N",
                help: "records that may wait in the kernel; default 8192",
            },
            Parameter {
                form: "residual",
                help: "auditing off again after use: what is left of its cost until the next boot",
            },
        ]
    }

    fn probe(&self) -> Probe {
        probe()
    }

    fn build(&self, parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
        let backlog_limit = parameters.number("backlog", 1..=10_000_000)?;
        let rules = parameters.value("rules").map(absolute).transpose()?;
        if parameters.has("residual") {
            if rules.is_some() || backlog_limit.is_some() {
                return Err("audit:residual has no rules and no backlog: auditing is off".into());
            }
            return Ok(Box::new(Residual::default()));
        }
        let rules =
            rules.map(|path| Ok::<_, String>((RuleFile::read(&path)?, path))).transpose()?;
        Ok(Box::new(Auditing { rules, backlog_limit, on: None, lines: Vec::new(), host: None }))
    }

    fn undo(&self, state: &Value) -> Result<(), String> {
        Snapshot::from_journal(state)?.undo()
    }
}

struct Auditing {
    rules: Option<(RuleFile, PathBuf)>,
    backlog_limit: Option<u32>,
    /// What became of the rule file's lines.
    lines: Vec<Line>,
    host: Option<(Host, Snapshot)>,
    on: Option<On>,
}

/// Everything that exists only while the treatment is applied.
struct On {
    client: Client,
    stream: Stream,
    canary: PathBuf,
    /// What the kernel lists as long as nobody interferes.
    rules: Vec<Rule>,
    backlog_limit: u32,
    status_before_sample: Status,
}

impl Treatment for Auditing {
    fn occupies(&self) -> Option<&'static str> {
        Some("the kernel's audit configuration")
    }

    fn prepare(&mut self, bench: &Bench, guard: &mut Guard) -> Result<Vec<String>, Error> {
        let mut client = Client::open().map_err(needs)?;
        let mut snapshot = Snapshot::take(&mut client)?;
        let host = look_at_host(bench, guard, &mut client, &mut snapshot)?;
        let sentences = host_sentences(&host);
        self.host = Some((host, snapshot));
        Ok(sentences)
    }

    fn apply(&mut self, bench: &Bench, guard: &mut Guard) -> Result<(), Error> {
        let (_, snapshot) = self.host.as_mut().ok_or_else(|| system("apply before prepare"))?;
        let mut client = Client::open().map_err(needs)?;
        let canary = bench.scratch.join("canary");
        fs::write(&canary, "opened to prove that auditing works\n").map_err(system)?;
        let stream = Stream::start(bench, &canary, snapshot.healthy_daemon())?;

        let wanted =
            self.backlog_limit.or(self.rules.as_ref().and_then(|(file, _)| file.backlog_limit));
        let usual = snapshot.status.backlog_limit.max(DEFAULT_BACKLOG_LIMIT);
        // Beside an audit daemon, its administrator's choice is part of what is weighed.
        let owns = snapshot.healthy_daemon().is_none();
        let backlog_limit =
            wanted.unwrap_or(if owns { usual } else { snapshot.status.backlog_limit });
        client.set(Setting::BacklogLimit(backlog_limit)).map_err(needs)?;

        match &self.rules {
            None => client.add_rule(&Rule::always_exit(TREATED_LOGINUID, KEY)).map_err(needs)?,
            Some((file, path)) => {
                let auditctl = rule_file::find_auditctl().map_err(Error::Unavailable)?;
                self.lines = file.load(&auditctl, bench.scratch).map_err(system)?;
                let is_in_force =
                    |line: &Line| matches!(line.outcome, Outcome::Loaded | Outcome::Present);
                if !self.lines.iter().any(is_in_force) {
                    return Err(Error::Unavailable(no_rule_loaded(path, &self.lines)));
                }
                client.add_rule(&Rule::watch(&canary, KEY)).map_err(needs)?;
            }
        }
        let rules = client.rules().map_err(needs)?;
        snapshot.added = Some(snapshot.not_in(&rules));
        snapshot.write_down(guard)?;
        client.set(Setting::Enabled(1)).map_err(needs)?;
        let mut on = On {
            client,
            stream,
            canary,
            rules,
            backlog_limit,
            status_before_sample: Status::default(),
        };
        on.stream.window(&mut on.client)?;
        self.on = Some(on);
        Ok(())
    }

    fn setup(&self, is_treated: bool) -> Setup {
        Setup {
            loginuid: Some(if is_treated { TREATED_LOGINUID } else { BASELINE_LOGINUID }),
            canary: self.on.as_ref().map(|on| on.canary.clone()),
            seccomp: None,
        }
    }

    fn before(&mut self, _: bool) -> Result<(), Error> {
        let on = self.on.as_mut().ok_or_else(|| system("sample before apply"))?;
        on.status_before_sample = on.client.status().map_err(needs)?;
        Ok(())
    }

    fn after(&mut self, launch: &Launch) -> Result<Evidence, Error> {
        let Launch { is_treated, launched, .. } = *launch;
        let on = self.on.as_mut().ok_or_else(|| system("sample before apply"))?;
        on.check_configuration()?;
        let counts = on.stream.window(&mut on.client)?;
        if let Some(change) = counts.config_changes.iter().find(|text| is_rule_change(text)) {
            return Err(Error::NotInForce(format!(
                "the audit rules were changed while we measured ({change})"
            )));
        }
        let was_seen = |pid: Option<u32>| pid.is_some_and(|pid| counts.canaries.contains(&pid));
        let seen = [Some(launched.pid), launched.canary_after_pid].map(was_seen);
        if is_treated && seen != [true, true] {
            return Err(Error::NotInForce(format!(
                "the treated process was not audited: it opened the file {} and no record of that came \
                 out of the kernel; the audit rules may have been removed",
                on.canary.display()
            )));
        }
        if !is_treated && seen != [false, false] {
            return Err(Error::NotInForce(
                "the baseline was audited although a `never,task` rule exempts it".into(),
            ));
        }
        let now = on.client.status().map_err(needs)?;
        let before = on.status_before_sample;
        let waited = now.backlog_wait_time_actual.zip(before.backlog_wait_time_actual);
        Ok(Evidence {
            records: Some(counts.records),
            log_bytes: Some(counts.log_bytes),
            lost: Some(u64::from(now.lost.wrapping_sub(before.lost)) + counts.overruns),
            backlog_wait_s: waited.map(|(now, before)| jiffies_to_s(now.wrapping_sub(before))),
            ..Evidence::default()
        })
    }

    fn facts(&self) -> Vec<String> {
        let Some(on) = &self.on else { return Vec::new() };
        let mut facts = vec![match &self.rules {
            None => "Every system call of the treated processes is audited.".into(),
            Some((_, path)) => rule_file_fact(path, &self.lines),
        }];
        facts.push(on.stream.fact());
        facts.push(format!("The kernel lets {} records wait (backlog limit).", on.backlog_limit));
        facts.push(
            "The baseline runs at the same time, under a login uid that a `never,task` rule exempts: \
             its processes carry no audit context."
                .into(),
        );
        if let Some((host, _)) = &self.host {
            facts.extend(host_sentences(host));
        }
        facts.extend(self.lines.iter().filter_map(line_fact));
        facts
    }

    fn baseline_state(&self) -> Option<String> {
        Some("clean".into())
    }

    fn restore(&mut self, guard: &mut Guard) -> Result<(), Error> {
        if let (Some(on), Some((_, snapshot))) = (&mut self.on, &self.host) {
            // First off, then the sink: without one, the kernel prints records to its console.
            on.client.set(Setting::Enabled(snapshot.status.enabled)).map_err(needs)?;
        }
        self.on = None;
        guard.undo(KIND.name()).map_err(Error::Unavailable)
    }
}

impl On {
    /// What is loaded must be what we loaded: with every sample, before its number counts.
    fn check_configuration(&mut self) -> Result<(), Error> {
        let status = self.client.status().map_err(needs)?;
        if status.enabled == 0 {
            return Err(Error::NotInForce("auditing was switched off while we measured".into()));
        }
        let rules = self.client.rules().map_err(needs)?;
        if rules != self.rules {
            return Err(Error::NotInForce(format!(
                "the audit rules were changed while we measured: {} were loaded, now there are {}",
                self.rules.len(),
                rules.len()
            )));
        }
        Ok(())
    }
}

/// Adding and removing rules; the kernel also records when a watched file comes or goes.
fn is_rule_change(text: &str) -> bool {
    text.contains("op=add_rule") || text.contains("op=remove_rule")
}

fn rule_file_fact(path: &std::path::Path, lines: &[Line]) -> String {
    let count =
        |wanted: fn(&Outcome) -> bool| lines.iter().filter(|line| wanted(&line.outcome)).count();
    format!(
        "{}: {} rules loaded, {} that this host had already, {} refused, {} lines skipped.",
        path.display(),
        count(|outcome| *outcome == Outcome::Loaded),
        count(|outcome| *outcome == Outcome::Present),
        count(|outcome| matches!(outcome, Outcome::Refused(_))),
        count(|outcome| matches!(outcome, Outcome::Skipped(_))),
    )
}

fn line_fact(line: &Line) -> Option<String> {
    match &line.outcome {
        Outcome::Loaded | Outcome::Present => None,
        Outcome::Refused(reason) => {
            Some(format!("Line {} refused ({reason}): {}", line.number, line.text))
        }
        Outcome::Skipped(reason) => {
            Some(format!("Line {} skipped ({reason}): {}", line.number, line.text))
        }
    }
}

fn no_rule_loaded(path: &std::path::Path, lines: &[Line]) -> String {
    let reasons: Vec<String> = lines.iter().filter_map(line_fact).take(5).collect();
    format!("no rule of {} could be loaded: {}", path.display(), reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::treatment::label;

    fn build(text: &str) -> Result<Box<dyn Treatment>, String> {
        KIND.build(&label::split(text).unwrap().1)
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        assert!(build("audit:backlog=0").err().unwrap().contains("backlog=0"));
        assert!(build("audit:residual,backlog=64").err().unwrap().contains("auditing is off"));
        assert!(build("audit:rules=/nonexistent/x").err().unwrap().contains("/nonexistent/x"));
        assert!(build("audit").is_ok());
    }

    #[test]
    fn only_rules_that_come_or_go_are_a_change_of_rules() {
        assert!(is_rule_change("audit(1:2): op=remove_rule key=\"weigh\" list=4 res=1"));
        assert!(!is_rule_change("audit(1:2): op=updated_rules path=\"/etc/x\" list=4 res=1"));
    }
}
