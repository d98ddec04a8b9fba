//! Decisions about each packet of one direction, and their times: no clock and no devices, only
//! numbers.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::choice::{Choice, Chooser};
use crate::impairment::Impairment;

/// Under a rate limit, what leaves within this time leaves together, when the last of it does: a receiver
/// that takes interrupts gets packets in such lots, too.
const TOGETHER_NS: u64 = 100_000;

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its number.
    Number,
    /// Chance, for it alone.
    Random,
    /// Chance, for all of a burst.
    Burst,
    /// The queue of the rate limit was full: what a real link does, too.
    Queue,
    /// The memory for held packets was full: this is no property of any link, and spoils what is measured.
    Memory,
    /// The kernel did not take it on the other side.
    Refused,
}

/// Decision about some consecutive packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// They are gone.
    Dropped(Cause),
    /// They leave at this time, so often.
    Leaves {
        /// On the clock that the shaper is told.
        due_ns: u64,
        /// 2 for those that are duplicated.
        copies: u32,
    },
}

/// Some packets of a piece that stands for several, and what becomes of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// Which of the piece.
    pub segments: Range<u32>,
    /// Decision about each of them.
    pub decision: Decision,
}

/// Decisions of a shaper so far, in packets on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Packets that entered.
    pub packets: u64,
    /// Bytes of them, from the IP header on.
    pub bytes: u64,
    /// Held for the delay, or for being late.
    pub delayed: u64,
    /// Arrived twice.
    pub duplicated: u64,
    /// Arrived late, so that others could pass.
    pub reordered: u64,
}

/// One direction of a link.
///
/// ```
/// use wire::{Impairment, Decision, Shaper};
///
/// let loss = vec!["1@2%3".parse().unwrap()];
/// let mut shaper = Shaper::new(&Impairment { loss, delay_ns: 5, ..Impairment::default() });
/// let mut stretches = Vec::new();
/// // A piece of 4 packets of 1500 bytes comes at time 100.
/// shaper.offer(100, 4, |_| 1500, &mut stretches);
/// let dropped: Vec<_> =
///     stretches.iter().filter(|s| matches!(s.decision, Decision::Dropped(_))).collect();
/// assert_eq!(dropped[0].segments, 1..2);
/// assert_eq!(stretches[2].decision, Decision::Leaves { due_ns: 105, copies: 1 });
/// assert_eq!(stretches[2].segments, 2..4);
/// ```
#[derive(Debug)]
pub struct Shaper {
    impairment: Impairment,
    loss: Vec<Chooser>,
    duplicated: Option<Chooser>,
    reordered: Option<Chooser>,
    rate: Option<Rate>,
    decided: Decided,
    held_bytes: u64,
    /// The latest time that any packet in order leaves: none overtakes it.
    last_due_ns: u64,
}

impl Shaper {
    /// Which begins to count, and to draw from the seed.
    pub fn new(impairment: &Impairment) -> Shaper {
        Shaper::at(&Medium::default(), impairment)
    }

    /// Creates a shaper at a hub, which it uses if the impairment is
    /// [`shared`](Impairment::shared).
    pub fn at(hub: &Medium, impairment: &Impairment) -> Shaper {
        let mut stream = 0;
        let mut chooser = |choice: &Choice| {
            stream += 1;
            Chooser::new(choice, impairment.seed, stream)
        };
        Shaper {
            loss: impairment.loss.iter().map(&mut chooser).collect(),
            duplicated: impairment.duplicated.as_ref().map(&mut chooser),
            reordered: impairment.reordered.as_ref().map(&mut chooser),
            rate: impairment.rate_bits_per_s.map(|rate| {
                let port = impairment.shared.then(|| Port::at(hub, impairment));
                Rate::new(rate, impairment.queue_bytes(), port)
            }),
            decided: Decided::default(),
            held_bytes: 0,
            last_due_ns: 0,
            impairment: impairment.clone(),
        }
    }

    /// Returns the decisions so far.
    pub fn decided(&self) -> &Decided {
        &self.decided
    }

    /// Decides about a piece of `segments` packets that comes now; `bytes_of` returns the bytes of
    /// each. Packets with the same decision are put together.
    pub fn offer(
        &mut self,
        now_ns: u64,
        segments: u32,
        bytes_of: impl Fn(u32) -> usize,
        stretches: &mut Vec<Stretch>,
    ) {
        stretches.clear();
        // When the first packet of the last stretch leaves.
        let mut first_due_ns = 0;
        for segment in 0..segments {
            let decision = self.decide(now_ns, bytes_of(segment) as u64);
            let last = stretches.last_mut();
            match (last, decision) {
                (Some(last), _) if last.decision == decision => last.segments.end = segment + 1,
                (
                    Some(Stretch {
                        segments,
                        decision: Decision::Leaves { due_ns, copies: before },
                    }),
                    Decision::Leaves { due_ns: due, copies },
                ) if *before == copies
                    && self.reordered.is_none()
                    && due.saturating_sub(first_due_ns) < TOGETHER_NS =>
                {
                    (segments.end, *due_ns) = (segment + 1, due);
                }
                _ => {
                    if let Decision::Leaves { due_ns, .. } = decision {
                        first_due_ns = due_ns;
                    }
                    stretches.push(Stretch { segments: segment..segment + 1, decision });
                }
            }
        }
    }

    /// Packets that were held have left.
    pub fn left(&mut self, bytes: u64) {
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }

    fn decide(&mut self, now_ns: u64, bytes: u64) -> Decision {
        self.decided.packets += 1;
        self.decided.bytes += bytes;
        let number = self.decided.packets;
        if let Some(cause) = self.lost(number) {
            return Decision::Dropped(cause);
        }
        // All are asked for every packet that is left, so that what one takes depends on no other.
        let is_twice = self.duplicated.as_mut().is_some_and(|chooser| chooser.takes(number));
        let is_late = self.reordered.as_mut().is_some_and(|chooser| chooser.takes(number));
        if self.held_bytes + bytes > self.impairment.held_bytes() {
            return Decision::Dropped(Cause::Memory);
        }
        let mut due_ns = now_ns;
        if let Some(rate) = &mut self.rate {
            match rate.departure(now_ns, bytes + u64::from(self.impairment.overhead_bytes)) {
                Some(departure_ns) => due_ns = departure_ns,
                None => return Decision::Dropped(Cause::Queue),
            }
        }
        let delayed = &self.impairment.delayed;
        let is_delayed =
            self.impairment.delay_ns > 0 && delayed.as_ref().is_none_or(|these| these.mean(number));
        if is_delayed {
            due_ns += self.impairment.delay_ns;
        }
        due_ns = due_ns.max(self.last_due_ns);
        if is_late {
            due_ns += self.impairment.late_ns;
        } else {
            self.last_due_ns = due_ns;
        }
        self.held_bytes += bytes;
        self.decided.delayed += u64::from(is_delayed || is_late);
        self.decided.duplicated += u64::from(is_twice);
        self.decided.reordered += u64::from(is_late);
        Decision::Leaves { due_ns, copies: 1 + u32::from(is_twice) }
    }

    fn lost(&mut self, number: u64) -> Option<Cause> {
        let mut cause = None;
        for chooser in &mut self.loss {
            if chooser.takes(number) && cause.is_none() {
                cause = Some(match chooser.choice() {
                    Choice::Numbered(_) => Cause::Number,
                    Choice::Random { .. } => Cause::Random,
                    Choice::Bursts { .. } => Cause::Burst,
                });
            }
        }
        cause
    }
}

/// Where one packet is sent after the other, whoever sends it: a hub, to the wires that are given the same.
/// Each clone is the same medium.
#[derive(Clone, Debug, Default)]
pub struct Medium(Arc<Mutex<Transmitter>>);

/// Until when it sends what it has, and what of a nanosecond was left over, in parts of bits per second.
#[derive(Debug, Default)]
struct Transmitter {
    busy_until_ns: u64,
    left_over: u64,
    third_parties: Option<ThirdParties>,
}

/// Frames of others at a hub, which come at random moments.
#[derive(Debug)]
struct ThirdParties {
    chance: ChaCha8Rng,
    next_ns: u64,
    /// When each of their frames is sent that waits.
    waiting: VecDeque<u64>,
}

/// A frame of a third party: the longest of Ethernet, with its preamble and gap.
const FRAME_BYTES: u64 = 1538;
/// Most frames of third parties that wait; the next ones are lost.
const MOST_WAITING: usize = 100;
/// Time after which frames of third parties are forgotten: they were sent long ago.
const REMEMBERED_NS: u64 = 1_000_000_000;

/// A link that sends one packet after the other.
#[derive(Debug)]
struct Rate {
    bits_per_s: u64,
    queue_bytes: u64,
    transmitter: Transmitter,
    /// Where it has none of its own.
    hub: Option<Port>,
}

/// A direction of a wire at a hub.
#[derive(Debug)]
struct Port {
    medium: Medium,
    contending_pct: u32,
    seed: u64,
    /// When each of its own packets is sent that waits, and how long it is.
    waiting: VecDeque<(u64, u64)>,
    waiting_bytes: u64,
}

impl Rate {
    fn new(bits_per_s: u64, queue_bytes: u64, hub: Option<Port>) -> Rate {
        Rate { bits_per_s, queue_bytes, transmitter: Transmitter::default(), hub }
    }

    /// When the last bit of a packet that comes now is sent; `None` where it finds no room in the queue.
    fn departure(&mut self, now_ns: u64, bytes: u64) -> Option<u64> {
        if let Some(port) = &mut self.hub {
            return port.departure(now_ns, bytes, self.bits_per_s, self.queue_bytes);
        }
        let backlog_ns = u128::from(self.transmitter.busy_until_ns.saturating_sub(now_ns));
        let backlog_bytes = backlog_ns * u128::from(self.bits_per_s) / 8_000_000_000;
        // Whatever its size, a packet is sent where nothing waits.
        if backlog_bytes > 0 && backlog_bytes + u128::from(bytes) > u128::from(self.queue_bytes) {
            return None;
        }
        Some(self.transmitter.send(now_ns, bytes, self.bits_per_s))
    }
}

impl Port {
    fn at(hub: &Medium, Impairment { contending_pct, seed, .. }: &Impairment) -> Port {
        let (contending_pct, seed) = (*contending_pct, *seed);
        let (waiting, waiting_bytes) = (VecDeque::new(), 0);
        Port { medium: hub.clone(), contending_pct, seed, waiting, waiting_bytes }
    }

    /// Returns the time of departure. Packets that others sent earlier go first, but take nothing
    /// of this port's queue.
    fn departure(
        &mut self,
        now_ns: u64,
        bytes: u64,
        bits_per_s: u64,
        queue_bytes: u64,
    ) -> Option<u64> {
        while self.waiting.front().is_some_and(|(sent_ns, _)| *sent_ns <= now_ns) {
            let sent = self.waiting.pop_front();
            self.waiting_bytes -= sent.map_or(0, |(_, bytes)| bytes);
        }
        if !self.waiting.is_empty() && self.waiting_bytes + bytes > queue_bytes {
            return None;
        }
        // Numbers, which are whole whoever died meanwhile.
        let mut transmitter = self.medium.0.lock().unwrap_or_else(PoisonError::into_inner);
        if self.contending_pct > 0 {
            let share = f64::from(self.contending_pct) / 100.0;
            transmitter.contend(now_ns, bits_per_s, share, self.seed);
        }
        let departure_ns = transmitter.send(now_ns, bytes, bits_per_s);
        self.waiting.push_back((departure_ns, bytes));
        self.waiting_bytes += bytes;
        Some(departure_ns)
    }
}

impl Transmitter {
    /// Sends what third parties had to send until now. They want this share of the rate.
    fn contend(&mut self, now_ns: u64, bits_per_s: u64, share: f64, seed: u64) {
        let mean_ns = FRAME_BYTES as f64 * 8e9 / bits_per_s as f64 / share;
        let mut others = self.third_parties.take().unwrap_or_else(|| ThirdParties {
            chance: ChaCha8Rng::seed_from_u64(seed),
            next_ns: now_ns,
            waiting: VecDeque::new(),
        });
        // Moments at random have no memory, so any may be the first.
        others.next_ns = others.next_ns.max(now_ns.saturating_sub(REMEMBERED_NS));
        while others.next_ns <= now_ns {
            while others.waiting.front().is_some_and(|sent_ns| *sent_ns <= others.next_ns) {
                others.waiting.pop_front();
            }
            if others.waiting.len() < MOST_WAITING {
                others.waiting.push_back(self.send(others.next_ns, FRAME_BYTES, bits_per_s));
            }
            let until_next = -mean_ns * (1.0 - others.chance.random::<f64>()).ln();
            others.next_ns += (until_next as u64).max(1);
        }
        self.third_parties = Some(others);
    }

    /// When the last bit is sent.
    fn send(&mut self, now_ns: u64, bytes: u64, bits_per_s: u64) -> u64 {
        if self.busy_until_ns <= now_ns {
            (self.busy_until_ns, self.left_over) = (now_ns, 0);
        }
        let parts = u128::from(bytes) * 8_000_000_000 + u128::from(self.left_over);
        self.busy_until_ns += (parts / u128::from(bits_per_s)) as u64;
        self.left_over = (parts % u128::from(bits_per_s)) as u64;
        self.busy_until_ns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// When each packet of 1500 bytes leaves, of those that do, by number; they come `every_ns`.
    fn leaving(impairment: &Impairment, packets: u64, every_ns: u64) -> Vec<(u64, u64)> {
        impairment.check().unwrap();
        let mut shaper = Shaper::new(impairment);
        let mut stretches = Vec::new();
        let mut leaving = Vec::new();
        for number in 1..=packets {
            shaper.offer(number * every_ns, 1, |_| 1500, &mut stretches);
            if let Decision::Leaves { due_ns, copies } = stretches[0].decision {
                leaving.extend((0..copies).map(|_| (number, due_ns)));
            }
        }
        leaving
    }

    fn impairment(json: &str) -> Impairment {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_link_that_does_nothing_counts() {
        let mut shaper = Shaper::new(&Impairment::default());
        let mut stretches = Vec::new();
        shaper.offer(7, 40, |segment| if segment == 39 { 100 } else { 1500 }, &mut stretches);
        let decision = Decision::Leaves { due_ns: 7, copies: 1 };
        assert_eq!(stretches, [Stretch { segments: 0..40, decision }]);
        let expected = Decided { packets: 40, bytes: 39 * 1500 + 100, ..Decided::default() };
        assert_eq!(*shaper.decided(), expected);
    }

    #[test]
    fn some_are_delayed_and_those_behind_them_wait_for_them() {
        let found = leaving(&impairment(r#"{"delay_ns": 1000, "delayed": "2@3%10"}"#), 7, 400);
        let due: Vec<u64> = found.iter().map(|(_, due)| *due).collect();
        assert_eq!(due, [400, 800, 2200, 2600, 2600, 2600, 2800]);
    }

    #[test]
    fn those_that_are_late_are_passed_by_others() {
        let found = leaving(&impairment(r#"{"reordered": "1@2%4", "late_ns": 1000}"#), 5, 400);
        let due: Vec<u64> = found.iter().map(|(_, due)| *due).collect();
        assert_eq!(due, [400, 1800, 1200, 1600, 2000]);
    }

    #[test]
    fn duplicates_arrive_together_and_are_counted() {
        let found = leaving(&impairment(r#"{"duplicated": "1@2%3"}"#), 5, 10);
        let numbers: Vec<u64> = found.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 2, 2, 3, 4, 5, 5]);
    }

    #[test]
    fn a_rate_is_met_to_the_nanosecond_and_its_queue_loses_what_is_too_much() {
        // 1500 bytes take 12 000/7 ns each.
        let limited = r#"{"rate_bits_per_s": 7000000000, "queue_bytes": 15000}"#;
        let found = leaving(&impairment(limited), 10, 0);
        assert_eq!(found.last(), Some(&(10, 12_000 * 10 / 7)));
        let found = leaving(&impairment(limited), 100, 0);
        assert_eq!(found.len(), 10);
        // Twice as many as can be sent come: half of them are lost, and the rate is that of the link.
        let found = leaving(&impairment(limited), 70_000, 857);
        assert!((found.len() as f64 / 35_000.0 - 1.0).abs() < 0.001, "{}", found.len());
        // A packet that is larger than the queue is sent where nothing waits.
        let found = leaving(
            &impairment(r#"{"rate_bits_per_s": 12000000, "queue_bytes": 1}"#),
            3,
            1_000_000,
        );
        assert_eq!(found, [(1, 2_000_000), (2, 3_000_000), (3, 4_000_000)]);
    }

    /// Four ports that always have something to send, of which one has larger packets.
    #[test]
    fn the_ports_of_a_hub_have_its_rate_together_and_each_has_its_queue() {
        let shared = r#"{"rate_bits_per_s": 10000000, "queue_bytes": 15000, "shared": true}"#;
        let medium = Medium::default();
        let mut ports = [(); 4].map(|()| Shaper::at(&medium, &impairment(shared)));
        let mut stretches = Vec::new();
        let (mut last_ns, mut sent, mut of_each) = (0, 0, [0; 4]);
        for now_ns in (0..1_000_000_000).step_by(100_000) {
            for (port, shaper) in ports.iter_mut().enumerate() {
                let bytes = if port == 3 { 1500 } else { 500 };
                shaper.offer(now_ns, 1, |_| bytes, &mut stretches);
                if let Decision::Leaves { due_ns, .. } = stretches[0].decision {
                    assert!(due_ns >= last_ns + bytes as u64 * 800, "two sent at the same time");
                    (last_ns, sent) = (due_ns, sent + bytes as u64);
                    of_each[port] += bytes;
                }
            }
        }
        // No more than its rate, nor less as long as something waits.
        let could_ns = sent * 800;
        assert!(could_ns <= last_ns && last_ns - could_ns <= 1_000_000, "{could_ns} {last_ns}");
        assert!(of_each.iter().all(|bytes| *bytes > 100_000), "{of_each:?}");
        // One alone has all of it.
        let mut alone = Shaper::at(&Medium::default(), &impairment(shared));
        (0..10).for_each(|_| alone.offer(0, 1, |_| 1500, &mut stretches));
        assert_eq!(stretches[0].decision, Decision::Leaves { due_ns: 12_000_000, copies: 1 });
        alone.offer(0, 1, |_| 1500, &mut stretches);
        assert_eq!(stretches[0].decision, Decision::Dropped(Cause::Queue));
    }

    #[test]
    fn third_parties_take_their_share_of_a_hub() {
        // Each packet takes 1.2 ms, and one comes every 12 ms: a tenth of the rate.
        let mean_wait_ms = |contending_pct: u32| {
            let hub = format!(
                r#"{{"rate_bits_per_s": 10000000, "shared": true, "contending_pct": {contending_pct}}}"#
            );
            let found = leaving(&impairment(&hub), 10_000, 12_000_000);
            assert_eq!(found.len(), 10_000);
            let waits = found.iter().map(|(number, due)| due - number * 12_000_000 - 1_200_000);
            waits.sum::<u64>() as f64 / 1e6 / 10_000.0
        };
        assert_eq!(mean_wait_ms(0), 0.0);
        // By the formula for random arrivals, 1.23 ms · ρ / (2 (1 − ρ)): 0.6 ms and 2.5 ms for others alone.
        let [half, more] = [50, 80].map(mean_wait_ms);
        assert!((0.5..1.0).contains(&half) && (2.0..6.0).contains(&more), "{half} {more}");
        // A sender that never stops has the rest.
        let hub = r#"{"rate_bits_per_s": 10000000, "shared": true, "contending_pct": 50}"#;
        let sent = leaving(&impairment(hub), 100_000, 1_200_000).len() as f64 / 100_000.0;
        assert!((0.4..0.7).contains(&sent), "{sent}");
    }

    #[test]
    fn under_a_rate_a_piece_is_cut_where_its_parts_are_due_at_different_times() {
        let mut shaper = Shaper::new(&impairment(r#"{"rate_bits_per_s": 1000000000}"#));
        let mut stretches = Vec::new();
        shaper.offer(0, 40, |_| 1500, &mut stretches);
        // 12 µs each: the first is due at 12 µs, and with it all before 112 µs.
        assert_eq!(stretches[0].segments, 0..9);
        assert_eq!(stretches[0].decision, Decision::Leaves { due_ns: 108_000, copies: 1 });
        let last = stretches.last().unwrap();
        assert_eq!(last.decision, Decision::Leaves { due_ns: 480_000, copies: 1 });
    }

    #[test]
    fn what_memory_cannot_hold_is_lost_and_called_so() {
        let mut shaper = Shaper::new(&impairment(r#"{"delay_ns": 1000, "held_bytes": 4500}"#));
        let mut stretches = Vec::new();
        shaper.offer(0, 4, |_| 1500, &mut stretches);
        assert_eq!(stretches[1].segments, 3..4);
        assert_eq!(stretches[1].decision, Decision::Dropped(Cause::Memory));
        shaper.left(4500);
        shaper.offer(0, 3, |_| 1500, &mut stretches);
        assert_eq!(stretches.len(), 1);
    }

    proptest! {
        /// Tests that the same packets are lost whether they come one by one or in pieces, and that
        /// all are accounted for.
        #[test]
        fn offload_changes_nothing_that_is_lost(
            pieces in prop::collection::vec(1_u32..50, 1..60),
            loss in prop::sample::select(vec!["1@200%400+3@397%400", "1@1%2", "10%", "5%x4"]),
        ) {
            let loss = vec![loss.parse().unwrap(), "2%".parse().unwrap()];
            let impairment = Impairment { loss, seed: 3, ..Impairment::default() };
            let (mut whole, mut single) = (Shaper::new(&impairment), Shaper::new(&impairment));
            let mut stretches = Vec::new();
            for segments in pieces {
                let mut one_by_one = Vec::new();
                for _ in 0..segments {
                    single.offer(0, 1, |_| 1500, &mut stretches);
                    one_by_one.push(stretches[0].decision);
                }
                whole.offer(0, segments, |_| 1500, &mut stretches);
                let together = stretches.iter().flat_map(|s| s.segments.clone().map(|_| s.decision));
                prop_assert_eq!(together.collect::<Vec<_>>(), one_by_one);
                let ends = stretches.windows(2).all(|pair| {
                    pair[0].segments.end == pair[1].segments.start && pair[0].decision != pair[1].decision
                });
                prop_assert!(ends);
            }
            prop_assert_eq!(whole.decided(), single.decided());
        }

        /// Whatever is asked for, nothing leaves before it came, and what is in order stays so.
        #[test]
        fn order_is_kept(
            delay_ns in 0_u64..5000, every_ns in 0_u64..3000, rate in 1_000_000_u64..10_000_000_000,
        ) {
            let impairment = Impairment {
                delay_ns: delay_ns + 1,
                delayed: Some("3@2%7".parse().unwrap()),
                rate_bits_per_s: Some(rate),
                ..Impairment::default()
            };
            let found = leaving(&impairment, 100, every_ns);
            prop_assert!(found.windows(2).all(|pair| pair[0].1 <= pair[1].1));
            prop_assert!(found.iter().all(|(number, due)| *due >= number * every_ns));
        }
    }
}
