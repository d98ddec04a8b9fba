//! Where the launcher of an arm runs: which workloads it launches, in which directory, and how one talks to
//! it.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::executable::Executable;
use super::launcher::{Launcher, LauncherError, SUBCOMMAND};
use super::setup::Setup;
use crate::own_program;

/// This machine, with what was unpacked for an experiment.
pub struct LaunchPlace {
    pub executable: Executable,
    /// A private directory, removed after the experiment.
    pub scratch: PathBuf,
}

impl LaunchPlace {
    /// Starts a launcher there, which is this very program, and has it take its set-up.
    ///
    /// # Errors
    /// As [`Launcher::start`].
    pub fn start_launcher(
        &self,
        setup: &Setup,
        interrupted: &AtomicBool,
    ) -> Result<Launcher, LauncherError> {
        Launcher::start(own_program::command(SUBCOMMAND), setup, interrupted)
    }
}
