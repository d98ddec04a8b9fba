//! The cells of a grid as one sample of each arm of a pair.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::cells::{CellResult, measured};
use super::{Host, SampleError};
use crate::further_readings::ACTIVITY_RATE;
use crate::net_answers::{ACTIVITY_SLOWDOWN, COMM_SLOWDOWN, FoundCell, class_metric, scored};
use crate::net_work::{BITS, NetWork};
use crate::order::{chance_of_pair, padding_bytes};
use crate::platform::{PairError, PairSlot, Platform, Readings, SampleSlot, Stop, settled};
use weigh_model::evidence::Evidence;
use weigh_model::result::btu::{Btu, ScoredCell};
use weigh_model::workload::metric::{Direction, Metric};
use weigh_model::workload::sample::{OwnReading, Sample};
use weigh_net::cell::Cell;
use weigh_net::grid::{CELL_START, Grid};

/// Forecast of a pair of sweeps, as far as it is known before the first.
pub struct PairForecast {
    /// In each arm.
    pub cells: usize,
    /// Where the treatment makes nothing slower.
    pub lasts: Duration,
}

impl Host<'_> {
    /// How long a pair of sweeps lasts, for which it is found out how much each cell moves. `None` of what is
    /// no grid, and where that cannot be found out: the first pair will say why.
    ///
    /// # Errors
    /// Where the experiment cannot go on.
    pub fn forecast_pair(&mut self, first: &SampleSlot) -> Result<Option<PairForecast>, Stop> {
        let Some((NetWork { grid, .. }, _)) = self.net_work(first.unit.work) else {
            return Ok(None);
        };
        if settled(self.size_sweeps(first, &grid))?.is_err() {
            return Ok(None);
        }
        let needed = self.needed(&grid.cells_of_score());
        let sizes = self.site.net.as_ref().and_then(|net| net.sizes.get(&grid.hash()));
        let seconds_of = |number: &usize| Some(sizes?.get(number)?.as_ref().ok()?.seconds);
        let seconds: Option<f64> = needed.iter().map(seconds_of).sum();
        Ok(seconds.map(|seconds| PairForecast {
            cells: needed.len(),
            lasts: 2 * (Duration::from_secs_f64(seconds) + CELL_START * needed.len() as u32),
        }))
    }

    fn size_sweeps(&mut self, first: &SampleSlot, grid: &Grid) -> Result<(), SampleError> {
        let hash = grid.hash();
        if self.site.net.as_ref().is_some_and(|net| !net.sizes.contains_key(&hash)) {
            self.renew(first)?;
            self.size_cells(grid, &BTreeMap::new(), false).map_err(SampleError::Stop)?;
        }
        Ok(())
    }

    /// Returns the cells that the judged metrics depend on. Cells with COMM alone are needed only
    /// for COMM's own slowdown.
    fn needed(&self, cells: &[Cell]) -> Vec<usize> {
        let has_all = self.site.metrics.contains(&Metric::Named(COMM_SLOWDOWN.into()));
        let numbers = 0..cells.len();
        numbers.filter(|number| has_all || cells[*number].activity.is_some()).collect()
    }

    /// All cells in both arms: each cell in one arm and then in the other, next to each other in time. The
    /// pair's coin turns the order within every cell, so all of it is a fair coin's.
    pub(super) fn pair_of_sweeps(&mut self, slot: &PairSlot) -> Result<[Readings; 2], PairError> {
        let slots = slot.slots();
        let (NetWork { grid, .. }, _) =
            self.net_work(slot.unit.work).expect("only such works come here");
        let begun = self.size_sweeps(&slots[0], &grid).and_then(|()| self.renew(&slots[0]));
        begun.map_err(|error| error.of_pair(0))?;
        let started_s = self.elapsed().as_secs_f64();
        let mut chance =
            ChaCha8Rng::seed_from_u64(chance_of_pair(self.site.seed, &slots[0]) ^ u64::from(!0u32));
        let cells = grid.cells_of_score();
        let mut order = self.needed(&cells);
        order.shuffle(&mut chance);
        let padding_bytes = slots.map(|slot| padding_bytes(self.site.seed, &slot));
        let mut of_arms = [SweepTotals::default(), SweepTotals::default()];
        for number in order {
            let is_turned: bool = chance.random();
            for position in if is_turned { [1, 0] } else { [0, 1] } {
                let began = Instant::now();
                let arms = (slots[position].arm, slot.unit.treated_arm);
                let (cell, padding) = (&cells[number], padding_bytes[position]);
                let done = self
                    .size_of(&grid, number)
                    .and_then(|size| self.run_cell(arms, &grid, cell, size, (padding, false)))
                    .map_err(|error| self.settle(of_cell(cell, error)).of_pair(position))?;
                of_arms[position].add(number, done, began.elapsed());
            }
        }
        // Cells of both arms alternate. Of what a pair takes, its first sample has taken what is between both
        // times: so the second is said to begin when the first would have ended by itself.
        let started_s = [started_s, started_s + of_arms[0].lasted.as_secs_f64()];
        let mut readings = [Readings::default(), Readings::default()];
        for (position, totals) in of_arms.into_iter().enumerate() {
            let slot = &slots[position];
            let (sample, evidence) = totals
                .sample(&grid, &cells)
                .map_err(|reason| PairError::Workload { position, reason })?;
            let log = |metric: &Metric| Some((metric.clone(), sample.amount(metric)?.log()?));
            let logs = self.site.metrics.iter().filter_map(log).collect();
            readings[slot.arm.side()] = Readings { rate: sample.rate(), logs, outside: None };
            let (started_s, padding_bytes) = (started_s[position], padding_bytes[position]);
            let measured = measured(slot, started_s, padding_bytes, sample, (evidence, None));
            let stored = self.site.store.add_sample(self.site.id, &measured);
            stored.map_err(|error| PairError::Stop(error.into()))?;
        }
        Ok(readings)
    }
}

/// With the cell that failed.
fn of_cell(cell: &Cell, error: SampleError) -> SampleError {
    match error {
        SampleError::Workload(reason) => {
            SampleError::Workload(format!("{}: {reason}", cell.name_with_bytes()))
        }
        other => other,
    }
}

/// Totals of a sweep's cells in one arm.
#[derive(Default)]
struct SweepTotals {
    found: BTreeMap<usize, FoundCell>,
    bits: f64,
    elapsed_ns: u64,
    user_ns: u64,
    system_ns: u64,
    evidence: Option<Evidence>,
    /// With what it takes to start each.
    lasted: Duration,
}

impl SweepTotals {
    fn add(&mut self, number: usize, of_cell: CellResult, lasted: Duration) {
        let CellResult { sample, evidence, .. } = of_cell;
        self.lasted += lasted;
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
        let slowdown = |name, value| OwnReading::new(name, value, "times", Direction::Lower);
        let mut readings = vec![slowdown(ACTIVITY_SLOWDOWN, btu.activity_slowdown)];
        readings.extend(btu.comm_slowdown.map(|value| slowdown(COMM_SLOWDOWN, value)));
        for (at, class) in grid.classes.iter().enumerate() {
            let of_class: Vec<ScoredCell> =
                scored.iter().filter(|cell| cell.class == at).cloned().collect();
            let rate = Btu::of(&of_class).ok_or("a size of the grid has no cell")?.btu;
            let name = class_metric(class.bytes);
            readings.push(OwnReading::new(name, rate, BITS, Direction::Higher));
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
