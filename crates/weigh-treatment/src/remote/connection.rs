//! An ssh connection, with a private directory on the other machine. A shell there removes the directory when
//! its stdin ends, even if `weigh` and `ssh` were killed here.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::handshake::{Handshake, SUBCOMMAND};
use super::lease::Lease;
use super::ssh::Ssh;
use crate::TreatmentError;
use weigh_host::lines::LinesError;
use weigh_host::own_program;
use weigh_host::own_program::Helper;
use weigh_host::said;
use weigh_host::said::{Heard, KEPT_BYTES, Keep};
use weigh_model::shell::command_line;
use weigh_model::workload::clock::PlaceClock;
use weigh_workload::launcher;
use weigh_workload::place::LaunchPlace;

/// A Unix socket's path is limited (unix(7)), and ssh adds to it while it makes one.
const MAX_SOCKET_BYTES: usize = 85;
/// To connect, and for each step of arriving.
const LIMIT: Duration = Duration::from_secs(120);
/// It has the catalogue of workloads in it.
const LONGEST_ANSWER: usize = 4 << 20;

/// The shell script there. It ends when its stdin ends or the lease expires; launchers end when their own
/// stdin ends. It ignores SIGHUP, which a hangup can cause, and SIGPIPE, which its `echo` gets where the
/// connection is lost meanwhile: it has a directory to remove.
const HOLD: &str = r#"umask 077; trap "" HUP INT TERM PIPE; d=$(mktemp -d "${TMPDIR:-/tmp}/weigh-XXXXXXXXXXXX") || exit 1
echo "[\"$d\",\"$(uname -m)\"]"; read -r word && [ "$word" = '"lease"' ] && "$d/weigh" __lease >&2; n=0
until rm -rf "$d" || [ $n -ge 50 ]; do n=$((n+1)); sleep 0.1; done"#;

pub struct Connection {
    /// Before the holder, whose input it holds open.
    lease: Option<Lease>,
    holder: Helper,
    pub place: LaunchPlace,
    pub arrival: Handshake,
    ssh: Ssh,
    socket: PathBuf,
}

impl Connection {
    /// Connects, copies this program, and has it arrive. `socket` is a name in a private directory of here.
    pub fn open(
        ssh: &Ssh,
        socket: &Path,
        interrupted: &AtomicBool,
    ) -> Result<Connection, TreatmentError> {
        let call = Call { ssh, socket, interrupted };
        let name = socket.to_string_lossy();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@,=~".contains(c);
        if name.len() > MAX_SOCKET_BYTES || !name.chars().all(is_plain) {
            let problem = format!(
                "{name} is too long for a socket, or contains characters special to ssh: set TMPDIR to a \
                 different directory"
            );
            return Err(call.unavailable(&problem));
        }
        let (mut holder, directory) = call.hold()?;
        let directory = command_line([&*directory]);
        let program =
            File::open("/proc/self/exe").map_err(|error| call.unavailable(&error.to_string()))?;
        let copy = format!("cat >{directory}/weigh && chmod 700 {directory}/weigh");
        call.run(&copy, Stdio::from(program))?;
        let arrive = format!("{directory}/weigh {SUBCOMMAND} {directory}");
        let said = call.run(&arrive, Stdio::null())?;
        let arrival: Handshake = serde_json::from_str(said.trim()).map_err(|error| {
            call.unavailable(&format!("cannot read the answer of the weigh copied there ({error})"))
        })?;
        let lease =
            holder.lines.send(&"lease").and_then(|()| Lease::keep(holder.lines.outgoing()?));
        let lease = lease.map_err(|error| call.unavailable(&error.to_string()))?;
        let launcher = format!("exec {directory}/weigh {}", launcher::SUBCOMMAND);
        let reached_by = ssh.over(socket, &launcher);
        let scratch = PathBuf::from(directory);
        let executable = arrival.executable.clone();
        let (work_directory, clock) = (scratch.clone(), PlaceClock::Time);
        let place = LaunchPlace { executable, work_directory, scratch, reached_by, clock };
        let (ssh, socket) = (ssh.clone(), socket.to_owned());
        let lease = Some(lease);
        Ok(Connection { lease, holder, place, arrival, ssh, socket })
    }

    /// Starts the copy of this program there, in a hidden role.
    pub fn start_role(&self, role: &str) -> io::Result<Helper> {
        let line = format!("exec {}/weigh {role}", self.place.scratch.display());
        let words = self.ssh.over(&self.socket, &line);
        let mut command = own_program::through(&words[0]);
        command.args(&words[1..]);
        Helper::start_elsewhere(command)
    }

    /// Forwards the local Unix socket `here` to the socket `there` while the connection lasts.
    ///
    /// # Errors
    /// ssh's message. If sshd forbids forwarding, only the first connection to the socket shows it.
    pub fn forward(
        &self,
        here: &Path,
        there: &Path,
        interrupted: &AtomicBool,
    ) -> Result<(), TreatmentError> {
        let call = Call { ssh: &self.ssh, socket: &self.socket, interrupted };
        // ssh leaves that of an earlier connection, and would not replace it.
        let _ = fs::remove_file(here);
        let asked = call.run_words(&self.ssh.forwarding(&self.socket, here, there), Stdio::null());
        match asked? {
            Ok(_) => Ok(()),
            Err(said) => Err(call.unavailable(&said)),
        }
    }

    /// The process that all which goes there passes through.
    pub fn pid(&self) -> u32 {
        self.holder.pid()
    }

    /// Ends the input of what holds the connection, without a wait for its end.
    pub fn let_go(&mut self) {
        // It holds the same pipe open.
        self.lease = None;
        self.holder.let_go();
    }

    pub fn is_lost(&mut self) -> bool {
        self.holder.has_ended()
    }
}

struct Call<'a> {
    ssh: &'a Ssh,
    socket: &'a Path,
    interrupted: &'a AtomicBool,
}

impl Call<'_> {
    fn unavailable(&self, problem: &str) -> TreatmentError {
        let said = problem.lines().map(str::trim).filter(|line| !line.is_empty());
        let said = said.collect::<Vec<_>>().join("; ");
        let advice = self.ssh.advice(&said);
        TreatmentError::Unavailable(format!("{}: {said}{advice}", self.ssh.destination))
    }

    /// The connection that the others share, and the directory at its end.
    fn hold(&self) -> Result<(Helper, String), TreatmentError> {
        let _ = fs::remove_file(self.socket);
        let system = |error: std::io::Error| self.unavailable(&error.to_string());
        let shell = format!("exec {}", command_line(["sh", "-c", HOLD]));
        let words = self.ssh.sharing(self.socket, &shell);
        let mut command = own_program::through(&words[0]);
        command.args(&words[1..]);
        let mut holder = Helper::start_elsewhere(command).map_err(system)?;
        let answer = holder.lines.receive(self.interrupted, Instant::now() + LIMIT);
        let (directory, architecture): (String, String) = answer.map_err(|error| match error {
            LinesError::Interrupted => TreatmentError::Interrupted,
            other => {
                let words = holder.last_words().unwrap_or_else(|| other.to_string());
                self.unavailable(&words)
            }
        })?;
        if architecture != std::env::consts::ARCH {
            return Err(self.unavailable(&format!(
                "that machine is {architecture}, but this weigh is built for {}",
                std::env::consts::ARCH
            )));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        if !directory.starts_with('/') || !directory.chars().all(is_plain) {
            return Err(self.unavailable(
                "its directory for temporary files has special characters in its name: set TMPDIR there"
            ));
        }
        Ok((holder, directory))
    }

    /// Runs a command there to its end; gives what it printed.
    fn run(&self, line: &str, stdin: Stdio) -> Result<String, TreatmentError> {
        self.run_words(&self.ssh.over(self.socket, line), stdin)?.map_err(|said| {
            self.unavailable(&format!(
                "{said}. This weigh uses this machine's C library: that machine needs the same version or a \
                 newer one. Its temporary directory needs free space and must not be mounted noexec"
            ))
        })
    }

    /// Runs a command line and returns its output, or its complaint if it failed.
    fn run_words(
        &self,
        words: &[String],
        stdin: Stdio,
    ) -> Result<Result<String, String>, TreatmentError> {
        let system = |error: std::io::Error| self.unavailable(&error.to_string());
        let mut command = own_program::through(&words[0]);
        command.args(&words[1..]).stdin(stdin);
        let keep = [Keep::First(LONGEST_ANSWER), Keep::Last(KEPT_BYTES)];
        let mut heard = Heard::start(command, keep).map_err(system)?;
        let ended = heard.wait(LIMIT, |heard| {
            !heard.stdout.is_cut() && !self.interrupted.load(Ordering::Relaxed)
        });
        if heard.stdout.is_cut() {
            let most = LONGEST_ANSWER >> 20;
            return Err(self.unavailable(&format!("its answer is longer than {most} MiB")));
        }
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(TreatmentError::Interrupted);
        }
        match ended.map_err(|error| self.unavailable(&format!("no answer: {error}")))?.success() {
            true => Ok(Ok(heard.stdout.text())),
            false => Ok(Err(said::words(heard.stderr()).trim_end_matches('.').to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_connection_that_is_lost_at_once_leaves_no_directory() {
        let home = tempfile::tempdir().unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        // Rust ignores SIGPIPE, and a shell cannot change what was ignored when it began.
        let mut shell = Command::new("env");
        shell.args(["--default-signal=PIPE", "sh", "-c", HOLD]).env("TMPDIR", home.path());
        let status = shell.stdin(Stdio::null()).stdout(writer).status().unwrap();
        assert!(status.code().is_some(), "{status}");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }
}
