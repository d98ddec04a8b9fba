//! Cells of a grid on this host, one by one.

use std::path::Path;

use super::cell_sizes::SizesOfGrids;
use super::hooks::neutral;
use super::{Host, SampleError, padding};
use crate::abnormal::{DROPPED, DROPPED_BY_QUEUE};
use crate::further_readings::LOST_PACKETS;
use crate::net_cells::{CPU_PER_GB, PEER_CPU_PER_GB};
use crate::net_work::{NetPart, NetWork};
use crate::order::padding_bytes;
use crate::parse_sample::cell_sample;
use crate::platform::{Platform, Readings, SampleSlot, Stop};
use crate::work::Work;
use trust::owner;
use weigh_model::disturbance::Disturbance;
use weigh_model::evidence::Evidence;
use weigh_model::ids::{ArmId, PairId, WorkId};
use weigh_model::record::{Detailed, Measured};
use weigh_model::result::net_limits::{HOST_BUSY, LINK_BUSY, PEERS_BUSY};
use weigh_model::workload::detail::Detail;
use weigh_model::workload::metric::Direction;
use weigh_model::workload::sample::{OwnReading, Sample};
use weigh_net::cell::{Cell, CellSize};
use weigh_net::ftp::FTP_ACTIVITY;
use weigh_net::grid::Grid;
use weigh_net::link::GridLink;
use weigh_net::site::{Losses, NetSite};
use weigh_net::site_error::SiteError;

/// Site of the cells, and the size of each cell once it is known.
pub struct NetBench {
    pub site: NetSite,
    /// Sizes of the cells, equal for all arms, and for all sets of a session.
    pub sizes: SizesOfGrids,
    /// Number of the sweep that has the present launcher.
    pub sweep: Option<PairId>,
}

/// Drops that are drawn, of a connection.
const MOST_DROPS: usize = 1000;

pub(super) struct CellResult {
    pub(super) sample: Sample,
    /// Further details that the cell reported, if any.
    detail: Option<Detail>,
    pub(super) evidence: Evidence,
    disturbance: Disturbance,
}

impl Host<'_> {
    /// Starts the peers, where there are cells; what the arms are is known by now.
    pub(super) fn start_peers(&mut self) -> Result<(), Stop> {
        let setup = neutral(self.arms.treatments());
        let wants_ftp = |work: &Work| match work {
            Work::Net(net) => net.grid.activities.iter().any(|name| name == FTP_ACTIVITY),
            _ => false,
        };
        let has_ftp = self.site.works.iter().any(wants_ftp);
        let Some(net) = &mut self.site.net else { return Ok(()) };
        Ok(net.site.start_peers(self.arms.context.place, &setup, has_ftp)?)
    }

    /// Describes the site of the cells in whole sentences.
    pub(super) fn net_facts(&self) -> &[String] {
        self.site.net.as_ref().map_or(&[], |net| net.site.facts())
    }

    /// Starts a new launcher with the first cell of each sweep.
    fn renew_for_sweep(&mut self, slot: &SampleSlot) -> Result<(), SampleError> {
        let Some(net) = &mut self.site.net else { return Err(SampleError::Stop(gone())) };
        match net.sweep.replace(slot.pair) == Some(slot.pair) {
            true => Ok(()),
            false => self.renew(slot),
        }
    }

    /// Measures one cell and keeps it.
    pub(super) fn cell(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
        self.renew_for_sweep(slot)?;
        let (measured, detail) = self.measured_cell(slot).map_err(|error| self.settle(error))?;
        let rate = measured.sample.rate();
        let (store, id) = (self.site.store, self.site.id);
        store.add_sample(id, &measured)?;
        if let Some(detail) = detail {
            store.add_detail(id, &detailed(slot, detail))?;
        }
        Ok(Readings { rate, ..Readings::default() })
    }

    fn measured_cell(
        &mut self,
        slot: &SampleSlot,
    ) -> Result<(Measured, Option<Detail>), SampleError> {
        let Some((net, NetPart::Cell { number, cell })) = self.net_work(slot.unit.work) else {
            return Err(SampleError::Workload("it is not a cell of a grid".into()));
        };
        let size = self.size_of(&net.grid, number)?;
        let padding_bytes = padding_bytes(self.site.seed, slot);
        let started_s = self.elapsed().as_secs_f64();
        let arms = (slot.arm, slot.unit.treated_arm);
        let is_watched = cell.component.is_some();
        let CellResult { sample, detail, evidence, disturbance } =
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
    pub fn traced_cell(&mut self, slot: &SampleSlot, path: &Path) -> Result<u64, SampleError> {
        self.renew_for_sweep(slot)?;
        let Some(net) = &mut self.site.net else { return Err(SampleError::Stop(gone())) };
        net.site.begin_trace()?;
        let measured = self.measured_cell(slot).map_err(|error| self.settle(error));
        let Some(net) = &mut self.site.net else { return Err(SampleError::Stop(gone())) };
        let (file, missed) = net.site.end_trace()?;
        measured?;
        let copied = std::fs::read(&file).and_then(|bytes| owner::write(path, &bytes));
        copied.map_err(|error| {
            SampleError::Workload(format!("cannot write {}: {error}", path.display()))
        })?;
        Ok(missed)
    }

    pub(super) fn net_work(&self, work: WorkId) -> Option<(NetWork, NetPart)> {
        match &self.site.works[work] {
            Work::Net(net) => Some(((**net).clone(), net.part.clone())),
            _ => None,
        }
    }

    pub(super) fn size_of(&self, grid: &Grid, number: usize) -> Result<CellSize, SampleError> {
        let net = self.site.net.as_ref();
        match net.and_then(|net| net.sizes.get(&grid.hash())?.get(&number)) {
            Some(Ok(sized)) => Ok(sized.size),
            Some(Err(problem)) => Err(SampleError::Workload(problem.clone())),
            None => Err(SampleError::Workload("its transfer size is not known".into())),
        }
    }

    /// Measures a cell. It has not failed if a machine was lost meanwhile: that ends the experiment.
    pub(super) fn run_cell(
        &mut self,
        arms: (ArmId, ArmId),
        grid: &Grid,
        cell: &Cell,
        size: CellSize,
        padding: (usize, bool),
    ) -> Result<CellResult, SampleError> {
        let measured = self.try_cell(arms, grid, cell, size, padding);
        if let (Err(SampleError::Workload(_)), Some(net)) = (&measured, &mut self.site.net) {
            net.site.check_machines()?;
        }
        measured
    }

    fn try_cell(
        &mut self,
        (arm, treated_arm): (ArmId, ArmId),
        grid: &Grid,
        cell: &Cell,
        size: CellSize,
        (padding_bytes, is_watched): (usize, bool),
    ) -> Result<CellResult, SampleError> {
        let place = self.arms.place(arm).clone();
        let Some(net) = &mut self.site.net else {
            return Err(SampleError::Workload("the testbed is not running".into()));
        };
        net.site.set_links(grid, cell)?;
        let mut job = net.site.job(grid, cell, size, is_watched, &place);
        job.environment.push(padding(padding_bytes));
        let (launched, evidence, disturbance) = self.launch(arm, treated_arm, &job)?;
        let mut sample = cell_sample(&launched).map_err(SampleError::Workload)?;
        let Some(net) = &mut self.site.net else { return Err(SampleError::Stop(gone())) };
        net.site.prove(&launched).map_err(|problem| SampleError::Stop(Stop::Failed(problem)))?;
        let losses = net.site.losses(grid)?;
        sample.readings.extend(of_links(grid, cell, losses));
        if let (Some(component), None) = (cell.component, &cell.activity) {
            let connections = component.transfers().len();
            let busy = busy(&sample, losses.busiest_s, connections, net.site.cpus());
            sample.readings.extend(busy);
        }
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
        Ok(CellResult { sample, detail, evidence, disturbance })
    }
}

/// Returns the readings of the links.
fn of_links(grid: &Grid, cell: &Cell, losses: Losses) -> Vec<OwnReading> {
    let count = |name, value: u64| OwnReading::new(name, value as f64, "packets", Direction::Lower);
    let mut readings = vec![count(LOST_PACKETS, losses.not_meant)];
    if GridLink::is_over_wire(grid.link.as_ref(), cell) {
        readings.push(count(DROPPED, losses.meant));
        readings.push(count(DROPPED_BY_QUEUE, losses.by_queue));
        readings.push(count("overruns", losses.overruns));
    }
    readings
}

/// Returns how busy a transfer without an activity kept its link and the CPUs of both ends. Each
/// connection is one thread at each end, so it uses at most one CPU there.
fn busy(
    sample: &Sample,
    busiest_s: Option<f64>,
    connections: usize,
    [own, peers]: [&[usize]; 2],
) -> Vec<OwnReading> {
    let elapsed_s = sample.elapsed_ns as f64 / 1e9;
    let per_gb = |name: &str| sample.readings.iter().find(|one| one.name == name);
    let cpu_s = |name| Some(per_gb(name)?.value * sample.operations / 8e9);
    let share = |cpu_s: f64, cpus: &[usize]| {
        // The number of CPUs of another machine is unknown; assume enough.
        let usable = if cpus.is_empty() { connections } else { connections.min(cpus.len()) };
        cpu_s / usable as f64
    };
    let (own_s, peers_s) = (cpu_s(CPU_PER_GB), cpu_s(PEER_CPU_PER_GB));
    let (host, black_boxes) = match own == peers {
        // Both ends share one CPU: add their times.
        true => (own_s.zip(peers_s).map(|(own_s, peers_s)| own_s + peers_s), None),
        false => (own_s.map(|s| share(s, own)), peers_s.map(|s| share(s, peers))),
    };
    let found = [(LINK_BUSY, busiest_s), (HOST_BUSY, host), (PEERS_BUSY, black_boxes)];
    let reading = |(name, busy_s): (&str, Option<f64>)| {
        Some(OwnReading::new(name, 100.0 * busy_s? / elapsed_s, "%", Direction::Lower))
    };
    found.into_iter().filter_map(reading).collect()
}

pub(super) fn detailed(slot: &SampleSlot, detail: Detail) -> Detailed {
    let SampleSlot { arm, pair, position, .. } = *slot;
    let (work, treated_arm) = slot.unit.id();
    Detailed { work, arm, treated_arm, pair, position, detail }
}

pub(super) fn measured(
    slot: &SampleSlot,
    started_s: f64,
    padding_bytes: usize,
    sample: Sample,
    (evidence, disturbance): (Evidence, Option<Disturbance>),
) -> Measured {
    Measured {
        work: slot.unit.work,
        arm: slot.arm,
        treated_arm: slot.unit.treated_arm,
        role: slot.role,
        scheme: slot.scheme,
        set: slot.set,
        pair: slot.pair,
        position: slot.position,
        started_s,
        padding_bytes,
        cpu: None,
        sample,
        evidence,
        disturbance,
    }
}

fn gone() -> Stop {
    Stop::Failed("the testbed is not running".into())
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
