//! `host:`: an arm on another machine. That is this one, by an sshd of our own on the loopback; or in a
//! network of its own, behind a link that can be cut.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support::linked::{ADDRESSES, HERE, Network, THERE};
use crate::support::servers::{assert_nothing_is_left, has, open_home};
use crate::support::sshd::{self, SSHD, Sshd, can_have_sshd};
use crate::support::{Home, Running, SETTINGS, Turn, hard, program, row, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use weigh_fixture::listener::free_port;

const LIMIT: Duration = Duration::from_secs(60);

/// A machine that is reached by ssh. Its directory for temporary files is `there` in the home.
struct Machine<'h> {
    home: &'h Home,
    sshd: Sshd,
    /// Where it is not that of this host.
    network: Option<Network>,
}

impl<'h> Machine<'h> {
    /// `None` where there is no sshd, or it could not become the user.
    fn start(home: &'h Home) -> Option<Machine<'h>> {
        Machine::start_at(home, "127.0.0.1", || None)
    }

    /// Starts a machine in another network, behind a link.
    fn start_behind_a_link(home: &'h Home) -> Option<Machine<'h>> {
        Machine::start_at(home, ADDRESSES[THERE], || Some(Network::start()))
    }

    fn start_at(
        home: &'h Home,
        address: &str,
        network: impl FnOnce() -> Option<Network>,
    ) -> Option<Machine<'h>> {
        if !can_have_sshd() {
            return None;
        }
        let network = network();
        let port = free_port(Ipv4Addr::LOCALHOST).unwrap();
        let command = match &network {
            None => Command::new(SSHD),
            Some(network) => {
                let mut command = network.enter(THERE, Command::new("nsenter"));
                command.arg(SSHD);
                command
            }
        };
        let sshd = Sshd::start(home, (address, port), command, "");
        Some(Machine { home, sshd, network })
    }

    /// `weigh`, in the network that the machine is reached from.
    fn weigh(&self, arguments: &[&str]) -> Command {
        let Some(network) = &self.network else { return self.home.weigh(arguments) };
        let mut command = network.enter(HERE, self.home.command("nsenter"));
        command.arg(program()).args(arguments);
        command
    }

    fn label(&self) -> String {
        format!("host:{}", self.client())
    }

    /// As the option that has a client there.
    fn client(&self) -> String {
        self.sshd.destination(self.home)
    }

    fn label_with(&self, identity: &str, known_hosts: &str) -> String {
        format!("host:{}", self.sshd.destination_with(self.home, identity, known_hosts))
    }

    /// Returns true if a workload or an activity runs there. Between samples an activity is stopped.
    fn is_at_work(&self) -> bool {
        ["run", "beside"].into_iter().any(|command| !self.at_work(command).is_empty())
    }

    /// Processes there that do a workload by this command of the workload program, each after its parent.
    fn at_work(&self, command: &str) -> BTreeSet<(u32, u32)> {
        let there = self.home.path("there").display().to_string();
        let parent_and_own = |process: fs::DirEntry| {
            let read =
                |file: &str| fs::read_to_string(process.path().join(file)).unwrap_or_default();
            let words = read("cmdline");
            if !words.starts_with(&there) || !words.contains(&format!("\0{command}\0")) {
                return None;
            }
            let status = read("status");
            if status.contains("\nState:\tT") {
                return None;
            }
            let number = |name: &str| -> Option<u32> {
                status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
            };
            Some((number("PPid:")?, number("Pid:")?))
        };
        fs::read_dir("/proc").unwrap().flatten().filter_map(parent_and_own).collect()
    }

    /// Nothing of it, neither here nor there, neither files nor processes.
    #[track_caller]
    fn assert_nothing_left(&self) {
        let is_clean = || sshd::is_clean(self.home) && self.home.leftovers().is_empty();
        assert!(wait_until(LIMIT, is_clean), "{:?}", self.home.leftovers());
        assert!(
            wait_until(LIMIT, || self.home.processes().is_empty()),
            "{:?}",
            self.home.describe_processes()
        );
    }
}

/// Ends the process that holds the connection. The pair is dropped, and the experiment has all of its 8.
fn lose_the_connection(home: &Home, machine: &Machine, mut running: Running) {
    home.wait_for_samples(2, &mut running);
    assert!(wait_until(LIMIT, || machine.is_at_work()), "{}", running.said());
    kill_process(holder(&running), Signal::KILL).unwrap();
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let json = home.json();
    let warnings = json["warnings"].to_string();
    assert!(warnings.contains("A pair was dropped because the connection was lost"), "{warnings}");
    assert_eq!(json["results"][0]["pairs"], 8, "{json:#}");
    machine.assert_nothing_left();
}

/// The ssh that the others share.
fn holder(running: &Running) -> Pid {
    found_holder(running).expect("there is a connection")
}

fn found_holder(running: &Running) -> Option<Pid> {
    let children = format!("/proc/{0}/task/{0}/children", running.pid());
    let children = fs::read_to_string(children).unwrap();
    let is_holder = |pid: &&str| {
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.contains("ControlMaster=yes")
    };
    let pid = children.split_whitespace().find(is_holder)?;
    Pid::from_raw(pid.parse().unwrap())
}

#[test]
fn two_machines_are_measured_side_by_side_and_nothing_is_left_there() {
    let _turn = Turn::share();
    let home = Home::new();
    let Some(machine) = Machine::start(&home) else { return };
    let label = format!("{}::nice:5", machine.label());
    let arguments =
        ["compare", &label, "-w", "getppid", "-w", "spawn", "--pairs", "8", "--no-detail"];
    let outcome = home.measure(&[&arguments[..], &["--json", "-"]].concat());
    let json = outcome.json();
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(
        facts.contains("reached by ssh as root@127.0.0.1") && facts.contains("this boot"),
        "{facts}"
    );
    assert_eq!(json["results"][0]["pairs"], 8, "{json:#}");
    assert_eq!(json["baseline_state"], "this machine");
    machine.assert_nothing_left();
    let echo = ["compare", &machine.label(), "--pairs", "8", "--", "/bin/sh", "-c", "echo $PWD"];
    home.measure(&echo);
    machine.assert_nothing_left();
}

#[test]
fn a_connection_that_is_cut_costs_a_pair_and_one_that_goes_with_us_leaves_nothing() {
    // A setting that another test changes meanwhile would make it another machine.
    let _turn = Turn::with(SETTINGS);
    let home = Home::new();
    let Some(machine) = Machine::start(&home) else { return };
    let label = machine.label();
    let arguments = ["compare", &label, "-w", "getppid", "--no-detail", "--pairs"];
    let long = ["8", "--sample", "300ms", "--inconclusive-ok"];
    let running = home.start(home.weigh(&[&arguments[..], &long].concat()));
    lose_the_connection(&home, &machine, running);

    let before = home.samples();
    let mut running = home.start(home.weigh(&[&arguments[..], &["900"]].concat()));
    home.wait_for_samples(before + 4, &mut running);
    running.kill();
    running.finish();
    machine.assert_nothing_left();
}

#[test]
fn what_cannot_be_had_there_is_refused_with_what_to_do() {
    let home = Home::new();
    let Some(machine) = Machine::start(&home) else { return };
    let refused = |label: &str, parts: &[&str]| {
        home.run(&["compare", label, "-w", "getppid"]).assert_error(parts);
        machine.assert_nothing_left();
    };
    home.file("nobody", "");
    let unknown = machine.label_with("identity", "nobody");
    refused(&unknown, &["Host key verification failed", "connect once with `ssh -p"]);
    sshd::key(&home, "other");
    let other = machine.label_with("other", "known_hosts");
    refused(&other, &["Permission denied", "must log in without a prompt"]);
    let label = machine.label();
    refused(&format!("{label}::audit"), &["is a different machine", "`audit` changes this system"]);
    refused("host:-oProxyCommand=x", &["`host` does not take `-oProxyCommand=`"]);
    refused("host:-x", &["`-x` is not an ssh destination"]);
    refused("host", &["host:USER@HOST takes one machine"]);
    let both = ["compare", &label, "--base", "build", "-w", "getppid"];
    home.run(&both).assert_error(&["`build` changes this system"]);
    let prepare = ["compare", &label, "--prepare", "true", "--", "/bin/true"];
    home.run(&prepare).assert_error(&["--prepare and --cleanup run on this machine"]);
    assert_eq!(home.samples(), 0);
    // Whoever has that machine chooses what it says, on both streams.
    let key = fs::read_to_string(home.path("authorized")).unwrap();
    let forced = |script: &str| {
        let script = home.file("forced", format!("{script}; exec sh -c \"$SSH_ORIGINAL_COMMAND\""));
        home.file("authorized", format!("command=\"sh {}\" {key}", script.display()));
    };
    forced("printf '\\033]0;PWNED\\007' >&2");
    let outcome = home.measure(&["compare", &label, "-w", "getppid", "--pairs", "8"]);
    assert!(!outcome.stderr.contains("PWNED"), "{outcome:#?}");
    forced("case $SSH_ORIGINAL_COMMAND in *__arrival*) exec yes;; esac");
    refused(&label, &["its answer is longer than 4 MiB"]);
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

/// The machine's processes see another network than those here, and a link that is cut is no end of a
/// connection that anybody tells: ssh has to notice by itself.
#[test]
fn a_machine_behind_a_link_is_measured_and_a_link_that_is_cut_costs_a_pair() {
    // A setting that another test changes meanwhile would make it another machine.
    let _turn = Turn::with(SETTINGS);
    let home = Home::new();
    let Some(machine) = Machine::start_behind_a_link(&home) else { return };
    let network = machine.network.as_ref().unwrap();
    home.file("none", "");
    let unknown = ["compare", &machine.label_with("identity", "none"), "-w", "getppid"];
    let refused = home.start(machine.weigh(&unknown)).finish();
    refused.assert_error(&["Host key verification failed", "connect once with `ssh -p"]);
    let label = machine.label();
    let sample = ["8", "--sample", "300ms", "--inconclusive-ok"];
    let arguments = ["compare", &label, "-w", "getppid", "--no-detail", "--pairs"];
    let mut running = home.start(machine.weigh(&[&arguments[..], &sample].concat()));
    home.wait_for_samples(2, &mut running);
    assert!(wait_until(LIMIT, || machine.is_at_work()), "{}", running.said());
    let first = holder(&running);
    network.ip(THERE, &["link", "set", "eth0", "down"]);
    let is_given_up = || found_holder(&running) != Some(first);
    assert!(wait_until(LIMIT, is_given_up), "{}", running.said());
    network.ip(THERE, &["link", "set", "eth0", "up"]);
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let json = home.json();
    let warnings = json["warnings"].to_string();
    assert!(warnings.contains("A pair was dropped because the connection was lost"), "{warnings}");
    assert_eq!(json["results"][0]["pairs"], 8, "{json:#}");
    machine.assert_nothing_left();
}

/// N6: it stayed until sshd noticed, which with its defaults takes hours.
#[test]
fn what_is_on_a_machine_that_is_cut_off_goes_without_a_word_from_here() {
    let _turn = Turn::share();
    let home = Home::new();
    let Some(machine) = Machine::start_behind_a_link(&home) else { return };
    let mut running = home.start(machine.weigh(&["compare", &machine.label(), "-w", "getppid"]));
    home.wait_for_samples(2, &mut running);
    machine.network.as_ref().unwrap().ip(THERE, &["link", "set", "eth0", "down"]);
    drop(running); // as by `kill -9`
    machine.assert_nothing_left();
}

/// Lists the listeners in this side's network, by IPv4 or IPv6: the program, and its local address.
fn listeners(network: &Network, side: usize) -> BTreeSet<(String, String)> {
    let mut ss = network.enter(side, Command::new("nsenter"));
    let output = ss.args(["ss", "-Htlnp"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let of_line = |line: &str| {
        let address = line.split_whitespace().nth(3)?.rsplit_once(':')?.0.to_owned();
        // Of one that has just ended the name is not known.
        let program = line.split('"').nth(1).unwrap_or_default().to_owned();
        Some((program, address))
    };
    String::from_utf8_lossy(&output.stdout).lines().filter_map(of_line).collect()
}

/// The servers are here, with the treatment, and listen at the one address; the client is there.
#[test]
fn a_client_on_another_machine_asks_the_servers_of_this_one() {
    if !["mariadb", "postgres", "php-site", "redis"].into_iter().all(has) {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let Some(machine) = Machine::start_behind_a_link(&home) else { return };
    let network = machine.network.as_ref().unwrap();
    let client = machine.client();
    let asking =
        ["app:db.point-read@mariadb", "app:db.point-read@postgres", "app:web.cookie@nginx-fpm"];
    let others = ["app:kv.get-set@redis", "getppid"];
    let works: Vec<&str> = asking.into_iter().chain(others).flat_map(|work| ["-w", work]).collect();
    let command = ["compare", "seccomp", "--client", &client, "--sample", "20ms", "--no-detail"];
    let command = [&command[..], &["--budget", "20m"], &works].concat();
    let mut running = home.start(machine.weigh(&command));
    let mut seen = BTreeSet::new();
    let wanted = (2 * asking.len() as u64 * hard(1, 8)) as i64;
    let has_pairs = || {
        seen.extend(listeners(network, HERE));
        home.samples() >= wanted || running.has_ended()
    };
    assert!(wait_until(5 * LIMIT, has_pairs), "{}", running.said());
    kill_process(Pid::from_raw(running.pid()).unwrap(), Signal::INT).unwrap();
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(130), "{outcome:#?}");
    // Each of the servers, and none at another address.
    assert!(seen.iter().all(|(_, address)| address == ADDRESSES[HERE]), "{seen:?}");
    let listened = |name: &str| seen.iter().any(|(program, _)| program == name);
    assert!(["mariadbd", "nginx", "postgres"].into_iter().all(listened), "{seen:?}");
    let json = home.json();
    for work in asking {
        let row = row(&json, work);
        assert!(row["pairs"].as_u64() >= Some(hard(1, 8)), "{json:#}");
        assert!(!row["readings"].to_string().contains("cpu_time"), "{row}");
    }
    assert_eq!((&json["client"], &json["treat"]), (&client.clone().into(), &"server".into()));
    let told = json.to_string();
    let asked = "to the servers at 203.0.113.1 from 203.0.113.2";
    for part in [asked, "the servers answer only 203.0.113.2"] {
        assert!(told.contains(part), "{told}");
    }
    let failures = json["failures"].to_string();
    let not_served = "`redis` cannot be used from a different machine";
    for part in [not_served, "it sends no requests to a server"] {
        assert!(failures.contains(part), "{failures}");
    }
    machine.assert_nothing_left();
}

/// Whitcher's `uname -a` beside a database with six clients on other machines.
#[test]
fn the_clients_of_an_activity_are_on_another_machine() {
    if !has("mariadb") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let Some(machine) = Machine::start_behind_a_link(&home) else { return };
    let network = machine.network.as_ref().unwrap();
    let client = machine.client();
    let beside = "app:db.random-insert@mariadb-relaxed:copies=6";
    let command = ["run", "feel:spawn", "--client", &client, "--beside", beside, "--samples"];
    let mut running =
        home.start(machine.weigh(&[&command[..], &["3", "--sample", "200ms"]].concat()));
    let (mut seen, mut copies) = (BTreeSet::new(), BTreeSet::new());
    let has_ended = || {
        seen.extend(listeners(network, HERE));
        copies.extend(machine.at_work("beside"));
        assert!(machine.at_work("run").is_empty(), "the measured workload is here");
        running.has_ended()
    };
    assert!(wait_until(5 * LIMIT, has_ended), "{}", running.said());
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    // One process starts them. A single look may miss some on a busy machine, and each sample has others.
    let children =
        |(_, own): &(u32, u32)| copies.iter().filter(|(parent, _)| parent == own).count();
    assert!(copies.iter().map(children).max() >= Some(6), "{copies:?}, {outcome:#?}");
    assert!(seen.iter().all(|(_, address)| address == ADDRESSES[HERE]), "{seen:?}");
    assert!(seen.iter().any(|(program, _)| program == "mariadbd"), "{seen:?}");
    let json = home.json();
    let rows = json["results"].as_array().unwrap().iter();
    let rows: Vec<_> =
        rows.map(|row| (row["workload"].as_str(), row["samples"].as_u64())).collect();
    let beside = format!("feel:spawn/{beside}");
    assert_eq!(rows, [(Some("feel:spawn"), Some(3)), (Some(&*beside), Some(3))], "{json:#}");
    let told = json["facts"].to_string();
    let asked = "to the servers at 203.0.113.1 from 203.0.113.2";
    let copies =
        "6 copies of `app:db.random-insert` ran on the client's machine during each sample.";
    for part in [asked, copies, "the servers answer only 203.0.113.2"] {
        assert!(told.contains(part), "{told}");
    }
    machine.assert_nothing_left();
    // Without an activity it has no requests to send.
    let alone = machine.weigh(&["run", "feel:spawn", "--client", &client, "--samples", "3"]);
    home.start(alone).finish().assert_says(&["it sends no requests to a server"]);
}

/// An activity on this machine by way of ssh, beside a workload of both arms.
fn beside_clients_there(then: impl FnOnce(&Home, &Machine, Running)) {
    if !has("mariadb") {
        return;
    }
    let _turn = Turn::with(SETTINGS);
    let home = open_home();
    let Some(machine) = Machine::start(&home) else { return };
    let client = machine.client();
    let beside = "getppid/app:db.random-insert@mariadb-relaxed:copies=2";
    let arguments = ["compare", "seccomp", "-w", beside, "--no-detail", "--client", &client];
    let how = ["--pairs", "8", "--sample", "1s", "--inconclusive-ok"];
    let running = home.start(home.weigh(&[&arguments[..], &how].concat()));
    then(&home, &machine, running);
    assert_nothing_is_left(&home);
}

#[test]
fn an_activity_on_another_machine_ends_with_a_weigh_that_is_killed() {
    beside_clients_there(|home, machine, mut running| {
        home.wait_for_samples(2, &mut running);
        assert!(wait_until(LIMIT, || machine.is_at_work()), "{}", running.said());
        drop(running); // as by `kill -9`
        machine.assert_nothing_left();
    });
}

#[test]
fn an_activity_whose_connection_is_lost_costs_a_pair() {
    beside_clients_there(lose_the_connection);
}

#[test]
fn a_client_that_is_lost_costs_a_pair_and_what_cannot_be_is_said() {
    if !has("nginx") {
        return;
    }
    // A setting that another test changes meanwhile would make it another machine.
    let _turn = Turn::with(SETTINGS);
    let home = open_home();
    let Some(machine) = Machine::start(&home) else { return };
    let client = machine.client();
    let arguments = ["compare", "seccomp", "-w", "app:web.page@nginx", "--no-detail", "--client"];
    let how = [&client, "--pairs", "8", "--sample", "300ms", "--inconclusive-ok"];
    let running = home.start(home.weigh(&[&arguments[..], &how].concat()));
    lose_the_connection(&home, &machine, running);

    let refused = |client: &str, more: &[&str], parts: &[&str]| {
        home.run(&[&arguments[..], &[client], more].concat()).assert_error(parts);
        machine.assert_nothing_left();
    };
    refused(&client, &["--treat", "both"], &["leave --treat out"]);
    refused(&client, &["--metric", "cpu_time"], &["no verdict on cpu_time"]);
    refused("4", &[], &["for the number of clients, use --clients 4"]);
    refused(&client, &["--clients", &client], &["where they are is --client "]);
    refused("root@h,address=here", &[], &["takes an IPv4 address"]);
    let elsewhere = format!("{client},address=203.0.113.9");
    refused(&elsewhere, &[], &["servers cannot listen on that address"]);
    home.file("nobody", "");
    let unknown = machine.label_with("identity", "nobody").replacen("host:", "", 1);
    refused(&unknown, &[], &["Host key verification failed"]);
}
