//! What surrounds a sample and is made afresh for it, beside the worker itself: plain data, which the
//! launcher of its arm takes.

use std::path::PathBuf;

use super::member::Raise;
use super::setup::Setup;

/// One instance of it. The next sample of the arm has another, so that no server's or file system's luck is
/// taken for an effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instance {
    /// What its launcher and all that this starts have, before the steps of the treatments.
    pub setup: Setup,
    /// Processes that the launcher starts in this order, and ends in the other. They stand still while
    /// another arm is measured. Their names are their own among those of an arm.
    pub members: Vec<Raise>,
    /// What a workload or command is told: an address, a directory.
    pub environment: Vec<(String, String)>,
    /// Where workloads are executed and make their files, in place of the arm's scratch directory. A command
    /// stays in the directory of its user.
    pub work_directory: Option<PathBuf>,
    /// Whether it has programs or libraries of this system, which are to run in no other root file system.
    pub is_of_this_system: bool,
}

impl Instance {
    /// Both; what only one can say, the second says.
    pub fn joined(mut self, other: Instance) -> Instance {
        self.setup = self.setup.overridden_by(other.setup);
        self.members.extend(other.members);
        self.environment.extend(other.environment);
        self.work_directory = other.work_directory.or(self.work_directory);
        self.is_of_this_system |= other.is_of_this_system;
        self
    }
}
