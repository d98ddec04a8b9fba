//! `weigh list`: what there is to weigh, and to weigh with.

mod workloads;

use std::fmt::Write as _;
use std::io;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{Context, output};
use crate::fixture::FIXTURES;
use crate::report::text::wrap;
use crate::treatment::{KINDS, Kind, Parameter, scratch};
use crate::workload::catalogue::Workload;
use crate::workload::executable::Executable;
use crate::workload::mix::{self, JobMix};
use crate::workload::suite::{self, Suite};

const EXAMPLES: &str = "\
Examples:
  weigh list                      everything, at a glance
  weigh list workloads futex      what these do, their system calls and their sources
  weigh list workloads syscalls   those of a suite or a group
  weigh list treatments           which work on this machine, found out by trying
  weigh list fixtures             what a workload can have around it, such as a file system
  weigh list workloads --json";

/// List workloads, suites, treatments and fixtures
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ListArgs {
    /// What to list
    what: Option<What>,
    /// Only those in this group or suite, or with this in their name
    #[arg(requires = "what")]
    name: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Workloads,
    Suites,
    Treatments,
    Fixtures,
    Mixes,
}

impl ListArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        let wants = |what| self.what.is_none_or(|chosen| chosen == what);
        let suites = suite::embedded()?;
        let mut text = String::new();
        let mut values = serde_json::Map::new();
        if wants(What::Workloads) {
            let all = read_workloads()?;
            let chosen = self.choose(&all, &suites)?;
            text.push_str(&match self.what {
                None => workloads::overview(&all, output::width()),
                Some(_) if output::wants_colour(context.color, &io::stdout()) => {
                    workloads::table(&chosen, |line| format!("\x1b[2m{line}\x1b[0m"))
                }
                Some(_) => workloads::table(&chosen, str::to_owned),
            });
            values.insert("workloads".into(), json!(chosen));
        }
        if wants(What::Suites) {
            let is_chosen =
                |suite: &&Suite| self.name.as_ref().is_none_or(|n| suite.name.contains(n));
            let chosen: Vec<&Suite> = suites.iter().filter(is_chosen).collect();
            text.push_str(&describe_suites(&chosen, self.what.is_some()));
            values.insert("suites".into(), chosen.into_iter().map(suite_value).collect());
        }
        if wants(What::Treatments) {
            text.push_str(&describe_kinds("Treatments", KINDS.iter().copied()));
            values.insert("treatments".into(), KINDS.iter().copied().map(kind_value).collect());
        }
        if wants(What::Fixtures) {
            let all = || FIXTURES.iter().map(|fixture| fixture as &dyn Kind);
            text.push_str(&describe_kinds("Fixtures", all()));
            values.insert("fixtures".into(), all().map(kind_value).collect());
        }
        if wants(What::Mixes) {
            let mixes = mix::embedded()?;
            text.push_str("\nMixes, for `weigh load` and as `load:NAME`\n");
            for JobMix { name, summary, tests, .. } in &mixes {
                let _ = writeln!(text, "  {name:<17} {:>3}  {summary}", tests.len());
            }
            values.insert("mixes".into(), json!(mixes));
        }
        match self.json {
            false => output::print(text.trim_start())?,
            true => output::print_json(&format!("{:#}\n", Value::Object(values)))?,
        }
        Ok(0)
    }

    fn choose<'a>(
        &self,
        all: &'a [Workload],
        suites: &[Suite],
    ) -> Result<Vec<&'a Workload>, String> {
        let Some(name) = &self.name else { return Ok(all.iter().collect()) };
        let suite = suites.iter().find(|suite| suite.name == *name);
        let is_member = |workload: &Workload| {
            suite.is_some_and(|suite| suite.members.iter().any(|m| m.name == workload.name))
        };
        let is_chosen = |workload: &&Workload| match suite {
            Some(_) => is_member(workload),
            None => workload.group == *name || workload.name.contains(name),
        };
        let chosen: Vec<&Workload> = all.iter().filter(is_chosen).collect();
        if chosen.is_empty() {
            return Err(format!(
                "no workload, group or suite has `{name}` in its name; `weigh list` shows all"
            ));
        }
        Ok(chosen)
    }
}

/// All workloads, as they declare themselves.
///
/// # Errors
/// A sentence, where they cannot be unpacked and asked.
pub fn read_workloads() -> Result<Vec<Workload>, String> {
    let directory = scratch::place()
        .and_then(tempfile::tempdir_in)
        .map_err(|error| format!("a temporary directory: {error}; set TMPDIR"))?;
    Executable::unpack(directory.path())?.workloads()
}

fn describe_suites(suites: &[&Suite], with_members: bool) -> String {
    let mut text = String::from("\nSuites\n");
    for suite in suites {
        let _ =
            writeln!(text, "  {:<17} {:>3}  {}", suite.name, suite.members.len(), suite.summary);
        if !with_members {
            continue;
        }
        let names: Vec<&str> = suite.members.iter().map(|member| member.name.as_str()).collect();
        for line in wrap(&names.join(" "), 100, 0) {
            let _ = writeln!(text, "  {:<17} {line}", "");
        }
    }
    text
}

fn suite_value(suite: &Suite) -> Value {
    let names: Vec<&str> = suite.members.iter().map(|member| member.name.as_str()).collect();
    json!({"name": suite.name, "summary": suite.summary, "source": suite.source, "workloads": names})
}

fn describe_kinds<'a>(heading: &str, kinds: impl Iterator<Item = &'a dyn Kind>) -> String {
    let mut text = format!("\n{heading}\n");
    for kind in kinds {
        let probe = kind.probe();
        let here = probe.obstacle().map_or("works here".into(), |why| format!("not here: {why}"));
        let _ = writeln!(text, "  {:<17} {}\n  {:<17} {here}", kind.name(), kind.summary(), "");
        for Parameter { form, help } in kind.parameters() {
            let _ = writeln!(text, "      {:<20} {help}", format!("{}:{form}", kind.name()));
        }
    }
    text
}

fn kind_value(kind: &dyn Kind) -> Value {
    json!({
        "name": kind.name(),
        "summary": kind.summary(),
        "parameters": kind.parameters(),
        "here": kind.probe(),
    })
}
