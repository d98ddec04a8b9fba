//! Builds the workloads for embedding, with their sources, and lists what is found by a glob: grids, kinds of
//! treatment and fixture, steps of a set-up and formats of reports. Adding one of these is adding one file;
//! nothing here or elsewhere names it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A directory of which every file is one of a list.
struct Found {
    directory: &'static str,
    /// What each file has.
    item: &'static str,
    type_name: &'static str,
    list: &'static str,
    output: &'static str,
}

const KINDS: Found = Found {
    directory: "src/treatment/kind",
    item: "KIND",
    type_name: "dyn crate::treatment::Kind",
    list: "KINDS",
    output: "treatments.rs",
};

const FIXTURES: Found = Found {
    directory: "src/fixture/kind",
    item: "KIND",
    type_name: "dyn crate::fixture::FixtureKind",
    list: "FIXTURES",
    output: "fixtures.rs",
};

const FORMATS: Found = Found {
    directory: "src/report/formats",
    item: "FORMAT",
    type_name: "crate::report::ReportFormat",
    list: "FORMATS",
    output: "formats.rs",
};

/// Where the steps of a set-up are.
const STEPS: &str = "src/workload/setup/kind";

/// How the embedded workloads are compiled. Warnings of a compiler yet to come must not break a user's build,
/// as -Werror would.
const WORKLOAD_FLAGS: &str = "-O2";

fn main() {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = package.ancestors().nth(2).expect("it is crates/weigh");
    println!("cargo:rustc-env=WORKSPACE={}", root.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for watched in ["workloads", "suites/net"] {
        println!("cargo:rerun-if-changed={}", root.join(watched).display());
    }
    for watched in [KINDS.directory, FIXTURES.directory, FORMATS.directory, STEPS] {
        println!("cargo:rerun-if-changed={watched}");
    }
    println!("cargo:rerun-if-env-changed=CC");
    build_workloads(root, &out);
    embed_sources(&root.join("workloads"), &out);
    list_texts(&root.join("suites/net"), &out.join("grids.rs"));
    for found in [KINDS, FIXTURES, FORMATS] {
        list_modules(&found, &package, &out);
    }
    list_steps(&package.join(STEPS), &out);
}

fn build_workloads(root: &Path, out: &Path) {
    let status = make(&root.join("workloads"))
        .arg(format!("OUT={}", out.join("workloads").display()))
        .env("CFLAGS", WORKLOAD_FLAGS)
        .status()
        .expect("building the workloads needs `make` and a C compiler; `make deps` installs them");
    assert!(status.success(), "the workloads do not compile; see the messages above");
}

fn make(directory: &Path) -> Command {
    let mut command = Command::new(env::var("MAKE").unwrap_or_else(|_| "make".into()));
    // The jobserver and flags of a make that runs cargo are not meant for this one.
    command.current_dir(directory).env_remove("MAKEFLAGS").env_remove("MFLAGS");
    command
}

/// The sources, and what make does with them, for those who build them again with other flags.
fn embed_sources(directory: &Path, out: &Path) {
    let mut code = String::from("&[\n");
    for group in [directory.to_owned()].into_iter().chain(directories(directory)) {
        for file in ["c", "h"].into_iter().flat_map(|extension| files(&group, extension)) {
            let name = file.strip_prefix(directory).expect("it was found there");
            let (name, path) = (name.display().to_string(), file.display().to_string());
            writeln!(code, "    ({name:?}, include_str!({path:?})),").expect("a string");
        }
    }
    code.push_str("]\n");
    fs::write(out.join("sources.rs"), code).expect("OUT_DIR is writable");
    let output = make(directory)
        .args(["--always-make", "--dry-run", "--no-print-directory"])
        .args(["CC={CC}", "CFLAGS={CFLAGS}", "LDFLAGS={LDFLAGS}", "OUT={OUT}"])
        .args(["{OUT}/weigh-workloads", "{OUT}/weigh-workloads-small"])
        .output()
        .expect("make has just built them");
    assert!(output.status.success(), "make cannot tell how it builds the workloads");
    fs::write(out.join("recipe.txt"), output.stdout).expect("OUT_DIR is writable");
    println!("cargo:rustc-env=WEIGH_WORKLOAD_FLAGS={WORKLOAD_FLAGS}");
    println!("cargo:rustc-env=WEIGH_WORKLOAD_COMPILER={}", compiler());
}

/// What the compiler of the embedded workloads says that it is.
fn compiler() -> String {
    let named = env::var("CC").unwrap_or_else(|_| "cc".into());
    let program = named.split_whitespace().next().unwrap_or("cc");
    let output = Command::new(program).arg("--version").output().ok();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = said.as_deref().and_then(|said| said.lines().next()).unwrap_or_default().trim();
    if line.is_empty() { program.to_owned() } else { line.to_owned() }
}

/// The names of TOML files, and what is in them.
fn list_texts(directory: &Path, output: &Path) {
    let mut code = String::from("&[\n");
    for file in files(directory, "toml") {
        let name = stem(&file);
        writeln!(code, "    ({name:?}, include_str!({:?})),", file.display().to_string())
            .expect("a string");
    }
    code.push_str("]\n");
    fs::write(output, code).expect("OUT_DIR is writable");
}

/// Makes a module of every file, and a list of what each of them has under the same name.
fn list_modules(found: &Found, package: &Path, out: &Path) {
    let mut modules = String::new();
    let mut list = format!("pub static {}: &[&{}] = &[\n", found.list, found.type_name);
    for file in files(&package.join(found.directory), "rs") {
        let name = stem(&file);
        writeln!(modules, "#[path = {:?}]\npub mod {name};", file.display().to_string())
            .expect("a string");
        writeln!(list, "    &{name}::{},", found.item).expect("a string");
    }
    list.push_str("];\n");
    fs::write(out.join(found.output), modules + &list).expect("OUT_DIR is writable");
}

/// A type that is one of the steps, each of which is named after its file: `login_uid.rs` has `LoginUid`.
fn list_steps(directory: &Path, out: &Path) {
    let mut modules = String::new();
    let (mut variants, mut acts, mut kinds) = (String::new(), String::new(), String::new());
    for file in files(directory, "rs") {
        let name = stem(&file);
        let kind = camel_case(&name);
        let path = file.display().to_string();
        writeln!(modules, "#[path = {path:?}]\npub mod {name};").expect("a string");
        writeln!(variants, "    {kind}({name}::{kind}),").expect("a string");
        writeln!(acts, "            SetupStep::{kind}(step) => step,").expect("a string");
        writeln!(
            kinds,
            "impl From<{name}::{kind}> for SetupStep {{
    fn from(step: {name}::{kind}) -> SetupStep {{
        SetupStep::{kind}(step)
    }}
}}
impl super::StepKind for {name}::{kind} {{
    fn of(step: &SetupStep) -> Option<&{name}::{kind}> {{
        match step {{
            SetupStep::{kind}(step) => Some(step),
            #[allow(unreachable_patterns)]
            _ => None,
        }}
    }}
}}"
        )
        .expect("a string");
    }
    let code = format!(
        "{modules}
/// A step of one of the kinds.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = \"snake_case\")]
pub enum SetupStep {{
{variants}}}
impl SetupStep {{
    /// What it does.
    pub fn act(&self) -> &dyn super::Act {{
        match self {{
{acts}        }}
    }}
}}
{kinds}"
    );
    fs::write(out.join("setup.rs"), code).expect("OUT_DIR is writable");
}

fn camel_case(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(capital).collect()
}

/// All below this one, without what was built there.
fn directories(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir() && path.file_name().is_some_and(|name| name != "build"))
        .collect();
    found.sort();
    let below: Vec<PathBuf> = found.iter().flat_map(|directory| directories(directory)).collect();
    found.extend(below);
    found
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

fn stem(file: &Path) -> String {
    file.file_stem().expect("a file found by its extension").to_string_lossy().into_owned()
}
