//! A hidden role of `weigh`: a Unix socket of packets that stands for the peer of another machine. Each
//! connection to it is one to the agent there. Between the messages that begin and end a cell, all is still.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use channel::Secret;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};

use super::dial::{Dialled, dial};
use super::pump::{Flow, Pump};
use super::{Agent, CallFor, Hello, VERSION, Welcome, read_secret};
use weigh_host::own_program;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__relay";
/// As COMM has at most.
const MOST_CONNECTIONS: i32 = 64;
/// Below the wires', and above what W_test does: who is told to begin is told at once.
const PRIORITY: i32 = 40;

/// The command that has a socket of this path stand for the peer of an agent.
pub fn command(agent: &Agent, experiment: &str, socket: &Path) -> Command {
    let mut command = own_program::command(SUBCOMMAND);
    command.arg(&agent.address).arg(&agent.token_file).arg(experiment).arg(socket);
    command
}

/// Says `"ready"` when it listens, and ends at the end of its input.
///
/// # Errors
/// Where it cannot listen.
pub fn run(arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let arguments: Vec<OsString> = arguments.collect();
    let [address, token_file, experiment, socket] = arguments.as_slice() else {
        return Err("it needs an address, a token file, an experiment, and a path".into());
    };
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let system = |error: io::Error| format!("{}: {error}", Path::new(socket).display());
    let relay = Relay {
        address: text(address),
        secret: read_secret(&PathBuf::from(token_file))?,
        hello: Hello {
            version: VERSION.into(),
            experiment: text(experiment),
            wants: CallFor::Peer,
        },
        listener: listen_at(Path::new(socket)).map_err(system)?,
    };
    // Without it a cell begins later, by what a busy CPU makes it wait.
    let _ = wire::be_real_time(PRIORITY);
    writeln!(io::stdout(), "\"ready\"").map_err(|error| error.to_string())?;
    let served = relay.serve().map_err(system);
    let _ = fs::remove_file(socket);
    served
}

fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    bind(&listener, &SocketAddrUnix::new(path)?)?;
    listen(&listener, MOST_CONNECTIONS)?;
    Ok(listener)
}

struct Relay {
    address: String,
    secret: Secret,
    hello: Hello,
    listener: OwnedFd,
}

impl Relay {
    fn serve(&self) -> io::Result<()> {
        let stdin = io::stdin();
        let mut pumps: Vec<Pump> = Vec::new();
        loop {
            let mut ready = vec![
                PollFd::new(&stdin, PollFlags::IN),
                PollFd::new(&self.listener, PollFlags::IN),
            ];
            ready.extend(pumps.iter().flat_map(Pump::interests));
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let [is_over, is_called] = [0, 1].map(|at: usize| !ready[at].revents().is_empty());
            if is_over {
                return Ok(());
            }
            pumps.retain_mut(|pump| pump.step() == Flow::GoesOn);
            if is_called {
                pumps.extend(self.accept()?);
            }
        }
    }

    /// A connection to the agent for one to here. Where there is none, the peer has ended, for who called;
    /// why is on stderr.
    fn accept(&self) -> io::Result<Option<Pump>> {
        let packets = accept_with(&self.listener, SocketFlags::CLOEXEC)?;
        match dial(&self.address, &self.secret, &self.hello) {
            Ok(Dialled { stream, channel, welcome: Welcome::Connected }) => {
                let ends = (Some(packets.as_fd().try_clone_to_owned()?), Some(packets));
                Ok(Some(Pump::new(stream, channel, ends, None)?))
            }
            Ok(Dialled { welcome: Welcome::Refused(problem), .. }) => Ok(tell(&problem)),
            Ok(_) => Ok(tell("it answers something else")),
            Err(problem) => Ok(tell(&problem)),
        }
    }
}

fn tell<T>(problem: &str) -> Option<T> {
    eprintln!("{}", weigh_model::printable::line(&format!("weigh: the peer: {problem}")));
    None
}
