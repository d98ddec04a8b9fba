//! `--samples N`: so many samples of each workload, in passes over all of them.

use crate::plan::PlanKind;
use crate::plan::run::RunPlanner;

pub static PLAN: PlanKind = PlanKind {
    name: "samples",
    value: "N",
    help: "Samples of each workload",
    default: Some("20"),
    begin: |value, run| {
        let samples = value.parse::<u32>().ok().filter(|samples| *samples >= FEWEST);
        let samples = samples.ok_or_else(|| format!("takes a whole number, {FEWEST} or more"))?;
        let passes = vec![samples as usize; run.works.len()];
        Ok(Box::new(RunPlanner::new(run, passes)))
    },
};

const FEWEST: u32 = 3;
