//! The settings that are changed for a while: the governor and the boost of the CPUs by `weigh doctor --fix`,
//! how fast audit rules are deleted, and what treatments switch. All are one line in a file, take effect at
//! once, and go back by writing the old line.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::machine::gone::{SETTING_FILES, check_gone};
use crate::machine::source::Source;
use crate::machine::sysctl;

/// Where the policies are.
pub const CPUFREQ: &str = "/sys/devices/system/cpu/cpufreq";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";
const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
/// 1 makes the kernel wait less for its readers, as when an audit rule is deleted.
pub const RCU_EXPEDITED: &str = "/sys/kernel/rcu_expedited";
/// Which mappings get transparent huge pages.
pub const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// Possible values of [`HUGE_PAGES`].
pub const HUGE_PAGES_WORDS: [&str; 3] = ["always", "madvise", "never"];
/// Settings that are 0 or 1.
const SWITCHES: [&str; 3] = [BOOST, NO_TURBO, RCU_EXPEDITED];

/// A file of the kernel that holds one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub file: PathBuf,
    pub was: String,
    pub wanted: String,
}

impl Setting {
    /// Reads the current value; in a list of words the word in brackets, which is in force.
    pub fn read(&self) -> io::Result<String> {
        let text = fs::read_to_string(&self.file)?;
        let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        Ok(chosen.map_or(text.trim(), |(word, _)| word).to_owned())
    }

    /// Changes it. Whoever calls this has written down how to undo it.
    ///
    /// # Errors
    /// As `write(2)`: `PermissionDenied` without root.
    pub fn apply(&self) -> io::Result<()> {
        self.write(&self.wanted)
    }

    /// Writes back what was found; a CPU that has gone meanwhile needs nothing.
    ///
    /// # Errors
    /// As `write(2)`, and as [`check_gone`].
    pub fn undo(&self) -> io::Result<()> {
        match self.write(&self.was) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                check_gone(&self.file, &SETTING_FILES)
            }
            other => other,
        }
    }

    /// The kernel's files are no links, and none is created.
    fn write(&self, word: &str) -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        options.write(true).truncate(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        options.open(&self.file)?.write_all(word.as_bytes())
    }

    /// Returns true if weigh changes such a setting below `root`, and its old value is a possible
    /// one.
    pub fn is_known(&self, root: &Path) -> bool {
        let Some(file) = self.file.to_str() else { return false };
        let Some(root) = root.to_str() else { return false };
        let Some(file) = file.strip_prefix(root.trim_end_matches('/')) else { return false };
        let is_switch = matches!(self.was.as_str(), "0" | "1");
        if SWITCHES.contains(&file) {
            return is_switch;
        }
        if file == HUGE_PAGES {
            return HUGE_PAGES_WORDS.contains(&self.was.as_str());
        }
        if sysctl::is_known(file, &self.was) {
            return true;
        }
        let policy = file.strip_prefix(CPUFREQ).and_then(|rest| rest.strip_prefix("/policy"));
        let number = policy.and_then(|rest| rest.strip_suffix("/scaling_governor"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_word = |text: &str| {
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
        };
        number.is_some_and(is_number) && is_word(&self.was)
    }
}

/// The policies by which CPUs choose their clock rate; none where the owner of the hardware chooses it.
pub fn policies(root: &Path) -> Vec<String> {
    let names = Source::new(root).names(CPUFREQ).into_iter();
    names.filter(|name| name.starts_with("policy")).collect()
}

/// The governor of every policy, as it is to be.
pub fn governors(root: &Path, wanted: &str) -> Result<Vec<Setting>, String> {
    let source = Source::new(root);
    let of_policy = |policy: String| {
        let directory = format!("{CPUFREQ}/{policy}");
        let known = source.text(&format!("{directory}/scaling_available_governors"));
        let known = known.unwrap_or_default();
        if !known.split_whitespace().any(|governor| governor == wanted) {
            return Err(format!(
                "{policy} does not have the governor `{wanted}`; available: {known}"
            ));
        }
        let file = format!("{directory}/scaling_governor");
        let was = source.text(&file).ok_or_else(|| format!("{file} cannot be read"))?;
        Ok(Setting { file: source.path(&file), was, wanted: wanted.into() })
    };
    policies(root).into_iter().map(of_policy).collect()
}

/// Lists the settings below `root` to change while measuring; empty where all is well or nothing is
/// visible.
pub fn plan(root: &Path) -> Vec<Setting> {
    let source = Source::new(root);
    let policies = policies(root);
    let governors = policies.iter().filter_map(|policy| {
        let directory = format!("{CPUFREQ}/{policy}");
        let known = source.text(&format!("{directory}/scaling_available_governors"))?;
        let is_known = known.split_whitespace().any(|governor| governor == "performance");
        is_known
            .then(|| setting(source, &format!("{directory}/scaling_governor"), "performance"))?
    });
    let boost = setting(source, BOOST, "0");
    let turbo = setting(source, NO_TURBO, "1");
    governors.chain(boost).chain(turbo).collect()
}

/// The change that this file needs, if it is there and needs one.
fn setting(source: Source, file: &str, wanted: &str) -> Option<Setting> {
    let was = source.text(file).filter(|now| now != wanted)?;
    Some(Setting { file: source.path(file), was, wanted: wanted.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::source::tests::root_with;

    #[test]
    fn only_what_disturbs_is_changed_and_goes_back() {
        let policy = |number: u32, file: &str| format!("{CPUFREQ}/policy{number}/{file}");
        let root = root_with(&[
            (&policy(0, "scaling_governor"), "powersave\n"),
            (&policy(0, "scaling_available_governors"), "performance powersave\n"),
            (&policy(1, "scaling_governor"), "performance\n"),
            (&policy(1, "scaling_available_governors"), "performance powersave\n"),
            (&policy(2, "scaling_governor"), "userspace\n"),
            (&policy(2, "scaling_available_governors"), "userspace\n"),
            (BOOST, "1\n"),
        ]);
        let settings = plan(root.path());
        let words: Vec<(&str, &str)> =
            settings.iter().map(|s| (s.was.as_str(), s.wanted.as_str())).collect();
        assert_eq!(words, [("powersave", "performance"), ("1", "0")]);
        settings.iter().for_each(|setting| setting.apply().unwrap());
        assert!(plan(root.path()).is_empty());
        settings.iter().for_each(|setting| setting.undo().unwrap());
        assert_eq!(plan(root.path()), settings);
    }

    #[test]
    fn a_setting_that_has_gone_needs_no_undoing_and_one_that_cannot_be_seen_does() {
        let root = root_with(&[(NO_TURBO, "0")]);
        let settings = plan(root.path());
        drop(root);
        assert_eq!(settings.len(), 1);
        assert!(settings[0].undo().is_err() && settings[0].apply().is_err());
        let file = "/proc/sys/kernel/no-such-setting".into();
        let gone = Setting { file, was: "0".into(), wanted: "1".into() };
        assert!(gone.undo().is_ok() && gone.apply().is_err());
    }
}
