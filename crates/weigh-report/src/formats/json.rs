//! The documented JSON (`docs/json.md`): every report as it is, and what the rows of a [`Summary`] produced
//! together.

use serde::Serialize;

use crate::ReportFormat;
use weigh_model::result::cumulative::{self, Cumulative};
use weigh_model::result::report::Report;
use weigh_model::result::summary::Summary;

pub static FORMAT: ReportFormat = ReportFormat {
    name: "json",
    what: "the results as JSON (docs/json.md)",
    render: |report| match report {
        Report::Compared(s) => render(s),
        Report::Run(report) => document(&**report),
        Report::Rules(report) => document(&**report),
        Report::Budget(report) => document(&**report),
        Report::Profile(report) => document(&**report),
        Report::Atlas(report) => document(&**report),
        Report::Repeated(report) => document(&**report),
    },
    is_json: true,
};

#[derive(Serialize)]
struct SummaryDocument<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cumulative: Vec<Cumulative>,
}

fn render(s: &Summary) -> Result<String, String> {
    document(&SummaryDocument { summary: s, cumulative: cumulative::of(s) })
}

/// The whole document, indented, with a newline at its end.
///
/// JSON has no NaN and no infinity: where no finite number could be computed there is a `null`.
pub fn document(report: &impl Serialize) -> Result<String, String> {
    let text = serde_json::to_string_pretty(report);
    text.map(|text| text + "\n")
        .map_err(|error| format!("the JSON report could not be written: {error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use weigh_model::example;
    use weigh_model::result::curve::OnCurve;
    use weigh_model::result::gate::{Gate, NamedRow};
    use weigh_model::result::imported::{Better, Figure, File, Imported, ImportedLoad};
    use weigh_model::result::load::Crossover;
    use weigh_model::result::metrics::{Contrast, Counters};
    use weigh_model::result::work_name::WorkName;

    /// Every path in the document, with list positions left out.
    fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let path = format!("{at}.{key}");
                    found.insert(path.clone());
                    // What a machine knows of itself differs from one to the next.
                    if path != ".machine" {
                        paths(value, &path, found);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| paths(item, at, found)),
            _ => {}
        }
    }

    /// The experiment of the documentation: everything that can appear does.
    fn documented() -> Summary {
        let mut s = example::two_sets();
        s.results[0].workload = WorkName::of_copies("syscall", 2);
        s.results[0].on_curve =
            Some(OnCurve { series: "syscall".into(), x: 2.0, x_unit: "copies".into() });
        s.results[1].pairs_needed = Some(40);
        (s.results[1].pairs_needed_low, s.results[1].pairs_needed_high) = (Some(20), Some(110));
        s.results[1].evidence.amounts.set("notice", "two filters");
        let count = |baseline, treated| Contrast { baseline, treated, ..Contrast::default() };
        s.results[0].metrics.counters = Some(Counters {
            kernel_instructions_per_op: Some(count(1840.0, 10_310.0)),
            cycles_per_op: Some(count(5290.0, 35_830.0)),
        });
        s.sessions = 2;
        s.treat = Some("server".to_owned());
        s.client = Some("root@192.0.2.7".to_owned());
        s.baseline_facts = vec!["Nothing was done to it.".to_owned()];
        let above = NamedRow { workload: s.results[0].workload.clone(), treatment: "audit".into() };
        s.gate =
            Some(Gate { fail_above_pct: 3.0, passed: false, above: vec![above], open: Vec::new() });
        s.loads = example::load().loads;
        let load = &mut s.loads[0];
        for curve in [&mut load.baseline, &mut load.treated] {
            curve.points.truncate(1);
            curve.crossover = Some(Crossover { users: 16, above: Some(8) });
        }
        s.imported = Some(imported());
        s.failure = Some("A canary's record did not arrive.".to_owned());
        s
    }

    fn imported() -> Imported {
        let figure = Figure {
            test: "System Call Overhead".to_owned(),
            value: 868_972.0,
            unit: "ops/s".to_owned(),
            better: Better::More,
            copies: Some(2),
            users: Some(2),
            runs: vec![868_970.0, 868_974.0],
            baseline: Some(15_000.0),
            interval: Some([868_900.0, 869_000.0]),
        };
        let load =
            ImportedLoad { mix: "load:shared".to_owned(), points: Vec::new(), best_users: Some(4) };
        let file = File {
            file: "unixbench.txt".to_owned(),
            format: "UnixBench 6.0.0".to_owned(),
            arm: "none".to_owned(),
            set: 1,
            figures: vec![figure],
            loads: vec![load],
        };
        let cannot = vec!["No verdict: the runs were not paired.".to_owned()];
        Imported { files: vec![file], cannot, original: Some("m2abcd".to_owned()) }
    }

    #[test]
    fn the_documentation_shows_every_field() {
        let text = render(&documented()).expect("a summary is JSON");
        let document = include_str!("../../../../docs/json.md");
        let example = document.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
        let example = example.expect("docs/json.md has an example");
        let example: Value = serde_json::from_str(example).expect("the example is JSON");
        let (mut shown, mut real) = (BTreeSet::new(), BTreeSet::new());
        paths(&example, "", &mut shown);
        let value = serde_json::from_str(&text).expect("the report is JSON");
        paths(&value, "", &mut real);
        assert_eq!(shown, real, "docs/json.md needs this example:\n{text}");
        for path in &real {
            let field = path.rsplit('.').next().unwrap_or_default();
            if field != "notice" {
                assert!(document.contains(&format!("| `{field}`")), "`{field}` is not described");
            }
        }
    }

    #[test]
    fn a_report_can_be_read_back() {
        let s = example::audit();
        let text = render(&s).expect("a summary is JSON");
        let back: Summary = serde_json::from_str(&text).expect("and back");
        assert_eq!(back.results.len(), s.results.len());
        assert_eq!(back.results[0].evidence, s.results[0].evidence);
    }
}
