//! The system calls of a program: counted by `weigh profile`, used by `weigh rules` and `weigh budget`.

mod foreign;
pub mod runs;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::shell::command_line;

/// The version of the JSON document; it changes when a field changes its meaning or goes.
pub const SCHEMA: &str = "weighbridge/profile/1";

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
    /// Duration of the run, or of the watched period, without counting; `None` if it was not
    /// measured.
    pub elapsed_s: Option<f64>,
    pub user_s: Option<f64>,
    pub system_s: Option<f64>,
    /// True if the profile covers a chosen period and not a whole run, because such a program may
    /// never end.
    #[serde(default)]
    pub is_of_period: bool,
    /// Factor that scaled the counts, where the program did less work while they were counted than
    /// in the times above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaled_by: Option<f64>,
}

impl SyscallProfile {
    /// Reads the document of [`SyscallProfile::json`], or a summary of `strace -c` or `perf trace -s`.
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

    /// Builds a profile from counts alone, as other tools print them.
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
    pub fn json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
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
        let written = profile().json().unwrap();
        assert_eq!(SyscallProfile::parse(written.as_bytes()), Ok(profile()));
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
