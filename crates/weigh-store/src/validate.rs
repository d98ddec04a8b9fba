//! Checks of foreign databases for values that no experiment has: numbers that name nothing, or are
//! infinite.

use super::Error;
use weigh_model::format::plural;
use weigh_model::record::{ExperimentKind, Stored};
use weigh_model::result::plausible::is_moment;

/// As many would take years.
const MOST_SETS: usize = 10_000;
/// Thirty years.
const LONGEST_S: f64 = 1e9;

/// # Errors
/// What is wrong with it: then nothing can be told of it.
pub(super) fn check(stored: &Stored) -> Result<(), Error> {
    let (works, arms) = (stored.header.works.len(), stored.header.arms.len());
    let samples = stored.samples.keys().copied();
    let startups = stored.startups.iter().map(|startup| (startup.work, startup.arm));
    let mut named = samples.chain(startups);
    let mut sets = stored.samples.values().flat_map(|of_row| &of_row.points).map(|point| point.set);
    let has_arms = matches!(
        stored.header.kind,
        ExperimentKind::Compare
            | ExperimentKind::Versus
            | ExperimentKind::Run
            | ExperimentKind::Calibrate
    );
    let wrong = if has_arms && arms == 0 {
        "it has no arm".to_owned()
    } else if let Some((work, arm)) = named.find(|(work, arm)| work.0 >= works || arm.0 >= arms) {
        let (works, arms) = (plural(works, "workload"), plural(arms, "arm"));
        format!("it has {works} and {arms}, but a sample of workload {work} in arm {arm}")
    } else if stored.header.sets > MOST_SETS || sets.any(|set| set.0 >= MOST_SETS) {
        format!("it has more than {MOST_SETS} sets")
    } else if !is_moment(&stored.started) {
        "its start time is not valid RFC 3339".to_owned()
    } else if stored.elapsed_s > LONGEST_S {
        "it lasted longer than thirty years".to_owned()
    } else {
        return Ok(());
    };
    Err(Error(format!("experiment {} is damaged: {wrong}", stored.id)))
}
