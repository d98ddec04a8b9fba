//! Every workload under the address and the undefined-behaviour sanitizer: it reads and writes where it may,
//! and does nothing of which C does not say what it is.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::Turn;
use crate::support::build::make_workloads;
use serde_json::Value;

const FLAGS: &str =
    "CFLAGS=-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all";

fn problem(build: &Path, name: &str) -> Option<String> {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(build);
    // What lives until the end is freed by the end. A workload may ask for more than there is, and expects a
    // refusal.
    command
        .env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1")
        .env_remove("LD_LIBRARY_PATH");
    command
        .args(["run", name, "--target-ms", "1"])
        .current_dir(scratch.path())
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let is_sound = output.status.success() && said.trim().is_empty();
    (!is_sound).then(|| format!("{name}: {}: {said}", output.status))
}

#[test]
fn no_workload_does_what_it_may_not() {
    let _turn = Turn::share();
    let build = make_workloads("sanitized", &[FLAGS]);
    let listing = Command::new(&build).arg("list").output().unwrap();
    let listing = String::from_utf8(listing.stdout).unwrap();
    // They count all page faults, and those of the sanitizer's own memory are among them.
    let is_countable = |name: &String| !["page-fault", "page-fault-file"].contains(&name.as_str());
    let names: Vec<String> = listing
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        // A server is there in tests/servers/servers.rs.
        .filter(|workload| workload["needs"].is_null())
        .map(|workload| workload["name"].as_str().unwrap().into())
        .filter(is_countable)
        .collect();
    assert!(names.len() >= 150, "{}", names.len());
    let (next, problems) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let look_at_some = || {
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = problem(&build, name);
            problems.lock().unwrap().extend(found);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().unwrap().get() {
            scope.spawn(look_at_some);
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
