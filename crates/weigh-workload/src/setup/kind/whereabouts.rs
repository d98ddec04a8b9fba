//! Tells on which machine a worker runs, and through which connection, for the proof.

use std::collections::BTreeMap;
use std::{env, fs, io};

use serde::{Deserialize, Serialize};

use crate::setup::Act;

/// As the launcher sees them: its workers are its own children.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Whereabouts {}

impl Whereabouts {
    /// The boot and the connection, as one word; the latter is empty where there is none.
    pub const SEEN: &str = "whereabouts";

    /// Returns the two addresses of the connection in such a word: where from, and where to.
    pub fn addresses(word: &str) -> Option<[&str; 2]> {
        let words: Vec<&str> = word.split_whitespace().collect();
        match words.as_slice() {
            [_, .., from, _, to, _] if words.len() >= 6 => Some([from, to]),
            _ => None,
        }
    }

    pub fn here() -> io::Result<String> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let name = fs::read_to_string("/proc/sys/kernel/hostname")?;
        let connection = env::var("SSH_CONNECTION").unwrap_or_default();
        Ok(format!("{} {} {connection}", boot.trim(), name.trim()))
    }
}

impl Act for Whereabouts {
    fn look(&self, _: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        seen.insert(Whereabouts::SEEN.into(), Whereabouts::here()?);
        Ok(())
    }
}
