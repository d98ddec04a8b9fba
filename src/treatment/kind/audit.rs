//! `audit`: kernel auditing, every system call by default, or a rule file.
//!
//! Both arms run while auditing is on. The baseline's processes are born under a login uid that a
//! `never,task` rule exempts, so they carry no audit context at all; the treated ones under another.
//! Rules are only ever added, and the socket of a healthy audit daemon is left to it.

use std::path::PathBuf;

use serde_json::Value;

use crate::audit::netlink::Client;
use crate::audit::rule::Rule;
use crate::audit::rule_file::{self, Line, Outcome, RuleFile};
use crate::audit::status::Setting;
use crate::treatment::audit::residual::Residual;
use crate::treatment::audit::host::{Host, look_at_host};
use crate::treatment::audit::state::{Snapshot, probe};
use crate::treatment::audit::watch::Watch;
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
        Ok(Box::new(Auditing { rules, backlog_limit, watch: None, lines: Vec::new(), host: None }))
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
    /// Only while it is applied.
    watch: Option<Watch>,
}

impl Treatment for Auditing {
    fn occupies(&self) -> Option<&'static str> {
        Some("the kernel's audit configuration")
    }

    fn prepare(&mut self, bench: &Bench, guard: &mut Guard) -> Result<Vec<String>, Error> {
        let mut client = Client::open().map_err(needs)?;
        let mut snapshot = Snapshot::take(&mut client)?;
        let host = look_at_host(bench, guard, &mut client, &mut snapshot)?;
        self.host = Some((host, snapshot));
        Ok(vec![host.sentence()])
    }

    fn apply(&mut self, bench: &Bench, guard: &mut Guard) -> Result<(), Error> {
        let (_, snapshot) = self.host.as_mut().ok_or_else(|| system("apply before prepare"))?;
        let mut client = Client::open().map_err(needs)?;
        let daemon = snapshot.healthy_daemon();
        let mut watch = Watch::start(bench, daemon)?;

        snapshot.has_switched = true;
        snapshot.added = None;
        snapshot.write_down(guard)?;
        let of_file = self.rules.as_ref().and_then(|(file, _)| file.backlog_limit);
        let usual = match daemon {
            None => snapshot.status.backlog_limit.max(DEFAULT_BACKLOG_LIMIT),
            // Its administrator's choice is part of what is weighed.
            Some(_) => snapshot.status.backlog_limit,
        };
        let limit = self.backlog_limit.or(of_file).unwrap_or(usual);
        client.set(Setting::BacklogLimit(limit)).map_err(needs)?;
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
                client.add_rule(&Rule::watch(&watch.canary, KEY)).map_err(needs)?;
            }
        }
        let rules = client.rules().map_err(needs)?;
        snapshot.added = Some(snapshot.not_in(&rules));
        snapshot.write_down(guard)?;
        client.set(Setting::Enabled(1)).map_err(needs)?;
        watch.begin(rules)?;
        self.watch = Some(watch);
        Ok(())
    }

    fn setup(&self, is_treated: bool) -> Setup {
        Setup {
            loginuid: Some(if is_treated { TREATED_LOGINUID } else { BASELINE_LOGINUID }),
            exempt_loginuid: Some(BASELINE_LOGINUID),
            canary: self.watch.as_ref().map(|watch| watch.canary.clone()),
            seccomp: None,
        }
    }

    fn before(&mut self, _: bool) -> Result<(), Error> {
        self.watch.as_mut().ok_or_else(|| system("sample before apply"))?.before()
    }

    fn after(&mut self, launch: &Launch) -> Result<Evidence, Error> {
        self.watch.as_mut().ok_or_else(|| system("sample before apply"))?.after(launch)
    }

    fn facts(&self) -> Vec<String> {
        let Some(watch) = &self.watch else { return Vec::new() };
        let mut facts = vec![match &self.rules {
            None => "Every system call of the treated processes is audited.".into(),
            Some((_, path)) => rule_file_fact(path, &self.lines),
        }];
        facts.extend(watch.facts());
        facts.push(
            "The other arms run at the same time, under a login uid that a `never,task` rule exempts: \
             their processes carry no audit context."
                .into(),
        );
        facts.extend(self.host.iter().map(|(host, _)| host.sentence()));
        facts.extend(self.lines.iter().filter_map(line_fact));
        facts
    }

    fn state(&self, is_treated: bool) -> Option<&'static str> {
        Some(if is_treated { "audited" } else { "clean" })
    }

    fn restore(&mut self, guard: &mut Guard) -> Result<(), Error> {
        if let (Some(_), Some((_, snapshot))) = (&self.watch, &self.host) {
            // First off, then the sink: without one, the kernel prints records to its console.
            let mut client = Client::open().map_err(needs)?;
            client.set(Setting::Enabled(snapshot.status.enabled)).map_err(needs)?;
        }
        self.watch = None;
        guard.undo(KIND.name()).map_err(Error::Unavailable)
    }
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
}
