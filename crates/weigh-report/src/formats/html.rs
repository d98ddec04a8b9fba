//! The report as one file for a browser: the pages of `weigh-report/html.rs` and `weigh-report/run_page.rs`.

use crate::{ReportFormat, html, run_page};

pub static FORMAT: ReportFormat = ReportFormat {
    name: "html",
    what: "the report as one HTML file, with charts",
    compared: html::render,
    run: |report, _| run_page::render(report),
    is_json: false,
};
