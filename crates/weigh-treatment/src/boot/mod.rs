//! Boots of this very machine: what an arm boots, how the machine goes down into it, what brings an
//! experiment back afterwards, and what is on disk meanwhile.

pub mod entry;
mod grub;
pub mod hook;
pub mod kernel;
mod kexec;
mod mechanism;
pub mod normal;
pub mod other;
pub mod reboot;
pub mod state;

pub use entry::BootEntry;
pub use mechanism::Mechanism;
pub use normal::NormalBoot;
pub use reboot::{may_boot, services_stop_within};
pub use state::{BootState, DueBoot};

use super::guest::options::GuestOptions;
use super::read_label;
use weigh_host::machine::watchdog;
use weigh_model::ids::ExperimentId;
use weigh_model::label::Term;

pub const NAME: &str = "boot";

/// Returns true if arms of these labels are boots of this machine.
pub fn are_boots(labels: &[String]) -> bool {
    let is_boot = |term: &Term| term.name == NAME;
    let arms = labels.iter().filter_map(|label| read_label(label).ok());
    arms.into_iter().any(|arm| arm.places.iter().chain(&arm.treatments).any(is_boot))
}

pub fn entry_of(label: &str, normal: &NormalBoot) -> Result<BootEntry, String> {
    let arm = read_label(label)?;
    match (arm.places.as_slice(), arm.treatments.as_slice()) {
        ([], [term]) if term.name == NAME => {
            BootEntry::of(&GuestOptions::of(&term.parameters)?, normal)
        }
        _ => Err(format!(
            "`{label}` is not a single boot: compare boots of this machine with boots only, as in `weigh \
             compare boot:audit`"
        )),
    }
}

/// Options of the arm that boots another system, if the treated one of these labels does.
pub fn other_system(labels: &[String]) -> Result<Option<GuestOptions>, String> {
    let options = |label: &String| -> Result<GuestOptions, String> {
        let terms = read_label(label)?.treatments;
        let own = terms.iter().find(|term| term.name == NAME);
        own.map_or_else(|| Ok(GuestOptions::default()), |term| GuestOptions::of(&term.parameters))
    };
    let arms = labels.iter().map(options).collect::<Result<Vec<_>, _>>()?;
    let is_plain = |arm: &GuestOptions| arm.root.is_none() && arm.kernel.is_none();
    match &arms[..] {
        [_, treated] if treated.root.is_none() && arms[0].root.is_none() => Ok(None),
        [baseline, treated] if treated.root.is_some() && is_plain(baseline) => {
            if treated.selinux.is_some()
                || treated.has_apparmor
                || treated.has_bpf
                || treated.has_audit
            {
                return Err(
                    "root= can be combined only with kernel= and cmdline=: leave out audit, selinux, \
                     apparmor and bpf-lsm"
                        .into(),
                );
            }
            Ok(Some(treated.clone()))
        }
        _ => {
            Err("the baseline of root= must be the normal system: leave out --base, or use --base \
             boot:cmdline=WORDS"
                .into())
        }
    }
}

/// Ends an experiment of boots: nothing of it is left but what is stored. Gives its id.
pub fn end() -> Result<Option<ExperimentId>, String> {
    let state = BootState::read();
    // First, as it would reset a machine that stays up. A failure does not stop the rest of the clean-up.
    let stood_down = match state {
        Ok(None) => Ok(()),
        _ => watchdog::stand_down(),
    };
    // Then the hook, whether or not it is known what is due: without it nothing boots any more.
    hook::remove()?;
    // What it leaves is files, from which nothing boots.
    let forgotten = other::forget();
    let resets = |error| format!("cannot stop the watchdog, which may reset this machine: {error}");
    let Ok(Some(state)) = state else {
        grub::unload_what_is_left()?;
        all([stood_down.map_err(resets), forgotten])?;
        return state.map(|_| None);
    };
    state.mechanism.unload()?;
    // The state alone says which device has a hook: it stays for as long as that does.
    let removed = state.other.as_deref().map_or(Ok(()), |device| {
        other::uninstall(device).map_err(|problem| {
            format!(
                "cannot remove weigh's hook from the other system: {problem}; attach its disk and call \
                 `weigh restore` again, or remove {} if the disk is gone for good",
                BootState::shown()
            )
        })
    });
    let removed = removed.and_then(|()| BootState::remove());
    all([stood_down.map_err(resets), forgotten, removed])?;
    Ok(Some(state.experiment))
}

/// Reports all of these that failed, each on a line.
fn all<const N: usize>(steps: [Result<(), String>; N]) -> Result<(), String> {
    let problems: Vec<String> = steps.into_iter().filter_map(Result::err).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_fails_hides_no_other() {
        assert_eq!(all([Ok(()), Ok(())]), Ok(()));
        assert_eq!(all([Err("a".into()), Ok(()), Err("b".into())]), Err("a\nb".into()));
    }
}
