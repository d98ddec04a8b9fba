//! The few settings of the CPUs that `weigh doctor --fix` changes for a while: the governor and the
//! boost. Both are one word in a file, take effect at once, and go back by writing the old word.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::source::Source;

const CPU: &str = "/sys/devices/system/cpu";

/// A file of the kernel that holds one word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub file: PathBuf,
    pub was: String,
    pub wanted: String,
}

impl Setting {
    /// Changes it. Whoever calls this has written down how to undo it.
    ///
    /// # Errors
    /// As `write(2)`: `PermissionDenied` without root.
    pub fn apply(&self) -> io::Result<()> {
        fs::write(&self.file, &self.wanted)
    }

    /// Writes back what was found; a CPU that has gone meanwhile needs nothing.
    ///
    /// # Errors
    /// As `write(2)`.
    pub fn undo(&self) -> io::Result<()> {
        match fs::write(&self.file, &self.was) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

/// What below `root` should be changed while measuring; empty where all is well or nothing is visible.
pub fn plan(root: &Path) -> Vec<Setting> {
    let source = Source::new(root);
    let policies = source.names(&format!("{CPU}/cpufreq"));
    let governors =
        policies.iter().filter(|name| name.starts_with("policy")).filter_map(|policy| {
            let directory = format!("{CPU}/cpufreq/{policy}");
            let known = source.text(&format!("{directory}/scaling_available_governors"))?;
            let is_known = known.split_whitespace().any(|governor| governor == "performance");
            is_known
                .then(|| setting(source, &format!("{directory}/scaling_governor"), "performance"))?
        });
    let boost = setting(source, &format!("{CPU}/cpufreq/boost"), "0");
    let turbo = setting(source, &format!("{CPU}/intel_pstate/no_turbo"), "1");
    governors.chain(boost).chain(turbo).collect()
}

/// The change that this file needs, if it is there and needs one.
fn setting(source: Source, file: &str, wanted: &str) -> Option<Setting> {
    let was = source.text(file).filter(|now| now != wanted)?;
    Some(Setting { file: source.path(file), was, wanted: wanted.into() })
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::root_with;
    use super::*;

    #[test]
    fn only_what_disturbs_is_changed_and_goes_back() {
        let policy = |number: u32, file: &str| format!("{CPU}/cpufreq/policy{number}/{file}");
        let root = root_with(&[
            (&policy(0, "scaling_governor"), "powersave\n"),
            (&policy(0, "scaling_available_governors"), "performance powersave\n"),
            (&policy(1, "scaling_governor"), "performance\n"),
            (&policy(1, "scaling_available_governors"), "performance powersave\n"),
            (&policy(2, "scaling_governor"), "userspace\n"),
            (&policy(2, "scaling_available_governors"), "userspace\n"),
            (&format!("{CPU}/cpufreq/boost"), "1\n"),
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
    fn a_setting_that_has_gone_needs_no_undoing() {
        let root = root_with(&[(&format!("{CPU}/intel_pstate/no_turbo"), "0")]);
        let settings = plan(root.path());
        drop(root);
        assert_eq!(settings.len(), 1);
        assert!(settings[0].undo().is_ok() && settings[0].apply().is_err());
    }
}
