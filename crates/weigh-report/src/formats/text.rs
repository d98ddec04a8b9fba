//! The report as on a terminal, in full and without colours.

use crate::ReportFormat;
use crate::terminal::{self, Room, Screen};
use weigh_model::result::report::Report;

pub static FORMAT: ReportFormat = ReportFormat {
    name: "text",
    what: "the report as on a terminal, in full",
    render: |report| {
        let screen = Screen { room: Room::FILE, is_verbose: true, ..Screen::default() };
        Ok(match report {
            Report::Compared(s) => terminal::render(s, Room::FILE, false),
            _ => terminal::show(report, &screen),
        })
    },
    is_json: false,
};
