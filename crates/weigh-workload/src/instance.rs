//! Surroundings that are made anew for each sample, apart from the worker itself.
//!
//! They are plain data, which the launcher of the arm takes.

use std::path::PathBuf;

use super::member::StartServer;
use super::setup::Setup;
use super::setup::kind::private_mount::PrivateMount;

/// One instance of it. The next sample of the arm has another, so that no server's or file system's luck is
/// taken for an effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instance {
    /// Set-up of its launcher and of all that this starts, before the steps of the treatments.
    pub setup: Setup,
    /// Processes that the launcher starts in this order, and ends in the other. They stand still while
    /// another arm is measured. Their names are their own among those of an arm.
    pub members: Vec<StartServer>,
    /// Variables for a workload or command, such as an address or a directory.
    pub environment: Vec<(String, String)>,
    /// Where workloads are executed and make their files, in place of the arm's scratch directory. A command
    /// stays in the directory of its user.
    pub work_directory: Option<PathBuf>,
    /// Directories of servers' data, which move to the file system of an arm that has its own.
    pub data: Vec<PathBuf>,
    /// True if it has programs or libraries of this system, which must not run in another root.
    pub is_of_this_system: bool,
}

impl Instance {
    /// Has the data of its servers on the file system that it mounts, if it mounts one.
    pub fn moving_data(mut self) -> Instance {
        if let Some(mount) = self.setup.get::<PrivateMount>().cloned() {
            let data = self.data.drain(..).collect();
            self.setup = self.setup.with(PrivateMount { data, ..mount });
        }
        self
    }

    /// Combines two instances. If only one value can hold, `other` decides.
    pub fn joined(mut self, other: Instance) -> Instance {
        self.setup = self.setup.overridden_by(other.setup);
        self.members.extend(other.members);
        self.environment.extend(other.environment);
        self.data.extend(other.data);
        self.work_directory = other.work_directory.or(self.work_directory);
        self.is_of_this_system |= other.is_of_this_system;
        self
    }
}
