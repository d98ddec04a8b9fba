//! `weigh list`: what there is to weigh, and to weigh with.

mod workloads;

use std::fmt::Write as _;
use std::io;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{Context, output};
use weigh_fixture::FIXTURES;
use weigh_host::undo::scratch;
use weigh_model::workload::mix;
use weigh_model::workload::mix::JobMix;
use weigh_model::workload::suite;
use weigh_model::workload::suite::Suite;
use weigh_report::text::wrap;
use weigh_treatment::{KINDS, Kind, Parameter};
use weigh_workload::catalogue::Workload;
use weigh_workload::executable::Executable;

const EXAMPLES: &str = "\
Examples:
  weigh list                     everything, briefly
  weigh list workloads futex     operation, system calls and source of these
  weigh list workloads syscalls  the workloads of a suite or a group
  weigh list treatments          all treatments, and which work on this machine
  weigh list treatments audit    one treatment with its parameters
  weigh list fixtures            environments of workloads, such as file systems
  weigh list mixes               the mixes of jobs for the users of `weigh load`
  weigh list workloads --json";

/// List workloads, suites, mixes, treatments and fixtures
///
/// A workload is a program to time. A suite is a group of workloads. A mix is a list of jobs for the
/// simulated users of `weigh load`. A treatment is a change to measure. A fixture is an environment for
/// workloads, such as a file system or a server. Tries which treatments and fixtures work on this machine.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ListArgs {
    /// Kind to list [default: all]
    what: Option<What>,
    /// Only entries whose name contains this, such as audit; for workloads, also a group or a suite
    #[arg(requires = "what")]
    name: Option<String>,
    /// Print the list as JSON
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

impl What {
    /// Its field in JSON.
    fn key(self) -> &'static str {
        match self {
            What::Workloads => "workloads",
            What::Suites => "suites",
            What::Treatments => "treatments",
            What::Fixtures => "fixtures",
            What::Mixes => "mixes",
        }
    }
}

impl ListArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        let wants = |what| self.what.is_none_or(|chosen| chosen == what);
        let suites = suite::embedded()?;
        let mut text = String::new();
        let mut values = serde_json::Map::new();
        if wants(What::Workloads) {
            let all = read_workloads()?;
            let chosen = self.choose(&all, &suites);
            text.push_str(&match self.what {
                None => workloads::overview(&all, output::room().wrap),
                Some(_) if output::wants_colour(context.color, &io::stdout()) => {
                    workloads::table(&chosen, |line| format!("\x1b[2m{line}\x1b[0m"))
                }
                Some(_) => workloads::table(&chosen, str::to_owned),
            });
            values.insert(What::Workloads.key().into(), json!(chosen));
        }
        let is_chosen = |name: &str| self.name.as_ref().is_none_or(|part| name.contains(part));
        if wants(What::Suites) {
            let chosen: Vec<&Suite> =
                suites.iter().filter(|suite| is_chosen(&suite.name)).collect();
            text.push_str(&of_suites(&chosen, self.what.is_some()));
            values.insert(What::Suites.key().into(), chosen.into_iter().map(suite_value).collect());
        }
        if wants(What::Mixes) {
            let all = mix::embedded()?;
            let all_utime = all.iter().find(|mix| mix.name == "all_utime");
            let share = |mix: &JobMix| all_utime.map(|of| mix.user_mode_pct(of));
            let chosen = all.iter().filter(|mix| is_chosen(&mix.name));
            let mixes: Vec<_> = chosen.map(|mix| (mix, share(mix))).collect();
            text.push_str(&of_mixes(&mixes));
            values.insert(What::Mixes.key().into(), mixes.iter().map(mix_value).collect());
        }
        let treatments = KINDS.iter().map(|treatment| &treatment.kind).collect();
        let fixtures = FIXTURES.iter().map(|fixture| &fixture.kind).collect();
        let both: [(What, Vec<&Kind>); 2] =
            [(What::Treatments, treatments), (What::Fixtures, fixtures)];
        for (what, mut kinds) in both.into_iter().filter(|(what, _)| wants(*what)) {
            kinds.retain(|kind| is_chosen(kind.name));
            text.push_str(&of_kinds(what, &kinds));
            values.insert(what.key().into(), kinds.into_iter().map(kind_value).collect());
        }
        if values.values().all(|value| value.as_array().is_some_and(Vec::is_empty)) {
            return Err(self.nothing_found());
        }
        match self.json {
            false => output::print(text.trim_start())?,
            true => output::print_json(&format!("{:#}\n", Value::Object(values)))?,
        }
        Ok(0)
    }

    fn choose<'a>(&self, all: &'a [Workload], suites: &[Suite]) -> Vec<&'a Workload> {
        let Some(name) = &self.name else { return all.iter().collect() };
        let suite = suites.iter().find(|suite| suite.name == *name);
        let is_member = |workload: &Workload| {
            suite.is_some_and(|suite| suite.members.iter().any(|m| m.name == workload.name))
        };
        let is_chosen = |workload: &&Workload| match suite {
            Some(_) => is_member(workload),
            None => workload.group == *name || workload.name.contains(name),
        };
        all.iter().filter(is_chosen).collect()
    }

    fn nothing_found(&self) -> String {
        let what = match self.what {
            Some(What::Workloads) | None => "workload, group or suite",
            Some(What::Suites) => "suite",
            Some(What::Treatments) => "treatment",
            Some(What::Fixtures) => "fixture",
            Some(What::Mixes) => "mix",
        };
        let name = self.name.as_deref().unwrap_or_default();
        format!("no {what} has `{name}` in its name; `weigh list` shows all")
    }
}

/// All workloads, as they declare themselves.
pub fn read_workloads() -> Result<Vec<Workload>, String> {
    let directory = scratch::place()
        .and_then(tempfile::tempdir_in)
        .map_err(|error| format!("a temporary directory: {error}; set TMPDIR"))?;
    Executable::unpack(directory.path())?.workloads()
}

fn of_suites(suites: &[&Suite], with_members: bool) -> String {
    let mut text = String::from("\nSuites\n");
    for suite in suites {
        let head = format!("  {:<17} {:>3}", suite.name, suite.members.len());
        text.push_str(&entry(&head, 24, &suite.summary));
        if with_members {
            let names: Vec<&str> = suite.members.iter().map(|m| m.name.as_str()).collect();
            text.push_str(&entry("", 24, &names.join(" ")));
        }
    }
    text
}

/// Formats mixes, each with the share of its work that stays in user mode.
fn of_mixes(mixes: &[(&JobMix, Option<f64>)]) -> String {
    let mut text = String::from("\nMixes, for `weigh load` and as `load:NAME`\n");
    for (JobMix { name, summary, tests, .. }, user_mode_pct) in mixes {
        let share = user_mode_pct
            .map(|pct| format!(" ({:.1} % user mode)", pct.max(0.0).abs()))
            .unwrap_or_default();
        let head = format!("  {name:<17} {:>3}", tests.len());
        text.push_str(&entry(&head, 24, &format!("{summary}{share}")));
    }
    text
}

fn mix_value((mix, user_mode_pct): &(&JobMix, Option<f64>)) -> Value {
    let mut value = json!(mix);
    if let Some(pct) = user_mode_pct {
        value["user_mode_pct"] = json!(pct);
    }
    value
}

/// Formats an entry: a head left of a column, and wrapped text right of it.
fn entry(head: &str, column: usize, body: &str) -> String {
    let mut text = String::new();
    for (number, line) in
        wrap(body, output::room().wrap.saturating_sub(column), 0).into_iter().enumerate()
    {
        let head = if number == 0 { head } else { "" };
        let _ = writeln!(text, "{head:<column$}{line}");
    }
    text
}

fn suite_value(suite: &Suite) -> Value {
    let names: Vec<&str> = suite.members.iter().map(|member| member.name.as_str()).collect();
    json!({"name": suite.name, "summary": suite.summary, "source": suite.source, "workloads": names})
}

fn of_kinds(what: What, kinds: &[&Kind]) -> String {
    let mut text = match what {
        What::Fixtures => String::from("\nFixtures\n"),
        _ => String::from("\nTreatments\n"),
    };
    let label = |kind: &Kind, form: &str| format!("      {}:{form}", kind.name);
    let forms = kinds.iter().flat_map(|kind| {
        kind.parameters.iter().map(|parameter| label(kind, parameter.form).chars().count())
    });
    let column = forms.max().unwrap_or(0) + 2;
    for kind in kinds {
        let probe = (kind.probe)();
        let here = probe.obstacle().map_or("works here".into(), |why| format!("not here: {why}"));
        text.push_str(&entry(&format!("  {}", kind.name), 20, kind.summary));
        text.push_str(&entry("", 20, &here));
        for Parameter { form, help } in kind.parameters {
            text.push_str(&entry(&label(kind, form), column, help));
        }
    }
    text
}

fn kind_value(kind: &Kind) -> Value {
    json!({
        "name": kind.name,
        "summary": kind.summary,
        "parameters": kind.parameters,
        "here": (kind.probe)(),
    })
}
