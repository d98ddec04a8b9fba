//! Counts of a link, and the packets that it dropped.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::shaper::{Cause, Decided};

/// Who waits longer than this for a packet that was due sees an overrun of ours.
pub const OVERRUN_NS: u64 = 1_000_000;
/// Drops that are written down at most; what is more is counted.
const LONGEST_LOG: usize = 1 << 20;

/// One direction since it was configured or reset, in packets on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Counts of the packets that came, and of the decisions about them.
    #[serde(flatten)]
    pub decided: Decided,
    /// Pieces that the kernel handed over; fewer than packets where it left segmentation to us.
    pub pieces: u64,
    /// Packets dropped, by cause.
    pub dropped: BTreeMap<Cause, u64>,
    /// Packets written on the other side, duplicates too.
    pub delivered: u64,
    /// Bytes of them, from the IP header on.
    pub delivered_bytes: u64,
    /// Packets that are held now.
    pub held: u64,
    /// Packets that left more than a millisecond after they were due: the link could not keep up, or did not
    /// run.
    pub overruns: u64,
    /// So long after it was due, or less, half of the held packets left; within an eighth.
    pub late_p50_ns: u64,
    /// Delay after the due time within which 99 in 100 of the held packets left; within an eighth.
    pub late_p99_ns: u64,
    /// The latest that any left.
    pub latest_ns: u64,
    /// Drops that found no room in the log.
    pub not_logged: u64,
}

impl LinkCounters {
    /// Packets dropped for any cause.
    pub fn all_dropped(&self) -> u64 {
        self.dropped.values().sum()
    }
}

/// A packet that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedPacket {
    /// The first packet is number 1.
    pub number: u64,
    /// On `CLOCK_MONOTONIC`, when it came.
    pub at_ns: u64,
    /// Why.
    pub cause: Cause,
}

/// How late packets left: how many, by eighths of powers of two nanoseconds.
#[derive(Debug)]
pub(crate) struct Lateness {
    packets: [u64; 64 * PARTS],
}

const PARTS: usize = 8;

impl Lateness {
    pub(crate) fn new() -> Lateness {
        Lateness { packets: [0; 64 * PARTS] }
    }

    pub(crate) fn add(&mut self, late_ns: u64, packets: u64) {
        self.packets[Lateness::place(late_ns)] += packets;
    }

    fn place(late_ns: u64) -> usize {
        let power = late_ns.max(1).ilog2();
        match power.checked_sub(PARTS.ilog2()) {
            None => late_ns as usize,
            // The highest bit says which power, the three behind it which eighth.
            Some(shift) => (shift as usize + 1) * PARTS + (late_ns >> shift) as usize - PARTS,
        }
    }

    /// No more than this for so large a share of them; 0 where there were none.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let all: u64 = self.packets.iter().sum();
        let mut left = (all as f64 * share).ceil() as u64;
        for (place, packets) in self.packets.iter().enumerate() {
            if *packets >= left && left > 0 {
                let shift = (place / PARTS).saturating_sub(1);
                let first = if place < PARTS { place } else { PARTS + place % PARTS };
                // Not `(first + 1) << shift`: that overflows in the last place.
                return (first as u64) << shift | ((1 << shift) - 1);
            }
            left = left.saturating_sub(*packets);
        }
        0
    }
}

/// The drops of one direction, in order.
#[derive(Debug, Default)]
pub(crate) struct DropLog {
    pub(crate) packets: Vec<DroppedPacket>,
    pub(crate) is_kept: bool,
}

impl DropLog {
    /// Writes down so many packets from `first` on.
    pub(crate) fn add(
        &mut self,
        first: u64,
        count: u64,
        at_ns: u64,
        cause: Cause,
        counters: &mut LinkCounters,
    ) {
        *counters.dropped.entry(cause).or_default() += count;
        if !self.is_kept {
            return;
        }
        let room = LONGEST_LOG - self.packets.len();
        let logged = count.min(room as u64);
        counters.not_logged += count - logged;
        self.packets.extend((first..first + logged).map(|number| DroppedPacket {
            number,
            at_ns,
            cause,
        }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_share_was_no_later_than_its_quantile() {
        let mut lateness = Lateness::new();
        assert_eq!(lateness.quantile(0.5), 0);
        lateness.add(0, 1);
        assert_eq!(lateness.quantile(1.0), 0);
        lateness.add(1_000, 98);
        lateness.add(1_000_000, 1);
        assert!((1_000..1_125).contains(&lateness.quantile(0.5)));
        assert!((1_000..1_125).contains(&lateness.quantile(0.99)));
        assert!((1_000_000..1_125_000).contains(&lateness.quantile(1.0)));
        lateness.add(u64::MAX, 1);
        assert_eq!(lateness.quantile(1.0), u64::MAX);
    }

    proptest! {
        #[test]
        fn any_lateness_has_its_place(late_ns in any::<u64>(), shift in 0_u32..64) {
            let late_ns = late_ns >> shift;
            let mut lateness = Lateness::new();
            lateness.add(late_ns, 1);
            let found = lateness.quantile(0.5);
            prop_assert!(found >= late_ns && found - late_ns <= late_ns / 8, "{late_ns}: {found}");
        }
    }

    #[test]
    fn a_log_that_is_full_counts_on() {
        let mut counters = LinkCounters::default();
        let mut log = DropLog { is_kept: true, ..DropLog::default() };
        log.add(1, LONGEST_LOG as u64 + 5, 7, Cause::Random, &mut counters);
        log.add(LONGEST_LOG as u64 + 6, 2, 8, Cause::Random, &mut counters);
        assert_eq!((log.packets.len(), counters.not_logged), (LONGEST_LOG, 7));
        assert_eq!(counters.all_dropped(), LONGEST_LOG as u64 + 7);
    }
}
