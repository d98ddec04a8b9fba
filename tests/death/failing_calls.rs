//! System calls that fail, one in each experiment. `weigh` may give up with a sentence, or go on if nothing
//! was lost. It must not panic, report a verdict on a part of its samples, or leave anything changed.
//!
//! strace(1) makes one call of the main thread fail: the guard, the launchers and the workers stay whole.

use std::path::PathBuf;

use crate::support::{Home, Outcome, SETTINGS, Turn, is_root, skip, wait_until};

const FAULTS: [(&str, &str); 8] = [
    ("write", "ENOSPC"),
    ("fsync,fdatasync", "EIO"),
    ("openat", "EMFILE"),
    ("clone,clone3", "EAGAIN"),
    ("mmap", "ENOMEM"),
    ("rename,renameat,renameat2", "ENOSPC"),
    ("pwrite64", "ENOSPC"),
    ("read", "EIO"),
];
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const PAIRS: usize = 8;
/// First system call that `main` makes.
const FIRST_CALL: &str = "close_range";

/// Documented in `weigh help compare`: measured, failed, not everything is decided.
const STATUSES: [i32; 3] = [0, 2, 3];

/// Experiments that change a setting and keep a directory, with one call that fails.
#[test]
fn one_call_that_fails_leaves_nothing_behind() {
    if !is_root() {
        skip("root", "needs root");
        return;
    }
    let _turn = Turn::with(SETTINGS);
    // The first 200 calls of each, or two of them.
    let numbers: Vec<usize> = match crate::support::hard(0, 1) {
        0 => vec![2, 30],
        _ => (1..=200).step_by(crate::support::number("WEIGH_STEP", 1)).collect(),
    };
    let (mut problems, mut failed, mut began) = (Vec::new(), 0, 0);
    for (calls, error) in FAULTS {
        for number in &numbers {
            let inject = format!("inject={calls}:error={error}:when={number}");
            let Some((outcome, found)) = with_fault(&inject) else { continue };
            began += 1;
            failed += usize::from(outcome.code == Some(2));
            problems.extend(found.into_iter().map(|problem| format!("{inject}: {problem}")));
        }
    }
    let all = FAULTS.len() * numbers.len();
    println!("{failed} of {began} experiments failed; {} ended before they began", all - began);
    // Before `main`, libraries are opened and read.
    assert!(began > all / 2, "{began} of {all} began: `main` no longer calls {FIRST_CALL}");
    assert!(failed > 0, "no fault reached weigh");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// `None` where the dynamic linker or the runtime of Rust gave up, before `main`.
fn with_fault(inject: &str) -> Option<(Outcome, Vec<String>)> {
    let before = std::fs::read_to_string(HUGE_PAGES).unwrap();
    let home = Home::new();
    let pairs = PAIRS.to_string();
    let mut command = home.command("strace");
    let trace = format!("trace={},{FIRST_CALL}", inject.split(['=', ':']).nth(1).unwrap());
    let log = home.path("strace");
    command.arg("-qq").arg("-o").arg(&log).args(["-e", &trace, "-e", inject]);
    command.arg(crate::support::program()).args(["compare", "thp:always", "--base", "thp:never"]);
    command.args(["-w", "getppid", "--interleave=off", "--no-detail", "--pairs", &pairs]);
    let outcome = home.start(command).finish();
    let mut problems = Vec::new();
    if !std::fs::read_to_string(&log).unwrap().contains(FIRST_CALL) {
        return None;
    }
    if !outcome.code.is_some_and(|code| STATUSES.contains(&code)) || has_panicked(&outcome) {
        problems.push(format!("{outcome:#?}"));
    }
    if outcome.code == Some(2) && !outcome.stderr.contains("error: ") {
        problems.push(format!("no sentence: {outcome:#?}"));
    }
    if outcome.code != Some(2) && home.samples() != 2 * PAIRS as i64 {
        problems.push(format!("a report on {} samples: {outcome:#?}", home.samples()));
    }
    if !wait_until(std::time::Duration::from_secs(50), || home.processes().is_empty()) {
        problems.push(format!("still running: {:#?}", home.describe_processes()));
    }
    let left: Vec<PathBuf> = home.leftovers();
    if !left.is_empty() {
        problems.push(format!("left: {left:?}: {}", outcome.stderr));
    }
    let after = std::fs::read_to_string(HUGE_PAGES).unwrap();
    if after != before {
        problems.push(format!("huge pages: {before}, and then {after}: {}", outcome.stderr));
        home.run("restore");
    }
    Some((outcome, problems))
}

fn has_panicked(outcome: &Outcome) -> bool {
    [&outcome.stdout, &outcome.stderr].iter().any(|said| said.contains("panicked"))
}
