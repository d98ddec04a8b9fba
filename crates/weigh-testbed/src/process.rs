//! The testbed itself: holds the hosts and carries their packets until the end of its input.
//!
//! Protocol: the first line of stdin is a [`TestbedSetup`], every other a [`TestbedOrder`]; each is answered
//! by a [`TestbedAnswer`] on stdout.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::time::Duration;

use wire::{End, Impairment, Interfaces, Medium, Offload, Scheduling, Wire};

use super::addresses::WIRE;
use super::hosts::Hosts;
use super::sniffer::Sniffer;
use super::{
    BlackBox, Extent, Heading, HostName, LinkCount, RoundTripTimes, TestbedAnswer, TestbedOrder,
    TestbedReady, TestbedSetup, Via, collector, round_trips,
};
use weigh_host::lines::say;

/// As the reference has it: above all that is weighed, below what the kernel needs itself.
const PRIORITY: i32 = 50;
/// A datagram that takes so much longer than the link's delay is lost.
const PATIENCE: Duration = Duration::from_secs(1);
/// Datagrams of one measurement; at a delay of a second that is hours, and who asks for it waits.
const MOST_ROUNDS: u32 = 100_000;

/// Runs the testbed on stdin and stdout until end of input.
pub fn run() -> io::Result<()> {
    let mut orders = io::stdin().lock();
    let mut line = String::new();
    orders.read_line(&mut line)?;
    let setup: TestbedSetup = serde_json::from_str(&line)?;
    let mut bed = match Bed::make(&setup) {
        Ok(bed) => bed,
        Err(problem) => return say(&TestbedAnswer::Error(problem)),
    };
    let ready = match bed.ready() {
        Ok(ready) => TestbedAnswer::Ready(Box::new(ready)),
        Err(error) => TestbedAnswer::Error(error.to_string()),
    };
    say(&ready)?;
    loop {
        line.clear();
        if orders.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let done = bed.obey(serde_json::from_str(&line)?);
        say(&done.unwrap_or_else(|error| TestbedAnswer::Error(error.to_string())))?;
    }
}

struct Bed {
    /// Before the hosts: their devices go first.
    wires: BTreeMap<BlackBox, LaidWire>,
    hosts: Hosts,
    offload: Offload,
    not_locked: Option<String>,
    extent: Extent,
    nonce: u64,
    sniffer: Option<Sniffer>,
}

struct LaidWire {
    wire: Wire,
    /// How it is configured, from and to W_test.
    impairments: [Impairment; 2],
    /// Pieces that the wire's devices had dropped when the wire began to count.
    dropped_before: [u64; 2],
}

impl Bed {
    fn make(setup: &TestbedSetup) -> Result<Bed, String> {
        let (hosts, laid) = Hosts::make(&setup.extent)?;
        let not_locked = wire::lock_memory().err().map(|error| error.to_string());
        let mut offload = Offload::TcpAndUdp;
        let hub = Medium::default();
        let mut wires = BTreeMap::new();
        for (link, ends) in laid {
            let scheduling = Scheduling {
                priority: setup.real_time.then_some(PRIORITY),
                cpus: setup.wire_cpus.clone(),
            };
            let wire = Wire::start_at(&hub, ends, scheduling)
                .map_err(|error| format!("cannot start a wire of the testbed: {error}"))?;
            offload = wire
                .set_offload(offload)
                .map_err(|error| format!("cannot set the segmentation of a wire: {error}"))?;
            let laid = LaidWire { wire, impairments: Default::default(), dropped_before: [0, 0] };
            wires.insert(link, laid);
        }
        if let Extent::Far { black_box, .. } = setup.extent {
            round_trips::send_back(&hosts, black_box, setup.nonce)
                .map_err(|error| format!("cannot start the echo server for datagrams: {error}"))?;
        }
        let has_passive = match setup.extent {
            Extent::Whole => true,
            Extent::Test { .. } => false,
            Extent::Far { black_box, .. } => black_box == BlackBox::Passive,
        };
        if let Some(directory) = setup.collect_in.clone().filter(|_| has_passive) {
            collector::collect(&hosts, setup.nonce, directory, setup.wire_cpus.clone())
                .map_err(|error| format!("cannot start the receiver of audit records: {error}"))?;
        }
        let (extent, nonce) = (setup.extent.clone(), setup.nonce);
        Ok(Bed { wires, hosts, offload, not_locked, extent, nonce, sniffer: None })
    }

    fn ready(&self) -> io::Result<TestbedReady> {
        let reasons = self.wires.values().find_map(|laid| laid.wire.not_real_time());
        Ok(TestbedReady {
            pid: std::process::id(),
            hosts: self.hosts.ready()?,
            links: BlackBox::ALL.into_iter().map(|link| self.hosts.link(link)).collect(),
            is_rootless: self.hosts.is_rootless(),
            not_real_time: reasons.map(str::to_owned),
            not_locked: self.not_locked.clone(),
            offload: match self.offload {
                Offload::Off => "off",
                Offload::Tcp => "tcp",
                Offload::TcpAndUdp => "tcp and udp",
            }
            .into(),
            no_ipv6: self.hosts.no_ipv6.clone(),
        })
    }

    fn obey(&mut self, order: TestbedOrder) -> io::Result<TestbedAnswer> {
        match order {
            TestbedOrder::Configure { link, heading, impairment } => {
                let dropped = self.device_dropped(link)?;
                let laid = self.laid(link)?;
                laid.wire.configure(end(heading), (*impairment).clone())?;
                laid.impairments[heading as usize] = *impairment;
                laid.dropped_before[heading as usize] = dropped[heading as usize];
                Ok(TestbedAnswer::Done)
            }
            TestbedOrder::Offload { link, is_on } => {
                let offload = if is_on { self.offload } else { Offload::Off };
                self.laid(link)?.wire.set_offload(offload)?;
                Ok(TestbedAnswer::Done)
            }
            TestbedOrder::Reset(link) => {
                let dropped_before = self.device_dropped(link)?;
                let laid = self.laid(link)?;
                laid.dropped_before = dropped_before;
                laid.wire.reset()?;
                Ok(TestbedAnswer::Done)
            }
            TestbedOrder::Counters(link) => {
                Ok(TestbedAnswer::Counters(Box::new(self.count(link)?)))
            }
            TestbedOrder::Trace(Some(path)) => {
                let start = || Sniffer::start(&path);
                self.sniffer = Some(self.hosts.run(HostName::Test, start)?);
                Ok(TestbedAnswer::Done)
            }
            TestbedOrder::Trace(None) => {
                let (packets, missed) = self.sniffer.take().map_or(Ok((0, 0)), Sniffer::end)?;
                Ok(TestbedAnswer::Traced(packets, missed))
            }
            TestbedOrder::Drops { link, heading } => {
                Ok(TestbedAnswer::Drops(self.laid(link)?.wire.drops(end(heading))?))
            }
            TestbedOrder::RoundTrips { link, via, rounds } => {
                Ok(TestbedAnswer::RoundTrips(self.round_trips(link, via, rounds)?))
            }
        }
    }

    fn laid(&mut self, link: BlackBox) -> io::Result<&mut LaidWire> {
        self.wires.get_mut(&link).ok_or_else(|| io::Error::other("the testbed lacks this link"))
    }

    fn count(&mut self, link: BlackBox) -> io::Result<LinkCount> {
        let dropped = self.device_dropped(link)?;
        let laid = self.laid(link)?;
        let [from_test, to_test] = laid.wire.counters()?;
        let since = |at: usize| dropped[at].saturating_sub(laid.dropped_before[at]);
        Ok(LinkCount {
            from_test,
            to_test,
            device_dropped_from_test: since(0),
            device_dropped_to_test: since(1),
        })
    }

    /// Returns how many pieces the devices of W_test and of the black box have dropped so far. A
    /// device drops a piece if nobody fetches it in time.
    fn device_dropped(&self, link: BlackBox) -> io::Result<[u64; 2]> {
        let read = |name: &'static str| Ok(Interfaces::open()?.statistics(name)?.send_dropped);
        Ok([self.hosts.near_end(link, read)?, self.hosts.run(link.host(), || read(WIRE))?])
    }

    fn round_trips(&mut self, link: BlackBox, via: Via, rounds: u32) -> io::Result<RoundTripTimes> {
        let ready = self.hosts.link(link);
        let (ends, delay_ns) = match via {
            Via::Lan => (ready.lan.ipv4, 0),
            Via::Wire => (ready.wire.ipv4, self.configured_ns(link)),
        };
        let limit = PATIENCE + Duration::from_nanos(delay_ns);
        let rounds = rounds.clamp(1, MOST_ROUNDS);
        match self.extent {
            Extent::Whole => round_trips::measure(&self.hosts, link, ends, rounds, limit),
            _ => round_trips::measure_far(&self.hosts, ends, self.nonce, rounds, limit),
        }
    }

    /// Returns the configured delay of a datagram's round trip. Between machines, only the process
    /// that configures the link knows it.
    fn configured_ns(&self, link: BlackBox) -> u64 {
        let laid = self.wires.get(&link);
        let impairments = laid.map(|laid| laid.impairments.as_slice()).unwrap_or_default();
        impairments.iter().map(|one| one.delay_ns + one.late_ns).sum()
    }
}

fn end(heading: Heading) -> End {
    match heading {
        Heading::FromTest => End::A,
        Heading::ToTest => End::B,
    }
}
