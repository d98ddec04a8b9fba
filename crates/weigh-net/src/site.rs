//! Site of the cells: the testbed, a peer on each black box, and the links as each cell needs them.

mod peers;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wire::Cause;

use super::arguments::arguments;
use super::cell::{Cell, CellSize, Component};
use super::cpus::{allowed, halves};
use super::far_host::{FarHost, FarHosts};
use super::ftp::FTP_PORT;
use super::grid::Grid;
use super::link::GridLink;
use super::peer::NONCE;
use super::site_error::SiteError;
use weigh_host::chance;
use weigh_model::format;
use weigh_model::printable::brief;
use weigh_testbed::{
    Addresses, BlackBox, Collector, Extent, Heading, LinkCount, Testbed, TestbedError,
    TestbedSetup, Via,
};
use weigh_workload::launcher::{Job, Launched, Launcher};
use weigh_workload::place::LaunchPlace;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::allowed_cpus::AllowedCpus;
use weigh_workload::setup::kind::join_network::JoinNetwork;

/// In the scratch directory.
const TRACE: &str = "trace.pcap";
/// A cell of no delay that takes longer hangs; with a delay it may take so many round trips more.
const CELL_TIMEOUT_MS: u64 = 120_000;
const MOST_ROUND_TRIPS: u64 = 500;
const CALIBRATION_ROUNDS: u32 = 200;

/// Counts of packets that the wires lost or delayed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Lost though they were not to be: the machine could not keep up.
    pub not_meant: u64,
    /// Dropped by number or by chance, as the cell has it.
    pub meant: u64,
    /// As the queue of a rate limit was full.
    pub by_queue: u64,
    /// Left more than a millisecond late.
    pub overruns: u64,
    /// How long the busiest transmitter with a rate sent.
    pub busiest_s: Option<f64>,
}

/// Three hosts, and the peers on two of them. All of it is gone when this is.
pub struct NetSite {
    testbed: Testbed,
    /// The black boxes, where they are other machines.
    far: Vec<FarHost>,
    nonce: String,
    /// Where audit records of W_test can be shipped to.
    pub collector: Option<Collector>,
    interrupted: Arc<AtomicBool>,
    /// Before the testbed is gone: they run in its namespaces.
    peers: Vec<Launcher>,
    scratch: PathBuf,
    test_cpus: Vec<usize>,
    other_cpus: Vec<usize>,
    facts: Vec<String>,
}

impl Drop for NetSite {
    fn drop(&mut self) {
        if self.interrupted.load(Ordering::Relaxed) {
            self.far.iter_mut().for_each(FarHost::let_go);
        }
    }
}

impl NetSite {
    /// The hosts, still without peers. With `far_hosts` the black boxes are those.
    pub fn lay(
        place: &LaunchPlace,
        far_hosts: Option<&FarHosts>,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<NetSite, SiteError> {
        let nonce = chance::number().map_err(|error| SiteError::Failed(error.to_string()))?;
        let (mut far, mut extent) = (Vec::new(), Extent::Whole);
        let (test_cpus, other_cpus) = match far_hosts {
            None => halves(allowed()?),
            Some(hosts) => {
                for link in BlackBox::ALL {
                    let scratch = &place.scratch;
                    far.push(FarHost::connect(hosts, link, nonce, scratch, interrupted)?);
                }
                if far[0].address == far[1].address {
                    return Err(SiteError::Failed(
                        "--active and --passive are the same machine: give two machines".into(),
                    ));
                }
                let over = far.iter().map(|one| (one.black_box, one.interface.clone()));
                extent = Extent::Test { over: over.collect() };
                (allowed()?, Vec::new())
            }
        };
        let setup = TestbedSetup {
            wire_cpus: other_cpus.clone(),
            real_time: true,
            extent,
            nonce,
            collect_in: Some(place.scratch.clone()),
        };
        let testbed = Testbed::start(Testbed::role(), &setup, interrupted)?;
        let facts = match far.is_empty() {
            true => placement(&testbed, &test_cpus, &other_cpus),
            false => far
                .iter()
                .flat_map(|one| [vec![one.fact()], links(&one.testbed)])
                .flatten()
                .collect(),
        };
        let mut site = NetSite {
            collector: Collector::of(&testbed.ready, nonce),
            testbed,
            far,
            nonce: format!(
                "{:032x}",
                chance::large().map_err(|error| SiteError::Failed(error.to_string()))?
            ),
            interrupted: interrupted.clone(),
            peers: Vec::new(),
            scratch: place.scratch.clone(),
            test_cpus,
            other_cpus,
            facts,
        };
        site.calibrate()?;
        Ok(site)
    }

    /// How long a datagram takes now, over each way.
    fn calibrate(&mut self) -> Result<(), SiteError> {
        let boxes = if self.far.is_empty() { &BlackBox::ALL[..1] } else { &BlackBox::ALL[..] };
        for black_box in boxes {
            for (via, name) in [(Via::Lan, "the LAN"), (Via::Wire, "the wire without delay")] {
                let found = self.testbed.round_trips(
                    *black_box,
                    via,
                    CALIBRATION_ROUNDS,
                    &self.interrupted,
                );
                let times = found.map_err(|error| self.not_reached(*black_box, error))?;
                let to = match (self.far.is_empty(), black_box) {
                    (true, _) => String::new(),
                    (false, BlackBox::Active) => " to W_active".into(),
                    (false, BlackBox::Passive) => " to W_passive".into(),
                };
                self.facts.push(format!(
                    "Round trip of a datagram over {name}{to}: median {}, 99th percentile {}.",
                    format::time_ns(times.p50_ns as f64),
                    format::time_ns(times.p99_ns as f64)
                ));
            }
        }
        Ok(())
    }

    fn not_reached(&self, black_box: BlackBox, error: TestbedError) -> SiteError {
        match (self.far(black_box), error) {
            (Some(far), TestbedError::Failed(problem) | TestbedError::Refused(problem)) => {
                SiteError::Failed(format!(
                    "{} {problem}. All machines must be on one Ethernet network that accepts new MAC \
                     addresses: not Wi-Fi; for virtual machines, allow MAC spoofing or promiscuous mode",
                    far.fact()
                ))
            }
            (_, error) => error.into(),
        }
    }

    fn far(&self, black_box: BlackBox) -> Option<&FarHost> {
        self.far.iter().find(|one| one.black_box == black_box)
    }

    /// Checks that all machines still answer. If one is gone, a failed cell says nothing about the
    /// cell.
    pub fn check_machines(&mut self) -> Result<(), SiteError> {
        self.far.iter_mut().try_for_each(|far| far.check(&self.interrupted))
    }

    /// Does something with what holds the wire to a black box.
    fn with_wire<T>(
        &mut self,
        link: BlackBox,
        action: impl FnOnce(&mut Testbed, &AtomicBool) -> Result<T, TestbedError>,
    ) -> Result<T, SiteError> {
        match self.far.iter_mut().find(|one| one.black_box == link) {
            None => Ok(action(&mut self.testbed, &self.interrupted)?),
            Some(far) => {
                action(&mut far.testbed, &self.interrupted).map_err(|error| far.failed(error))
            }
        }
    }

    /// Describes the site in whole sentences.
    pub fn facts(&self) -> &[String] {
        &self.facts
    }

    /// Returns the setup of processes on W_test, in every arm.
    pub fn test_setup(&self) -> Setup {
        let join = self.testbed.ready.host(weigh_testbed::HostName::Test);
        let setup = Setup::default().with(AllowedCpus { cpus: self.test_cpus.clone() });
        join.into_iter().fold(setup, |setup, host| setup.with(host.join.clone()))
    }

    fn socket(&self, black_box: BlackBox) -> PathBuf {
        self.scratch.join(match black_box {
            BlackBox::Active => "active.sock",
            BlackBox::Passive => "passive.sock",
        })
    }

    fn address(&self, black_box: BlackBox, via: Via, is_ipv6: bool) -> Option<String> {
        let link = self.testbed.ready.link(black_box)?;
        let addresses: &Addresses = match via {
            Via::Wire => &link.wire,
            Via::Lan => &link.lan,
        };
        let ends = if is_ipv6 { addresses.ipv6? } else { addresses.ipv4 };
        Some(ends.other.to_string())
    }

    /// Makes the links what the cell wants, with packets counted from 1.
    pub fn set_links(&mut self, grid: &Grid, cell: &Cell) -> Result<(), SiteError> {
        if let (true, Some(why)) = (grid.ipv6, &self.testbed.ready.no_ipv6) {
            return Err(SiteError::Failed(format!(
                "the grid needs IPv6, which this testbed lacks: {why}"
            )));
        }
        if !self.far.is_empty() && grid.link.as_ref().is_some_and(GridLink::is_hub) {
            return Err(SiteError::Failed(
                "the grid needs all wires at one hub (`shared`), but each black box has its \
                 own: measure on one machine, without --active and --passive"
                    .into(),
            ));
        }
        let [from_test, to_test] = GridLink::impairments(grid.link.as_ref(), &cell.link);
        for link in BlackBox::ALL {
            for (heading, impairment) in
                [(Heading::FromTest, &from_test), (Heading::ToTest, &to_test)]
            {
                self.with_wire(link, |bed, interrupted| {
                    bed.configure(link, heading, impairment, interrupted)
                })?;
            }
        }
        Ok(())
    }

    /// Returns the losses of packets since the links were configured, and how busy the links were.
    pub fn losses(&mut self, grid: &Grid) -> Result<Losses, SiteError> {
        let (mut losses, mut wires) = (Losses::default(), Vec::new());
        for link in BlackBox::ALL {
            let count = self.with_wire(link, |bed, interrupted| bed.counters(link, interrupted))?;
            let LinkCount { device_dropped_from_test, device_dropped_to_test, .. } = count;
            let dropped = device_dropped_from_test.saturating_add(device_dropped_to_test);
            losses.not_meant = losses.not_meant.saturating_add(dropped);
            for of_direction in [&count.from_test, &count.to_test] {
                losses.overruns = losses.overruns.saturating_add(of_direction.overruns);
                for (cause, packets) in &of_direction.dropped {
                    let counter = match cause {
                        Cause::Memory | Cause::Refused => &mut losses.not_meant,
                        Cause::Queue => &mut losses.by_queue,
                        Cause::Number | Cause::Random | Cause::Burst => &mut losses.meant,
                    };
                    *counter = counter.saturating_add(*packets);
                }
            }
            wires.push(count);
        }
        losses.busiest_s = grid.link.as_ref().and_then(|link| link.busiest_s(&wires));
        Ok(losses)
    }

    /// When the wires dropped packets that W_test sent or was sent, by connection of the cell. A wire of
    /// another machine has another clock, and tells nothing of it here.
    pub fn drops(&mut self, component: Component) -> Result<Vec<Vec<u64>>, SiteError> {
        let mut of_connections = Vec::new();
        for transfer in component.transfers() {
            if self.far(transfer.with).is_some() {
                of_connections.push(Vec::new());
                continue;
            }
            let heading = if transfer.is_send { Heading::FromTest } else { Heading::ToTest };
            let with = transfer.with;
            let drops =
                self.with_wire(with, |bed, interrupted| bed.drops(with, heading, interrupted))?;
            of_connections.push(drops.into_iter().map(|drop| drop.at_ns).collect());
        }
        Ok(of_connections)
    }

    /// Writes down what W_test sends and is sent from now on.
    pub fn begin_trace(&mut self) -> Result<(), SiteError> {
        Ok(self.testbed.begin_trace(&self.scratch.join(TRACE), &self.interrupted)?)
    }

    /// The file of what was written down, and how many packets were missed.
    pub fn end_trace(&mut self) -> Result<(PathBuf, u64), SiteError> {
        let (_, missed) = self.testbed.end_trace(&self.interrupted)?;
        Ok((self.scratch.join(TRACE), missed))
    }

    /// CPUs of W_test, and those of each black box of this machine: none if they are other machines.
    pub fn cpus(&self) -> [&[usize]; 2] {
        [&self.test_cpus, &self.other_cpus]
    }

    /// How many processes an activity takes, so that it contends with COMM wherever that runs.
    pub fn copies(&self) -> usize {
        self.test_cpus.len()
    }

    /// The launch of a cell on W_test.
    pub fn job(
        &self,
        grid: &Grid,
        cell: &Cell,
        size: CellSize,
        is_watched: bool,
        place: &LaunchPlace,
    ) -> Job {
        let at = |with, via| {
            let address = self.address(with, via, grid.ipv6).unwrap_or_default();
            format!("{address},{}", self.socket(with).display())
        };
        let mut argv = vec![place.executable.path().display().to_string(), "comm".into()];
        argv.extend(arguments(grid, cell, size, self.copies(), &at));
        argv.extend(is_watched.then(|| "--watch".into()));
        let ftp = self.address(BlackBox::Active, Via::Lan, false).unwrap_or_default();
        let sending = GridLink::least_time(grid.link.as_ref(), size.amount);
        let timeout_ms = CELL_TIMEOUT_MS
            + cell.link.delay_us * MOST_ROUND_TRIPS / 1000
            + 2 * sending.as_millis() as u64;
        let mut job = Job::new(argv, &place.work_directory, timeout_ms);
        job.environment.push(("WEIGH_FTP".into(), format!("{ftp} {FTP_PORT}")));
        job.environment.push((NONCE.into(), self.nonce.clone()));
        job
    }

    /// Checks that a launch was measured on W_test.
    pub fn prove(&self, launched: &Launched) -> Result<(), String> {
        let setup = self.test_setup();
        setup.get::<JoinNetwork>().map_or(Ok(()), |join| join.prove(&launched.seen))
    }
}

fn placement(testbed: &Testbed, test_cpus: &[usize], other_cpus: &[usize]) -> Vec<String> {
    let list = |cpus: &[usize]| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let cpus = match test_cpus == other_cpus {
        true => {
            "This machine has one CPU: the black boxes and the links take CPU time from W_test."
                .into()
        }
        false => format!(
            "W_test runs on the CPUs {}; the black boxes and the links run on {}.",
            list(test_cpus),
            list(other_cpus)
        ),
    };
    std::iter::once(cpus).chain(links(testbed)).collect()
}

fn links(testbed: &Testbed) -> Vec<String> {
    let ready = &testbed.ready;
    let real_time = match &ready.not_real_time {
        None => "The links run with real-time priority.".into(),
        Some(why) => format!("The links run without real-time priority ({}).", brief(why)),
    };
    let offload = brief(&ready.offload);
    vec![real_time, format!("Segmentation left to the wire: {offload}.")]
}
