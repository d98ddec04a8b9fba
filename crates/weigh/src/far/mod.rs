//! Machines that run `weigh agent`: how one is called, what is said first, and the lines that go over it.
//!
//! An agent is reached as another program would be: a hidden role of `weigh` connects, and passes its stdin
//! and stdout on (`carry`). What goes over that are the orders of a launcher or of a testbed, as they are.
//! For COMM, another role listens on a Unix socket in place of a peer (`relay`). Only these roles and the
//! agent know that there is a network in between.

pub mod carry;
pub mod dial;
pub mod interface;
pub mod pump;
pub mod relay;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use channel::Secret;
use serde::{Deserialize, Serialize};

use weigh_host::chance;

use trust::user_file;

/// Where an agent listens and is called, unless a port is named: the year of the paper.
pub const USUAL_PORT: u16 = 1996;
/// Both ends are to be the same; with it comes what this machine's orders look like.
pub const VERSION: &str = concat!("weigh ", env!("CARGO_PKG_VERSION"), ", agents 1");
const LONGEST_TOKEN_FILE: u64 = 4096;

/// What a caller says first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    pub version: String,
    /// By chance, and the same for all that belongs to one experiment.
    pub experiment: String,
    pub wants: CallFor,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallFor {
    /// An experiment, which lasts as long as this connection.
    Experiment,
    /// The agent's side of the links.
    Testbed,
    /// A launcher that starts the peer.
    Launcher,
    /// The socket of the peer, once.
    Peer,
}

/// What an agent says to it; what comes then is what was wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Welcome {
    Experiment(Box<Premises>),
    Connected,
    /// Why not, in a sentence.
    Refused(String),
}

/// What an agent has for an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Premises {
    /// In one line.
    pub machine: String,
    /// A private directory, removed afterwards.
    pub directory: PathBuf,
    /// The workloads in it.
    pub executable: PathBuf,
    /// The network interface that the call came over.
    pub interface: String,
    /// Its process.
    pub agent: u32,
}

/// An agent, as who calls it needs to know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// `HOST` or `HOST:PORT`.
    pub address: String,
    pub token_file: PathBuf,
}

/// Reads a token file, which nobody else may read: root's or our own.
///
/// # Errors
/// A sentence that says what to do.
pub fn read_secret(path: &Path) -> Result<Secret, String> {
    let shown = path.display();
    let wrong = |error: std::io::Error| format!("the token file {shown}: {error}");
    let file = user_file::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!(
            "there is no token file {shown}: `weigh agent --new-token {shown}` makes one; copy it to the \
             other machines"
        ),
        _ => wrong(error),
    })?;
    let metadata = file.metadata().map_err(wrong)?;
    let own = rustix::process::geteuid().as_raw();
    if metadata.mode() & 0o077 != 0 || ![0, own].contains(&metadata.uid()) {
        return Err(format!(
            "the token file {shown} can be read by others: `chmod 600 {shown}`, and let it belong to who \
             runs weigh"
        ));
    }
    let text = user_file::read_text(path, LONGEST_TOKEN_FILE).map_err(wrong)?;
    Secret::of_token(&text).map_err(|error| format!("the token file {shown}: {error}"))
}

/// A new experiment's.
///
/// # Errors
/// Where the kernel gives no random numbers.
pub fn new_experiment() -> io::Result<String> {
    Ok(format!("{:032x}", chance::large()?))
}
