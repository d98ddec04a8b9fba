//! Builds of the workloads other than the one in `weigh`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the workloads as they are in this tree, with these variables, into a directory of this name.
pub fn make_workloads(name: &str, variables: &[&str]) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let made = Command::new("make")
        .args(["-s", "-j2", "-C", concat!(env!("CARGO_MANIFEST_DIR"), "/workloads")])
        .arg(format!("OUT={}", out.display()))
        .args(variables)
        .env_remove("MAKEFLAGS")
        .status()
        .unwrap();
    assert!(made.success());
    out
}
