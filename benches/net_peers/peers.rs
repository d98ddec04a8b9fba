//! How each program is told to do the same, and what it says of it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use weigh_workload::executable::Executable;

use crate::hosts::{Between, TwoHosts, address};
use crate::process::{Ended, Started};

const PORT: u16 = 5201;
/// A server has to listen within this.
const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// Task of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// One connection, with writes of so many bytes.
    Bulk(u32),
    /// Requests and answers of so many bytes over a connection.
    Requests(u32),
    /// Each over one of its own.
    Connects(u32),
}

impl Task {
    pub fn name(self) -> String {
        match self {
            Task::Bulk(bytes) => format!("bulk, {bytes} bytes"),
            Task::Requests(bytes) => format!("requests, {bytes} byte"),
            Task::Connects(bytes) => format!("connects, {bytes} byte"),
        }
    }

    pub fn unit(self) -> &'static str {
        if matches!(self, Task::Bulk(_)) { "Mbit/s" } else { "1/s" }
    }

    pub fn cost(self) -> &'static str {
        if matches!(self, Task::Bulk(_)) { "s/GB" } else { "µs each" }
    }
}

/// Who does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Comm,
    Iperf3,
    Nuttcp,
    Netperf,
}

impl Peer {
    pub const ALL: [Peer; 4] = [Peer::Comm, Peer::Iperf3, Peer::Nuttcp, Peer::Netperf];

    pub fn name(self) -> &'static str {
        match self {
            Peer::Comm => "COMM",
            Peer::Iperf3 => "iperf3",
            Peer::Nuttcp => "nuttcp",
            Peer::Netperf => "netperf",
        }
    }

    pub fn is_installed(self) -> bool {
        let there = |name: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
        };
        match self {
            Peer::Comm => true,
            Peer::Netperf => there("netperf") && there("netserver"),
            other => there(other.name()),
        }
    }

    /// The others know no requests.
    pub fn can(self, task: Task) -> bool {
        matches!(task, Task::Bulk(_)) || matches!(self, Peer::Comm | Peer::Netperf)
    }
}

/// Results of one run; both above 0.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Mbit/s, or how many a second.
    pub rate: f64,
    /// CPU seconds per GB, or microseconds each, of both ends.
    pub cost: f64,
}

/// Where they run.
pub struct Bench<'a> {
    hosts: &'a TwoHosts,
    program: PathBuf,
    socket: PathBuf,
    seconds: u32,
    address: String,
    /// Amounts of work for COMM, which takes an amount and not a duration.
    amounts: RefCell<HashMap<Task, u64>>,
    _peer: Started,
}

impl Bench<'_> {
    /// # Errors
    /// A sentence.
    pub fn new<'a>(hosts: &'a TwoHosts, scratch: &Path, seconds: u32) -> Result<Bench<'a>, String> {
        let program = Executable::unpack(scratch)?.path().to_owned();
        let socket = scratch.join("peer");
        let argv = ["comm-peer".to_owned(), socket.display().to_string()];
        let peer = Started::new(
            &hosts.namespaces[1],
            1,
            &[&[program.display().to_string()][..], &argv].concat(),
        )?;
        wait_until("comm-peer", || socket.exists())?;
        Ok(Bench {
            hosts,
            program,
            socket,
            seconds,
            address: address(Between::Veth, false, 1).to_string(),
            amounts: RefCell::default(),
            _peer: peer,
        })
    }

    /// # Errors
    /// A sentence, where it fails or says nothing that can be read.
    pub fn run(&self, peer: Peer, task: Task) -> Result<Found, String> {
        let found = match peer {
            Peer::Comm => self.comm(task)?,
            Peer::Iperf3 => self.iperf3(task)?,
            Peer::Nuttcp => self.nuttcp(task)?,
            Peer::Netperf => self.netperf(task)?,
        };
        let is_possible = found.rate.is_normal() && found.cost.is_normal() && found.cost > 0.0;
        if is_possible { Ok(found) } else { Err(format!("it came to {found:?}")) }
    }

    fn comm(&self, task: Task) -> Result<Found, String> {
        let known = self.amounts.borrow().get(&task).copied();
        let amount = match known {
            Some(amount) => amount,
            None => {
                let first = if matches!(task, Task::Bulk(_)) { 20_000_000 } else { 2000 };
                let sample = self.comm_of(task, first)?;
                let seconds = number(&sample["elapsed_ns"])? / 1e9;
                let amount = (first as f64 * f64::from(self.seconds) / seconds) as u64;
                self.amounts.borrow_mut().insert(task, amount);
                amount
            }
        };
        let sample = self.comm_of(task, amount)?;
        let reading = |name: &str| {
            let all = sample["readings"].as_array().into_iter().flatten();
            let found = all.clone().find(|reading| reading["name"] == name);
            found.map_or(Err(format!("there is no {name}")), |reading| number(&reading["value"]))
        };
        let cost = match task {
            Task::Bulk(_) => reading("cpu_per_gb")? + reading("peer_cpu_per_gb")?,
            _ => (reading("cpu_per_request")? + reading("peer_cpu_per_request")?) / 1e3,
        };
        Ok(Found { rate: number(&sample["rate"])?, cost })
    }

    fn comm_of(&self, task: Task, amount: u64) -> Result<Value, String> {
        let (option, bytes) = match task {
            Task::Bulk(bytes) => ("--send", bytes),
            Task::Requests(bytes) => ("--requests", bytes),
            Task::Connects(bytes) => ("--connects", bytes),
        };
        let to = format!("{amount},{},{}", self.address, self.socket.display());
        let program = self.program.display().to_string();
        let bytes = bytes.to_string();
        let ended = self.client(&words(&[
            &program,
            "comm",
            "--congestion",
            "reno",
            "--chunk",
            &bytes,
            option,
            &to,
        ]))?;
        last_json(&ended.stdout)
    }

    fn iperf3(&self, task: Task) -> Result<Found, String> {
        let (Task::Bulk(bytes), port) = (task, PORT.to_string()) else {
            return Err("it knows no requests".into());
        };
        let server = self.server(&words(&["iperf3", "-s", "-1", "-p", &port]), "iperf3")?;
        let (bytes, seconds) = (bytes.to_string(), self.seconds.to_string());
        let client = self.client(&words(&[
            "iperf3",
            "-c",
            &self.address,
            "-p",
            &port,
            "-J",
            "-C",
            "reno",
            "-l",
            &bytes,
            "-t",
            &seconds,
        ]))?;
        let said: Value = serde_json::from_str(&client.stdout).map_err(|e| e.to_string())?;
        let received = &said["end"]["sum_received"];
        let (rate, moved) = (number(&received["bits_per_second"])?, number(&received["bytes"])?);
        let used = client.processor_s + server.end()?.processor_s;
        Ok(Found { rate: rate / 1e6, cost: used / (moved / 1e9) })
    }

    /// Its machine-readable lines are `NAME=VALUE`, with one blank between.
    fn nuttcp(&self, task: Task) -> Result<Found, String> {
        let (Task::Bulk(bytes), port) = (task, PORT.to_string()) else {
            return Err("it knows no requests".into());
        };
        let server = self.server(&words(&["nuttcp", "-1", "--nofork", "-P", &port]), "nuttcp")?;
        let (length, time) = (format!("-l{bytes}"), format!("-T{}", self.seconds));
        let client = self.client(&words(&[
            "nuttcp",
            "-fparse",
            "-P",
            &port,
            &length,
            &time,
            &self.address,
        ]))?;
        let value = |name: &str| {
            let found = client.stdout.split_whitespace().find_map(|word| word.strip_prefix(name));
            found.and_then(|text| text.parse::<f64>().ok()).ok_or(format!("there is no {name}"))
        };
        let (rate, moved) = (value("rate_Mbps=")?, value("megabytes=")? * 1048576.0);
        let used = client.processor_s + server.end()?.processor_s;
        Ok(Found { rate, cost: used / (moved / 1e9) })
    }

    /// Its server lives on; what it says of CPU time is that of the machine, so a server is started for it.
    fn netperf(&self, task: Task) -> Result<Found, String> {
        let port = PORT.to_string();
        let server = self.server(&words(&["netserver", "-D", "-f", "-p", &port]), "netserver")?;
        let seconds = self.seconds.to_string();
        let mut argv =
            words(&["netperf", "-H", &self.address, "-p", &port, "-l", &seconds, "-P", "0"]);
        let omni = ["-t", "omni", "--", "-o", "THROUGHPUT,ELAPSED_TIME", "-K", "reno"];
        argv.extend(words(&omni));
        match task {
            Task::Bulk(bytes) => argv.extend(words(&["-d", "send", "-m", &bytes.to_string()])),
            Task::Requests(bytes) => {
                argv.extend(words(&["-d", "rr", "-r", &format!("{bytes},{bytes}")]));
            }
            Task::Connects(bytes) => {
                argv.extend(words(&["-d", "rr", "-c", "-r", &format!("{bytes},{bytes}")]));
            }
        }
        let client = self.client(&argv)?;
        let line = client.stdout.lines().last().ok_or("it said nothing")?;
        let values: Vec<f64> = line.split(',').filter_map(|text| text.parse().ok()).collect();
        let &[rate, elapsed_s] = values.as_slice() else {
            return Err(format!("it said `{line}`"));
        };
        let used = client.processor_s + server.stop()?;
        let cost = match task {
            Task::Bulk(_) => used / (rate * elapsed_s / 8e3),
            _ => used * 1e6 / (rate * elapsed_s),
        };
        Ok(Found { rate, cost })
    }

    fn client(&self, argv: &[String]) -> Result<Ended, String> {
        Started::new(&self.hosts.namespaces[0], 0, argv)?.end()
    }

    /// One that listens, and ends after its client.
    fn server(&self, argv: &[String], name: &str) -> Result<Started, String> {
        let host = &self.hosts.namespaces[1];
        let started = Started::new(host, 1, argv)?;
        // A connection would be the client that it waits for: its port is looked for instead.
        let port = format!(":{PORT:04X} ");
        let listens = || {
            let is_listed = || {
                let files = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
                let read = |file: &&str| std::fs::read_to_string(file).unwrap_or_default();
                let is_there =
                    |text: String| text.lines().any(|l| l.contains(&port) && l.contains(" 0A "));
                Ok(files.iter().map(read).any(is_there))
            };
            host.run(is_listed).unwrap_or(false)
        };
        wait_until(name, listens)?;
        Ok(started)
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) -> Result<(), String> {
    let deadline = Instant::now() + STARTS_WITHIN;
    while !is_so() {
        if Instant::now() > deadline {
            return Err(format!("{what} does not listen"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn last_json(text: &str) -> Result<Value, String> {
    let line = text.lines().last().ok_or("it said nothing")?;
    serde_json::from_str(line).map_err(|error| error.to_string())
}

fn number(value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("`{value}` is no number"))
}
