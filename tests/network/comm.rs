//! COMM and its peers on loopback: what is timed was verified, and nothing of a cell outlives it.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::support::processes::signal;
use crate::support::{Home, Outcome, Running, Turn, skip, wait_until};
use rand::{RngExt, SeedableRng};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, accept, bind, connect, listen,
    recv, send, socket,
};
use rustix::process::Signal;
use serde_json::Value;
use weigh_fixture::listener;

const LONG: Duration = Duration::from_secs(30);
/// `struct peer_message` of workloads/driver/comm.h.
const MESSAGE: usize = 272;
const LISTENS: u32 = 0;
const CONNECTED: u32 = 1;
const FAILED: u32 = 5;

/// Returns a port that nobody else on this machine uses.
fn free_port() -> String {
    listener::free_port(Ipv4Addr::LOCALHOST).unwrap().to_string()
}

struct Bench {
    home: Home,
    program: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        let home = Home::new();
        let program = home.workloads();
        Bench { home, program }
    }

    fn socket(&self, name: &str) -> String {
        self.home.path(name).display().to_string()
    }

    /// A peer that listens.
    fn peer(&self, name: &str, more: &[&str]) -> Running {
        let mut command = self.home.command(&self.program);
        command.args(["comm-peer", &self.socket(name)]).args(more);
        let running = self.home.start(command);
        assert!(wait_until(LONG, || self.home.path(name).exists()), "{}", running.said());
        running
    }

    fn comm(&self, arguments: &[String]) -> Command {
        let mut command = self.home.command(&self.program);
        command.arg("comm").args(arguments);
        command
    }

    fn cell(&self, arguments: &[String]) -> Outcome {
        self.home.start(self.comm(arguments)).finish()
    }

    fn scratch(&self) -> Vec<String> {
        let entries = fs::read_dir(self.home.directory.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("weigh-") && !name.contains("workloads")).collect()
    }

    fn connection(&self, direction: &str, bytes: u64, peer: &str) -> [String; 2] {
        [format!("--{direction}"), format!("{bytes},127.0.0.1,{}", self.socket(peer))]
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn sample(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    serde_json::from_str(outcome.stdout.lines().last().unwrap()).unwrap()
}

fn reading(sample: &Value, name: &str) -> f64 {
    let all = sample["readings"].as_array().unwrap();
    let found = all.iter().find(|reading| reading["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {sample:#}"))["value"].as_f64().unwrap()
}

#[test]
fn what_is_timed_is_the_payload_of_all_connections_at_every_size() {
    let bench = Bench::new();
    let _peers = [bench.peer("active", &[]), bench.peer("passive", &[])];
    for chunk in ["1", "100", "1250", "65536"] {
        let bytes = if chunk == "1" { 5_000 } else { 1_000_001 };
        let mut arguments = words(&["--chunk", chunk, "--no-delay", "--congestion", "reno"]);
        arguments.extend(bench.connection("send", bytes, "active"));
        arguments.extend(bench.connection("receive", bytes, "passive"));
        let sample = sample(&bench.cell(&arguments));
        let number = |name: &str| sample[name].as_f64().unwrap();
        assert_eq!(number("operations"), 2.0 * 8.0 * bytes as f64);
        let rate = number("operations") / 1e6 / (number("elapsed_ns") / 1e9);
        assert!((number("rate") / rate - 1.0).abs() < 1e-6, "{sample:#}");
        assert_eq!(sample["unit"], "Mb/s");
        // The peers moved it too.
        assert!(reading(&sample, "peer_cpu_per_gb") > 0.0, "{sample:#}");
        assert!(reading(&sample, "least_round_trip") > 0.0, "{sample:#}");
    }
    assert_eq!(bench.scratch(), Vec::<String>::new());
}

#[test]
fn requests_connects_and_datagrams_are_counted_one_by_one() {
    let bench = Bench::new();
    let _peer = bench.peer("active", &[]);
    let cell = |option: &str, amount: u64, chunk: &str, more: &[&str]| {
        let mut arguments = words(&["--chunk", chunk]);
        arguments.extend(bench.connection(option, amount, "active"));
        arguments.extend(words(more));
        sample(&bench.cell(&arguments))
    };
    let exchanges = |sample: &Value| -> u64 {
        let buckets = sample["latencies"]["buckets"].as_array().unwrap();
        buckets.iter().map(|bucket| bucket[1].as_u64().unwrap()).sum()
    };
    for (option, unit) in [("requests", "requests/s"), ("connects", "connects/s")] {
        for chunk in ["100", "65536"] {
            // The activity lasts longer, so that there are rounds that nobody counts.
            let found = cell(option, 50, chunk, &["--beside", "arith-double=20000"]);
            assert_eq!((&found["unit"], &found["operations"]), (&unit.into(), &50.into()));
            assert_eq!(exchanges(&found), 50);
            assert!(reading(&found, "cpu_per_request") > 0.0);
        }
    }
    for chunk in ["1", "1250", "65536"] {
        let found = cell("datagrams", 500, chunk, &[]);
        let count = |name: &str| reading(&found, name);
        let arrived = count("datagrams") - count("datagrams_lost");
        let bytes = chunk.parse::<f64>().unwrap().clamp(16.0, 1452.0);
        assert_eq!(found["operations"].as_f64(), Some(8.0 * bytes * (arrived - 1.0)));
        assert_eq!((count("datagrams"), count("datagrams_duplicated")), (500.0, 0.0));
    }
    // A probe goes on for as long as what is scored does.
    let probe = format!("127.0.0.1,{}", bench.socket("active"));
    let found =
        cell("send", 20_000_000, "65536", &["--probe", &probe, "--beside", "arith-double=9"]);
    assert_eq!(found["operations"], 160_000_000);
    assert!(exchanges(&found) >= 1);
    assert_eq!(bench.scratch(), Vec::<String>::new());
}

#[test]
fn what_is_watched_is_told_from_its_beginning_to_its_end() {
    let bench = Bench::new();
    let _peers = [bench.peer("active", &[]), bench.peer("passive", &[])];
    let mut arguments = words(&["--watch", "--chunk", "100"]);
    arguments.extend(bench.connection("send", 1_000_000, "active"));
    arguments.extend(bench.connection("receive", 2_000_000, "passive"));
    let sample = sample(&bench.cell(&arguments));
    let connections = sample["watch"]["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 2);
    for (connection, bytes) in connections.iter().zip([1_000_000, 2_000_000]) {
        let looks = connection["looks"].as_array().unwrap();
        let last = looks.last().unwrap();
        // With the token before it, and the SYN that is acknowledged, too.
        assert!((bytes..bytes + 10).contains(&last[1].as_u64().unwrap()), "{connection:#}");
        assert!(
            looks.len() >= 2
                && looks.windows(2).all(|two| two[0][0].as_u64() <= two[1][0].as_u64())
        );
    }
}

#[test]
fn an_activity_is_timed_beside_it_whichever_ends_first_and_also_alone() {
    let bench = Bench::new();
    let _peer = bench.peer("active", &[]);
    // The one is long and the other short, and the other way round.
    for (bytes, units) in [(200_000_000, 20), (1_000, 200_000)] {
        let mut arguments = words(&["--beside", &format!("arith-double={units}")]);
        arguments.extend(bench.connection("send", bytes, "active"));
        arguments.extend(words(&["--beside-copies", "2"]));
        let sample = sample(&bench.cell(&arguments));
        assert_eq!(sample["operations"].as_u64(), Some(8 * bytes));
        assert!(reading(&sample, "activity_rate") > 0.0);
    }
    let alone = bench.cell(&words(&["--beside", "arith-double=5000", "--beside-copies", "3"]));
    let alone = sample(&alone);
    assert_eq!((alone["operations"].as_u64(), &alone["unit"]), (Some(15_000), &"units/s".into()));
    assert_eq!(bench.scratch(), Vec::<String>::new());
}

#[test]
fn a_mix_of_jobs_is_an_activity_too() {
    let bench = Bench::new();
    let _peer = bench.peer("active", &[]);
    let mut arguments = words(&["--beside-job", "arith-double=3", "--beside-job", "pipe=2"]);
    arguments.extend(words(&["--beside-units", "50", "--beside-copies", "3"]));
    let alone = sample(&bench.cell(&arguments));
    assert_eq!((alone["operations"].as_u64(), &alone["unit"]), (Some(150), &"units/s".into()));
    arguments.extend(bench.connection("send", 1_000_000, "active"));
    assert!(reading(&sample(&bench.cell(&arguments)), "activity_rate") > 0.0);
    assert_eq!(bench.scratch(), Vec::<String>::new());
}

#[test]
fn what_the_other_end_refuses_is_said_here() {
    let bench = Bench::new();
    let _peer = bench.peer("active", &[]);
    let refused = |more: &[&str], peer: &str, said: &str| {
        let mut arguments = words(more);
        arguments.extend(bench.connection("receive", 1000, peer));
        let outcome = bench.cell(&arguments);
        assert_eq!(outcome.code, Some(1), "{outcome:#?}");
        assert!(outcome.stderr.contains(said) && outcome.stdout.is_empty(), "{outcome:#?}");
    };
    refused(&["--congestion", "nonesuch"], "active", "congestion control `nonesuch`");
    refused(&[], "nobody", "cannot reach the peer");
    let address = words(&["--send", &format!("9,198.18.9.9,{}", bench.socket("active"))]);
    let outcome = bench.cell(&address);
    assert!(outcome.stderr.contains("cannot listen on 198.18.9.9"), "{outcome:#?}");
    for usage in [
        vec!["--chunk", "0"],
        vec!["--send", "5,127.0.0.1"],
        vec!["--beside", "nonesuch=1"],
        vec!["--beside", "pipe"],
        vec!["--requests", "0,127.0.0.1,x"],
        vec!["--beside-job", "pipe=1"],
        vec!["--probe", "127.0.0.1,x", "--send", "1,127.0.0.1,x"],
        vec!["--send", "1,127.0.0.1,x", "--requests", "1,127.0.0.1,x"],
        vec![],
    ] {
        assert_eq!(bench.cell(&words(&usage)).code, Some(2), "{usage:?}");
    }
    assert_eq!(bench.scratch(), Vec::<String>::new());
}

/// A peer of the test's own: `answer` gets the connection once all is agreed.
fn false_peer(bench: &Bench, answer: impl FnOnce(TcpStream, OwnedFd) + Send + 'static) {
    let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    bind(&listener, &SocketAddrUnix::new(bench.home.path("false")).unwrap()).unwrap();
    listen(&listener, 1).unwrap();
    let say = |control: &OwnedFd, step: u32, port: u32| {
        let mut message = [0; MESSAGE];
        message[..4].copy_from_slice(&step.to_ne_bytes());
        message[4..8].copy_from_slice(&port.to_ne_bytes());
        send(control.as_fd(), &message, SendFlags::empty()).unwrap();
    };
    thread::spawn(move || {
        let control = accept(&listener).unwrap();
        let data = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        recv(control.as_fd(), &mut [0; 512], RecvFlags::empty()).unwrap();
        say(&control, LISTENS, u32::from(data.local_addr().unwrap().port()));
        let (mut stream, _) = data.accept().unwrap();
        std::io::Read::read_exact(&mut stream, &mut [0; 8]).unwrap();
        say(&control, CONNECTED, 0);
        recv(control.as_fd(), &mut [0; MESSAGE], RecvFlags::empty()).unwrap();
        answer(stream, control);
    });
}

#[test]
fn bytes_that_were_not_sent_so_have_no_rate() {
    let wrong = |answer: fn(TcpStream, OwnedFd), direction: &str, said: &str| {
        let bench = Bench::new();
        false_peer(&bench, answer);
        let outcome = bench.cell(&bench.connection(direction, 10_000, "false"));
        assert_eq!(outcome.code, Some(1), "{outcome:#?}");
        assert!(outcome.stderr.contains(said) && outcome.stdout.is_empty(), "{outcome:#?}");
        assert_eq!(bench.scratch(), Vec::<String>::new());
    };
    let zeros = |mut stream: TcpStream, _: OwnedFd| stream.write_all(&[0; 10_000]).unwrap();
    wrong(zeros, "receive", "differ from the bytes that were sent");
    wrong(|stream, _| drop(stream), "receive", "closed the connection after 0 of 10000 bytes");
    // It says that it has all, and has not.
    let short = |mut stream: TcpStream, control: OwnedFd| {
        stream.write_all(&9_999_u64.to_ne_bytes()).unwrap();
        drop((stream, control));
    };
    wrong(short, "send", "the peer acknowledged 9999 of 10000 bytes");
}

#[test]
fn whoever_is_killed_nothing_of_the_cell_is_left_and_the_peer_serves_the_next() {
    let _turn = Turn::share();
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(15);
    for kill in 0..crate::support::hard(8, 60) {
        let bench = Bench::new();
        let peer = bench.peer("active", &[]);
        let mut arguments = words(&["--chunk", "100", "--beside", "activity-copy=1000000"]);
        arguments.extend(bench.connection("send", 1 << 40, "active"));
        arguments.extend(bench.connection("receive", 1 << 40, "active"));
        let running = bench.home.start(bench.comm(&arguments));
        thread::sleep(Duration::from_millis(chance.random_range(5..300)));
        let mut processes = bench.home.processes_of("weigh-workloads comm");
        processes.retain(|pid| ![peer.pid(), running.pid()].contains(pid));
        // Without it the cell goes on, and tidies up itself.
        let name = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        processes.retain(|pid| name(pid).trim() != "weigh-cleanup");
        let victim = match processes.get(chance.random_range(0..processes.len().max(1))) {
            Some(pid) if kill % 2 == 1 => *pid,
            _ => running.pid(),
        };
        signal(victim, Signal::KILL);
        let outcome = running.finish();
        assert_ne!(outcome.code, Some(0), "{outcome:#?}");
        assert!(!outcome.stdout.contains("rate"), "{outcome:#?}");
        let is_gone = || bench.home.processes() == [peer.pid()] && bench.scratch().is_empty();
        assert!(wait_until(LONG, is_gone), "{:?}", bench.home.describe_processes());
        sample(&bench.cell(&bench.connection("send", 1000, "active")));
    }
}

#[test]
fn a_peer_that_is_killed_fails_the_cell_at_once() {
    let bench = Bench::new();
    let peer = bench.peer("active", &[]);
    let running = bench.home.start(bench.comm(&bench.connection("receive", 1 << 40, "active")));
    assert!(wait_until(LONG, || bench.home.processes().len() > 4), "{}", running.said());
    signal(peer.pid(), Signal::KILL);
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(1), "{outcome:#?}");
    assert!(wait_until(LONG, || bench.home.processes().is_empty()));
}

#[test]
fn activities_are_workloads_that_verify_what_they_did() {
    let bench = Bench::new();
    for name in ["activity-cpu", "activity-copy", "activity-ftp"] {
        let mut command = bench.home.command(&bench.program);
        command.args(["run", name, "--operations", "20"]);
        let outcome = bench.home.start(command).finish();
        assert_eq!(sample(&outcome)["operations"], 20);
    }
    assert!(wait_until(LONG, || bench.home.processes().is_empty()));
    assert_eq!(bench.scratch(), Vec::<String>::new());
}

/// `struct peer_request` of workloads/driver/comm.h.
fn request_of_datagrams(amount: u64) -> [u8; 128] {
    const VERSION: u32 = 2;
    const DATAGRAMS: u32 = 3;
    let mut request = [0; 128];
    request[..4].copy_from_slice(&VERSION.to_ne_bytes());
    request[4..8].copy_from_slice(&DATAGRAMS.to_ne_bytes());
    request[16..24].copy_from_slice(&amount.to_ne_bytes());
    request[24..28].copy_from_slice(&16_u32.to_ne_bytes());
    request[56..65].copy_from_slice(b"127.0.0.1");
    request
}

/// Tests that a peer counts only datagrams for which it has memory.
#[test]
fn a_peer_counts_no_more_datagrams_than_it_has_memory_for() {
    let bench = Bench::new();
    let _peer = bench.peer("active", &[]);
    for (amount, step) in [(1 << 27, LISTENS), ((1 << 27) + 1, FAILED), (u64::MAX, FAILED)] {
        let control = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        connect(&control, &SocketAddrUnix::new(bench.home.path("active")).unwrap()).unwrap();
        send(control.as_fd(), &request_of_datagrams(amount), SendFlags::empty()).unwrap();
        let mut message = [0; MESSAGE];
        recv(control.as_fd(), &mut message, RecvFlags::WAITALL).unwrap();
        let answered = u32::from_ne_bytes(message[..4].try_into().unwrap());
        assert_eq!(answered, step, "{amount}");
    }
}

#[test]
fn strangers_at_the_server_of_files_are_few_and_soon_gone() {
    let bench = Bench::new();
    let port = free_port();
    let mut peer = bench.home.command(&bench.program);
    peer.args(["comm-peer", &bench.socket("active"), "127.0.0.1", &port]);
    peer.env("WEIGH_NONCE", "0123456789abcdef");
    let peer = bench.home.start(peer);
    assert!(wait_until(LONG, || bench.home.path("active").exists()), "{}", peer.said());
    let call = || TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let mut strangers: Vec<TcpStream> = (0..20).map(|_| call()).collect();
    // The peer, its server of files, and one process for each of eight.
    let processes = || bench.home.processes_of("weigh-workloads comm-peer").len();
    assert!(wait_until(LONG, || processes() == 2 + 8), "{}", processes());
    // They say something all the time, and are ended all the same.
    let is_gone = |stranger: &mut TcpStream| {
        stranger.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let _ = stranger.write_all(b"NOOP\r\n");
        let mut said = [0; 4096];
        match std::io::Read::read(stranger, &mut said) {
            Ok(length) => length == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    };
    for stranger in &mut strangers {
        assert!(processes() <= 2 + 8);
        assert!(wait_until(LONG, || is_gone(stranger)));
    }
    let mut run = bench.home.command(&bench.program);
    run.args(["run", "activity-ftp", "--operations", "3"]);
    run.env("WEIGH_FTP", format!("127.0.0.1 {port}")).env("WEIGH_NONCE", "0123456789abcdef");
    assert_eq!(sample(&bench.home.start(run).finish())["operations"], 3);
}

#[test]
fn the_server_of_files_answers_other_clients_too() {
    let bench = Bench::new();
    let port = free_port();
    let _peer = bench.peer("active", &["127.0.0.1", &port]);
    let url = |name: &str| format!("ftp://127.0.0.1:{port}/{name}");
    let curl = |arguments: &[&str]| {
        let mut command = bench.home.command("curl");
        command.args(["-sS", "--max-time", "20"]).args(arguments);
        bench.home.start(command).finish()
    };
    if Command::new("curl").arg("--version").output().is_err() {
        skip("curl", "needs curl");
        return;
    }
    for how in ["--disable-eprt", "--disable-epsv"] {
        let outcome = curl(&[how, &url("payload-100003"), "-o", "fetched"]);
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        let fetched = fs::read(bench.home.path("fetched")).unwrap();
        assert_eq!(fetched.len(), 100_003);
        let word = 25_000_u32.wrapping_mul(4).wrapping_mul(2_246_822_519);
        assert_eq!(fetched[100_000..], word.to_ne_bytes()[..3]);
    }
    let outcome = curl(&["-T", &bench.socket("fetched"), &url("stored")]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let outcome = curl(&[&url("passwd"), "-o", "fetched"]);
    assert_eq!(outcome.code, Some(78), "{outcome:#?}");
    // Our own client, too, by the way it is told.
    let mut command = bench.home.command(&bench.program);
    command.args(["run", "activity-ftp", "--operations", "3"]);
    command.env("WEIGH_FTP", format!("127.0.0.1 {port}"));
    assert_eq!(sample(&bench.home.start(command).finish())["operations"], 3);
}
