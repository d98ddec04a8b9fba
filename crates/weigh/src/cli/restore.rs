//! `weigh restore`: undoes what a dead experiment left behind, where its guard died too.

use std::path::PathBuf;

use clap::Args;

use super::output;
use weigh_host::undo::left_behind::{LeftBehind, restore_left_behind};
use weigh_treatment::boot;
use weigh_treatment::boot::state::is_in_one;
use weigh_treatment::undoings;

const EXAMPLES: &str = "\
Example:
  sudo weigh restore       after a crash; changes nothing if all is as it was";

/// Undo the changes of an experiment that was killed
///
/// If `weigh` is killed, a guard process restores the system. Use this command if the guard was killed as
/// well. Every experiment also does this before it starts. `weigh restore` also ends an experiment that
/// reboots this machine (boot:…).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RestoreArgs {
    /// Where the settings are that `weigh doctor --fix --root DIR` changed
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

impl RestoreArgs {
    pub fn run(self) -> Result<u8, String> {
        let LeftBehind { searched, restored } = restore_left_behind(&self.root, &undoings())?;
        let mut left = Vec::new();
        let boots = boot::end().unwrap_or_else(|problem| {
            left.push(problem);
            None
        });
        if let Some(id) = &boots {
            output::print(&format!(
                "Ended the boots of experiment {id}; what was measured is kept (weigh show {id}).\n"
            ))?;
            if is_in_one() {
                output::note("This boot is still one of them: reboot for the normal entry.");
            }
        }
        if restored.is_empty() && boots.is_none() && left.is_empty() {
            let searched: Vec<String> =
                searched.iter().map(|directory| directory.display().to_string()).collect();
            output::print(&format!("Nothing was left behind in {}.\n", searched.join(", ")))?;
            if !rustix::process::geteuid().is_root() {
                output::note("What root's experiments left is put back by `sudo weigh restore`.");
            }
        }
        for one in restored {
            match one.result {
                Ok(()) => {
                    output::print(&format!("Put back what {} held.\n", one.journal.display()))?
                }
                Err(problem) => left.push(format!("{}: {problem}", one.journal.display())),
            }
        }
        if left.is_empty() { Ok(0) } else { Err(left.join("\n")) }
    }
}
