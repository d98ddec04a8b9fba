//! `weigh history`: what was measured so far.

use clap::Args;

use super::{Context, output};
use crate::report::format;
use crate::report::summary::State;
use crate::store::record::Kind;

const EXAMPLES: &str = "\
Examples:
  weigh history            the latest first
  weigh history | head";

/// List the experiments that were made
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct History {}

impl History {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        let entries = match context.find_store()? {
            Some(store) => store.history().map_err(|error| error.to_string())?,
            None => Vec::new(),
        };
        if entries.is_empty() {
            output::note("There is no experiment yet: `weigh compare` makes one.");
        }
        let mut text = String::new();
        for entry in entries {
            let state = match entry.state {
                State::Running => "running",
                _ if entry.kind == Some(Kind::Import) => "imported",
                State::Complete => "complete",
                State::Interrupted => "interrupted",
                State::Failed => "failed",
            };
            let started = entry.started.replace('T', " ").replace('Z', "");
            text.push_str(&format!(
                "{}  {started}  {state:<11}  {:>6} samples  {}\n",
                entry.id,
                entry.samples,
                format::label(&entry.command)
            ));
        }
        output::print(&text)?;
        Ok(0)
    }
}
