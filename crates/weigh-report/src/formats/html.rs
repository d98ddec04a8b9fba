//! The report as one file for a browser: the pages of `html.rs`, `run_page.rs`, `rules/html.rs` and
//! `outline.rs`.

use crate::{ReportFormat, atlas, budget, html, profile, repeated, rules, run_page};
use weigh_model::result::report::Report;

pub static FORMAT: ReportFormat = ReportFormat {
    name: "html",
    what: "the report as one HTML file, with charts",
    render: |report| match report {
        Report::Compared(s) => html::render(s),
        Report::Run(report) => run_page::render(report),
        Report::Rules(report) => rules::html::page(report),
        Report::Budget(budget) => budget::outline(budget).html(report),
        Report::Profile(profile) => profile::outline(profile).html(report),
        Report::Atlas(atlas) => atlas::outline(atlas).html(report),
        Report::Repeated(runs) => repeated::outline(runs).html(report),
    },
    is_json: false,
};
