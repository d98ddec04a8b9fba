//! One direction of a link at work: from what is read on one side to what is written on the other.

use crate::counters::{DropLog, Lateness, LinkCounters, OVERRUN_NS};
use crate::held::HeldPackets;
use crate::impairment::Impairment;
use crate::packet::Packet;
use crate::shaper::{Cause, Decision, Medium, Shaper, Stretch};
use crate::tun::Tun;

/// The state of one direction.
#[derive(Debug)]
pub(crate) struct Lane {
    impairment: Impairment,
    shaper: Shaper,
    hub: Medium,
    held: HeldPackets,
    counters: LinkCounters,
    lateness: Lateness,
    pub(crate) drops: DropLog,
    stretches: Vec<Stretch>,
    head: Vec<u8>,
}

impl Lane {
    pub(crate) fn new(hub: Medium) -> Lane {
        Lane {
            impairment: Impairment::default(),
            shaper: Shaper::new(&Impairment::default()),
            hub,
            held: HeldPackets::default(),
            counters: LinkCounters::default(),
            lateness: Lateness::new(),
            drops: DropLog::default(),
            stretches: Vec::new(),
            head: Vec::new(),
        }
    }

    /// From now on it is so, and counts from 1. What is held leaves when it was to leave.
    pub(crate) fn configure(&mut self, impairment: Impairment) {
        self.impairment = impairment;
        self.reset();
    }

    /// Counts from 1 again, and draws again from the seed.
    pub(crate) fn reset(&mut self) {
        self.shaper = Shaper::at(&self.hub, &self.impairment);
        self.counters = LinkCounters { held: self.counters.held, ..LinkCounters::default() };
        self.lateness = Lateness::new();
        self.drops = DropLog { is_kept: self.impairment.logs_drops, ..DropLog::default() };
    }

    pub(crate) fn counters(&self) -> LinkCounters {
        LinkCounters {
            decided: *self.shaper.decided(),
            late_p50_ns: self.lateness.quantile(0.5),
            late_p99_ns: self.lateness.quantile(0.99),
            ..self.counters.clone()
        }
    }

    /// When there is something to do without a packet.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.held.next_due_ns()
    }

    /// A piece came.
    pub(crate) fn accept(&mut self, bytes: &[u8], now_ns: u64, to: &Tun) {
        let packet = Packet::new(bytes);
        let before = self.shaper.decided().packets;
        let mut stretches = std::mem::take(&mut self.stretches);
        self.counters.pieces += 1;
        self.shaper.offer(
            now_ns,
            packet.segments(),
            |segment| packet.segment_bytes(segment),
            &mut stretches,
        );
        for stretch in &stretches {
            let first = before + 1 + u64::from(stretch.segments.start);
            let count = stretch.segments.len() as u64;
            match stretch.decision {
                Decision::Dropped(cause) => {
                    self.drops.add(first, count, now_ns, cause, &mut self.counters);
                }
                Decision::Leaves { due_ns, copies } => {
                    self.pass(&packet, stretch, first, (now_ns, due_ns), copies, to);
                }
            }
        }
        self.stretches = stretches;
    }

    fn pass(
        &mut self,
        packet: &Packet,
        stretch: &Stretch,
        first: u64,
        (now_ns, due_ns): (u64, u64),
        copies: u32,
        to: &Tun,
    ) {
        let wire_bytes: u64 =
            stretch.segments.clone().map(|segment| packet.segment_bytes(segment) as u64).sum();
        let mut head = std::mem::take(&mut self.head);
        let rest = packet.part(stretch.segments.clone(), &mut head);
        let packets = stretch.segments.len() as u64;
        if due_ns <= now_ns {
            self.shaper.left(wire_bytes);
            self.deliver((&head, rest), first, packets, wire_bytes, (now_ns, copies), to);
        } else {
            let bytes = [head.as_slice(), rest].concat();
            self.counters.held += packets;
            self.held.hold(due_ns, copies, (first, packets), wire_bytes, bytes);
        }
        self.head = head;
    }

    /// Writes what is due.
    pub(crate) fn release(&mut self, now_ns: u64, to: &Tun) {
        while let Some(packet) = self.held.take_due(now_ns) {
            let late_ns = now_ns - packet.due_ns;
            self.lateness.add(late_ns, packet.packets);
            self.counters.latest_ns = self.counters.latest_ns.max(late_ns);
            if late_ns > OVERRUN_NS {
                self.counters.overruns += packet.packets;
            }
            self.counters.held = self.counters.held.saturating_sub(packet.packets);
            self.shaper.left(packet.wire_bytes);
            let parts = (&[][..], packet.bytes.as_slice());
            let when = (now_ns, packet.copies);
            self.deliver(parts, packet.first, packet.packets, packet.wire_bytes, when, to);
        }
    }

    fn deliver(
        &mut self,
        (head, rest): (&[u8], &[u8]),
        first: u64,
        packets: u64,
        wire_bytes: u64,
        (now_ns, copies): (u64, u32),
        to: &Tun,
    ) {
        for _ in 0..copies {
            match to.write(head, rest) {
                Ok(()) => {
                    self.counters.delivered += packets;
                    self.counters.delivered_bytes += wire_bytes;
                }
                Err(_) => {
                    self.drops.add(first, packets, now_ns, Cause::Refused, &mut self.counters)
                }
            }
        }
    }
}
