//! A run as CSV and as Markdown.

use super::run_page;
use crate::format;
use crate::report::csv::{name, number};
use crate::report::markdown;
use crate::result::run::RunReport;
use crate::store::record::Stored;

const HEADER: &str = "experiment,workload,unit,sample,started_s,operations,elapsed_s,rate\n";

/// Every sample, one a line, in the order measured within each workload. Samples count from 1.
pub fn csv(stored: &Stored) -> String {
    let mut text = HEADER.to_owned();
    for (&(work, _), of_work) in &stored.samples {
        let work = &stored.header.works[work];
        let unit = of_work.baseline.as_ref().and_then(|totals| totals.unit.as_ref());
        for (index, point) in of_work.points.iter().enumerate() {
            let cells = [
                name(&stored.id),
                name(&work.name),
                name(unit.unwrap_or(&work.unit)),
                (index + 1).to_string(),
                number(point.started_s),
                number(point.operations),
                number(point.elapsed_s),
                number(point.rate),
            ];
            text += &cells.join(",");
            text.push('\n');
        }
    }
    text
}

/// The report in GitHub's Markdown.
pub fn markdown(report: &RunReport) -> String {
    let mut parts = vec![format!("**{}**", format::label(&run_page::title(report)))];
    parts.extend(run_page::sentences(report).iter().map(|sentence| format::label(sentence)));
    parts.push(run_page::results(report).to_markdown());
    parts.extend(
        run_page::copies(report).map(|copies| format!("Copies:\n\n{}", copies.to_markdown())),
    );
    let failed = |failure: &crate::result::summary::Failure| {
        format::label(&format!("- {} gave no result: {}", failure.workload, failure.reason))
    };
    let warnings = report.warnings.iter().map(|warning| format::label(&format!("- {warning}")));
    let remarks: Vec<String> = report.failures.iter().map(failed).chain(warnings).collect();
    if !remarks.is_empty() {
        parts.push(remarks.join("\n"));
    }
    let (id, started) = (format::label(&report.id), format::label(&report.started));
    parts.push(format!("Experiment `{id}`, started {started}. Again:"));
    parts.push(markdown::fenced(&report.command));
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
    parts.join("\n\n") + "\n"
}
