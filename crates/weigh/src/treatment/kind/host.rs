//! `host`: the arm is measured on another machine, reached by ssh.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::kind::{Parameter, Probe};
use crate::label::Parameters;
use crate::machine::Facts;
use crate::machine::described::{line, machine_changes};
use crate::orphans::wait_until;
use crate::treatment::elsewhere::Ssh;
use crate::treatment::elsewhere::connection::Connection;
use crate::treatment::guard::Guard;
use crate::treatment::{
    Bench, Evidence, Kind, Launch, PairDraw, Reach, Treatment, TreatmentError, absolute,
};
use crate::workload::place::LaunchPlace;
use crate::workload::setup::Setup;
use crate::workload::setup::kind::whereabouts::Whereabouts;
use trust::program;

pub static KIND: OtherHost = OtherHost;

/// A connection that is lost so often is none to measure over.
const RECONNECTIONS: usize = 5;
/// A machine that boots takes longer, and is another one then.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(1);

pub struct OtherHost;

impl Kind for OtherHost {
    fn name(&self) -> &'static str {
        "host"
    }

    fn summary(&self) -> &'static str {
        "another machine, reached by ssh: the two side by side"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter { form: "DESTINATION", help: "USER@HOST, or a name of ssh's configuration" },
            Parameter { form: "port=N", help: "where its sshd listens" },
            Parameter { form: "identity=FILE", help: "the key to use" },
            Parameter { form: "known_hosts=FILE", help: "a file with the key of that machine" },
        ]
    }

    fn is_place(&self) -> bool {
        true
    }

    fn probe(&self) -> Probe {
        match program::find("ssh") {
            Ok(Some(_)) => Probe::Available,
            Ok(None) => Probe::Broken("there is no ssh here (package openssh-client)".into()),
            Err(problem) => Probe::Broken(problem),
        }
    }

    fn build(&self, parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
        let mut words = parameters.iter().filter(|(_, value)| value.is_none());
        let (Some((destination, _)), None) = (words.next(), words.next()) else {
            return Err("`host` takes one machine: host:USER@HOST".into());
        };
        let file = |key: &str| parameters.value(key).map(absolute).transpose();
        let mut ssh = Ssh::to(destination)?;
        ssh.port = parameters.number("port", 1..=65535)?;
        ssh.identity = file("identity")?;
        ssh.known_hosts = file("known_hosts")?;
        Ok(Box::new(Visit {
            ssh,
            connection: None,
            scratch: PathBuf::new(),
            interrupted: Arc::default(),
            connections: 0,
        }))
    }
}

struct Visit {
    ssh: Ssh,
    connection: Option<Connection>,
    /// A private directory of here.
    scratch: PathBuf,
    interrupted: Arc<AtomicBool>,
    connections: usize,
}

impl Visit {
    fn connect(&mut self) -> Result<(), TreatmentError> {
        // Its end first: what it left there is removed.
        self.connection = None;
        let name = format!("ssh-{:08x}", rand::random::<u32>());
        let opened = Connection::open(&self.ssh, &self.scratch.join(name), &self.interrupted)?;
        self.connections += 1;
        self.connection = Some(opened);
        Ok(())
    }

    /// Connects again, to a machine that may be away for a while.
    fn reconnect(&mut self) -> Result<(), TreatmentError> {
        let deadline = Instant::now() + COMES_BACK_WITHIN;
        while let Err(error) = self.connect() {
            let is_away = matches!(error, TreatmentError::Unavailable(_));
            if !is_away || Instant::now() > deadline {
                return Err(error);
            }
            let again = Instant::now() + PAUSE;
            if wait_until(again, || self.interrupted.load(Ordering::Relaxed)) {
                return Err(TreatmentError::Interrupted);
            }
        }
        Ok(())
    }
}

impl Treatment for Visit {
    fn reach(&self) -> Reach {
        Reach::Elsewhere
    }

    fn takes_time(&self) -> Option<String> {
        Some(format!("Copying weigh to {}.", self.ssh.destination))
    }

    fn prepare(&mut self, bench: &Bench, _: &mut Guard) -> Result<Vec<String>, TreatmentError> {
        if let Some(file) = &bench.place.executable.foreign {
            return Err(TreatmentError::Unavailable(format!(
                "the workloads of {} are not on {}: unset WEIGH_WORKLOADS",
                file.display(),
                self.ssh.destination
            )));
        }
        self.scratch.clone_from(&bench.place.scratch);
        self.interrupted = Arc::clone(bench.interrupted);
        self.connect()?;
        Ok(Vec::new())
    }

    fn place(&self, place: LaunchPlace) -> LaunchPlace {
        self.connection.as_ref().map_or(place, |connection| connection.place.clone())
    }

    fn vary(&mut self, place: LaunchPlace, _: PairDraw) -> Result<LaunchPlace, TreatmentError> {
        if self.connection.as_mut().is_some_and(|connection| !connection.is_lost()) {
            return Ok(place);
        }
        if self.connections > RECONNECTIONS {
            return Err(TreatmentError::Unavailable(format!(
                "the connection to {} was lost {} times",
                self.ssh.destination, self.connections
            )));
        }
        self.reconnect()?;
        Ok(self.place(place))
    }

    fn setup(&self, _: bool) -> Setup {
        Setup::default().with(Whereabouts {})
    }

    fn after(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let there = self.connection.as_ref().map(|it| it.arrival.whereabouts.as_str());
        let seen = launch.seen(Whereabouts::SEEN)?;
        // The connection is part of it: it is another than that of any other arm.
        let is_there = |found: &&str| there == Some(*found);
        if seen.iter().all(|found| is_there(found) == launch.is_treated) {
            return Ok(Evidence::default());
        }
        Err(TreatmentError::NotInForce(format!(
            "a process of the {} arm ran at `{}`, and {} is `{}`",
            if launch.is_treated { "treated" } else { "other" },
            seen.join("`, `"),
            self.ssh.destination,
            there.unwrap_or_default()
        )))
    }

    fn facts(&self) -> Vec<String> {
        let Some(Connection { arrival, .. }) = &self.connection else { return Vec::new() };
        let there = &arrival.machine;
        let mut facts = vec![format!(
            "The processes of this arm run on `{}`, reached by ssh as {}: {}. Boot {}.",
            there.hostname,
            self.ssh.destination,
            line(there),
            there.boot_id
        )];
        let changes = machine_changes(&Facts::read(), there);
        let shown = changes.iter().map(|change| {
            let known = |value: &str| if value.is_empty() { "not known" } else { value }.to_owned();
            format!(
                "{} (here {}, there {})",
                change.fact,
                known(&change.before),
                known(&change.after)
            )
        });
        let shown: Vec<String> = shown.collect();
        facts.push(match shown.is_empty() {
            true => "These two machines, this boot: no fact of them differs.".into(),
            false => format!(
                "These two machines, this boot: the effect is of all that differs between them, as {}.",
                shown.join("; ")
            ),
        });
        if arrival.executable.is_static {
            facts.push("There the workloads are statically linked.".into());
        }
        facts
    }

    fn state(&self, is_treated: bool) -> Option<&'static str> {
        Some(if is_treated { "another machine" } else { "this machine" })
    }

    fn restore(&mut self, _: &mut Guard) -> Result<(), TreatmentError> {
        self.connection = None;
        Ok(())
    }
}
