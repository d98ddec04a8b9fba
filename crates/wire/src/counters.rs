//! What a link counted, and which packets it dropped.

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
    /// What came, and what was decided about it.
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
    /// The most that any left after it was due.
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
