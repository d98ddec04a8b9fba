//! Stored runs whose samples a test decides, each with the request that it would have been measured by.

use std::path::Path;

use serde_json::json;

use super::further_readings::ACTIVITY_RATE;
use super::net_work::NetWork;
use super::request::{Common, LoadRamp, Plan, Request, Sweeps};
pub use weigh_model::example::work;
use weigh_model::example::{self, load_points, point};
use weigh_model::ids::{ArmId, WorkId};
use weigh_model::record::{Stored, StoredWork};
use weigh_model::samples::RowSamples;
use weigh_model::workload::metric::{Direction, Metric, MetricValue};
use weigh_net::grid::Grid;

/// A run without samples of works of these names and units.
pub fn stored(plan: Plan, works: impl IntoIterator<Item = StoredWork>) -> Stored {
    // The digests of an origin are its own.
    let common = Common { again: "weigh run".into(), seed: 1, ..Common::default() };
    let request = Request { common, plan };
    let origin = json!({ "request": request, "directory": Path::new("/"), "contents": {} });
    let mut stored = example::stored(works);
    stored.header.origin = Some(origin.to_string());
    stored
}

/// A ramp over load points with these users.
pub fn ramp<const N: usize>(users: [usize; N]) -> Stored {
    stored(Plan::Ramp(LoadRamp::default()), load_points(users))
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
