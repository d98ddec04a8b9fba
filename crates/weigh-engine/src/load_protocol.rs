//! How the samples of a stored experiment were taken, as far as rows of one name and unit may differ in it:
//! at a rate that was given, at the highest one within a limit, or as fast as it goes.

use std::mem::discriminant;

use super::provenance::Provenance;
use super::request::{Endurance, Passes, Plan, Request};
use weigh_model::format;
use weigh_model::record::Stored;
use weigh_model::result::work_name::WorkName;
use weigh_model::workload::mix;
use weigh_model::workload::mix::JobPace;
use weigh_verdict::ramp::RampGoal;

pub struct LoadProtocol {
    plan: Plan,
    /// Pace of the jobs of a mix.
    pace: JobPace,
}

impl LoadProtocol {
    /// Reads it from the request of an experiment; `None` if no request is stored with it.
    ///
    /// # Errors
    /// A sentence, if the request cannot be read: without it, samples of one start could get a verdict.
    pub fn of(stored: &Stored) -> Result<Option<LoadProtocol>, String> {
        let origin = Provenance::kept(stored).map_err(|problem| {
            format!("{} cannot be compared: {problem}; measure it again", stored.id)
        })?;
        let protocol = |Provenance { request: Request { plan, .. }, .. }| LoadProtocol {
            pace: plan.pace(),
            plan,
        };
        Ok(origin.map(protocol))
    }

    /// Returns true if samples of this work measure equal things in both experiments.
    pub fn is_like(&self, other: &LoadProtocol, work: &WorkName) -> bool {
        let is_same_plan = match (&self.plan, &other.plan) {
            (Plan::Run(own), Plan::Run(other)) => are_alike(&own.passes, &other.passes),
            (Plan::Net(own), Plan::Net(other)) => own.grid.hash() == other.grid.hash(),
            (Plan::Compare(own), Plan::Compare(other)) => {
                own.endurance.map(|own| own.per_1000s)
                    == other.endurance.map(|other| other.per_1000s)
            }
            (own, other) => discriminant(own) == discriminant(other),
        };
        is_same_plan && (!is_of_mix(work) || self.pace == other.pace)
    }

    /// Returns true if all samples of a work come from one start of its servers. The luck of that
    /// start is in all samples. So their scatter does not show the result of another start.
    pub fn is_of_one_start(&self) -> bool {
        self.plan.endurance().is_some()
    }

    /// Returns true if the experiment chose further load points until it found its target.
    pub fn chooses_its_loads(&self) -> bool {
        matches!(&self.plan, Plan::Ramp(load) if load.ramp.goal != RampGoal::AllPoints)
    }

    /// Behind "it was measured".
    pub fn words(&self, work: &WorkName) -> String {
        let plan = match &self.plan {
            Plan::Compare(comparison) => {
                comparison.endurance.map_or("in pairs".into(), over_one_start)
            }
            Plan::Run(run) => match &run.passes {
                Passes::Planned { .. } => "sample by sample".to_owned(),
                Passes::Classic => "as the suite's original does (--classic)".to_owned(),
                Passes::Endure(endurance) => over_one_start(*endurance),
                Passes::Capacity { p99_ns } => format!(
                    "at the highest rate with a p99 of {} (--capacity)",
                    format::seconds(p99_ns / 1e9)
                ),
            },
            Plan::Ramp(_) => "on a ramp of users (weigh load)".to_owned(),
            Plan::Net(sweeps) => format!("on grid {} ({})", sweeps.grid.name, sweeps.grid.hash()),
        };
        let pace = match self.pace {
            _ if !is_of_mix(work) => String::new(),
            JobPace::AtOnce => ", with jobs back to back".to_owned(),
            JobPace::Thinking(us) => {
                format!(", with {} between jobs", format::seconds(us as f64 / 1e6))
            }
            JobPace::Arriving(per_1000s) => format!(", at {}", rate(per_1000s, "jobs")),
        };
        plan + &pace
    }
}

fn rate(per_1000s: u64, what: &str) -> String {
    format!("{} {what} per second", per_1000s as f64 / 1000.0)
}

fn over_one_start(Endurance { per_1000s, .. }: Endurance) -> String {
    match per_1000s {
        0 => "in passes over one start (--for)".into(),
        _ => {
            let rate = rate(per_1000s, "requests");
            format!("in passes over one start, at {rate} (--for, --rate)")
        }
    }
}

/// Returns true if samples of such passes measure equal things.
fn are_alike(own: &Passes, other: &Passes) -> bool {
    match (own, other) {
        (Passes::Endure(own), Passes::Endure(other)) => own.per_1000s == other.per_1000s,
        (Passes::Capacity { p99_ns: own }, Passes::Capacity { p99_ns: other }) => own == other,
        (own, other) => discriminant(own) == discriminant(other),
    }
}

/// Returns true if the work is users of a mix.
pub fn is_of_mix(work: &WorkName) -> bool {
    work.name.starts_with(mix::PREFIX)
}
