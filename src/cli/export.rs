//! `weigh export`: an experiment as a file.

use std::path::PathBuf;

use clap::Args;

use super::{Context, output, run_page, run_text};
use crate::experiment::run_report::RunReport;
use crate::experiment::summarise::summarise;
use crate::report::{self, Format};
use crate::store::record::Kind;

const EXAMPLES: &str = "\
Examples:
  weigh export k3f9qx --html -o report.html
  weigh export k3f9qx --csv | head
  weigh export k3f9qx --json | jq '.results[] | {workload, effect_pct}'";

/// Write an experiment in another format
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Export {
    /// The experiment, or the beginning of its id
    id: String,
    #[command(flatten)]
    format: Formats,
    /// Where to [default: stdout]
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Formats {
    /// The results, as documented in docs/json.md
    #[arg(long)]
    json: bool,
    /// Every pair
    #[arg(long)]
    csv: bool,
    /// The report, for an issue or a mail
    #[arg(long)]
    markdown: bool,
    /// The report, as one file for a browser
    #[arg(long)]
    html: bool,
    /// The report as on a terminal
    #[arg(long)]
    text: bool,
}

impl Export {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        let store = context.open_store()?;
        let id = store.find(Some(&self.id)).map_err(|error| error.to_string())?;
        let stored = store.load(&id).map_err(|error| error.to_string())?;
        let format = self.format.chosen();
        let text = match (stored.header.kind, format) {
            (Kind::Compare | Kind::Calibrate, format) => {
                report::render(format, &summarise(&stored)).map_err(|error| error.to_string())?
            }
            (Kind::Run, Format::Json) => RunReport::new(&stored).json(),
            (Kind::Run, Format::Text) => {
                run_text::render(&RunReport::new(&stored), report::TEXT_WIDTH, false)
            }
            (Kind::Run, Format::Html) => run_page::render(&RunReport::new(&stored))?,
            (Kind::Run, _) => {
                return Err(format!(
                    "{id} is a run of this machine alone, which is exported as --json, --html or --text"
                ));
            }
        };
        output::write_report(&self.output, &text)?;
        Ok(0)
    }
}

impl Formats {
    fn chosen(&self) -> Format {
        match self {
            Formats { json: true, .. } => Format::Json,
            Formats { csv: true, .. } => Format::Csv,
            Formats { markdown: true, .. } => Format::Markdown,
            Formats { html: true, .. } => Format::Html,
            // One of them is required.
            _ => Format::Text,
        }
    }
}
