//! Cells of a grid on this host: how much each moves, one by itself, and all of them as one sample of each
//! arm of a pair.

use std::collections::BTreeMap;
use std::path::Path;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::around::neutral;
use super::{Host, SampleError, padding};
use crate::experiment::abnormal::{DROPPED, DROPPED_BY_QUEUE};
use crate::experiment::net_answers::{
    ACTIVITY_RATE, ACTIVITY_SLOWDOWN, COMM_SLOWDOWN, FoundCell, LOST_PACKETS, class_metric, scored,
};
use crate::experiment::net_work::{BITS, NetPart, NetWork};
use crate::experiment::order::{chance_of_pair, padding_bytes};
use crate::experiment::outcome::cell_sample;
use crate::experiment::platform::{PairError, PairSlot, Readings, Slot, Stop};
use crate::experiment::work::Work;
use crate::machine::pressure::Disturbance;
use crate::net::cell::{Cell, CellSize};
use crate::net::grid::Grid;
use crate::net::link::GridLink;
use crate::net::site::{Losses, NetSite};
use crate::net::site_error::SiteError;
use crate::result::btu::{Btu, ScoredCell};
use crate::store::record::{Detailed, Measured};
use crate::treatment::Evidence;
use crate::workload::detail::Detail;
use crate::workload::metric::{Direction, Metric};
use crate::workload::sample::{OwnReading, Sample};
use trust::owner;

/// What cells are measured in, and how much each moves once that is known.
pub struct NetBench {
    pub site: NetSite,
    /// By number of the cell.
    pub(super) sizes: BTreeMap<usize, Result<CellSize, String>>,
}

impl NetBench {
    pub fn new(site: NetSite) -> NetBench {
        NetBench { site, sizes: BTreeMap::new() }
    }
}

/// Drops that are drawn, of a connection.
const MOST_DROPS: usize = 1000;

pub(super) struct OfCell {
    pub(super) sample: Sample,
    /// What it told besides, where it did.
    detail: Option<Detail>,
    evidence: Evidence,
    disturbance: Disturbance,
}

impl Host<'_> {
    /// Starts the peers, where there are cells; what the arms are is known by now.
    pub(super) fn start_peers(&mut self) -> Result<(), Stop> {
        let setup = neutral(self.arms.treatments());
        let Some(net) = &mut self.site.net else { return Ok(()) };
        Ok(net.site.start_peers(self.arms.bench.place, &setup)?)
    }

    /// What the cells are measured in, in whole sentences.
    pub(super) fn net_facts(&self) -> &[String] {
        self.site.net.as_ref().map_or(&[], |net| net.site.facts())
    }

    /// A new launcher for a sweep over cells of one arm.
    ///
    /// # Errors
    /// Where none starts.
    pub fn renew_for_sweep(&mut self, slot: &Slot) -> Result<(), SampleError> {
        self.renew(slot)
    }

    /// Measures one cell and keeps it.
    ///
    /// # Errors
    /// [`SampleError`]
    pub fn cell(&mut self, slot: &Slot) -> Result<f64, SampleError> {
        let (measured, detail) = self.measured_cell(slot).map_err(|error| self.settle(error))?;
        let rate = measured.sample.rate();
        let (store, id) = (self.site.store, self.site.id);
        store.add_sample(id, &measured).map_err(|error| SampleError::Stop(error.into()))?;
        if let Some(detail) = detail {
            let Slot { arm, pair, position, .. } = *slot;
            let (work, treated_arm) = (slot.unit.work, slot.unit.treated_arm);
            let detailed = Detailed { work, arm, treated_arm, pair, position, detail };
            store.add_detail(id, &detailed).map_err(|error| SampleError::Stop(error.into()))?;
        }
        Ok(rate)
    }

    fn measured_cell(&mut self, slot: &Slot) -> Result<(Measured, Option<Detail>), SampleError> {
        let Some((net, NetPart::Cell { number, cell })) = self.net_work(slot.unit.work) else {
            return Err(SampleError::Workload("it is no cell".into()));
        };
        let size = self.size_of(number)?;
        let padding_bytes = padding_bytes(self.site.seed, slot);
        let started_s = self.site.before.as_secs_f64() + self.site.started.elapsed().as_secs_f64();
        let arms = (slot.arm, slot.unit.treated_arm);
        let is_watched = cell.component.is_some();
        let OfCell { sample, detail, evidence, disturbance } =
            self.run_cell(arms, &net.grid, &cell, size, (padding_bytes, is_watched))?;
        net.check(&sample).map_err(SampleError::Workload)?;
        let proof = (evidence, Some(disturbance));
        Ok((measured(slot, started_s, padding_bytes, sample, proof), detail))
    }

    /// A cell once more, with what W_test's interfaces carried in this file; it is not kept. How many packets
    /// were missed.
    ///
    /// # Errors
    /// [`SampleError`]
    pub fn traced_cell(&mut self, slot: &Slot, path: &Path) -> Result<u64, SampleError> {
        let Some(net) = &mut self.site.net else { return Err(SampleError::Stop(gone())) };
        net.site.begin_trace()?;
        let measured = self.measured_cell(slot).map_err(|error| self.settle(error));
        let Some(net) = &mut self.site.net else { return Err(SampleError::Stop(gone())) };
        let (file, missed) = net.site.end_trace()?;
        measured?;
        let copied = std::fs::read(&file).and_then(|bytes| owner::write(path, &bytes));
        copied.map_err(|error| {
            SampleError::Stop(Stop::Failed(format!("cannot write {}: {error}", path.display())))
        })?;
        Ok(missed)
    }

    fn net_work(&self, work: usize) -> Option<(NetWork, NetPart)> {
        match &self.site.works[work] {
            Work::Net(net) => Some(((**net).clone(), net.part.clone())),
            _ => None,
        }
    }

    fn size_of(&self, number: usize) -> Result<CellSize, SampleError> {
        let net = self.site.net.as_ref();
        match net.and_then(|net| net.sizes.get(&number)) {
            Some(Ok(size)) => Ok(*size),
            Some(Err(problem)) => Err(SampleError::Workload(problem.clone())),
            None => Err(SampleError::Workload("its size is not known".into())),
        }
    }

    pub(super) fn run_cell(
        &mut self,
        (arm, treated_arm): (usize, usize),
        grid: &Grid,
        cell: &Cell,
        size: CellSize,
        (padding_bytes, is_watched): (usize, bool),
    ) -> Result<OfCell, SampleError> {
        let place = self.arms.place(arm).clone();
        let Some(net) = &mut self.site.net else {
            return Err(SampleError::Workload("there is no testbed".into()));
        };
        net.site.set_links(grid, cell)?;
        let mut job = net.site.job(grid, cell, size, is_watched, &place);
        job.environment.push(padding(padding_bytes));
        let (launched, evidence, disturbance) = self.launch(arm, treated_arm, &job)?;
        let mut sample = cell_sample(&launched).map_err(SampleError::Workload)?;
        let Some(net) = &mut self.site.net else { return Err(SampleError::Stop(gone())) };
        net.site.prove(&launched).map_err(|problem| SampleError::Stop(Stop::Failed(problem)))?;
        let losses = net.site.losses()?;
        sample.readings.extend(of_links(grid, cell, losses));
        let mut detail = Detail::parse(&launched.stdout)
            .filter(|detail| detail.latencies.is_some() || detail.watch.is_some());
        if let Some(detail) = &mut detail {
            detail.check(launched.wall_ns).map_err(SampleError::Workload)?;
            detail.check_watch().map_err(SampleError::Workload)?;
        }
        if let (Some(watch), Some(component)) =
            (detail.as_mut().and_then(|detail| detail.watch.as_mut()), cell.component)
        {
            for (connection, drops) in watch.connections.iter_mut().zip(net.site.drops(component)?)
            {
                let since = drops.iter().map(|at| at.saturating_sub(watch.opened_ns) / 1000);
                connection.drops_us = since.take(MOST_DROPS).collect();
            }
        }
        Ok(OfCell { sample, detail, evidence, disturbance })
    }

    /// All cells in both arms: each cell in one arm and then in the other, next to each other in time. The
    /// pair's coin turns the order within every cell, so all of it is a fair coin's.
    pub(super) fn pair_of_sweeps(&mut self, slot: &PairSlot) -> Result<[Readings; 2], PairError> {
        let slots = slot.slots();
        let failed = |position: usize| {
            move |error: SampleError| match error {
                SampleError::Stop(stop) => PairError::Stop(stop),
                SampleError::Lost(reason) => PairError::Lost(reason),
                SampleError::Workload(reason) => PairError::Workload { position, reason },
            }
        };
        let (net, _) = self.net_work(slot.unit.work).expect("only such works come here");
        if self.site.net.as_ref().is_some_and(|bench| bench.sizes.is_empty()) {
            self.renew(&slots[0]).map_err(failed(0))?;
            self.size_cells(&net.grid, &BTreeMap::new(), false).map_err(PairError::Stop)?;
        }
        self.renew(&slots[0]).map_err(failed(0))?;
        let started_s = self.site.before.as_secs_f64() + self.site.started.elapsed().as_secs_f64();
        let mut chance =
            ChaCha8Rng::seed_from_u64(chance_of_pair(self.site.seed, &slots[0]) ^ u64::from(!0u32));
        let cells = net.grid.cells_of_score();
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.shuffle(&mut chance);
        let padding_bytes = [0, 1].map(|at| padding_bytes(self.site.seed, &slots[at]));
        let mut of_arms = [SweepTotals::default(), SweepTotals::default()];
        for number in order {
            let is_turned: bool = chance.random();
            for position in if is_turned { [1, 0] } else { [0, 1] } {
                let arms = (slots[position].arm, slot.unit.treated_arm);
                let (cell, padding) = (&cells[number], padding_bytes[position]);
                let done = self
                    .size_of(number)
                    .and_then(|size| self.run_cell(arms, &net.grid, cell, size, (padding, false)));
                let named = |error| match error {
                    SampleError::Workload(reason) => SampleError::Workload(format!(
                        "{}, {} bytes: {reason}",
                        cell.name(),
                        cell.bytes
                    )),
                    other => other,
                };
                let done = done.map_err(named).map_err(|error| self.settle(error));
                of_arms[position].add(number, done.map_err(failed(position))?);
            }
        }
        let mut readings = [Readings::default(), Readings::default()];
        for (position, totals) in of_arms.into_iter().enumerate() {
            let slot = &slots[position];
            let (sample, evidence) = totals
                .sample(&net.grid, &cells)
                .map_err(|reason| PairError::Workload { position, reason })?;
            let logs = self
                .site
                .metrics
                .iter()
                .filter_map(|metric| Some((metric.clone(), sample.amount(metric)?.log()?)));
            readings[usize::from(slot.arm != 0)] =
                Readings { rate: sample.rate(), logs: logs.collect() };
            let measured =
                measured(slot, started_s, padding_bytes[position], sample, (evidence, None));
            let stored = self.site.store.add_sample(self.site.id, &measured);
            stored.map_err(|error| PairError::Stop(error.into()))?;
        }
        Ok(readings)
    }
}

/// What the links did, as readings.
fn of_links(grid: &Grid, cell: &Cell, losses: Losses) -> Vec<OwnReading> {
    let count = |name: &str, value: u64| OwnReading {
        name: name.into(),
        value: value as f64,
        unit: "packets".into(),
        better: Direction::Lower,
    };
    let mut readings = vec![count(LOST_PACKETS, losses.not_meant)];
    if GridLink::is_over_wire(grid.link.as_ref(), cell) {
        readings.push(count(DROPPED, losses.meant));
        readings.push(count(DROPPED_BY_QUEUE, losses.by_queue));
        readings.push(count("overruns", losses.overruns));
    }
    readings
}

fn measured(
    slot: &Slot,
    started_s: f64,
    padding_bytes: usize,
    sample: Sample,
    (evidence, disturbance): (Evidence, Option<Disturbance>),
) -> Measured {
    Measured {
        work: slot.unit.work,
        arm: slot.arm,
        treated_arm: slot.unit.treated_arm,
        set: slot.set,
        pair: slot.pair,
        position: slot.position,
        started_s,
        padding_bytes,
        sample,
        evidence,
        disturbance,
    }
}

/// What the cells of a sweep came to in one arm.
#[derive(Default)]
struct SweepTotals {
    found: BTreeMap<usize, FoundCell>,
    bits: f64,
    elapsed_ns: u64,
    user_ns: u64,
    system_ns: u64,
    evidence: Option<Evidence>,
}

impl SweepTotals {
    fn add(&mut self, number: usize, of_cell: OfCell) {
        let OfCell { sample, evidence, .. } = of_cell;
        let activity = Metric::Named(ACTIVITY_RATE.into());
        let activity_rate = sample.amount(&activity).map(|found| found.value);
        self.found.insert(number, FoundCell { rate: sample.rate(), activity_rate });
        match &mut self.evidence {
            Some(all) => all.add(evidence),
            None => self.evidence = Some(evidence),
        }
        if sample.unit.as_deref() == Some(BITS) {
            self.bits += sample.operations;
            self.elapsed_ns += sample.elapsed_ns;
            self.user_ns += sample.user_ns.unwrap_or_default();
            self.system_ns += sample.system_ns.unwrap_or_default();
        }
    }

    /// The whole as one sample: its rate is the BTU.
    fn sample(self, grid: &Grid, cells: &[Cell]) -> Result<(Sample, Evidence), String> {
        let scored = scored(grid, cells, &self.found);
        let scored = scored.ok_or("a cell has no result, so the BTU is incomplete")?;
        let btu = Btu::of(&scored).ok_or("the grid has no scored cell")?;
        let reading = |name: String, value: f64, unit: &str, better: Direction| OwnReading {
            name,
            value,
            unit: unit.into(),
            better,
        };
        let slowdown = |name: &str, value| reading(name.into(), value, "times", Direction::Lower);
        let mut readings = vec![
            slowdown(ACTIVITY_SLOWDOWN, btu.activity_slowdown),
            slowdown(COMM_SLOWDOWN, btu.comm_slowdown),
        ];
        for (at, class) in grid.classes.iter().enumerate() {
            let of_class: Vec<ScoredCell> =
                scored.iter().filter(|cell| cell.class == at).cloned().collect();
            let rate = Btu::of(&of_class).ok_or("a class has no cell")?.btu;
            readings.push(reading(class_metric(class.bytes), rate, BITS, Direction::Higher));
        }
        let sample = Sample {
            operations: self.bits,
            elapsed_ns: self.elapsed_ns,
            total_operations: Some(self.bits),
            rate: Some(btu.btu),
            unit: Some(BITS.into()),
            user_ns: Some(self.user_ns),
            system_ns: Some(self.system_ns),
            readings,
            ..Sample::default()
        };
        Ok((sample, self.evidence.unwrap_or_default()))
    }
}

fn gone() -> Stop {
    Stop::Failed("the testbed is gone".into())
}

impl From<SiteError> for Stop {
    fn from(error: SiteError) -> Stop {
        match error {
            SiteError::Interrupted => Stop::Interrupted,
            SiteError::Failed(problem) => Stop::Failed(problem),
            SiteError::Lost(problem) => Stop::NotKept(problem),
        }
    }
}

impl From<SiteError> for SampleError {
    fn from(error: SiteError) -> SampleError {
        SampleError::Stop(error.into())
    }
}
