//! Variables in the environment of what every worker executes.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use crate::setup::{Act, look};

/// These are added; with none, its environment is only looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Variables {
    pub set: Vec<(String, String)>,
}

impl Variables {
    /// The whole environment of the program as it was executed, as in `/proc/PID/environ`; absent where it
    /// ended before anybody could look.
    pub const SEEN: &str = "environment";

    pub fn value<'a>(seen: &'a str, name: &str) -> Option<&'a str> {
        seen.split('\0').find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
    }
}

impl Act for Variables {
    fn holds(&self) -> bool {
        true
    }

    fn environment(&self) -> Vec<(String, String)> {
        self.set.clone()
    }

    fn look(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        if let Some(found) = look::of_program(worker, "environ")? {
            seen.insert(Variables::SEEN.into(), String::from_utf8_lossy(&found).into_owned());
        }
        Ok(())
    }
}
