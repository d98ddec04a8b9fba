//! Building blocks of reports on a terminal: headings, tables, and lists of sentences.

use std::fmt::Display;

use anstyle::Style;

use super::paint::{BOLD, FAINT, WARNING, paint};
use super::screen::Room;
use super::table::Table;
use super::text::{brief_line, emphasise, wrap};
use weigh_model::described;
use weigh_model::facts::Facts;
use weigh_model::format;

/// No terminal is narrower, and no layout fits one that is.
pub const NARROWEST: usize = 40;

/// A report in the making: lines that fit the room.
pub struct Page {
    pub lines: Vec<String>,
    pub room: Room,
    pub colour: bool,
}

impl Page {
    pub fn new(room: Room, colour: bool) -> Page {
        Page { lines: Vec::new(), room: room.at_least(NARROWEST), colour }
    }

    /// A paragraph, in which names stand between backticks.
    pub fn say(&mut self, text: &str) {
        let wrapped = wrap(text, self.room.wrap, 0).join("\n");
        self.lines.push(emphasise(&wrapped, self.colour));
    }

    pub fn heading(&mut self, title: &str) {
        self.titled(title, BOLD);
    }

    /// Lines about the measurement, and one about the machine.
    pub fn faint(&mut self, mut lines: Vec<String>, machine: &Facts) {
        let machine = described::line(machine);
        if !machine.is_empty() {
            lines.extend(brief_line(&format!("machine: {machine}"), self.room));
        }
        self.lines.push(String::new());
        self.lines.extend(lines.iter().map(|line| paint(line, FAINT, self.colour)));
    }

    fn titled(&mut self, title: &str, style: Style) {
        self.lines.push(String::new());
        self.lines.push(paint(&format::shorten(title, self.room.cut), style, self.colour));
    }

    pub fn table(&mut self, title: &str, table: &Table) {
        self.heading(title);
        for (i, line) in table.to_lines(self.room.cut).iter().enumerate() {
            let style = if i == 0 { FAINT } else { Style::new() };
            self.lines.push(paint(line, style, self.colour));
        }
    }

    /// How to read what stands above.
    pub fn legend(&mut self, text: &str) {
        self.lines.extend(wrap(text, self.room.wrap, 2));
    }

    /// A list on a small screen: the last items are counted, and the others are whole. In a file, all of it.
    pub fn brief_list(&mut self, title: &str, items: &[String], most: usize) {
        if self.room.is_file() {
            return self.whole_list(title, items);
        }
        let shown = if items.len() <= most { items.len() } else { most - 1 };
        self.whole_list(title, &items[..shown]);
        let rest = items.len() - shown;
        if rest > 0 {
            self.lines.push(format!("{title}: {rest} more"));
        }
    }

    /// Adds a list of items that must be readable to the end: all of them, in as many lines as they take.
    pub fn whole_list(&mut self, title: &str, items: &[String]) {
        for item in items {
            let text =
                wrap(&format!("{title}: {}", format::label(item)), self.room.wrap, 2).join("\n");
            let rest = text.strip_prefix(title).unwrap_or(&text);
            self.lines.push(paint(title, WARNING, self.colour) + rest);
        }
    }

    pub fn list(&mut self, title: &str, items: Vec<impl Display>) {
        if items.is_empty() {
            return;
        }
        self.titled(title, WARNING.bold());
        for item in items {
            self.lines.extend(wrap(&format!("- {}", format::label(&item)), self.room.wrap, 2));
        }
    }
}
