//! `weigh fleet`: the same measurement on each machine of a list, one after the other.
//!
//! `weigh` of that machine measures, as if somebody had logged in there. Its document comes back over ssh.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use clap::Args;

use super::{Context, INTERRUPTED, output, value};
use trust::user_file;
use weigh_host::interruption::{has_come, listen_for_signals};
use weigh_host::own_program::through;
use weigh_model::format;
use weigh_model::printable;
use weigh_model::shell::command_line;
use weigh_treatment::remote::Ssh;

const LONGEST_LIST: u64 = 1 << 20;
const FORM: &str = "USER@HOST";
/// Exit statuses of a measurement that has a document: done, above the limit, inconclusive.
const MEASURED: [i32; 3] = [0, 1, 3];

const EXAMPLES: &str = "\
Examples:
  weigh fleet machines.txt --into results -- compare audit -w quick --budget 2m
  weigh fleet machines.txt --into results --program 'sudo weigh' -- run unixbench
  weigh import results/*.json       compare the machines

machines.txt has a machine per line, as in ssh, with options after commas:
  root@alpha
  root@beta,port=2222,identity=/root/.ssh/beta   # a comment";

/// Measure the same on each machine of a list
///
/// Runs `weigh` on one machine after the other over ssh, and stores the JSON result of each. A machine that
/// has a result is skipped, so the same command continues the list after a failure. Each machine needs weigh
/// and an sshd that takes a key.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "weigh fleet <MACHINES> --into <DIR> -- <COMMAND>…")]
pub struct FleetArgs {
    /// File with a machine per line
    #[arg(value_name = "MACHINES")]
    machines: PathBuf,
    /// Directory for the results: MACHINE.json, and MACHINE.log with weigh's messages
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// Command that starts weigh on the machines
    #[arg(long, value_name = "COMMAND", default_value = "weigh")]
    program: String,
    /// Give up a machine after this time
    #[arg(long, value_name = "TIME", default_value = "3h", value_parser = value::duration)]
    timeout: Duration,
    /// Command of weigh to run there: one that has --json, with its options
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// A line of the list.
struct Machine {
    ssh: Ssh,
    /// Name of its files.
    name: String,
}

impl FleetArgs {
    pub fn run(self, _: &Context) -> Result<u8, String> {
        let machines = self.machines()?;
        fs::create_dir_all(&self.into)
            .map_err(|error| format!("{}: {error}", self.into.display()))?;
        listen_for_signals()?;
        let (mut failed, mut results) = (0, Vec::new());
        for (number, machine) in machines.iter().enumerate() {
            let result = self.into.join(format!("{}.json", machine.name));
            let began = Instant::now();
            let outcome = match result.exists() {
                true => Ok("has a result already".to_owned()),
                false => self.measure(machine, &result).map(|()| {
                    format!("measured in {}", format::clock(began.elapsed().as_secs_f64()))
                }),
            };
            if has_come() {
                return Ok(INTERRUPTED);
            }
            let is_failure = outcome.is_err();
            failed += usize::from(is_failure);
            if !is_failure {
                results.push(result.display().to_string());
            }
            let said = outcome.unwrap_or_else(|problem| format!("failed: {problem}"));
            let (now, all) = (number + 1, machines.len());
            output::print(&format!(
                "{now} of {all}  {}  {}\n",
                machine.name,
                printable::line(&said)
            ))?;
        }
        if results.len() > 1 {
            let words = ["weigh", "import"].into_iter().chain(results.iter().map(String::as_str));
            output::print(&format!("Compare them: {}\n", command_line(words)))?;
        }
        match failed {
            0 => Ok(0),
            _ => Err(format!(
                "{failed} of {} has no result: see its .log in {}. The same command measures only what is \
                 missing",
                format::plural(machines.len(), "machine"),
                self.into.display()
            )),
        }
    }

    fn machines(&self) -> Result<Vec<Machine>, String> {
        let file = self.machines.display();
        let bytes = user_file::read(&self.machines, LONGEST_LIST)
            .map_err(|error| format!("cannot read {file}: {error}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{file}: is no text"))?;
        let machines = read_list(&text).map_err(|problem| format!("{file}: {problem}"))?;
        if machines.is_empty() {
            return Err(format!("{file}: has no machine: write {FORM} on a line"));
        }
        Ok(machines)
    }

    /// Command line for the shell of a machine.
    fn words(&self) -> String {
        let json = ["--json".to_owned(), "-".to_owned()];
        let (first, rest) = self.command.split_at(1);
        let words: Vec<&String> = first.iter().chain(&json).chain(rest).collect();
        format!("{} {}", self.program, command_line(words.into_iter().map(String::as_str)))
    }

    /// Measures on one machine. There is a result only where it is whole.
    fn measure(&self, machine: &Machine, result: &Path) -> Result<(), String> {
        let half = self.into.join(format!("{}.half", machine.name));
        let log = self.into.join(format!("{}.log", machine.name));
        let create = |file: &Path| {
            File::create(file).map_err(|error| format!("{}: {error}", file.display()))
        };
        let words = machine.ssh.once(&self.words());
        let mut command = through(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        command.stdout(create(&half)?).stderr(create(&log)?);
        let ended = self.wait(command);
        let kept = ended.and_then(|status| {
            let bytes = fs::read(&half).map_err(|error| format!("{}: {error}", half.display()))?;
            let document: Result<serde_json::Value, _> = serde_json::from_slice(&bytes);
            let is_whole = document.is_ok_and(|document| document["schema"].is_string());
            if !is_whole || !status.is_some_and(|status| MEASURED.contains(&status)) {
                return Err(why(&log, machine));
            }
            fs::rename(&half, result).map_err(|error| format!("{}: {error}", result.display()))
        });
        if kept.is_err() && half.exists() {
            fs::remove_file(&half).map_err(|error| format!("{}: {error}", half.display()))?;
        }
        kept
    }

    /// Waits for the end of ssh. Its exit status is that of `weigh`.
    fn wait(&self, mut command: std::process::Command) -> Result<Option<i32>, String> {
        let mut child = command.spawn().map_err(|error| format!("ssh: {error}"))?;
        let began = Instant::now();
        loop {
            let ended = child.try_wait().map_err(|error| format!("ssh: {error}"))?;
            if let Some(status) = ended {
                return Ok(status.code());
            }
            if has_come() || began.elapsed() > self.timeout {
                child
                    .kill()
                    .and_then(|()| child.wait())
                    .map_err(|error| format!("ssh: {error}"))?;
                let limit = format::clock(self.timeout.as_secs_f64());
                return Err(format!("no result within {limit}: allow more with --timeout"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The last words of a machine.
fn why(log: &Path, machine: &Machine) -> String {
    let said = fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.unwrap_or("it gave no JSON document");
    format!("{}{}", last.trim(), machine.ssh.advice(&said))
}

fn read_list(text: &str) -> Result<Vec<Machine>, String> {
    let mut machines: Vec<Machine> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let at = |problem: String| format!("line {}: {problem}", number + 1);
        let (ssh, _) = Ssh::read(line, FORM, &[]).map_err(at)?;
        let port = ssh.port.map_or_else(String::new, |port| format!("-{port}"));
        let name = format!("{}{port}", ssh.destination.trim_start_matches('.'));
        if machines.iter().any(|machine| machine.name == name) {
            return Err(at(format!("{name} is there twice")));
        }
        machines.push(Machine { ssh, name });
    }
    Ok(machines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_machine_per_line() {
        if Ssh::to("h", FORM).is_err() {
            return needs::skip("ssh", "needs ssh");
        }
        let names = |text: &str| -> Result<Vec<String>, String> {
            Ok(read_list(text)?.into_iter().map(|machine| machine.name).collect())
        };
        let list = "# all\nroot@a\n\nroot@b,port=22 # the second\n";
        assert_eq!(names(list), Ok(vec!["root@a".into(), "root@b-22".into()]));
        assert_eq!(names("root@a\nroot@a"), Err("line 2: root@a is there twice".into()));
        assert!(names("x\n-oProxyCommand=true").unwrap_err().starts_with("line 2: "));
    }

    #[test]
    fn the_document_is_asked_for_before_the_users_command() {
        let command = ["compare", "audit", "--", "make", "a b"].map(str::to_owned).to_vec();
        let fleet = FleetArgs {
            machines: "list".into(),
            into: "results".into(),
            program: "sudo weigh".into(),
            timeout: Duration::from_secs(1),
            command,
        };
        assert_eq!(fleet.words(), "sudo weigh compare --json - audit -- make 'a b'");
    }
}
