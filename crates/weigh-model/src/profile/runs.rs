//! Two runs of a program, one of them counted, and the profile that follows from both.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{SCHEMA, SyscallProfile};
use crate::facts::Facts;

/// CPU time of processes, in user mode and in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub user: Duration,
    pub system: Duration,
}

impl CpuTime {
    pub fn since(self, earlier: CpuTime) -> CpuTime {
        CpuTime {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

/// System calls of a program, counted, and how the program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often each system call was entered, by its number.
    pub calls: BTreeMap<u64, u64>,
    /// System calls of another ABI (32-bit programs, x32), which have other numbers.
    pub other_abi_calls: u64,
    /// The wait status of the program itself, as waitpid(2) gives it.
    pub status: i32,
}

impl Counts {
    /// All system calls together, but those of another ABI.
    pub fn total(&self) -> u64 {
        self.calls.values().sum()
    }

    /// Counts by the name of the system call; `syscall_N` for a number without a name.
    pub fn by_name(&self) -> BTreeMap<String, u64> {
        let name = |number: u64| match usize::try_from(number).ok().and_then(syscalls::Sysno::new) {
            Some(known) => known.name().to_owned(),
            None => format!("syscall_{number}"),
        };
        self.calls.iter().map(|(number, calls)| (name(*number), *calls)).collect()
    }
}

/// Elapsed time and CPU time of one period of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    pub elapsed: Duration,
    pub cpu: CpuTime,
}

/// User time below this, in either of two periods, says little about how much work was done in them: of
/// many kernels tell user time apart from system time by samples at the ticks of a clock.
const LEAST_USER_TIME: Duration = Duration::from_millis(500);

/// A run may be shorter than another by chance where both are short.
const LEAST_DIFFERENCE: Duration = Duration::from_millis(200);

/// Two runs of a command, or two periods of a process: as it is, and counted.
pub struct ProfileRuns {
    pub counts: Counts,
    pub plain: Period,
    pub counted: Period,
    /// True if the program did all of its work in both periods. If false, it did less in the
    /// counted period, because counting slows it.
    pub is_same_work: bool,
}

impl ProfileRuns {
    /// How many times as much work was done in the plain period, by the time in user mode, which counting
    /// does not change much; `None` where it is the same, or cannot be told.
    pub fn scale(&self) -> Option<f64> {
        let [plain, counted] = [self.plain, self.counted].map(|period| period.cpu.user);
        let is_known = plain.min(counted) >= LEAST_USER_TIME;
        (is_known && !self.is_same_work).then(|| plain.as_secs_f64() / counted.as_secs_f64())
    }

    /// Returns true if a command ran to its end twice and did much less the second time, although
    /// counting slows it.
    pub fn did_less(&self) -> bool {
        let (plain, counted) = (self.plain, self.counted);
        let is_quicker = plain.elapsed > LEAST_DIFFERENCE && counted.elapsed < plain.elapsed / 2;
        let used_less = plain.cpu.user >= LEAST_USER_TIME && counted.cpu.user < plain.cpu.user / 2;
        self.is_same_work && (is_quicker || used_less)
    }

    /// The calls of the plain period, and its times.
    pub fn profile(&self, command: Vec<String>) -> SyscallProfile {
        let scaled_by = self.scale();
        let scale = |calls: u64| match scaled_by {
            // A call that was made is not scaled away.
            Some(factor) => ((calls as f64 * factor).round() as u64).max(1),
            None => calls,
        };
        let by_name = self.counts.by_name().into_iter();
        SyscallProfile {
            schema: SCHEMA.to_owned(),
            command,
            calls: by_name.map(|(name, calls)| (name, scale(calls))).collect(),
            other_abi_calls: match self.counts.other_abi_calls {
                0 => 0,
                calls => scale(calls),
            },
            elapsed_s: Some(self.plain.elapsed.as_secs_f64()),
            user_s: Some(self.plain.cpu.user.as_secs_f64()),
            system_s: Some(self.plain.cpu.system.as_secs_f64()),
            is_of_period: !self.is_same_work,
            scaled_by,
        }
    }
}

/// Stored report of `weigh profile`: a profile, and the effect of counting on the program.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProfileReport {
    #[serde(flatten)]
    pub profile: SyscallProfile,
    /// Time that the program took while it was counted.
    pub counted: CountedTimes,
    /// In the store; empty before it is there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The command line that counts the same again.
    pub again: String,
    pub machine: Facts,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CountedTimes {
    pub elapsed_s: f64,
    pub user_s: f64,
    pub system_s: f64,
}

impl From<Period> for CountedTimes {
    fn from(period: Period) -> CountedTimes {
        CountedTimes {
            elapsed_s: period.elapsed.as_secs_f64(),
            user_s: period.cpu.user.as_secs_f64(),
            system_s: period.cpu.system.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_in_which_less_was_done_is_scaled_to_the_other() {
        let period = |user_ms, system_ms| Period {
            elapsed: Duration::from_secs(10),
            cpu: CpuTime {
                user: Duration::from_millis(user_ms),
                system: Duration::from_millis(system_ms),
            },
        };
        let counts = Counts { calls: [(0, 100), (1, 1)].into(), ..Counts::default() };
        let mut measured = ProfileRuns {
            counts,
            plain: period(2000, 1000),
            counted: period(500, 4000),
            is_same_work: false,
        };
        let profile = measured.profile(vec!["server".into()]);
        assert_eq!(profile.calls.values().copied().collect::<Vec<u64>>(), [400, 4]);
        assert_eq!((profile.scaled_by, profile.user_s), (Some(4.0), Some(2.0)));
        measured.is_same_work = true;
        assert_eq!(measured.profile(Vec::new()).total_calls(), 101);
        measured.is_same_work = false;
        measured.counted = period(30, 4000);
        assert_eq!(measured.profile(Vec::new()).scaled_by, None, "too short to tell");
    }

    #[test]
    fn what_is_stored_is_a_profile_too() {
        let profile = SyscallProfile {
            schema: SCHEMA.to_owned(),
            calls: [("read".to_owned(), u64::MAX / 2)].into(),
            ..SyscallProfile::default()
        };
        let report = ProfileReport { profile: profile.clone(), ..ProfileReport::default() };
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(SyscallProfile::parse(text.as_bytes()), Ok(profile.clone()));
        assert_eq!(serde_json::from_str::<ProfileReport>(&text).unwrap().profile, profile);
    }

    #[test]
    fn a_second_run_that_had_nothing_to_do_is_noticed() {
        let run = |ms| Period { elapsed: Duration::from_millis(ms), ..Period::default() };
        let did_less = |plain, counted, is_same_work| {
            let counts = Counts::default();
            ProfileRuns { counts, plain: run(plain), counted: run(counted), is_same_work }
                .did_less()
        };
        assert!(did_less(1000, 400, true));
        assert!(!did_less(1000, 600, true) && !did_less(1000, 4000, true));
        assert!(!did_less(1000, 400, false) && !did_less(20, 3, true));
    }
}
