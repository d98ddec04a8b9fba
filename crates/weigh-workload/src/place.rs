//! Where the launcher of an arm runs: which workloads it launches, in which directory, and how one talks to
//! it.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::executable::Executable;
use super::launcher::{Launcher, LauncherError, SUBCOMMAND};
use super::setup::Setup;
use super::setup::kind::enter_root::EnterRoot;
use weigh_host::own_program;
use weigh_host::own_program::Helper;
use weigh_model::workload::clock::PlaceClock;

/// Paths are as the launcher sees them.
#[derive(Clone, Debug)]
pub struct LaunchPlace {
    pub executable: Executable,
    /// A private directory, removed after the experiment.
    pub scratch: PathBuf,
    /// Where workloads are executed and make their files.
    pub work_directory: PathBuf,
    /// The command that reaches a launcher elsewhere, and passes its stdin and stdout on; empty where it is
    /// this very program.
    pub reached_by: Vec<String>,
    pub clock: PlaceClock,
}

impl LaunchPlace {
    /// This machine as it is, with the workloads unpacked into this directory.
    pub fn here(scratch: PathBuf) -> Result<LaunchPlace, String> {
        let executable = Executable::unpack(&scratch)?;
        let work_directory = scratch.clone();
        let (reached_by, clock) = (Vec::new(), PlaceClock::Time);
        Ok(LaunchPlace { executable, scratch, work_directory, reached_by, clock })
    }

    /// Returns true if the place is this machine.
    pub fn is_here(&self) -> bool {
        self.reached_by.is_empty()
    }

    /// Starts a launcher there, and has it take its set-up.
    pub fn start_launcher(
        &self,
        setup: &Setup,
        interrupted: &AtomicBool,
    ) -> Result<Launcher, LauncherError> {
        let mut launcher = self.begin_launcher(setup)?;
        launcher.settle(interrupted)?;
        Ok(launcher)
    }

    /// Starts a launcher there, without waiting until it has taken its set-up.
    ///
    /// # Errors
    /// As [`Launcher::begun`].
    pub fn begin_launcher(&self, setup: &Setup) -> Result<Launcher, LauncherError> {
        let setup = match setup.get::<EnterRoot>() {
            Some(root) => &setup.clone().with(root.clone().sharing(&self.work_directory)),
            None => setup,
        };
        let helper = match self.reached_by.split_first() {
            None => Helper::start(own_program::command(SUBCOMMAND)),
            Some((program, arguments)) => {
                let mut command = own_program::through(program);
                command.args(arguments);
                Helper::start_elsewhere(command)
            }
        };
        Launcher::begun(helper?, setup)
    }
}
