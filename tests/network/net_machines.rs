//! `weigh net` with black boxes that are other machines: three network namespaces stand for them, on two
//! networks of this test's own. In one is `weigh net`, in the others an sshd each.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::support::grid::small;
use crate::support::processes::signal;
use crate::support::sshd::{self, SSHD, Sshd, can_have_sshd};
use crate::support::{Home, Outcome, Running, Turn, row, skip, wait_until};
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use wire::{Interfaces, Namespace};

const LONG: Duration = Duration::from_secs(60);
const ACTIVE: &str = "10.96.1.2";
const PASSIVE: &str = "10.96.2.2";
/// Each machine has all of its ports to itself.
const PORT: u16 = 22;

/// Three machines: each has a home, and a network interface.
struct Lab {
    weighed: Home,
    machines: [Arc<Namespace>; 3],
    far: [Home; 2],
    sshds: [Option<Sshd>; 2],
}

fn can_have_machines() -> bool {
    let can = fs::metadata("/dev/net/tun").is_ok() && crate::support::is_root();
    if !can {
        skip("tun", "needs root and /dev/net/tun");
    }
    can && can_have_sshd()
}

impl Lab {
    /// Creates the three machines, without an sshd.
    fn new() -> Lab {
        let machines = [(); 3].map(|()| Arc::new(Namespace::new().unwrap()));
        let [weighed, active, passive] = &machines;
        for (number, (other, name)) in [(active, "to-a"), (passive, "to-p")].into_iter().enumerate()
        {
            weighed.run(|| Interfaces::open()?.add_veth(name, "eth0", other)).unwrap();
            for (machine, interface, host) in [(weighed, name, 1), (other, "eth0", 2)] {
                let address = IpAddr::from(Ipv4Addr::new(10, 96, number as u8 + 1, host));
                let give = || {
                    let interfaces = Interfaces::open()?;
                    interfaces.bring_up("lo", None, None)?;
                    interfaces.bring_up(interface, None, None)?;
                    interfaces.add_address(interface, address, 24)
                };
                machine.run(give).unwrap();
            }
        }
        let home = Home::new();
        home.file("small.toml", small("activity-ftp", &[("Video", 65536)]));
        let far = [(); 2].map(|()| Home::new());
        Lab { weighed: home, machines, far, sshds: [None, None] }
    }

    fn with_sshds() -> Lab {
        let mut lab = Lab::new();
        (0..2).for_each(|number| lab.start_sshd(number, ""));
        lab
    }

    fn start_sshd(&mut self, number: usize, settings: &str) {
        let mut command = Command::new(SSHD);
        enter(&mut command, &self.machines[1 + number]);
        let address = ([ACTIVE, PASSIVE][number], PORT);
        self.sshds[number] = Some(Sshd::start(&self.far[number], address, command, settings));
    }

    /// How it is named, whether or not anybody listens.
    fn destination(&self, number: usize) -> String {
        match &self.sshds[number] {
            Some(sshd) => sshd.destination(&self.far[number]),
            None => format!("root@{}", [ACTIVE, PASSIVE][number]),
        }
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let [active, passive] = [0, 1].map(|number| self.destination(number));
        let hosts = ["--active", &active, "--passive", &passive];
        let is_continued = arguments.contains(&"--continue");
        let hosts = if is_continued { &[][..] } else { &hosts[..] };
        let mut command = self.weighed.weigh(&[arguments, hosts].concat());
        enter(&mut command, &self.machines[0]);
        self.weighed.start(command)
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        self.start(arguments).finish()
    }

    /// No process and no file. A testbed's interfaces go with its processes.
    #[track_caller]
    fn assert_nothing_left(&self) {
        let there = self.far.iter().zip(&self.sshds).filter(|(_, sshd)| sshd.is_some());
        for (home, _) in there {
            assert!(wait_until(LONG, || sshd::is_clean(home)), "{:?}", home.path("there"));
        }
        let is_over = || self.weighed.processes().is_empty();
        assert!(wait_until(LONG, is_over), "{:?}", self.weighed.describe_processes());
    }
}

/// The command is executed on this machine.
fn enter(command: &mut Command, machine: &Arc<Namespace>) {
    let machine = Arc::clone(machine);
    // SAFETY: it makes one system call.
    unsafe { command.pre_exec(move || machine.enter()) };
}

#[test]
fn three_machines_give_one_btu_and_can_be_compared() {
    if !can_have_machines() {
        return;
    }
    let _turn = Turn::share();
    let lab = Lab::with_sshds();
    let arguments =
        ["net", "--grid", "./small.toml", "--precision", "90%", "--budget", "120s", "-v"];
    let outcome = lab.run(&arguments);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    outcome.assert_says(&[
        "(BTU): ",
        "W_active is a different machine, root@10.96.1.2: ",
        "over the wire without delay to W_passive: median",
    ]);
    let net = &lab.weighed.json()["net"];
    assert_eq!((net["cells"].as_u64(), net["missing"].as_array().unwrap().len()), (Some(13), 0));
    // What was delayed and dropped shows: by the wire of another machine.
    let readings = |cell: &str, name: &str| -> f64 {
        let sql = format!(
            "SELECT avg(json_extract(reading.value, '$.value')) FROM sample, work, \
             json_each(sample.sample, '$.readings') AS reading WHERE work.experiment = sample.experiment \
             AND work.number = sample.work AND work.name LIKE '%{cell}%' \
             AND json_extract(reading.value, '$.name') = '{name}'"
        );
        lab.weighed.open_database().query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert!(readings("send-dl@1ms", "least_round_trip") >= 1e6);
    assert!(readings("2send-dr", "dropped_packets") >= 2.0);
    lab.assert_nothing_left();
    // The second set connects anew.
    let compare = ["compare", "seccomp:compares=2000", "-w", "net:./small.toml", "--sets", "2"];
    let short = ["--pairs", "8", "--no-detail", "--inconclusive-ok"];
    let outcome = lab.run(&[&compare[..], &short].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(row(&lab.weighed.json(), "net:./small.toml")["unit"], "Mb/s");
    lab.assert_nothing_left();
}

#[test]
fn an_unreachable_machine_or_a_forbidden_socket_gives_no_result() {
    if !can_have_machines() {
        return;
    }
    let _turn = Turn::share();
    let mut lab = Lab::new();
    let refused = |lab: &Lab, said: &[&str]| {
        let outcome = lab.run(&["net", "--grid", "./small.toml"]);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        outcome.assert_says(said);
        lab.assert_nothing_left();
    };
    refused(&lab, &["root@10.96.1.2", "Connection refused"]);
    lab.start_sshd(0, "");
    refused(&lab, &["root@10.96.2.2", "Connection refused"]);
    lab.start_sshd(1, "AllowStreamLocalForwarding no\n");
    refused(&lab, &["root@10.96.2.2", "set `AllowStreamLocalForwarding yes`"]);
}

/// Whoever dies, in whatever phase: what was measured is kept, and the others are as they were.
#[test]
fn a_lost_machine_keeps_the_finished_cells_and_leaves_nothing_behind() {
    if !can_have_machines() {
        return;
    }
    let _turn = Turn::share();
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(1996);
    let mut lab = Lab::with_sshds();
    for round in 0..crate::support::hard(4, 60) {
        let samples = lab.weighed.samples();
        let mut running = lab.start(&["net", "--grid", "./small.toml", "--precision", "0.01%"]);
        // From before it begins to when it is well under way.
        if round % 4 == 0 {
            std::thread::sleep(Duration::from_millis(chance.random_range(0..2000)));
        } else {
            lab.weighed.wait_for_samples(samples + 1, &mut running);
            std::thread::sleep(Duration::from_millis(chance.random_range(0..500)));
        }
        let number = chance.random_range(0..2);
        match round % 2 {
            0 => {
                lab.sshds[number] = None;
                let outcome = running.finish();
                assert_eq!(outcome.code, Some(2), "{outcome:#?}");
                outcome.assert_says(&[[ACTIVE, PASSIVE][number]]);
                lab.start_sshd(number, "");
            }
            _ => {
                let processes = lab.weighed.processes();
                signal(processes[chance.random_range(0..processes.len())], Signal::KILL);
                std::thread::sleep(Duration::from_millis(200));
                signal(running.pid(), Signal::INT);
                running.finish();
                lab.weighed.run(&["restore"]);
            }
        }
        assert_eq!(lab.weighed.leftovers(), Vec::<PathBuf>::new());
        lab.assert_nothing_left();
    }
    assert!(lab.weighed.samples() > 0);
}

#[test]
fn an_experiment_goes_on_when_the_machine_is_back() {
    if !can_have_machines() {
        return;
    }
    let _turn = Turn::share();
    let mut lab = Lab::with_sshds();
    let mut running = lab.start(&["net", "--grid", "./small.toml", "--precision", "0.01%"]);
    lab.weighed.wait_for_samples(13, &mut running);
    // In the middle of a cell: it is not the cell that fails.
    let is_measuring = || !lab.weighed.processes_of("weigh-workloads comm").is_empty();
    assert!(wait_until(LONG, is_measuring), "{}", running.said());
    lab.sshds[1] = None;
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["the connection to root@10.96.2.2 was lost", "--continue"]);
    let samples = lab.weighed.samples();
    lab.start_sshd(1, "");
    let outcome =
        lab.run(&["net", "--continue", "latest", "--budget", "20s", "--precision", "90%"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(lab.weighed.samples() > samples);
    lab.assert_nothing_left();
}
