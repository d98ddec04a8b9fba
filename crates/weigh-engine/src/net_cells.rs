//! The single cells of a grid, from its stored samples, and what was measured besides the score.

use std::collections::BTreeMap;

use paired::estimate::median;
use paired::histogram::Histogram;
use weigh_model::ids::WorkId;
use weigh_model::record::Stored;
use weigh_model::result::btu::Means;
use weigh_model::result::net_cells::{FurtherClass, FurtherFound, NetCell, NetFurther};
use weigh_model::result::net_limits::{HOST_BUSY, LINK_BUSY, PEERS_BUSY};
use weigh_net::cell::{Cell, FurtherKind};
use weigh_net::grid::{ApplicationClass, Grid};

pub const CPU_PER_GB: &str = "cpu_per_gb";
pub const PEER_CPU_PER_GB: &str = "peer_cpu_per_gb";
const DATAGRAMS: &str = "datagrams";
const DATAGRAMS_LOST: &str = "datagrams_lost";
const DATAGRAMS_REORDERED: &str = "datagrams_reordered";

/// Readings kept of each cell besides its rate, its activity and its losses.
pub const READINGS: [&str; 16] = [
    super::abnormal::TIMEOUTS,
    super::abnormal::RETRANSMISSIONS,
    CPU_PER_GB,
    PEER_CPU_PER_GB,
    "cpu_per_request",
    "peer_cpu_per_request",
    DATAGRAMS,
    DATAGRAMS_LOST,
    DATAGRAMS_REORDERED,
    "datagrams_duplicated",
    super::abnormal::DROPPED,
    super::abnormal::DROPPED_BY_QUEUE,
    "overruns",
    LINK_BUSY,
    HOST_BUSY,
    PEERS_BUSY,
];

/// Returns true if a cell failed in some sweep. The cell then has no result, even if other sweeps
/// measured it.
pub fn has_failed(stored: &Stored, number: usize) -> bool {
    stored.header.works.get(number).is_some_and(|work| stored.has_failed(&work.name))
}

/// Returns the cells that have a result, by number.
pub fn measured(stored: &Stored, cells: &[Cell]) -> BTreeMap<usize, NetCell> {
    let of = |(number, cell): (usize, &Cell)| {
        let row = stored.result_of_run(WorkId(number))?;
        let rates: Vec<f64> = row.points.iter().map(|point| point.rate).collect();
        let mut readings: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (metric, found) in row.further.iter().flatten() {
            readings.entry(metric.name().to_owned()).or_default().push(found.value);
        }
        let medians = readings.into_iter();
        let found = NetCell {
            cell: cell.name(),
            bytes: cell.bytes,
            unit: stored.header.works.get(number)?.unit.clone(),
            activity: cell.activity.clone(),
            is_of_suite: cell.component.is_some(),
            median: median(&rates)?,
            rates,
            readings: medians.filter_map(|(name, all)| Some((name, median(&all)?))).collect(),
        };
        Some((number, found))
    };
    cells.iter().enumerate().filter_map(of).collect()
}

/// Returns the results of the grid besides its score.
pub fn further(
    stored: &Stored,
    grid: &Grid,
    cells: &[Cell],
    measured: &BTreeMap<usize, NetCell>,
) -> Vec<NetFurther> {
    let table = FurtherTable { cells, measured, exchanges: exchanges(stored) };
    let of = |kind: &FurtherKind| NetFurther {
        kind: kind.title().into(),
        unit: kind.unit().into(),
        classes: grid.classes.iter().map(|class| table.class(*kind, class)).collect(),
    };
    grid.further.iter().map(of).collect()
}

/// How long requests took, of all sweeps of a cell.
fn exchanges(stored: &Stored) -> BTreeMap<usize, Histogram> {
    let mut of_cells: BTreeMap<usize, Histogram> = BTreeMap::new();
    for detailed in &stored.details {
        if let Some(latencies) = &detailed.detail.latencies {
            let found = Histogram::new(latencies.buckets.iter().copied());
            of_cells.entry(detailed.work.0).or_default().merge(&found);
        }
    }
    of_cells
}

struct FurtherTable<'a> {
    cells: &'a [Cell],
    measured: &'a BTreeMap<usize, NetCell>,
    exchanges: BTreeMap<usize, Histogram>,
}

impl FurtherTable<'_> {
    fn class(&self, kind: FurtherKind, class: &ApplicationClass) -> FurtherClass {
        let of = |is_beside: bool| {
            let is_its = |cell: &Cell| {
                cell.further == Some(kind)
                    && cell.bytes == class.bytes
                    && cell.activity.is_some() == is_beside
            };
            self.found(&is_its)
        };
        let (name, bytes) = (class.name.clone(), class.bytes);
        FurtherClass { name, bytes, alone: of(false), beside: of(true) }
    }

    fn found(&self, is_of: &dyn Fn(&Cell) -> bool) -> FurtherFound {
        let numbers = self.cells.iter().enumerate().filter(|(_, cell)| is_of(cell));
        let numbers: Vec<usize> = numbers.map(|(number, _)| number).collect();
        let found: Vec<&NetCell> =
            numbers.iter().filter_map(|number| self.measured.get(number)).collect();
        if found.len() < numbers.len() {
            return FurtherFound::default();
        }
        let mut all = Histogram::default();
        numbers.iter().filter_map(|number| self.exchanges.get(number)).for_each(|of| all.merge(of));
        let sum = |name: &str| -> Option<f64> {
            found.iter().map(|cell| cell.readings.get(name).copied()).sum()
        };
        let of_all = |name: &str| Some(100.0 * sum(name)? / sum(DATAGRAMS)?);
        let rates: Vec<f64> = found.iter().map(|cell| cell.median).collect();
        FurtherFound {
            rate: Means::of(&rates).map(|means| means.geometric),
            requests: Some(all.count()).filter(|count| *count > 0),
            p50_ns: all.located(0.5),
            p99_ns: all.located(0.99),
            p99_9_ns: all.located(0.999),
            lost_pct: of_all(DATAGRAMS_LOST),
            reordered_pct: of_all(DATAGRAMS_REORDERED),
        }
    }
}
