//! Skips tests that cannot run on this machine, so that the skip is seen.
//!
//! A test calls [`skip`] with the word for the missing thing. `scripts/run-tests` lists all skipped tests at
//! the end, and CI makes a missing thing an error with `WEIGH_REQUIRE`. The crate does not know the tests,
//! and depends on no other crate of the workspace.
//!
//! - [`root`] skips a test unless it runs as root;
//! - [`repetitions`] says how often to simulate, in `make test` and in `make check-hard`.
//!
//! Start with [`skip`].

use std::fs::OpenOptions;
use std::io::Write;
use std::{env, thread};

/// Says that this test cannot run, as the machine lacks something: `need` is one word, as `root` or `nginx`.
///
/// # Panics
/// If `WEIGH_REQUIRE` has the word in it: CI names all that `scripts/install-deps` installs.
pub fn skip(need: &str, why: &str) {
    // Whatever else is in it, its words count.
    let required = env::var_os("WEIGH_REQUIRE").unwrap_or_default();
    assert!(
        !required.to_string_lossy().split_whitespace().any(|one| one == need),
        "{need} is required, but: {why}"
    );
    println!("skipped: {why}");
    let Some(file) = env::var_os("WEIGH_SKIPPED") else { return };
    let mut file = OpenOptions::new().create(true).append(true).open(file).expect("WEIGH_SKIPPED");
    let thread = thread::current();
    let line = format!("{}: {need} is lacking: {why}\n", thread.name().unwrap_or("a test"));
    file.write_all(line.as_bytes()).expect("WEIGH_SKIPPED");
}

/// Tells if the test runs as root; skips it otherwise.
pub fn root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("root", "needs root");
    }
    is_root
}

/// How often something is simulated in every test run, and how often in `make check-hard`.
pub fn repetitions(usual: u64, hard: u64) -> u64 {
    match env::var_os("WEIGH_HARD") {
        Some(_) => hard,
        None => usual,
    }
}
