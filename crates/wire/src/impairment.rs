//! Effects of a link on the packets of one direction.

use serde::{Deserialize, Serialize};

use crate::choice::Choice;
use crate::pattern::Patterns;

/// Third parties at a hub want at most so much.
const MOST_CONTENDING_PCT: u32 = 90;
/// The longest delay, and the longest lateness of a reordered packet.
pub const MAX_DELAY_NS: u64 = 1_000_000_000;
/// Held packets of one direction take no more memory than this, unless another limit is given.
const USUAL_HELD_BYTES: u64 = 256 << 20;
const SMALLEST_QUEUE_BYTES: u64 = 64 << 10;

/// Why a link cannot be so.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ImpairmentError {
    /// More than a second.
    #[error("{what} of {ns} ns is too long: a link holds packets for at most one second")]
    TooLate {
        /// Which of the delays.
        what: &'static str,
        /// Requested time, in ns.
        ns: u64,
    },
    /// No packet could ever pass.
    #[error("a rate of {0} bit/s must be from 1000 to 1000000000000")]
    Rate(u64),
    /// A part that has no meaning without another.
    #[error("{0}")]
    Alone(&'static str),
}

/// Impairment of the packets of one direction, in this order: some are lost; the others wait for
/// the rate limit, and then for the delay. The default link does nothing but count.
///
/// All numbers of packets are of packets *on the wire*. A piece of 64 KB that the kernel hands over
/// for segmentation counts as the packets that it stands for.
///
/// ```
/// let slow: wire::Impairment = serde_json::from_str(
///     r#"{"delay_ns": 10000000, "loss": ["1@200%400+3@397%400", "0.1%x4"], "rate_bits_per_s": 1000000000}"#,
/// )?;
/// assert_eq!(slow.check(), Ok(()));
/// assert_eq!(slow.queue_bytes(), 12_500_000); // what is sent in 100 ms
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Impairment {
    /// How long a packet is held, up to a second.
    pub delay_ns: u64,
    /// Only these are held so long, and those behind them wait for them, as order is kept. Otherwise all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed: Option<Patterns>,
    /// Choices of lost packets; any of them loses a packet. A packet is lost by the first choice
    /// that takes it. Each choice is asked for each packet, so that no choice depends on the
    /// others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loss: Vec<Choice>,
    /// These arrive twice, one right behind the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicated: Option<Choice>,
    /// These arrive `late_ns` later than their turn is, and others pass them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordered: Option<Choice>,
    /// How much later, up to a second.
    pub late_ns: u64,
    /// Bits of IP packets per second, with `overhead_bytes` for each packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bits_per_s: Option<u64>,
    /// Bytes of the rate that each packet takes besides its own; Ethernet has 38.
    pub overhead_bytes: u32,
    /// True if a transmission has the medium for itself, as on a hub. Of all directions with this
    /// flag, on all wires with the same [`Medium`](crate::Medium), one sends at a time. Without it,
    /// each direction has a transmitter of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Per cent of the rate that frames of third parties on the hub want, from 0 to 90. They come at random
    /// moments, each of 1500 bytes and Ethernet's 38, and wait their turn as all packets do.
    #[serde(skip_serializing_if = "is_zero")]
    pub contending_pct: u32,
    /// How much waits for the rate before packets are lost; by default what is sent in 100 ms, at least 64
    /// KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// How much memory holds packets before they are lost; by default 256 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_bytes: Option<u64>,
    /// Seed of all random decisions.
    pub seed: u64,
    /// True if each drop is written down.
    pub logs_drops: bool,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Impairment {
    /// Checks that a link can have this impairment.
    ///
    /// # Errors
    /// Returns the impossible property.
    pub fn check(&self) -> Result<(), ImpairmentError> {
        for (what, ns) in [("a delay", self.delay_ns), ("a lateness", self.late_ns)] {
            if ns > MAX_DELAY_NS {
                return Err(ImpairmentError::TooLate { what, ns });
            }
        }
        if let Some(rate) =
            self.rate_bits_per_s.filter(|rate| !(1_000..=10_u64.pow(12)).contains(rate))
        {
            return Err(ImpairmentError::Rate(rate));
        }
        let alone = |is_so, what| if is_so { Err(ImpairmentError::Alone(what)) } else { Ok(()) };
        alone(
            self.reordered.is_some() && self.late_ns == 0,
            "`reordered` needs `late_ns`: by how much the packets arrive late",
        )?;
        alone(
            self.delayed.is_some() && self.delay_ns == 0,
            "`delayed` needs `delay_ns`: by how much the packets are delayed",
        )?;
        alone(
            self.shared && self.rate_bits_per_s.is_none(),
            "a shared medium needs a rate: `rate_bits_per_s` is missing",
        )?;
        alone(
            self.contending_pct > 0 && !self.shared,
            "`contending_pct` needs `shared`: third parties send on a hub",
        )?;
        alone(
            self.contending_pct > MOST_CONTENDING_PCT,
            "`contending_pct` is more than 90: third parties would leave nothing",
        )?;
        alone(
            self.queue_bytes.is_some() && self.rate_bits_per_s.is_none(),
            "a queue needs a rate: `rate_bits_per_s` is missing",
        )
    }

    /// How much may wait for the rate.
    pub fn queue_bytes(&self) -> u64 {
        let in_100_ms = self.rate_bits_per_s.unwrap_or(0) / 80;
        self.queue_bytes.unwrap_or(in_100_ms.max(SMALLEST_QUEUE_BYTES))
    }

    /// How much memory may hold packets.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.unwrap_or(USUAL_HELD_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_link_can_be_is_refused() {
        let refused = |impairment: Impairment| impairment.check().unwrap_err().to_string();
        let usual = Impairment::default;
        assert_eq!(usual().check(), Ok(()));
        assert!(
            refused(Impairment { delay_ns: 1_000_000_001, ..usual() }).starts_with("a delay of")
        );
        assert!(
            refused(Impairment { rate_bits_per_s: Some(1), ..usual() })
                .starts_with("a rate of 1 bit/s")
        );
        let reordered = Some("1%".parse().unwrap());
        assert!(refused(Impairment { reordered, ..usual() }).contains("late_ns"));
        let delayed = Some("1@1%2".parse().unwrap());
        assert!(refused(Impairment { delayed, ..usual() }).contains("delay_ns"));
        assert!(
            refused(Impairment { queue_bytes: Some(1), ..usual() }).contains("rate_bits_per_s")
        );
        assert!(refused(Impairment { shared: true, ..usual() }).contains("rate_bits_per_s"));
        let contending = |shared, contending_pct| {
            let rate_bits_per_s = Some(10_000_000);
            refused(Impairment { rate_bits_per_s, shared, contending_pct, ..usual() })
        };
        assert!(contending(false, 30).contains("needs `shared`"));
        assert!(contending(true, 91).contains("more than 90"));
    }

    #[test]
    fn it_crosses_a_pipe_and_what_is_not_known_is_refused() {
        let impairment = Impairment {
            delay_ns: 5,
            delayed: Some("2@1%9".parse().unwrap()),
            loss: vec!["1@2%3".parse().unwrap(), "0.5%".parse().unwrap()],
            rate_bits_per_s: Some(1_000_000),
            ..Impairment::default()
        };
        let text = serde_json::to_string(&impairment).unwrap();
        assert_eq!(serde_json::from_str::<Impairment>(&text).unwrap(), impairment);
        assert!(serde_json::from_str::<Impairment>(r#"{"delay": 5}"#).is_err());
    }
}
