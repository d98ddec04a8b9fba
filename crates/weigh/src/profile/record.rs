//! What a program asks of the kernel, kept in a file: made by `weigh profile`, used by `weigh rules` and
//! `weigh budget`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::foreign;
use super::ptrace::Counts;
use super::run::Period;
use trust::user_file;
use weigh_model::shell::command_line;

/// The version of the JSON document; it changes when a field changes its meaning or goes.
pub const SCHEMA: &str = "weighbridge/profile/1";

/// A file that is longer is none of these.
const LONGEST_FILE: u64 = 16 << 20;

/// The system calls of one run of a command, and what the run takes when nobody counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SyscallProfile {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Empty where a foreign summary does not tell it.
    pub command: Vec<String>,
    /// How often each system call was entered, by its name; `syscall_N` where it has none.
    pub calls: BTreeMap<String, u64>,
    /// System calls of another ABI, as those of 32-bit programs: they are in no other number here.
    #[serde(default)]
    pub other_abi_calls: u64,
    /// Of a run, or of the time that was watched, without counting; `None` where nobody took it.
    pub elapsed_s: Option<f64>,
    pub user_s: Option<f64>,
    pub system_s: Option<f64>,
    /// Whether it is of a time that was chosen, and not of a whole run: such a program may never end.
    #[serde(default)]
    pub is_of_period: bool,
    /// What the counts were multiplied by, where the program did less while they were counted than in
    /// the times above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaled_by: Option<f64>,
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
    /// Whether the program did all of its work in both. If not, it did less while it was counted, as that
    /// slows it.
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

    /// Whether a command that ran to its end twice did much less the second time, although counting slows it.
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

impl SyscallProfile {
    /// Reads what [`SyscallProfile::write`] wrote, or a summary of `strace -c` or `perf trace -s`.
    ///
    /// # Errors
    /// A sentence with the file, and what is wrong with it.
    pub fn read(path: &Path) -> Result<SyscallProfile, String> {
        let bytes = user_file::read(path, LONGEST_FILE)
            .map_err(|error| format!("cannot read the profile {}: {error}", path.display()))?;
        SyscallProfile::parse(&bytes).map_err(|problem| format!("{}: {problem}", path.display()))
    }

    /// The same from what is in the file.
    ///
    /// # Errors
    /// A phrase that says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<SyscallProfile, String> {
        const WANTED: &str = "a profile is what `weigh profile -o FILE`, `strace -c -o FILE` or \
                              `perf trace -s -o FILE` writes";
        let text = std::str::from_utf8(bytes).map_err(|_| format!("this is not text; {WANTED}"))?;
        let profile = if text.trim_start().starts_with('{') {
            serde_json::from_str(text)
                .map_err(|error| format!("this JSON is not a profile ({error}); {WANTED}"))?
        } else {
            let calls = foreign::parse(text)?;
            let calls = calls.ok_or_else(|| format!("the format is unknown; {WANTED}"))?;
            SyscallProfile::of_calls(calls)
        };
        profile.check()
    }

    /// Of counts alone, as other tools print them.
    fn of_calls(calls: BTreeMap<String, u64>) -> SyscallProfile {
        SyscallProfile { schema: SCHEMA.to_owned(), calls, ..SyscallProfile::default() }
    }

    /// Sums and shares rely on what this refuses.
    fn check(self) -> Result<SyscallProfile, String> {
        if self.schema != SCHEMA {
            return Err(format!(
                "its schema is {:?}, but this version of weigh reads `{SCHEMA}`",
                self.schema
            ));
        }
        let times = [self.elapsed_s, self.user_s, self.system_s, self.scaled_by];
        if times.into_iter().flatten().any(|time| !time.is_finite() || time < 0.0) {
            return Err("it contains a time that is negative or not a number".into());
        }
        let sum = self.calls.values().try_fold(0u64, |sum, calls| sum.checked_add(*calls));
        match sum {
            None => Err("its counts are larger than any program's".into()),
            Some(0) => Err("it contains no system call".into()),
            Some(_) => Ok(self),
        }
    }

    /// The document, for a file.
    ///
    /// # Errors
    /// None today.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Writes it to a file.
    ///
    /// # Errors
    /// A sentence with the file.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let problem = |error: io::Error| format!("cannot write {}: {error}", path.display());
        let text = self.json().map_err(|error| problem(error.into()))?;
        trust::owner::write(path, text.as_bytes()).map_err(problem)
    }

    /// All system calls together, but those of another ABI.
    pub fn total_calls(&self) -> u64 {
        self.calls.values().sum()
    }

    /// Seconds of CPU time, in user mode and in the kernel.
    pub fn cpu_s(&self) -> Option<f64> {
        Some(self.user_s? + self.system_s?)
    }

    /// System calls per second of CPU time; `None` where that time is unknown or too short to be told.
    pub fn calls_per_cpu_s(&self) -> Option<f64> {
        self.cpu_s()
            .filter(|seconds| *seconds > 0.0)
            .map(|seconds| self.total_calls() as f64 / seconds)
    }

    /// The command line, or what stands for it.
    pub fn title(&self) -> String {
        match self.command.is_empty() {
            true => "the program of the summary".to_owned(),
            false => command_line(self.command.iter().map(String::as_str)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn profile() -> SyscallProfile {
        SyscallProfile {
            schema: SCHEMA.to_owned(),
            command: vec!["nginx".into(), "-g".into(), "daemon off;".into()],
            calls: [("read".to_owned(), 30), ("write".to_owned(), 10)].into(),
            other_abi_calls: 0,
            elapsed_s: Some(4.0),
            user_s: Some(0.5),
            system_s: Some(1.5),
            is_of_period: false,
            scaled_by: None,
        }
    }

    #[test]
    fn what_was_written_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("profile.json");
        profile().write(&path).unwrap();
        assert_eq!(SyscallProfile::read(&path), Ok(profile()));
        assert_eq!(profile().total_calls(), 40);
        assert_eq!(profile().calls_per_cpu_s(), Some(20.0));
        assert_eq!(profile().title(), "nginx -g 'daemon off;'");
    }

    #[test]
    fn what_is_no_profile_is_refused_with_a_reason() {
        let with = |from: &str, to: &str| profile().json().unwrap().replace(from, to);
        let cases = [
            (String::new(), "the format is unknown"),
            ("{}".into(), "not a profile (missing field"),
            (with("profile/1", "profile/2"), "this version of weigh reads `weighbridge/profile/1`"),
            (with("1.5", "-1.5"), "negative"),
            (with(": 30", ": 18446744073709551615"), "larger than any program's"),
            (with("\"read\": 30,", "").replace("10", "0"), "no system call"),
        ];
        for (text, expected) in cases {
            let problem = SyscallProfile::parse(text.as_bytes()).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
        assert!(SyscallProfile::parse(&[0xff, 0xfe]).unwrap_err().contains("text"));
        let missing = SyscallProfile::read(Path::new("/nonexistent/p.json")).unwrap_err();
        assert!(missing.starts_with("cannot read the profile /nonexistent/p.json: "), "{missing}");
    }

    #[test]
    fn a_period_in_which_less_was_done_is_scaled_to_the_other() {
        use super::super::cpu_time::CpuTime;
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

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = SyscallProfile::parse(&bytes);
        }

        #[test]
        fn a_broken_document_never_panics(cut in 0usize..300, put in any::<u8>(), at in 0usize..300) {
            let mut bytes = profile().json().unwrap().into_bytes();
            if let Some(byte) = bytes.get_mut(at) {
                *byte = put;
            }
            bytes.truncate(cut);
            if let Ok(read) = SyscallProfile::parse(&bytes) {
                prop_assert!(read.total_calls() > 0);
            }
        }
    }
}
