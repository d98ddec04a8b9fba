//! `weigh export`: an experiment as a file.

use std::path::PathBuf;

use clap::Args;

use super::show::{Privacy, Shown};
use super::{Context, output};
use crate::experiment::run_report;
use crate::report::dialect::Dialect;
use crate::report::terminal::Screen;
use crate::report::{self, Format};
use crate::report::{run_export, run_page, run_text};

const EXAMPLES: &str = "\
Examples:
  weigh export k3f9qx --html -o report.html
  weigh export k3f9qx --csv | head
  weigh export k3f9qx --as smalley
  weigh export k3f9qx --as nitzberg --html -o table2.html
  weigh export k3f9qx --html --anonymise -o to-share.html
  weigh export k3f9qx --json | jq '.results[] | {workload, effect_pct}'";

/// Write an experiment in another format
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExportArgs {
    /// The experiment: its id or the beginning of it, a name, or latest
    id: String,
    #[command(flatten)]
    format: Formats,
    /// In the form of a well-known table: unixbench, lmbench, nitzberg or smalley. With nitzberg, --html
    /// adds his Figure 4
    #[arg(long = "as", value_name = "TABLE", conflicts_with_all = ["json", "csv", "markdown", "junit"])]
    dialect: Option<Dialect>,
    /// Where to write it [default: stdout]
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
    #[command(flatten)]
    privacy: Privacy,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct Formats {
    /// The results, as documented in docs/json.md
    #[arg(long)]
    json: bool,
    /// Every pair (of a run: every sample)
    #[arg(long)]
    csv: bool,
    /// The report, for an issue or a mail
    #[arg(long)]
    markdown: bool,
    /// The rows as tests in JUnit's XML
    #[arg(long)]
    junit: bool,
    /// The report, as one file for a browser
    #[arg(long)]
    html: bool,
    /// The report as on a terminal
    #[arg(long)]
    text: bool,
}

impl ExportArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        if self.dialect.is_none() && !self.format.is_given() {
            return Err(
                "say in which format: --json, --csv, --markdown, --junit, --html, --text or --as TABLE"
                    .into(),
            );
        }
        let store = context.read_store()?;
        let id = store.find(Some(&self.id)).map_err(|error| error.to_string())?;
        let shown = Shown::load(&store, &id, &self.privacy)?;
        if let Some(dialect) = self.dialect {
            let text = match self.format.html {
                true => shown.dialect_page(dialect),
                false => shown.dialect(dialect),
            }?;
            output::write_report(&self.output, &text)?;
            return Ok(0);
        }
        let text = match (&shown, self.format.chosen()) {
            (Shown::Compared(summary), Format::Csv) if summary.imported.is_some() => {
                return Err(format!(
                    "{id} is an import and has no pairs; --json has its figures, with every run"
                ));
            }
            (Shown::Compared(summary), format) => {
                report::render(format, summary).map_err(|error| error.to_string())?
            }
            (Shown::Run(stored), Format::Json) => run_report::report(stored).json(),
            (Shown::Run(stored), Format::Text) => {
                let whole =
                    Screen { width: report::TEXT_WIDTH, is_verbose: true, ..Screen::default() };
                run_text::render(&run_report::report(stored), &whole)
            }
            (Shown::Run(stored), Format::Html) => run_page::render(&run_report::report(stored))?,
            (Shown::Run(stored), Format::Csv) => run_export::csv(stored),
            (Shown::Run(stored), Format::Markdown) => {
                run_export::markdown(&run_report::report(stored))
            }
            (Shown::Run(_), Format::Junit) => {
                return Err(format!(
                    "{id} is a run of this machine alone, in which no test can pass or fail"
                ));
            }
        };
        match self.format.json {
            true => output::write_json(&self.output, &text)?,
            false => output::write_report(&self.output, &text)?,
        }
        Ok(0)
    }
}

impl Formats {
    fn is_given(&self) -> bool {
        self.json || self.csv || self.markdown || self.junit || self.html || self.text
    }

    fn chosen(&self) -> Format {
        match self {
            Formats { json: true, .. } => Format::Json,
            Formats { csv: true, .. } => Format::Csv,
            Formats { markdown: true, .. } => Format::Markdown,
            Formats { junit: true, .. } => Format::Junit,
            Formats { html: true, .. } => Format::Html,
            // One of them is required.
            _ => Format::Text,
        }
    }
}
