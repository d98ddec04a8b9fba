//! The answers of a grid, from its stored samples.

use std::collections::BTreeMap;

use super::abnormal::abnormal;
use super::further_readings::{ACTIVITY_RATE, LOST_PACKETS};
use super::net_cells::{further, has_failed, measured};
use super::provenance::Provenance;
use super::request::{Plan, Sweeps};
use weigh_model::ids::{PairId, WorkId};
use weigh_model::record::Stored;
use weigh_model::result::btu::{Btu, Means, ScoreInterval, ScoredCell, geometric};
use weigh_model::result::net::{NetAnswers, NetClass};
use weigh_model::result::net_cells::NetCell;
use weigh_model::workload::metric::Metric;
use weigh_net::cell::{Cell, Component};
use weigh_net::grid::{ApplicationClass, Grid};

/// Returns the name of a class's BTU among the metrics of a whole grid.
pub fn class_metric(bytes: u32) -> String {
    format!("btu_{bytes}")
}

/// Penalties, as readings of a sweep.
pub const ACTIVITY_SLOWDOWN: &str = "activity_slowdown";
pub const COMM_SLOWDOWN: &str = "comm_slowdown";

#[derive(Clone, Copy, Debug)]
pub struct FoundCell {
    pub rate: f64,
    pub activity_rate: Option<f64>,
}

/// Where an experiment measured a grid.
pub fn net_answers(stored: &Stored) -> Option<NetAnswers> {
    // The report warns of one that cannot be read.
    let origin = Provenance::kept(stored).ok()??;
    let Plan::Net(Sweeps { grid, .. }) = origin.request.plan else { return None };
    let cells = grid.cells();
    let sweeps = sweeps(stored, cells.len());
    let is_whole = |cells: &Vec<ScoredCell>| cells.iter().all(|cell| cell.comm_slowdown.is_some());
    let found = sweeps.values().filter_map(|sweep| scored(&grid, &cells, sweep));
    let mut complete: Vec<Vec<ScoredCell>> = found.filter(is_whole).collect();
    let whole_sweeps = complete.len();
    let missing = missing(stored, &cells, &sweeps);
    if !missing.is_empty() {
        // What failed once has no result: the sweeps before are no score either.
        complete.clear();
    }
    let paper = complete.iter().map(|cells| Btu::of(cells)?.paper_penalty_pct);
    let paper: Option<Vec<f64>> = paper.collect();
    let measured = measured(stored, &cells);
    let table = FoundCells { grid: &grid, cells: &cells, measured: &measured, complete: &complete };
    Some(NetAnswers {
        grid: grid.name.clone(),
        hash: grid.hash(),
        cells: grid.cells_of_score().len(),
        sweeps: whole_sweeps,
        missing,
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

/// Cells of the score without a result: those that failed, though they had one before, and those that were
/// never measured.
fn missing(
    stored: &Stored,
    cells: &[Cell],
    sweeps: &BTreeMap<PairId, BTreeMap<usize, FoundCell>>,
) -> Vec<String> {
    let is_measured = |number: &usize| sweeps.values().any(|sweep| sweep.contains_key(number));
    let of_score = cells.iter().enumerate().filter(|(_, cell)| cell.further.is_none());
    let missing =
        of_score.filter(|(number, _)| has_failed(stored, *number) || !is_measured(number));
    missing.map(|(_, cell)| cell.name_with_bytes()).collect()
}

/// By number of the sweep, and of the cell.
fn sweeps(stored: &Stored, cells: usize) -> BTreeMap<PairId, BTreeMap<usize, FoundCell>> {
    let mut sweeps: BTreeMap<PairId, BTreeMap<usize, FoundCell>> = BTreeMap::new();
    for cell in 0..cells {
        let Some(row) = stored.samples_of_run(WorkId(cell)) else { continue };
        for (at, point) in row.points.iter().enumerate() {
            let activity_rate = row.further_of(at, ACTIVITY_RATE);
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
    measured: &'a BTreeMap<usize, NetCell>,
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

    /// The geometric mean of all samples of some cells of a class; `None` where one has no result.
    fn rate(&self, class: &ApplicationClass, is_of: impl Fn(&Cell) -> bool) -> Option<f64> {
        let cells = self.cells.iter().enumerate();
        let rates: Option<Vec<f64>> = cells
            .filter(|(_, cell)| cell.bytes == class.bytes && is_of(cell))
            .map(|(number, _)| Some(Means::of(&self.measured.get(&number)?.rates)?.geometric))
            .collect();
        Some(Means::of(&rates?)?.geometric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::net_work::NetWork;
    use weigh_model::record::StoredWork;
    use weigh_model::result::summary::Failure;

    const SWEEPS: usize = 4;

    fn fail(stored: &mut Stored, cell: usize) {
        let (arm, reason) = ("none".into(), "it timed out after 5 s".into());
        let workload = stored.header.works[cell].name.clone();
        stored.failures.push(Failure { workload, arm, reason });
    }

    #[test]
    fn a_scored_cell_that_failed_in_a_later_sweep_leaves_no_score() {
        let mut stored = example::swept(SWEEPS);
        let answers = net_answers(&stored).unwrap();
        assert_eq!((answers.sweeps, answers.missing.len()), (SWEEPS, 0));
        assert!(answers.btu.is_some() && answers.comm_slowdown.is_some());
        assert!(Provenance::of(&stored).is_ok());
        fail(&mut stored, 0);
        let answers = net_answers(&stored).unwrap();
        assert_eq!(
            (answers.sweeps, &*answers.missing),
            (SWEEPS, &["send/idle, 100 bytes".to_owned()][..])
        );
        assert_eq!((answers.btu, answers.paper_penalty_pct), (None, None));
        assert_eq!((answers.activity_slowdown, answers.comm_slowdown), (None, None));
        for class in &answers.classes {
            assert_eq!(
                (class.btu, class.activity_slowdown, class.comm_slowdown),
                (None, None, None)
            );
            assert_eq!(class.alone.is_some(), class.bytes != 100, "no number of what failed");
        }
        assert!(
            answers.measured.iter().all(|cell| (&*cell.cell, cell.bytes) != ("send/idle", 100))
        );
        assert!(Provenance::of(&stored).is_ok(), "another session begins the cell again");
    }

    #[test]
    fn what_is_not_scored_may_fail() {
        let mut stored = example::swept(SWEEPS);
        let Ok(mut origin) = Provenance::stored(&stored) else { panic!() };
        let Plan::Net(Sweeps { grid, .. }) = &mut origin.request.plan else { panic!() };
        grid.further = vec![weigh_net::cell::FurtherKind::Requests];
        let work = NetWork::cells_of("net:btu-quick", grid).pop().unwrap();
        stored.header.works.push(StoredWork { name: work.name(), ..example::work("", "x") });
        stored.header.origin = Some(serde_json::to_string(&origin).unwrap());
        let last = stored.header.works.len() - 1;
        fail(&mut stored, last);
        let answers = net_answers(&stored).unwrap();
        assert!(answers.btu.is_some() && answers.missing.is_empty());
        assert!(Provenance::of(&stored).is_ok());
    }
}
