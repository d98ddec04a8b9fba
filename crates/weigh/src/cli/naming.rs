//! `--name` and `--tag` of the commands that measure, and `weigh tag`.

use clap::{ArgGroup, Args};

use super::{Context, history};
use weigh_store::names::{Naming, parse_name};

/// Heading of the options that say which stored experiment this is.
pub const EXPERIMENT: &str = "Experiment";

/// Options that name the experiment.
#[derive(Clone, Debug, Args)]
pub struct Names {
    /// Name the experiment. A name works wherever an id does, as in `weigh show NAME`, and means the latest
    /// experiment of that name
    #[arg(long, value_name = "NAME", value_parser = parse_name, help_heading = EXPERIMENT)]
    name: Option<String>,
    /// Tag the experiment. `weigh history --tag TAG` finds it. May be repeated
    #[arg(long = "tag", value_name = "TAG", value_parser = parse_name, help_heading = EXPERIMENT)]
    tags: Vec<String>,
}

impl Names {
    pub fn naming(&self) -> Naming {
        Naming { name: self.name.clone(), tags: self.tags.clone() }
    }
}

const EXAMPLES: &str = "\
Examples:
  weigh tag latest --name before-upgrade
  weigh tag k3f9qx --tag nightly --tag linux-6.1
  weigh tag k3f9qx --untag nightly";

/// Name or tag a stored experiment
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("change").required(true).multiple(true).args(["name", "tags", "untag"]))]
pub struct TagArgs {
    /// Experiment: its id or the beginning of it, a name, or latest
    id: String,
    #[command(flatten)]
    names: Names,
    /// Remove this tag from the experiment; may be repeated
    #[arg(long, value_name = "TAG")]
    untag: Vec<String>,
}

impl TagArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        context.read_store()?;
        let store = context.open_store()?;
        let said = |error: weigh_store::Error| error.to_string();
        let id = store.find(Some(&self.id)).map_err(said)?;
        store.set_naming(&id, &self.names.naming()).map_err(said)?;
        for tag in &self.untag {
            store.remove_tag(&id, tag).map_err(said)?;
        }
        let entries = store.history().map_err(said)?;
        let found = entries.into_iter().filter(|entry| entry.id == id).collect();
        history::print(found, &store)?;
        Ok(0)
    }
}
