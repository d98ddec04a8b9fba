//! The report as on a terminal, in full and without colours.

use crate::terminal::{self, Screen};
use crate::{ReportFormat, run_text};

/// A file has no terminal to ask.
const WIDTH: usize = 100;

pub static FORMAT: ReportFormat = ReportFormat {
    name: "text",
    what: "the report as on a terminal, in full",
    compared: |s| Ok(terminal::render(s, WIDTH, false)),
    run: |report, _| {
        let screen = Screen { width: WIDTH, is_verbose: true, ..Screen::default() };
        Ok(run_text::render(report, &screen))
    },
    is_json: false,
};
