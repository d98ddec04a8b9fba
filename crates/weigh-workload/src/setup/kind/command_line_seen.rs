//! What an arm runs in place of what it is asked to: the arm *is* a command.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use crate::setup::{Act, look};

/// A command, word by word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunCommand {
    pub argv: Vec<String>,
}

impl Act for RunCommand {
    fn holds(&self) -> bool {
        true
    }

    fn command_line(&self, _: Vec<String>) -> Vec<String> {
        self.argv.clone()
    }

    fn look(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        look::command_line(worker, seen)
    }
}
