//! Preparation of a process before its sample starts, which is the same in both arms:
//! docs/before-a-sample.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use crate::support::{Home, Turn, row, skip};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that tests may use.
fn allowed() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// Returns true if cgroups that count processes can be made here.
fn has_groups() -> bool {
    let of_version_1 = Path::new("/sys/fs/cgroup/pids/cgroup.procs");
    let has = fs::OpenOptions::new().write(true).open(of_version_1).is_ok();
    if !has {
        skip("cgroup", "needs control groups of version 1, and root");
    }
    has
}

/// A process that keeps one CPU busy until it is dropped.
struct Spinner(Child);

impl Spinner {
    fn on(cpu: usize) -> Spinner {
        let spinner = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let mut one = CpuSet::new();
        one.set(cpu);
        sched_setaffinity(Some(Pid::from_child(&spinner)), &one).unwrap();
        Spinner(spinner)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// By work, treated arm and pair: the CPU of each of its samples.
fn cpus_of_pairs(home: &Home) -> BTreeMap<(i64, i64, i64), Vec<Option<i64>>> {
    let database = home.open_database();
    let sql = "SELECT work, treated_arm, pair, cpu FROM sample";
    let mut query = database.prepare(sql).unwrap();
    let rows = query.query_map([], |row| {
        Ok(((row.get(0)?, row.get(1)?, row.get(2)?), row.get::<_, Option<i64>>(3)?))
    });
    let mut pairs: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (pair, cpu) in rows.unwrap().map(Result::unwrap) {
        pairs.entry(pair).or_default().push(cpu);
    }
    pairs
}

#[test]
fn both_samples_of_a_pair_begin_on_a_cpu_that_is_drawn_for_it() {
    for scheme in ["--interleave=off", "--interleave=on"] {
        let (home, _turn) = (Home::new(), Turn::share());
        let options = ["--pairs", "16", "--seed", "7", "--sample", "10ms", "--no-detail", scheme];
        let works = ["-w", "getppid", "-w", "fork"];
        home.measure(&[&["compare", "env:A=b"][..], &works, &options].concat());
        let pairs = cpus_of_pairs(&home);
        assert_eq!(pairs.len(), 32);
        let mut drawn = BTreeSet::new();
        for (pair, cpus) in pairs {
            assert!(cpus.len() == 2 && cpus[0] == cpus[1], "pair {pair:?}: {cpus:?}");
            drawn.insert(usize::try_from(cpus[0].expect("none was drawn")).unwrap());
        }
        let allowed = allowed();
        assert!(drawn.iter().all(|cpu| allowed.contains(cpu)), "{drawn:?}");
        assert_eq!(drawn.len() > 1, allowed.len() > 1, "each pair draws anew: {drawn:?}");
    }
}

/// A treatment that chooses CPUs wins, in both arms from its release on.
#[test]
fn a_treatment_that_chooses_cpus_leaves_the_other_arm_its_own() {
    let (home, _turn) = (Home::new(), Turn::share());
    let line = "grep Cpus_allowed_list: /proc/self/status >> said";
    let options = ["compare", "cpus:0", "--pairs", "8", "--no-detail", "--", "sh", "-c", line];
    home.measure(&options);
    assert!(cpus_of_pairs(&home).values().flatten().all(|cpu| *cpu == Some(0)), "both may use it");
    let said = fs::read_to_string(home.path("said")).unwrap();
    let lists: BTreeSet<&str> =
        said.lines().filter_map(|line| Some(line.split_once(':')?.1.trim())).collect();
    let all = fs::read_to_string("/proc/self/status").unwrap();
    let all = all.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    assert_eq!(lists, BTreeSet::from(["0", all]));
}

/// The worker that was moved into a group woke up on the idle CPU, and the baseline's did not.
#[test]
fn a_group_that_limits_nothing_is_not_faster_beside_a_busy_process() {
    if !has_groups() {
        return;
    }
    let _turn = Turn::take();
    let _spinner = Spinner::on(allowed()[0]);
    for base in [&[][..], &["--base", "none"]] {
        let home = Home::new();
        let options = ["compare", "cgroup:pids.max=max", "-w", "fork", "--budget", "8s"];
        let is_right = || {
            home.measure(&[&options[..], base, &["--no-detail"]].concat());
            let json = home.json();
            assert_eq!(json["baseline"], if base.is_empty() { "cgroup:pids" } else { "none" });
            row(&json, "fork")["verdict"] != "faster"
        };
        // One may be wrong by chance, of one in forty at most; two of three have a chance of 0.2 %.
        assert!(is_right() || is_right() && is_right(), "{:#}", home.json());
    }
}
