//! The sub-tests of AIM: their work is done whatever the compiler may leave out, and one process can do
//! them in turns, as the users of a load do.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

use crate::support::build::make_workloads;
use crate::support::{Turn, skip};
use serde_json::Value;
use weigh_audit::profile::ptrace;

/// A build with these flags, and with all sub-tests in turns as one more workload.
fn build(name: &str, flags: &str) -> PathBuf {
    let extra = concat!("EXTRA=", env!("WORKSPACE"), "/tests/turns");
    make_workloads(name, &[extra, &format!("CFLAGS={flags}")])
}

fn fast() -> &'static Path {
    static BUILD: OnceLock<PathBuf> = OnceLock::new();
    // With what an optimising compiler warns of.
    BUILD.get_or_init(|| build("aim-fast", "-O3 -Wall -Wextra -Werror"))
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
    let is_root = crate::support::is_root();
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

/// Tests that no job is optimised away. A job without system calls spends its time in loops, and a
/// loop that is left out takes none. An optimising compiler gains
/// a factor of 10 or so, but not of 60.
#[test]
fn no_job_is_optimised_away() {
    let _turn = Turn::share();
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

/// Work of one job of a sub-test, as the kernel counts it.
#[derive(Debug, PartialEq)]
struct OfJob {
    /// System calls by name, the most frequent first.
    calls: Vec<(String, u64)>,
    read_bytes: u64,
    written_bytes: u64,
}

/// Returns the counts of one job: the increase for eight more jobs, divided by eight. The start of
/// a process makes up to three calls more or fewer, because `mkdtemp` draws again after an unusable
/// name and the heap begins at random. With four jobs, two more calls would show as one in each
/// job.
fn of_job(name: &str) -> OfJob {
    // The heap of the sieves has its size after ten.
    let few = if name == "sieve" { 12 } else { 2 };
    let [less, more] = [few, few + 8].map(|operations| traced(name, operations));
    let jobs = more.jobs - less.jobs;
    let per_job = |more: u64, less: u64| (more.saturating_sub(less) as f64 / jobs).round() as u64;
    let mut calls: Vec<(String, u64)> = more
        .calls
        .iter()
        .map(|(call, count)| {
            (call.clone(), per_job(*count, less.calls.get(call).copied().unwrap_or_default()))
        })
        .filter(|(_, count)| *count > 0)
        .collect();
    calls.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let [read_bytes, written_bytes] = [0, 1].map(|i| per_job(more.bytes[i], less.bytes[i]));
    OfJob { calls, read_bytes, written_bytes }
}

struct Traced {
    calls: BTreeMap<String, u64>,
    jobs: f64,
    /// Read and written by system calls, of the process and of its children.
    bytes: [u64; 2],
}

fn traced(name: &str, operations: u64) -> Traced {
    let scratch = tempfile::tempdir().unwrap();
    let printed = tempfile::NamedTempFile::new().unwrap();
    let launch = || {
        let mut command = Command::new(fast());
        command.args(["run", name, "--operations", &operations.to_string()]);
        command.env_remove("LD_LIBRARY_PATH").current_dir(&scratch).stdin(Stdio::null());
        command.stdout(fs::File::create(printed.path()).unwrap());
        command
    };
    let counts = ptrace::count(&mut launch()).unwrap();
    assert_eq!(counts.status, 0, "{name}");
    let mut child = launch().spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let ended = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    rustix::process::waitid(rustix::process::WaitId::Pid(pid), ended).unwrap();
    let io = fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap();
    assert!(child.wait().unwrap().success(), "{name}");
    let [read, written]: [u64; 2] = ["rchar: ", "wchar: "]
        .map(|key| io.lines().find_map(|line| line.strip_prefix(key)).unwrap().parse().unwrap());
    // What the second launch printed: both did as much. Its length is no part of a job.
    let text = fs::read_to_string(printed.path()).unwrap();
    let sample: Value = serde_json::from_str(&text).unwrap();
    let jobs = sample["total_operations"].as_f64().unwrap();
    Traced { calls: counts.by_name(), jobs, bytes: [read, written - text.len() as u64] }
}

const PAGE: &str = "docs/workloads.md";
const BEGIN: &str = "<!-- begin: tests/weighing/aim.rs -->";
const END: &str = "<!-- end -->";

/// A line for a sub-test: what re-aim's does, and what ours was counted to do.
fn line(workload: &Value, re_aim: &BTreeMap<&str, (&str, &str)>) -> String {
    let name = workload["name"].as_str().unwrap();
    let OfJob { calls, read_bytes, written_bytes } = of_job(name);
    let (work, operations) = re_aim.get(name).copied().unwrap_or(("not in re-aim", ""));
    // How many the libraries of a program make differs from system to system.
    let is_program = name == "exec_test" || name.starts_with("shell_rtns");
    // How often the C library grows its heap depends on where the heap begins, and that is random.
    let is_of_heap = |call: &str| name == "mem_rtns_1" && call == "brk";
    let counted = |(call, count): &(String, u64)| format!("`{call}` {count}");
    let is_told = |(call, _): &&(String, u64)| {
        let is_its_own = ["clone", "vfork", "fork", "execve", "wait4"].contains(&call.as_str());
        (!is_program || is_its_own) && !is_of_heap(call)
    };
    let mut told: Vec<String> = calls.iter().filter(is_told).map(counted).collect();
    told.extend(is_program.then(|| "and those of the programs".to_owned()));
    let told = if told.is_empty() { "none".to_owned() } else { told.join(", ") };
    let units = workload["units_per_op"].as_f64().unwrap();
    let unit = workload["unit"].as_str().unwrap().trim_end_matches("/s");
    // It reads the users and groups of the machine.
    let bytes = match (name, read_bytes, written_bytes) {
        _ if is_program => String::new(),
        ("misc_rtns_1", _, written) => format!("/etc/passwd and /etc/group / {written}"),
        (_, read, written) => format!("{read} / {written}"),
    };
    format!("| `{name}` | {work} | {operations} | {units} {unit} | {bytes} | {told} |")
}

/// Each system call of each sub-test in the docs is one that it was counted to make at -O3, and none is
/// missing: what a compiler leaves out would be.
#[test]
fn the_calls_and_bytes_in_the_docs_are_those_that_are_made() {
    if cfg!(not(target_arch = "x86_64")) {
        skip("x86-64", "the table is of x86-64, whose system calls have names of their own");
        return;
    }
    let re_aim: BTreeMap<&str, (&str, &str)> = include_str!("../fixtures/aim/re-aim.tsv")
        .lines()
        .map(|line| {
            let mut parts = line.split('\t');
            let mut part = || parts.next().unwrap();
            (part(), (part(), part()))
        })
        .collect();
    let _turn = Turn::share();
    let workloads = sub_tests(fast());
    let lines: Vec<String> = thread::scope(|scope| {
        let half = |half: usize| {
            let of_half = workloads.iter().skip(half).step_by(2);
            of_half.map(|workload| line(workload, &re_aim)).collect::<Vec<String>>()
        };
        let other = scope.spawn(move || half(1));
        let (mut first, mut second) = (half(0).into_iter(), other.join().unwrap().into_iter());
        (0..workloads.len())
            .filter_map(|i| if i % 2 == 0 { first.next() } else { second.next() })
            .collect()
    });
    let page = Path::new(env!("WORKSPACE")).join(PAGE);
    let text = fs::read_to_string(&page).unwrap();
    let (head, rest) = text.split_once(BEGIN).unwrap();
    let (table, tail) = rest.split_once(END).unwrap();
    if std::env::var_os("WEIGH_WRITE").is_some() {
        let titles = "| sub-test | one job of re-aim | counts as | here | bytes read / written | system \
                      calls here |\n|---|---|---:|---:|---:|---|\n";
        let written = format!("{head}{BEGIN}\n\n{titles}{}\n\n{END}{tail}", lines.join("\n"));
        return fs::write(page, written).unwrap();
    }
    let wrong: Vec<&String> = lines.iter().filter(|line| !table.contains(line.as_str())).collect();
    assert!(wrong.is_empty(), "{PAGE} has other lines; WEIGH_WRITE=1 writes these:\n{wrong:#?}");
    assert!(
        lines.len() >= 80 && re_aim.keys().all(|name| table.contains(&format!("| `{name}` |")))
    );
}

#[test]
fn sub_tests_take_turns_in_one_process() {
    let _turn = Turn::share();
    sample(fast(), &["turns", "--operations", "1"]);
    let users = sample(fast(), &["turns", "--operations", "1", "--copies", "3"]);
    assert!(users["operations"].as_u64() >= Some(3), "{users}");
}
