//! Builds the workloads for embedding, with their sources, and lists the steps of a set-up, which are found
//! by a glob. Adding one is adding one file; nothing here or elsewhere names it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use file_lists::{files, out, package, stem, workspace, write};

/// Where the steps of a set-up are.
const STEPS: &str = "src/setup/kind";

/// How the embedded workloads are compiled. Warnings of a compiler yet to come must not break a user's build,
/// as -Werror would.
const WORKLOAD_FLAGS: &str = "-O2";

fn main() {
    let root = workspace();
    println!("cargo:rustc-env=WORKSPACE={}", root.display());
    let workloads = root.join("workloads");
    println!("cargo:rerun-if-changed={}", workloads.display());
    println!("cargo:rerun-if-env-changed=CC");
    build_workloads(&workloads);
    embed_sources(&workloads);
    println!("cargo:rerun-if-changed={STEPS}");
    list_steps(&package().join(STEPS));
}

fn build_workloads(directory: &Path) {
    let status = make(directory)
        .arg(format!("OUT={}", out().join("workloads").display()))
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
fn embed_sources(directory: &Path) {
    let mut code = String::from("&[\n");
    for group in [directory.to_owned()].into_iter().chain(directories(directory)) {
        for file in ["c", "h"].into_iter().flat_map(|extension| files(&group, extension)) {
            let name = file.strip_prefix(directory).expect("it was found there");
            let (name, path) = (name.display().to_string(), file.display().to_string());
            writeln!(code, "    ({name:?}, include_str!({path:?})),").expect("a string");
        }
    }
    code.push_str("]\n");
    write("sources.rs", code);
    let output = make(directory)
        .args(["--always-make", "--dry-run", "--no-print-directory"])
        .args(["CC={CC}", "CFLAGS={CFLAGS}", "LDFLAGS={LDFLAGS}", "OUT={OUT}"])
        .args(["{OUT}/weigh-workloads", "{OUT}/weigh-workloads-small"])
        .output()
        .expect("make has just built them");
    assert!(output.status.success(), "make cannot tell how it builds the workloads");
    fs::write(out().join("recipe.txt"), output.stdout).expect("OUT_DIR is writable");
    println!("cargo:rustc-env=WEIGH_WORKLOAD_FLAGS={WORKLOAD_FLAGS}");
    println!("cargo:rustc-env=WEIGH_WORKLOAD_COMPILER={}", compiler());
}

/// Returns the version line of the compiler of the embedded workloads.
fn compiler() -> String {
    let named = env::var("CC").unwrap_or_else(|_| "cc".into());
    let program = named.split_whitespace().next().unwrap_or("cc");
    let output = Command::new(program).arg("--version").output().ok();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = said.as_deref().and_then(|said| said.lines().next()).unwrap_or_default().trim();
    if line.is_empty() { program.to_owned() } else { line.to_owned() }
}

/// A type that is one of the steps, each of which is named after its file: `login_uid.rs` has `LoginUid`.
fn list_steps(directory: &Path) {
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
    /// Returns the actions of this step.
    pub fn act(&self) -> &dyn super::Act {{
        match self {{
{acts}        }}
    }}
}}
{kinds}"
    );
    write("setup.rs", code);
}

fn camel_case(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(capital).collect()
}

/// All below this one, without what was built there.
fn directories(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.expect("a directory of ours can be read").path())
        .filter(|path| path.is_dir() && path.file_name().is_some_and(|name| name != "build"))
        .collect();
    found.sort();
    let below: Vec<PathBuf> = found.iter().flat_map(|directory| directories(directory)).collect();
    found.extend(below);
    found
}
