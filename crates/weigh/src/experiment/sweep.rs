//! Measuring a grid: all its cells in random order, again and again, until the interval of the BTU is narrow.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::host::Host;
use super::measure::Session;
use super::net_answers::net_answers;
use super::order::Coins;
use super::platform::{Platform, SampleError, Slot, Stop};
use super::request::Audience;
use super::run_progress::Progress;
use crate::format;
use crate::net::grid::Grid;
use crate::store::record::Stored;
use crate::store::samples::Point;

/// After so many sweeps the interval is looked at for the first time.
const FIRST_LOOK: usize = 3;

impl Session<'_> {
    /// Sweeps over the cells of a grid, which are `works` in this order.
    ///
    /// # Errors
    /// Where the experiment cannot go on, or no cell has a result.
    pub(super) fn sweep(
        &self,
        host: &mut Host,
        works: &[usize],
        (grid, precision): (&Grid, f64),
        audience: &mut dyn Audience,
    ) -> Result<(), Stop> {
        audience.announce(&format!(
            "Grid {} ({}): {}, which take about {} each time; then again until the interval is narrow.",
            grid.name,
            grid.hash(),
            format::plural(works.len(), "cell"),
            format::clock(grid.predicted_sweep().as_secs_f64())
        ));
        let (mut done, sizes) = self.earlier_cells()?;
        host.size_cells(grid, &sizes)?;
        let mut longest = Duration::ZERO;
        let mut coins = Coins::new(self.request.seed, 0, self.earlier.sessions);
        loop {
            if self.is_enough(done, precision)? {
                return Ok(());
            }
            let left = (self.earlier.elapsed + self.request.budget).saturating_sub(host.elapsed());
            if left < longest {
                return Ok(());
            }
            let began = host.elapsed();
            let has_failed = self.one_sweep(host, works, done, &mut coins, audience)?;
            longest = longest.max(host.elapsed() - began);
            done += 1;
            if has_failed {
                // There is no score, however often the others are measured.
                return Ok(());
            }
        }
    }

    fn one_sweep(
        &self,
        host: &mut Host,
        works: &[usize],
        number: usize,
        coins: &mut Coins,
        audience: &mut dyn Audience,
    ) -> Result<bool, Stop> {
        let mut order = works.to_vec();
        coins.shuffle(&mut order, |_| 0);
        let mut progress = Progress::new(works.iter().map(|_| (1, 1)));
        let mut has_failed = false;
        for (at, work) in order.into_iter().enumerate() {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Stop::Interrupted);
            }
            let unit = self.unit(work, 0);
            let slot = Slot { unit, arm: 0, set: 0, pair: number, position: 0 };
            let renewed = if at == 0 { host.renew_for_sweep(&slot) } else { Ok(()) };
            match renewed.and_then(|()| host.cell(&slot)) {
                Ok(_) => progress.took(1),
                Err(SampleError::Stop(stop)) => return Err(stop),
                Err(SampleError::Workload(reason) | SampleError::Lost(reason)) => {
                    host.failed(&slot, &reason)?;
                    progress.dropped(1, 1);
                    has_failed = true;
                }
            }
            audience.swept(number + 1, &progress);
        }
        Ok(has_failed)
    }

    /// How many sweeps there were, and what each cell moved.
    fn earlier_cells(&self) -> Result<(usize, BTreeMap<usize, u64>), Stop> {
        if self.earlier.sessions == 0 {
            return Ok((0, BTreeMap::new()));
        }
        let stored = self.store.load(self.id).map_err(Stop::from)?;
        let payload = |(cell, point): (usize, &Point)| (cell, (point.operations / 8.0) as u64);
        Ok((sweeps_of(&stored), cells_of(&stored).map(payload).collect()))
    }

    fn is_enough(&self, sweeps: usize, precision: f64) -> Result<bool, Stop> {
        if !is_look(sweeps) {
            return Ok(false);
        }
        let stored = self.store.load(self.id).map_err(Stop::from)?;
        let answers = net_answers(&stored).and_then(|answers| answers.btu);
        let half = answers.and_then(|btu| btu.half_width());
        Ok(half.is_some_and(|half| half <= precision))
    }
}

/// Each look has a chance of its own to be wrong, so there are half as many sweeps again between two.
fn is_look(sweeps: usize) -> bool {
    let looks = std::iter::successors(Some(FIRST_LOOK), |look| Some((3 * look).div_ceil(2)));
    looks.take_while(|look| *look <= sweeps).last() == Some(sweeps)
}

/// Each sample with the number of its cell.
fn cells_of(stored: &Stored) -> impl Iterator<Item = (usize, &Point)> {
    let rows = stored.samples.iter();
    rows.flat_map(|((cell, _), row)| row.points.iter().map(move |point| (*cell, point)))
}

/// How many sweeps were begun.
pub(super) fn sweeps_of(stored: &Stored) -> usize {
    cells_of(stored).map(|(_, point)| point.pair + 1).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_rarer() {
        let looks: Vec<usize> = (0..100).filter(|sweeps| is_look(*sweeps)).collect();
        assert_eq!(looks, [3, 5, 8, 12, 18, 27, 41, 62, 93]);
    }
}
