//! Stored runs whose samples a test decides, each with the request that it would have been measured by.

use std::path::Path;

use serde_json::json;

use super::further_readings::ACTIVITY_RATE;
use super::net_work::NetWork;
use super::request::{Common, LoadRamp, Plan, Request, Sweeps};
use weigh_model::example::point;
use weigh_model::ids::{ArmId, WorkId};
use weigh_model::record::{ExperimentKind, Header, Stored, StoredWork};
use weigh_model::result::summary::State;
use weigh_model::result::work_name::WorkName;
use weigh_model::samples::{RowSamples, Samples};
use weigh_model::workload::metric::{Direction, Metric, MetricValue};
use weigh_net::grid::Grid;

/// A run without samples of works of these names and units.
pub fn stored(plan: Plan, works: impl IntoIterator<Item = StoredWork>) -> Stored {
    // The digests of an origin are its own.
    let common = Common { again: "weigh run".into(), seed: 1, ..Common::default() };
    let request = Request { common, plan };
    let origin = json!({ "request": request, "directory": Path::new("/"), "contents": {} });
    let header = Header {
        metrics: Metric::judged(None, &[]),
        kind: ExperimentKind::Run,
        command: "weigh run".into(),
        seed: 1,
        budget_s: 60.0,
        alpha: 0.05,
        margin: 0.01,
        sets: 1,
        arms: vec!["none".into()],
        works: works.into_iter().collect(),
        origin: Some(origin.to_string()),
        ..Header::default()
    };
    Stored {
        id: "k3f9qx".to_owned().try_into().unwrap(),
        header,
        started: "2026-11-26T00:00:00Z".into(),
        elapsed_s: 60.0,
        state: State::Complete,
        sessions: 1,
        failure: None,
        baseline_state: None,
        fail_above: None,
        warnings: Vec::new(),
        peaks: Vec::new(),
        plans: Vec::new(),
        profiles: Vec::new(),
        facts: vec![Vec::new()],
        quantities: vec![Vec::new()],
        samples: Samples::new(),
        startups: Vec::new(),
        details: Vec::new(),
        failures: Vec::new(),
    }
}

/// A ramp over load points with these users.
pub fn ramp<const N: usize>(users: [usize; N]) -> Stored {
    let name = |users| WorkName::of_users("load:x", users);
    let point = |users| StoredWork { name: name(users), ..work("", "jobs/min") };
    stored(Plan::Ramp(LoadRamp::default()), users.map(point))
}

/// So many complete sweeps over the cells of a grid.
pub fn swept(sweeps: usize) -> Stored {
    let grid = Grid { further: Vec::new(), ..Grid::find("btu-quick").unwrap() };
    let cells = NetWork::cells_of("net:btu-quick", &grid);
    let activity = Metric::Named(ACTIVITY_RATE.into());
    let samples = (0..cells.len()).map(|cell| {
        let rate = |sweep: usize| 100.0 + (cell + 1) as f64 + sweep as f64;
        let found = MetricValue { value: 50.0, unit: "units/s".into(), better: Direction::Higher };
        let row = RowSamples {
            points: (0..sweeps).map(|sweep| point(sweep, rate(sweep))).collect(),
            further: vec![vec![(activity.clone(), found)]; sweeps],
            ..RowSamples::default()
        };
        ((WorkId(cell), ArmId::BASELINE), row)
    });
    let samples = samples.collect();
    let works = cells.iter().map(|cell| StoredWork { name: cell.name(), ..work("", cell.unit()) });
    Stored { samples, ..stored(Plan::Net(Sweeps::over(grid)), works) }
}

pub fn work(name: &str, unit: &str) -> StoredWork {
    StoredWork {
        name: name.into(),
        unit: unit.into(),
        syscalls_per_op: None,
        sample_ms: None,
        start_scale: 0.01.into(),
        on_curve: None,
    }
}
