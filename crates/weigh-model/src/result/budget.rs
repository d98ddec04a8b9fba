//! Audit log volume of rules, and the load that the log's way to the disk bears: the report of
//! `weigh budget`.

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::result::warning::{Warning, as_sentences};

/// The version of the JSON document; it changes when a field changes its meaning or goes.
pub const SCHEMA: &str = "weighbridge/budget/1";
pub const SECONDS_PER_DAY: f64 = 86_400.0;

/// The whole answer. `docs/guide-budget.md` explains each part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BudgetReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// In the store; empty before it is there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The command line that measures this again.
    pub command: String,
    /// As it was written.
    pub treatment: String,
    pub workload: String,
    /// Unit of counting: `operation`, or `run` for a command.
    pub operation: String,
    pub machine: Facts,
    /// Findings of `weigh doctor` that disturb a measurement, taken when it began.
    #[serde(serialize_with = "as_sentences")]
    pub warnings: Vec<Warning>,
    /// Changes made to the system, in whole sentences.
    pub facts: Vec<String>,
    pub per_operation: PerOperation,
    /// Absent where the log is not ours to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compressed: Option<Compressed>,
    /// The rates that were asked for, or usual ones, and the maximum rate.
    pub days: Vec<Day>,
    /// Absent where the workload makes no records, or where it was interrupted before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog: Option<Backlog>,
    /// Kernel memory that a record in the backlog takes; absent where the load could not fill it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog_bytes_per_record: Option<f64>,
    pub loads: Vec<Load>,
    /// With `--disk-full`.
    pub disk_full: Vec<DiskFull>,
    /// True if the user ended it before all was measured.
    pub interrupted: bool,
    /// Why not all was measured; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Measured amounts per operation of the workload. Each launch had the rules in force, and auditing
/// was proved.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct PerOperation {
    pub launches: usize,
    pub records: f64,
    pub log_bytes: f64,
    /// Operations a second while nothing else limits it.
    pub full_speed: f64,
    /// Records that the kernel dropped meanwhile.
    pub lost: u64,
    /// CPU time of the receiver of the records and of the kernel's thread, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink_cpu_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kauditd_cpu_ns: Option<f64>,
}

/// The log of the samples, and what gzip makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compressed {
    pub log_bytes: u64,
    pub gzip_bytes: u64,
}

impl Compressed {
    /// Compressed bytes per byte of log.
    pub fn ratio(self) -> f64 {
        self.gzip_bytes as f64 / self.log_bytes as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Day {
    /// Operations a second.
    pub rate: f64,
    /// Multiple of the requested rate: 2, 5, 10; 1 for the rate itself.
    pub multiple: f64,
    pub is_full_speed: bool,
    pub log_bytes: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gzip_bytes: Option<f64>,
}

impl Day {
    /// A day of so many operations a second.
    pub fn new(rate: f64, bytes_per_op: f64, compressed: Option<Compressed>) -> Day {
        let log_bytes = rate * bytes_per_op * SECONDS_PER_DAY;
        let gzip_bytes = compressed.map(|compressed| log_bytes * compressed.ratio());
        Day { rate, multiple: 1.0, is_full_speed: false, log_bytes, gzip_bytes }
    }
}

/// The backlog limit that a burst needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Backlog {
    /// Operations at once, as fast as they come.
    pub burst: u64,
    /// Records that these make, with those of the start.
    pub burst_records: f64,
    /// The smallest limit without a loss in all tries, found by search to one in sixteen; `None`
    /// where even one above the number of records loses.
    pub enough: Option<Tried>,
    /// Half of that, for proof.
    pub half: Option<Tried>,
    /// Common limits: the kernel's own, and that of distributions.
    pub common: Vec<Common>,
}

/// A backlog limit, with nobody made to wait, and the records that each try lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    pub limit: u32,
    pub lost: Vec<u64>,
}

/// Effect of a backlog limit on the burst.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Common {
    pub limit: u32,
    /// Time that processes waited for room, with the kernel's usual time to wait.
    pub waited_s: f64,
    /// Records lost despite waiting.
    pub lost: u64,
    /// Records lost where nobody waits (`backlog_wait_time 0`).
    pub lost_without_wait: u64,
}

/// Records at a pace that does not wait for anybody, for a few seconds: of several tries, the one that made
/// the fewest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Multiple of the requested rate.
    pub multiple: f64,
    /// Operations a second that it stands for.
    pub rate: f64,
    /// Records a second that were to be made.
    pub asked: f64,
    /// Records a second that were made.
    pub achieved: f64,
    pub elapsed_s: f64,
    pub waited_s: f64,
    pub lost: u64,
    /// Share of one CPU, of the receiver of the records and of the kernel's thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink_cpu: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kauditd_cpu: Option<f64>,
    /// How often it was tried.
    pub tries: u32,
    /// In how many of these it made what it was asked for, and nothing was lost.
    pub kept: u32,
    /// Verdict on this load, given the tries of the other loads.
    pub kept_up: KeptUp,
}

/// Verdict on a load: sustained, not sustained, or undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeptUp {
    /// In all tries, and so were all smaller ones.
    Yes,
    /// Not in one try, nor was any larger one.
    No,
    /// The tries disagree, of this load or of others.
    Undecided,
}

impl Load {
    /// Returns true if this try reached the requested rate within 2 % and lost no records.
    pub fn is_made(&self) -> bool {
        self.achieved >= 0.98 * self.asked && self.lost == 0
    }

    /// Takes one more try of the same load into account.
    pub fn add(&mut self, other: Load) {
        let (tries, kept) = (self.tries + other.tries, self.kept + other.kept);
        if other.lost > self.lost || (other.lost == self.lost && other.achieved < self.achieved) {
            *self = other;
        }
        (self.tries, self.kept) = (tries, kept);
    }
}

/// Judges loads, the smallest first: who keeps up with a load keeps up with every smaller one, so an answer
/// that says otherwise is none.
pub fn judge(loads: &mut [Load]) {
    let mut is_sustained = true;
    for load in loads.iter_mut() {
        is_sustained &= load.kept == load.tries;
        load.kept_up = if is_sustained { KeptUp::Yes } else { KeptUp::Undecided };
    }
    for load in loads.iter_mut().rev().take_while(|load| load.kept == 0) {
        load.kept_up = KeptUp::No;
    }
}

/// Outcome of a full disk under one of auditd's policies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskFull {
    /// `disk_full_action`.
    pub action: String,
    /// `ext4` on a loop device, or `tmpfs`.
    pub file_system: String,
    /// Events (each an audited opening of a file) that were due while the disk filled and was full.
    pub due: u64,
    /// In this time.
    pub due_s: f64,
    /// Events that happened in this time.
    pub made: u64,
    /// Events that are in the log.
    pub logged: u64,
    /// Records that the kernel dropped and counted.
    pub lost: u64,
    /// Records that still waited in the kernel at the end.
    pub backlog: u32,
    /// Time that the load waited for room in the kernel's backlog.
    pub waited_s: f64,
    /// The longest time that one system call of the load took.
    pub longest_s: f64,
    /// True if the kernel still sent the records to auditd afterwards.
    pub is_registered: bool,
    pub has_ended: bool,
    /// Messages of auditd in the system's log, each sentence once.
    pub messages: Vec<String>,
}

impl DiskFull {
    /// Returns true if the load made the events that were due, within 2 %.
    pub fn went_on(&self) -> bool {
        self.made as f64 >= 0.98 * self.due as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(tries: u32, kept: u32) -> Load {
        Load {
            multiple: 2.0,
            rate: 100.0,
            asked: 300.0,
            achieved: 300.0,
            elapsed_s: 2.0,
            waited_s: 0.0,
            lost: 0,
            sink_cpu: None,
            kauditd_cpu: None,
            tries,
            kept,
            kept_up: KeptUp::Undecided,
        }
    }

    #[test]
    fn no_load_is_sustained_behind_one_that_is_not() {
        let judged = |tries: &[(u32, u32)]| {
            let mut loads: Vec<Load> =
                tries.iter().map(|(tries, kept)| load(*tries, *kept)).collect();
            judge(&mut loads);
            loads.iter().map(|load| load.kept_up).collect::<Vec<_>>()
        };
        use KeptUp::{No, Undecided, Yes};
        assert_eq!(judged(&[(1, 1), (1, 1), (1, 0)]), [Yes, Yes, No]);
        assert_eq!(judged(&[(1, 0), (1, 1), (1, 0)]), [Undecided, Undecided, No]);
        assert_eq!(judged(&[(3, 0), (3, 3), (3, 3)]), [Undecided; 3]);
        assert_eq!(judged(&[(3, 2), (3, 3), (1, 0)]), [Undecided, Undecided, No]);
        assert_eq!(judged(&[(1, 0), (1, 0), (1, 0)]), [No; 3]);
    }

    #[test]
    fn of_several_tries_the_worst_is_shown() {
        let mut first = load(1, 1);
        first.add(Load { lost: 5, ..load(1, 0) });
        first.add(Load { achieved: 250.0, ..load(1, 0) });
        assert_eq!((first.lost, first.tries, first.kept), (5, 3, 1));
        assert!(!first.is_made() && load(1, 1).is_made());
        assert!(!Load { achieved: 290.0, ..load(1, 1) }.is_made());
    }

    #[test]
    fn a_day_is_rate_times_bytes_times_seconds() {
        let compressed = Some(Compressed { log_bytes: 1000, gzip_bytes: 50 });
        let day = Day::new(10.0, 400.0, compressed);
        assert_eq!(day.log_bytes, 345_600_000.0);
        assert_eq!(day.gzip_bytes, Some(17_280_000.0));
        assert_eq!(Day::new(10.0, 400.0, None).gzip_bytes, None);
    }
}
