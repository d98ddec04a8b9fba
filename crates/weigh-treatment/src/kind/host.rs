//! `host`: the arm is measured on another machine, reached by ssh.

use crate::remote::connection::Connection;
use crate::remote::{PARAMETERS, RemoteSession, Ssh};
use crate::{
    ApplyContext, Kind, Launch, PairDraw, Place, Reach, Treatment, TreatmentError, TreatmentKind,
};
use trust::program;
use weigh_host::undo::guard::Guard;
use weigh_model::described::{line, machine_changes};
use weigh_model::evidence::Evidence;
use weigh_model::kind::Probe;
use weigh_model::label::Parameters;
use weigh_model::printable::brief;
use weigh_workload::place::LaunchPlace;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::whereabouts::Whereabouts;

pub static KIND: TreatmentKind = TreatmentKind {
    is_place: true,
    ..TreatmentKind::of(
        Kind {
            name: "host",
            summary: "a different machine, reached by ssh, compared with this one",
            parameters: &PARAMETERS,
            probe,
        },
        build,
    )
};

fn probe() -> Probe {
    match program::find("ssh") {
        Ok(Some(_)) => Probe::Available,
        Ok(None) => Probe::Broken("ssh is missing: install openssh-client".into()),
        Err(problem) => Probe::Broken(problem),
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    Ok(Box::new(OnHost { visit: RemoteSession::to(Ssh::of(parameters, "host:USER@HOST")?) }))
}

struct OnHost {
    visit: RemoteSession,
}

impl Place for OnHost {
    fn launch_place(&self, place: LaunchPlace) -> LaunchPlace {
        self.visit.connection.as_ref().map_or(place, |connection| connection.place.clone())
    }

    fn prepare_pair(&mut self, _: PairDraw) -> Result<(), TreatmentError> {
        if self.visit.is_lost() { self.visit.come_back() } else { Ok(()) }
    }
}

impl Treatment for OnHost {
    fn reach(&self) -> Reach {
        Reach::Elsewhere
    }

    fn takes_time(&self) -> Option<String> {
        Some(format!("Copying weigh to {}.", self.visit.ssh.destination))
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        _: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        self.visit.begin(context)?;
        Ok(Vec::new())
    }

    fn places(&mut self) -> Vec<&mut dyn Place> {
        vec![self]
    }

    fn setup(&self, _: bool) -> Setup {
        Setup::default().with(Whereabouts {})
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let there = self.visit.whereabouts();
        let seen = launch.seen(Whereabouts::SEEN)?;
        // The connection is part of it: it is another than that of any other arm.
        let is_there = |found: &&str| there == Some(*found);
        if seen.iter().all(|found| is_there(found) == launch.is_treated) {
            return Ok(Evidence::default());
        }
        Err(TreatmentError::NotInForce(format!(
            "a process of the {} arm ran at `{}`, but {} is `{}`",
            if launch.is_treated { "treated" } else { "other" },
            brief(&seen.join("`, `")),
            self.visit.ssh.destination,
            there.unwrap_or_default()
        )))
    }

    fn facts(&self) -> Vec<String> {
        let Some(Connection { arrival, .. }) = &self.visit.connection else { return Vec::new() };
        let there = &arrival.machine;
        let mut facts = vec![format!(
            "The processes of this arm run on `{}`, reached by ssh as {}: {}. Boot {}.",
            there.hostname,
            self.visit.ssh.destination,
            line(there),
            there.boot_id
        )];
        let changes = machine_changes(&weigh_host::machine::facts::read(), there);
        let shown = changes.iter().map(|change| {
            let known = |value: &str| if value.is_empty() { "unknown" } else { value }.to_owned();
            format!(
                "{} (here {}, there {})",
                change.fact,
                known(&change.before),
                known(&change.after)
            )
        });
        let shown: Vec<String> = shown.collect();
        facts.push(match shown.is_empty() {
            true => "No known fact differs between these two machines in this boot.".into(),
            false => format!(
                "The effect covers all that differs between these two machines in this boot, such as {}.",
                shown.join("; ")
            ),
        });
        if arrival.executable.is_static {
            facts.push("The workloads on that machine are statically linked.".into());
        }
        facts
    }

    fn state(&self, is_treated: bool) -> Option<&'static str> {
        Some(if is_treated { "another machine" } else { "this machine" })
    }

    fn restore(&mut self, _: &mut Guard) -> Result<(), TreatmentError> {
        self.visit.connection = None;
        Ok(())
    }
}
