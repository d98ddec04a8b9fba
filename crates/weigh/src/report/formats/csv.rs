//! Every pair as it was measured, or every sample of a run, one a line: for people who bring their own
//! statistics.

use crate::format;
use crate::report::ReportFormat;
use crate::result::summary::Summary;
use crate::result::work_name::WorkName;
use crate::store::record::Stored;
use crate::workload::metric::Metric;

pub static FORMAT: ReportFormat = ReportFormat {
    name: "csv",
    what: "every pair (of a run: every sample) as CSV",
    compared,
    run: |_, stored| Ok(run(stored)),
    is_json: false,
};

const HEADER: &str = "experiment,workload,treatment,unit,set,pair,started_s,baseline_first,\
                      baseline_rate,treated_rate,log_ratio,disturbed,baseline_cpu_ns_per_op,\
                      treated_cpu_ns_per_op,load_axis,load_value";

const RUN_HEADER: &str = "experiment,workload,unit,sample,started_s,operations,elapsed_s,rate,\
                          load_axis,load_value\n";

fn compared(s: &Summary) -> Result<String, String> {
    match s.imported {
        Some(_) => Err(format!(
            "{} is an import and has no pairs; --json has its figures, with every run",
            s.id
        )),
        None => Ok(pairs(s)),
    }
}

/// The pairs of all rows, in the order measured. Sets and pairs count from 1.
fn pairs(s: &Summary) -> String {
    let metrics = further(s);
    let mut text = HEADER.to_owned();
    for metric in &metrics {
        text += &format!(
            ",{},{}",
            name(&format!("baseline_{metric}")),
            name(&format!("treated_{metric}"))
        );
    }
    text.push('\n');
    for row in &s.results {
        let [axis, value] = load(&row.workload);
        for (index, pair) in row.series.iter().enumerate() {
            let [baseline_cpu_ns, treated_cpu_ns] = pair.cpu_ns_per_op.unwrap_or([f64::NAN; 2]);
            let mut cells = vec![
                name(&s.id),
                name(&row.workload.name),
                name(&row.treatment),
                name(&row.unit),
                pair.set.saturating_add(1).to_string(),
                (index + 1).to_string(),
                number(pair.started_s),
                pair.baseline_first.to_string(),
                number(pair.baseline_rate),
                number(pair.treated_rate),
                number(pair.log_ratio()),
                pair.is_disturbed.to_string(),
                number(baseline_cpu_ns),
                number(treated_cpu_ns),
                axis.clone(),
                value.clone(),
            ];
            for metric in &metrics {
                let of_pair = pair.further.iter().find(|(other, _)| other.name() == *metric);
                let values =
                    of_pair.map_or([f64::NAN; 2], |(_, both)| [both[0].value, both[1].value]);
                cells.extend(values.map(number));
            }
            text += &cells.join(",");
            text.push('\n');
        }
    }
    text
}

/// The samples, in the order measured within each workload. They count from 1.
fn run(stored: &Stored) -> String {
    let mut text = RUN_HEADER.to_owned();
    for (&(work, _), of_work) in &stored.samples {
        let work = &stored.header.works[work];
        let [axis, value] = load(&work.name);
        let unit = of_work.baseline.as_ref().and_then(|totals| totals.unit.as_ref());
        for (index, point) in of_work.points.iter().enumerate() {
            let cells = [
                name(&stored.id),
                name(&work.name.name),
                name(unit.unwrap_or(&work.unit)),
                (index + 1).to_string(),
                number(point.started_s),
                number(point.operations),
                number(point.elapsed_s),
                number(point.rate),
                axis.clone(),
                value.clone(),
            ];
            text += &cells.join(",");
            text.push('\n');
        }
    }
    text
}

/// The axis and the value on it; empty of a workload as it is.
fn load(workload: &WorkName) -> [String; 2] {
    workload.load.as_ref().map(|load| [name(&load.axis), number(load.value)]).unwrap_or_default()
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

/// In full precision; empty when there is no number.
fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

/// A name as a cell. RFC 4180: quotes around what contains a separator, quotes within doubled. A
/// spreadsheet takes what begins with one of `= + - @` for a formula, and what a formula does is not for a
/// name to decide: an apostrophe makes it text (OWASP, "CSV Injection"). Line breaks and tabs are no part
/// of a name.
fn name(text: &str) -> String {
    let text = format::label(text);
    let is_formula = text
        .trim_start()
        .starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}']);
    let text = if is_formula { format!("'{text}") } else { text };
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn a_line_a_pair() {
        let mut s = sample::audit();
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
            assert_eq!(name(formula), format!("'{formula}"));
        }
        assert_eq!(name("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
        assert_eq!(name("\t=1\r\n"), "\u{fffd}=1\u{fffd}\u{fffd}");
        assert_eq!((name("a-b"), number(-1.5)), ("a-b".into(), "-1.5".into()));
    }

    #[test]
    fn odd_names_are_quoted_and_missing_numbers_empty() {
        assert_eq!(name("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(number(f64::NAN), "");
        let text = pairs(&sample::hostile());
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }
}
