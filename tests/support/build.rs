//! Builds of the workloads other than the one in `weigh`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};
use weigh_workload::executable::FILE_NAME;
use weigh_workload::sources::OBJECTS;

/// The executables that `weigh` has in it, the dynamic one first.
pub fn embedded() -> [PathBuf; 2] {
    [FILE_NAME, "weigh-workloads-static"].map(|file| Path::new(OBJECTS).join(file))
}

/// The workloads that `weigh` has in it and, compiled anew, those of a directory more.
pub fn with_more(name: &str, directory: &str) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&out).unwrap();
    let objects = ["common", "dynamic", "small"].map(|kind| Path::new(OBJECTS).join(kind));
    // With the times that make goes by.
    let copied = Command::new("cp").arg("-a").args(objects).arg(&out).status().unwrap();
    assert!(copied.success());
    make_workloads(name, &[&format!("EXTRA={directory}")])
}

/// Builds the workloads as they are in this tree, by a name, with these variables of make; gives the
/// executable. The static one is not made: it takes as long again.
pub fn make_workloads(name: &str, more: &[&str]) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let [executable, small] = [FILE_NAME, "weigh-workloads-small"].map(|file| out.join(file));
    // Tests that run side by side want the same: the first makes it.
    let lock = fs::File::create(out.with_extension("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let made = Command::new("make")
        .args(["-s", "-j2", "-C", concat!(env!("WORKSPACE"), "/workloads")])
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

/// Compiles a shared library.
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
