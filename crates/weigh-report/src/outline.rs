//! A report as sentences, tables and lists: a form that a terminal, Markdown and HTML can all show.

use std::fmt::Write as _;

use minijinja::context;

use crate::html::{fill, machine_facts, parts, table};
use crate::paint::{BOLD, paint};
use crate::screen::Room;
use crate::table::Table;
use crate::text::{emphasise, wrap};
use weigh_model::format;
use weigh_model::result::report::Report;

pub struct Outline {
    /// The answer first.
    pub sentences: Vec<String>,
    pub tables: Vec<OutlineTable>,
    pub lists: Vec<(&'static str, Vec<String>)>,
}

pub struct OutlineTable {
    pub title: String,
    pub table: Table,
    /// How to read it; may be empty.
    pub legend: String,
    /// Further remarks.
    pub notes: Vec<String>,
}

impl OutlineTable {
    pub fn new(title: impl Into<String>, table: Table, legend: &str) -> OutlineTable {
        OutlineTable { title: title.into(), table, legend: legend.to_owned(), notes: Vec::new() }
    }
}

impl Outline {
    /// For a terminal or a file.
    pub fn text(&self, room: Room, colour: bool) -> String {
        let width = room.wrap;
        let mut text = String::new();
        for line in self.sentences.iter().flat_map(|sentence| wrap(sentence, width, 0)) {
            let _ = writeln!(text, "{}", emphasise(&line, colour));
        }
        for OutlineTable { title, table, legend, notes } in &self.tables {
            let _ = writeln!(text, "\n{}", paint(title, BOLD, colour));
            let legend = wrap(legend, width, 0);
            let notes = notes.iter().flat_map(|note| wrap(note, width, 2));
            for line in table.to_lines(room.cut).into_iter().chain(legend).chain(notes) {
                let _ = writeln!(text, "{line}");
            }
        }
        for (title, items) in self.lists.iter().filter(|(_, items)| !items.is_empty()) {
            let _ = writeln!(text, "\n{}", paint(title, BOLD, colour));
            let bullets = items.iter().map(|item| format!("- {}", format::label(item)));
            for line in bullets.flat_map(|bullet| wrap(&bullet, width, 2)) {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }

    /// One HTML file.
    pub fn html(&self, report: &Report) -> Result<String, String> {
        let header = report.header();
        let said = |all: &[String]| -> Vec<_> {
            all.iter().map(|sentence| parts(&format::label(sentence))).collect()
        };
        let (headline, rest) =
            self.sentences.split_first().map_or(("", &[][..]), |(a, b)| (a.as_str(), b));
        let tables = self.tables.iter().map(|one| {
            context! {
                title => &one.title,
                table => table(&one.table),
                legend => &one.legend,
                notes => &one.notes,
            }
        });
        let lists = self.lists.iter().filter(|(_, items)| !items.is_empty());
        let lists = lists.map(|(title, items)| context! { title => *title, items => said(items) });
        let filled = fill(
            "outline.html",
            context! {
                kind => header.kind.as_str(),
                id => format::label(header.id),
                plain => format::label(&headline.replace('`', "")),
                headline => parts(&format::label(headline)),
                rest => said(rest),
                tables => tables.collect::<Vec<_>>(),
                lists => lists.collect::<Vec<_>>(),
                machine => machine_facts(header.machine),
                command => format::label(header.command),
            },
        );
        filled.map_err(|error| format!("the HTML report could not be written: {error}"))
    }
}

/// Returns the last lines on a terminal: how to see the report again, and how to measure it again.
pub fn kept_and_again(id: &str, command: &str) -> String {
    let kept = match id {
        "" => String::new(),
        id => format!("kept:  weigh show {}\n", format::label(id)),
    };
    format!("{kept}again: {}\n", format::label(command))
}

#[cfg(test)]
mod tests {
    use crate::{FORMATS, budget, rules};
    use weigh_model::result::report::Report;

    #[test]
    fn a_budget_is_the_same_in_every_format() {
        let report = Report::from(budget::sample::report());
        for (format, part) in [
            ("json", "\"log_bytes\": 400.0"),
            ("csv", ",getppid,audit,100,false,"),
            ("markdown", "**At 100 operations per second, `audit` writes 3.22 GiB a day"),
            ("html", "<code>audit</code> writes 3.22 GiB a day"),
            ("text", "At 100 operations per second, `audit` writes 3.22 GiB a day"),
            ("junit", "did not keep up; 0 records lost"),
        ] {
            let format = FORMATS.iter().find(|one| one.name == format).unwrap();
            let text = (format.render)(&report).unwrap();
            assert!(text.contains(part), "{}: {text}", format.name);
        }
    }

    #[test]
    fn a_line_of_csv_per_line_of_the_files() {
        let rules = rules::sample::stig();
        let lines = rules.lines.len();
        let report = Report::from(rules);
        let render = |name: &str| {
            let format = FORMATS.iter().find(|one| one.name == name).unwrap();
            (format.render)(&report).unwrap()
        };
        assert_eq!(render("csv").lines().count(), lines + 1);
        assert_eq!(render("junit").matches("<testcase").count(), lines);
        let markdown = render("markdown");
        assert!(markdown.starts_with("**These 352 rules add"), "{markdown}");
    }
}
