//! A link between two network namespaces, in user space: delay, rate, loss, reordering and duplication of
//! packets, each exactly as asked for.
//!
//! Each side is a TUN device. A [`Wire`] reads from one and writes to the other. The kernel's `netem` does
//! more in some respects, but it is missing from many kernels, its loss has no numbers, and it counts what
//! the kernel sends in one piece as one packet. Here a packet is a packet on the wire: pieces that are to
//! be segmented (GSO) are counted by their segments, and cut only where one of them is dropped or leaves at
//! another time. So a link that does nothing carries tens of Gbit/s, and one that drops the 200th packet
//! drops the 200th packet, with offload or without.
//!
//! - [`Impairment`] says what happens in one direction; [`Choice`] and [`Patterns`] say to which packets.
//! - [`Wire`] carries packets between two [`Tun`] devices, in a thread of its own; [`LinkCounters`]
//!   say what it did.
//! - [`Shaper`] decides, without a clock or devices; [`Packet`] knows what stands for several packets.
//! - [`Namespace`] and [`Interfaces`] make hosts for it, without the program `ip` and without root where user
//!   namespaces are allowed.
//!
//! What the first 800 packets of a link would meet, without any link:
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
//!
//! Nothing here knows of experiments: Weighbridge's testbed does.

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
