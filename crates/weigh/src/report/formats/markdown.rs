//! A report to paste into an issue or a commit message.

use std::fmt::Display;

use crate::format;
use crate::machine::described;
use crate::printable;
use crate::report::profiled;
use crate::report::readings::{self, MetricTable};
use crate::report::results::measured;
use crate::report::schemes;
use crate::report::table::{Align, Table};
use crate::report::{ReportFormat, run_page};
use crate::report::{
    bounds, evidence, factorial, facts, imported, latency, sentence, sets, times, versus,
};
use crate::result::profiled::Profiled;
use crate::result::run::RunReport;
use crate::result::summary::{Failure, Row, Summary};

pub static FORMAT: ReportFormat = ReportFormat {
    name: "markdown",
    what: "the report as Markdown, for an issue or a mail",
    compared: |s| Ok(render(s)),
    run: |report, _| Ok(run(report)),
    is_json: false,
};

/// The whole report in GitHub's Markdown.
pub fn render(s: &Summary) -> String {
    let s = &*versus::laid_out(s);
    let mut parts = vec![format!("**{}**", sentence::sentence(s))];
    let figures = s.imported.as_ref().filter(|imported| imported.is_figures());
    if let Some(imported) = figures {
        parts.push(imported::table(s, imported).to_markdown());
    } else if !s.results.is_empty() {
        parts.push(results(s).to_markdown());
    }
    if let Some(commands) = versus::table(s, usize::MAX) {
        let legend = versus::legend(s).unwrap_or_default();
        parts.push(format!("{} ({legend}):\n\n{}", versus::TITLE, commands.to_markdown()));
    }
    parts.extend(bounds::sentence(s));
    for MetricTable { title, legend, table } in
        readings::tables(s).into_iter().chain(schemes::table(s))
    {
        parts.push(format!("{title} ({legend}):\n\n{}", table.to_markdown()));
    }
    if let Some(latencies) = latency::table(s) {
        parts.push(format!(
            "Latency per operation ({}):\n\n{}",
            latency::LEGEND,
            latencies.to_markdown()
        ));
    }
    if let Some(times) = times::table(&s.times) {
        parts.push(format!("{} ({}):\n\n{}", times::TITLE, times::LEGEND, times.to_markdown()));
    }
    if let Some(factors) = factorial::table(s) {
        parts.push(format!(
            "{} ({}):\n\n{}",
            factorial::TITLE,
            factorial::LEGEND,
            factors.to_markdown()
        ));
    }
    if let Some(sets) = sets::sets_table(s) {
        parts.push(format!("Sets:\n\n{}", sets.to_markdown()));
    }
    if let Some(evidence) = evidence::table(s) {
        parts.push(format!("Evidence:\n\n{}", evidence.to_markdown()));
    }
    parts.extend(profiles(&s.profiles));
    parts.extend(remarks(s));
    parts.extend(facts::by_label(s).into_iter().map(|(label, facts)| {
        let facts: Vec<String> = facts.iter().map(|fact| format!("- {fact}")).collect();
        format!("{}:\n\n{}", code(&label), facts.join("\n"))
    }));
    if figures.is_none() {
        parts.push(format!("Machine: {}", described::line(&s.machine)));
    }
    parts.push(match figures {
        Some(_) => format!("Import {}. Again:", code(&s.id)),
        None => format!(
            "Experiment {}, started {}, {} intervals. Again:",
            code(&s.id),
            format::label(&s.started),
            format::confidence(s.alpha)
        ),
    });
    parts.push(fenced(&s.command));
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
    parts.join("\n\n") + "\n"
}

/// The report of a run.
fn run(report: &RunReport) -> String {
    let mut parts = vec![format!("**{}**", format::label(&run_page::title(report)))];
    parts.extend(run_page::sentences(report).iter().map(format::label));
    parts.push(run_page::results(report).to_markdown());
    parts.extend(
        run_page::copies(report).map(|copies| format!("Copies:\n\n{}", copies.to_markdown())),
    );
    parts.extend(profiles(&report.profiles));
    let failed = |failure: &Failure| {
        format::label(&format!("- {} gave no result: {}", failure.workload, failure.reason))
    };
    let warnings = report.warnings.iter().map(|warning| format::label(&format!("- {warning}")));
    let remarks: Vec<String> = report.failures.iter().map(failed).chain(warnings).collect();
    if !remarks.is_empty() {
        parts.push(remarks.join("\n"));
    }
    let (id, started) = (format::label(&report.id), format::label(&report.started));
    parts.push(format!("Experiment `{id}`, started {started}. Again:"));
    parts.push(fenced(&report.command));
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
    parts.join("\n\n") + "\n"
}

/// What a profiler told.
fn profiles(profiles: &[Profiled]) -> Vec<String> {
    let tables = profiled::tables(profiles).into_iter();
    let tables = tables.map(|(title, table)| format!("{title}:\n\n{}", table.to_markdown()));
    let printed = profiled::printouts(profiles).into_iter();
    let printed = printed.map(|one| format!("{}:\n\n{}", one.title, fenced(&one.lines.join("\n"))));
    tables.chain(printed).collect()
}

fn results(s: &Summary) -> Table {
    let several = s.results.iter().any(|row| row.treatment != s.results[0].treatment);
    let cells = |row: &Row| {
        let [effect, treated, factor, added] = measured(row);
        vec![
            format::label(&row.workload),
            if several { format::label(&row.treatment) } else { String::new() },
            format::rate(row.baseline, &row.unit),
            treated,
            format::label(&row.unit),
            effect,
            format::interval(row.low_pct, row.high_pct),
            factor,
            added,
            format::verdict(row.verdict, row.within_margin, s.margin_pct),
            format::integer(row.pairs as u64),
        ]
    };
    let [name, baseline, treated] = versus::titles(s);
    let columns = vec![
        (name, Align::Left),
        ("treatment", Align::Left),
        (baseline, Align::Right),
        (treated, Align::Right),
        ("unit", Align::Left),
        ("effect", Align::Right),
        ("interval", Align::Left),
        ("factor", Align::Right),
        ("added/op", Align::Right),
        ("verdict", Align::Left),
        ("pairs", Align::Right),
    ];
    Table::new(columns, s.results.iter().map(cells).collect())
}

/// Notes, failures and warnings, as lists.
fn remarks(s: &Summary) -> Vec<String> {
    let notes = s.results.iter().flat_map(|row| {
        let name = code(&row.workload);
        row.notes.iter().map(move |note| format!("{name}: {}", format::label(note)))
    });
    let failures = s.failures.iter().map(|failure| {
        let reason = format::label(&failure.reason);
        match failure.name() == failure.arm {
            true => format!("{}: {reason}", code(&failure.arm)),
            false => format!("{} under {}: {reason}", code(&failure.workload), code(&failure.arm)),
        }
    });
    let warnings = s.warnings.iter().map(format::label);
    let lists = [
        ("Notes", notes.collect::<Vec<_>>()),
        ("No result", failures.collect()),
        ("Warnings", warnings.collect()),
    ];
    let list = |(title, items): (&str, Vec<String>)| {
        let items: Vec<String> = items.iter().map(|item| format!("- {item}")).collect();
        format!("{title}:\n\n{}", items.join("\n"))
    };
    lists.into_iter().filter(|(_, items)| !items.is_empty()).map(list).collect()
}

fn code(text: &(impl Display + ?Sized)) -> String {
    format!("`{}`", format::label(text).replace('`', "'"))
}

/// A code block whose fence is longer than any run of backticks within it.
fn fenced(text: &str) -> String {
    let text = printable::text(text);
    let mut fence = "```".to_owned();
    while text.contains(fence.as_str()) {
        fence.push('`');
    }
    format!("{fence}sh\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn the_sentence_comes_first_and_the_command_last() {
        let text = render(&sample::audit());
        assert!(text.starts_with("**`audit` slows 9 of 12 workloads"), "{text}");
        assert!(text.ends_with("```sh\nweigh compare audit -w unixbench --seed 20261121\n```\n"));
        assert!(text.contains(
            "| syscall | 469.0k | 69.37k | ops/s | −85.2 % | [−85.6, −84.8] | ×6.76 | +12.3 µs | slower | 8 |"
        ));
        assert!(text.contains("- `fsdisk` under `audit`: It took longer"));
    }

    #[test]
    fn nothing_breaks_a_table_row() {
        let text = render(&sample::hostile());
        let rows = text.lines().filter(|line| line.starts_with("| a\\|b"));
        assert_eq!(rows.count(), 900, "each of 300 rows in three tables");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn a_fence_outlasts_its_content() {
        assert!(fenced("a ``` b").starts_with("````sh\n"));
    }
}
