//! Embeds the suites and mixes: adding one is adding one file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let suites = package.ancestors().nth(2).expect("it is crates/weigh-model").join("suites");
    println!("cargo:rerun-if-changed={}", suites.display());
    list_texts(&suites, &out.join("suites.rs"));
    list_texts(&suites.join("load"), &out.join("mixes.rs"));
}

/// The names of TOML files, and what is in them.
fn list_texts(directory: &Path, output: &Path) {
    let mut code = String::from("&[\n");
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|found| found == "toml"))
        .collect();
    files.sort();
    for file in files {
        let name = file.file_stem().expect("it has an extension").to_string_lossy();
        writeln!(code, "    ({name:?}, include_str!({:?})),", file.display().to_string())
            .expect("a string");
    }
    code.push_str("]\n");
    fs::write(output, code).expect("OUT_DIR is writable");
}
