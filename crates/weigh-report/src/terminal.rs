//! The report on a terminal: the sentence, one table with the intervals drawn, then the rest.
//!
//! [`show`] is what a person sees of any report; of a comparison as much as 24 lines bear, or with `-v`
//! everything, and the sentence again at the end, where a terminal stops. [`render`] is everything once, for
//! a file.

use super::command_times;
use super::page::Page;
use super::profiled::{self, MOST_PRINTED, ProfilerText};
use super::readings::{self, MetricTable};
use super::results::{self, Results};
use super::screen::first_sentence;
pub use super::screen::{RULES_SHOWN, Room, Screen};
pub use super::sets::sets_table;
use super::text::wrap;
use super::{
    atlas, bounds, budget, degrees, doses, equivalence, evidence, factorial, facts, failed,
    imported, latency, load_chart, profile, repeated, rules, run_text, sentence, times, versus,
};
use weigh_host::machine::check;
use weigh_model::format;
use weigh_model::result::report::Report;
use weigh_model::result::summary::{Failure, State, Summary};
use weigh_model::result::warning::Warning;

/// So many notes, and so many warnings, have a line each on a screen.
const MOST_REMARKS: usize = 3;
/// More lines of times are too many for a small screen.
const MOST_TIMES: usize = 8;
/// More lines of degrees, too.
const MOST_DEGREES: usize = 8;

/// The report for a person at a terminal.
pub fn show(report: &Report, on: &Screen) -> String {
    match report {
        Report::Compared(s) => screen(s, on),
        Report::Run(report) => run_text::render(report, on),
        Report::Rules(report) => {
            let rows = if on.is_verbose { usize::MAX } else { on.rules.unwrap_or(RULES_SHOWN) };
            with_html(rules::terminal::show(report, rows, on.room, on.colour), on.html)
        }
        Report::Budget(report) => with_html(budget::render(report, on.room, on.colour), on.html),
        Report::Atlas(report) => with_html(atlas::render(report, on.room, on.colour), on.html),
        Report::Repeated(runs) => with_html(repeated::render(runs, on.room, on.colour), on.html),
        Report::Profile(report) => {
            let text = profile::text(report, on.room, on.colour);
            format!("{text}\nagain: {}\n", format::label(&report.again))
        }
    }
}

fn with_html(text: String, html: Option<&str>) -> String {
    let line = html.map(|path| format!("HTML:  {}\n", format::label(path)));
    text + &line.unwrap_or_default()
}

pub fn render(s: &Summary, room: Room, colour: bool) -> String {
    let s = &*versus::laid_out(s);
    let mut page = Page::new(room, colour);
    whole(&mut page, s);
    page.lines.join("\n") + "\n"
}

/// A comparison for a person. A terminal stops at the end, so it has the sentence there too; a file has it
/// once.
pub fn screen(s: &Summary, screen: &Screen) -> String {
    let s = &*versus::laid_out(s);
    let mut page = Page::new(screen.room, screen.colour);
    if screen.is_verbose {
        whole(&mut page, s);
    } else {
        brief(&mut page, s);
    }
    // Not wrapped: paths and commands are to be copied.
    page.lines.extend(screen.html.map(|path| format!("HTML:  {}", format::label(path))));
    if !screen.is_verbose {
        page.lines.push(again(s));
        // Without a sample it is not stored, and there is no more to show.
        page.lines.extend((!s.id.is_empty()).then(|| {
            format!(
                "more:  weigh show -v {}   (every table, all warnings, the machine)",
                format::label(&s.id)
            )
        }));
    }
    if !screen.room.is_file() && (s.state != State::Failed || !s.results.is_empty()) {
        page.lines.push(String::new());
        page.say(&sentence::sentence(s));
    }
    page.lines.join("\n") + "\n"
}

/// The sentence, and the table: of commands the one of their times, and that of their rates only in the whole
/// report.
fn top(page: &mut Page, s: &Summary, is_whole: bool) {
    page.say(&sentence::sentence(s));
    let figures = s.imported.as_ref().filter(|imported| imported.is_figures());
    let times = command_times::table(s);
    if let Some(imported) = figures {
        page.table("Imported figures", &imported::table(s, imported));
    } else if let Some((title, times)) = &times {
        page.table(title, times);
        page.legend(&command_times::legend(s));
    }
    if figures.is_none() && !s.results.is_empty() && (is_whole || times.is_none()) {
        page.lines.push(String::new());
        page.lines.extend(Results::new(s, page.room.cut).lines(page.colour));
        results::about_preliminary(s).into_iter().for_each(|text| page.legend(text));
    }
    page.lines.extend(equivalence::note(s).iter().flat_map(|note| wrap(note, page.room.wrap, 2)));
    page.lines.extend(load_chart::lines(s, page.room.wrap, page.colour));
    if let Some(commands) = versus::table(s) {
        page.table(versus::TITLE, &commands);
        page.lines.extend(versus::legend(s).iter().flat_map(|text| wrap(text, page.room.wrap, 2)));
    }
}

fn profiles(page: &mut Page, s: &Summary, most_lines: usize) {
    for (title, table) in profiled::tables(&s.profiles) {
        page.table(&title, &table);
    }
    for ProfilerText { title, lines } in profiled::printouts(&s.profiles) {
        page.heading(&title);
        page.lines.extend(profiled::first(&lines, most_lines, page.room.cut));
    }
}

/// Writes the part that fits a small terminal.
fn brief(page: &mut Page, s: &Summary) {
    top(page, s, false);
    factors(page, s);
    if s.times.len() <= MOST_TIMES {
        times(page, s);
    }
    if let Some(sets) = sets_table(s) {
        page.table("Each set separately", &sets);
    }
    if s.results.len() <= MOST_DEGREES {
        degrees_table(page, s);
    }
    profiles(page, s, MOST_PRINTED);
    if let Some(storage) = evidence::storage(s) {
        page.say(&format!("{}: {storage}", evidence::storage_title(s)));
    }
    page.whole_list("No result", &failures(s));
    page.brief_list("Note", &notes(s), MOST_REMARKS);
    // What is of this experiment comes before what is of any on this machine, which may be only counted.
    let mut warnings: Vec<&Warning> = s.warnings.iter().collect();
    warnings.sort_by_key(|warning| check::is_about_machine(warning));
    let is_file = page.room.is_file();
    let warnings = warnings.into_iter().map(|warning| match warning.to_string() {
        whole if is_file => whole,
        whole => first_sentence(&whole),
    });
    let warnings: Vec<String> = warnings.collect();
    page.brief_list("Warning", &warnings, MOST_REMARKS);
}

fn times(page: &mut Page, s: &Summary) {
    if let Some(table) = times::table(&s.times) {
        page.table(times::TITLE, &table);
        page.say(&times::longest(&s.times).unwrap_or_default());
        page.legend(times::LEGEND);
    }
}

fn degrees_table(page: &mut Page, s: &Summary) {
    if let Some(degrees) = degrees::table(s) {
        page.table(degrees::TITLE, &degrees);
        page.legend(degrees::LEGEND);
    }
}

fn factors(page: &mut Page, s: &Summary) {
    if let Some(factors) = factorial::table(s) {
        if factors.fits(page.room.cut) {
            page.table(factorial::TITLE, &factors);
        } else {
            page.heading(factorial::TITLE);
            let lines = factorial::lines(s);
            page.lines.extend(lines.iter().flat_map(|line| wrap(line, page.room.wrap, 2)));
        }
        page.legend(factorial::LEGEND);
    }
    if let Some(doses) = doses::table_of(s) {
        page.table(doses::TITLE, &doses);
        page.legend(doses::LEGEND);
    }
}

fn whole(page: &mut Page, s: &Summary) {
    top(page, s, true);
    let is_figures = s.imported.as_ref().is_some_and(|imported| imported.is_figures());
    if let Some(bounds) = bounds::sentence(s).filter(|_| !is_figures) {
        page.lines.extend(wrap(&bounds, page.room.wrap, 2));
    }
    factors(page, s);
    for MetricTable { title, legend, table } in readings::tables(s).into_iter() {
        page.table(&title, &table);
        page.legend(legend);
    }
    if let Some(latencies) = latency::table(s) {
        page.table("Latency per operation", &latencies);
        page.legend(latency::LEGEND);
    }
    if let Some(drivers) = latency::drivers_table(s) {
        page.table(latency::DRIVERS, &drivers);
        page.legend(latency::OF_DRIVERS);
    }
    times(page, s);
    if let Some(sets) = sets_table(s) {
        page.table("Each set separately", &sets);
    }
    degrees_table(page, s);
    if let Some(evidence) = evidence::table(s) {
        page.table("Side effects of the treatment", &evidence);
    }
    profiles(page, s, usize::MAX);
    page.list("Notes", notes(s));
    page.list("No result", failures(s));
    page.list("Warnings", s.warnings.iter().collect());
    context(page, s);
}

fn notes(s: &Summary) -> Vec<String> {
    let several = super::has_several_treatments(s);
    let name = |row: &&super::Row| match several {
        true => format!("{} under {}", row.workload, row.treatment),
        false => row.workload.to_string(),
    };
    let of_rows = |(note, rows): (&str, Vec<&super::Row>)| {
        format!("{}: {note}", rows.iter().map(name).collect::<Vec<_>>().join(", "))
    };
    super::by_note(s).into_iter().map(of_rows).collect()
}

fn failures(s: &Summary) -> Vec<String> {
    let failures = failed::by_reason(&s.failures, Failure::name_in_arm);
    failures.into_iter().map(|(names, reason)| format!("{names}: {reason}")).collect()
}

/// Writes the changes, the machine, and the command to repeat the experiment.
fn context(page: &mut Page, s: &Summary) {
    let mut lines = Vec::new();
    for (label, facts) in facts::by_label(s) {
        lines.push(format!("{label}:"));
        for fact in facts {
            lines.extend(wrap(&format!("- {fact}"), page.room.wrap, 2));
        }
    }
    if let Some(state) = &s.baseline_state {
        let baseline = format!("baseline: {}, {state}", s.baseline);
        lines.extend(wrap(&format::label(&baseline), page.room.wrap, 2));
    }
    let is_figures = s.imported.as_ref().is_some_and(|imported| imported.is_figures());
    if is_figures {
        let baseline = format!("import {}, baseline {}", s.id, s.baseline);
        lines.extend(wrap(&format::label(&baseline), page.room.wrap, 2));
    } else {
        lines.extend(design(s, page.room.wrap));
    }
    page.faint(lines, &s.machine);
    // Not wrapped: a command is to be copied.
    page.lines.push(again(s));
}

/// The command that measures the same again. After `--continue` it is that of the first session.
fn again(s: &Summary) -> String {
    let of_all = match s.sessions {
        ..=1 => String::new(),
        sessions => {
            let elapsed = format::clock(s.elapsed_s);
            format!("   (the first of {sessions} sessions, which took {elapsed} together)")
        }
    };
    format!("again: {}{of_all}", format::label(&s.command))
}

fn design(s: &Summary, width: usize) -> Vec<String> {
    if s.is_of_one_command() {
        return wrap(&format::label(&format!("experiment {}, seed {}", s.id, s.seed)), width, 2);
    }
    // What `weigh history` counts. An imported document does not say.
    let samples = match s.samples {
        0 => String::new(),
        all => format!(" ({} in all)", format::plural(all, "sample")),
    };
    let design = format!(
        "experiment {}: {} in random order{samples}, {} intervals, margin {}, seed {}",
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
    use super::*;
    use weigh_model::example;
    use weigh_model::result::summary::State;
    use weigh_model::result::versus::WORK;

    /// Lines that are wider than asked for, but for the command to copy.
    fn too_wide(text: &str, width: usize) -> Vec<&str> {
        text.lines()
            .filter(|line| !line.starts_with("again: ") && !line.starts_with("more:  "))
            .filter(|line| line.chars().count() > width)
            .collect()
    }

    #[test]
    fn a_screen_of_80_by_24_ends_with_the_sentence() {
        let mut s = example::audit();
        s.results.truncate(10);
        s.failures.clear();
        let html = Some("/root/.local/share/weighbridge/reports/k3f9.html");
        let text = screen(&s, &Screen { room: Room::terminal(80), html, ..Screen::default() });
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len() - 23..];
        assert!(last[0].starts_with("workload "), "the table begins above the screen:\n{text}");
        for part in [
            "Storage: 3 records",
            "Note: pipe: Cheaper",
            "Warning: Other",
            "HTML:  /root",
            "again: weigh compare",
            "more:  weigh show -v k3f9",
        ] {
            assert_eq!(
                last.iter().filter(|line| line.starts_with(part)).count(),
                1,
                "{part}\n{text}"
            );
        }
        assert!(!text.contains("Latency per operation"), "{text}");
        let said = wrap(&sentence::sentence(&s), 80, 0).join("\n");
        assert!(text.starts_with(&said) && text.trim_end().ends_with(&said), "{text}");
    }

    #[test]
    fn times_of_commands_come_first_and_fit_a_small_screen() {
        let text =
            screen(&example::versus(), &Screen { room: Room::terminal(80), ..Screen::default() });
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}\n{text}"));
        assert!(at("Times in ms") < at("Fastest first"), "{text}");
        assert!(text.lines().count() <= 24 && !text.contains("added/op"), "{text}");
        let whole = render(&example::versus(), Room::terminal(80), false);
        assert!(whole.contains("Times in ms") && whole.contains("added/op"), "{whole}");
        let text = screen(
            &example::one_command(),
            &Screen { room: Room::terminal(80), ..Screen::default() },
        );
        assert!(text.starts_with("`old --x` takes 100 ms ±"), "{text}");
        let whole = text + &render(&example::one_command(), Room::terminal(80), false);
        for word in ["verdict", "pair", "baseline"] {
            assert!(!whole.contains(word), "{word}: {whole}");
        }
    }

    #[test]
    fn a_verbose_screen_is_the_whole_report_and_the_sentence() {
        let s = example::audit();
        let text = screen(
            &s,
            &Screen { room: Room::terminal(100), is_verbose: true, ..Screen::default() },
        );
        let said = wrap(&sentence::sentence(&s), 100, 0).join("\n");
        assert_eq!(text, format!("{}\n{said}\n", render(&s, Room::terminal(100), false)));
    }

    #[test]
    fn many_remarks_are_counted() {
        let mut s = example::audit();
        let warning = |i| Warning::Sentence(format!("Number {i}. And what to do."));
        s.warnings = (0..9).map(warning).collect();
        let text = screen(&s, &Screen { room: Room::terminal(80), ..Screen::default() });
        assert!(text.contains("\nWarning: Number 1.\nWarning: 7 more\n"), "{text}");
    }

    #[test]
    fn the_reason_of_each_failure_is_on_the_screen() {
        let mut s = example::versus();
        let failure = |status: usize| Failure {
            workload: WORK.into(),
            arm: format!("exit {status}"),
            reason: format!("it exited with status {status}"),
        };
        s.failures = (1..=9).map(failure).collect();
        let text = screen(&s, &Screen { room: Room::terminal(80), ..Screen::default() });
        for status in 1..=9 {
            let wanted = format!("No result: exit {status}: it exited with status {status}\n");
            assert!(text.contains(&wanted), "{text}");
        }
    }

    #[test]
    fn what_the_machine_is_like_does_not_crowd_out_what_went_wrong() {
        let mut s = example::audit();
        let texts = ["Load: a.", "Stolen time: b.", "`audit`: c.", "1 pair."];
        s.warnings = texts.map(|text| Warning::Sentence(text.into())).to_vec();
        let text = screen(&s, &Screen { room: Room::terminal(80), ..Screen::default() });
        assert!(
            text.contains("\nWarning: `audit`: c.\nWarning: 1 pair.\nWarning: 2 more\n"),
            "{text}"
        );
    }

    #[test]
    fn it_is_the_report_of_the_fixture() {
        let text = render(&example::audit(), Room::terminal(100), false);
        let expected = include_str!("../../../tests/fixtures/report/terminal-100.txt");
        assert_eq!(text, expected, "now it is:\n{text}");
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let commands = [example::versus(), example::one_command()];
        let others =
            [example::audit(), example::two_sets(), example::control(), example::hostile()];
        for s in commands.into_iter().chain(others) {
            for width in [0, 40, 60, 80, 100, 120, 200] {
                let brief =
                    screen(&s, &Screen { room: Room::terminal(width), ..Screen::default() });
                let text = render(&s, Room::terminal(width), false) + &brief;
                let wide = too_wide(&text, width.max(NARROWEST));
                assert!(wide.is_empty(), "{width}: {wide:#?}");
            }
        }
    }

    #[test]
    fn only_colour_makes_escapes() {
        assert!(!render(&example::hostile(), Room::terminal(100), false).contains('\u{1b}'));
        let coloured = render(&example::audit(), Room::terminal(100), true);
        let plain: Vec<&str> = coloured.split('\u{1b}').collect();
        assert!(plain.len() > 20);
    }

    #[test]
    fn a_note_names_its_treatment_where_there_are_several() {
        let mut s = example::audit();
        let note = |s: &Summary| notes(s).concat();
        assert!(note(&s).starts_with("pipe: Cheaper because"), "{}", note(&s));
        s.results[0].treatment = "seccomp".into();
        assert!(note(&s).starts_with("pipe under audit: Cheaper because"), "{}", note(&s));
    }

    #[test]
    fn a_narrow_screen_keeps_interval_and_verdict_of_each_factor() {
        let s = example::factorial();
        let lines = |columns| {
            let mut page = Page::new(Room::terminal(columns), false);
            factors(&mut page, &s);
            page.lines.join("\n")
        };
        assert!(lines(60).contains("`seccomp` −20.0 % [−21.0, −19.0]: slower"), "{}", lines(60));
        assert!(lines(60).lines().all(|line| line.chars().count() <= 60), "{}", lines(60));
        assert!(lines(120).contains("rounds"), "{}", lines(120));
    }

    #[test]
    fn no_note_or_warning_is_cut_on_a_small_screen() {
        let mut s = example::audit();
        let note =
            "a note that is much longer than one line of a screen that has 60 columns, to its end";
        s.results.truncate(1);
        s.results[0].notes = vec![note.to_owned()];
        let text = screen(&s, &Screen { room: Room::terminal(60), ..Screen::default() });
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(note), "{text}");
        assert!(too_wide(&text, 60).is_empty(), "{text}");
    }

    #[test]
    fn equal_notes_are_printed_once_with_their_rows() {
        let mut s = example::audit();
        s.results.truncate(3);
        let names: Vec<String> = s.results.iter().map(|row| row.workload.to_string()).collect();
        s.results.iter_mut().for_each(|row| row.notes = vec!["like the others".into()]);
        s.results[1].notes.insert(0, "of its own".into());
        let together = format!("{}: like the others", names.join(", "));
        assert_eq!(notes(&s), [together, format!("{}: of its own", names[1])]);
    }

    #[test]
    fn the_command_of_a_continued_experiment_is_called_that_of_its_first_session() {
        let mut s = example::audit();
        assert_eq!(again(&s), format!("again: {}", s.command));
        (s.sessions, s.elapsed_s) = (2, 40.0);
        let said = "   (the first of 2 sessions, which took 40 s together)";
        assert_eq!(again(&s), format!("again: {}{said}", s.command));
    }

    #[test]
    fn an_experiment_without_results_is_still_a_report() {
        let mut s = example::audit();
        s.results.clear();
        s.treatments.clear();
        s.state = State::Interrupted;
        let text = render(&s, Room::terminal(80), false);
        assert!(text.starts_with("Interrupted before anything was measured."), "{text}");
        assert!(!text.contains("no verdict"), "{text}");
    }
}
