//! One file per format; all of them show a [`Summary`].
//!
//! The files that are not a format are what formats share: [`sentence`] (the
//! verdict in words), [`scale`] (the axis of every interval) and the tables.

use std::str::FromStr;

use crate::result::summary::{Row, Summary};

pub mod anonymise;
mod bar;
mod bounds;
pub mod budget;
pub mod calibration;
pub mod checks;
mod countdown;
pub mod csv;
mod cumulative;
pub mod curve_text;
pub mod dialect;
pub mod diff;
mod evidence;
mod facts;
mod findings;
pub mod gate;
pub mod html;
pub mod imported;
pub mod json;
pub mod junit;
mod latency;
pub mod live;
mod live_frame;
pub mod markdown;
mod needed;
mod page;
pub(crate) mod paint;
pub mod profile;
mod readings;
mod results;
pub mod rules;
pub mod run_export;
pub mod run_page;
pub mod run_text;
#[cfg(test)]
pub(crate) mod sample;
mod scale;
pub mod sentence;
mod sets;
mod stalls;
pub mod table;
pub mod terminal;
pub mod text;

/// The width of the text format, which goes to a file and so has no terminal to ask.
pub const TEXT_WIDTH: usize = 100;

/// What `weigh export` can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Csv,
    Markdown,
    Junit,
    Html,
    Text,
}

/// A format that nobody wrote a file for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no format `{0}`: it is one of json, csv, markdown, junit, html, text")]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Format, UnknownFormat> {
        match name {
            "json" => Ok(Format::Json),
            "csv" => Ok(Format::Csv),
            "markdown" => Ok(Format::Markdown),
            "junit" => Ok(Format::Junit),
            "html" => Ok(Format::Html),
            "text" => Ok(Format::Text),
            _ => Err(UnknownFormat(name.to_owned())),
        }
    }
}

/// A report that could not be written; both are faults of Weighbridge, not of the experiment.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    #[error("the JSON report could not be written: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the HTML report could not be written: {0}")]
    Html(#[from] minijinja::Error),
}

/// The whole report in one format.
pub fn render(format: Format, s: &Summary) -> Result<String, RenderError> {
    match format {
        Format::Json => Ok(json::render(s)?),
        Format::Csv => Ok(csv::render(s)),
        Format::Markdown => Ok(markdown::render(s)),
        Format::Junit => Ok(junit::render(s)),
        Format::Html => Ok(html::render(s)?),
        Format::Text => Ok(terminal::render(s, TEXT_WIDTH, false)),
    }
}

/// The rows of each treatment, both in the order of the experiment.
fn by_treatment(s: &Summary) -> Vec<(&str, Vec<&Row>)> {
    let mut groups: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in &s.results {
        match groups.iter_mut().find(|(label, _)| *label == row.treatment) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((&row.treatment, vec![row])),
        }
    }
    groups
}
