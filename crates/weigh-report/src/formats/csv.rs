//! Every pair as it was measured, or every sample of a run, one a line: for people who bring their own
//! statistics. Of audit rules a line per rule, of their log one per rate.

use crate::ReportFormat;
use crate::results::has_interval;
use crate::rules::words::short_unit;
use weigh_model::format;
use weigh_model::profile::runs::ProfileReport;
use weigh_model::result::atlas::{AtlasMeasured, AtlasReport};
use weigh_model::result::budget::BudgetReport;
use weigh_model::result::repeated::{RepeatedReport, SampleLength};
use weigh_model::result::report::Report;
use weigh_model::result::rules::{CostInterval, Fate, Matched, RuleReport};
use weigh_model::result::run::RunReport;
use weigh_model::result::summary::{Row, Summary};
use weigh_model::result::work_name::WorkName;
use weigh_model::workload::metric::Metric;

pub static FORMAT: ReportFormat = ReportFormat {
    name: "csv",
    what: "one line of CSV per pair, sample or audit rule",
    render: |report| match report {
        Report::Compared(s) => compared(s),
        Report::Run(report) => Ok(run(report)),
        Report::Rules(report) => Ok(rules(report)),
        Report::Budget(report) => Ok(budget(report)),
        Report::Profile(report) => Ok(profile(report)),
        Report::Atlas(report) => Ok(atlas(report)),
        Report::Repeated(report) => Ok(repeated(report)),
    },
    is_json: false,
};

const HEADER: &str = "experiment,workload,treatment,unit,set,pair,started_s,baseline_first,\
                      baseline_rate,treated_rate,log_ratio,disturbed,baseline_cpu_ns_per_op,\
                      treated_cpu_ns_per_op,load_axis,load_value";

const RUN_HEADER: &str = "experiment,workload,unit,sample,started_s,operations,elapsed_s,rate,\
                          load_axis,load_value\n";

const RULES_HEADER: &str = "experiment,file,line,rule,state,unit,per_syscall,low,high,\
                            records_if_matched,log_bytes_if_matched,ns_if_matched\n";

const ATLAS_HEADER: &str = "atlas,experiment,treatment,workload,unit,baseline_rate,factor,added_ns_per_op,\
                            effect_pct,low_pct,high_pct,verdict,pairs\n";

const SETS_HEADER: &str = "repeated,experiment,set,users,jobs_per_min,low,high\n";

const LENGTHS_HEADER: &str =
    "repeated,experiment,sample_s,change_pct,largest_pct,workload,workloads\n";

const BUDGET_HEADER: &str = "experiment,workload,treatment,operations_per_s,is_maximum,\
                             log_bytes_per_day,gzip_bytes_per_day\n";

fn compared(s: &Summary) -> Result<String, String> {
    match s.imported {
        Some(_) => Err(format!(
            "{} is an import and has no pairs: use --json, which has its figures and every run",
            s.id
        )),
        None if s.is_of_one_command() => Err(format!(
            "{} is of one command and has no pairs: use --export-csv, or --json, which has every run",
            s.id
        )),
        None => Ok(pairs(s)),
    }
}

/// The pairs of all rows, in the order measured. Sets and pairs count from 1.
fn pairs(s: &Summary) -> String {
    let metrics = further(s);
    let mut text = HEADER.to_owned();
    let arms = |metric: &&str| [format!("baseline_{metric}"), format!("treated_{metric}")];
    let columns: Vec<CsvCell> =
        metrics.iter().flat_map(arms).map(|column| CsvCell::name(&column)).collect();
    if !columns.is_empty() {
        text.push(',');
        text += &line(&columns);
    } else {
        text.push('\n');
    }
    for row in &s.results {
        let [axis, value] = load(&row.workload);
        for (index, pair) in row.series.iter().enumerate() {
            let [baseline_cpu_ns, treated_cpu_ns] = pair.cpu_ns_per_op.unwrap_or([f64::NAN; 2]);
            let mut cells = vec![
                CsvCell::name(&s.id),
                CsvCell::name(&row.workload.name),
                CsvCell::name(&row.treatment),
                CsvCell::name(&row.unit),
                CsvCell::count(pair.set.0.saturating_add(1)),
                CsvCell::count(index + 1),
                CsvCell::number(pair.started_s),
                CsvCell::flag(pair.baseline_first),
                CsvCell::number(pair.baseline_rate),
                CsvCell::number(pair.treated_rate),
                CsvCell::number(pair.log_ratio()),
                CsvCell::flag(pair.is_disturbed),
                CsvCell::number(baseline_cpu_ns),
                CsvCell::number(treated_cpu_ns),
                axis.clone(),
                value.clone(),
            ];
            for metric in &metrics {
                let of_pair = pair.further.iter().find(|(other, _)| other.name() == *metric);
                let values =
                    of_pair.map_or([f64::NAN; 2], |(_, both)| [both[0].value, both[1].value]);
                cells.extend(values.map(CsvCell::number));
            }
            text += &line(&cells);
        }
    }
    text
}

/// The samples, in the order measured within each workload. They count from 1.
fn run(report: &RunReport) -> String {
    let mut text = RUN_HEADER.to_owned();
    for series in &report.series {
        let [axis, value] = load(&series.workload);
        for (index, sample) in series.samples.iter().enumerate() {
            let cells = [
                CsvCell::name(&report.id),
                CsvCell::name(&series.workload.name),
                CsvCell::name(&series.unit),
                CsvCell::count(index + 1),
                CsvCell::number(sample.started_s),
                CsvCell::number(sample.operations),
                CsvCell::number(sample.elapsed_s),
                CsvCell::number(sample.rate),
                axis.clone(),
                value.clone(),
            ];
            text += &line(&cells);
        }
    }
    text
}

/// One line per rule, with what it adds to a system call of the mix; the cells are empty where that is not
/// known.
fn rules(report: &RuleReport) -> String {
    let mut text = RULES_HEADER.to_owned();
    for rule in &report.lines {
        let (state, cost) = match &rule.fate {
            Fate::Loaded(cost) => ("loaded", Some(cost)),
            Fate::Present => ("present", None),
            Fate::Refused(_) => ("refused", None),
            Fate::Skipped(_) => ("skipped", None),
        };
        let shown = cost.filter(|cost| cost.standing.has_figure());
        let per_call = |part: fn(&CostInterval) -> f64| {
            CsvCell::number(shown.map_or(f64::NAN, |cost| part(&cost.per_syscall)))
        };
        let matched = |part: fn(&Matched) -> f64| {
            let matched = cost.and_then(|cost| cost.matched.as_ref());
            CsvCell::number(matched.map_or(f64::NAN, part))
        };
        text += &line(&[
            CsvCell::name(&report.id),
            CsvCell::name(&rule.file.display().to_string()),
            CsvCell::count(rule.number),
            CsvCell::name(&rule.text),
            CsvCell::name(state),
            CsvCell::name(short_unit(report.metric)),
            per_call(|cost| cost.value),
            per_call(|cost| cost.low),
            per_call(|cost| cost.high),
            matched(|matched| matched.records),
            matched(|matched| matched.log_bytes),
            matched(|matched| matched.elapsed_ns),
        ]);
    }
    text
}

/// The log of a day at each rate.
fn budget(report: &BudgetReport) -> String {
    let mut text = BUDGET_HEADER.to_owned();
    for day in &report.days {
        text += &line(&[
            CsvCell::name(&report.id),
            CsvCell::name(&report.workload),
            CsvCell::name(&report.treatment),
            CsvCell::number(day.rate),
            CsvCell::flag(day.is_full_speed),
            CsvCell::number(day.log_bytes),
            CsvCell::number(day.gzip_bytes.unwrap_or(f64::NAN)),
        ]);
    }
    text
}

/// The rows of all treatments.
fn atlas(report: &AtlasReport) -> String {
    let measured = report.entries.iter().filter_map(|result| result.measured.as_ref());
    let rows = measured.flat_map(|of| of.rows.iter().map(move |row| (of, row)));
    let cell = |number: Option<f64>| CsvCell::number(number.unwrap_or(f64::NAN));
    let row = |(of, row): (&AtlasMeasured, &Row)| {
        line(&[
            CsvCell::name(&report.id),
            CsvCell::name(&of.id),
            CsvCell::name(&row.treatment),
            CsvCell::name(&row.workload.to_string()),
            CsvCell::name(&row.unit),
            CsvCell::number(row.baseline),
            cell(row.cost.factor.filter(|_| has_interval(row))),
            cell(row.cost.added_ns_per_op.filter(|_| has_interval(row))),
            cell(Some(row.effect_pct).filter(|_| has_interval(row))),
            cell(row.low_pct),
            cell(row.high_pct),
            CsvCell::name(&format::verdict(row.verdict, row.within_margin, report.margin_pct)),
            CsvCell::count(row.pairs),
        ])
    };
    std::iter::once(ATLAS_HEADER.to_owned()).chain(rows.map(row)).collect()
}

/// A line per set, or per length of samples.
fn repeated(report: &RepeatedReport) -> String {
    let cell = |number: Option<f64>| CsvCell::number(number.unwrap_or(f64::NAN));
    let ids = |experiment: &str| [CsvCell::name(&report.id), CsvCell::name(experiment)];
    let mut text = String::new();
    for (set, of) in report.sets.iter().enumerate() {
        let rest = [
            CsvCell::count(set + 1),
            cell(of.peak.map(|peak| peak.users as f64)),
            cell(of.peak.map(|peak| peak.jobs_per_min)),
            cell(of.peak.and_then(|peak| peak.low)),
            cell(of.peak.and_then(|peak| peak.high)),
        ];
        text += &line(&ids(&of.experiment).into_iter().chain(rest).collect::<Vec<_>>());
    }
    for SampleLength { experiment, sample_s, change } in &report.lengths {
        let change = change.as_ref();
        let rest = [
            CsvCell::number(*sample_s),
            cell(change.map(|change| change.mean_pct)),
            cell(change.map(|change| change.largest_pct)),
            CsvCell::name(change.map_or("", |change| &change.workload)),
            cell(change.map(|change| change.workloads as f64)),
        ];
        text += &line(&ids(experiment).into_iter().chain(rest).collect::<Vec<_>>());
    }
    let header = if report.lengths.is_empty() { SETS_HEADER } else { LENGTHS_HEADER };
    header.to_owned() + &text
}

/// How often each system call was made.
fn profile(report: &ProfileReport) -> String {
    let row = |(name, calls): (&String, &u64)| {
        line(&[CsvCell::name(&report.id), CsvCell::name(name), CsvCell(calls.to_string())])
    };
    let rows = report.profile.calls.iter().map(row);
    std::iter::once("experiment,system_call,calls\n".to_owned()).chain(rows).collect()
}

/// The axis and the value on it; empty of a workload as it is.
fn load(workload: &WorkName) -> [CsvCell; 2] {
    let load = workload.load.as_ref();
    load.map(|load| [CsvCell::name(&load.axis), CsvCell::number(load.value)]).unwrap_or_default()
}

/// The names of the metrics besides the rate and CPU time that any pair has.
fn further(s: &Summary) -> Vec<&str> {
    let mut names: Vec<&str> = (s.results.iter())
        .flat_map(|row| &row.readings)
        .map(|reading| reading.metric.name())
        .filter(|name| *name != Metric::CpuTime.name())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Cell of a CSV line: a number, or a name that is not a formula.
#[derive(Clone, Debug, Default)]
pub struct CsvCell(String);

pub fn line(cells: &[CsvCell]) -> String {
    let cells: Vec<&str> = cells.iter().map(|cell| cell.0.as_str()).collect();
    cells.join(",") + "\n"
}

impl CsvCell {
    /// The shortest text with fifteen significant digits, as many as a decimal number keeps; empty when there
    /// is no number. Further digits are errors of binary fractions (0.30000000000000004), but for those of a
    /// whole number.
    pub fn number(value: f64) -> CsvCell {
        let is_whole = value.fract() == 0.0;
        let rounded = if is_whole { None } else { format!("{value:.14e}").parse().ok() };
        let rounded: f64 = rounded.unwrap_or(value);
        CsvCell(if rounded.is_finite() { rounded.to_string() } else { String::new() })
    }

    fn count(value: usize) -> CsvCell {
        CsvCell(value.to_string())
    }

    fn flag(value: bool) -> CsvCell {
        CsvCell(value.to_string())
    }

    /// RFC 4180: quotes around what contains a separator, quotes within doubled. A spreadsheet takes what
    /// begins with one of `= + - @` for a formula, and what a formula does is not for a name to decide: an
    /// apostrophe makes it text (OWASP, "CSV Injection"). In most of Europe a spreadsheet separates by `;`,
    /// and may find quotes that do not begin its cell, so what follows a `;` is treated as a cell too. Line
    /// breaks and tabs are no part of a name.
    pub fn name(text: &str) -> CsvCell {
        let text = format::label(text);
        let cells: Vec<String> = text.split(';').map(without_formula).collect();
        let text = cells.join(";");
        CsvCell(match text.contains([',', ';', '"']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text,
        })
    }
}

fn without_formula(text: &str) -> String {
    let begins = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];
    let is_formula = text.trim_start_matches([' ', '"']).starts_with(begins);
    if is_formula { format!("'{text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn a_line_a_pair() {
        let mut s = example::audit();
        s.results.truncate(1);
        s.results[0].series.truncate(2);
        let text = pairs(&s);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        let columns = lines[0].split(',').count();
        assert_eq!(columns, 16);
        assert!(lines[2].starts_with("k3f9,syscall,audit,ops/s,1,2,4.7,"), "{}", lines[2]);
        assert!(lines[1..].iter().all(|line| line.split(',').count() == columns));
    }

    #[test]
    fn no_name_is_a_formula_and_a_number_below_zero_is_a_number() {
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\u{ff1d}1"] {
            assert_eq!(CsvCell::name(formula).0, format!("'{formula}"));
        }
        assert_eq!(CsvCell::name("=HYPERLINK(\"x\",1)").0, "\"'=HYPERLINK(\"\"x\"\",1)\"");
        assert_eq!(CsvCell::name("a;=cmd|' /c x'!A1").0, "\"a;'=cmd|' /c x'!A1\"");
        assert_eq!(CsvCell::name("\t=1\r\n").0, "\u{fffd}=1\u{fffd}\u{fffd}");
        assert_eq!(
            (CsvCell::name("a-b").0, CsvCell::number(-1.5).0),
            ("a-b".into(), "-1.5".into())
        );
    }

    #[test]
    fn no_number_has_the_error_of_a_binary_fraction() {
        let numbers = [
            (0.1 + 0.2, "0.3"),
            (123.0 + 456_789_012.0 / 1e9, "123.456789012"),
            (12_098_819.52, "12098819.52"),
            (-0.014_953_271, "-0.014953271"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (2e-9, "0.000000002"),
            (0.0, "0"),
            (f64::INFINITY, ""),
        ];
        for (value, text) in numbers {
            assert_eq!(CsvCell::number(value).0, text, "{value}");
        }
        let mut report = example::run();
        report.series[0].samples[0].started_s = 0.1 + 0.2;
        assert!(run(&report).contains("r7n2,getppid,ops/s,1,0.3,840000,0.07,12000000,,"));
    }

    #[test]
    fn odd_names_are_quoted_and_missing_numbers_empty() {
        assert_eq!(CsvCell::name("a,\"b\"").0, "\"a,\"\"b\"\"\"");
        assert_eq!(CsvCell::number(f64::NAN).0, "");
        let text = pairs(&example::hostile());
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }
}
