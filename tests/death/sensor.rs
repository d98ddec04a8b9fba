//! The sensor of `bpf` dies, stands still, or `weigh` does: no BPF program of it stays in the kernel, and no
//! sample without it counts.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use crate::support::processes::signal;
use crate::support::{Home, Running, SETTINGS, Turn, is_root, skip, wait_until};
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;

const ROLE: &str = "__sensor";
const SENSORS: [&str; 4] = ["bpf", "bpf:attach=tracepoint", "bpf:events", "bpf:lifecycle"];
const LIMIT: Duration = Duration::from_secs(20);
/// `BPF_PROG_GET_FD_BY_ID`.
const OPEN_PROGRAM: libc::c_int = 13;

struct Begun {
    home: Home,
    running: Running,
    /// Numbers of the programs in the kernel, which it gives to no other.
    programs: BTreeSet<u32>,
    _turn: Turn,
}

fn begin(sensor: &str) -> Option<Begun> {
    if !is_root() {
        skip("root", "needs root");
        return None;
    }
    let turn = Turn::with(SETTINGS);
    let home = Home::new();
    let arguments = ["compare", sensor, "-w", "open-close", "--budget", "60s"];
    let mut running = home.start(home.weigh(&arguments[..]));
    home.wait_for_samples(2, &mut running);
    let programs = programs_of(home.processes_of(ROLE)[0]);
    assert!(!programs.is_empty() && programs.iter().all(|id| is_loaded(*id)), "{programs:?}");
    Some(Begun { home, running, programs, _turn: turn })
}

fn programs_of(process: i32) -> BTreeSet<u32> {
    let files = fs::read_dir(format!("/proc/{process}/fdinfo")).unwrap().flatten();
    let infos = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let id = |line: &str| line.strip_prefix("prog_id:")?.trim().parse().ok();
    infos.flat_map(|info| info.lines().filter_map(id).collect::<Vec<u32>>()).collect()
}

fn is_loaded(program: u32) -> bool {
    let attributes = [program, 0, 0];
    // SAFETY: the structure of this command is three numbers of 4 bytes, which the kernel only reads.
    let opened = unsafe {
        libc::syscall(libc::SYS_bpf, OPEN_PROGRAM, &raw const attributes, size_of_val(&attributes))
    };
    match opened {
        -1 => {
            let error = io::Error::last_os_error();
            assert_eq!(error.raw_os_error(), Some(libc::ENOENT), "{error}");
            false
        }
        opened => {
            // SAFETY: it was just opened for us.
            drop(unsafe { OwnedFd::from_raw_fd(opened as i32) });
            true
        }
    }
}

fn assert_nothing_left(home: &Home, programs: &BTreeSet<u32>) {
    home.assert_nothing_left();
    assert!(wait_until(LIMIT, || !programs.iter().any(|id| is_loaded(*id))), "{programs:?}");
}

#[test]
fn a_killed_weigh_leaves_no_program_in_the_kernel() {
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(43);
    let times = crate::support::hard(SENSORS.len() as u64, 50) as usize;
    for sensor in SENSORS.into_iter().cycle().take(times) {
        let Some(Begun { home, mut running, programs, _turn }) = begin(sensor) else { return };
        std::thread::sleep(Duration::from_micros(chance.random_range(0..300_000)));
        running.kill();
        assert_eq!(running.finish().signal, Some(9));
        assert_nothing_left(&home, &programs);
    }
}

/// A sensor that stands still does not see that `weigh` is gone.
#[test]
fn nor_does_one_whose_sensor_stands_still() {
    let Some(Begun { home, mut running, programs, _turn }) = begin(SENSORS[0]) else { return };
    signal(home.processes_of(ROLE)[0], Signal::STOP);
    running.kill();
    running.finish();
    assert_nothing_left(&home, &programs);
}

#[test]
fn a_sensor_that_dies_fails_the_experiment() {
    let Some(Begun { home, running, programs, _turn }) = begin(SENSORS[0]) else { return };
    signal(home.processes_of(ROLE)[0], Signal::KILL);
    let outcome = running.finish();
    outcome.assert_error(&["The experiment failed", "No verdict"]);
    outcome.assert_says(&["the BPF sensor does not answer"]);
    assert_nothing_left(&home, &programs);
}
