//! Settings of the machine that are changed for a while, journalled and undone like a treatment.

use std::path::Path;

use serde_json::Value;

use crate::machine::fix::Setting;
use crate::undo::claim::claim_cpus;
use crate::undo::guard::Guard;
use crate::undo::journal::{EntryOwner, Undoing};
use crate::undo::queue::Refused;

/// The journal's entry for them.
pub const SETTINGS: &str = "settings of the machine";

pub fn undoing() -> Undoing {
    let undo = Box::new(|state: &Value, owner: &EntryOwner| undo(state, owner.root));
    Undoing { kind: SETTINGS, ends_with_boot: true, by_command: false, undo }
}

/// Settings that were changed, until [`Changed::restore`], or until this process dies.
pub struct Changed {
    guard: Guard,
}

impl Changed {
    /// Changes what [`crate::machine::fix::plan`] finds below `root`, all of it or nothing.
    pub fn apply(settings: &[Setting], root: &Path) -> Result<Changed, String> {
        let claims = vec![claim_cpus(root).map_err(Refused::without_waiting)?];
        let mut guard =
            Guard::arm_below(root, claims, vec![undoing()]).map_err(|error| error.to_string())?;
        match change(settings, "of doctor", &mut guard) {
            Ok(()) => Ok(Changed { guard }),
            Err(problem) => {
                let left = guard.disarm().err().map(|left| format!("\n{left}")).unwrap_or_default();
                Err(problem + &left)
            }
        }
    }

    /// Puts the settings back.
    ///
    /// # Errors
    /// Sentences that say what is left; the journal stays for `weigh restore`.
    pub fn restore(self) -> Result<(), String> {
        self.guard.disarm()
    }
}

/// Changes settings, all of them or nothing, until the guard undoes its entry for this instance of them.
pub fn change(settings: &[Setting], instance: &str, guard: &mut Guard) -> Result<(), String> {
    write_down(settings, instance, guard)?;
    for setting in settings {
        setting.apply().map_err(|error| {
            format!("cannot change {}: {error}; changing it needs root", setting.file.display())
        })?;
    }
    Ok(())
}

/// Has the guard put settings back when we are gone; they are not changed yet.
pub fn write_down(settings: &[Setting], instance: &str, guard: &mut Guard) -> Result<(), String> {
    let state = serde_json::to_value(settings).map_err(|error| error.to_string())?;
    guard.write_down(SETTINGS, instance, state).map_err(|error| error.to_string())
}

/// Undoes the journal's entry, the last first: of the settings that weigh changes, and nothing else.
pub fn undo(state: &Value, root: &Path) -> Result<(), String> {
    let settings: Vec<Setting> = serde_json::from_value(state.clone())
        .map_err(|error| format!("the journal's settings are damaged: {error}"))?;
    let undo = |setting: &Setting| {
        if !setting.is_known(root) {
            let (file, was) = (setting.file.display(), &setting.was);
            return Some(format!(
                "{file} = {was:?} is not a setting that weigh changes, so it is left alone"
            ));
        }
        let say = |error| format!("cannot restore {}: {error}", setting.file.display());
        setting.undo().map_err(say).err()
    };
    let left: Vec<String> = settings.iter().rev().filter_map(undo).collect();
    if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::machine::fix::RCU_EXPEDITED;

    #[test]
    fn known_settings_are_put_back_and_every_other_is_named() {
        let root = tempfile::tempdir().unwrap();
        let [known, unknown] = [RCU_EXPEDITED, "/sys/kernel/profiling"].map(|file| {
            let file = root.path().join(file.trim_start_matches('/'));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "1").unwrap();
            Setting { file, was: "0".into(), wanted: "1".into() }
        });
        let state = |settings: &[&Setting]| serde_json::to_value(settings).unwrap();
        assert_eq!(undo(&state(&[&known]), root.path()), Ok(()));
        assert_eq!(known.read().unwrap(), "0");
        known.apply().unwrap();
        let left = undo(&state(&[&known, &unknown]), root.path()).unwrap_err();
        assert!(left.contains("/sys/kernel/profiling = \"0\" is not a setting that weigh changes"));
        assert_eq!([known.read().unwrap(), unknown.read().unwrap()], ["0", "1"]);
        assert!(undo(&Value::Null, root.path()).unwrap_err().contains("damaged"));
    }
}
