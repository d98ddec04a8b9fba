//! What this machine is: the facts that a result means nothing without.

use serde::{Deserialize, Serialize};

/// Facts of the machine, read once at the start of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub hostname: String,
}
