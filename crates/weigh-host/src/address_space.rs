//! Check for a limit of memory that would abort an experiment in the middle.

use std::fs;

use rustix::process::{Resource, getrlimit};
use weigh_model::format;

/// Address space that an experiment needs beyond the program itself: buffers, and the stacks and heaps of a
/// few threads.
const NEEDED_BYTES: u64 = 64 << 20;

/// Returns an error if `ulimit -v` leaves too little. An allocation that fails would abort the process.
/// Without `/proc`, the size of the program is unknown, and only the limit itself counts.
pub fn check() -> Result<(), String> {
    let Some(limit) = getrlimit(Resource::As).current else { return Ok(()) };
    let used = fs::read_to_string("/proc/self/statm").map_or(0, |statm| used_bytes(&statm));
    let left = limit.saturating_sub(used);
    if left >= NEEDED_BYTES {
        return Ok(());
    }
    Err(format!(
        "the limit of address space (`ulimit -v`) leaves {}, and weigh needs {}: raise it",
        format::bytes(left as f64),
        format::bytes(NEEDED_BYTES as f64)
    ))
}

/// Size of the whole program: the first number of `/proc/PID/statm`, in pages.
fn used_bytes(statm: &str) -> u64 {
    let pages: u64 = statm.split(' ').next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_program_is_in_pages() {
        assert_eq!(used_bytes("10 2 1 0 0 0 0\n"), 10 * rustix::param::page_size() as u64);
    }
}
