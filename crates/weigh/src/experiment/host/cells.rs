//! Cells of a grid on this host: how much each moves, one by itself, and all of them as one sample of each
//! arm of a pair.

use std::collections::BTreeMap;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::around::neutral;
use super::{Host, SampleError, padding};
use crate::experiment::net_answers::{
    ACTIVITY_RATE, ACTIVITY_SLOWDOWN, COMM_SLOWDOWN, FoundCell, LOST_PACKETS, class_metric, scored,
};
use crate::experiment::net_work::{BITS, NetPart, NetWork};
use crate::experiment::order::{chance_of_pair, padding_bytes};
use crate::experiment::outcome::cell_sample;
use crate::experiment::platform::{PairError, PairSlot, Readings, Slot, Stop};
use crate::experiment::work::Work;
use crate::machine::pressure::Disturbance;
use crate::net::cell::Cell;
use crate::net::grid::Grid;
use crate::net::site::{CellSize, NetSite};
use crate::net::site_error::SiteError;
use crate::result::btu::{Btu, ScoredCell};
use crate::store::record::Measured;
use crate::treatment::Evidence;
use crate::workload::metric::{Direction, Metric};
use crate::workload::sample::{OwnReading, Sample};

/// What cells are measured in, and how much each moves once that is known.
pub struct NetBench {
    pub site: NetSite,
    sizes: BTreeMap<usize, Result<CellSize, String>>,
}

impl NetBench {
    pub fn new(site: NetSite) -> NetBench {
        NetBench { site, sizes: BTreeMap::new() }
    }
}

/// Without an activity: from how many bytes, and how long it took.
type Base = Result<(u64, f64), String>;

struct OfCell {
    sample: Sample,
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

    /// Finds out how much each cell of a grid is to move: the first tier that takes long enough. What was
    /// moved in an earlier session stays; by number of the cell, in bytes.
    ///
    /// # Errors
    /// Where the experiment cannot go on. What fails has no size.
    pub fn size_cells(&mut self, grid: &Grid, earlier: &BTreeMap<usize, u64>) -> Result<(), Stop> {
        let cells = grid.cells();
        let least_s = grid.least_ms as f64 / 1e3;
        let mut bases: Vec<(Cell, Base)> = Vec::new();
        for (number, cell) in cells.iter().enumerate() {
            if cell.component.is_some() && cell.activity.is_none() {
                let base = settled(self.base_of(grid, cell, earlier.get(&number).copied()))?;
                bases.push((cell.clone(), base));
            }
        }
        let mut units_per_s: Vec<(String, Result<f64, String>)> = Vec::new();
        for activity in &grid.activities {
            units_per_s.push((activity.clone(), settled(self.speed_of(grid, activity))?));
        }
        let speed = |cell: &Cell| -> Result<f64, String> {
            let Some(name) = &cell.activity else { return Ok(0.0) };
            let found = units_per_s.iter().find(|(other, _)| other == name);
            found.map_or(Ok(0.0), |(_, speed)| speed.clone())
        };
        let size = |cell: &Cell| -> Result<CellSize, String> {
            let (payload_bytes, seconds) = match cell.component {
                None => (0, 2.0 * least_s),
                Some(_) => {
                    let without = cell.without_activity();
                    let base = bases.iter().find(|(other, _)| *other == without);
                    base.map_or(Ok((0, 0.0)), |(_, base)| base.clone())?
                }
            };
            let units = ((speed(cell)? * seconds).round() as u64).max(1);
            Ok(CellSize { payload_bytes, units })
        };
        let sizes = cells.iter().map(size).enumerate().collect();
        if let Some(net) = &mut self.site.net {
            net.sizes = sizes;
        }
        Ok(())
    }

    fn base_of(
        &mut self,
        grid: &Grid,
        cell: &Cell,
        earlier: Option<u64>,
    ) -> Result<(u64, f64), SampleError> {
        let least_s = grid.least_ms as f64 / 1e3;
        let mut tiers: Vec<u64> = match earlier {
            Some(bytes) => vec![bytes],
            None => grid.tiers_bytes.clone(),
        };
        tiers.retain(|tier| earlier.is_some() || *tier >= grid.least_bytes(cell));
        let mut at = 0;
        loop {
            let payload_bytes = tiers[at];
            let size = CellSize { payload_bytes, units: 1 };
            let seconds =
                self.run_cell((0, 0), grid, cell, size, 0)?.sample.elapsed_ns as f64 / 1e9;
            if seconds >= least_s || at + 1 == tiers.len() {
                return Ok((payload_bytes, seconds));
            }
            // It takes at most in proportion, so nothing below that is long enough.
            let too_short = payload_bytes as f64 * least_s / seconds / 2.0;
            let next = (at + 1..tiers.len() - 1).find(|next| tiers[*next] as f64 >= too_short);
            at = next.unwrap_or(tiers.len() - 1);
        }
    }

    /// Units that an activity does in a second, in each of its processes.
    fn speed_of(&mut self, grid: &Grid, activity: &str) -> Result<f64, SampleError> {
        const MOST_UNITS: u64 = 1 << 24;
        let least_s = grid.least_ms as f64 / 1e3;
        let cell = Cell {
            bytes: grid.classes[0].bytes,
            component: None,
            link: Default::default(),
            activity: Some(activity.to_owned()),
        };
        let mut units = 1;
        loop {
            let size = CellSize { payload_bytes: 0, units };
            let seconds =
                self.run_cell((0, 0), grid, &cell, size, 0)?.sample.elapsed_ns as f64 / 1e9;
            if seconds >= least_s || units >= MOST_UNITS {
                return Ok(units as f64 / seconds);
            }
            units *= 4;
        }
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
        let measured = self.measured_cell(slot).map_err(|error| self.settle(error))?;
        let rate = measured.sample.rate();
        let stored = self.site.store.add_sample(self.site.id, &measured);
        stored.map_err(|error| SampleError::Stop(error.into()))?;
        Ok(rate)
    }

    fn measured_cell(&mut self, slot: &Slot) -> Result<Measured, SampleError> {
        let Some((net, NetPart::Cell { number, cell })) = self.net_work(slot.unit.work) else {
            return Err(SampleError::Workload("it is no cell".into()));
        };
        let size = self.size_of(number)?;
        let padding_bytes = padding_bytes(self.site.seed, slot);
        let started_s = self.site.before.as_secs_f64() + self.site.started.elapsed().as_secs_f64();
        let arms = (slot.arm, slot.unit.treated_arm);
        let OfCell { sample, evidence, disturbance } =
            self.run_cell(arms, &net.grid, &cell, size, padding_bytes)?;
        net.check(&sample).map_err(SampleError::Workload)?;
        Ok(measured(slot, started_s, padding_bytes, sample, (evidence, Some(disturbance))))
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

    fn run_cell(
        &mut self,
        (arm, treated_arm): (usize, usize),
        grid: &Grid,
        cell: &Cell,
        size: CellSize,
        padding_bytes: usize,
    ) -> Result<OfCell, SampleError> {
        let place = self.arms.place(arm).clone();
        let Some(net) = &mut self.site.net else {
            return Err(SampleError::Workload("there is no testbed".into()));
        };
        net.site.set_links(cell)?;
        let mut job = net.site.job(grid, cell, size, &place);
        job.environment.push(padding(padding_bytes));
        let (launched, evidence, disturbance) = self.launch(arm, treated_arm, &job)?;
        let mut sample = cell_sample(&launched).map_err(SampleError::Workload)?;
        let Some(net) = &mut self.site.net else { return Err(SampleError::Stop(gone())) };
        net.site.prove(&launched).map_err(|problem| SampleError::Stop(Stop::Failed(problem)))?;
        let (lost, dropped) = net.site.losses()?;
        let count = |name: &str, value: u64| OwnReading {
            name: name.into(),
            value: value as f64,
            unit: "packets".into(),
            better: Direction::Lower,
        };
        sample.readings.push(count(LOST_PACKETS, lost));
        if cell.link.drops.is_some() {
            sample.readings.push(count("dropped_packets", dropped));
        }
        Ok(OfCell { sample, evidence, disturbance })
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
            self.size_cells(&net.grid, &BTreeMap::new()).map_err(PairError::Stop)?;
        }
        self.renew(&slots[0]).map_err(failed(0))?;
        let started_s = self.site.before.as_secs_f64() + self.site.started.elapsed().as_secs_f64();
        let mut chance =
            ChaCha8Rng::seed_from_u64(chance_of_pair(self.site.seed, &slots[0]) ^ u64::from(!0u32));
        let cells = net.grid.cells();
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
                    .and_then(|size| self.run_cell(arms, &net.grid, cell, size, padding));
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
            syscalls_per_op: None,
            user_ns: Some(self.user_ns),
            system_ns: Some(self.system_ns),
            voluntary_switches: None,
            involuntary_switches: None,
            minor_faults: None,
            major_faults: None,
            slices_ns: None,
            calibration_ms: None,
            kernel_instructions: None,
            peak_memory_bytes: None,
            block_input_bytes: None,
            block_output_bytes: None,
            readings,
            copy_rates: Vec::new(),
        };
        Ok((sample, self.evidence.unwrap_or_default()))
    }
}

/// What fails is told apart from what ends the experiment.
fn settled<T>(result: Result<T, SampleError>) -> Result<Result<T, String>, Stop> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(SampleError::Workload(reason) | SampleError::Lost(reason)) => Ok(Err(reason)),
        Err(SampleError::Stop(stop)) => Err(stop),
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
