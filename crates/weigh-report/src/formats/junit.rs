//! JUnit's XML, which CI systems show: a suite per treatment, or one for a run, with a test per workload. A
//! row that fails the gate is a failure, a workload without a result an error, and an inconclusive row is
//! skipped. In a run nothing can fail but for want of a result.

use std::fmt::Display;

use crate::{ReportFormat, by_treatment, not_rendered, run_page, sentence};
use paired::Verdict;
use weigh_model::format;
use weigh_model::result::report::Report;
use weigh_model::result::run::{RunReport, RunRow};
use weigh_model::result::summary::{Failure, Row, Summary};
use weigh_model::result::work_name::WorkName;

pub static FORMAT: ReportFormat = ReportFormat {
    name: "junit",
    what: "the rows as tests in JUnit's XML, for CI: a row above --fail-above fails",
    render: |report| {
        let suites = match report {
            Report::Compared(s) => compared(s),
            Report::Run(report) => vec![run(report)],
            Report::Rules(_) => return Err(not_rendered(report, "junit")),
        };
        Ok(document(suites, report.failure()))
    },
    is_json: false,
};

/// A part of a document: markup of our own, and escaped text, and nothing else.
struct Xml(String);

impl From<&'static str> for Xml {
    fn from(own: &'static str) -> Xml {
        Xml(own.to_owned())
    }
}

impl Xml {
    fn element(
        name: &'static str,
        attributes: &[(&'static str, &dyn Display)],
        content: Vec<Xml>,
    ) -> Xml {
        let attributes = attributes.iter().map(|(key, value)| {
            let value = escape(&value.to_string());
            format!(" {key}=\"{value}\"")
        });
        let head = format!("<{name}{}", attributes.collect::<String>());
        let content: Vec<String> = content.into_iter().map(|part| part.0).collect();
        Xml(match content.is_empty() {
            true => format!("{head}/>"),
            false => format!("{head}>{}</{name}>", content.concat()),
        })
    }

    fn text(text: &str) -> Xml {
        Xml(escape(text))
    }
}

/// Each on a line of its own.
fn lines(indent: &'static str, parts: Vec<Xml>) -> impl Iterator<Item = Xml> {
    parts.into_iter().flat_map(move |part| [Xml::from(indent), part])
}

fn document(mut suites: Vec<Xml>, failure: Option<&str>) -> String {
    if let Some(reason) = failure {
        let case = failed_case("weigh", &"experiment", reason);
        let numbers: [(_, &dyn Display); 3] =
            [("name", &"experiment"), ("tests", &1), ("errors", &1)];
        let content = lines("\n    ", vec![case]).chain(["\n  ".into()]);
        suites.push(Xml::element("testsuite", &numbers, content.collect()));
    }
    let content = lines("\n  ", suites).chain(["\n".into()]);
    let all = Xml::element("testsuites", &[("name", &"weigh")], content.collect());
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", all.0)
}

/// A suite per treatment, also where none of its workloads has a result.
fn compared(s: &Summary) -> Vec<Xml> {
    let mut groups = by_treatment(s);
    for failure in &s.failures {
        if !groups.iter().any(|(label, _)| *label == failure.arm) {
            groups.push((&failure.arm, Vec::new()));
        }
    }
    let of_treatment = |(treatment, rows): (&str, Vec<&Row>)| {
        let is_skipped = |row: &&&Row| !is_above(s, row) && row.verdict == Verdict::Inconclusive;
        Suite {
            name: treatment,
            started: &s.started,
            cases: rows.iter().map(|row| case(s, row)).collect(),
            failed: rows.iter().filter(|row| is_above(s, row)).count(),
            skipped: rows.iter().filter(is_skipped).count(),
            failures: s.failures.iter().filter(|f| f.arm == treatment).collect(),
            said: sentence::sentence(s),
        }
        .xml()
    };
    groups.into_iter().map(of_treatment).collect()
}

fn run(report: &RunReport) -> Xml {
    let title = std::iter::once(run_page::title(report));
    let sentences: Vec<String> = title.chain(run_page::sentences(report)).collect();
    Suite {
        name: RUN,
        started: &report.started,
        cases: report.results.iter().map(measured).collect(),
        failed: 0,
        skipped: 0,
        failures: report.failures.iter().collect(),
        said: sentences.join(". "),
    }
    .xml()
}

/// The name of the suite of a run.
const RUN: &str = "run";

fn measured(row: &RunRow) -> Xml {
    let rate = format::rate(row.rate, &row.unit);
    let samples = format::plural(row.samples, "sample");
    let parts = [format!("{rate} {}", row.unit), run_page::spread(row), samples];
    let parts: Vec<&str> =
        parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    let said = Xml::element("system-out", &[], vec![Xml::text(&parts.join(", "))]);
    test(RUN, &row.workload, vec![said])
}

/// The tests of one treatment, or of a run.
struct Suite<'a> {
    name: &'a str,
    started: &'a str,
    /// What has a result; `failed` and `skipped` count in it.
    cases: Vec<Xml>,
    failed: usize,
    skipped: usize,
    failures: Vec<&'a Failure>,
    said: String,
}

impl Suite<'_> {
    fn xml(self) -> Xml {
        let class = format!("weigh.{}", self.name);
        let numbers: [(_, &dyn Display); 6] = [
            ("name", &self.name),
            ("timestamp", &self.started.trim_end_matches('Z')),
            ("tests", &(self.cases.len() + self.failures.len())),
            ("failures", &self.failed),
            ("errors", &self.failures.len()),
            ("skipped", &self.skipped),
        ];
        let failed = self.failures.iter();
        let failed = failed.map(|one| failed_case(&class, &one.workload, &one.reason));
        let said = Xml::element("system-out", &[], vec![Xml::text(&self.said)]);
        let content = self.cases.into_iter().chain(failed).chain([said]).collect();
        let content = lines("\n    ", content).chain(["\n  ".into()]);
        Xml::element("testsuite", &numbers, content.collect())
    }
}

fn failed_case(class: &str, name: &dyn Display, reason: &str) -> Xml {
    let error = Xml::element("error", &[("message", &reason)], Vec::new());
    Xml::element("testcase", &[("classname", &class), ("name", name)], vec![error])
}

fn case(s: &Summary, row: &Row) -> Xml {
    let found = format!(
        "{} {}, {}, {}",
        format::percent(row.effect_pct),
        format::interval(row.low_pct, row.high_pct),
        format::verdict(row.verdict, row.within_margin, s.margin_pct),
        format::plural(row.pairs, "pair")
    );
    let outcome = match (&s.gate, row.verdict) {
        (Some(gate), _) if is_above(s, row) => {
            let limit = format::margin(gate.fail_above_pct);
            let message = format!("costs more than {limit}: {found}");
            Some(Xml::element("failure", &[("message", &message)], Vec::new()))
        }
        (_, Verdict::Inconclusive) => {
            Some(Xml::element("skipped", &[("message", &found)], Vec::new()))
        }
        _ => None,
    };
    let said = Xml::element("system-out", &[], vec![Xml::text(&found)]);
    test(&row.treatment, &row.workload, outcome.into_iter().chain([said]).collect())
}

fn test(suite: &str, workload: &WorkName, content: Vec<Xml>) -> Xml {
    let class = format!("weigh.{suite}");
    Xml::element("testcase", &[("classname", &class), ("name", workload)], content)
}

fn is_above(s: &Summary, row: &Row) -> bool {
    s.gate.as_ref().is_some_and(|gate| gate.is_above(&row.workload, &row.treatment))
}

/// For text and attributes; XML has no form for control characters, nor for the last two of the basic plane.
fn escape(text: &str) -> String {
    let text = format::label(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&apos;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;
    use weigh_model::result::gate::{Above, Gate};

    #[test]
    fn what_fails_the_gate_fails_and_what_has_no_result_is_an_error() {
        let mut s = example::audit();
        let render = |s: &Summary| (FORMAT.render)(&s.clone().into()).unwrap();
        let text = render(&s);
        assert!(text.contains("tests=\"13\" failures=\"0\" errors=\"1\""), "{text}");
        assert!(text.contains("name=\"fsdisk\"><error message=\"It took longer"), "{text}");
        let row = &s.results[0];
        let above = Above { workload: row.workload.clone(), treatment: row.treatment.clone() };
        s.gate =
            Some(Gate { fail_above_pct: 3.0, passed: false, above: vec![above], open: Vec::new() });
        let text = render(&s);
        assert!(text.contains("failures=\"1\"") && text.contains("costs more than 3"), "{text}");
        assert!(text.contains("Gate failed: shown to cost more than 3"), "{text}");
        let skipped = s.results.iter().filter(|row| row.verdict == Verdict::Inconclusive).count();
        assert_eq!(text.matches("<skipped").count(), skipped);
    }

    /// Every quotation mark and angle bracket is markup of ours.
    #[test]
    fn no_name_becomes_markup() {
        let text = (FORMAT.render)(&example::hostile().into()).unwrap();
        assert!(!text.contains("<script") && !text.contains("<i>") && !text.contains('\u{1b}'));
        for line in text.lines() {
            assert_eq!(line.matches('<').count(), line.matches('>').count(), "{line}");
            assert_eq!(line.matches('"').count() % 2, 0, "{line}");
        }
        assert_eq!(escape("a\u{fffe}\u{ffff}b"), "a\u{fffd}\u{fffd}b");
        assert_eq!(escape("a<b>&\"c\"'\n"), "a&lt;b&gt;&amp;&quot;c&quot;&apos;\u{fffd}");
    }
}
