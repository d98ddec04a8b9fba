//! The report on a terminal: the sentence, one table with the intervals drawn, then the rest.

use super::format;
use super::page::Page;
use super::paint::{FAINT, paint};
use super::results::Results;
pub use super::sets::sets_table;
use super::summary::Summary;
use super::text::wrap;
use super::{bounds, evidence, facts, imported, latency, machine, sentence};

/// The whole report in lines of at most `width` characters.
pub fn render(s: &Summary, width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    let width = page.width;
    page.say(&sentence::sentence(s));
    let figures = s.imported.as_ref().filter(|imported| imported.is_figures());
    if let Some(imported) = figures {
        page.table("What was read", &imported::table(s, imported));
    } else if !s.results.is_empty() {
        page.lines.push(String::new());
        page.lines.extend(Results::new(s, width).lines(colour));
        if let Some(bounds) = bounds::sentence(s) {
            page.lines.extend(wrap(&bounds, width, 2));
        }
    }
    if let Some(latencies) = latency::table(s) {
        page.table("Latency per operation", &latencies);
        page.lines.extend(wrap(latency::LEGEND, width, 2));
    }
    if let Some(sets) = sets_table(s) {
        page.table("Each set by itself", &sets);
    }
    if let Some(evidence) = evidence::table(s) {
        page.table("What it produced", &evidence);
    }
    let notes = s
        .results
        .iter()
        .flat_map(|row| row.notes.iter().map(|note| format!("{}: {note}", row.workload)));
    page.list("Notes", notes.collect());
    let failures = s.failures.iter();
    let failures = failures.map(|f| format!("{} under {}: {}", f.workload, f.arm, f.reason));
    page.list("No result", failures.collect());
    page.list("Warnings", s.warnings.clone());
    context(&mut page, s);
    page.lines.join("\n") + "\n"
}

/// What was changed, on which machine, and how to do it again.
fn context(page: &mut Page, s: &Summary) {
    let mut lines = Vec::new();
    for (label, facts) in facts::by_label(s) {
        lines.push(format!("{label}:"));
        for fact in facts {
            lines.extend(wrap(&format!("- {fact}"), page.width, 2));
        }
    }
    if let Some(state) = &s.baseline_state {
        let baseline = format!("baseline: {}, {state}", s.baseline);
        lines.extend(wrap(&format::label(&baseline), page.width, 2));
    }
    let is_figures = s.imported.as_ref().is_some_and(|imported| imported.is_figures());
    if is_figures {
        let baseline = format!("import {}, baseline {}", s.id, s.baseline);
        lines.extend(wrap(&format::label(&baseline), page.width, 2));
    } else {
        lines.extend(design(s, page.width));
    }
    let machine = machine::line(&s.machine);
    if !machine.is_empty() {
        lines.push(format::shorten(&format!("machine: {machine}"), page.width));
    }
    page.lines.push(String::new());
    page.lines.extend(lines.iter().map(|line| paint(line, FAINT, page.colour)));
    // Not wrapped: a command is to be copied.
    page.lines.push(format!("again: {}", format::label(&s.command)));
}

fn design(s: &Summary, width: usize) -> Vec<String> {
    let design = format!(
        "experiment {}: {} in random order, {} intervals, margin {}, seed {}",
        s.id,
        format::plural(s.results.iter().map(|row| row.pairs).sum(), "pair"),
        format::confidence(s.alpha),
        format::margin(s.margin_pct),
        s.seed
    );
    wrap(&format::label(&design), width, 2)
}

#[cfg(test)]
mod tests {
    use super::super::page::NARROWEST;
    use super::super::sample;
    use super::super::summary::State;
    use super::*;

    /// Lines that are wider than asked for, but for the command to copy.
    fn too_wide(text: &str, width: usize) -> Vec<&str> {
        text.lines()
            .filter(|line| !line.starts_with("again: ") && line.chars().count() > width)
            .collect()
    }

    #[test]
    fn it_is_the_report_of_the_fixture() {
        let text = render(&sample::audit(), 100, false);
        let expected = include_str!("../../tests/fixtures/report/terminal-100.txt");
        assert_eq!(text, expected, "now it is:\n{text}");
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        for s in [sample::audit(), sample::two_sets(), sample::control(), sample::hostile()] {
            for width in [0, 40, 60, 80, 100, 120, 200] {
                let text = render(&s, width, false);
                let wide = too_wide(&text, width.max(NARROWEST));
                assert!(wide.is_empty(), "{width}: {wide:#?}");
            }
        }
    }

    #[test]
    fn only_colour_makes_escapes() {
        assert!(!render(&sample::hostile(), 100, false).contains('\u{1b}'));
        let coloured = render(&sample::audit(), 100, true);
        let plain: Vec<&str> = coloured.split('\u{1b}').collect();
        assert!(plain.len() > 20);
    }

    #[test]
    fn an_experiment_without_results_is_still_a_report() {
        let mut s = sample::audit();
        s.results.clear();
        s.treatments.clear();
        s.state = State::Interrupted;
        let text = render(&s, 80, false);
        assert!(text.starts_with("Interrupted after 2 min 23 s of 5 min 00 s;"), "{text}");
        assert!(text.contains("Nothing was measured, so there is no verdict."));
    }
}
