//! The part of a machine's CPUs that `weigh` and its workloads may use: a container, a batch system or
//! `taskset` often leaves them less than there is.

use serde::{Deserialize, Serialize};

use crate::format;

/// The largest number of a CPU is below this: `CPU_SETSIZE` of `sched_setaffinity(2)`.
pub const MOST_CPUS: usize = 1024;

/// Limits of this process, which its children inherit. `None`: not known, or no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuShare {
    /// The online CPUs that affinity and cpuset allow, e.g. `0-1`: `Cpus_allowed_list` of
    /// `/proc/self/status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
    /// The smallest quota of the control groups around this process, in CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_cpus: Option<f64>,
    /// The file with that quota: `cpu.max`, or `cpu.cfs_quota_us` in version 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_file: Option<String>,
    /// `/proc/self/stat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub niceness: Option<i32>,
    /// Where the allowed CPUs are not equally fast: those of each kind, the fastest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Files that say this and could not be read, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

impl CpuShare {
    /// How many CPUs are allowed.
    pub fn allowed_count(&self) -> Option<usize> {
        self.allowed.as_deref().and_then(cpus_of).map(|cpus| cpus.len())
    }

    /// The quota, where it is less than the allowed CPUs.
    pub fn limiting_quota(&self) -> Option<f64> {
        let is_less = |quota: &f64| self.allowed_count().is_none_or(|cpus| *quota < cpus as f64);
        self.quota_cpus.filter(is_less)
    }

    /// The CPUs in a line about the machine, of which so many are online: `1 of 2 CPUs, quota 0.5 CPUs`.
    pub fn of_online(&self, online: usize) -> String {
        let cpus = match self.allowed_count() {
            Some(allowed) if allowed < online => {
                format!("{allowed} of {}", format::plural(online, "CPU"))
            }
            _ => format::plural(online, "CPU"),
        };
        let quota = self.limiting_quota().map(|quota| format!("quota {}", quota_text(quota)));
        let niceness = self.niceness.filter(|nice| *nice != 0);
        let niceness = niceness.map(|nice| format!("niceness {nice}"));
        let kinds = (!self.kinds.is_empty()).then(|| "unequal CPUs".to_owned());
        [Some(cpus), quota, niceness, kinds].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// A quota in CPUs, such as `0.5 CPUs`.
pub fn quota_text(cpus: f64) -> String {
    let number = format!("{cpus:.2}");
    let number = number.trim_end_matches('0').trim_end_matches('.');
    // A quota is 1 ms of a period of 1 s at least.
    match number {
        "0" => "less than 0.01 CPUs".to_owned(),
        "1" => "1 CPU".to_owned(),
        several => format!("{several} CPUs"),
    }
}

/// The numbers of a list such as `0-2,5`, as the kernel writes them; `None` where it is none.
pub fn cpus_of(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| -> Option<usize> {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|cpu| is_number && *cpu < MOST_CPUS)
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// These numbers, which ascend, as the kernel writes them.
pub fn list_of(cpus: &[usize]) -> String {
    let runs = cpus.chunk_by(|cpu, next| cpu + 1 == *next);
    let texts = runs.map(|run| match run {
        [.., last] if run.len() > 1 => format!("{}-{last}", run[0]),
        _ => run[0].to_string(),
    });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_is_as_the_kernel_writes_it() {
        assert_eq!(cpus_of("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpus_of("3,1,1-2"), Some(vec![1, 2, 3]));
        for wrong in ["", "a", "1-", "-1", "2-1", "0,,1", "0-99999999", "+1"] {
            assert_eq!(cpus_of(wrong), None, "{wrong}");
        }
        assert_eq!(list_of(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(list_of(&[]), "");
    }

    #[test]
    fn the_line_names_only_what_limits() {
        let all =
            CpuShare { allowed: Some("0-1".into()), niceness: Some(0), ..CpuShare::default() };
        assert_eq!(all.of_online(2), "2 CPUs");
        assert_eq!(CpuShare::default().of_online(1), "1 CPU");
        let less = CpuShare {
            allowed: Some("1".into()),
            quota_cpus: Some(0.5),
            niceness: Some(5),
            kinds: vec!["0".into(), "1".into()],
            ..CpuShare::default()
        };
        assert_eq!(less.of_online(2), "1 of 2 CPUs, quota 0.5 CPUs, niceness 5, unequal CPUs");
        let ample = CpuShare { quota_cpus: Some(2.0), ..all };
        assert_eq!(ample.of_online(2), "2 CPUs", "as much as there is");
        assert_eq!([1.0, 1.5, 0.001].map(quota_text), ["1 CPU", "1.5 CPUs", "less than 0.01 CPUs"]);
    }
}
