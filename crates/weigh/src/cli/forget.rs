//! `weigh forget`: deletes experiments.

use std::path::Path;

use clap::Args;

use super::history;
use super::{Context, ask, output};
use trust::owner;
use weigh_model::format;

const EXAMPLES: &str = "\
Examples:
  weigh forget k3f9qx               show the experiment, ask, and delete it
  weigh forget k3f9qx m2abcd --yes  delete two without asking, for scripts
  weigh forget latest --dry-run     only show the experiment to delete";

/// Delete experiments and their samples
///
/// Deletes samples, names, tags, and the HTML report next to the database, permanently. Keeps reports that
/// you wrote to other places. Refuses an experiment that is still running.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ForgetArgs {
    /// Experiments: ids or the beginnings of them, names, or latest
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Do not ask before deleting
    #[arg(short, long)]
    yes: bool,
    /// Show the experiments, but delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

impl ForgetArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        context.read_store()?;
        let store = context.open_store()?;
        let said = |error: weigh_store::Error| error.to_string();
        let mut ids = Vec::new();
        for wanted in &self.ids {
            let id = store.find(Some(wanted)).map_err(said)?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        let entries = store.history().map_err(said)?;
        let entries = entries.into_iter().filter(|entry| ids.contains(&entry.id));
        history::print(entries.collect(), &store)?;
        if self.dry_run {
            output::note("Nothing was deleted.");
            return Ok(0);
        }
        if !self.yes && !confirm(ids.len())? {
            output::note("Nothing was deleted.");
            return Ok(super::ERROR);
        }
        store.forget(&ids).map_err(said)?;
        let reports = context.data_directory()?.join("reports");
        for id in &ids {
            remove_report(&reports, id);
        }
        // They are gone, whether or not the file gets shorter.
        if let Err(error) = store.give_back_room() {
            output::note(&format!("The space stays in the file for later experiments: {error}."));
        }
        output::note(&format!("Deleted {}.", format::plural(ids.len(), "experiment")));
        Ok(0)
    }
}

/// The HTML report beside the database, which may be in another user's directory.
fn remove_report(reports: &Path, id: &str) {
    let report = reports.join(format!("{id}.html"));
    let _ = owner::remove(&report);
}

fn confirm(count: usize) -> Result<bool, String> {
    let question = format!("Delete {} permanently? [y/N] ", format::plural(count, "experiment"));
    ask::answer(&question).ok_or_else(|| {
        "there is no terminal to ask on: use --yes to delete them, or --dry-run to look".into()
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    #[test]
    fn a_link_for_the_directory_of_reports_costs_root_no_file() {
        let home = tempfile::tempdir().unwrap();
        let [ours, theirs] = ["ours", "theirs"].map(|name| home.path().join(name));
        for directory in [&ours, &theirs] {
            fs::create_dir(directory).unwrap();
        }
        fs::write(ours.join("abcdef.html"), "").unwrap();
        remove_report(&ours, "ghjkmn");
        if !needs::root() {
            return;
        }
        chown(&theirs, Some(65534), Some(65534)).unwrap();
        symlink(&ours, theirs.join("reports")).unwrap();
        remove_report(&theirs.join("reports"), "abcdef");
        assert!(ours.join("abcdef.html").exists());
        remove_report(&ours, "abcdef");
        assert!(!ours.join("abcdef.html").exists());
    }
}
