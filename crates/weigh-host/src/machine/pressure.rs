//! Disturbances between the workload and its CPU or disk: other processes that used them, a host
//! that took the CPU away, heat that slowed it. They are the difference between readings before and
//! after a sample.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::machine::source::Source;
use weigh_model::disturbance::Disturbance;

/// Counters that only grow while the machine runs, and a clock. `None` where the kernel does not keep
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// Microseconds in which at least one runnable task waited for a CPU: `/proc/pressure/cpu`,
    /// `some`, `total`. Needs Linux 4.20 with CONFIG_PSI.
    pub psi_cpu_us: Option<u64>,
    /// Microseconds in which at least one task waited for a disk: `/proc/pressure/io`.
    pub psi_io_us: Option<u64>,
    /// Ticks (1/100 s) in which the hypervisor ran somebody else, over all CPUs: `/proc/stat`,
    /// `cpu`, eighth number.
    pub steal_ticks: Option<u64>,
    /// How often a core was throttled because it was too hot, over all CPUs:
    /// `cpu*/thermal_throttle/core_throttle_count`.
    pub throttle_events: Option<u64>,
    /// Mean clock of the CPUs now: `cpufreq/policy*/scaling_cur_freq`.
    pub cpu_khz: Option<u64>,
}

/// The counters at a moment, by a clock of the machine that has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    pub pressure: Pressure,
}

impl Moment {
    pub fn now() -> Moment {
        let at = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let at_ns = at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64;
        Moment { at_ns, pressure: Pressure::read() }
    }

    /// How much the counters grew since an earlier moment of the same machine.
    pub fn since(self, earlier: Moment) -> Disturbance {
        let elapsed = Duration::from_nanos(self.at_ns.saturating_sub(earlier.at_ns));
        self.pressure.since(earlier.pressure, elapsed)
    }
}

/// Each file is a question to a CPU: on a large machine a few of them must do.
const MAX_CLOCKS: usize = 8;

impl Pressure {
    /// The counters of this machine now.
    pub fn read() -> Pressure {
        Pressure::read_from(Path::new("/"))
    }

    /// How much they grew since `earlier`, `elapsed` ago.
    pub fn since(self, earlier: Pressure, elapsed: Duration) -> Disturbance {
        let grew = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Disturbance {
            during_ns: elapsed.as_nanos().try_into().unwrap_or(u64::MAX),
            psi_cpu_us: grew(self.psi_cpu_us, earlier.psi_cpu_us),
            psi_io_us: grew(self.psi_io_us, earlier.psi_io_us),
            steal_ticks: grew(self.steal_ticks, earlier.steal_ticks),
            throttle_events: grew(self.throttle_events, earlier.throttle_events),
            cpu_khz: self.cpu_khz,
            before_ns: None,
            before_psi_cpu_us: None,
        }
    }

    /// The counters below another root directory than `/`.
    pub fn read_from(root: &Path) -> Pressure {
        let source = Source::new(root);
        Pressure {
            psi_cpu_us: psi_some(source, "cpu", "total"),
            psi_io_us: psi_some(source, "io", "total"),
            steal_ticks: source.text("/proc/stat").and_then(|stat| steal(&stat)),
            throttle_events: throttle_events(source),
            cpu_khz: mean_clock_khz(source),
        }
    }
}

/// The field `name` of the line `some` of `/proc/pressure/` and the name of this resource.
pub(super) fn psi_some<T: std::str::FromStr>(
    source: Source,
    resource: &str,
    name: &str,
) -> Option<T> {
    let some = source.value(&format!("/proc/pressure/{resource}"), "some", ' ')?;
    let field = |field: &str| {
        let (key, value) = field.split_once('=')?;
        (key == name).then(|| value.parse().ok()).flatten()
    };
    some.split_whitespace().find_map(field)
}

fn steal(stat: &str) -> Option<u64> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    all.split_whitespace().nth(7)?.parse().ok()
}

fn throttle_events(source: Source) -> Option<u64> {
    let of_cpu = |cpu: usize| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count");
        source.text(&path)?.trim().parse::<u64>().ok()
    };
    (0..).map_while(of_cpu).reduce(u64::saturating_add)
}

fn mean_clock_khz(source: Source) -> Option<u64> {
    let of_policy = |policy: &String| {
        let path = format!("/sys/devices/system/cpu/cpufreq/{policy}/scaling_cur_freq");
        source.text(&path)?.trim().parse::<u64>().ok()
    };
    let policies = source.names("/sys/devices/system/cpu/cpufreq");
    let clocks: Vec<u64> = policies
        .iter()
        .filter(|name| name.starts_with("policy"))
        .take(MAX_CLOCKS)
        .filter_map(of_policy)
        .collect();
    clocks.iter().sum::<u64>().checked_div(clocks.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::source::tests::root_with;

    #[test]
    fn all_counters_are_read() {
        let root = root_with(&[
            (
                "/proc/pressure/cpu",
                "some avg10=1.50 avg60=0.25 avg300=1.21 total=14393367\n\
                 full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
            ),
            ("/proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\n"),
            ("/proc/stat", "cpu  14057 0 5602 145734 917 0 91 35 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"),
            ("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n"),
            ("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "4\n"),
            ("/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "2000000\n"),
            ("/sys/devices/system/cpu/cpufreq/policy1/scaling_cur_freq", "3000000\n"),
            ("/sys/devices/system/cpu/cpufreq/boost", "1\n"),
        ]);
        let expected = Pressure {
            psi_cpu_us: Some(14_393_367),
            psi_io_us: Some(77),
            steal_ticks: Some(35),
            throttle_events: Some(7),
            cpu_khz: Some(2_500_000),
        };
        assert_eq!(Pressure::read_from(root.path()), expected);
        assert_eq!(psi_some(Source::new(root.path()), "cpu", "avg10"), Some(1.5));
    }

    #[test]
    fn the_shares_are_of_the_time_between_two_readings() {
        let at =
            |psi_cpu_us, steal_ticks| Pressure { psi_cpu_us, steal_ticks, ..Pressure::default() };
        let disturbance =
            at(Some(9000), Some(13)).since(at(Some(4000), Some(10)), Duration::from_millis(100));
        assert_eq!(disturbance.waiting_share(), Some(0.05));
        assert_eq!(disturbance.stolen_share(), Some(0.2));
        let unknown = at(None, Some(1)).since(at(Some(1), None), Duration::ZERO);
        assert_eq!(unknown, Disturbance::default());
        assert_eq!((unknown.waiting_share(), unknown.stolen_share()), (None, None));
    }

    #[test]
    fn old_kernels_and_garbage_give_none() {
        let old = root_with(&[("/proc/stat", "cpu 1 2 3 4\n")]);
        assert_eq!(Pressure::read_from(old.path()), Pressure::default());
        let garbage = root_with(&[("/proc/pressure/cpu", "some total=x"), ("/proc/stat", "\u{0}")]);
        assert_eq!(Pressure::read_from(garbage.path()), Pressure::default());
    }
}
