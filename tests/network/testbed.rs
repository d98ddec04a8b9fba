//! The testbed: three hosts that a launcher's workers join, links that do what they are told, and nothing
//! left however it ends. Root's parts are skipped without root, the ordinary user's part is run as nobody.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Home, NOBODY, is_root, program, roots, skip, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use weigh_testbed::{
    BlackBox, Extent, Heading, HostName, SUBCOMMAND, Testbed, TestbedError, TestbedSetup, Via,
};
use weigh_workload::launcher::{Job, Launched, Launcher};
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::enter_root::EnterRoot;
use weigh_workload::setup::kind::join_network::JoinNetwork;
use wire::{Cause, Impairment, Interfaces, Namespace};

static NEVER: AtomicBool = AtomicBool::new(false);
/// The library ends orphans of this process: of one test at a time.
static ALONE: Mutex<()> = Mutex::new(());
const LONG: Duration = Duration::from_secs(30);

fn role() -> Command {
    let mut command = Command::new(program());
    command.arg(SUBCOMMAND);
    command
}

/// A testbed; `None` where it takes root, which these tests do not have.
fn testbed() -> Option<Testbed> {
    match Testbed::start(role(), &TestbedSetup::default(), &NEVER) {
        Err(error) if !is_root() => {
            skip("root", &error.to_string());
            None
        }
        started => Some(started.unwrap()),
    }
}

fn launcher(command: Command, join: &JoinNetwork) -> Launcher {
    Launcher::start(command, &Setup::default().with(join.clone()), &NEVER).unwrap()
}

fn launcher_role() -> Command {
    let mut command = Command::new(program());
    command.arg("__launcher");
    command
}

fn run(launcher: &mut Launcher, script: &str) -> Launched {
    let job = Job::new(["/bin/sh", "-c", script].map(String::from).to_vec(), "/", 30_000);
    let launched = launcher.run(&job, &NEVER).unwrap();
    assert_eq!(launched.exit_code, Some(0), "{}{}", launched.stdout, launched.stderr);
    launched
}

/// Asserts that a process in this network namespace sees the network of a host.
fn assert_is_a_host(launched: &Launched, name: HostName, join: &JoinNetwork) {
    join.prove(&launched.seen).unwrap();
    let interfaces: Vec<&str> = launched
        .stdout
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim()))
        .filter(|name| !name.contains(char::is_whitespace))
        .collect();
    let mut expected = match name {
        HostName::Test => vec!["lan-active", "lan-passive", "lo", "wire-active", "wire-passive"],
        HostName::Active | HostName::Passive => vec!["lan", "lo", "wire"],
    };
    expected.sort_unstable();
    let mut found = interfaces;
    found.sort_unstable();
    assert_eq!(found, expected, "{}", launched.stdout);
    // The second column of /proc/net/route is where to; zeros are everywhere.
    let leads_out = |line: &str| line.split_whitespace().nth(1) == Some("00000000");
    assert!(!launched.stdout.lines().any(leads_out), "{}", launched.stdout);
}

const LOOK: &str = "cat /proc/self/net/dev /proc/self/net/route";

#[test]
fn workers_join_each_host_and_are_proved_to_have() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let Some(bed) = testbed() else { return };
    let mut inodes = vec![fs::metadata("/proc/self/ns/net").unwrap().ino()];
    for name in HostName::ALL {
        let join = &bed.ready.host(name).unwrap().join;
        let mut launcher = launcher(launcher_role(), join);
        for _ in 0..3 {
            assert_is_a_host(&run(&mut launcher, LOOK), name, join);
        }
        // One that ends at once was there, too.
        join.prove(&run(&mut launcher, "exit 0").seen).unwrap();
        inodes.push(join.inode);
    }
    inodes.sort_unstable();
    inodes.dedup();
    assert_eq!(inodes.len(), 4, "three hosts, and none of them is this machine");
}

#[test]
fn a_worker_that_is_elsewhere_is_not_proved() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let Some(bed) = testbed() else { return };
    let [test, active] =
        [HostName::Test, HostName::Active].map(|name| bed.ready.host(name).unwrap().join.clone());
    let mut there = launcher(launcher_role(), &active);
    let seen = run(&mut there, "true").seen;
    assert!(test.prove(&seen).unwrap_err().contains(", not in"));
    let mut outside = Launcher::start(launcher_role(), &Setup::default(), &NEVER).unwrap();
    assert!(test.prove(&run(&mut outside, "true").seen).is_err());
}

/// Sends datagrams of W_test to a black box, and counts there.
fn datagrams(bed: &Testbed, link: BlackBox, count: u32) -> u32 {
    let ends = bed.ready.link(link).unwrap().wire.ipv4;
    let join = |name| &bed.ready.host(name).unwrap().join;
    let [mut near, mut far] =
        [HostName::Test, link.host()].map(|n| launcher(launcher_role(), join(n)));
    let receive = format!(
        "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('{}', 7000)); n = 0\n\
         try:\n  while True:\n    data, sender = s.recvfrom(100); s.settimeout(2)\n\
         \x20   if data == b'numbered': n += 1\n    else: s.sendto(b'here', sender)\n\
         except socket.timeout: print(n)",
        ends.other
    );
    // The other end listens when it answers.
    let send = format!(
        "import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); s.connect(('{}', 7000))\n\
         s.settimeout(0.1)\n\
         def heard():\n  try: s.send(b'there'); return s.recv(100) == b'here'\n\
         \x20 except (ConnectionRefusedError, socket.timeout): return False\n\
         while not heard(): time.sleep(0.02)\n\
         for i in range({count}): s.send(b'numbered'); time.sleep(0.001)",
        ends.other
    );
    let receiving =
        std::thread::spawn(move || run(&mut far, &format!("python3 -c \"{receive}\"")).stdout);
    run(&mut near, &format!("python3 -c \"{send}\""));
    receiving.join().unwrap().trim().parse().unwrap()
}

#[test]
fn a_link_does_what_it_is_told_and_counts_it() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let Some(mut bed) = testbed() else { return };
    let loss = vec!["1@3%10".parse().unwrap()];
    let impairment = Impairment { loss, logs_drops: true, ..Impairment::default() };
    bed.configure(BlackBox::Passive, Heading::FromTest, &impairment, &NEVER).unwrap();
    let arrived = datagrams(&bed, BlackBox::Passive, 100);
    let count = bed.counters(BlackBox::Passive, &NEVER).unwrap();
    let packets = count.from_test.decided.packets;
    assert!(packets > 100, "{count:?}");
    let drops = bed.drops(BlackBox::Passive, Heading::FromTest, &NEVER).unwrap();
    let numbers: Vec<u64> = drops.iter().map(|drop| drop.number).collect();
    let expected: Vec<u64> = (1..=packets).filter(|number| number % 10 == 3).collect();
    assert_eq!(numbers, expected);
    assert!(drops.iter().all(|drop| drop.cause == Cause::Number));
    assert_eq!(count.from_test.dropped, [(Cause::Number, numbers.len() as u64)].into());
    assert!(u64::from(arrived) <= count.from_test.delivered, "{arrived}: {count:?}");
    assert!(arrived >= 90, "{arrived}: {count:?}");
    assert_eq!(count.device_dropped_from_test, 0);
    // The other link saw nothing of it: a host says nothing by itself.
    let other = bed.counters(BlackBox::Active, &NEVER).unwrap();
    assert_eq!(other.from_test.decided.packets + other.to_test.decided.packets, 0);
    bed.reset(BlackBox::Passive, &NEVER).unwrap();
    let count = bed.counters(BlackBox::Passive, &NEVER).unwrap();
    assert_eq!((count.from_test.decided.packets, count.from_test.all_dropped()), (0, 0));
}

/// Sends datagrams to the other end of the wire, as many as go in this time.
fn flood(bed: &Testbed, host: HostName, link: BlackBox) -> std::thread::JoinHandle<Launched> {
    let ends = bed.ready.link(link).unwrap().wire.ipv4;
    let to = if host == HostName::Test { ends.other } else { ends.test };
    let mut launcher = launcher(launcher_role(), &bed.ready.host(host).unwrap().join);
    let script = format!(
        "import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); s.connect(('{to}', 7001))\n\
         end = time.monotonic() + 2\n\
         while time.monotonic() < end:\n  for _ in range(20):\n    try: s.send(bytes(1200))\n\
         \x20   except OSError: pass\n  time.sleep(0.005)"
    );
    std::thread::spawn(move || run(&mut launcher, &format!("python3 -c \"{script}\"")))
}

/// Four ports send more than a hub carries, each more than it does: together they have its rate and no more.
#[test]
fn all_ports_of_a_hub_have_one_rate_together_in_both_directions() {
    const RATE: f64 = 10e6;
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let Some(mut bed) = testbed() else { return };
    let hub = Impairment {
        rate_bits_per_s: Some(RATE as u64),
        overhead_bytes: 38,
        shared: true,
        ..Impairment::default()
    };
    for link in BlackBox::ALL {
        for heading in [Heading::FromTest, Heading::ToTest] {
            bed.configure(link, heading, &hub, &NEVER).unwrap();
        }
    }
    let begun = std::time::Instant::now();
    let senders: Vec<_> = BlackBox::ALL
        .into_iter()
        .flat_map(|link| [HostName::Test, link.host()].map(|host| flood(&bed, host, link)))
        .collect();
    senders.into_iter().for_each(|sender| drop(sender.join().unwrap()));
    let mut bits = 0.0;
    for link in BlackBox::ALL {
        let count = bed.counters(link, &NEVER).unwrap();
        for one in [&count.from_test, &count.to_test] {
            bits += 8.0 * (one.delivered_bytes + 38 * one.delivered) as f64;
            assert!(one.delivered > 0, "{count:?}");
            assert!(one.dropped.contains_key(&Cause::Queue), "it was never full: {count:?}");
        }
    }
    let most = RATE * begun.elapsed().as_secs_f64();
    assert!(bits <= most, "{bits} bits where {most} are possible");
}

#[test]
fn a_delay_is_there_and_only_on_the_wire() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let Some(mut bed) = testbed() else { return };
    let delay_ns = 20_000_000;
    let impairment = Impairment { delay_ns, ..Impairment::default() };
    bed.configure(BlackBox::Active, Heading::ToTest, &impairment, &NEVER).unwrap();
    let mut times = |link, via| bed.round_trips(link, via, 20, &NEVER).unwrap();
    let delayed = times(BlackBox::Active, Via::Wire);
    assert!(delayed.min_ns >= delay_ns, "{delayed:?}");
    for (link, via) in [(BlackBox::Active, Via::Lan), (BlackBox::Passive, Via::Wire)] {
        let times = times(link, via);
        assert!(times.min_ns < delay_ns, "{link:?}, {via:?}: {times:?}");
    }
    let too_long = Impairment { delay_ns: 2_000_000_000, ..Impairment::default() };
    let refused = bed.configure(BlackBox::Active, Heading::ToTest, &too_long, &NEVER).unwrap_err();
    assert!(refused.to_string().contains("at most one second"), "{refused}");
    // It goes on as it was.
    assert!(bed.round_trips(BlackBox::Active, Via::Wire, 1, &NEVER).unwrap().min_ns >= delay_ns);
}

/// Returns true if any process is in the namespace, or has it open.
fn is_held(inode: u64) -> bool {
    let is_it = |path: &Path| fs::metadata(path).is_ok_and(|found| found.ino() == inode);
    let names_it = format!("net:[{inode}]");
    let of_process = |process: fs::DirEntry| {
        let path = process.path();
        let files = fs::read_dir(path.join("fd")).into_iter().flatten().flatten();
        let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
        let tasks = fs::read_dir(path.join("task")).into_iter().flatten().flatten();
        links.any(|link| link == Path::new(&names_it))
            || tasks.map(|task| task.path().join("ns/net")).any(|path| is_it(&path))
    };
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.contains(&names_it) || fs::read_dir("/proc").unwrap().flatten().any(of_process)
}

#[test]
fn nothing_is_left_however_it_ends() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    for signal in [Some(Signal::KILL), Some(Signal::ABORT), None] {
        let Some(mut bed) = testbed() else { return };
        let inodes: Vec<u64> = bed.ready.hosts.iter().map(|host| host.join.inode).collect();
        assert!(inodes.iter().all(|inode| is_held(*inode)));
        let join = bed.ready.host(HostName::Active).unwrap().join.clone();
        let mut there = launcher(launcher_role(), &join);
        let pid = bed.ready.pid;
        match signal {
            Some(signal) => {
                kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
                // Who is there yet sees the wire go, and the host stay as long as himself.
                let wire_is_gone =
                    || !run(&mut there, "cat /proc/self/net/dev").stdout.contains("wire:");
                assert!(wait_until(LONG, wire_is_gone));
                let error = bed.counters(BlackBox::Active, &NEVER).unwrap_err();
                assert!(matches!(error, TestbedError::Failed(_)), "{error}");
                drop(bed);
            }
            None => drop(bed),
        }
        drop(there);
        assert!(wait_until(LONG, || !Path::new(&format!("/proc/{pid}")).exists()));
        let is_gone = || !inodes.iter().any(|inode| is_held(*inode));
        assert!(wait_until(LONG, is_gone), "{signal:?}");
        // Its number leads nowhere any more.
        assert!(
            Setup::default().with(join.clone()).steps().all(|step| step.in_launcher().is_err())
        );
    }
}

/// As root, a user without privileges who may open `/dev/net/tun`, as on most systems; on this one root
/// alone may. The device is one of a private mount namespace.
fn as_nobody_with_tun(directory: &Path, role: &str) -> Command {
    let script = r#"
        mkdir -p "$0/dev" && mount -t tmpfs -o dev,mode=755 none "$0/dev" &&
        mknod "$0/dev/tun" c 10 200 && chmod 666 "$0/dev/tun" && mkdir -p /dev/net &&
        mount --bind "$0/dev/tun" /dev/net/tun &&
        exec setpriv --reuid "$1" --regid "$1" --clear-groups "$0/weigh" "$2""#;
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(directory).arg(NOBODY.to_string()).arg(role);
    command
}

#[test]
fn an_ordinary_user_has_the_same_in_a_user_namespace() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    if !is_root() {
        skip("tun", "it takes root to give nobody a TUN device");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::copy(program(), directory.path().join("weigh")).unwrap();
    for path in [directory.path().to_owned(), directory.path().join("weigh")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let role = |role| as_nobody_with_tun(directory.path(), role);
    let setup = TestbedSetup { real_time: true, ..TestbedSetup::default() };
    let mut bed = match Testbed::start(role(SUBCOMMAND), &setup, &NEVER) {
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains("user namespaces are not permitted"), "{said}");
            skip("user-namespaces", &said);
            return;
        }
        Ok(bed) => bed,
    };
    assert!(bed.ready.is_rootless);
    assert!(bed.ready.not_real_time.is_some() && bed.ready.not_locked.is_some(), "{:?}", bed.ready);
    for name in HostName::ALL {
        let join = bed.ready.host(name).unwrap().join.clone();
        let mut launcher = launcher(role("__launcher"), &join);
        let launched = run(&mut launcher, &format!("{LOOK}; id -u >&2"));
        assert_is_a_host(&launched, name, &join);
        assert_eq!(launched.stderr.trim(), NOBODY.to_string());
    }
    let times = bed.round_trips(BlackBox::Passive, Via::Wire, 10, &NEVER).unwrap();
    assert_eq!(times.lost, 0);
    let pid = bed.ready.pid;
    let inodes: Vec<u64> = bed.ready.hosts.iter().map(|host| host.join.inode).collect();
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let is_gone = || !inodes.iter().any(|inode| is_held(*inode));
    assert!(wait_until(LONG, is_gone));
}

#[test]
fn without_a_tun_device_it_says_what_is_missing() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    if !is_root() {
        skip("tun", "it takes root to take the TUN device away");
        return;
    }
    let mut command = Command::new("unshare");
    let script = r#"mount -t tmpfs none /dev/net && exec "$0" "$1""#;
    command.args(["-m", "sh", "-c", script]).arg(program()).arg(SUBCOMMAND);
    let error = Testbed::start(command, &TestbedSetup::default(), &NEVER).err().unwrap();
    assert!(error.to_string().contains("no TUN devices"), "{error}");
}

#[test]
fn a_host_is_joined_before_a_root_is_entered() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let Some(bed) = testbed() else { return };
    let home = Home::new();
    let base = home.path("base");
    for name in ["above", "mounts"] {
        fs::create_dir_all(base.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(roots::tiny(&home, "small"), base.join("tree")).unwrap();
    let join = bed.ready.host(HostName::Test).unwrap().join.clone();
    let root = EnterRoot { base, shared: vec![home.directory.path().to_owned()] };
    let setup = Setup::default().with(join.clone()).with(root);
    let mut launcher = Launcher::start(launcher_role(), &setup, &NEVER).unwrap();
    // The shell reads it, as this root has no programs besides.
    let look = "while read a b; do echo $a $b; done < /proc/self/net/dev
                read name < /only-there; echo is $name";
    let launched = run(&mut launcher, look);
    assert!(launched.stdout.ends_with("is small\n"), "{}", launched.stdout);
    assert_is_a_host(&launched, HostName::Test, &join);
}

/// Packets are dropped by their number: one that the kernel or a stranger sends shifts all of them.
#[test]
fn a_far_testbed_sends_nothing_by_itself_and_hears_its_tester_alone() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    if !is_root() || !Path::new("/dev/net/tun").exists() {
        skip("tun", "needs root and /dev/net/tun");
        return;
    }
    let [outside, there] = [(); 2].map(|()| Arc::new(Namespace::new().unwrap()));
    outside.run(|| Interfaces::open()?.add_veth("eth0", "eth0", &there)).unwrap();
    for machine in [&outside, &there] {
        machine.run(|| Interfaces::open()?.bring_up("eth0", None, None)).unwrap();
    }
    let at: IpAddr = Ipv4Addr::new(192, 0, 2, 1).into();
    there.run(|| Interfaces::open()?.add_address("eth0", at, 24)).unwrap();
    let mut command = role();
    let to = Arc::clone(&there);
    // SAFETY: one system call.
    unsafe { command.pre_exec(move || to.enter()) };
    let extent = Extent::Far { black_box: BlackBox::Active, at };
    let setup = TestbedSetup { extent, ..TestbedSetup::default() };
    let mut bed = Testbed::start(command, &setup, &NEVER).unwrap();
    let say = |host: u8| {
        let own = Ipv4Addr::new(198, 18, 1, host);
        let say = || {
            Interfaces::open()?.add_address("eth0", own.into(), 24)?;
            UdpSocket::bind((own, 0))?.send_to(b"x", "198.18.1.2:9")
        };
        outside.run(say).unwrap();
    };
    say(77);
    say(1);
    let host = bed.ready.host(HostName::Active).unwrap().join.namespace.display().to_string();
    let mut arrived = || bed.counters(BlackBox::Active, &NEVER).unwrap();
    assert!(wait_until(LONG, || arrived().from_test.decided.packets > 0));
    let look = ["cat", "/proc/self/net/if_inet6"];
    let seen = Command::new("nsenter").arg(format!("--net={host}")).args(look).output().unwrap();
    let seen = String::from_utf8(seen.stdout).unwrap();
    assert!(!seen.contains("fe80"), "{seen}");
    assert_eq!(arrived().from_test.decided.packets, 1);
}
