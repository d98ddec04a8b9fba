//! Small programs in languages that are interpreted: `interp:perl.fib` and the like. Which there are, and
//! what each must give, is in `workloads/interp/programs.toml`; their texts are beside it. All of it is
//! embedded, and unpacked beside the workloads.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use super::catalogue::Workload;
use rustix::process::geteuid;
use trust::program;
use weigh_model::workload::metric::WHOLE_RUNS;

/// Their group, and what their names begin with.
pub const GROUP: &str = "interp";
/// The unit of a program that repeats its work and times it.
pub const OPERATIONS: &str = "ops/s";

macro_rules! text {
    ($file:literal) => {
        ($file, include_str!(concat!(env!("WORKSPACE"), "/workloads/interp/", $file)))
    };
}

static FILES: [(&str, &str); 6] = [
    text!("bench.pl"),
    text!("bench.py"),
    text!("bench.php"),
    text!("bench.lua"),
    text!("bench.js"),
    text!("bench.sh"),
];

static CATALOGUE: LazyLock<ProgramList> = LazyLock::new(|| {
    toml::from_str(text!("programs.toml").1).expect("it is embedded, and a test reads it")
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramList {
    #[serde(rename = "language")]
    languages: Vec<Language>,
    #[serde(rename = "program")]
    programs: Vec<SmallProgram>,
}

/// A language, and how its programs are executed.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Language {
    pub name: String,
    /// The interpreter, where nobody names another.
    pub program: String,
    /// Debian's, which has it.
    pub package: String,
    file: String,
    /// True if the language has a monotonic clock.
    #[serde(default)]
    has_clock: bool,
    /// True if the interpreter has threads of its own that work alongside the program.
    #[serde(default)]
    pub parallel: bool,
    /// The arguments with which it prints `ok` and ends.
    pub startup: Vec<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct SmallProgram {
    name: String,
    languages: Vec<String>,
    summary: String,
    source: Option<String>,
    /// Result that the program gives, in every language.
    result: String,
    /// How often it is done where the language has no clock.
    operations: Option<u64>,
    /// In place of a text of ours: these arguments of the interpreter.
    arguments: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interpreted {
    pub language: &'static Language,
    program: &'static SmallProgram,
}

/// Which part of its work a launch is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WorkAmount {
    /// So long, after so long a warm-up.
    Time {
        target_ms: u64,
        warm_up_ms: u64,
    },
    Operations(u64),
}

impl Interpreted {
    pub fn all() -> impl Iterator<Item = Interpreted> {
        let of_language = |language: &'static Language| {
            let has = |program: &&SmallProgram| program.languages.contains(&language.name);
            let programs = CATALOGUE.programs.iter().filter(has);
            programs.map(move |program| Interpreted { language, program })
        };
        CATALOGUE.languages.iter().flat_map(of_language)
    }

    pub fn named(name: &str) -> Option<Interpreted> {
        let name = name.strip_prefix(GROUP)?.strip_prefix(':')?;
        let (language, program) = name.split_once('.')?;
        Interpreted::all().find(|one| one.language.name == language && one.program.name == program)
    }

    /// `interp:LANGUAGE.PROGRAM`
    pub fn name(&self) -> String {
        format!("{GROUP}:{}.{}", self.language.name, self.program.name)
    }

    /// Returns the result that the program must give, every time.
    pub fn result(&self) -> &'static str {
        &self.program.result
    }

    /// Returns true if the program repeats its work, times it, and prints a sample.
    ///
    /// Otherwise the whole process is one run.
    pub fn times_itself(&self) -> bool {
        self.language.has_clock && self.arguments().is_none()
    }

    pub fn unit(&self) -> &'static str {
        if self.times_itself() { OPERATIONS } else { WHOLE_RUNS }
    }

    /// As the catalogue has it.
    pub fn listed(&self) -> Workload {
        Workload {
            name: self.name(),
            summary: self.program.summary.clone(),
            group: GROUP.into(),
            unit: self.unit().into(),
            units_per_op: 1.0,
            source: self.program.source.clone().unwrap_or_else(|| "weigh".into()),
            only_in_batches: true,
            parallel: self.language.parallel,
            ..Workload::default()
        }
    }

    /// Its command line, where the workloads are unpacked here and the interpreter is this.
    pub fn argv(&self, directory: &Path, interpreter: &str, amount: WorkAmount) -> Vec<String> {
        let mut argv = vec![interpreter.to_owned()];
        if let Some(arguments) = self.arguments() {
            argv.extend_from_slice(arguments);
            return argv;
        }
        argv.extend([self.language.script(directory), self.program.name.clone()]);
        let mut option = |name: &str, value: u64| argv.extend([name.into(), value.to_string()]);
        match amount {
            _ if !self.language.has_clock => {
                option("--operations", self.program.operations.unwrap_or(1));
            }
            WorkAmount::Operations(operations) => option("--operations", operations),
            WorkAmount::Time { target_ms, warm_up_ms } => {
                option("--target-ms", target_ms);
                if warm_up_ms > 0 {
                    option("--warm-up-ms", warm_up_ms);
                }
            }
        }
        argv
    }

    fn arguments(&self) -> Option<&'static [String]> {
        match self.program.name.as_str() {
            "startup" => Some(&self.language.startup),
            _ => self.program.arguments.as_deref(),
        }
    }
}

/// Returns the variables to add to the environment that an interpreter inherits.
///
/// On this machine root gets a trusted `PATH`, so that it executes no file that another user put
/// there.
pub fn environment(is_here: bool) -> Vec<(String, String)> {
    match is_here && geteuid().is_root() {
        true => vec![("PATH".to_owned(), program::trusted_path().to_string_lossy().into_owned())],
        false => Vec::new(),
    }
}

impl Language {
    pub fn all() -> &'static [Language] {
        &CATALOGUE.languages
    }

    /// The command line that has an interpreter tell how it was built.
    pub fn describing_argv(&self, directory: &Path, interpreter: &str) -> Vec<String> {
        vec![interpreter.to_owned(), self.script(directory), "--describe".into()]
    }

    pub fn how_to_get_it(&self) -> String {
        format!("apt-get install {}", self.package)
    }

    fn script(&self, directory: &Path) -> String {
        directory.join(GROUP).join(&self.file).display().to_string()
    }
}

/// Writes the programs' texts into a directory of their own in this one.
pub fn unpack(directory: &Path) -> io::Result<PathBuf> {
    let own = directory.join(GROUP);
    fs::create_dir_all(&own)?;
    for (name, text) in FILES {
        fs::write(own.join(name), text)?;
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn perlbenchs_forty_are_there_and_every_program_has_a_text() {
        let of_perlbench = |one: &Interpreted| one.listed().source.starts_with("perlbench ");
        assert_eq!(Interpreted::all().filter(of_perlbench).count(), 40);
        for one in Interpreted::all() {
            assert_eq!(Interpreted::named(&one.name()), Some(one));
            let (_, text) = FILES.iter().find(|(name, _)| *name == one.language.file).unwrap();
            assert!(one.arguments().is_some() || text.contains(&one.program.name), "{one:?}");
            let has_amount = one.language.has_clock || one.program.operations.is_some();
            assert!(has_amount || one.arguments().is_some(), "{one:?}");
        }
        assert_eq!(Interpreted::named("interp:perl.none"), None);
    }

    /// In every language that is here. Those that take seconds are left to whoever measures them.
    #[test]
    fn every_program_gives_its_result() {
        let directory = tempfile::tempdir().unwrap();
        unpack(directory.path()).unwrap();
        let is_quick = |one: &Interpreted| !one.program.name.starts_with("fib-32");
        for one in Interpreted::all().filter(is_quick) {
            let argv = one.argv(directory.path(), &one.language.program, WorkAmount::Operations(1));
            let mut command = Command::new(&argv[0]);
            let output = match command.args(&argv[1..]).current_dir(directory.path()).output() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    println!("skipped {}: {}", one.name(), one.language.how_to_get_it());
                    continue;
                }
                other => other.unwrap(),
            };
            let said = String::from_utf8(output.stdout).unwrap();
            let given = match one.times_itself() {
                false => said.trim_end().to_owned(),
                true => {
                    let line: serde_json::Value = serde_json::from_str(&said).unwrap();
                    assert_eq!(line["workload"], one.name());
                    line["result"].as_str().unwrap().to_owned()
                }
            };
            assert_eq!(given, one.result(), "{}", one.name());
        }
        let left: Vec<_> = fs::read_dir(directory.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "a program left a file: {left:?}");
    }

    #[test]
    fn a_program_is_told_how_long_its_sample_is_to_be() {
        let argv = |name: &str, amount| {
            Interpreted::named(name).unwrap().argv(Path::new("/s"), "/opt/x", amount).join(" ")
        };
        let length = WorkAmount::Time { target_ms: 20, warm_up_ms: 10 };
        let timed = "/opt/x /s/interp/bench.pl fib --target-ms 20 --warm-up-ms 10";
        assert_eq!(argv("interp:perl.fib", length), timed);
        let one = WorkAmount::Operations(1);
        assert_eq!(argv("interp:perl.fib", one), "/opt/x /s/interp/bench.pl fib --operations 1");
        let whole = "/opt/x /s/interp/bench.lua fib --operations 50";
        assert_eq!(
            (argv("interp:lua.fib", one), argv("interp:lua.fib", length)),
            (whole.into(), whole.into())
        );
        assert_eq!(argv("interp:perl.startup-noprog", one), "/opt/x -e 1");
    }
}
