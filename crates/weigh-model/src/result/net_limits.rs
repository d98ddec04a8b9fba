//! Bottlenecks of the transfers of a grid, from how busy the link and the CPUs of both ends were.

use crate::result::net_cells::NetCell;

/// Readings of a transfer without an activity, in per cent of its time: the busiest transmitter of the link,
/// which has a rate, and the CPUs of this host and of its peers.
pub const LINK_BUSY: &str = "link_busy";
pub const HOST_BUSY: &str = "host_busy";
pub const PEERS_BUSY: &str = "peers_busy";

/// Utilisation from which a resource counts as the bottleneck, in per cent.
pub const LIMITS_PCT: f64 = 95.0;

/// Number of transfers without an activity, by bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetLimits {
    /// Transfers without an activity whose CPU time is known.
    pub cells: usize,
    /// `None` if no link had a rate.
    pub link: Option<usize>,
    pub host: usize,
    pub peers: usize,
    /// Transfers without a bottleneck among these.
    pub none: usize,
}

impl NetLimits {
    /// Counts the cells; `None` if no cell has CPU readings.
    pub fn of(cells: &[NetCell]) -> Option<NetLimits> {
        let mut limits = NetLimits::default();
        let is_its = |cell: &&NetCell| {
            cell.is_of_suite && cell.activity.is_none() && cell.readings.contains_key(HOST_BUSY)
        };
        for cell in cells.iter().filter(is_its) {
            let is_limit = |name| cell.readings.get(name).map(|busy| *busy >= LIMITS_PCT);
            let [link, host, peers] = [LINK_BUSY, HOST_BUSY, PEERS_BUSY].map(is_limit);
            let count = |is_limit: Option<bool>| usize::from(is_limit == Some(true));
            limits.cells += 1;
            if link.is_some() {
                limits.link = Some(limits.link.unwrap_or(0) + count(link));
            }
            limits.host += count(host);
            limits.peers += count(peers);
            limits.none += usize::from(count(link) + count(host) + count(peers) == 0);
        }
        (limits.cells > 0).then_some(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(busy: &[(&str, f64)], activity: Option<&str>) -> NetCell {
        NetCell {
            cell: "send/idle".into(),
            bytes: 100,
            unit: "Mb/s".into(),
            activity: activity.map(str::to_owned),
            is_of_suite: true,
            rates: vec![10.0],
            median: 10.0,
            readings: busy.iter().map(|(name, busy)| ((*name).to_owned(), *busy)).collect(),
        }
    }

    #[test]
    fn a_limit_is_busy_all_the_time_and_a_cell_may_have_two() {
        let cells = [
            cell(&[(LINK_BUSY, 99.0), (HOST_BUSY, 3.0), (PEERS_BUSY, 5.0)], None),
            cell(&[(HOST_BUSY, 95.0), (PEERS_BUSY, 96.0)], None),
            cell(&[(LINK_BUSY, 94.9), (HOST_BUSY, 94.9)], None),
            cell(&[(HOST_BUSY, 100.0)], Some("activity-cpu")),
            cell(&[("cpu_per_gb", 1.0)], None),
        ];
        let found = NetLimits { cells: 3, link: Some(1), host: 1, peers: 1, none: 1 };
        assert_eq!(NetLimits::of(&cells), Some(found));
        assert_eq!(NetLimits::of(&cells[1..2]).unwrap().link, None);
        assert_eq!(NetLimits::of(&cells[3..]), None);
    }
}
