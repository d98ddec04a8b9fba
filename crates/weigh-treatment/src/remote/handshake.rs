//! First step of `weigh` on another machine.
//!
//! It unpacks the workloads next to itself, and reports where it is.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use weigh_model::facts::Facts;
use weigh_workload::executable::Executable;
use weigh_workload::setup::kind::whereabouts::Whereabouts;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__arrival";

/// Findings of `weigh` on arrival.
#[derive(Debug, Serialize, Deserialize)]
pub struct Handshake {
    pub executable: Executable,
    pub machine: Facts,
    pub whereabouts: String,
}

/// Unpacks into the directory that it is told, and prints a line of JSON.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let directory: PathBuf = arguments.next().ok_or("this subcommand takes a directory")?.into();
    writeln!(io::stdout(), "{}", arrive(&directory)?).map_err(|error| error.to_string())
}

fn arrive(directory: &Path) -> Result<String, String> {
    let arrival = Handshake {
        executable: Executable::unpack(directory)?,
        machine: weigh_host::machine::facts::read(),
        whereabouts: Whereabouts::here().map_err(|error| error.to_string())?,
    };
    serde_json::to_string(&arrival).map_err(|error| error.to_string())
}
