//! The sub-tests of AIM: their work is done whatever the compiler may leave out, and one process can do
//! them in turns, as the users of a load do.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use support::build::make_workloads;

/// A build with these flags, and with all sub-tests in turns as one more workload.
fn build(name: &str, flags: &str) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let targets = ["weigh-workloads", "weigh-workloads-small"]
        .map(|name| out.join(name).display().to_string());
    let extra = concat!("EXTRA=", env!("CARGO_MANIFEST_DIR"), "/tests/turns");
    let flags = format!("CFLAGS={flags}");
    make_workloads(name, &[extra, &flags, &targets[0], &targets[1]]).join("weigh-workloads")
}

fn fast() -> &'static Path {
    static BUILD: OnceLock<PathBuf> = OnceLock::new();
    BUILD.get_or_init(|| build("aim-fast", "-O3"))
}

fn sample(build: &Path, arguments: &[&str]) -> Value {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(build);
    command.arg("run").args(arguments).env_remove("LD_LIBRARY_PATH");
    let output = command.current_dir(&scratch).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {}: {said}", output.status);
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0, "{arguments:?} left files");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sub_tests(build: &Path) -> Vec<Value> {
    let output = Command::new(build).arg("list").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let needs_root = |workload: &Value| workload["name"].as_str().unwrap().starts_with("disk_raw");
    let is_root = support::is_root();
    all.filter(|workload| workload["group"] == "aim" && (is_root || !needs_root(workload)))
        .collect()
}

/// The least CPU time of a few samples, which no other process adds to.
fn cpu_ns(build: &Path, name: &str) -> f64 {
    let times = (0..3).map(|_| {
        let sample = sample(build, &[name, "--operations", "3"]);
        sample["user_ns"].as_f64().unwrap() + sample["system_ns"].as_f64().unwrap()
    });
    times.fold(f64::INFINITY, f64::min)
}

/// What makes no system call takes its time in loops, and a loop that is left out takes none. An optimising
/// compiler gains a factor of 10 or so, but not of 60.
#[test]
fn no_job_is_optimised_away() {
    let slow = build("aim-slow", "-O0");
    let mut lost = Vec::new();
    let workloads = sub_tests(fast());
    let in_user_space = workloads.iter().filter(|w| w["syscalls_per_op"].as_f64() < Some(500.0));
    let in_user_space: Vec<_> = in_user_space.map(|w| w["name"].as_str().unwrap()).collect();
    assert!(in_user_space.len() >= 30, "{in_user_space:?}");
    for name in in_user_space {
        let [with, without] = [fast(), &slow].map(|build| cpu_ns(build, name));
        if with * 60.0 < without {
            lost.push(format!("{name}: {with} ns at -O3, {without} ns at -O0"));
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

#[test]
fn sub_tests_take_turns_in_one_process() {
    sample(fast(), &["turns", "--operations", "1"]);
    let users = sample(fast(), &["turns", "--operations", "1", "--copies", "3"]);
    assert!(users["operations"].as_u64() >= Some(3), "{users}");
}
