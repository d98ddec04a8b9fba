//! `weigh list`: what there is to weigh, and to weigh with.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::output;
use crate::report::text::wrap;
use crate::treatment::{KINDS, Parameter};
use crate::workload::catalogue::{self, Workload};
use crate::workload::kernels::Kernels;
use crate::workload::suite::{self, Suite};

const EXAMPLES: &str = "\
Examples:
  weigh list                      everything
  weigh list treatments           which work on this machine, found out by trying
  weigh list workloads --json";

/// List workloads, suites and treatments
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct List {
    /// Only these
    what: Option<What>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Workloads,
    Suites,
    Treatments,
}

impl List {
    pub fn run(self) -> Result<u8, String> {
        let wants = |what| self.what.is_none_or(|chosen| chosen == what);
        let mut text = String::new();
        let mut values = serde_json::Map::new();
        if wants(What::Workloads) {
            let workloads = workloads()?;
            text.push_str(&describe_workloads(&workloads));
            values.insert("workloads".into(), json!(workloads));
        }
        if wants(What::Suites) {
            let suites = suite::embedded()?;
            text.push_str(&describe_suites(&suites));
            values.insert("suites".into(), suites.iter().map(suite_value).collect());
        }
        if wants(What::Treatments) {
            text.push_str(&describe_treatments());
            values.insert("treatments".into(), treatments_value());
        }
        match self.json {
            false => output::print(text.trim_start())?,
            true => output::print(&format!("{:#}\n", Value::Object(values)))?,
        }
        Ok(0)
    }
}

fn workloads() -> Result<Vec<Workload>, String> {
    let directory =
        tempfile::tempdir().map_err(|error| format!("a temporary directory: {error}"))?;
    catalogue::read(&Kernels::unpack(directory.path())?)
}

fn describe_workloads(workloads: &[Workload]) -> String {
    let name_width = workloads.iter().map(|workload| workload.name.len()).max().unwrap_or(0);
    let mut text = format!(
        "\nWorkloads\n  {:<name_width$} {:<8} {:<6} {:>8}  one operation\n",
        "name", "group", "unit", "calls/op"
    );
    for workload in workloads {
        let calls = if workload.syscalls_per_op.fract() == 0.0 {
            format!("{}", workload.syscalls_per_op)
        } else {
            format!("{:.3}", workload.syscalls_per_op)
        };
        let _ = writeln!(
            text,
            "  {:<name_width$} {:<8} {:<6} {:>8}  {}",
            workload.name, workload.group, workload.unit, calls, workload.summary
        );
    }
    text
}

fn describe_suites(suites: &[Suite]) -> String {
    let mut text = String::from("\nSuites\n");
    for suite in suites {
        let names: Vec<&str> = suite.members.iter().map(|member| member.name.as_str()).collect();
        let _ = writeln!(text, "  {:<17} {}", suite.name, suite.summary);
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

fn describe_treatments() -> String {
    let mut text = String::from("\nTreatments\n");
    for kind in KINDS {
        let probe = kind.probe();
        let here = probe.obstacle().map_or("works here".into(), |why| format!("not here: {why}"));
        let _ = writeln!(text, "  {:<17} {}\n  {:<17} {here}", kind.name(), kind.summary(), "");
        for Parameter { form, help } in kind.parameters() {
            let _ = writeln!(text, "      {:<20} {help}", format!("{}:{form}", kind.name()));
        }
    }
    text
}

fn treatments_value() -> Value {
    KINDS
        .iter()
        .map(|kind| {
            json!({
                "name": kind.name(),
                "summary": kind.summary(),
                "parameters": kind.parameters(),
                "here": kind.probe(),
            })
        })
        .collect()
}
