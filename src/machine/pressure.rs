//! How much of the CPU others took: read before and after a sample, the difference tells.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::source::Source;

/// Two counters that only grow while the machine runs. `None` where the kernel does not keep them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// Microseconds in which at least one runnable task waited for a CPU: `/proc/pressure/cpu`,
    /// `some`, `total`. Needs Linux 4.20 with CONFIG_PSI.
    pub psi_cpu_us: Option<u64>,
    /// Ticks (1/100 s) in which the hypervisor ran somebody else, over all CPUs: `/proc/stat`,
    /// `cpu`, eighth number.
    pub steal_ticks: Option<u64>,
}

impl Pressure {
    /// The counters of this machine now.
    pub fn read() -> Pressure {
        Pressure::read_from(Path::new("/"))
    }

    /// The counters below another root directory than `/`.
    pub fn read_from(root: &Path) -> Pressure {
        let source = Source::new(root);
        Pressure {
            psi_cpu_us: psi_cpu_some(source, "total"),
            steal_ticks: source.text("/proc/stat").and_then(|stat| steal(&stat)),
        }
    }
}

/// The field `name` of the line `some` of `/proc/pressure/cpu`.
pub(super) fn psi_cpu_some<T: std::str::FromStr>(source: Source, name: &str) -> Option<T> {
    let some = source.value("/proc/pressure/cpu", "some", ' ')?;
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

#[cfg(test)]
mod tests {
    use super::super::source::tests::root_with;
    use super::*;

    #[test]
    fn both_counters_are_read() {
        let root = root_with(&[
            (
                "/proc/pressure/cpu",
                "some avg10=1.50 avg60=0.25 avg300=1.21 total=14393367\n\
                 full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
            ),
            ("/proc/stat", "cpu  14057 0 5602 145734 917 0 91 35 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"),
        ]);
        let expected = Pressure { psi_cpu_us: Some(14_393_367), steal_ticks: Some(35) };
        assert_eq!(Pressure::read_from(root.path()), expected);
        assert_eq!(psi_cpu_some(Source::new(root.path()), "avg10"), Some(1.5));
    }

    #[test]
    fn old_kernels_and_garbage_give_none() {
        let old = root_with(&[("/proc/stat", "cpu 1 2 3 4\n")]);
        assert_eq!(Pressure::read_from(old.path()), Pressure::default());
        let garbage = root_with(&[("/proc/pressure/cpu", "some total=x"), ("/proc/stat", "\u{0}")]);
        assert_eq!(Pressure::read_from(garbage.path()), Pressure::default());
    }
}
