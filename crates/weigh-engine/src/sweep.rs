//! Measuring a grid: all its cells in random order, again and again, until the interval of the BTU is narrow.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::abnormal::ordinary;
use super::host::Host;
use super::host::sweeps::PairForecast;
use super::measure::Session;
use super::net_answers::net_answers;
use super::order::Coins;
use super::plan::drive;
use super::plan::sweep::SweepPlanner;
use super::platform::{Platform, SampleSlot, Stop};
use super::request::{ProgressSink, Sweeps};
use super::row::RowKey;
use super::work::Work;
use paired::looks;
use weigh_model::format;
use weigh_model::ids::{ArmId, PairId, SetId, WorkId};
use weigh_model::record::Stored;
use weigh_model::result::summary::Failure;
use weigh_model::result::warning::Warning;
use weigh_model::samples::Point;
use weigh_net::cell::Cell;
use weigh_net::grid::{FURTHER_TURNS, Grid};
use weigh_net::site::NetSite;
use weigh_treatment::ApplyContext;

impl Session<'_> {
    /// Makes the network site for the cells of grids, if any work is a grid.
    pub(super) fn lay_net(&self, context: &ApplyContext) -> Result<Option<NetSite>, Stop> {
        if !self.works.iter().any(|work| matches!(work, Work::Net(_))) {
            return Ok(None);
        }
        let far_hosts = self.request.plan.far_hosts();
        Ok(Some(NetSite::lay(context.place, far_hosts, self.interrupted)?))
    }

    /// Sweeps over the cells of a grid, which are `works` in this order.
    pub(super) fn sweep(
        &self,
        host: &mut Host,
        works: &[WorkId],
        sweeps: &Sweeps,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let Sweeps { grid, precision, trace, .. } = sweeps;
        progress_sink.announce(&format!(
            "Grid {} ({}): one sweep has {} and takes about {}. Sweeps repeat until the interval is narrow \
             enough.",
            grid.name,
            grid.hash(),
            cells_told(grid),
            format::clock(grid.predicted_sweep().as_secs_f64())
        ));
        let (mut done, sizes) = self.earlier_cells()?;
        progress_sink.begins("sizing the transfers");
        host.size_cells(grid, &sizes, true)?;
        let mut longest = Duration::ZERO;
        let mut coins = Coins::new(self.request.common.seed, SetId(0), self.earlier.sessions);
        let cells = grid.cells();
        let is_scored = |work: &WorkId| cells[*work].further.is_none();
        let mut without_result = BTreeSet::new();
        loop {
            let left =
                (self.earlier.elapsed + self.request.common.budget).saturating_sub(host.elapsed());
            if self.is_enough(done, *precision)? || left < longest {
                self.forget_ordinary(&self.store.load(self.id).map_err(Stop::from)?)?;
                return trace.as_deref().map_or(Ok(()), |trace| {
                    let traced = grid.predicted_all();
                    self.traced_sweep(host, works, (&cells, done, trace, traced), progress_sink)
                });
            }
            let began = host.elapsed();
            let has_turn =
                |work: &&WorkId| is_scored(work) || work.0 % FURTHER_TURNS == done % FURTHER_TURNS;
            let due = works.iter().filter(has_turn).filter(|work| !without_result.contains(*work));
            let due: Vec<RowKey> = due.map(|work| self.unit(*work, ArmId::BASELINE)).collect();
            let mut sweep = SweepPlanner::new(&due, PairId(done), &mut coins);
            drive(&mut sweep, host, progress_sink)?;
            longest = longest.max(host.elapsed() - began);
            done += 1;
            if sweep.failed.is_empty() && without_result.is_empty() {
                self.forget_earlier_failures()?;
            }
            if sweep.failed.iter().any(is_scored) {
                // There is no score, however often the others are measured.
                return Ok(());
            }
            without_result.extend(sweep.failed);
        }
    }

    /// Turns failures of cells in an earlier session into warnings, as the study of 1996 restarted such
    /// cells. Only a whole sweep without a failure does so: until then there is no score.
    fn forget_earlier_failures(&self) -> Result<(), Stop> {
        if self.earlier.sessions == 0 {
            return Ok(());
        }
        let Stored { failures, sessions, .. } = self.store.load(self.id).map_err(Stop::from)?;
        let restarted = |failure: Failure| {
            let Failure { workload: cell, reason, .. } = failure;
            Warning::CellRestarted { cell, reason }.in_session(sessions)
        };
        let done = self.store.in_one_commit(|| {
            self.store.forget_failures(self.id)?;
            let mut warnings = failures.into_iter().map(restarted);
            warnings.try_for_each(|warning| self.store.add_warning(self.id, &warning))
        });
        done.map_err(|error: weigh_store::Error| Stop::from(error))
    }

    /// All cells once more, each with a file of what W_test's interfaces carried. None is scored, as that
    /// costs time.
    fn traced_sweep(
        &self,
        host: &mut Host,
        works: &[WorkId],
        (cells, number, directory, traced): (&[Cell], usize, &Path, Duration),
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let mut missed = 0;
        host.lift_limit();
        progress_sink.announce(&format!(
            "Tracing each of {} once more takes about {}.",
            format::plural(works.len(), "cell"),
            format::clock(traced.as_secs_f64())
        ));
        for (at, work) in works.iter().copied().enumerate() {
            let unit = self.unit(work, ArmId::BASELINE);
            let slot = SampleSlot::alone(unit, PairId(number));
            let path = directory.join(trace_name(&cells[work]));
            progress_sink.begins(&format!("tracing cell {} of {}", at + 1, works.len()));
            match self.take(|| host.traced_cell(&slot, &path))? {
                Ok(more) => missed += more,
                // What is scored is there already.
                Err(reason) => {
                    let warning = Warning::TracingEnded { traced: at, cells: works.len(), reason };
                    return self.warn(progress_sink, &warning);
                }
            }
        }
        let (cells, directory) = (format::plural(works.len(), "cell"), directory.display());
        let lacks = match missed {
            0 => String::new(),
            _ => {
                format!(", without {} that were missed", format::plural(missed as usize, "packet"))
            }
        };
        progress_sink.announce(&format!("The packets of {cells} are in {directory}{lacks}."));
        Ok(())
    }

    /// How long pairs of grids last, before the first of them.
    pub(super) fn tell_pairs_of_sweeps(
        &self,
        host: &mut Host,
        units: &[RowKey],
        set: SetId,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        if set.0 != self.earlier.sets.start {
            return Ok(());
        }
        let mut told = BTreeSet::new();
        let grids = units.iter().filter(|unit| matches!(self.works[unit.work], Work::Net(_)));
        for unit in grids.filter(|unit| told.insert(unit.work)) {
            let slot = SampleSlot { set, ..SampleSlot::alone(*unit, PairId(0)) };
            progress_sink.begins("sizing the transfers");
            let Some(PairForecast { cells, lasts }) = host.forecast_pair(&slot)? else { continue };
            progress_sink.announce(&format!(
                "A pair of {} has {} in each arm and takes about {:.0} s, or longer if the treatment slows \
                 it down.",
                self.works[unit.work].name(),
                format::plural(cells, "cell"),
                lasts.as_secs_f64()
            ));
        }
        Ok(())
    }

    /// How many sweeps there were, and what each cell moved.
    fn earlier_cells(&self) -> Result<(usize, BTreeMap<usize, u64>), Stop> {
        if self.earlier.sessions == 0 {
            return Ok((0, BTreeMap::new()));
        }
        let stored = self.store.load(self.id).map_err(Stop::from)?;
        let payload = |(cell, point): (WorkId, &Point)| (cell.0, (point.operations / 8.0) as u64);
        Ok((sweeps_of(&stored), cells_of(&stored).map(payload).collect()))
    }

    /// Deletes the TCP details of ordinary cells. Abnormal cells keep theirs, as do cells with too
    /// few samples to judge.
    pub(super) fn forget_ordinary(&self, stored: &Stored) -> Result<(), Stop> {
        let ordinary = ordinary(stored);
        self.store.forget_details(self.id, &ordinary).map_err(Stop::from)
    }

    fn is_enough(&self, sweeps: usize, precision: f64) -> Result<bool, Stop> {
        if !looks::is_one(sweeps) {
            return Ok(false);
        }
        let stored = self.store.load(self.id).map_err(Stop::from)?;
        self.forget_ordinary(&stored)?;
        Ok(is_narrow(&stored, precision))
    }
}

/// Returns true if the interval of the BTU reaches no further than `precision` to either side.
pub(super) fn is_narrow(stored: &Stored, precision: f64) -> bool {
    let btu = net_answers(stored).and_then(|answers| answers.btu);
    btu.and_then(|btu| btu.half_width()).is_some_and(|half| half <= precision)
}

fn cells_told(grid: &Grid) -> String {
    let scored = grid.cells_of_score().len();
    match grid.cells().len() - scored {
        0 => format::plural(scored, "cell"),
        besides => format!(
            "{} and a third of {besides} further cells that are not scored",
            format::plural(scored, "cell")
        ),
    }
}

/// Returns the name of a cell's trace file: `send-dl@1ms-activity-cpu-100.pcap`.
fn trace_name(cell: &Cell) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "@.+".contains(c) { c } else { '-' };
    format!("{}-{}.pcap", cell.name().chars().map(plain).collect::<String>(), cell.bytes)
}

/// Each sample with the number of its cell.
fn cells_of(stored: &Stored) -> impl Iterator<Item = (WorkId, &Point)> {
    let rows = stored.samples.iter();
    rows.flat_map(|((cell, _), row)| row.points.iter().map(move |point| (*cell, point)))
}

pub(super) fn sweeps_of(stored: &Stored) -> usize {
    cells_of(stored).map(|(_, point)| point.pair.0 + 1).max().unwrap_or(0)
}
