//! How much each cell of a grid moves, and how much its activity does meanwhile: found out before the
//! first sweep.

use std::collections::BTreeMap;

use super::{Host, SampleError};
use crate::platform::{Stop, settled};
use weigh_model::ids::ArmId;
use weigh_net::cell::{Cell, CellSize, FurtherKind};
use weigh_net::grid::Grid;
use weigh_net::link::GridLink;

/// How much a cell moves, and about how long that takes where nothing is treated.
#[derive(Clone, Copy, Debug)]
pub struct SizedCell {
    pub size: CellSize,
    pub seconds: f64,
}

/// By hash of the grid, and number of the cell. Of a cell that cannot be measured, why.
pub type SizesOfGrids = BTreeMap<String, BTreeMap<usize, Result<SizedCell, String>>>;

/// Without an activity: how much, and how long it took.
type Base = Result<(u64, f64), String>;

impl Host<'_> {
    /// Takes out the sizes that were found, for the host that goes on.
    pub fn take_sizes(&mut self) -> SizesOfGrids {
        self.site.net.as_mut().map(|net| std::mem::take(&mut net.sizes)).unwrap_or_default()
    }

    /// Finds out how much each cell of a grid is to move: the first tier that takes long enough. What was
    /// moved in an earlier session stays; by number of the cell, in bytes. What is not scored may be
    /// left out.
    ///
    /// # Errors
    /// Where the experiment cannot go on. What fails has no size.
    pub fn size_cells(
        &mut self,
        grid: &Grid,
        earlier: &BTreeMap<usize, u64>,
        with_further: bool,
    ) -> Result<(), Stop> {
        let cells = grid.cells();
        let least_s = grid.least_ms as f64 / 1e3;
        let mut bases: Vec<(Cell, Base)> = Vec::new();
        for (number, cell) in cells.iter().enumerate() {
            if cell.activity.is_some() {
                continue;
            }
            let base = match cell.further {
                None => self.base_of(grid, cell, earlier.get(&number).copied()),
                Some(_) if !with_further => continue,
                Some(further) => self.base_of_further(grid, cell, further),
            };
            bases.push((cell.clone(), settled(base)?));
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
        let size = |cell: &Cell| -> Result<SizedCell, String> {
            let without = cell.without_activity();
            let base = bases.iter().find(|(other, _)| *other == without);
            let (amount, seconds) =
                base.map_or(Ok((0, 2.0 * least_s)), |(_, base)| base.clone())?;
            let units = ((speed(cell)? * seconds).round() as u64).max(1);
            // Of two that contend, each takes about twice as long.
            let has_both = cell.activity.is_some() && !cell.is_activity_alone();
            let seconds = if has_both { 2.0 * seconds } else { seconds };
            Ok(SizedCell { size: CellSize { amount, units }, seconds })
        };
        let sizes = cells.iter().map(size).enumerate().collect();
        if let Some(net) = &mut self.site.net {
            net.sizes.insert(grid.hash(), sizes);
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
            let amount = tiers[at];
            let seconds = self.seconds_of(grid, cell, CellSize { amount, units: 1 })?;
            if seconds >= least_s || at + 1 == tiers.len() {
                return Ok((amount, seconds));
            }
            // It takes at most in proportion, so nothing below that is long enough.
            let too_short = amount as f64 * least_s / seconds / 2.0;
            let next = (at + 1..tiers.len() - 1).find(|next| tiers[*next] as f64 >= too_short);
            at = next.unwrap_or(tiers.len() - 1);
        }
    }

    /// How much of what is not scored takes long enough; no score depends on it, so it has no tiers.
    fn base_of_further(
        &mut self,
        grid: &Grid,
        cell: &Cell,
        further: FurtherKind,
    ) -> Result<(u64, f64), SampleError> {
        const TRIES: usize = 4;
        let least_s = grid.further_ms() as f64 / 1e3;
        let mut amount = further.first_amount(GridLink::is_over_wire(grid.link.as_ref(), cell));
        for _ in 0..TRIES {
            let seconds = self.seconds_of(grid, cell, CellSize { amount, units: 1 })?;
            if seconds >= least_s / 2.0 {
                return Ok((amount, seconds));
            }
            amount = ((amount as f64 * least_s / seconds) as u64).min(amount * 100);
        }
        Ok((amount, least_s))
    }

    fn seconds_of(&mut self, grid: &Grid, cell: &Cell, size: CellSize) -> Result<f64, SampleError> {
        let done =
            self.run_cell((ArmId::BASELINE, ArmId::BASELINE), grid, cell, size, (0, false))?;
        Ok(done.sample.elapsed_ns as f64 / 1e9)
    }

    /// Units that an activity does in a second, in each of its processes.
    fn speed_of(&mut self, grid: &Grid, activity: &str) -> Result<f64, SampleError> {
        const MOST_UNITS: u64 = 1 << 24;
        let least_s = grid.least_ms as f64 / 1e3;
        let cell = Cell {
            bytes: grid.classes[0].bytes,
            component: None,
            further: None,
            link: Default::default(),
            activity: Some(activity.to_owned()),
        };
        let mut units = 1;
        loop {
            let seconds = self.seconds_of(grid, &cell, CellSize { amount: 0, units })?;
            if seconds >= least_s || units >= MOST_UNITS {
                return Ok(units as f64 / seconds);
            }
            units *= 4;
        }
    }
}
