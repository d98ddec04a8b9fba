//! Servers for one turn, started as an experiment starts them, and a program that asks them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use rustix::thread::{CpuSet, sched_getaffinity};
use tempfile::TempDir;
use weigh_fixture::Fixture;
use weigh_model::label::arm;
use weigh_workload::instance::Instance;
use weigh_workload::launcher::Job;
use weigh_workload::place::LaunchPlace;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::allowed_cpus::AllowedCpus;
use weigh_workload::stdout_use::StdoutUse;

/// How long a turn may take.
const LIMIT_MS: u64 = 120_000;

/// Servers that are new for each turn.
pub struct Servers {
    fixture: Box<dyn Fixture>,
    directory: TempDir,
    turns: u64,
    pub place: LaunchPlace,
}

impl Servers {
    /// Prepares servers of the fixture with this label.
    ///
    /// # Errors
    /// A phrase that names the missing thing.
    pub fn of(label: &str) -> Result<Servers, String> {
        let term = arm(label, |_| true).map_err(|error| error.to_string())?.treatments.remove(0);
        let kind = weigh_fixture::find(&term.name).ok_or(format!("{label} is no fixture"))?;
        let mut fixture = (kind.build)(&term.parameters)?;
        let said = |error: std::io::Error| format!("a directory for {label}: {error}");
        let directory = TempDir::new().map_err(said)?;
        let (templates, scratch) =
            (directory.path().join("made"), directory.path().join("scratch"));
        for one in [&templates, &scratch] {
            fs::create_dir(one).map_err(said)?;
        }
        // The servers' user passes through.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o711)).map_err(said)?;
        let place = LaunchPlace::here(scratch)?;
        fixture.prepare(&templates, &place.executable)?;
        Ok(Servers { fixture, directory, turns: 0, place })
    }

    /// Runs a program beside new servers, and returns its output.
    ///
    /// # Errors
    /// If a server does not start, or the program fails.
    pub fn ask(&mut self, argv: Vec<String>) -> Result<String, String> {
        self.turns += 1;
        let directory = self.directory.path().join(self.turns.to_string());
        fs::create_dir(&directory).map_err(|error| error.to_string())?;
        let said = self.ask_in(&directory, argv);
        let _ = fs::remove_dir_all(&directory);
        said
    }

    fn ask_in(&mut self, directory: &Path, argv: Vec<String>) -> Result<String, String> {
        let never = AtomicBool::new(false);
        let Instance { setup, members, environment, .. } = self.fixture.instance(directory)?;
        let [of_servers, of_clients] = halves_of_cpus()?;
        let start = |setup: Setup| {
            self.place.start_launcher(&setup, &never).map_err(|error| error.to_string())
        };
        let mut servers = start(setup.with(of_servers))?;
        for member in &members {
            servers.raise(member, &never).map_err(|error| error.to_string())?;
        }
        let mut clients = start(Setup::default().with(of_clients))?;
        let job = Job {
            argv,
            environment,
            directory: self.place.scratch.clone(),
            timeout_ms: LIMIT_MS,
            stdout: StdoutUse::KeepEnd,
            start: None,
            if_missing: None,
        };
        let done = clients.run(&job, &never).map_err(|error| error.to_string())?;
        match done.exit_code {
            Some(0) => Ok(done.stdout),
            _ => Err(format!("{}: {}{}", job.argv[0], done.stdout, done.stderr)),
        }
    }
}

/// For servers and for who asks them, as what a client takes would else be taken from the server: then the
/// cheaper client would get more of it. One CPU is for both.
fn halves_of_cpus() -> Result<[AllowedCpus; 2], String> {
    let allowed = sched_getaffinity(None).map_err(|error| format!("the CPUs: {error}"))?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let halves = match cpus.split_at(cpus.len() / 2) {
        ([], all) => [all, all],
        (some, others) => [some, others],
    };
    Ok(halves.map(|cpus| AllowedCpus { cpus: cpus.to_vec() }))
}
