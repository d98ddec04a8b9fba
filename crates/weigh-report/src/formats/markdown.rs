//! A report to paste into an issue or a commit message.

use crate::markdown_text::Markdown;
use crate::outline::{Outline, OutlineTable};
use crate::profiled;
use crate::readings::{self, MetricTable};
use crate::results::{interval, measured, verdict};
use crate::table::{Align, Table};
use crate::{
    ReportFormat, atlas, budget, by_note, command_times, degrees, has_several_treatments, profile,
    repeated, rules, run_page,
};
use crate::{
    bounds, doses, evidence, factorial, facts, imported, latency, sentence, sets, times, versus,
};
use weigh_model::described;
use weigh_model::facts::Facts;
use weigh_model::format;
use weigh_model::result::profiled::Profiled;
use weigh_model::result::report::Report;
use weigh_model::result::run::RunReport;
use weigh_model::result::summary::{Failure, Row, Summary};

pub static FORMAT: ReportFormat = ReportFormat {
    name: "markdown",
    what: "the report as Markdown",
    render: |report| match report {
        Report::Compared(s) => Ok(compared(s)),
        Report::Run(report) => Ok(run(report)),
        Report::Rules(rules) => Ok(outlined(&rules::outline(rules), report)),
        Report::Budget(budget) => Ok(outlined(&budget::outline(budget), report)),
        Report::Profile(profile) => Ok(outlined(&profile::outline(profile), report)),
        Report::Atlas(atlas) => Ok(outlined(&atlas::outline(atlas), report)),
        Report::Repeated(runs) => Ok(outlined(&repeated::outline(runs), report)),
    },
    is_json: false,
};

fn compared(s: &Summary) -> String {
    let s = &*versus::laid_out(s);
    let mut parts = vec![bold(&sentence::sentence(s))];
    let figures = s.imported.as_ref().filter(|imported| imported.is_figures());
    if let Some((title, times)) = command_times::table(s) {
        parts.push(explained(&title, &command_times::legend(s), &times));
    }
    if let Some(imported) = figures {
        parts.push(imported::table(s, imported).to_markdown());
    } else if !s.results.is_empty() {
        parts.push(results(s).to_markdown());
    }
    parts.extend(tables(s));
    parts.extend(profiles(&s.profiles));
    parts.extend(remarks(s));
    parts.extend(
        facts::by_label(s)
            .into_iter()
            .map(|(label, facts)| list(Markdown::code(&label), facts.iter().map(Markdown::text))),
    );
    if figures.is_none() {
        parts.push(machine(&s.machine));
    }
    parts.push(match figures {
        Some(_) => Markdown::of(["Import ".into(), Markdown::code(&s.id), ". Repeat with:".into()]),
        None => Markdown::of([
            "Experiment ".into(),
            Markdown::code(&s.id),
            ", started ".into(),
            Markdown::text(&s.started),
            intervals(s),
            ". Repeat with:".into(),
        ]),
    });
    parts.push(Markdown::fenced(&s.command));
    Markdown::document(parts)
}

/// Names the intervals, if something was compared.
fn intervals(s: &Summary) -> Markdown {
    match s.is_of_one_command() {
        true => Markdown::default(),
        false => Markdown::of([
            ", ".into(),
            Markdown::text(&format::confidence(s.alpha)),
            " intervals".into(),
        ]),
    }
}

/// All but that of the results.
fn tables(s: &Summary) -> Vec<Markdown> {
    let mut parts = Vec::new();
    if let Some(commands) = versus::table(s) {
        let legend = versus::legend(s).unwrap_or_default();
        parts.push(explained(versus::TITLE, &legend, &commands));
    }
    parts.extend(bounds::sentence(s).map(|sentence| Markdown::text(&sentence)));
    for MetricTable { title, legend, table } in readings::tables(s) {
        parts.push(explained(&title, legend, &table));
    }
    if let Some(latencies) = latency::table(s) {
        parts.push(explained("Latency per operation", latency::LEGEND, &latencies));
    }
    if let Some(times) = times::table(&s.times) {
        parts.push(explained(times::TITLE, times::LEGEND, &times));
    }
    if let Some(factors) = factorial::table(s) {
        parts.push(explained(factorial::TITLE, factorial::LEGEND, &factors));
    }
    if let Some(doses) = doses::table_of(s) {
        parts.push(explained(doses::TITLE, doses::LEGEND, &doses));
    }
    parts.extend(sets::sets_table(s).map(|sets| titled("Each set separately", &sets)));
    if let Some(degrees) = degrees::table(s) {
        parts.push(explained(degrees::TITLE, degrees::LEGEND, &degrees));
    }
    parts.extend(
        evidence::table(s).map(|evidence| titled("Side effects of the treatment", &evidence)),
    );
    parts
}

fn run(report: &RunReport) -> String {
    let mut parts = vec![bold(&run_page::title(report))];
    parts.extend(run_page::sentences(report).iter().map(Markdown::text));
    if !report.results.is_empty() {
        parts.push(run_page::results(report).to_markdown());
    }
    parts.extend(run_page::copies(report).map(|copies| titled("Single copies", &copies)));
    parts.extend(profiles(&report.profiles));
    let failed = |failure: &Failure| {
        Markdown::text(&format!("{} gave no result: {}", failure.workload, failure.reason))
    };
    let warnings = report.warnings.iter().map(Markdown::text);
    let remarks: Vec<Markdown> = report.failures.iter().map(failed).chain(warnings).collect();
    parts.extend((!remarks.is_empty()).then(|| items(remarks)));
    parts.push(machine(&report.machine));
    parts.push(Markdown::of([
        "Experiment ".into(),
        Markdown::code(&report.id),
        ", started ".into(),
        Markdown::text(&report.started),
        ". Repeat with:".into(),
    ]));
    parts.push(Markdown::fenced(&report.command));
    Markdown::document(parts)
}

/// A report without a layout of its own.
fn outlined(outline: &Outline, report: &Report) -> String {
    let mut sentences = outline.sentences.iter();
    let mut parts: Vec<Markdown> = sentences.next().map(|first| bold(first)).into_iter().collect();
    parts.extend(sentences.map(Markdown::text));
    for OutlineTable { title, table, legend, notes } in &outline.tables {
        parts.push(titled(title, table));
        parts.extend(
            [legend].into_iter().chain(notes).filter(|text| !text.is_empty()).map(Markdown::text),
        );
    }
    let lists = outline.lists.iter().filter(|(_, items)| !items.is_empty());
    parts.extend(
        lists.map(|(title, items)| list((*title).into(), items.iter().map(Markdown::text))),
    );
    let header = report.header();
    parts.push(machine(header.machine));
    let id = Markdown::code(header.id);
    parts.push(Markdown::of(["Experiment ".into(), id, ". Repeat with:".into()]));
    parts.push(Markdown::fenced(header.command));
    Markdown::document(parts)
}

fn machine(facts: &Facts) -> Markdown {
    Markdown::of(["Machine: ".into(), Markdown::text(&described::line(facts))])
}

fn profiles(profiles: &[Profiled]) -> Vec<Markdown> {
    let tables = profiled::tables(profiles).into_iter();
    let tables = tables.map(|(title, table)| titled(&title, &table));
    let printed = profiled::printouts(profiles).into_iter().map(|one| {
        let lines = Markdown::fenced(&one.lines.join("\n"));
        Markdown::joined([Markdown::text(&one.title), lines], ":\n\n")
    });
    tables.chain(printed).collect()
}

fn bold(text: &str) -> Markdown {
    Markdown::of(["**".into(), Markdown::text(text), "**".into()])
}

fn titled(title: &str, table: &Table) -> Markdown {
    Markdown::joined([Markdown::text(title), table.to_markdown()], ":\n\n")
}

fn explained(title: &str, legend: &str, table: &Table) -> Markdown {
    let legend = Markdown::of([" (".into(), Markdown::text(legend), ")".into()]);
    let title = Markdown::of([Markdown::text(title), legend]);
    Markdown::joined([title, table.to_markdown()], ":\n\n")
}

fn items(items: impl IntoIterator<Item = Markdown>) -> Markdown {
    let items = items.into_iter().map(|item| Markdown::of(["- ".into(), item]));
    Markdown::joined(items, "\n")
}

fn list(title: Markdown, all: impl IntoIterator<Item = Markdown>) -> Markdown {
    Markdown::joined([title, items(all)], ":\n\n")
}

fn results(s: &Summary) -> Table {
    let several = has_several_treatments(s);
    let cells = |row: &Row| {
        let [effect, treated, factor, added] = measured(row);
        vec![
            format::label(&row.workload),
            if several { format::label(&row.treatment) } else { String::new() },
            format::rate(row.baseline, &row.unit),
            treated,
            format::label(&row.unit),
            effect,
            interval(row),
            factor,
            added,
            verdict(row, s.margin_pct),
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

fn remarks(s: &Summary) -> Vec<Markdown> {
    let several = has_several_treatments(s);
    let name = |row: &Row| {
        let names = std::iter::once(Markdown::code(&row.workload));
        let treatment = several.then(|| Markdown::code(&row.treatment));
        Markdown::joined(names.chain(treatment), " under ")
    };
    let notes = by_note(s).into_iter().map(|(note, rows)| {
        let names = Markdown::joined(rows.into_iter().map(name), ", ");
        Markdown::joined([names, Markdown::text(note)], ": ")
    });
    let failures = s.failures.iter().map(|failure| {
        let names = match failure.name() == failure.arm {
            true => vec![Markdown::code(&failure.arm)],
            false => vec![Markdown::code(&failure.workload), Markdown::code(&failure.arm)],
        };
        let names = Markdown::joined(names, " under ");
        Markdown::joined([names, Markdown::text(&failure.reason)], ": ")
    });
    let warnings = s.warnings.iter().map(Markdown::text);
    let lists: [(&'static str, Vec<Markdown>); 3] = [
        ("Notes", notes.collect()),
        ("No result", failures.collect()),
        ("Warnings", warnings.collect()),
    ];
    let lists = lists.into_iter().filter(|(_, items)| !items.is_empty());
    lists.map(|(title, items)| list(title.into(), items)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;
    use weigh_model::result::warning::Warning;

    #[test]
    fn the_sentence_comes_first_and_the_command_last() {
        let text = compared(&example::audit());
        assert!(text.starts_with("**`audit` slows 9 of 12 workloads"), "{text}");
        assert!(text.ends_with("```sh\nweigh compare audit -w unixbench --seed 20261121\n```\n"));
        assert!(text.contains(
            "| syscall | 469.0k | 69.37k | ops/s | −85.2 % | [−85.6, −84.8] | ×6.76 | +12.3 µs | slower | 8 |"
        ));
        assert!(text.contains("- `fsdisk` under `audit`: It took longer"));
    }

    #[test]
    fn a_note_about_several_rows_is_one_item() {
        let mut s = example::audit();
        s.results.iter_mut().for_each(|row| row.notes = vec!["like the others".into()]);
        s.results.truncate(3);
        let text = compared(&s);
        let names = s.results.iter().map(|row| format!("`{}`", row.workload));
        let said = format!("- {}: like the others", names.collect::<Vec<_>>().join(", "));
        assert!(text.contains(&said) && text.matches("like the others").count() == 1, "{text}");
    }

    #[test]
    fn nothing_breaks_a_table_row() {
        let text = compared(&example::hostile());
        let rows = text.lines().filter(|line| line.starts_with("| a\\|b"));
        assert_eq!(rows.count(), 900, "each of 300 rows in three tables");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn foreign_text_is_no_markup_wherever_it_stands() {
        let mut s = example::hostile();
        let plant = "<img src=x> [x](javascript:alert(1)) ![x](http://evil/x.png) @people ` **b**";
        s.warnings.push(Warning::Sentence(plant.into()));
        s.failures.iter_mut().for_each(|failure| failure.reason = plant.into());
        s.results[0].notes.push(plant.into());
        s.baseline_facts.push(plant.into());
        s.machine.hostname = plant.into();
        s.started = plant.into();
        let text = compared(&s);
        let outside = |text: &str, fence: &str| text.split(fence).step_by(2).collect::<String>();
        // A backslash makes what follows it text, too.
        let unescaped = |text: &str| {
            let parts = text.split('\\').enumerate();
            parts.map(|(number, part)| &part[usize::from(number > 0)..]).collect::<String>()
        };
        let told = outside(&unescaped(&outside(&text, "```")), "`");
        assert!(told.matches("x.png").count() >= 5, "{told}");
        for markup in ["<", "](", "![", "http://", " @people", "**b"] {
            assert!(!told.contains(markup), "{markup}: {told}");
        }
    }
}
