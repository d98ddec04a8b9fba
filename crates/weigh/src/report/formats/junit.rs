//! JUnit's XML, which CI systems show: a suite per treatment, a test per workload. A row that fails the
//! gate is a failure, a workload without a result an error, and an inconclusive row is skipped.

use std::fmt::{Display, Write as _};

use crate::format;
use crate::report::{ReportFormat, by_treatment, sentence};
use crate::result::summary::{Failure, Row, State, Summary};
use paired::Verdict;

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

/// The whole document.
fn render(s: &Summary) -> String {
    let mut text =
        String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"weigh\">\n");
    let mut groups = by_treatment(s);
    for failure in &s.failures {
        if !groups.iter().any(|(label, _)| *label == failure.arm) {
            groups.push((&failure.arm, Vec::new()));
        }
    }
    for (treatment, rows) in groups {
        let failures: Vec<&Failure> = s.failures.iter().filter(|f| f.arm == treatment).collect();
        suite(&mut text, s, treatment, &rows, &failures);
    }
    if let (State::Failed, Some(reason)) = (s.state, &s.failure) {
        let reason = escape(reason);
        let _ = writeln!(
            text,
            "  <testsuite name=\"experiment\" tests=\"1\" errors=\"1\">\n    \
             <testcase classname=\"weigh\" name=\"experiment\"><error message=\"{reason}\"/></testcase>\n  \
             </testsuite>"
        );
    }
    text + "</testsuites>\n"
}

fn suite(text: &mut String, s: &Summary, treatment: &str, rows: &[&Row], failures: &[&Failure]) {
    let is_failed = |row: &&&Row| is_above(s, row);
    let is_skipped = |row: &&&Row| !is_above(s, row) && row.verdict == Verdict::Inconclusive;
    let _ = writeln!(
        text,
        "  <testsuite name=\"{}\" timestamp=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" \
         skipped=\"{}\">",
        escape(treatment),
        escape(s.started.trim_end_matches('Z')),
        rows.len() + failures.len(),
        rows.iter().filter(is_failed).count(),
        failures.len(),
        rows.iter().filter(is_skipped).count(),
    );
    for row in rows {
        case(text, s, row);
    }
    let class = escape(&format!("weigh.{treatment}"));
    for failure in failures {
        let (name, reason) = (escape(&failure.workload), escape(&failure.reason));
        let _ = writeln!(
            text,
            "    <testcase classname=\"{class}\" name=\"{name}\"><error message=\"{reason}\"/></testcase>"
        );
    }
    let said = escape(&sentence::sentence(s));
    let _ = writeln!(text, "    <system-out>{said}</system-out>\n  </testsuite>");
}

fn case(text: &mut String, s: &Summary, row: &Row) {
    let found = format!(
        "{} {}, {}, {}",
        format::percent(row.effect_pct),
        format::interval(row.low_pct, row.high_pct),
        format::verdict(row.verdict, row.within_margin, s.margin_pct),
        format::plural(row.pairs, "pair")
    );
    let found = escape(&found);
    let outcome = match (&s.gate, row.verdict) {
        (Some(gate), _) if is_above(s, row) => {
            let limit = escape(&format::margin(gate.fail_above_pct));
            format!("<failure message=\"costs more than {limit}: {found}\"/>")
        }
        (_, Verdict::Inconclusive) => format!("<skipped message=\"{found}\"/>"),
        _ => String::new(),
    };
    let _ = writeln!(
        text,
        "    <testcase classname=\"{}\" name=\"{}\">{outcome}<system-out>{found}</system-out></testcase>",
        escape(&format!("weigh.{}", row.treatment)),
        escape(&row.workload),
    );
}

fn is_above(s: &Summary, row: &Row) -> bool {
    s.gate.as_ref().is_some_and(|gate| gate.is_above(&row.workload, &row.treatment))
}

/// For text and attributes; XML has no form for control characters.
fn escape(text: &(impl Display + ?Sized)) -> String {
    let text = format::label(text).replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&apos;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use crate::result::gate::{Above, Gate};

    #[test]
    fn what_fails_the_gate_fails_and_what_has_no_result_is_an_error() {
        let mut s = sample::audit();
        let text = render(&s);
        assert!(text.contains("tests=\"13\" failures=\"0\" errors=\"1\""), "{text}");
        assert!(text.contains("name=\"fsdisk\"><error message=\"It took longer"), "{text}");
        let row = &s.results[0];
        let above = Above { workload: row.workload.clone(), treatment: row.treatment.clone() };
        s.gate = Some(Gate { fail_above_pct: 3.0, passed: false, above: vec![above] });
        let text = render(&s);
        assert!(text.contains("failures=\"1\"") && text.contains("costs more than 3"), "{text}");
        assert!(text.contains("Gate failed: shown to cost more than 3"), "{text}");
        let skipped = s.results.iter().filter(|row| row.verdict == Verdict::Inconclusive).count();
        assert_eq!(text.matches("<skipped").count(), skipped);
    }

    /// Every quotation mark and angle bracket is markup of ours.
    #[test]
    fn no_name_becomes_markup() {
        let text = render(&sample::hostile());
        assert!(!text.contains("<script") && !text.contains("<i>") && !text.contains('\u{1b}'));
        for line in text.lines() {
            assert_eq!(line.matches('<').count(), line.matches('>').count(), "{line}");
            assert_eq!(line.matches('"').count() % 2, 0, "{line}");
        }
        assert_eq!(escape("a<b>&\"c\"'\n"), "a&lt;b&gt;&amp;&quot;c&quot;&apos;\u{fffd}");
    }
}
