//! `audit`: kernel auditing, every system call by default, or a rule file.
//!
//! Both arms run while auditing is on. The baseline's processes are born under a login uid that a
//! `never,task` rule exempts, so they carry no audit context at all; the treated ones under another.
//! Rules are only ever added, and the socket of a healthy audit daemon is left to it.

use std::cell::{RefCell, RefMut};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::Ordering;

use crate::audit::configuration::{Configuration, Shared};
use crate::audit::limits::Wanted;
use crate::audit::live::HostRules;
use crate::audit::probe::probe;
use crate::audit::residual::Residual;
use crate::audit::sink_choice::{DELAY, FLUSH, FORMAT, PLUGIN, SINK, SinkChoice};
use crate::audit::state::Snapshot;
use crate::audit::watch::Watch;
use crate::audit::{BASELINE_LOGINUID, needs, quantities, setup, system};
use crate::{
    ApplyContext, Kind, Launch, Occupied, Parameter, Role, Treatment, TreatmentError,
    TreatmentKind, absolute,
};
use linux_audit::event_classes::EventClasses;
use linux_audit::netlink::Client;
use linux_audit::rule::{KEY, Rule};
use linux_audit::rule_load::{self, CONFINED, Watcher};
use linux_audit::rule_set::{LineOutcome, RuleLine, RuleSet};
use weigh_host::undo::claim;
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::format;
use weigh_model::label::Parameters;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_workload::setup::Setup;

pub static KIND: TreatmentKind = TreatmentKind {
    undo: |state| Snapshot::from_journal(state)?.undo(),
    ..TreatmentKind::of(
        Kind {
            name: "audit",
            summary: "kernel auditing of every system call, or with the rules of a file",
            parameters: &[
                Parameter {
                    form: "rules=FILE",
                    help: "load the rules of this file or directory instead of auditing everything",
                },
                Parameter {
                    form: "class=NAME",
                    help: "audit the calls of an event class instead, such as open; further classes follow \
                           as words: class=delete,open; all, or none",
                },
                Parameter { form: "CLASS", help: "a further event class behind class=" },
                Parameter {
                    form: "backlog=N",
                    help: "the backlog limit, in records; default 8192",
                },
                SINK,
                FLUSH,
                FORMAT,
                PLUGIN,
                DELAY,
                Parameter {
                    form: "wait=TIME",
                    help: "longest time that a process blocks when the backlog is full; 0 drops the \
                           record; default: the host's setting",
                },
                Parameter {
                    form: "rate=N",
                    help: "the kernel takes N records per second, at least 100, and drops the others; \
                           default: the host's setting",
                },
                Parameter {
                    form: "live",
                    help: "weigh the rules that are loaded on this host, without unloading them",
                },
                Parameter {
                    form: "residual",
                    help: "weigh the cost that remains after auditing is switched off, until the next boot",
                },
            ],
            probe,
        },
        build,
    )
};

/// Most records that rules may make of a program's start and end, between the canaries.
const RECORDS_OF_A_START: u64 = 32;

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let wanted = Wanted::read(parameters)?;
    let rules = parameters.value("rules").map(absolute).transpose()?;
    let classes = classes(parameters)?;
    let sink = SinkChoice::parse(parameters)?;
    let is_everything = rules.is_none() && classes.is_none();
    let is_plain = is_everything && wanted == Wanted::default() && sink == SinkChoice::Usual;
    match (parameters.has("residual"), parameters.has("live")) {
        (false, false) => {}
        (true, false) if is_plain => return Ok(Box::new(Residual::default())),
        (false, true) if is_plain => return Ok(Box::new(HostRules::new()?)),
        (true, false) => {
            return Err(
                "audit:residual takes no rules, class, backlog or sink, as auditing is off".into(),
            );
        }
        (_, true) => {
            return Err("audit:live takes no other parameter: it weighs this host as it is".into());
        }
    }
    let events = match (rules, classes) {
        (Some(_), Some(_)) => {
            return Err(
                "`rules=` and `class=` both say what is audited: use one of them, or two arms"
                    .into(),
            );
        }
        (Some(path), None) => Events::File(RuleSet::read(std::slice::from_ref(&path))?, path),
        (None, Some(classes)) => Events::Classes(classes),
        (None, None) => Events::All,
    };
    let (lines, shared, arm) = (Vec::new(), None, None);
    Ok(Box::new(Auditing { events, wanted, sink, lines, shared, arm }))
}

/// The value of `class=` and the words that follow it; words that are no class are no parameters.
fn classes(parameters: &Parameters) -> Result<Option<EventClasses>, String> {
    let is_further = |(key, value): &(&str, Option<&str>)| {
        value.is_none() && !["live", "residual"].contains(key)
    };
    let mut further = parameters.iter().filter(is_further).map(|(key, _)| key);
    match parameters.value("class") {
        Some(first) => EventClasses::parse(std::iter::once(first).chain(further)).map(Some),
        None => match further.next() {
            Some(word) => Err(format!(
                "`audit` does not take `{word}`; it takes live, residual, or parameters with a value \
                 (`weigh list treatments`); event classes come behind `class=`"
            )),
            None => Ok(None),
        },
    }
}

/// Events that make records.
enum Events {
    /// Every system call.
    All,
    Classes(EventClasses),
    /// Whatever the rules of a file say.
    File(RuleSet, PathBuf),
}

struct Auditing {
    events: Events,
    wanted: Wanted,
    sink: SinkChoice,
    lines: Vec<RuleLine>,
    shared: Option<Rc<RefCell<Configuration>>>,
    /// The number under which the configuration knows this arm, and the login uid of its processes.
    arm: Option<(usize, u32)>,
}

impl Auditing {
    fn configuration(&self) -> Result<RefMut<'_, Configuration>, TreatmentError> {
        let shared = self.shared.as_ref().ok_or_else(|| system("apply before prepare"))?;
        Ok(shared.borrow_mut())
    }

    fn arm(&self) -> Result<usize, TreatmentError> {
        Ok(self.arm.ok_or_else(|| system("sample before apply"))?.0)
    }
}

impl Treatment for Auditing {
    fn occupies(&self) -> Vec<Occupied> {
        vec![Occupied { what: claim::AUDIT, can_alternate: true }]
    }

    fn sets_in_late(&self) -> bool {
        true
    }

    /// The baseline's processes have no audit context, so rules are in force for the treated ones alone.
    /// Where they make records, the kernel and the receiver work on these in the other's turn.
    fn can_interleave(&self) -> bool {
        !matches!(self.events, Events::All)
    }

    fn left_no_async_work(&self, evidence: &Evidence) -> bool {
        evidence.whole(&quantities::RECORDS).is_some_and(|records| records <= RECORDS_OF_A_START)
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        guard: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        let (shared, sentences) =
            context.commons.of::<Shared>().join(context, guard, self.sink.clone())?;
        self.shared = Some(shared);
        Ok(sentences)
    }

    fn apply(&mut self, context: &ApplyContext, guard: &mut Guard) -> Result<(), TreatmentError> {
        let of_file = match &self.events {
            Events::File(file, _) => file.backlog_limit,
            Events::All | Events::Classes(_) => None,
        };
        let wanted = Wanted { backlog: self.wanted.backlog.or(of_file), ..self.wanted };
        let (loginuid, is_host_audited) = {
            let configuration = self.configuration()?;
            (configuration.next_loginuid()?, configuration.is_host_audited())
        };
        if let Events::File(file, _) = &mut self.events {
            file.confine_to = is_host_audited.then_some(loginuid);
        }
        let mut lines = Vec::new();
        let load = |client: &mut Client, watch: &Watch| {
            match &self.events {
                Events::All => {
                    client.add_rule(&Rule::always_exit(loginuid, KEY)).map_err(needs)?;
                }
                Events::Classes(classes) => {
                    let mut rules = classes.rules(loginuid);
                    rules.try_for_each(|rule| client.add_rule(&rule)).map_err(needs)?;
                }
                Events::File(file, path) => lines = load_file(file, path, context, client)?,
            }
            // It asks for no login uid, so a baseline that is not exempt would be seen, too.
            client.add_rule(&Rule::watch(&watch.canary, KEY)).map_err(needs)
        };
        let arm = self.configuration()?.add_arm(context, guard, wanted, load)?;
        (self.arm, self.lines) = (Some((arm, loginuid)), lines);
        Ok(())
    }

    fn setup(&self, is_treated: bool) -> Setup {
        let loginuid = match self.arm {
            Some((_, loginuid)) if is_treated => loginuid,
            _ => BASELINE_LOGINUID,
        };
        let canary = self.shared.as_ref().and_then(|shared| shared.borrow().canary());
        setup(loginuid, canary)
    }

    fn take_turn(&mut self, role: Role) -> Result<(), TreatmentError> {
        self.configuration()?.take_turn(role);
        Ok(())
    }

    fn begin_sample(&mut self, role: Role) -> Result<(), TreatmentError> {
        let arm = self.arm()?;
        self.configuration()?.begin_sample(arm, role)
    }

    fn begin_pair(&mut self, roles: [Role; 2]) -> Result<(), TreatmentError> {
        let arm = self.arm()?;
        self.configuration()?.begin_pair(arm, roles)
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        self.configuration()?.verify_sample(launch)
    }

    fn content(&self) -> Vec<u8> {
        match &self.events {
            Events::All => Vec::new(),
            Events::Classes(classes) => classes.text().into_bytes(),
            Events::File(file, _) => file.text().into_bytes(),
        }
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        let shipped = (self.sink == SinkChoice::Remote).then_some(quantities::SHIPPED);
        quantities::ALL.iter().cloned().chain(shipped).collect()
    }

    fn facts(&self) -> Vec<String> {
        let (Ok(configuration), Some((arm, loginuid))) = (self.configuration(), self.arm) else {
            return Vec::new();
        };
        let mut facts = vec![match &self.events {
            Events::All => "Every system call of the treated processes is audited.".into(),
            Events::Classes(classes) => classes.fact(),
            Events::File(_, path) => rule_file_fact(path, &self.lines),
        }];
        facts.extend(configuration.facts(arm));
        if let Events::File(_, path) = &self.events {
            facts.extend(self.lines.iter().filter_map(|line| line_fact(path, line, loginuid)));
        }
        facts
    }

    fn warnings(&self) -> Vec<String> {
        not_weighed(&self.lines).into_iter().collect()
    }

    fn state(&self, is_treated: bool) -> Option<&'static str> {
        Some(if is_treated { "audited" } else { "clean" })
    }

    fn restore(&mut self, guard: &mut Guard) -> Result<(), TreatmentError> {
        // The last arm that leaves puts it back for all.
        match self.shared.take().and_then(Rc::into_inner) {
            Some(configuration) => configuration.into_inner().restore(guard),
            None => Ok(()),
        }
    }
}

/// Loads a file's rules and returns the outcome of each line. At least one must be in force.
fn load_file(
    file: &RuleSet,
    path: &Path,
    context: &ApplyContext,
    client: &mut Client,
) -> Result<Vec<RuleLine>, TreatmentError> {
    let auditctl = rule_load::find_auditctl().map_err(TreatmentError::Unavailable)?;
    let is_interrupted = || context.interrupted.load(Ordering::Relaxed);
    let run = |command| context.running.output(command);
    let mut watcher =
        Watcher { progress: &mut |_, _| {}, is_interrupted: &is_interrupted, run: &run };
    let loginuid = file.confine_to.unwrap_or_default();
    let lines = file.load(&auditctl, client, &mut watcher).map_err(|problem| match () {
        () if is_interrupted() => TreatmentError::Interrupted,
        () => system(problem),
    })?;
    let is_in_force =
        |line: &RuleLine| matches!(line.outcome, LineOutcome::Loaded | LineOutcome::Present);
    if lines.iter().any(is_in_force) {
        return Ok(lines);
    }
    let reasons: Vec<String> =
        lines.iter().filter_map(|line| line_fact(path, line, loginuid)).take(5).collect();
    Err(TreatmentError::Unavailable(format!(
        "cannot load any rule of {}: {}",
        path.display(),
        reasons.join("; ")
    )))
}

fn rule_file_fact(path: &Path, lines: &[RuleLine]) -> String {
    let count = |wanted: fn(&LineOutcome) -> bool| {
        lines.iter().filter(|line| wanted(&line.outcome)).count()
    };
    format!(
        "{}: {} loaded, {} already present on this host, {} refused, {} skipped.",
        path.display(),
        format::plural(count(|outcome| *outcome == LineOutcome::Loaded), "rule"),
        count(|outcome| *outcome == LineOutcome::Present),
        count(|outcome| matches!(outcome, LineOutcome::Refused(_))),
        format::plural(count(|outcome| matches!(outcome, LineOutcome::Skipped(_))), "line"),
    )
}

/// Describes rules of the file that are missing from the measurement.
///
/// Without them, auditing looks cheaper.
fn not_weighed(lines: &[RuleLine]) -> Option<String> {
    let reasons = lines.iter().filter_map(|line| match &line.outcome {
        LineOutcome::Refused(reason) => Some((line, reason.as_str())),
        _ => None,
    });
    let refused: Vec<_> = reasons.collect();
    let (line, reason) = refused.first()?;
    let place = format!("line {} of {}", line.number, line.file.file_name()?.display());
    Some(match refused.len() {
        1 => format!("{place} was refused ({reason}), and is not weighed."),
        count => format!(
            "{count} lines were refused, and are not weighed; the first is {place} ({reason})."
        ),
    })
}

/// Describes a line that is not in force as it is written, for the reader.
///
/// It has the file's name if there are several.
fn line_fact(path: &Path, line: &RuleLine, loginuid: u32) -> Option<String> {
    let what = match &line.outcome {
        LineOutcome::Loaded if line.is_confined => {
            format!(
                "confined to login uid {loginuid} ({CONFINED}; the extra condition adds to its cost)"
            )
        }
        LineOutcome::Loaded | LineOutcome::Present => return None,
        LineOutcome::Refused(reason) => format!("refused ({reason})"),
        LineOutcome::Skipped(reason) => format!("skipped ({reason})"),
    };
    let place = match line.file.strip_prefix(path) {
        Ok(name) if !name.as_os_str().is_empty() => format!("{}, line", name.display()),
        _ => "Line".into(),
    };
    Some(format!("{place} {} {what}: {}", line.number, line.text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters_of;

    fn build(text: &str) -> Result<Box<dyn Treatment>, String> {
        (KIND.build)(&parameters_of(text))
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        assert!(build("audit:backlog=0").err().unwrap().contains("backlog=0"));
        assert!(build("audit:residual,backlog=64").err().unwrap().contains("auditing is off"));
        assert!(build("audit:live,backlog=64").err().unwrap().contains("as it is"));
        assert!(build("audit:live,residual").err().unwrap().contains("as it is"));
        assert!(build("audit:wait=soon").err().unwrap().contains("wait=soon"));
        assert!(build("audit:rules=/nonexistent/x").err().unwrap().contains("/nonexistent/x"));
        assert!(build("audit:class=open,rules=/x").err().unwrap().contains("use one of them"));
        assert!(build("audit:class=open,mouse").err().unwrap().contains("class=mouse: unknown"));
        assert!(build("audit:mouse").err().unwrap().contains("does not take `mouse`"));
        assert!(build("audit:live,class=open").err().unwrap().contains("as it is"));
        assert!(build("audit:class=delete,open").is_ok());
        assert!(build("audit").is_ok());
    }
}
