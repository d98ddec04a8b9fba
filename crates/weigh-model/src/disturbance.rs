//! Disturbance of a launch: CPU time, disk time and clock rate that other activity on the host
//! took.

use serde::{Deserialize, Serialize};

/// Resources that other activity on the host took while one launch ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// How long the launch took, from before its fork to its end.
    pub during_ns: u64,
    /// As `Pressure::psi_cpu_us`; the launch's own processes wait as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi_cpu_us: Option<u64>,
    /// As `Pressure::psi_io_us`; the same is true of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psi_io_us: Option<u64>,
    /// As `Pressure::steal_ticks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_ticks: Option<u64>,
    /// As `Pressure::throttle_events`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle_events: Option<u64>,
    /// As `Pressure::cpu_khz`, at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_khz: Option<u64>,
    /// How long no launch had run before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_ns: Option<u64>,
    /// As `Pressure::psi_cpu_us`, of that time: then no launch's processes wait for each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_psi_cpu_us: Option<u64>,
}

impl Disturbance {
    /// Share of the time in which some task waited for a CPU.
    pub fn waiting_share(self) -> Option<f64> {
        self.share(self.psi_cpu_us? as f64 * 1e3)
    }

    /// Adds the activity of others before this launch, since the previous launch ended.
    pub fn after(self, before: Disturbance) -> Disturbance {
        let (before_ns, before_psi_cpu_us) = (Some(before.during_ns), before.psi_cpu_us);
        Disturbance { before_ns, before_psi_cpu_us, ..self }
    }

    /// Share of the time before it in which some task waited for a CPU, though no launch ran.
    pub fn waiting_share_before(self) -> Option<f64> {
        let before_ns = self.before_ns.filter(|ns| *ns > 0)?;
        Some(self.before_psi_cpu_us? as f64 * 1e3 / before_ns as f64)
    }

    /// Share of the time, of one CPU, that was surely stolen: the counter is rounded down to whole
    /// ticks, so of t ticks only t − 1 are sure.
    pub fn stolen_share(self) -> Option<f64> {
        const TICK_NS: f64 = 1e7;
        self.share(self.steal_ticks?.saturating_sub(1) as f64 * TICK_NS)
    }

    fn share(self, taken_ns: f64) -> Option<f64> {
        (self.during_ns > 0).then(|| taken_ns / self.during_ns as f64)
    }
}
