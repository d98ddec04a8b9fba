//! The answers of a grid, from its stored samples.

use std::collections::BTreeMap;

use super::abnormal::abnormal;
use super::net_cells::{READINGS, further, measured};
use super::origin::Origin;
use super::request::Plan;
use crate::net::cell::{Cell, Component};
use crate::net::grid::{ApplicationClass, Grid};
use crate::result::btu::{Btu, Means, ScoreInterval, ScoredCell, geometric};
use crate::result::net::{NetAnswers, NetClass};
use crate::store::record::Stored;
use crate::workload::metric::Metric;

/// What is kept of each cell besides its rate.
pub fn of_cells() -> Vec<Metric> {
    let names = [ACTIVITY_RATE, LOST_PACKETS].into_iter().chain(READINGS);
    names.map(|name| Metric::Named(name.into())).collect()
}

/// What the BTU of a class is called among the metrics of a whole grid.
pub fn class_metric(bytes: u32) -> String {
    format!("btu_{bytes}")
}

/// Penalties, as readings of a sweep.
pub const ACTIVITY_SLOWDOWN: &str = "activity_slowdown";
pub const COMM_SLOWDOWN: &str = "comm_slowdown";
/// The reading of a cell that says how fast its activity was.
pub const ACTIVITY_RATE: &str = "activity_rate";
/// And of the packets that a wire lost though it was not to.
pub const LOST_PACKETS: &str = "lost_packets";

/// What a cell did in one sweep.
#[derive(Clone, Copy, Debug)]
pub struct FoundCell {
    pub rate: f64,
    pub activity_rate: Option<f64>,
}

/// Where an experiment measured a grid.
pub fn net_answers(stored: &Stored) -> Option<NetAnswers> {
    let text = stored.header.origin.as_ref()?;
    let origin: Origin = serde_json::from_str(text).ok()?;
    let Plan::Net { grid, .. } = origin.request.plan else { return None };
    let cells = grid.cells();
    let sweeps = sweeps(stored, cells.len());
    let is_whole = |cells: &Vec<ScoredCell>| cells.iter().all(|cell| cell.comm_slowdown.is_some());
    let found = sweeps.values().filter_map(|sweep| scored(&grid, &cells, sweep));
    let complete: Vec<Vec<ScoredCell>> = found.filter(is_whole).collect();
    let missing = cells.iter().enumerate().filter(|(number, cell)| {
        cell.further.is_none() && !sweeps.values().any(|sweep| sweep.contains_key(number))
    });
    let missing = missing.map(|(_, cell)| format!("{}, {} bytes", cell.name(), cell.bytes));
    let paper = complete.iter().map(|cells| Btu::of(cells)?.paper_penalty_pct);
    let paper: Option<Vec<f64>> = paper.collect();
    let measured = measured(stored, &cells);
    let table = FoundCells { grid: &grid, cells: &cells, sweeps: &sweeps, complete: &complete };
    Some(NetAnswers {
        grid: grid.name.clone(),
        hash: grid.hash(),
        cells: grid.cells_of_score().len(),
        sweeps: complete.len(),
        missing: missing.collect(),
        btu: interval(&complete, |btu| Some(btu.btu)),
        activity_slowdown: interval(&complete, |btu| Some(btu.activity_slowdown)),
        comm_slowdown: interval(&complete, |btu| btu.comm_slowdown),
        paper_penalty_pct: paper.and_then(|all| Some(ScoreInterval::of(&all)?.value)),
        activities: grid.activities.clone(),
        components: Component::ALL.iter().map(|one| one.title().to_owned()).collect(),
        classes: grid
            .classes
            .iter()
            .enumerate()
            .map(|(at, class)| table.class(at, class))
            .collect(),
        lost_packets: lost_packets(stored),
        further: further(stored, &grid, &cells, &measured),
        abnormal: abnormal(stored, &cells),
        measured: measured.into_values().collect(),
    })
}

fn interval(sweeps: &[Vec<ScoredCell>], of: impl Fn(&Btu) -> Option<f64>) -> Option<ScoreInterval> {
    let scores: Option<Vec<f64>> = sweeps.iter().map(|cells| of(&Btu::of(cells)?)).collect();
    ScoreInterval::of(&scores?)
}

/// By number of the sweep, and of the cell.
fn sweeps(stored: &Stored, cells: usize) -> BTreeMap<usize, BTreeMap<usize, FoundCell>> {
    let activity = Metric::Named(ACTIVITY_RATE.into());
    let mut sweeps: BTreeMap<usize, BTreeMap<usize, FoundCell>> = BTreeMap::new();
    for cell in 0..cells {
        let Some(row) = stored.samples.get(&(cell, 0)) else { continue };
        for (at, point) in row.points.iter().enumerate() {
            let further = row.further.get(at).into_iter().flatten();
            let activity_rate = further.clone().find(|(metric, _)| *metric == activity);
            let activity_rate = activity_rate.map(|(_, found)| found.value);
            let found = FoundCell { rate: point.rate, activity_rate };
            sweeps.entry(point.pair).or_default().insert(cell, found);
        }
    }
    sweeps
}

fn lost_packets(stored: &Stored) -> f64 {
    let lost = Metric::Named(LOST_PACKETS.into());
    let further = stored.samples.values().flat_map(|row| row.further.iter().flatten());
    further.filter(|(metric, _)| *metric == lost).map(|(_, found)| found.value).sum()
}

/// The scored cells of a sweep that has all of them, and each activity alone. Without its cells of COMM alone
/// it does not know how much slower activities make that.
pub fn scored(
    grid: &Grid,
    cells: &[Cell],
    sweep: &BTreeMap<usize, FoundCell>,
) -> Option<Vec<ScoredCell>> {
    let of = |wanted: &Cell| sweep.get(&cells.iter().position(|cell| cell == wanted)?).copied();
    let base = |activity: &str| -> Option<f64> {
        let alone = cells.iter().enumerate().filter(|(_, cell)| {
            cell.is_activity_alone() && cell.activity.as_deref() == Some(activity)
        });
        let rates: Option<Vec<f64>> =
            alone.map(|(number, _)| Some(sweep.get(&number)?.rate)).collect();
        Some(Means::of(&rates?)?.geometric)
    };
    let bases: Vec<f64> =
        grid.activities.iter().map(|activity| base(activity)).collect::<Option<_>>()?;
    let mut links: BTreeMap<(u32, Component, usize), usize> = BTreeMap::new();
    let mut all = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        let Some((component, name)) = cell.component.zip(cell.activity.as_ref()) else { continue };
        let activity = grid.activities.iter().position(|other| other == name)?;
        let link = links.entry((cell.bytes, component, activity)).or_default();
        let found = sweep.get(&number)?;
        all.push(ScoredCell {
            class: grid.classes.iter().position(|class| class.bytes == cell.bytes)?,
            component: component as usize,
            link: *link,
            activity,
            rate: found.rate,
            comm_slowdown: of(&cell.without_activity()).map(|alone| alone.rate / found.rate),
            activity_slowdown: bases[activity] / found.activity_rate?,
        });
        *link += 1;
    }
    Some(all)
}

struct FoundCells<'a> {
    grid: &'a Grid,
    cells: &'a [Cell],
    sweeps: &'a BTreeMap<usize, BTreeMap<usize, FoundCell>>,
    complete: &'a [Vec<ScoredCell>],
}

impl FoundCells<'_> {
    fn class(&self, at: usize, class: &ApplicationClass) -> NetClass {
        let of_class: Vec<Vec<ScoredCell>> = (self.complete.iter())
            .map(|cells| cells.iter().filter(|cell| cell.class == at).cloned().collect())
            .collect();
        let is_beside = |cell: &Cell| cell.activity.is_some();
        let components: Vec<Option<f64>> = (Component::ALL.iter())
            .map(|one| self.rate(class, |cell| cell.component == Some(*one) && is_beside(cell)))
            .collect();
        let alone = Component::ALL
            .iter()
            .map(|one| self.rate(class, |cell| cell.component == Some(*one) && !is_beside(cell)));
        let known: Option<Vec<f64>> = components.iter().copied().collect();
        let beside = (0..self.grid.activities.len()).map(|activity| {
            let scores: Option<Vec<f64>> = (of_class.iter())
                .map(|cells| {
                    let of_it = cells.iter().filter(|cell| cell.activity == activity).cloned();
                    geometric(&of_it.collect::<Vec<_>>(), |cell| cell.rate)
                })
                .collect();
            Some(ScoreInterval::of(&scores?)?.value)
        });
        let components_alone: Vec<Option<f64>> = alone.collect();
        let all_alone: Option<Vec<f64>> = components_alone.iter().copied().collect();
        NetClass {
            name: class.name.clone(),
            bytes: class.bytes,
            btu: interval(&of_class, |btu| Some(btu.btu)),
            activity_slowdown: interval(&of_class, |btu| Some(btu.activity_slowdown)),
            comm_slowdown: interval(&of_class, |btu| btu.comm_slowdown),
            means: known.as_deref().and_then(Means::of),
            components,
            alone: all_alone.as_deref().and_then(Means::of).map(|means| means.geometric),
            components_alone,
            beside: beside.collect(),
        }
    }

    /// The geometric mean of all samples of some cells of a class; `None` where one has none.
    fn rate(&self, class: &ApplicationClass, is_of: impl Fn(&Cell) -> bool) -> Option<f64> {
        let cells = self.cells.iter().enumerate();
        let rates: Option<Vec<f64>> = cells
            .filter(|(_, cell)| cell.bytes == class.bytes && is_of(cell))
            .map(|(number, _)| {
                let of_cell = self.sweeps.values().filter_map(|sweep| sweep.get(&number));
                let rates: Vec<f64> = of_cell.map(|found| found.rate).collect();
                Some(Means::of(&rates)?.geometric)
            })
            .collect();
        Some(Means::of(&rates?)?.geometric)
    }
}
