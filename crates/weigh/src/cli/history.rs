//! `weigh history`: what was measured so far.

use std::io::{self, IsTerminal as _};

use clap::Args;
use jiff::{SignedDuration, Timestamp, civil, tz::TimeZone};
use serde_json::json;

use super::{Context, output, trend, value};
use weigh_engine::report;
use weigh_model::format;
use weigh_model::record::{Entry, ExperimentKind};
use weigh_model::result::summary::State;
use weigh_model::result::work_name::WorkName;
use weigh_report::outcome;
use weigh_store::Store;

const EXAMPLES: &str = "\
Examples:
  weigh history
  weigh history --kind compare --treatment audit --since 7d
  weigh history --workload getppid --tag nightly --limit 10
  weigh history --workload getppid --tag nightly --trend
  weigh history --json | jq -r '.experiments[].id'";

/// List stored experiments, the latest first
///
/// With several filters, lists the experiments that match all of them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct HistoryArgs {
    /// Only experiments of this command: compare, versus, calibrate, atlas, rules, budget, profile, import,
    /// or run, which includes load and net
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
    #[arg(short = 'n', long, value_name = "N", value_parser = value::at_least(1))]
    limit: Option<u32>,
    /// Instead of the list, print the rate of each workload over time, and its change since the first
    /// experiment; of comparisons, the baseline's rate
    #[arg(long, conflicts_with = "json")]
    trend: bool,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

fn kind(text: &str) -> Result<ExperimentKind, String> {
    ExperimentKind::from_name(text).ok_or_else(|| {
        "it is one of compare, versus, run, calibrate, atlas, rules, budget, profile, import".into()
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

/// Entries whose results are derived, shown and kept together: what was shown is not derived again after
/// Ctrl-C.
const TOGETHER: usize = 50;

impl HistoryArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        let store = context.find_store()?;
        let all = match &store {
            Some(store) => store.history().map_err(|error| error.to_string())?,
            None => Vec::new(),
        };
        let is_empty = all.is_empty();
        let entries = all.into_iter().filter(|entry| self.wants(entry));
        let mut entries: Vec<Entry> =
            entries.take(self.limit.map_or(usize::MAX, |limit| limit as usize)).collect();
        if let Some(store) = &store {
            store.add_outcomes(&mut entries).map_err(|error| error.to_string())?;
        }
        if let (true, Some(store)) = (self.trend, &store) {
            let wanted = self.workload.as_deref().map(as_now).unwrap_or_default();
            let blocks = trend::blocks(&entries, store, |name| name.contains(&wanted))?;
            match blocks.is_empty() {
                true => output::note("No experiment matches that has a rate."),
                false => output::print(&blocks)?,
            }
            return Ok(0);
        }
        if self.json {
            store.iter().for_each(|store| derive_results(store, &mut entries));
            let document = json!({"schema": "weighbridge/history/1", "experiments": entries});
            output::print_json(&format!("{document:#}\n"))?;
            return Ok(0);
        }
        match (is_empty, entries.is_empty()) {
            (true, _) => output::note("There is no experiment yet: `weigh compare` makes one."),
            (false, true) => output::note("No experiment matches."),
            _ => output::print(&Columns::of_stdout().head())?,
        }
        store.map_or(Ok(()), |store| print(entries, &store))?;
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

/// Prints each of them on a line of its own.
pub fn print(mut entries: Vec<Entry>, store: &Store) -> Result<(), String> {
    let columns = Columns::of_stdout();
    for entries in entries.chunks_mut(TOGETHER) {
        derive_results(store, entries);
        output::print(&entries.iter().map(|entry| columns.line(entry)).collect::<String>())?;
    }
    Ok(())
}

/// Derives the results that are not known, and keeps them for the next time.
fn derive_results(store: &Store, entries: &mut [Entry]) {
    let is_unknown = |entry: &&mut Entry| entry.result.is_none() && entry.state != State::Running;
    let mut derived = Vec::new();
    for entry in entries.iter_mut().filter(is_unknown) {
        match report::load(store, &entry.id) {
            Ok(report) => {
                entry.result = Some(outcome::words(&report));
                derived.push(entry.clone());
            }
            Err(problem) => entry.result = Some(format!("cannot be read: {problem}")),
        }
    }
    // The list is complete without it, and takes longer the next time.
    if let Err(error) = store.keep_outcomes(&derived) {
        output::note(&format!(
            "Warning: cannot cache these results, so the next `weigh history` will be as slow: {error}"
        ));
    }
}

/// Columns of the list. The last has no width, and the line is cut at that of the terminal.
struct Columns {
    result: usize,
    /// `None` where nothing is cut: in a file or a pipe.
    line: Option<usize>,
}

impl Columns {
    /// An id, and a time without its seconds.
    const ID: usize = 6;
    const STARTED: usize = 16;

    fn of_stdout() -> Columns {
        Columns::within(io::stdout().is_terminal().then(|| output::room().cut))
    }

    /// Gives half of the room to the result, and the rest to the command.
    fn within(line: Option<usize>) -> Columns {
        let before = Columns::ID + Columns::STARTED + 4;
        let result = line.map_or(34, |width| (width.saturating_sub(before) / 2).max(10));
        Columns { result, line }
    }

    fn head(&self) -> String {
        self.row("id", "started", "result", "command")
    }

    fn line(&self, entry: &Entry) -> String {
        let result = match (&entry.result, entry.state) {
            (_, State::Running) => "running".to_owned(),
            (Some(result), _) if entry.kind == Some(ExperimentKind::Import) => {
                format!("imported: {result}")
            }
            (Some(result), _) => result.clone(),
            (None, _) => "unknown".to_owned(),
        };
        let name = entry.name.iter().cloned();
        let tags = entry.tags.iter().map(|tag| format!("#{tag}"));
        let called: Vec<String> = name.chain(tags).collect();
        let called = match called.is_empty() {
            true => String::new(),
            false => format!("[{}] ", called.join(" ")),
        };
        let command = format!("{called}{}", entry.command);
        self.row(&entry.id, &trend::local(&entry.started), &result, &command)
    }

    fn row(&self, id: &str, started: &str, result: &str, command: &str) -> String {
        let [id, started, result, command] = [id, started, result, command].map(format::label);
        let result = match self.line {
            Some(_) => format::shorten(&result, self.result),
            None => result,
        };
        let row = format!(
            "{id:<0$}  {started:<1$}  {result:<2$}  {command}",
            Columns::ID,
            Columns::STARTED,
            self.result
        );
        let row = self.line.map_or_else(|| row.clone(), |width| format::shorten(&row, width));
        row.trim_end().to_owned() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(result: Option<&str>, state: State) -> Entry {
        Entry {
            id: "k3f9qx".to_owned().try_into().unwrap(),
            name: Some("before".into()),
            tags: vec!["nightly".into()],
            kind: Some(ExperimentKind::Compare),
            started: "2026-11-21T20:15:04Z".into(),
            state,
            result: result.map(str::to_owned),
            command: format!("weigh compare seccomp -w {}", "getppid ".repeat(100)),
            treatments: Vec::new(),
            workloads: Vec::new(),
            samples: 0,
            sessions: 1,
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_a_pipe_gets_all_of_it() {
        let long = entry(Some(&"3 slower, ".repeat(20)), State::Complete);
        let slower = entry(Some("slower, −18.0 %"), State::Complete);
        for width in [40, 80, 120] {
            let columns = Columns::within(Some(width));
            let rows = [columns.head(), columns.line(&long), columns.line(&slower)];
            for row in &rows {
                assert!(row.trim_end().chars().count() <= width && row.ends_with('\n'), "{row}");
                assert_eq!(row.lines().count(), 1);
            }
            let begins = |row: &str, word: &str| row.split(word).next().unwrap().chars().count();
            if width >= 80 {
                // Under its heading, uncut.
                assert_eq!(begins(&rows[0], "result"), begins(&rows[2], "slower, −18.0 %"));
                assert_eq!(begins(&rows[0], "command"), begins(&rows[2], "[before #nightly]"));
            }
        }
        let piped = Columns::within(None).line(&long);
        assert!(
            piped.contains(long.result.as_ref().unwrap()) && piped.contains(long.command.trim())
        );
    }

    #[test]
    fn an_experiment_without_a_result_says_why() {
        let line = |entry: &Entry| Columns::within(Some(80)).line(entry);
        assert!(line(&entry(None, State::Running)).contains("running"));
        let mut imported = entry(Some("2 slower"), State::Complete);
        imported.kind = Some(ExperimentKind::Import);
        assert!(line(&imported).contains("imported: 2 slower"));
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
