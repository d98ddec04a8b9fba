//! `weigh show`: an experiment again.

use std::io;

use clap::Args;

use super::formats::table_help;
use super::{Context, output, price};
use weigh_dialect::{self as dialect, Dialect};
use weigh_engine::report;
use weigh_model::result::anonymise;
use weigh_model::result::report::Report;
use weigh_report::terminal::{self, Screen};

const EXAMPLES: &str = "\
Examples:
  weigh show                  the latest experiment
  weigh show -v               with every table and warning
  weigh show k3f9qx           by its id from `weigh history`, or its beginning
  weigh show before-upgrade   by its name, given with --name
  weigh show --as unixbench   as UnixBench's table of indices
  weigh show --as nitzberg    as Nitzberg's table, after --sets 2: the effects
                              in set 1 (Delta-1) and set 2 (Delta-2), and their
                              distance (Delta-3)
  weigh show --price 2900     price and performance of a machine
  sudo weigh show             an experiment that ran with sudo";

/// Show a stored experiment again, evaluated from its samples
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// Experiment: its id or the beginning of it, a name, latest, or latest~1 for the one before [default:
    /// latest]
    id: Option<String>,
    #[arg(long = "as", value_name = "TABLE", conflicts_with = "verbose")]
    #[arg(value_parser = dialect::named, help = table_help("Print in the form of"))]
    dialect: Option<&'static Dialect>,
    /// Show everything: latencies, evidence, the steps of each treatment, warnings in full, the machine
    #[arg(short, long)]
    verbose: bool,
    /// Show how much performance this machine gives for its price, such as 2900. Prints the price of each
    /// rate, in the same currency. A load has its jobs per minute
    #[arg(long, value_name = "AMOUNT", conflicts_with_all = ["dialect", "verbose"])]
    #[arg(value_parser = price::amount)]
    price: Option<f64>,
    #[command(flatten)]
    privacy: Privacy,
}

/// Option to show or hide the machine's identity, shared by every command that writes reports.
#[derive(Debug, Args)]
pub struct Privacy {
    /// Leave out what identifies the machine or a person: host name, boot id, kernel command line, user
    /// names, and the directories of paths
    #[arg(long, alias = "anonymize", hide_short_help = true)]
    anonymise: bool,
}

impl Privacy {
    /// The report as it may be shown.
    pub fn of(&self, report: Report) -> Result<Report, String> {
        if self.anonymise { anonymise::report(report) } else { Ok(report) }
    }
}

/// The report that was written when it was measured, if it is still there.
fn existing_html(context: &Context, id: &str) -> Option<String> {
    let path = context.data_directory().ok()?.join("reports").join(format!("{id}.html"));
    path.is_file().then(|| path.display().to_string())
}

impl ShowArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        let store = context.read_store()?;
        let id = store.find(self.id.as_deref()).map_err(|error| error.to_string())?;
        let report = self.privacy.of(report::load(&store, &id)?)?;
        let html = existing_html(context, &id);
        let screen = Screen {
            room: output::room(),
            colour: output::wants_colour(context.color, &io::stdout()),
            is_verbose: self.verbose,
            html: html.as_deref(),
            ..Screen::default()
        };
        let text = match (self.dialect, self.price) {
            (Some(dialect), _) => dialect::render(dialect, &report)?,
            (None, Some(price)) => price::table(&report, price)?,
            (None, None) => terminal::show(&report, &screen),
        };
        output::print(&text)?;
        Ok(0)
    }
}
