//! Pairs whose processes live at the same time and alternate on one CPU.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::processes::signal;
use crate::support::{Home, Running, Turn, hard, row, wait_until};
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use serde_json::Value;

const LONG: Duration = Duration::from_secs(30);

/// The workloads' executable, and the file that two of them share.
struct Bench {
    home: Home,
    program: PathBuf,
    shared: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        let home = Home::new();
        let program = home.workloads();
        let shared = home.file("turns", [0; 4096]);
        Bench { home, program, shared }
    }

    fn start(&self, side: u32, workload: &str, more: &[&str]) -> Running {
        let mut command = self.home.command(&self.program);
        command.args(["run", workload, "--turns", &format!("{side},{}", self.shared.display())]);
        command.args(more);
        self.home.start(command)
    }
}

fn slices(sample: &Value) -> Vec<u64> {
    let slices = sample["slices_ns"].as_array().unwrap();
    slices.iter().map(|ns| ns.as_u64().unwrap()).collect()
}

#[test]
fn two_processes_take_turns_and_time_as_many_slices() {
    let _turn = Turn::share();
    let bench = Bench::new();
    let second = bench.start(1, "getppid", &["--target-ms", "20"]);
    let first = bench.start(0, "getppid", &["--target-ms", "20"]);
    let samples = [first, second].map(|running| running.finish().json());
    let [of_first, of_second] = samples.each_ref().map(slices);
    assert_eq!(of_first.len(), of_second.len());
    for (sample, slices) in samples.iter().zip([of_first, of_second]) {
        assert!((8..=100).contains(&slices.len()), "{sample}");
        assert_eq!(slices.iter().sum::<u64>(), sample["elapsed_ns"].as_u64().unwrap());
        let operations = sample["operations"].as_u64().unwrap();
        assert_eq!(operations % slices.len() as u64, 0, "each slice has as many: {sample}");
        // They slept while the other worked: what each used is no more than its own part.
        let used = sample["user_ns"].as_u64().unwrap() + sample["system_ns"].as_u64().unwrap();
        assert!(used > 0, "{sample}");
    }
}

/// The heads of its slices have none of it, so they were believed to be short.
#[test]
fn what_is_planted_in_slices_is_not_missed_in_their_heads() {
    let _turn = Turn::share();
    let outside_ns = |sample: &Value| sample["outside"]["ns_per_slice"].as_f64().unwrap();
    let ratios = (0..9).map(|_| {
        let bench = Bench::new();
        let sample = ["--target-ms", "20"];
        let planted =
            bench.start(1, "getppid", &[&sample[..], &["--planted-ppm", "400000"]].concat());
        let bare = bench.start(0, "getppid", &[&sample[..], &["--planted-ppm", "0"]].concat());
        outside_ns(&planted.finish().json()) / outside_ns(&bare.finish().json())
    });
    let mut ratios: Vec<f64> = ratios.collect();
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[4] > 0.5, "{ratios:?}");
}

/// Where in a page the stack of a process is that waits for its turn; `None` while it runs.
fn stack_in_page(process: &Running) -> Option<u64> {
    // proc_pid_syscall(5): number, six arguments, stack pointer, program counter.
    let text = fs::read_to_string(format!("/proc/{}/syscall", process.pid())).ok()?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let [number, .., stack, _] = words[..] else { return None };
    let waits = number == libc::SYS_futex.to_string();
    let stack = u64::from_str_radix(stack.trim_start_matches("0x"), 16).unwrap();
    waits.then_some(stack % 4096)
}

/// A process waits in a few functions, each at its own depth of the stack. Two places of 256 are seldom the
/// same by chance in each of three pairs.
#[test]
fn both_processes_have_their_stack_at_the_same_place_in_each_pair() {
    let _turn = Turn::share();
    let mut of_pairs = Vec::new();
    for _ in 0..3 {
        let bench = Bench::new();
        let mut both = [1, 0].map(|side| bench.start(side, "shell8", &["--target-ms", "60000"]));
        let mut places = [BTreeSet::new(), BTreeSet::new()];
        let ended = wait_until(LONG, || {
            for (process, places) in both.iter().zip(&mut places) {
                places.extend(stack_in_page(process));
            }
            both.iter_mut().all(Running::has_ended)
        });
        assert!(ended, "{}", both[0].said_and_waits());
        let [second, first] = places;
        if first.is_empty() && second.is_empty() {
            return; // This kernel, or its settings, hide where a process waits.
        }
        assert!(!first.is_disjoint(&second), "{first:?} {second:?}");
        of_pairs.push(first);
    }
    assert!(of_pairs.iter().any(|places| *places != of_pairs[0]), "{of_pairs:?}");
}

/// Slices with a whole planted operation each would be two to eight times as long, and less precise.
#[test]
fn what_is_planted_in_slices_of_few_operations_does_not_make_them_longer() {
    let _turn = Turn::share();
    for (workload, ppm, at_most) in [("fork", 100_000, 9), ("pipe", 1_000, 999)] {
        let bench = Bench::new();
        let sample = ["--target-ms", "20", "--planted-ppm"];
        let planted = bench.start(1, workload, &[&sample[..], &[&ppm.to_string()]].concat());
        let bare = bench.start(0, workload, &[&sample[..], &["0"]].concat());
        let [planted, bare] = [planted, bare].map(|running| running.finish().json());
        let operations = |sample: &Value| sample["operations"].as_f64().unwrap();
        let extra = planted["planted_operations"].as_f64().unwrap();
        let share = 1e6 * extra / operations(&planted) / f64::from(ppm);
        assert!((0.5..1.5).contains(&share), "{planted}");
        assert_eq!(bare["planted_operations"], 0, "{bare}");
        for sample in [planted, bare] {
            assert_eq!(sample["is_planted_in_steps"], true, "{sample}");
            assert!(
                operations(&sample) / slices(&sample).len() as f64 <= f64::from(at_most),
                "{sample}"
            );
        }
    }
}

/// A hundred slices of `shell8` would take five seconds and more.
#[test]
fn a_pair_whose_slices_take_too_long_ends_early_with_as_many_of_each() {
    let _turn = Turn::share();
    let bench = Bench::new();
    let second = bench.start(1, "shell8", &["--target-ms", "60000"]);
    let first = bench.start(0, "shell8", &["--target-ms", "60000"]);
    let samples = [first, second].map(|running| running.finish().json());
    let [of_first, of_second] = samples.each_ref().map(|sample| slices(sample).len());
    assert_eq!(of_first, of_second);
    assert!((1..100).contains(&of_first), "{samples:#?}");
    for sample in &samples {
        assert_eq!(slices(sample).iter().sum::<u64>(), sample["elapsed_ns"].as_u64().unwrap());
    }
}

/// Two processes of each, which wait for each other and are on the CPU that the turns are on.
#[test]
fn who_has_a_partner_takes_turns_with_it() {
    let _turn = Turn::share();
    let bench = Bench::new();
    for workload in ["context1@same-cpu", "futex-ping-pong@same-cpu", "lat-sem@same-cpu"] {
        fs::write(&bench.shared, [0; 4096]).unwrap();
        let second = bench.start(1, workload, &["--target-ms", "20"]);
        let first = bench.start(0, workload, &["--target-ms", "20"]);
        let samples = [first, second].map(|running| running.finish().json());
        let [of_first, of_second] = samples.each_ref().map(slices);
        assert_eq!(of_first.len(), of_second.len(), "{samples:#?}");
        for sample in samples {
            // Both of its processes took part: each handed the CPU to the other once in an operation.
            let switches = sample["voluntary_switches"].as_u64().unwrap();
            let operations = sample["operations"].as_u64().unwrap();
            assert!(switches * 2 >= operations, "{sample}");
        }
    }
}

/// A long operation is a slice of its own.
#[test]
fn an_operation_longer_than_a_slice_is_one() {
    let _turn = Turn::share();
    let bench = Bench::new();
    let second = bench.start(1, "shell1", &["--target-ms", "20"]);
    let first = bench.start(0, "shell1", &["--target-ms", "20"]);
    for running in [first, second] {
        let sample = running.finish().json();
        assert_eq!(sample["operations"], 8, "{sample}");
        assert_eq!(slices(&sample).len(), 8);
    }
}

#[test]
fn one_whose_partner_is_killed_ends_and_is_not_to_blame() {
    let _turn = Turn::share();
    let bench = Bench::new();
    // Long enough to be killed in the middle.
    let first = bench.start(0, "getppid", &["--target-ms", "600000", "--warm-up-ms", "3000"]);
    let mut second = bench.start(1, "getppid", &["--target-ms", "600000", "--warm-up-ms", "3000"]);
    let is_locked = || {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&bench.shared).unwrap());
        locks.lines().filter(|line| line.contains(&format!(":{inode} "))).count() == 2
    };
    assert!(wait_until(LONG, is_locked), "they do not meet");
    // It says that it has come after it has its lock; killed between the two, it is waited for.
    std::thread::sleep(Duration::from_secs(1));
    second.kill();
    let outcome = first.finish();
    assert_eq!(outcome.code, Some(3), "{outcome:#?}");
    assert!(outcome.stderr.contains("the second process of the pair ended"), "{outcome:#?}");
}

#[test]
fn wrong_turns_are_refused() {
    let bench = Bench::new();
    let of = |argument: &str| {
        let mut command = bench.home.command(&bench.program);
        command.args(["run", "getppid", "--turns", argument]);
        bench.home.start(command).finish()
    };
    for wrong in ["2,file", "0", "0,", ""] {
        let outcome = of(wrong);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        assert!(outcome.stderr.contains("--turns takes 0,FILE or 1,FILE"), "{outcome:#?}");
    }
    let missing = of("0,missing");
    assert!(missing.code == Some(1) && missing.stderr.contains("cannot open"), "{missing:#?}");
    bench.home.file("short", "x");
    let short = of(&format!("0,{}", bench.home.path("short").display()));
    assert!(short.code == Some(1) && short.stderr.contains("shorter than"), "{short:#?}");
}

/// In sequence a busy machine needs minutes for 1 %.
#[test]
fn a_planted_percent_is_found_and_stored() {
    let _turn = Turn::take();
    let home = Home::new();
    let arguments =
        ["compare", "planted:share=1%", "-w", "getppid,read", "--interleave=on", "--no-detail"];
    let outcome = home.run(&[&arguments[..], &["--budget", "4m", "--json", "-"]].concat());
    let json = outcome.json();
    assert_eq!(outcome.code, Some(0), "{}\n{:#}", outcome.stderr, json["results"]);
    for workload in ["getppid", "read"] {
        let row = row(&json, workload);
        assert_eq!(row["verdict"], "slower", "{row:#}");
        assert_eq!(row["scheme"], "interleaved", "{row:#}");
        let all_time = &row["readings"].as_array().unwrap()[1];
        assert_eq!(all_time["metric"], "all_time", "{row:#}");
        assert_eq!(all_time["pairs"], row["pairs"], "{row:#}");
    }
    assert_eq!(json, home.json(), "what is stored says the same again");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

/// Each row has the scheme that its first pairs chose, and keeps it in another session.
#[test]
fn the_first_pairs_choose_the_scheme_of_a_row() {
    let _turn = Turn::take();
    let home = Home::new();
    let workloads = ["-w", "getppid,read,bw-pipe@same-cpu"];
    // With so narrow a margin they are never called equal, and there is always something left to measure.
    let compare = ["compare", "none", "--no-detail", "--margin", "0.0001%", "--budget", "10s"];
    let outcome = home.measure(&[&compare[..], &workloads, &["--json", "-"]].concat());
    let first = outcome.json();
    assert_eq!(first, home.json(), "what is stored says the same again");
    let id = first["id"].as_str().unwrap();
    let go_on = ["compare", "--continue", id, "--budget", "3s", "--json", "-"];
    let second = home.run(&go_on).json();
    let schemes = |json: &Value| {
        ["getppid", "read", "bw-pipe@same-cpu"].map(|workload| {
            let row = row(json, workload);
            let scheme = row["scheme"].as_str().unwrap_or_else(|| panic!("{row:#}")).to_owned();
            let pairs = row["pairs"].as_u64().unwrap();
            (scheme, pairs)
        })
    };
    let [before, after] = [schemes(&first), schemes(&second)];
    assert_eq!(before[2].0, "sequential", "its writer goes on in the turn of the other");
    for ((scheme, pairs), (of_both, of_all)) in before.iter().zip(&after) {
        assert_eq!(scheme, of_both);
        assert!(pairs <= of_all, "{pairs} pairs became {of_all}");
    }
    assert_eq!(second, home.json());
    let said = home.run("show").stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("sequential pairs for"), "{said}");
}

#[test]
fn sequential_pairs_have_no_slices_and_no_choice() {
    let _turn = Turn::share();
    let home = Home::new();
    let compare = ["compare", "seccomp", "-w", "getppid", "--no-detail", "--budget", "3s"];
    let json = home.run(&[&compare[..], &["--interleave=off", "--json", "-"]].concat()).json();
    assert!(!json.to_string().contains("all_time"), "{json:#}");
    assert!(row(&json, "getppid")["scheme"].is_null(), "{json:#}");
    assert!(json["command"].as_str().unwrap().contains("--interleave off"), "{json:#}");
    home.run("show").assert_says(&["Method: one sample ran after the other (sequential pairs)."]);
    home.run(&[&compare[..], &["--interleave", "sometimes"]].concat())
        .assert_error(&["--interleave", "'sometimes'"]);
}

#[test]
fn pairs_that_cannot_be_interleaved_are_sequential_and_named() {
    let _turn = Turn::share();
    let home = Home::new();
    let warnings = |arguments: &[&str]| {
        let more = ["--interleave=on", "--pairs", "8", "--no-detail", "--json", "-"];
        let outcome = home.measure(&[&["compare"], arguments, &more].concat());
        let json = outcome.json();
        let has_all_time = json["results"].to_string().contains("all_time");
        (json["warnings"].to_string(), has_all_time)
    };
    let (said, has_all_time) = warnings(&["nice:5", "-w", "getppid"]);
    let why = "No pair was interleaved: `nice:5` changes how its process is scheduled";
    assert!(said.contains(why), "{said}");
    assert!(!has_all_time);
    let (said, has_all_time) = warnings(&["seccomp", "-w", "getppid", "-w", "bw-pipe@same-cpu"]);
    assert!(said.contains("Pairs of `bw-pipe@same-cpu` were sequential"), "{said}");
    assert!(has_all_time);
    // What is beside a sample is so for the time of one arm's.
    let (said, has_all_time) = warnings(&["seccomp", "-w", "getppid", "--beside", "stat"]);
    assert!(said.contains("Pairs of `getppid/stat` were sequential"), "{said}");
    assert!(has_all_time);
    home.run("compare seccomp --interleave=on -- true").assert_error(&["--interleave"]);
    let asked = home.run("compare seccomp -w getppid --metric all_time");
    asked.assert_error(&["`all_time` is judged with --interleave=on"]);
}

#[test]
fn killed_at_any_moment_nothing_is_left() {
    let arguments = ["compare", "seccomp", "-w", "getppid,stat", "--interleave=on"];
    nothing_is_left_of(&arguments, 18, 300..2500);
}

/// Kills `weigh`, or the youngest of its processes before an interrupt, after so many milliseconds at random.
pub fn nothing_is_left_of(arguments: &[&str], seed: u64, moments_ms: Range<u64>) {
    let _turn = Turn::share();
    let home = Home::new();
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    for round in 0..hard(4, 60) {
        let mut running = home.start(home.weigh(arguments));
        std::thread::sleep(Duration::from_millis(random.random_range(moments_ms.clone())));
        match round % 2 {
            0 => running.kill(),
            _ => {
                let youngest = home.processes().into_iter().max();
                youngest.into_iter().for_each(|pid| signal(pid, Signal::KILL));
                signal(running.pid(), Signal::INT);
                running.finish();
            }
        }
        let is_quiet = wait_until(LONG, || home.processes().is_empty());
        assert!(is_quiet, "round {round}: {:#?}", home.describe_processes());
        home.run("restore");
        assert_eq!(home.leftovers(), Vec::<PathBuf>::new(), "round {round}");
    }
}
