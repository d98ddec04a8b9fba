//! The report of `weigh run` as one HTML file: this machine alone, with a chart of every curve.

use minijinja::{Error, Value, context};

use super::{chart, fill, machine_facts, parts, printouts, sequence, table, titled};
use crate::profiled::ProfilerText;
use crate::table::Table;
use weigh_model::facts::Facts;
use weigh_model::format;
use weigh_model::result::curve::Chart;
use weigh_model::result::net_cells::Abnormal;
use weigh_model::result::summary::Failure;
use weigh_model::result::warning::Warning;

pub struct RunPage<'a> {
    pub id: &'a str,
    pub started: &'a str,
    pub title: String,
    /// Sentences below the title.
    pub sentences: Vec<String>,
    pub charts: Vec<Chart>,
    /// Charts over the same places, which are one picture each.
    pub stacks: Vec<Vec<Chart>>,
    /// True if the results are the aim of the run, and the charts are not.
    pub is_scored: bool,
    pub results: Table,
    pub copies: Option<Table>,
    /// Further tables, each with its title.
    pub tables: Vec<(String, Table)>,
    /// Behaviour of TCP in cells that did not run as usual.
    pub abnormal: &'a [Abnormal],
    pub printouts: Vec<ProfilerText>,
    pub failures: &'a [Failure],
    pub warnings: &'a [Warning],
    pub facts: &'a [String],
    pub machine: &'a Facts,
    pub command: &'a str,
}

pub fn render(page: &RunPage) -> Result<String, Error> {
    let failures = page.failures.iter().map(|failure| {
        context! {
            workload => format::label(&failure.workload), reason => format::label(&failure.reason),
        }
    });
    let sentences = page.sentences.iter().map(|sentence| parts(&format::label(sentence)));
    let charts = page.charts.iter().flat_map(|chart| chart::figures(chart, None));
    let charts = charts.chain(page.stacks.iter().filter_map(|stack| chart::stacked(stack)));
    fill(
        "run.html",
        context! {
            id => format::label(page.id),
            started => format::label(page.started),
            plain => format::label(&page.title),
            sentences => sentences.collect::<Vec<_>>(),
            scaling => page.charts.iter().any(Chart::is_scaling),
            charts => charts.collect::<Vec<Value>>(),
            stacked => !page.stacks.is_empty(),
            scored => page.is_scored,
            results => (!page.results.rows.is_empty()).then(|| table(&page.results)),
            copies => page.copies.as_ref().map(table),
            tables => titled(&page.tables),
            sequences => sequence::figures(page.abnormal),
            printouts => printouts(&page.printouts),
            failures => failures.collect::<Vec<Value>>(),
            warnings => page.warnings.iter().map(|w| parts(&format::label(w))).collect::<Vec<_>>(),
            facts => page.facts.iter().map(|fact| parts(&format::label(fact))).collect::<Vec<_>>(),
            machine => machine_facts(page.machine),
            command => format::label(page.command),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::result::curve::{Curve, CurvePoint, Quantity};
    use weigh_model::result::work_name::COPIES;

    fn page(numbers: [f64; 3], name: &str) -> String {
        let points = numbers.into_iter().enumerate().map(|(i, y)| CurvePoint {
            workload: name.into(),
            x: 1.0 + i as f64,
            y,
            low: Some(y * 0.9),
            high: None,
        });
        let curve = Curve { series: name.into(), points: points.collect() };
        let quantity = Quantity::Rate("ops/s".into());
        let (curves, marks) = (vec![curve], Vec::new());
        let chart = Chart { quantity, x_unit: COPIES.into(), curves, marks };
        let (machine, empty) = (Facts::default(), Table { columns: Vec::new(), rows: Vec::new() });
        render(&RunPage {
            id: "k3f9qx",
            started: "2026-11-22",
            title: name.into(),
            sentences: vec![name.into()],
            charts: vec![chart],
            stacks: Vec::new(),
            is_scored: false,
            results: empty,
            copies: None,
            tables: Vec::new(),
            abnormal: &[],
            printouts: Vec::new(),
            failures: &[],
            warnings: &[],
            facts: &[],
            machine: &machine,
            command: name,
        })
        .expect("the template renders")
    }

    #[test]
    fn a_curve_has_a_point_per_row_and_a_name_on_each_axis() {
        let text = page([10.0, 19.0, 20.0], "getppid");
        assert_eq!(text.matches("class=\"estimate\"").count(), 3);
        assert_eq!(text.matches("class=\"joined\"").count(), 2);
        for part in [
            "rate of all copies together, ops&#x2f;s",
            ">copies</text>",
            ">perfect</text>",
            "<desc>",
        ] {
            assert!(text.contains(part), "{part} is missing");
        }
    }

    #[test]
    fn no_text_becomes_markup_and_no_number_is_none() {
        for number in [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e300] {
            let text = page([number, 1.0, number], "<script>\u{1b}");
            for bad in ["<script", "NaN", "inf\"", "inf%", "\u{1b}"] {
                assert!(!text.contains(bad), "{bad:?} is on the page");
            }
        }
    }
}
