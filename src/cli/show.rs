//! `weigh show`: an experiment again.

use std::io;

use clap::Args;

use super::{Context, output, run_text};
use crate::experiment::run_report::RunReport;
use crate::experiment::summarise::summarise;
use crate::report::terminal;
use crate::store::record::Kind;

const EXAMPLES: &str = "\
Examples:
  weigh show            the latest experiment
  weigh show k3f9qx     the one that `weigh history` lists so; its beginning is enough";

/// Show an experiment, judged anew from its stored samples
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Show {
    /// The experiment, or the beginning of its id [default: the latest]
    id: Option<String>,
}

impl Show {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        let store = context.open_store()?;
        let id = store.find(self.id.as_deref()).map_err(|error| error.to_string())?;
        let stored = store.load(&id).map_err(|error| error.to_string())?;
        let colour = output::wants_colour(context.color, &io::stdout());
        let text = match stored.header.kind {
            Kind::Run => run_text::render(&RunReport::new(&stored), output::width(), colour),
            Kind::Compare | Kind::Calibrate => {
                terminal::render(&summarise(&stored), output::width(), colour) + "\n"
            }
        };
        output::print(&text)?;
        Ok(0)
    }
}
