//! Options about servers and other machines that nothing uses are refused before anything is measured: who
//! gave one would take the numbers for those of what it says.

use super::request::{Passes, Plan, Run};
use super::work::Work;
use weigh_model::result::work_name::APP;
use weigh_station::client::WhoIsTreated;

pub fn check_used(plan: &Plan, works: &[Work]) -> Result<(), String> {
    let is_net = |work: &Work| matches!(work, Work::Net(_));
    if plan.far_hosts().is_some() && !works.iter().any(is_net) {
        return Err("--active and --passive apply only to network grids, and no workload here is one: remove \
            them, or add a grid, such as -w net:quick"
            .into());
    }
    let asks_beside = |work: &Work| work.needs().iter().any(|label| label.contains(APP));
    let has_client = |work: &Work| work.asks() || asks_beside(work);
    if plan.treated() == WhoIsTreated::Client && !works.iter().any(has_client) {
        return Err(
            "--treat client needs a workload that sends requests to a server: remove --treat, or choose such \
             a workload (`weigh list workloads app`)"
                .into(),
        );
    }
    Ok(())
}

/// A pass of endurance and a search for capacity are over servers: what asks none has no clients, no rate of
/// requests and no answers.
pub fn check_asking(plan: &Plan, works: &[Work]) -> Result<(), String> {
    let option = match plan {
        _ if plan.endurance().is_some() => "--for",
        Plan::Run(Run { passes: Passes::Capacity { .. }, .. }) => "--capacity",
        _ => return Ok(()),
    };
    match works.iter().find(|work| !work.asks()) {
        Some(work) => Err(format!(
            "`{}` sends no requests to a server, so {option} does not apply. Use a workload such as \
             app:web.page (`weigh list workloads app`)",
            work.name()
        )),
        None => Ok(()),
    }
}
