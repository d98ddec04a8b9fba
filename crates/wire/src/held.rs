//! Packets that wait for their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Packets by when they leave; of those that leave at the same time, the first that came leaves first.
#[derive(Debug, Default)]
pub(crate) struct HeldPackets {
    packets: BinaryHeap<Reverse<HeldPacket>>,
    came: u64,
}

/// One of them.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeldPacket {
    pub(crate) due_ns: u64,
    came: u64,
    pub(crate) copies: u32,
    /// The number of the first, and how many on the wire, with how many bytes.
    pub(crate) first: u64,
    pub(crate) packets: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) bytes: Vec<u8>,
}

impl HeldPackets {
    pub(crate) fn hold(
        &mut self,
        due_ns: u64,
        copies: u32,
        (first, packets): (u64, u64),
        wire_bytes: u64,
        bytes: Vec<u8>,
    ) {
        self.came += 1;
        let came = self.came;
        let packet = HeldPacket { due_ns, came, copies, first, packets, wire_bytes, bytes };
        self.packets.push(Reverse(packet));
    }

    /// When the next one leaves.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.packets.peek().map(|packet| packet.0.due_ns)
    }

    /// The next one, where its time has come.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<HeldPacket> {
        self.next_due_ns().filter(|&due_ns| due_ns <= now_ns)?;
        self.packets.pop().map(|packet| packet.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_by_time_and_then_in_the_order_in_which_they_came() {
        let mut held = HeldPackets::default();
        for (due_ns, name) in [(20, b'a'), (10, b'b'), (20, b'c'), (10, b'd')] {
            held.hold(due_ns, 1, (1, 1), 1, vec![name]);
        }
        assert!(held.take_due(9).is_none());
        assert_eq!(held.next_due_ns(), Some(10));
        let mut left = Vec::new();
        while let Some(packet) = held.take_due(20) {
            left.extend(packet.bytes);
        }
        assert_eq!((left.as_slice(), held.next_due_ns()), (&b"bdac"[..], None));
    }
}
