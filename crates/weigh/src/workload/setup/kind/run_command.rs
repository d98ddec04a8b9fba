//! What an arm runs in place of what it is asked to: the arm *is* a command.

use serde::{Deserialize, Serialize};

use crate::workload::setup::Act;

/// A command, word by word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunCommand {
    pub argv: Vec<String>,
}

impl Act for RunCommand {
    fn command_line(&self, _: Vec<String>) -> Vec<String> {
        self.argv.clone()
    }
}
