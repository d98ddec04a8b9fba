//! The report as one file for a browser: the pages of `weigh-report/html.rs`, `weigh-report/run_page.rs` and
//! `weigh-report/rules/html.rs`.

use crate::{ReportFormat, html, rules, run_page};
use weigh_model::result::report::Report;

pub static FORMAT: ReportFormat = ReportFormat {
    name: "html",
    what: "the report as one HTML file, with charts",
    render: |report| match report {
        Report::Compared(s) => html::render(s),
        Report::Run(report) => run_page::render(report),
        Report::Rules(report) => rules::html::page(report),
    },
    is_json: false,
};
