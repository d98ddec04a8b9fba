//! Links two network namespaces in user space, with exact delay, rate, loss, reordering and duplication.
//!
//! The crate does not depend on Weighbridge; Weighbridge's testbed uses it. Start with [`Wire`].
//!
//! Each side is a TUN device. A [`Wire`] reads from one and writes to the other. The kernel's `netem` does
//! more in some respects, but many kernels lack it, it cannot drop packets by number, and it counts a GSO
//! super-packet as one packet. Here each segment counts as one packet. A super-packet is cut only if one of
//! its segments is dropped or leaves at another time.
//! So a link that does nothing carries tens of Gbit/s, and a link that drops the 200th packet drops exactly
//! that packet, with offload or without.
//!
//! - [`Impairment`] says what happens in one direction; [`Choice`] and [`Patterns`] say to which packets.
//! - [`Wire`] carries packets between two [`Tun`] devices, in a thread of its own; [`LinkCounters`]
//!   count what it did.
//! - [`Shaper`] decides, without a clock or devices; [`Packet`] knows how many packets a piece stands for.
//! - [`Namespace`] and [`Interfaces`] make hosts for it, without the program `ip`, and without root where
//!   user namespaces are allowed.
//!
//! Computes the fate of the first 800 packets, without any link:
//!
//! ```
//! use wire::{Impairment, Decision, Shaper};
//!
//! let impairment: Impairment =
//!     serde_json::from_str(r#"{"loss": ["1@200%400+3@397%400"], "delay_ns": 10000000}"#)?;
//! let mut shaper = Shaper::new(&impairment);
//! let mut stretches = Vec::new();
//! let mut arrived = Vec::new();
//! for number in 1..=800_u64 {
//!     shaper.offer(number * 1000, 1, |_| 1500, &mut stretches);
//!     if let Decision::Leaves { due_ns, .. } = stretches[0].decision {
//!         arrived.push((number, due_ns));
//!     }
//! }
//! assert_eq!(arrived.len(), 800 - 8);
//! assert_eq!(arrived[199], (201, 10_201_000));
//! # Ok::<(), serde_json::Error>(())
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(missing_docs)]

mod choice;
mod counters;
mod held;
mod impairment;
mod interfaces;
mod lane;
mod link;
mod namespace;
mod netlink;
mod packet;
mod pattern;
mod real_time;
mod shaper;
mod tun;

pub use choice::{Choice, ChoiceError};
pub use counters::{DroppedPacket, LinkCounters, OVERRUN_NS};
pub use impairment::{Impairment, ImpairmentError, MAX_DELAY_NS};
pub use interfaces::{InterfaceStatistics, Interfaces, MacAddress, silence_ipv6};
pub use link::{End, Scheduling, Wire};
pub use namespace::Namespace;
pub use packet::{Packet, VNET_HEADER};
pub use pattern::{Pattern, PatternError, Patterns};
pub use real_time::{be_real_time, lock_memory, make_real_time, stay_on};
pub use shaper::{Cause, Decided, Decision, Medium, Shaper, Stretch};
pub use tun::{Offload, Tun};
