//! Builds of the workloads other than the one in `weigh`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};
use weighbridge::workload::executable::FILE_NAME;

/// What a build of this name makes.
pub fn made(name: &str, executable: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).join(executable)
}

/// Builds the workloads as they are in this tree, by a name, with these variables of make and what else is to
/// be made; gives the executable. The static one is not made: it takes as long again, and few tests need it.
pub fn make_workloads(name: &str, more: &[&str]) -> PathBuf {
    let [executable, small] = [FILE_NAME, "weigh-workloads-small"].map(|file| made(name, file));
    let out = executable.parent().unwrap();
    // Tests that run side by side want the same: the first makes it.
    let lock = fs::File::create(out.with_extension("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let made = Command::new("make")
        .args(["-s", "-j2", "-C", concat!(env!("CARGO_MANIFEST_DIR"), "/workloads")])
        .arg(format!("OUT={}", out.display()))
        .args([&executable, &small])
        .args(more)
        .env_remove("MAKEFLAGS")
        .status()
        .unwrap();
    assert!(made.success());
    executable
}

/// Compiles a program of this source in a directory.
pub fn program(directory: &Path, source: &str, flags: &[&str]) -> PathBuf {
    compile(&directory.join("program"), source, flags)
}

/// The same of a shared library.
pub fn library(directory: &Path, source: &str) -> PathBuf {
    compile(&directory.join("library.so"), source, &["-shared", "-fPIC"])
}

fn compile(out: &Path, source: &str, flags: &[&str]) -> PathBuf {
    let file = out.with_extension("c");
    std::fs::write(&file, source).unwrap();
    let made = Command::new("cc").args(flags).arg("-o").arg(out).arg(file).status().unwrap();
    assert!(made.success());
    std::fs::canonicalize(out).unwrap()
}
