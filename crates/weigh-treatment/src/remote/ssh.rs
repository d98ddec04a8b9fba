//! How `ssh` is called: it asks nobody, waits for nobody, and knows the key of the other machine already.

use std::path::{Path, PathBuf};

use crate::absolute;
use trust::program;
use weigh_model::kind::{Parameter, check_parameters};
use weigh_model::label::{self, ArmLabel, Parameters};
use weigh_model::shell::command_line;

/// Where to, and what it takes to get there.
#[derive(Clone, Debug)]
pub struct Ssh {
    program: PathBuf,
    /// `USER@HOST`.
    pub destination: String,
    pub port: Option<u32>,
    pub identity: Option<PathBuf>,
    pub known_hosts: Option<PathBuf>,
}

pub const PARAMETERS: [Parameter; 4] = [
    Parameter { form: "DESTINATION", help: "USER@HOST, or a name from ssh's configuration" },
    Parameter { form: "port=N", help: "port of its sshd" },
    Parameter { form: "identity=FILE", help: "file with the private key" },
    Parameter { form: "known_hosts=FILE", help: "file with the host key of that machine" },
];

impl Ssh {
    /// Parses `USER@HOST` and, after commas, [`PARAMETERS`] and `more`. Also returns all parameters.
    pub fn read(text: &str, form: &str, more: &[Parameter]) -> Result<(Ssh, Parameters), String> {
        // No name counts as a treatment here, so a `+` is part of a value.
        let arm = label::arm(&format!("ssh:{text}"), |_| false);
        let ArmLabel { places, mut treatments } = arm.map_err(|error| error.to_string())?;
        let (Some(term), true, true) = (treatments.pop(), treatments.is_empty(), places.is_empty())
        else {
            return Err(
                "takes one machine, USER@HOST; give an IPv6 address a name in ssh's configuration"
                    .into(),
            );
        };
        check_parameters(&term, &[&PARAMETERS[..], more].concat())?;
        Ok((Ssh::of(&term.parameters, form)?, term.parameters))
    }

    /// Returns the text with absolute paths, for a session that goes on in another directory.
    pub fn stored(text: &str, form: &str, more: &[Parameter]) -> Result<String, String> {
        let (ssh, mut parameters) = Ssh::read(text, form, more)?;
        for (name, file) in [("identity", &ssh.identity), ("known_hosts", &ssh.known_hosts)] {
            if let Some(file) = file {
                parameters = parameters.replaced(&[name], name, &file.display().to_string());
            }
        }
        Ok(parameters.written(|_| false))
    }

    /// Reads parameters that the user wrote as in `form`: `host:USER@HOST`.
    pub fn of(parameters: &Parameters, form: &str) -> Result<Ssh, String> {
        let mut words = parameters.iter().filter(|(_, value)| value.is_none());
        let (Some((destination, _)), None) = (words.next(), words.next()) else {
            return Err(format!("{form} takes one machine"));
        };
        let file = |key: &str| parameters.value(key).map(absolute).transpose();
        let mut ssh = Ssh::to(destination, form)?;
        ssh.port = parameters.number("port", 1..=65535)?;
        ssh.identity = file("identity")?;
        ssh.known_hosts = file("known_hosts")?;
        Ok(ssh)
    }

    pub fn to(destination: &str, form: &str) -> Result<Ssh, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "@.-_:%[]".contains(c);
        if destination.is_empty()
            || destination.starts_with('-')
            || !destination.chars().all(is_plain)
        {
            return Err(format!("`{destination}` is not an ssh destination: write {form}"));
        }
        let program = program::find("ssh")?.ok_or("ssh is missing: install openssh-client")?;
        let destination = destination.to_owned();
        Ok(Ssh { program, destination, port: None, identity: None, known_hosts: None })
    }

    /// The words that open a connection which others share by this socket, and run a command over it.
    pub fn sharing(&self, socket: &Path, command: &str) -> Vec<String> {
        self.words(socket, &["ControlMaster=yes"], command)
    }

    /// Command line that runs `command` over the shared connection, and never opens another one. ssh prints
    /// nothing about a lost connection, because `weigh` reports that itself.
    pub fn over(&self, socket: &Path, command: &str) -> Vec<String> {
        let options = ["ControlMaster=no", "ProxyCommand=false", "LogLevel=QUIET"];
        self.words(socket, &options, command)
    }

    /// Command line that forwards the local Unix socket `here` over the shared connection to `there`.
    pub fn forwarding(&self, socket: &Path, here: &Path, there: &Path) -> Vec<String> {
        let mut words = self.options(socket, &["ControlMaster=no", "ProxyCommand=false"]);
        // What the user's configuration forwards is not for this connection, and could not be cleared alone.
        words.extend(["-F", "none"].map(str::to_owned));
        let way = format!("{}:{}", here.display(), there.display());
        words.extend(["-O", "forward", "-L", &way, "--", &self.destination].map(str::to_owned));
        words
    }

    fn words(&self, socket: &Path, options: &[&str], command: &str) -> Vec<String> {
        // Those that the user's configuration asks for.
        let options = [options, &["ClearAllForwardings=yes"]].concat();
        let mut words = self.options(socket, &options);
        words.extend(["--", &self.destination, command].map(str::to_owned));
        words
    }

    fn options(&self, socket: &Path, options: &[&str]) -> Vec<String> {
        let mut words: Vec<String> = vec![self.program.display().to_string()];
        let mut option = |text: String| words.extend(["-o".to_owned(), text]);
        for fixed in [
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            // ssh would write keys that the other machine offers into known_hosts.
            "UpdateHostKeys=no",
            "ConnectTimeout=10",
            "ServerAliveInterval=5",
            "ServerAliveCountMax=3",
            "ControlPersist=no",
            "ForwardX11=no",
            "ForwardAgent=no",
            "RequestTTY=no",
        ]
        .iter()
        .chain(options)
        {
            option((*fixed).to_owned());
        }
        option(format!("ControlPath={}", socket.display()));
        if let Some(file) = &self.known_hosts {
            option(format!("UserKnownHostsFile={}", file.display()));
            option("GlobalKnownHostsFile=/dev/null".into());
        }
        if let Some(file) = &self.identity {
            option("IdentitiesOnly=yes".into());
            words.extend(["-i".to_owned(), file.display().to_string()]);
        }
        if let Some(port) = self.port {
            words.extend(["-p".to_owned(), port.to_string()]);
        }
        words
    }

    /// Returns advice about ssh's message.
    pub fn advice(&self, said: &str) -> String {
        let port = self.port.map_or(String::new(), |port| format!(" -p {port}"));
        let by_hand = format!("ssh{port} {}", command_line([&*self.destination]));
        if said.contains("Host key verification failed") {
            format!(
                ". Its host key is unknown: connect once with `{by_hand}`, which shows the fingerprint and \
                 adds the key, or use known_hosts=FILE. If the key has changed, find out why first"
            )
        } else if said.contains("Permission denied") {
            format!(
                ". weigh cannot enter a password: use ssh-agent, or a key without a passphrase \
                 (identity=FILE). `{by_hand}` must log in without a prompt"
            )
        } else {
            String::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_asks_nobody_and_writes_no_keys() {
        let Ok(ssh) = Ssh::to("root@192.0.2.7", "host:USER@HOST") else {
            return needs::skip("ssh", "needs ssh");
        };
        for words in [ssh.sharing(Path::new("/s"), "true"), ssh.over(Path::new("/s"), "true")] {
            for option in ["BatchMode=yes", "StrictHostKeyChecking=yes", "UpdateHostKeys=no"] {
                assert!(words.iter().any(|word| word == option), "{option}: {words:?}");
            }
        }
        let forwarding = ssh.forwarding(Path::new("/s"), Path::new("/here"), Path::new("/there"));
        let asked = |words: &[&str]| forwarding.windows(words.len()).any(|found| found == words);
        assert!(asked(&["-F", "none"]) && asked(&["-O", "forward", "-L", "/here:/there"]));
    }

    #[test]
    fn a_label_is_one_machine_and_is_stored_with_absolute_paths() {
        if Ssh::to("h", "USER@HOST").is_err() {
            return needs::skip("ssh", "needs ssh");
        }
        let stored = |text: &str| Ssh::stored(text, "--active USER@HOST", &[]);
        let here = std::env::current_dir().unwrap();
        let expected = format!("root@h,port=7,identity={}", here.join("key").display());
        assert_eq!(stored("root@h,port=7,identity=key"), Ok(expected));
        for wrong in ["root@fd00::a:b", "a+b::c", ""] {
            assert!(stored(wrong).is_err(), "{wrong}");
        }
    }
}
