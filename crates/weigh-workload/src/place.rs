//! Where the launcher of an arm runs: which workloads it launches, in which directory, and how one talks to
//! it.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::executable::Executable;
use super::launcher::{Launcher, LauncherError, SUBCOMMAND};
use super::setup::Setup;
use super::setup::kind::enter_root::EnterRoot;
use weigh_host::own_program;
use weigh_host::own_program::Helper;
use weigh_host::undo::scratch;
use weigh_model::workload::clock::PlaceClock;

/// Name of the work directory in a scratch directory.
const WORK: &str = "work";

/// Paths are as the launcher sees them.
#[derive(Clone, Debug)]
pub struct LaunchPlace {
    pub executable: Executable,
    /// A private directory, removed after the experiment.
    pub scratch: PathBuf,
    /// Where workloads are executed and make their files; in `scratch`, unless the arm works elsewhere.
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
        let work_directory = work_directory(&scratch)?;
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

/// Makes the directory in which each worker makes a directory for its files.
///
/// It is [spread](scratch::spread), so the files of a sample are far from those that earlier samples deleted.
fn work_directory(scratch: &Path) -> Result<PathBuf, String> {
    let directory = scratch.join(WORK);
    scratch::create(&directory)
        .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    scratch::spread(&directory);
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{Mode, OFlags, ioctl_getflags, open};

    use super::*;

    fn flags(directory: &Path) -> Option<rustix::fs::IFlags> {
        let opened = open(directory, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        ioctl_getflags(&opened).ok()
    }

    #[test]
    fn workers_work_in_a_private_directory_that_is_spread() {
        let scratch = tempfile::tempdir().unwrap();
        let spread = scratch.path().join("spread");
        scratch::create(&spread).unwrap();
        scratch::spread(&spread);
        let place = LaunchPlace::here(scratch.path().to_owned()).unwrap();
        assert_eq!(place.work_directory, scratch.path().join(WORK));
        assert_eq!(flags(&place.work_directory), flags(&spread));
        assert_eq!(place.work_directory.metadata().unwrap().mode() & 0o777, 0o700);
        let again = LaunchPlace::here(scratch.path().to_owned()).unwrap_err();
        assert!(again.contains("work: File exists"), "{again}");
    }
}
