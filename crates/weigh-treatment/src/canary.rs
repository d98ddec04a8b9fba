//! A file that each worker reads before its program, and its launcher after the worker's end: a listener for
//! events of files must hear of both.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::{ApplyContext, Launch, TreatmentError};
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::watched_file::WatchedFile;

/// The file, and where the work's own files may be.
#[derive(Default)]
pub struct Canary {
    pub file: PathBuf,
    pub of_workloads: PathBuf,
    pub of_commands: PathBuf,
    /// Devices of the directories, as text.
    devices: Vec<String>,
}

impl Canary {
    pub fn prepare(context: &ApplyContext) -> Result<Canary, TreatmentError> {
        let file = context.place.scratch.join("watched");
        let unknown = |error: io::Error| {
            TreatmentError::Unavailable(format!("cannot look at the directories to watch: {error}"))
        };
        // Commands run in the directory of their user.
        let of_commands = std::env::current_dir().map_err(unknown)?;
        let of_workloads = context.place.work_directory.clone();
        let device =
            |directory: &PathBuf| fs::metadata(directory).map(|found| found.dev().to_string());
        let devices = [&of_workloads, &of_commands]
            .into_iter()
            .map(device)
            .collect::<io::Result<_>>()
            .map_err(unknown)?;
        fs::write(&file, "read to prove that a listener hears of it\n").map_err(|error| {
            TreatmentError::Unavailable(format!("cannot write {}: {error}", file.display()))
        })?;
        Ok(Canary { file, of_workloads, of_commands, devices })
    }

    pub fn setup(&self) -> Setup {
        Setup::default().with(WatchedFile { file: self.file.clone() })
    }

    /// The process that read the file after the worker's end.
    pub fn reader_afterwards(launch: &Launch) -> Result<u32, TreatmentError> {
        let reader = launch.launched.seen(WatchedFile::READER_AFTERWARDS)?;
        reader.parse().map_err(|_| {
            TreatmentError::NotInForce(format!("the launcher's process number is not {reader}"))
        })
    }

    /// Checks that the worker was where the listener, of this part of the kernel, can hear it.
    pub fn check_device(&self, launch: &Launch, sender: &str) -> Result<(), TreatmentError> {
        let device = launch.launched.seen(WatchedFile::DEVICE)?;
        match self.devices.iter().any(|known| known == device) {
            true => Ok(()),
            false => Err(TreatmentError::NoInstance(format!(
                "its directory is on a file system that {sender} did not mark, such as one of `fs:` or \
                 `rootfs:`, so the listener would not hear it"
            ))),
        }
    }
}
