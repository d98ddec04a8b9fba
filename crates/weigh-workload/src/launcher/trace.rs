//! `--debug`: what this process orders of its launchers, and what they answer, on stderr.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use super::{Job, Launched, LauncherAnswer, LauncherOrder};

/// Launches alone.
const LAUNCHES: u8 = 1;
/// Also the text that the launched program printed.
const PRINTED: u8 = 2;
/// Also each order and each answer as JSON.
const ORDERS: u8 = 3;

static LEVEL: AtomicU8 = AtomicU8::new(0);
static BEGAN: OnceLock<Instant> = OnceLock::new();

/// Traces from now on, at this level; 0 is silent.
pub fn set_level(level: u8) {
    BEGAN.get_or_init(Instant::now);
    LEVEL.store(level, Ordering::Relaxed);
}

fn is_traced(level: u8) -> bool {
    LEVEL.load(Ordering::Relaxed) >= level
}

fn print(launcher: u32, what: impl Display) {
    let elapsed_s = BEGAN.get().map_or(0.0, |began| began.elapsed().as_secs_f64());
    // A reader that is gone ends no experiment.
    let _ = writeln!(io::stderr(), "debug: {elapsed_s:.6} s: launcher {launcher} {what}");
}

pub fn order(launcher: u32, order: &LauncherOrder) {
    if let (true, LauncherOrder::Run(Job { argv, directory, timeout_ms, .. })) =
        (is_traced(LAUNCHES), order)
    {
        let line = argv.iter().map(|word| format!(" {word:?}")).collect::<String>();
        print(launcher, format!("executes{line} in {directory:?}, for {timeout_ms} ms at most"));
    }
    if is_traced(ORDERS) {
        print(launcher, format!("is ordered {order:?}"));
    }
}

pub fn answer(launcher: u32, answer: &LauncherAnswer) {
    if let (true, LauncherAnswer::Launched(launched)) = (is_traced(LAUNCHES), answer) {
        let Launched { pid, exit_code, signal, timed_out, wall_ns, .. } = &**launched;
        let end = match (exit_code, signal) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "neither an exit status nor a signal".to_owned(),
        };
        let why = if *timed_out { ", as its time was over" } else { "" };
        print(launcher, format!("process {pid} ended after {wall_ns} ns: {end}{why}"));
        for (name, text) in [("stdout", &launched.stdout), ("stderr", &launched.stderr)] {
            if is_traced(PRINTED) && !text.is_empty() {
                print(launcher, format!("process {pid} printed on {name}: {text:?}"));
            }
        }
    }
    if is_traced(ORDERS) {
        print(launcher, format!("answers {answer:?}"));
    }
}
