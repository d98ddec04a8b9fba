//! Which workloads there are, as they declare themselves.

use serde::{Deserialize, Serialize};

/// One workload, in its own words (`workloads/workload.h`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    pub name: String,
    /// One line.
    pub summary: String,
    /// The folder that it lives in: `cpu`, `syscall`, `process`, `ipc`, `file`, …
    pub group: String,
    pub unit: String,
    /// rate = operations × this / seconds.
    pub units_per_op: f64,
    /// System calls that one operation makes, where that is known.
    pub syscalls_per_op: Option<f64>,
    /// Conditions that the number of system calls depends on, if it is not exact everywhere.
    pub syscalls_note: Option<String>,
    /// Where the definition is from.
    pub source: String,
    /// One operation by itself is not what each of many is, so no latencies can be told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_in_batches: bool,
    /// When its operations have ended, another process of it may still be at work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_work: bool,
    /// Its processes run at the same time, on as many CPUs as there are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel: bool,
    /// The curve that it is a point of, as in a sweep over sizes, and where on that curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_unit: Option<String>,
    /// A sample is at least so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_ms: Option<u64>,
    /// The kind of server that it asks, such as `database`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// The files that it works on, where the user may choose their size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<JobFiles>,
}

impl Workload {
    /// Returns true if the workload needs more than one CPU.
    ///
    /// Such a workload uses several CPUs, sends requests to a server, or measures waking up.
    pub fn is_of_several_cpus(&self) -> bool {
        let is_placed_on_two = self.name.ends_with("@cross-cpu");
        self.parallel || is_placed_on_two || self.needs.is_some() || self.group == "feel"
    }
}

/// Whose files a disk job works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobFiles {
    Own,
    /// It reads parts of one that was made for all users.
    Common,
}

/// All workloads of a build, sorted by name, from its listing: one JSON object per workload and line.
pub fn read(listing: &str) -> Result<Vec<Workload>, String> {
    listing
        .lines()
        .map(|line| {
            serde_json::from_str(line).map_err(|error| {
                format!(
                    "the workload program printed an invalid list entry ({error}): \
                    {line}"
                )
            })
        })
        .collect()
}

/// The names that resemble one that does not exist, best first.
pub fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut near: Vec<(usize, &str)> = known
        .map(|candidate| (strsim::levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 2 || candidate.contains(name))
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

/// Which of the names was probably meant; where none is near, all that there are.
pub fn near_or_all(name: &str, known: &[&str]) -> String {
    match similar(name, known.iter().copied()).as_slice() {
        [] => format!("there are {}", known.join(", ")),
        near => format!("did you mean `{}`?", near.join("` or `")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_name() {
        let known = ["getppid", "stat", "pipe", "unixbench"];
        assert_eq!(similar("getpid", known.into_iter()), ["getppid"]);
        assert_eq!(similar("unix", known.into_iter()), ["unixbench"]);
        assert!(similar("zzzzzz", known.into_iter()).is_empty());
    }
}
