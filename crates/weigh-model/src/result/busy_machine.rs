//! Work of a machine under a load, and which of its resources is saturated first.

use serde::{Deserialize, Serialize};

/// Busier than this, or wanted by tasks in so large a part of the time, it is saturated.
const BUSY_PCT: f64 = 90.0;
const WAITED_FOR_PCT: f64 = 50.0;
/// Tasks wait for memory only while the kernel takes pages from others: that slows all of them.
const MEMORY_WAITED_FOR_PCT: f64 = 10.0;
const MEMORY_LEFT_PCT: f64 = 5.0;

/// Medians over the samples of a load point; absent where the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusyMachine {
    /// Shares of the time in which some task waited for a CPU, for a disk, for memory, in per cent
    /// (`/proc/pressure`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psi_cpu_pct: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psi_io_pct: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psi_memory_pct: Option<f64>,
    /// Busy share of all CPUs together in per cent, whichever process used them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_busy_pct: Option<f64>,
    /// How many tasks ran or waited for a CPU, in the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_queue: Option<f64>,
    /// The least that was available of the memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_left_pct: Option<f64>,
    /// Share of the time in which the device had something to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_busy_pct: Option<f64>,
    /// File I/O of a job in bytes, and the I/O of the device meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes_per_job: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_bytes_per_job: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    Cpu,
    Memory,
    Disk,
}

/// A resource, and the fewest users with whom it was saturated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Saturated {
    pub resource: Resource,
    pub users: usize,
}

impl BusyMachine {
    fn is_saturated(&self, resource: Resource) -> bool {
        let above = |value: Option<f64>, limit: f64| value.is_some_and(|value| value >= limit);
        match resource {
            Resource::Cpu => {
                above(self.cpu_busy_pct, BUSY_PCT) || above(self.psi_cpu_pct, WAITED_FOR_PCT)
            }
            Resource::Disk => {
                above(self.disk_busy_pct, BUSY_PCT) || above(self.psi_io_pct, WAITED_FOR_PCT)
            }
            Resource::Memory => {
                above(self.psi_memory_pct, MEMORY_WAITED_FOR_PCT)
                    || self.memory_left_pct.is_some_and(|left| left <= MEMORY_LEFT_PCT)
            }
        }
    }
}

/// The resources that are saturated at some point, by the number of users; points ascend in them.
pub fn saturated<'a>(
    points: impl Iterator<Item = (usize, &'a BusyMachine)> + Clone,
) -> Vec<Saturated> {
    let first = |resource: Resource| {
        let (users, _) = points.clone().find(|(_, machine)| machine.is_saturated(resource))?;
        Some(Saturated { resource, users })
    };
    let all = [Resource::Cpu, Resource::Memory, Resource::Disk].into_iter();
    let mut found: Vec<Saturated> = all.filter_map(first).collect();
    found.sort_by_key(|one| one.users);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_saturated_comes_first() {
        let points = [
            (1, BusyMachine { cpu_busy_pct: Some(50.0), ..BusyMachine::default() }),
            (2, BusyMachine { disk_busy_pct: Some(95.0), ..BusyMachine::default() }),
            (4, BusyMachine { psi_cpu_pct: Some(80.0), ..BusyMachine::default() }),
            (8, BusyMachine { memory_left_pct: Some(40.0), ..BusyMachine::default() }),
        ];
        let found = saturated(points.iter().map(|(users, machine)| (*users, machine)));
        let expected = [(Resource::Disk, 2), (Resource::Cpu, 4)];
        let expected = expected.map(|(resource, users)| Saturated { resource, users });
        assert_eq!(found, expected);
    }
}
