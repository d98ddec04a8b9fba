//! A hidden role of `weigh`: one connection to an agent, with its stdin and stdout at the other end of it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;

use rustix::event::poll;

use super::dial::{Dialled, dial};
use super::pump::{Flow, Pump};
use super::{Agent, CallFor, Hello, VERSION, Welcome, read_secret};
use weigh_host::own_program;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__carry";

/// The command that reaches this at an agent.
pub fn command(agent: &Agent, experiment: &str, wants: CallFor) -> Command {
    let mut command = own_program::command(SUBCOMMAND);
    let wants = serde_json::to_string(&wants).expect("a word");
    command.arg(&agent.address).arg(&agent.token_file).args([experiment, &wants]);
    command
}

/// Connects, and carries what comes until both ends have ended. What an experiment begins with is a line on
/// stdout; of all else nothing is there but what the agent's program says.
///
/// # Errors
/// Why it was refused, or that the connection was lost.
pub fn run(arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let arguments: Vec<OsString> = arguments.collect();
    let [address, token_file, experiment, wants] = arguments.as_slice() else {
        return Err("it needs an address, a token file, an experiment, and what is wanted".into());
    };
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let wants: CallFor =
        serde_json::from_str(&text(wants)).map_err(|error| format!("what is wanted: {error}"))?;
    let hello = Hello { version: VERSION.into(), experiment: text(experiment), wants };
    let dialled = read_secret(&PathBuf::from(token_file))
        .and_then(|secret| dial(&text(address), &secret, &hello));
    let dialled = match (dialled, wants) {
        // Who waits for this line passes it on.
        (Err(problem), CallFor::Experiment) => return print(&Welcome::Refused(problem)),
        (dialled, _) => dialled?,
    };
    let Dialled { stream, channel, welcome } = dialled;
    if wants == CallFor::Experiment {
        print(&welcome)?;
    } else if let Welcome::Refused(problem) = welcome {
        return Err(format!("{}: {problem}", text(address)));
    }
    let ends = [io::stdin().as_fd(), io::stdout().as_fd()].map(|end| end.try_clone_to_owned().ok());
    let [source, sink] = ends;
    let system = |error: io::Error| error.to_string();
    let mut pump = Pump::new(stream, channel, (source, sink), None).map_err(system)?;
    loop {
        match pump.step() {
            Flow::GoesOn => {}
            Flow::Ended => return Ok(()),
            Flow::Lost(problem) => return Err(format!("{}: {problem}", text(address))),
        }
        match poll(&mut pump.interests(), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(system(error.into())),
        }
    }
}

fn print(welcome: &Welcome) -> Result<(), String> {
    let line = serde_json::to_string(welcome).map_err(|error| error.to_string())?;
    writeln!(io::stdout(), "{line}").map_err(|error| error.to_string())
}
