//! Lines that a user has run around the launches, as with hyperfine: never timed, and never
//! treated.

use serde::{Deserialize, Serialize};

use weigh_model::ids::ArmId;

/// Lines for `/bin/sh`, in the directory of the command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hooks {
    /// Before every launch of the command, warm-ups too.
    pub prepare: Option<String>,
    /// Lines before every launch of each arm, if the arms differ.
    pub prepare_arms: Vec<String>,
    /// Once, before the first launch of a set.
    pub setup: Option<String>,
    /// Once, after the last launch of a set.
    pub cleanup: Option<String>,
    /// Launches in each arm before the first pair, which are not kept.
    pub warm_ups: u32,
}

impl Hooks {
    /// Returns true if there is any line to run around the command.
    pub fn has_lines(&self) -> bool {
        self.has_prepare() || [&self.setup, &self.cleanup].into_iter().any(Option::is_some)
    }

    /// Returns true if a line runs between two launches.
    pub fn has_prepare(&self) -> bool {
        self.prepare.is_some() || !self.prepare_arms.is_empty()
    }

    /// Returns the line to run before each launch in this arm.
    pub fn prepare_of(&self, arm: ArmId) -> Option<&String> {
        self.prepare_arms.get(arm.0).or(self.prepare.as_ref())
    }
}
