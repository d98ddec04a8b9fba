//! A running process, watched for a time as it is, and then counted for as long.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::alarm::Alarm;
use super::cpu_time::of_tree;
use super::seize;
use weigh_model::profile::runs::{Counts, Period};

const LOOK_UP: Duration = Duration::from_millis(20);

/// Watches a process with all that it started and starts, as they are.
pub fn plain(root: i32, time: Duration, interrupted: &AtomicBool) -> io::Result<Period> {
    let (before, started) = (of_tree(root), Instant::now());
    while started.elapsed() < time && !interrupted.load(Ordering::Relaxed) {
        if !Path::new(&format!("/proc/{root}")).exists() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        std::thread::sleep(LOOK_UP.min(time.saturating_sub(started.elapsed())));
    }
    Ok(Period { elapsed: started.elapsed(), cpu: of_tree(root).since(before) })
}

/// Watches processes with their system calls counted, and then lets them go.
pub fn counted(
    root: i32,
    time: Duration,
    interrupted: &AtomicBool,
) -> io::Result<(Counts, Period)> {
    let alarm = Alarm::start(time, interrupted)?;
    let (before, started) = (of_tree(root), Instant::now());
    let counts = seize::count(root, &alarm)?;
    Ok((counts, Period { elapsed: started.elapsed(), cpu: of_tree(root).since(before) }))
}
