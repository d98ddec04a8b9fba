//! Lists the files of a directory as Rust code. For build scripts.
//!
//! Adding a treatment, a fixture or a report format is adding one file: a build script writes the list into
//! `OUT_DIR`, and no other file names the new one. The crate does not know what the files contain.
//!
//! - [`list_modules`] makes a module of each Rust file, and a list of the item that each [`Modules`] names;
//! - [`list_texts`] embeds text files, such as suites;
//! - [`files`], [`stem`], [`package`], [`workspace`] and [`out`] are for build scripts of other forms.
//!
//! Start with [`list_modules`].

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// A directory of which every file is a module that has the same item.
pub struct Modules {
    /// Below the package.
    pub directory: &'static str,
    /// Name of the static that every file has.
    pub item: &'static str,
    pub type_name: &'static str,
    /// The name of the list of them.
    pub list: &'static str,
    /// The file of the code, for `include!`.
    pub output: &'static str,
}

/// Makes a module of every file, and a list of what each of them has under the same name.
///
/// # Panics
/// Where the directory cannot be read or the code cannot be written.
pub fn list_modules(found: &Modules) {
    println!("cargo:rerun-if-changed={}", found.directory);
    let mut modules = String::new();
    let mut list = format!("pub static {}: &[&{}] = &[\n", found.list, found.type_name);
    for file in files(&package().join(found.directory), "rs") {
        let name = stem(&file);
        modules += &format!("#[path = {:?}]\npub mod {name};\n", file.display().to_string());
        list += &format!("    &{name}::{},\n", found.item);
    }
    list.push_str("];\n");
    write(found.output, modules + &list);
}

/// The names of TOML files, and what is in them.
///
/// # Panics
/// As [`list_modules`].
pub fn list_texts(directory: &Path, output: &str) {
    println!("cargo:rerun-if-changed={}", directory.display());
    let mut code = String::from("&[\n");
    for file in files(directory, "toml") {
        let path = file.display().to_string();
        writeln!(code, "    ({:?}, include_str!({path:?})),", stem(&file)).expect("a string");
    }
    code.push_str("]\n");
    write(output, code);
}

/// Writes a file of code, for `include!`.
///
/// # Panics
/// Where it cannot be written.
pub fn write(output: &str, code: String) {
    fs::write(out().join(output), code).expect("OUT_DIR is writable");
}

/// The directory of the package that is built.
///
/// # Panics
/// Outside of a build script.
pub fn package() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
}

/// The root of the workspace: packages are in `crates/NAME`.
///
/// # Panics
/// As [`package`].
pub fn workspace() -> PathBuf {
    package().ancestors().nth(2).expect("it is in crates/").to_owned()
}

/// Where code is written.
///
/// # Panics
/// As [`package`].
pub fn out() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"))
}

/// The files of a directory that have this extension, by name.
///
/// # Panics
/// Where it cannot be read.
pub fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.expect("a directory of ours can be read").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

/// The name of a file without its extension.
///
/// # Panics
/// Where it has none.
pub fn stem(file: &Path) -> String {
    file.file_stem().expect("a file found by its extension").to_string_lossy().into_owned()
}
