//! `weigh agent`: lets another machine's `weigh net` have this one as a black box.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use jiff::Zoned;

use super::{INTERRUPTED, exit_status, output, value};
use crate::agent::server::{AgentLimits, AgentServer};
use crate::far::{dial, read_secret};
use crate::treatment::undoings;
use trust::allowed::executable;
use weigh_host::chance;
use weigh_host::interruption::listen_for_signals;
use weigh_host::undo::left_behind::put_back_what_was_left;
use weigh_model::printable;

const EXAMPLES: &str = "\
Examples:
  weigh agent --new-token lab.token
      Make a token; copy the file to all three machines, with scp -p.
  sudo weigh agent --listen 10.1.0.2 --token-file lab.token
      Be a black box, until Ctrl-C. Then, on the machine that is weighed:
  sudo weigh net --active 10.1.0.2 --passive 10.1.0.3 --token-file lab.token

Exit status: 0 done, 2 error, 130 interrupted.";

/// Let another machine's `weigh net` use this one as a black box
///
/// Whoever has the token can have this machine send and receive test payload, over an interface made for it
/// on the network from which the call came, and nothing else. There is one experiment at a time, and nothing
/// is left when it ends. docs/net.md says what this takes, docs/security.md what it trusts.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AgentArgs {
    /// The address to listen at, ADDRESS or ADDRESS:PORT; payload goes over the interface that has it
    /// [default port: 1996]
    #[arg(long, value_name = "ADDRESS", required_unless_present = "new_token")]
    listen: Option<String>,
    /// The token that callers must have; nobody but the file's owner may be able to read it
    #[arg(long, value_name = "FILE", required_unless_present = "new_token")]
    token_file: Option<PathBuf>,
    /// Make a token file, and do nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "token_file", "longest"])]
    new_token: Option<PathBuf>,
    /// End an experiment that takes longer
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = value::duration)]
    longest: Duration,
}

impl AgentArgs {
    pub fn run(self) -> Result<u8, String> {
        if let Some(file) = &self.new_token {
            return make_token(file);
        }
        let (Some(address), Some(file)) = (&self.listen, &self.token_file) else {
            return Err("give --listen and --token-file".into());
        };
        let secret = read_secret(file)?;
        let here = dial::resolve(address)?;
        let wrong = |error: std::io::Error| format!("cannot listen on {address}: {error}");
        let listener = TcpListener::bind(here.as_slice()).map_err(wrong)?;
        let interrupted = listen_for_signals()?;
        let at = listener.local_addr().map_err(wrong)?;
        put_back_what_was_left(Path::new("/"), &undoings(), &mut output::note)?;
        output::print(&format!("Listening on {at}; Ctrl-C ends it.\n"))?;
        let mut log = |sentence: &str| {
            let now = Zoned::now().strftime("%F %T").to_string();
            output::note(&printable::line(&format!("{now} {sentence}")));
        };
        let mut server = AgentServer::new(listener, secret, AgentLimits { longest: self.longest })
            .map_err(wrong)?;
        server.serve(&interrupted, &mut log).map_err(|error| error.to_string())?;
        // Where it could not be put back at the time, perhaps it can now.
        let restored = put_back_what_was_left(Path::new("/"), &undoings(), &mut output::note);
        if let Err(left) = &restored {
            output::problem(left);
        }
        Ok(exit_status(restored.is_ok(), INTERRUPTED))
    }
}

fn make_token(file: &Path) -> Result<u8, String> {
    let make = || {
        let token = format!("{:032x}{:032x}\n", chance::large()?, chance::large()?);
        // As root, refuse a directory that others can change or redirect by a link.
        let directory = file.parent().filter(|it| !it.as_os_str().is_empty());
        let directory = executable(directory.unwrap_or(Path::new(".")))?;
        let name = file.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
        let path = directory.join(name);
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        made?.write_all(token.as_bytes())
    };
    make().map_err(|error: std::io::Error| format!("{}: {error}", file.display()))?;
    output::print(&format!("{} has a new token, which only you can read.\n", file.display()))?;
    Ok(0)
}
