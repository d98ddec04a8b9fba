//! The report as on a terminal, in full and without colours.

use crate::ReportFormat;
use crate::terminal::{self, Screen};
use weigh_model::result::report::Report;

/// A file has no terminal to ask.
const WIDTH: usize = 100;

pub static FORMAT: ReportFormat = ReportFormat {
    name: "text",
    what: "the report as on a terminal, in full",
    render: |report| {
        let screen = Screen { width: WIDTH, is_verbose: true, ..Screen::default() };
        Ok(match report {
            // The sentence once, where a screen has it at its end too.
            Report::Compared(s) => terminal::render(s, WIDTH, false),
            _ => terminal::show(report, &screen),
        })
    },
    is_json: false,
};
