//! `weigh history`: what was measured so far.

use clap::Args;
use jiff::{SignedDuration, Timestamp, civil, tz::TimeZone};
use serde_json::json;

use super::{Context, output};
use weigh_model::format;
use weigh_model::record::{Entry, ExperimentKind};
use weigh_model::result::summary::State;
use weigh_model::result::work_name::WorkName;

const EXAMPLES: &str = "\
Examples:
  weigh history
  weigh history --kind compare --treatment audit --since 7d
  weigh history --workload getppid --tag nightly --limit 10
  weigh history --json | jq -r '.experiments[].id'";

/// List stored experiments, the latest first
///
/// With several filters, lists the experiments that match all of them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct HistoryArgs {
    /// Only experiments of this command: compare, versus, run (also those of `weigh load` and `weigh net`),
    /// calibrate, rules, budget, profile or import
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<ExperimentKind>,
    /// Only experiments with a treatment whose label contains this, such as audit
    #[arg(long, value_name = "TREATMENT")]
    treatment: Option<String>,
    /// Only experiments with a workload whose name contains this, such as getppid
    #[arg(short, long, value_name = "WORKLOAD")]
    workload: Option<String>,
    /// Only experiments since a day (2026-11-21) or a time (2026-11-21T20:00:00Z), or of the last 7d, 12h, …
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,
    /// Only experiments with this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only experiments with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Show at most this many experiments [default: all]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

fn kind(text: &str) -> Result<ExperimentKind, String> {
    ExperimentKind::from_name(text).ok_or_else(|| {
        "it is one of compare, versus, run, calibrate, rules, budget, profile, import".into()
    })
}

fn since(text: &str) -> Result<Timestamp, String> {
    let ago = || {
        let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
        let ago = match days {
            Some(days) => SignedDuration::from_hours(i64::from(days) * 24),
            None => text.parse().ok()?,
        };
        Timestamp::now().checked_sub(ago).ok()
    };
    let day = || text.parse::<civil::Date>().ok()?.to_zoned(TimeZone::system()).ok();
    let time = text.parse::<Timestamp>().ok().or_else(|| day().map(|day| day.timestamp()));
    time.or_else(ago).ok_or_else(|| {
        "takes a day such as 2026-11-21, a time such as 2026-11-21T20:00:00Z, or how long ago, such as 7d or \
         12h"
            .into()
    })
}

impl HistoryArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        let all = match context.find_store()? {
            Some(store) => store.history().map_err(|error| error.to_string())?,
            None => Vec::new(),
        };
        let is_empty = all.is_empty();
        let entries = all.into_iter().filter(|entry| self.wants(entry));
        let entries: Vec<Entry> = entries.take(self.limit.unwrap_or(usize::MAX)).collect();
        if self.json {
            let document = json!({"schema": "weighbridge/history/1", "experiments": entries});
            output::print_json(&format!("{document:#}\n"))?;
            return Ok(0);
        }
        match (is_empty, entries.is_empty()) {
            (true, _) => output::note("There is no experiment yet: `weigh compare` makes one."),
            (false, true) => output::note("No experiment matches."),
            _ => {}
        }
        output::print(&entries.iter().map(line).collect::<String>())?;
        Ok(0)
    }

    fn wants(&self, entry: &Entry) -> bool {
        let has = |part: &Option<String>, names: &[String]| {
            part.as_ref().is_none_or(|part| names.iter().any(|name| name.contains(part.as_str())))
        };
        let started: Option<Timestamp> = entry.started.parse().ok();
        self.kind.is_none_or(|kind| entry.kind == Some(kind))
            && has(&self.treatment, &entry.treatments)
            && has(&self.workload.as_deref().map(as_now), &entry.workloads)
            && self.since.is_none_or(|since| started.is_some_and(|started| started >= since))
            && self.name.as_ref().is_none_or(|name| entry.name.as_ref() == Some(name))
            && self.tag.as_ref().is_none_or(|tag| entry.tags.contains(tag))
    }
}

/// Converts an old name to its present form: `pipe x 4` is `pipe:copies=4` now.
fn as_now(workload: &str) -> String {
    match WorkName::parse(workload).as_deref() {
        Ok([name]) => WorkName::of_copies(&name.name, name.copies()).to_string(),
        _ => workload.to_owned(),
    }
}

/// An experiment on a line of its own.
pub fn line(entry: &Entry) -> String {
    let state = match entry.state {
        State::Running => "running",
        _ if entry.kind == Some(ExperimentKind::Import) => "imported",
        State::Complete => "complete",
        State::Interrupted => "interrupted",
        State::Failed => "failed",
    };
    let started = entry.started.replace('T', " ").replace('Z', "");
    let noun = if entry.samples == 1 { "sample" } else { "samples" };
    let samples = format!("{:>6} {noun}", entry.samples);
    let name = entry.name.iter().cloned();
    let called: Vec<String> = name.chain(entry.tags.iter().map(|tag| format!("#{tag}"))).collect();
    let called =
        if called.is_empty() { String::new() } else { format!("[{}]  ", called.join(" ")) };
    format!(
        "{}  {}  {state:<11}  {samples:<14}  {}{}\n",
        format::label(&entry.id),
        format::label(&started),
        format::label(&called),
        format::label(&entry.command)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sample_is_no_samples() {
        let entry = |samples| Entry {
            id: "k3f9qx".to_owned().try_into().unwrap(),
            name: None,
            tags: Vec::new(),
            kind: Some(ExperimentKind::Run),
            started: "2026-11-21T20:15:04Z".into(),
            state: State::Complete,
            command: "weigh run".into(),
            treatments: Vec::new(),
            workloads: Vec::new(),
            samples,
        };
        let [one, two] = [1, 2].map(|samples| line(&entry(samples)));
        assert!(one.contains("     1 sample  ") && two.contains("     2 samples  "), "{one}{two}");
        // The command begins in the same column.
        assert_eq!(one.find("weigh run"), two.find("weigh run"));
    }

    #[test]
    fn since_is_a_day_a_time_or_how_long_ago() {
        assert_eq!(since("2026-11-21T20:00:00Z"), Ok("2026-11-21T20:00:00Z".parse().unwrap()));
        assert!(since("2026-11-21").is_ok());
        let hours = |text: &str| (Timestamp::now() - since(text).unwrap()).get_seconds();
        assert!((hours("7d") - 7 * 86_400).abs() < 60);
        assert!((hours("12h") - 12 * 3600).abs() < 60);
        for bad in ["", "yesterday", "7", "-1x", "2026-13-01", "99999999999d"] {
            assert!(since(bad).is_err(), "{bad}");
        }
    }
}
