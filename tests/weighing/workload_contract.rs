//! Every workload, by itself and in both builds: it runs, checks its own result, makes as many system
//! calls as it declares, and leaves nothing behind.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use crate::support::build::embedded;
use crate::support::{Turn, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weigh_audit::profile::ptrace;

fn builds() -> &'static [PathBuf; 2] {
    static BUILDS: OnceLock<[PathBuf; 2]> = OnceLock::new();
    BUILDS.get_or_init(embedded)
}

/// Turn of a test: another test would take its processes for leftovers.
static TURN: Mutex<()> = Mutex::new(());

fn listed(build: &Path) -> Vec<Value> {
    let output = Command::new(build).arg("list").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    // A server is there in tests/servers/servers.rs; loop devices and audit records are root's.
    let needs_root = |workload: &Value| {
        let name = workload["name"].as_str().unwrap();
        name.starts_with("disk_raw") || name == "audit-user"
    };
    let is_root = crate::support::is_root();
    all.filter(|workload| workload["needs"].is_null() && (is_root || !needs_root(workload)))
        .collect()
}

/// Lists the traces that outlive a process: System V objects, message queues, shared memory, and
/// processes named like their executable.
fn traces() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for table in ["msg", "sem", "shm"] {
        let text = fs::read_to_string(format!("/proc/sysvipc/{table}")).unwrap_or_default();
        found.extend(text.lines().skip(1).map(|line| {
            let id = line.split_whitespace().nth(1).unwrap_or_default();
            format!("{table} {id}")
        }));
    }
    let names = |directory: &str| -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string()).collect()
    };
    found.extend(names("/dev/mqueue"));
    found.extend(names("/dev/shm"));
    let out = builds()[0].parent().unwrap();
    found.extend(names("/proc").into_iter().filter(|process| {
        fs::read_link(format!("{process}/exe")).is_ok_and(|exe| exe.starts_with(out))
    }));
    found
}

/// A launch in a directory of its own. What cargo sets for its tests sends the dynamic loader through
/// more directories, with more system calls.
fn launch(build: &Path, arguments: &[&str], scratch: &Path) -> Command {
    let mut command = Command::new(build);
    command.args(arguments).current_dir(scratch).stdin(Stdio::null()).env_remove("LD_LIBRARY_PATH");
    command
}

/// Returns the problems that `look` finds with any of the workloads. It uses all CPUs, as nothing
/// is timed here.
fn look_at_all(workloads: &[Value], look: impl Fn(&Value) -> Option<String> + Sync) -> Vec<String> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let look_at_some = || {
        while let Some(workload) = workloads.get(next.fetch_add(1, Ordering::Relaxed)) {
            let problem = look(workload);
            found.lock().unwrap().extend(problem);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().unwrap().get() {
            scope.spawn(look_at_some);
        }
    });
    found.into_inner().unwrap()
}

/// The problem that a launch of 5 ms shows.
fn problem(build: &Path, workload: &Value) -> Option<String> {
    let scratch = tempfile::tempdir().unwrap();
    let name = workload["name"].as_str().unwrap();
    let output =
        launch(build, &["run", name, "--target-ms", "5"], scratch.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if !output.status.success() || !said.is_empty() {
        return Some(format!("{name}: {}: {said}", output.status));
    }
    let sample: Value = match serde_json::from_slice(&output.stdout) {
        Ok(sample) => sample,
        Err(error) => return Some(format!("{name} printed no sample: {error}")),
    };
    let [operations, elapsed, rate] =
        ["operations", "elapsed_ns", "rate"].map(|field| sample[field].as_f64().unwrap_or(0.0));
    let is_sound = operations >= 1.0 && elapsed > 0.0 && rate > 0.0 && rate.is_finite();
    if !is_sound || sample["unit"] != workload["unit"] {
        return Some(format!("{name} printed {sample}"));
    }
    let left = fs::read_dir(&scratch).unwrap().flatten().map(|entry| entry.path()).next();
    left.map(|path| format!("{name} left {}", path.display()))
}

#[test]
fn every_workload_runs_in_both_builds_and_leaves_nothing() {
    let _turn = TURN.lock();
    let _machine = Turn::take();
    let before = traces();
    let mut problems = Vec::new();
    for build in builds() {
        let workloads = listed(build);
        assert!(workloads.len() >= 150, "{}", workloads.len());
        problems.extend(look_at_all(&workloads, |workload| problem(build, workload)));
    }
    // Tests that take no turn may have what goes again.
    wait_until(Duration::from_secs(10), || traces().is_subset(&before));
    problems.extend(traces().difference(&before).map(|left| format!("left behind: {left}")));
    assert!(problems.is_empty(), "{problems:#?}");
}

/// All users share the names of POSIX objects, and anybody can foresee the number of a process.
#[test]
fn posix_objects_of_others_keep_no_workload_out() {
    let _turn = TURN.lock();
    let scratch = tempfile::tempdir().unwrap();
    for (workload, directory) in [("shm-open-unlink", "/dev/shm"), ("mq-message", "/dev/mqueue")] {
        if !Path::new(directory).is_dir() {
            continue;
        }
        let line = format!(": >{directory}/weigh-$$ && exec \"$0\" run {workload} --operations 9");
        let mut shell = launch(Path::new("/bin/sh"), &["-c", &line], scratch.path());
        let child = shell.arg(&builds()[0]).stdout(Stdio::null()).spawn().unwrap();
        let taken = format!("{directory}/weigh-{}", child.id());
        let output = child.wait_with_output().unwrap();
        fs::remove_file(taken).unwrap();
        assert!(output.status.success(), "{workload}: {:?}", output.status);
    }
}

/// System calls of a launch of so many operations after the warm-up, and all operations that it made.
fn counted(name: &str, operations: u64) -> Result<(f64, f64), String> {
    let (calls, sample) = traced(name, operations, &[])?;
    Ok((calls, sample["total_operations"].as_f64().unwrap()))
}

/// System calls of such a launch, and what it prints.
fn traced(name: &str, operations: u64, options: &[&str]) -> Result<(f64, Value), String> {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("output");
    let operations = operations.to_string();
    let arguments = [&["run", name, "--operations", &operations], options].concat();
    let mut command = launch(&builds()[0], &arguments, scratch.path());
    command.stdout(File::create(&output).unwrap());
    let counts = ptrace::count(&mut command).unwrap();
    if counts.status != 0 {
        return Err(format!("{name} ended with wait status {:#x}", counts.status));
    }
    let sample: Value = serde_json::from_str(&fs::read_to_string(&output).unwrap()).unwrap();
    Ok((counts.total() as f64, sample))
}

#[test]
fn planted_work_is_done_to_the_operation_and_not_reported() {
    let _turn = TURN.lock();
    // 1.25 % of 10,001 are 125.01.
    for (ppm, planted) in [("200000", 2000), ("012500", 125), ("000000", 0)] {
        let (calls, sample) = traced("getppid", 10_001, &["--planted-ppm", ppm]).unwrap();
        let (without, plain) = traced("getppid", 10_001, &[]).unwrap();
        assert_eq!(sample["planted_operations"], planted);
        assert_eq!(sample["operations"], 10_001);
        assert_eq!(calls - without, planted as f64, "system calls that were made");
        let total = |sample: &Value| sample["total_operations"].as_u64().unwrap();
        assert_eq!(total(&sample) - total(&plain), planted as u64);
        assert!(plain.get("planted_operations").is_none(), "{plain}");
    }
}

#[test]
fn the_planted_share_is_exact_over_batches_copies_and_latencies() {
    let _turn = TURN.lock();
    let scratch = tempfile::tempdir().unwrap();
    let run = |name: &str, more: &[&str]| {
        let share = ["run", name, "--target-ms", "20", "--planted-ppm", "030000"];
        launch(&builds()[0], &[&share[..], more].concat(), scratch.path()).output().unwrap()
    };
    for (name, more, rounded) in [
        ("getppid", &[][..], 1.0),
        ("lat-ctx-2p-0k", &[], 1.0),
        ("getppid", &["--latencies"], 1.0),
        ("getppid", &["--copies", "3"], 3.0),
    ] {
        let sample: Value = serde_json::from_slice(&run(name, more).stdout).unwrap();
        let number = |field: &str| sample[field].as_f64().unwrap();
        let (operations, planted) = (number("operations"), number("planted_operations"));
        assert!((planted - 0.03 * operations).abs() <= rounded && planted > 0.0, "{sample}");
        assert!(number("total_operations") >= operations + planted, "{sample}");
    }
    let refused = run("shell1", &[]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("rounding needs at least 10 planted operations"), "{said}");
    assert_eq!((refused.status.code(), refused.stdout), (Some(1), Vec::new()));
}

/// Others may hold up any sample of thousands; the row must not end with it.
#[test]
fn a_share_is_planted_in_a_sample_that_is_held_up() {
    let _turn = TURN.lock();
    let scratch = tempfile::tempdir().unwrap();
    let run = |ppm: u64| {
        let ppm = format!("{ppm:06}");
        let arguments = ["run", "getppid", "--target-ms", "10", "--planted-ppm", &ppm];
        let mut command = launch(&builds()[0], &arguments, scratch.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut refused = Vec::new();
    for _ in 0..8 {
        // The machine may be half as fast a moment later, so what is usual is known from just before.
        let usual: Value = serde_json::from_slice(&run(0).output().unwrap().stdout).unwrap();
        // Twenty operations: of a sample that runs for three tenths of its time there are six.
        let ppm = 20_000_000 / usual["operations"].as_u64().unwrap();
        let mut child = run(ppm).spawn().unwrap();
        let pid = Pid::from_child(&child);
        while child.try_wait().unwrap().is_none() {
            kill_process(pid, Signal::STOP).unwrap();
            thread::sleep(Duration::from_millis(7));
            kill_process(pid, Signal::CONT).unwrap();
            let (number, ran_before) = (child.id(), ran_ns(child.id()));
            thread::sleep(Duration::from_millis(3));
            // Where others have the CPUs it did not run by then, and there was no batch that nobody held up.
            let has_ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
            let has_run = || has_ended(&mut child) || ran_ns(number) > ran_before + 1_000_000;
            wait_until(Duration::from_secs(1), has_run);
        }
        let output = child.wait_with_output().unwrap();
        if !output.status.success() {
            refused.push(String::from_utf8_lossy(&output.stderr).into_owned());
        }
    }
    // Of a machine that became half as fast meanwhile there are fewer than ten, too; where what is planted
    // goes by the time that a sample ran, it is so in all eight.
    assert!(refused.len() <= 4, "{refused:#?}");
}

/// For how long a process had a CPU; 0 of one that is gone.
fn ran_ns(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or_default()
}

/// Finds an error in the counts that a workload declares. Launches of few and of more operations
/// must differ by the calls of the operations.
fn miscount(workload: &Value) -> Option<String> {
    let name = workload["name"].as_str().unwrap();
    let declared = workload["syscalls_per_op"].as_f64().unwrap();
    let ring = name.strip_prefix("lat-ctx-").and_then(|rest| rest.split('p').next()?.parse().ok());
    let few = match declared {
        // In a ring of 96 processes as many passes are under way when it starts and ends.
        _ if name.starts_with("lat-ctx") => 50 * ring.unwrap_or(4),
        // A job of milliseconds, also where it makes no system call.
        _ if workload["group"] == "aim" => 2,
        // Megabytes are read, or page tables of them copied, in each.
        _ if name.starts_with("bw-mmap") || name.starts_with("fork-1") => 30,
        ..=0.1 => 4800,
        ..=30.0 => 120,
        ..=1000.0 => 2,
        _ => 1,
    };
    let [less, more] = match [few, 3 * few].map(|operations| counted(name, operations)) {
        [Ok(less), Ok(more)] => [less, more],
        [Err(problem), _] | [_, Err(problem)] => return Some(problem),
    };
    let found = (more.0 - less.0) / (more.1 - less.1);
    // Programs of the system make as many as its libraries take; the shells' pipes read what there
    // is, in more or fewer pieces.
    let note = workload["syscalls_note"].as_str().unwrap_or_default();
    let is_least = note.starts_with("at least") || note.starts_with("now and then");
    let depends = is_least || (!note.is_empty() && declared > 30.0);
    let expected = declared * (more.1 - less.1);
    let tolerance = if depends { 0.25 } else { 0.02 };
    // A reader that is faster than its writer takes what that writes in two pieces, or now and then in three.
    let above = if is_least { 1.0 } else { tolerance };
    let beyond = more.0 - less.0 - expected;
    let differs = beyond < -tolerance * expected - 4.0 || beyond > above * expected + 4.0;
    differs.then(|| format!("{name} declares {declared} system calls, and makes {found}"))
}

#[test]
fn system_calls_are_as_many_as_declared() {
    let _turn = TURN.lock();
    let groups =
        ["syscall", "process", "ipc", "file", "network", "thread", "time", "security", "aim"];
    let mut workloads = listed(&builds()[0]);
    workloads.retain(|workload| groups.contains(&workload["group"].as_str().unwrap()));
    let problems = look_at_all(&workloads, miscount);
    assert!(problems.is_empty(), "{problems:#?}");
}

/// A line of `/proc/PID/status`, where it is a number.
fn status(pid: u32, key: &str) -> Option<usize> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok()
}

fn partner_of(driver: u32) -> Option<u32> {
    let parent = |pid: &u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.find(|pid| parent(pid) == Some(driver))
}

/// Returns the CPUs to which a workload's two processes are pinned while it runs.
fn placed(name: &str) -> (usize, usize) {
    let scratch = tempfile::tempdir().unwrap();
    let arguments = ["run", name, "--target-ms", "60000"];
    let mut command = launch(&builds()[0], &arguments, scratch.path());
    let mut driver = command.stdout(Stdio::null()).spawn().unwrap();
    let mut found = None;
    let are_placed = crate::support::wait_until(Duration::from_secs(60), || {
        // A partner is forked where its driver is. Once they have waited for each other, each is in its
        // place.
        let are_at_work = status(driver.id(), "voluntary_ctxt_switches:") > Some(100);
        let only_cpu = |pid| status(pid, "Cpus_allowed_list:");
        found = only_cpu(driver.id()).zip(partner_of(driver.id()).and_then(only_cpu));
        are_at_work && found.is_some()
    });
    // Its partner dies with it.
    driver.kill().unwrap();
    driver.wait().unwrap();
    found.filter(|_| are_placed).unwrap_or_else(|| panic!("the two of {name} are not pinned"))
}

#[test]
fn two_processes_are_pinned_to_one_cpu_or_to_two() {
    let _turn = TURN.lock();
    for base in ["context1", "unix-dgram", "lat-tcp"] {
        let (driver, partner) = placed(&format!("{base}@same-cpu"));
        assert_eq!(driver, partner, "{base}");
        if std::thread::available_parallelism().unwrap().get() > 1 {
            let (driver, partner) = placed(&format!("{base}@cross-cpu"));
            assert_ne!(driver, partner, "{base}");
        }
    }
}
