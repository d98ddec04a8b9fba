//! Times of commands in the files of `hyperfine --export-json`, `--export-csv` and `--export-markdown`, so
//! that scripts that read those files keep working.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::ReportFormat;
use super::command_times::{TimeUnit, commands};
use super::formats::csv::{CsvCell, line};
use super::formats::json;
use super::markdown_text::Markdown;
use weigh_model::result::report::Report;
use weigh_model::result::versus::CommandTimes;

/// Each is an option of `weigh versus` and of `weigh export`, as hyperfine calls it.
pub static EXPORTS: [&ReportFormat; 3] = [
    &ReportFormat {
        name: "export-json",
        what: "the times of all runs as hyperfine's JSON",
        render: |report| json(times(report)?),
        is_json: true,
    },
    &ReportFormat {
        name: "export-csv",
        what: "each command's times as hyperfine's CSV",
        render: |report| Ok(csv(times(report)?)),
        is_json: false,
    },
    &ReportFormat {
        name: "export-markdown",
        what: "the times as hyperfine's Markdown table",
        render: |report| Ok(markdown(times(report)?)),
        is_json: false,
    },
];

fn times(report: &Report) -> Result<&[CommandTimes], String> {
    let found = match report {
        Report::Compared(s) => commands(s),
        _ => &[],
    };
    match found {
        [] => Err(format!(
            "{} has no times of commands, as `weigh versus` measures them: use --json or --markdown",
            report.id()
        )),
        found => Ok(found),
    }
}

#[derive(Serialize)]
struct HyperfineExport<'a> {
    results: Vec<TimedCommand<'a>>,
}

/// As hyperfine 1.18 writes it, in seconds; and its memory, as later versions do. One field is ours.
#[derive(Serialize)]
struct TimedCommand<'a> {
    command: &'a str,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: Option<f64>,
    system: Option<f64>,
    min: f64,
    max: f64,
    times: &'a [f64],
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    memory_usage_byte: &'a [u64],
    exit_codes: &'a [u8],
    /// Codes of runs that count because the user allowed them: an import would refuse them otherwise.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    allowed_exit_codes: BTreeSet<u8>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: &'a BTreeMap<String, String>,
}

impl TimedCommand<'_> {
    fn of(times: &CommandTimes) -> TimedCommand<'_> {
        TimedCommand {
            command: &times.command,
            mean: times.mean_s(),
            stddev: times.deviation_s(),
            median: times.median_s(),
            user: times.user_s,
            system: times.system_s,
            min: times.shortest_s(),
            max: times.longest_s(),
            times: &times.times_s,
            memory_usage_byte: &times.peak_memory_bytes,
            exit_codes: &times.exit_codes,
            // A run with any other status has no time.
            allowed_exit_codes: times
                .exit_codes
                .iter()
                .copied()
                .filter(|code| *code != 0)
                .collect(),
            parameters: &times.parameters,
        }
    }
}

fn json(times: &[CommandTimes]) -> Result<String, String> {
    json::document(&HyperfineExport { results: times.iter().map(TimedCommand::of).collect() })
}

fn csv(times: &[CommandTimes]) -> String {
    let parameters: BTreeSet<&String> =
        times.iter().flat_map(|one| one.parameters.keys()).collect();
    let columns = ["command", "mean", "stddev", "median", "user", "system", "min", "max"];
    let columns = columns.into_iter().map(str::to_owned);
    let columns = columns.chain(parameters.iter().map(|name| format!("parameter_{name}")));
    let head: Vec<CsvCell> = columns.map(|column| CsvCell::name(&column)).collect();
    let cells = |one: &CommandTimes| {
        let number = |seconds: Option<f64>| CsvCell::number(seconds.unwrap_or(f64::NAN));
        let value = |name: &&String| one.parameters.get(*name).map(|value| value_cell(value));
        let mut cells = vec![
            CsvCell::name(&one.command),
            CsvCell::number(one.mean_s()),
            number(one.deviation_s()),
            CsvCell::number(one.median_s()),
            number(one.user_s),
            number(one.system_s),
            CsvCell::number(one.shortest_s()),
            CsvCell::number(one.longest_s()),
        ];
        cells.extend(parameters.iter().map(|name| value(name).unwrap_or_default()));
        line(&cells)
    };
    std::iter::once(line(&head)).chain(times.iter().map(cells)).collect()
}

/// The unit is that of the first command, and the ratios are those of the means to the least mean.
fn markdown(times: &[CommandTimes]) -> String {
    let unit = TimeUnit::of(times.first().map_or(1.0, CommandTimes::mean_s));
    let decimals = if unit.name == "s" { 3 } else { 1 };
    let text = |seconds: f64| unit.text(seconds, decimals);
    let fastest = times.iter().min_by(|one, other| one.mean_s().total_cmp(&other.mean_s()));
    let mut written = format!(
        "| Command | Mean [{0}] | Min [{0}] | Max [{0}] | Relative |\n|:---|---:|---:|---:|---:|\n",
        unit.name
    );
    for one in times {
        let deviation = one.deviation_s().map(|deviation| format!(" ± {}", text(deviation)));
        written += &format!(
            "| {} | {}{} | {} | {} | {} |\n",
            Markdown::code_cell(&one.command),
            text(one.mean_s()),
            deviation.unwrap_or_default(),
            text(one.shortest_s()),
            text(one.longest_s()),
            fastest.map_or(String::new(), |fastest| relative(one, fastest))
        );
    }
    written
}

/// Ratio of two means, and its standard deviation by propagation, as hyperfine has it.
fn relative(one: &CommandTimes, fastest: &CommandTimes) -> String {
    if std::ptr::eq(one, fastest) {
        return "1.00".to_owned();
    }
    let ratio = one.mean_s() / fastest.mean_s();
    let share = |times: &CommandTimes| Some(times.deviation_s()? / times.mean_s());
    let deviation = share(one).zip(share(fastest)).map(|(one, other)| ratio * one.hypot(other));
    let deviation = deviation.map(|deviation| format!(" ± {deviation:.2}"));
    format!("{ratio:.2}{}", deviation.unwrap_or_default())
}

/// A number is no formula, so it stays as it is: `-2`.
fn value_cell(value: &str) -> CsvCell {
    value.parse().map_or_else(|_| CsvCell::name(value), CsvCell::number)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use weigh_model::example;

    fn export(name: &str, report: impl Into<Report>) -> Result<String, String> {
        let format = EXPORTS.into_iter().find(|format| format.name == name).unwrap();
        (format.render)(&report.into())
    }

    #[test]
    fn the_json_is_that_of_hyperfine() {
        let text = export("export-json", example::versus()).unwrap();
        let written: Value = serde_json::from_str(&text).unwrap();
        let known = include_str!("../../../tests/fixtures/import/hyperfine-parameters.json");
        let known: Value = serde_json::from_str(known).unwrap();
        let fields = |document: &Value| -> Vec<String> {
            document["results"][0].as_object().unwrap().keys().cloned().collect()
        };
        let mut wanted = fields(&known);
        wanted.push("memory_usage_byte".to_owned());
        wanted.sort_unstable();
        let mut found = fields(&written);
        found.sort_unstable();
        assert_eq!(found, wanted);
        let first = &written["results"][0];
        assert_eq!(
            (&first["command"], &first["exit_codes"]),
            (&json!("old --x"), &json!(vec![0; 8]))
        );
        assert_eq!(first["parameters"], json!({"opt": "--x"}));
        assert!((first["mean"].as_f64().unwrap() - 0.1001875).abs() < 1e-12, "{first}");
    }

    #[test]
    fn statuses_that_the_user_allowed_are_named() {
        let mut s = example::versus();
        s.versus.as_mut().unwrap().commands[1].exit_codes = vec![0, 1, 3, 1, 0, 0, 0, 0];
        let written: Value = serde_json::from_str(&export("export-json", s).unwrap()).unwrap();
        assert_eq!(written["results"][1]["allowed_exit_codes"], json!([1, 3]));
        assert_eq!(written["results"][0].get("allowed_exit_codes"), None);
    }

    #[test]
    fn one_run_has_no_deviation_in_any_file() {
        let mut s = example::one_command();
        let times = &mut s.versus.as_mut().unwrap().commands[0];
        times.times_s.truncate(1);
        times.parameters.clear();
        let text = export("export-json", s.clone()).unwrap();
        let written: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(written["results"][0]["stddev"], Value::Null);
        assert!(written["results"][0].get("parameters").is_none(), "{written}");
        let csv = export("export-csv", s.clone()).unwrap();
        assert_eq!(
            csv,
            "command,mean,stddev,median,user,system,min,max\nold --x,0.1,,0.1,0.08,0.0125,0.1,0.1\n"
        );
        assert!(export("export-markdown", s).unwrap().contains("| `old --x` | 100.0 | 100.0 |"));
    }

    #[test]
    fn csv_has_a_column_for_each_parameter_and_no_formula() {
        assert!(line(&[value_cell("-2")]).starts_with("-2"), "a number is as it was given");
        let mut s = example::versus();
        s.versus.as_mut().unwrap().commands[0].command = "=cmd, x".to_owned();
        let csv = export("export-csv", s).unwrap();
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[0].ends_with(",min,max,parameter_opt"), "{csv}");
        assert!(lines[1].starts_with("\"'=cmd, x\",0.1001875,"), "{csv}");
        assert!(lines[3].ends_with(",'--y"), "{csv}");
    }

    #[test]
    fn ratios_are_to_the_fastest_and_a_name_ends_no_cell() {
        let mut s = example::versus();
        s.versus.as_mut().unwrap().commands[2].command = "a | b".to_owned();
        assert_eq!(
            export("export-markdown", s).unwrap(),
            "| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |\n\
             |:---|---:|---:|---:|---:|\n\
             | `old --x` | 100.2 ± 1.4 | 98.5 | 103.0 | 1.03 ± 0.02 |\n\
             | `new --x` | 97.2 ± 1.3 | 95.5 | 99.9 | 1.00 |\n\
             | `a \\| b` | 200.4 ± 2.8 | 197.0 | 206.0 | 2.06 ± 0.04 |\n"
        );
    }

    #[test]
    fn without_times_there_is_no_such_file() {
        let problem = export("export-json", example::audit()).unwrap_err();
        assert!(problem.contains("`weigh versus`"), "{problem}");
        assert!(export("export-csv", example::run()).is_err());
    }
}
