//! A connection, with a private directory at its other end. A shell there holds the directory as long as its
//! input lasts, and removes it at the end, however that came: also when all is killed here.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::arrival::{Arrival, SUBCOMMAND};
use super::ssh::Ssh;
use crate::lines::LinesError;
use crate::orphans;
use crate::own_program::{self, Helper};
use crate::shell::command_line;
use crate::treatment::TreatmentError;
use crate::workload::clock::PlaceClock;
use crate::workload::launcher;
use crate::workload::place::LaunchPlace;

/// A Unix socket's path is limited (unix(7)), and ssh adds to it while it makes one.
const MAX_SOCKET_BYTES: usize = 85;
/// To connect, and for each step of arriving.
const LIMIT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(5);

/// It ends at the end of its input, and launchers there end at the end of theirs. Who hangs up sends SIGHUP.
const HOLD: &str = r#"umask 077; trap "" HUP INT TERM; d=$(mktemp -d "${TMPDIR:-/tmp}/weigh-XXXXXXXXXXXX") || exit 1
echo "[\"$d\",\"$(uname -m)\"]"; cat >/dev/null; n=0
until rm -rf "$d" || [ $n -ge 50 ]; do n=$((n+1)); sleep 0.1; done"#;

pub struct Connection {
    holder: Helper,
    pub place: LaunchPlace,
    pub arrival: Arrival,
}

impl Connection {
    /// Connects, copies this program, and has it arrive. `socket` is a name in a private directory of here.
    ///
    /// # Errors
    /// What ssh said, and what to do; or what that machine lacks; or that the user gave up.
    pub fn open(
        ssh: &Ssh,
        socket: &Path,
        interrupted: &AtomicBool,
    ) -> Result<Connection, TreatmentError> {
        let call = Call { ssh, socket, interrupted };
        if socket.as_os_str().len() > MAX_SOCKET_BYTES {
            let problem =
                format!("{} is too long for a socket: set TMPDIR to another", socket.display());
            return Err(call.unavailable(&problem));
        }
        let (holder, directory) = call.hold()?;
        let directory = command_line([&*directory]);
        let program =
            File::open("/proc/self/exe").map_err(|error| call.unavailable(&error.to_string()))?;
        let copy = format!("cat >{directory}/weigh && chmod 700 {directory}/weigh");
        call.run(&copy, Stdio::from(program))?;
        let arrive = format!("{directory}/weigh {SUBCOMMAND} {directory}");
        let said = call.run(&arrive, Stdio::null())?;
        let arrival: Arrival = serde_json::from_str(said.trim()).map_err(|error| {
            call.unavailable(&format!("it does not say what it found ({error})"))
        })?;
        let launcher = format!("exec {directory}/weigh {}", launcher::SUBCOMMAND);
        let reached_by = ssh.over(socket, &launcher);
        let scratch = PathBuf::from(directory);
        let executable = arrival.executable.clone();
        let (work_directory, clock) = (scratch.clone(), PlaceClock::Time);
        let place = LaunchPlace { executable, work_directory, scratch, reached_by, clock };
        Ok(Connection { holder, place, arrival })
    }

    /// Whether it has ended.
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
        let mut said = tempfile::tempfile().map_err(system)?;
        let shell = format!("exec {}", command_line(["sh", "-c", HOLD]));
        let words = self.ssh.sharing(self.socket, &shell);
        let mut command = own_program::through(&words[0]);
        command.args(&words[1..]).stderr(said.try_clone().map_err(system)?);
        let mut holder = Helper::start(command).map_err(system)?;
        let answer = holder.lines.receive(self.interrupted, Instant::now() + LIMIT);
        let (directory, architecture): (String, String) = answer.map_err(|error| match error {
            LinesError::Interrupted => TreatmentError::Interrupted,
            other => {
                let words = text(&mut said);
                self.unavailable(if words.is_empty() { other.to_string() } else { words }.as_str())
            }
        })?;
        if architecture != std::env::consts::ARCH {
            return Err(self.unavailable(&format!(
                "that machine is {architecture}, and this weigh is for {}",
                std::env::consts::ARCH
            )));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        if !directory.starts_with('/') || !directory.chars().all(is_plain) {
            return Err(self.unavailable("its directory for temporary files has an unusual name"));
        }
        Ok((holder, directory))
    }

    /// Runs a command there to its end; gives what it printed.
    fn run(&self, line: &str, stdin: Stdio) -> Result<String, TreatmentError> {
        let system = |error: std::io::Error| self.unavailable(&error.to_string());
        let (mut printed, mut said) =
            (tempfile::tempfile().map_err(system)?, tempfile::tempfile().map_err(system)?);
        let words = self.ssh.over(self.socket, line);
        let mut command = own_program::through(&words[0]);
        command.args(&words[1..]).stdin(stdin);
        command.stdout(printed.try_clone().map_err(system)?);
        command.stderr(said.try_clone().map_err(system)?);
        let mut child = command.spawn().map_err(system)?;
        orphans::keep(child.id());
        let deadline = Instant::now() + LIMIT;
        let ended = loop {
            match child.try_wait().map_err(system)? {
                Some(status) => break Ok(status),
                None if self.interrupted.load(Ordering::Relaxed) => {
                    break Err(TreatmentError::Interrupted);
                }
                None if Instant::now() > deadline => {
                    break Err(self.unavailable("it does not answer"));
                }
                None => std::thread::sleep(PAUSE),
            }
        };
        let _ = child.kill();
        let _ = child.wait();
        orphans::forget(child.id());
        match ended?.success() {
            true => Ok(text(&mut printed)),
            false => Err(self.unavailable(&format!(
                "{}. This weigh is linked to the C library of here: that machine needs the same or a newer \
                 one, and room for files that can be executed in its directory for temporary files",
                text(&mut said).trim().trim_end_matches('.')
            ))),
        }
    }
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
