//! `build`: the workloads of the arm are built again from the embedded sources, by a compiler and with flags
//! of one's own. Every line that they print says whose build it is and which link: that is the proof.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::rebuild::compiler::Compiler;
use crate::rebuild::{self, LINKS, Link, digest_of_sources};
use crate::{
    ApplyContext, Kind, Launch, PairDraw, Place, Placebo, Treatment, TreatmentError, TreatmentKind,
};
use trust::program;
use weigh_host::machine::pace::takes;
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::kind::{Parameter, Probe};
use weigh_model::label::Parameters;
use weigh_workload::place::LaunchPlace;
use weigh_workload::sources::{COMPILER, FLAGS};

pub static KIND: TreatmentKind = TreatmentKind {
    needs_workload: true,
    placebo,
    ..TreatmentKind::of(
        Kind {
            name: "build",
            summary: "the workloads, built again by a different compiler or with different flags",
            parameters: &[
                Parameter { form: "cc=NAME", help: "name or path of the compiler; default cc" },
                Parameter { form: "cflags=FLAGS", help: "compiler flags; default -O2" },
                Parameter { form: "ldflags=FLAGS", help: "linker flags" },
            ],
            probe,
        },
        build,
    )
};

/// One of these shows that something can be built here.
const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];
/// How long a build takes on two CPUs, for a person who waits.
const TAKES: Duration = Duration::from_secs(40);

fn probe() -> Probe {
    let found: Result<Vec<_>, String> = COMPILERS.into_iter().map(program::find).collect();
    match found {
        Err(problem) => Probe::Broken(problem),
        Ok(found) if found.iter().flatten().count() == 0 => {
            Probe::Broken(format!("no C compiler found ({}): install one", COMPILERS.join(", ")))
        }
        Ok(_) => Probe::Available,
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let cflags = parameters.value("cflags").unwrap_or(FLAGS);
    let compiler = Compiler::named(parameters.value("cc"), cflags, parameters.value("ldflags"))?;
    Ok(Box::new(Rebuilt::by(compiler)))
}

/// A build here with the default flags; the embedded one is another's, and linked once.
fn placebo(_: &Parameters) -> Placebo {
    match Compiler::named(None, FLAGS, None) {
        Ok(_) => Placebo::Of(Parameters::default()),
        Err(problem) => Placebo::Impossible(format!("`build` does not work here ({problem})")),
    }
}

struct Rebuilt {
    compiler: Compiler,
    version: OnceCell<String>,
    /// Digest of the compiler.
    sha256: OnceCell<String>,
    built: Option<Rc<Built>>,
    /// Which of its links the arm runs now.
    drawn: usize,
}

/// Build for one arm, or for several arms that ask for equal workloads.
struct Built {
    directory: PathBuf,
    links: Vec<Link>,
    arms: Cell<usize>,
}

/// Builds of an experiment, by the material that they were made of.
#[derive(Default)]
struct Builds(RefCell<BTreeMap<Vec<u8>, Rc<Built>>>);

/// The part of a workload's line that proves it.
#[derive(Deserialize)]
struct Maker {
    workload: String,
    build: Option<String>,
}

impl Rebuilt {
    fn by(compiler: Compiler) -> Rebuilt {
        let (version, sha256) = (OnceCell::new(), OnceCell::new());
        Rebuilt { compiler, version, sha256, built: None, drawn: 0 }
    }

    fn version(&self) -> &str {
        self.version.get_or_init(|| self.compiler.version().unwrap_or_else(|problem| problem))
    }

    fn sha256(&self) -> &str {
        self.sha256.get_or_init(|| self.compiler.sha256().unwrap_or_else(|_| "unknown".into()))
    }

    fn links(&self) -> &[Link] {
        self.built.as_ref().map_or(&[], |built| &built.links)
    }

    fn build_in(
        &self,
        context: &ApplyContext,
        directory: PathBuf,
    ) -> Result<Built, TreatmentError> {
        fs::create_dir(&directory).map_err(|error| {
            TreatmentError::Unavailable(format!("cannot make {}: {error}", directory.display()))
        })?;
        let name = format!("{:x}", Sha256::digest(self.content()));
        let links = rebuild::build(
            &self.compiler,
            &directory,
            &name[..12],
            context.seed,
            context.interrupted,
        )?;
        Ok(Built { directory, links, arms: Cell::new(0) })
    }
}

impl Place for Rebuilt {
    fn launch_place(&self, place: LaunchPlace) -> LaunchPlace {
        match self.links().get(self.drawn) {
            Some(link) => LaunchPlace { executable: link.executable.clone(), ..place },
            None => place,
        }
    }

    fn prepare_pair(&mut self, draw: PairDraw) -> Result<(), TreatmentError> {
        self.drawn = (draw.chance % LINKS as u64) as usize;
        Ok(())
    }
}

impl Treatment for Rebuilt {
    fn can_interleave(&self) -> bool {
        true
    }

    fn takes_time(&self) -> Option<String> {
        let (file, flags) = (self.compiler.file.display(), self.compiler.flags());
        Some(format!(
            "Building the workloads with {file} {flags}, linked in {LINKS} different orders: {}, before the \
             time of --budget.",
            takes(TAKES)
        ))
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        _: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        let builds = context.commons.of::<Builds>();
        let known = builds.0.borrow().get(&self.content()).cloned();
        let built = match known {
            Some(built) => built,
            None => {
                let number = builds.0.borrow().len() + 1;
                let directory = context.place.scratch.join(format!("build-{number}"));
                let built = Rc::new(self.build_in(context, directory)?);
                builds.0.borrow_mut().insert(self.content(), Rc::clone(&built));
                built
            }
        };
        built.arms.set(built.arms.get() + 1);
        self.built = Some(built);
        Ok(Vec::new())
    }

    fn places(&mut self) -> Vec<&mut dyn Place> {
        vec![self]
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        // One that failed is no sample, and whoever reads it says why.
        if launch.launched.exit_code != Some(0) {
            return Ok(Evidence::default());
        }
        let line = launch.launched.stdout.lines().rev().find(|line| !line.trim().is_empty());
        let maker: Option<Maker> = line.and_then(|line| serde_json::from_str(line).ok());
        let Some(Maker { workload, build }) = maker else {
            return Err(TreatmentError::NotInForce(
                "the process does not report which build it is".into(),
            ));
        };
        let own = self.links().iter().position(|link| Some(&link.mark) == build.as_ref());
        let is_others_too = self.built.as_ref().is_some_and(|built| built.arms.get() > 1);
        match (launch.is_treated, own) {
            (false, found) if found.is_none() || is_others_too => Ok(Evidence::default()),
            (true, Some(link)) if link == self.drawn => {
                let mut evidence = Evidence::default();
                evidence.amounts.set("link", link as u64);
                Ok(evidence)
            }
            (is_treated, _) => Err(TreatmentError::NotInForce(format!(
                "`{workload}` in the {} arm reports that it is {}: something replaced its executable \
                 during the measurement",
                if is_treated { "treated" } else { "other" },
                build.map_or("the embedded build".into(), |build| format!("build {build}")),
            ))),
        }
    }

    fn content(&self) -> Vec<u8> {
        let Compiler { file, cflags, ldflags } = &self.compiler;
        let sources = digest_of_sources();
        let (version, sha256) = (self.version(), self.sha256());
        format!("{file:?} {version:?} {sha256} {cflags:?} {ldflags:?} {sources}").into_bytes()
    }

    fn facts(&self) -> Vec<String> {
        let (file, flags) = (self.compiler.file.display(), self.compiler.flags());
        let hashes = self.links().iter().enumerate().map(|(number, link)| match number {
            0 => format!("0 {}", link.sha256),
            _ => format!("{number} {}", &link.sha256[..12]),
        });
        let hashes: Vec<String> = hashes.collect();
        vec![
            format!(
                "The workloads of this arm are the embedded sources, built by {file} ({}; SHA-256 of the \
                 compiler and the programs that it starts {}) with {flags}.",
                self.version(),
                self.sha256()
            ),
            format!(
                "They are linked with their objects in {LINKS} different orders; each pair draws one at \
                 random. SHA-256 of the executables: {}.",
                hashes.join(", ")
            ),
            format!(
                "An arm without `build` runs the embedded build: {COMPILER} with {FLAGS}, linked once."
            ),
        ]
    }

    fn state(&self, is_treated: bool) -> Option<&'static str> {
        Some(if is_treated { "built here" } else { "the embedded build" })
    }

    fn restore(&mut self, _: &mut Guard) -> Result<(), TreatmentError> {
        let Some(built) = self.built.take() else { return Ok(()) };
        built.arms.set(built.arms.get() - 1);
        if built.arms.get() > 0 {
            return Ok(());
        }
        let directory = &built.directory;
        fs::remove_dir_all(directory).map_err(|error| {
            TreatmentError::Unavailable(format!("cannot remove {}: {error}", directory.display()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters_of;
    use weigh_workload::executable::Executable;
    use weigh_workload::launcher::Launched;
    use weigh_workload::setup::Setup;

    fn refused(label: &str) -> String {
        (KIND.build)(&parameters_of(label)).err().unwrap()
    }

    #[test]
    fn a_compiler_that_is_not_here_is_named() {
        let missing = refused("build:cc=no-such-cc");
        assert!(
            missing.starts_with("cc=no-such-cc: there is no program `no-such-cc`"),
            "{missing}"
        );
        assert!(refused("build:cc=./no-such-cc").contains("/no-such-cc. Install a C compiler"));
        assert!(refused("build:cflags='-O2").contains("a quote is not closed"));
    }

    #[test]
    fn only_the_link_that_was_drawn_is_evidence() {
        let scratch = tempfile::tempdir().unwrap();
        let executable = Executable::unpack(scratch.path()).unwrap();
        let believes = |arms, is_treated, exit_code, line: &str| {
            let link = |mark: &str| Link {
                executable: executable.clone(),
                sha256: String::new(),
                mark: mark.into(),
            };
            let links = ["a/0", "a/1"].map(link).into();
            let built = Built { directory: "/".into(), links, arms: Cell::new(arms) };
            let compiler = Compiler { file: "cc".into(), cflags: Vec::new(), ldflags: Vec::new() };
            let built = Some(Rc::new(built));
            let mut treatment = Rebuilt { built, drawn: 1, ..Rebuilt::by(compiler) };
            let stdout = format!("{line}\n");
            let launched = Launched { exit_code: Some(exit_code), stdout, ..Launched::default() };
            let setup = Setup::default();
            treatment.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).is_ok()
        };
        let is_believed = |is_treated, exit, line: &str| believes(1, is_treated, exit, line);
        let line = |build: &str| format!(r#"{{"workload":"x"{build}}}"#);
        let of = |mark: &str| line(&format!(r#","build":"{mark}""#));
        assert!(is_believed(true, 0, &of("a/1")));
        for other in [of("a/0"), of("b/1"), line(""), "x".into(), String::new()] {
            assert!(!is_believed(true, 0, &other), "{other}");
        }
        assert!(is_believed(false, 0, &line("")) && is_believed(false, 0, &of("b/1")));
        assert!(!is_believed(false, 0, &of("a/1")) && !is_believed(false, 0, "a command"));
        assert!(believes(2, false, 0, &of("a/1")), "the other arm runs the same build");
        assert!(is_believed(true, 1, ""), "who reads it says why it failed");
    }
}
