//! JUnit's XML, which CI systems show: a suite per treatment, a test per workload. A row that fails the
//! gate is a failure, a workload without a result an error, and an inconclusive row is skipped.

use std::fmt::Display;

use crate::{ReportFormat, by_treatment, sentence};
use paired::Verdict;
use weigh_model::format;
use weigh_model::result::summary::{Failure, Row, State, Summary};

pub static FORMAT: ReportFormat = ReportFormat {
    name: "junit",
    what: "the rows as tests in JUnit's XML, for CI: a row above --fail-above fails",
    compared: |s| Ok(render(s)),
    run: |report, _| {
        let id = &report.id;
        Err(format!("{id} is a run of this machine alone, in which no test can pass or fail"))
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

/// The whole document.
fn render(s: &Summary) -> String {
    let mut groups = by_treatment(s);
    for failure in &s.failures {
        if !groups.iter().any(|(label, _)| *label == failure.arm) {
            groups.push((&failure.arm, Vec::new()));
        }
    }
    let mut suites = Vec::new();
    for (treatment, rows) in groups {
        let failures: Vec<&Failure> = s.failures.iter().filter(|f| f.arm == treatment).collect();
        suites.push(suite(s, treatment, &rows, &failures));
    }
    if let (State::Failed, Some(reason)) = (s.state, &s.failure) {
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

fn suite(s: &Summary, treatment: &str, rows: &[&Row], failures: &[&Failure]) -> Xml {
    let is_failed = |row: &&&Row| is_above(s, row);
    let is_skipped = |row: &&&Row| !is_above(s, row) && row.verdict == Verdict::Inconclusive;
    let class = format!("weigh.{treatment}");
    let mut content: Vec<Xml> = rows.iter().map(|row| case(s, row)).collect();
    let failed = failures.iter();
    content.extend(failed.map(|failure| failed_case(&class, &failure.workload, &failure.reason)));
    content.push(Xml::element("system-out", &[], vec![Xml::text(&sentence::sentence(s))]));
    let numbers: [(_, &dyn Display); 6] = [
        ("name", &treatment),
        ("timestamp", &s.started.trim_end_matches('Z')),
        ("tests", &(rows.len() + failures.len())),
        ("failures", &rows.iter().filter(is_failed).count()),
        ("errors", &failures.len()),
        ("skipped", &rows.iter().filter(is_skipped).count()),
    ];
    let content = lines("\n    ", content).chain(["\n  ".into()]);
    Xml::element("testsuite", &numbers, content.collect())
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
    let class = format!("weigh.{}", row.treatment);
    let names: [(_, &dyn Display); 2] = [("classname", &class), ("name", &row.workload)];
    Xml::element("testcase", &names, outcome.into_iter().chain([said]).collect())
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
        let text = render(&example::hostile());
        assert!(!text.contains("<script") && !text.contains("<i>") && !text.contains('\u{1b}'));
        for line in text.lines() {
            assert_eq!(line.matches('<').count(), line.matches('>').count(), "{line}");
            assert_eq!(line.matches('"').count() % 2, 0, "{line}");
        }
        assert_eq!(escape("a\u{fffe}\u{ffff}b"), "a\u{fffd}\u{fffd}b");
        assert_eq!(escape("a<b>&\"c\"'\n"), "a&lt;b&gt;&amp;&quot;c&quot;&apos;\u{fffd}");
    }
}
