//! Command line that the kernel shows for a worker, to prove an arm that is a command.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use crate::setup::{Act, look};

/// Looks at the command line of each worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandLineSeen;

impl Act for CommandLineSeen {
    fn holds(&self) -> bool {
        true
    }

    fn look(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        look::command_line(worker, seen)
    }
}
