//! The kernel makes no events of processes after any death: it does not notice that a listener died, so this
//! is undone. Nobody else's listener is disturbed, and no sample counts without its events.

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::support::processes::{kill_everything, signal};
use crate::support::{Home, Running, SETTINGS, Turn, is_root, skip, wait_until};
use rand::{RngExt, SeedableRng};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netlink, recv, send,
    socket_with,
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(180);
const EXPERIMENT: &str = "compare proc-connector --budget 60s -- sleep 0.2";
const ARE_ON: &str = "the kernel already makes events of processes";
/// `PROC_CN_MCAST_LISTEN` and `PROC_CN_MCAST_IGNORE`.
const LISTEN: u32 = 1;
const IGNORE: u32 = 2;

fn turn() -> Option<Turn> {
    if !is_root() {
        skip("root", "needs root");
        return None;
    }
    Some(Turn::with(SETTINGS))
}

fn says_on(home: &Home) -> bool {
    home.succeed("list treatments").stdout.contains(ARE_ON)
}

fn begin(home: &Home) -> Running {
    let mut running = home.start(home.weigh(EXPERIMENT));
    home.wait_for_samples(2, &mut running);
    running
}

/// Kills an experiment while the kernel makes events for its listener, or while it makes none.
fn kill_everything_while(home: &Home, are_on: bool) {
    let running = begin(home);
    let is_caught = wait_until(LIMIT, || {
        // No sample begins or ends while somebody looks.
        signal(running.pid(), Signal::STOP);
        let is_so = says_on(home) == are_on;
        if !is_so {
            signal(running.pid(), Signal::CONT);
            // From the sample of one arm to that of the other takes a while.
            std::thread::sleep(Duration::from_millis(rand::random_range(0..300)));
        }
        is_so
    });
    assert!(is_caught, "{}", running.said());
    kill_everything(home, running);
    assert_eq!(says_on(home), are_on, "nobody was left to switch the events");
}

fn assert_nothing_left(home: &Home) {
    home.assert_nothing_left();
    assert!(!says_on(home));
}

#[test]
fn a_killed_weigh_leaves_no_events() {
    let Some(_turn) = turn() else { return };
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(43);
    for _ in 0..crate::support::hard(4, 50) {
        let home = Home::new();
        let mut running = begin(&home);
        std::thread::sleep(Duration::from_micros(chance.random_range(0..500_000)));
        running.kill();
        assert_eq!(running.finish().signal, Some(9));
        assert_nothing_left(&home);
    }
}

#[test]
fn restore_ends_the_events_that_all_of_the_dead_left() {
    let Some(_turn) = turn() else { return };
    let home = Home::new();
    kill_everything_while(&home, true);
    home.succeed("restore").assert_says(&["Put back", ".journal"]);
    assert_nothing_left(&home);
}

#[test]
fn a_listener_that_dies_fails_the_experiment_and_leaves_no_events() {
    let Some(_turn) = turn() else { return };
    let home = Home::new();
    let running = begin(&home);
    assert!(wait_until(LIMIT, || says_on(&home)));
    signal(home.processes_of("__listener")[0], Signal::KILL);
    let outcome = running.finish();
    outcome.assert_error(&["The experiment failed", "No verdict"]);
    outcome.assert_says(&["the listener of the process connector does not answer"]);
    assert_nothing_left(&home);
}

/// Its socket, in the group of listeners.
fn other_program() -> OwnedFd {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::DGRAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(netlink::CONNECTOR)).unwrap();
    bind(&socket, &netlink::SocketAddrNetlink::new(0, 1)).unwrap();
    socket
}

fn tell(socket: &OwnedFd, operation: u32) {
    let header = [40, u32::from(libc::NLMSG_DONE as u16), 0, 0];
    let message = [1, 1, 0, 0, 4, operation];
    let bytes: Vec<u8> = header.into_iter().chain(message).flat_map(u32::to_ne_bytes).collect();
    send(socket, &bytes, SendFlags::empty()).unwrap();
}

/// Waits until the socket receives `PROC_EVENT_EXIT` of a child of this process.
fn wait_for_exit_of_a_child(socket: &OwnedFd, parent: u32) {
    const EXIT: u32 = 0x8000_0000;
    /// After `struct nlmsghdr` and `struct cn_msg`, and the parent after all of the child.
    const WHAT: usize = 36;
    const PARENT: usize = WHAT + 36;
    let exits = |message: &[u8]| {
        let number = |at: usize| u32::from_ne_bytes(message[at..at + 4].try_into().unwrap());
        number(WHAT) == EXIT && number(PARENT) == parent
    };
    let mut buffer = [0; 4096];
    let mut is_next = || {
        let received = recv(socket, &mut buffer[..], RecvFlags::DONTWAIT).ok()?;
        Some(exits(&buffer[..received.0]))
    };
    let is_seen = wait_until(LIMIT, || std::iter::from_fn(&mut is_next).any(|is_it| is_it));
    assert!(is_seen, "process {parent} ended no child");
}

#[test]
fn the_listener_of_another_program_goes_on() {
    let Some(_turn) = turn() else { return };
    let home = Home::new();
    let other = other_program();
    tell(&other, LISTEN);
    let outcome = home.run("compare proc-connector -w getppid --pairs 8");
    let is_still_on = says_on(&home);
    tell(&other, IGNORE);
    outcome.assert_error(&["cannot weigh `proc-connector` here", ARE_ON]);
    assert!(is_still_on);
    assert_nothing_left(&home);
}

#[test]
fn a_baseline_with_events_fails_the_experiment() {
    let Some(_turn) = turn() else { return };
    let home = Home::new();
    let running = begin(&home);
    let other = other_program();
    tell(&other, LISTEN);
    let outcome = running.finish();
    let is_still_on = says_on(&home);
    tell(&other, IGNORE);
    assert!(is_still_on);
    outcome.assert_error(&["The experiment failed", "No verdict"]);
    outcome.assert_says(&["the kernel made events of processes without the treatment"]);
    assert_nothing_left(&home);
}

/// Then nobody can tell for whom the kernel makes events.
#[test]
fn what_a_killed_listener_left_waits_until_another_program_has_ended() {
    let Some(_turn) = turn() else { return };
    let home = Home::new();
    kill_everything_while(&home, true);
    let other = other_program();
    tell(&other, LISTEN);
    home.run("restore").assert_error(&["another program listens to the process connector"]);
    tell(&other, IGNORE);
    drop(other);
    home.succeed("restore").assert_says(&["Put back", ".journal"]);
    assert_nothing_left(&home);
}

/// Otherwise the kernel would make no events for the next program that listens.
#[test]
fn another_program_that_ends_while_restore_waits_is_not_taken_for_a_dead_listener() {
    let Some(_turn) = turn() else { return };
    let home = Home::new();
    kill_everything_while(&home, false);
    let other = other_program();
    tell(&other, LISTEN);
    let restoring = home.start(home.weigh("restore"));
    // Restore ends a process to see whether the kernel makes events.
    wait_for_exit_of_a_child(&other, restoring.pid() as u32);
    tell(&other, IGNORE);
    drop(other);
    let outcome = restoring.finish();
    let next = other_program();
    tell(&next, LISTEN);
    let are_on = says_on(&home);
    // If the kernel had counted one too few, the count is right now.
    if are_on {
        tell(&next, IGNORE);
    }
    assert!(are_on, "the kernel makes no events for a program that listens");
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    outcome.assert_says(&["Put back", ".journal"]);
    assert_nothing_left(&home);
}
