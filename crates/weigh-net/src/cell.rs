//! One cell of a grid: a component of the benchmark suite, at a size, over a link, beside an activity.

use serde::{Deserialize, Serialize};
use wire::Patterns;

use weigh_testbed::{BlackBox, Via};

/// The paper's test suite (equation 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Component {
    Send,
    Receive,
    SendDelayed,
    SendReceive,
    TwoReceiveDelayed,
    TwoSendDropped,
}

/// A connection of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub is_send: bool,
    pub with: BlackBox,
}

const TO_ACTIVE: Transfer = Transfer { is_send: true, with: BlackBox::Active };
const FROM_ACTIVE: Transfer = Transfer { is_send: false, with: BlackBox::Active };
const TO_PASSIVE: Transfer = Transfer { is_send: true, with: BlackBox::Passive };
const FROM_PASSIVE: Transfer = Transfer { is_send: false, with: BlackBox::Passive };

impl Component {
    pub const ALL: [Component; 6] = [
        Component::Send,
        Component::Receive,
        Component::SendDelayed,
        Component::SendReceive,
        Component::TwoReceiveDelayed,
        Component::TwoSendDropped,
    ];

    /// As the paper writes it.
    pub fn title(self) -> &'static str {
        match self {
            Component::Send => "SEND",
            Component::Receive => "RECV",
            Component::SendDelayed => "SEND+DL",
            Component::SendReceive => "SEND_RECV",
            Component::TwoReceiveDelayed => "2RECV+DL",
            Component::TwoSendDropped => "2SEND+DR",
        }
    }

    /// As part of the name of a row.
    fn word(self) -> &'static str {
        match self {
            Component::Send => "send",
            Component::Receive => "recv",
            Component::SendDelayed => "send-dl",
            Component::SendReceive => "send-recv",
            Component::TwoReceiveDelayed => "2recv-dl",
            Component::TwoSendDropped => "2send-dr",
        }
    }

    /// Returns the transfers of the component, which share the payload.
    pub fn transfers(self) -> &'static [Transfer] {
        match self {
            Component::Send | Component::SendDelayed => &[TO_ACTIVE],
            Component::Receive => &[FROM_ACTIVE],
            Component::SendReceive => &[TO_ACTIVE, FROM_ACTIVE],
            Component::TwoReceiveDelayed => &[FROM_ACTIVE, FROM_PASSIVE],
            Component::TwoSendDropped => &[TO_ACTIVE, TO_PASSIVE],
        }
    }

    pub fn has_delay(self) -> bool {
        matches!(self, Component::SendDelayed | Component::TwoReceiveDelayed)
    }

    pub fn has_drops(self) -> bool {
        self == Component::TwoSendDropped
    }

    /// Returns how the component's packets travel: over the LAN if it neither delays nor drops
    /// them.
    pub fn via(self) -> Via {
        if self.has_delay() || self.has_drops() { Via::Wire } else { Via::Lan }
    }
}

/// Measurement in addition to the paper's suite, without a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FurtherKind {
    /// A request and its answer, one after the other over a connection.
    Requests,
    /// Each over a connection of its own.
    Connects,
    /// One that sends with all it has, and requests meanwhile: latency under load.
    Loaded,
    /// Several that send at the same time.
    Streams,
    /// Datagrams of UDP, as fast as they go.
    Datagrams,
}

impl FurtherKind {
    /// Connections of `Streams`.
    pub const STREAMS: usize = 4;

    /// In tables.
    pub fn title(self) -> &'static str {
        match self {
            FurtherKind::Requests => "requests",
            FurtherKind::Connects => "connects",
            FurtherKind::Loaded => "requests beside SEND",
            FurtherKind::Streams => "4 x SEND",
            FurtherKind::Datagrams => "datagrams",
        }
    }

    fn word(self) -> &'static str {
        match self {
            FurtherKind::Requests => "requests",
            FurtherKind::Connects => "connects",
            FurtherKind::Loaded => "loaded",
            FurtherKind::Streams => "streams",
            FurtherKind::Datagrams => "datagrams",
        }
    }

    pub fn unit(self) -> &'static str {
        match self {
            FurtherKind::Requests => "requests/s",
            FurtherKind::Connects => "connects/s",
            FurtherKind::Loaded | FurtherKind::Streams | FurtherKind::Datagrams => "Mb/s",
        }
    }

    /// How much of it there is to begin with, to find out how much takes long enough. Over a LAN as much as
    /// percentiles and rates need, however slow a busy machine makes the first of it.
    pub fn first_amount(self, is_over_wire: bool) -> u64 {
        match (self, is_over_wire) {
            (FurtherKind::Requests | FurtherKind::Connects | FurtherKind::Datagrams, true) => 100,
            (FurtherKind::Loaded | FurtherKind::Streams, true) => 1_000_000,
            (FurtherKind::Requests, false) => 2000,
            (FurtherKind::Connects, false) => 500,
            (FurtherKind::Datagrams, false) => 5000,
            (FurtherKind::Loaded | FurtherKind::Streams, false) => 8_000_000,
        }
    }
}

/// Impairments of the links in a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSetting {
    pub delay_us: u64,
    pub drops: Option<Patterns>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Bytes of a write, from the class.
    pub bytes: u32,
    /// `None` for an activity alone, and for what is no part of the suite.
    pub component: Option<Component>,
    pub further: Option<FurtherKind>,
    pub link: LinkSetting,
    /// A workload; `None` for COMM alone.
    pub activity: Option<String>,
}

/// How much a cell moves (bytes, requests or datagrams), and how much its activity does in each of its
/// processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellSize {
    pub amount: u64,
    pub units: u64,
}

impl Cell {
    /// Returns the cell's name within its grid; its bytes are the load.
    pub fn name(&self) -> String {
        let further = self.further.map_or("alone", FurtherKind::word);
        let component = self.component.map_or(further, Component::word);
        let setting = match (&self.link.drops, self.link.delay_us) {
            (Some(drops), _) => format!("@{drops}"),
            (None, 0) => String::new(),
            (None, delay_us) => format!("@{}ms", delay_us as f64 / 1e3),
        };
        let activity = self.activity.as_deref().unwrap_or("idle");
        format!("{component}{setting}/{activity}")
    }

    /// As sentences name it.
    pub fn name_with_bytes(&self) -> String {
        format!("{}, {} bytes", self.name(), self.bytes)
    }

    pub fn is_activity_alone(&self) -> bool {
        self.component.is_none() && self.further.is_none()
    }

    pub fn without_activity(&self) -> Cell {
        Cell { activity: None, ..self.clone() }
    }
}
