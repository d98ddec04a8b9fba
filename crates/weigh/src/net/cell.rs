//! One cell of a grid: a component of the benchmark suite, at a size, over a link, beside an activity.

use serde::{Deserialize, Serialize};
use wire::Patterns;

use crate::testbed::{BlackBox, Via};

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

    /// What it is made of; the payload is shared among them.
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

    /// What neither delays nor drops goes over the LAN.
    pub fn via(self) -> Via {
        if self.has_delay() || self.has_drops() { Via::Wire } else { Via::Lan }
    }
}

/// What the links do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSetting {
    pub delay_us: u64,
    pub drops: Option<Patterns>,
}

/// One of a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Of the class: what is written at a time.
    pub bytes: u32,
    /// `None` for an activity alone.
    pub component: Option<Component>,
    pub link: LinkSetting,
    /// A workload; `None` for COMM alone.
    pub activity: Option<String>,
}

impl Cell {
    /// What it is called within its grid; its bytes are the load.
    pub fn name(&self) -> String {
        let component = self.component.map_or("alone", Component::word);
        let setting = match (&self.link.drops, self.link.delay_us) {
            (Some(drops), _) => format!("@{drops}"),
            (None, 0) => String::new(),
            (None, delay_us) => format!("@{}ms", delay_us as f64 / 1e3),
        };
        let activity = self.activity.as_deref().unwrap_or("idle");
        format!("{component}{setting}/{activity}")
    }

    /// The same without an activity.
    pub fn without_activity(&self) -> Cell {
        Cell { activity: None, ..self.clone() }
    }
}
