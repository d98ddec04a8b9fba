//! How a guest's CPU is made: by the hardware, which gives time, or by an emulator that counts
//! instructions, which gives path length. A guest that is tried decides which: a `/dev/kvm` may be there and
//! hang.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::{BootPlan, Guest};
use crate::TreatmentError;
use weigh_host::machine::boot_id;
use weigh_model::workload::clock::PlaceClock;

const DEVICE: &str = "/dev/kvm";
/// With KVM a guest is up in two or three seconds.
const TRIED_FOR: Duration = Duration::from_secs(30);
/// Name of the file with the finding for this boot of the host, so that KVM is tried once.
const KNOWN: &str = "kvm";
/// As `shift` says: its clock goes on by 2¹ ns for an instruction.
const NS_EACH: u32 = 2;

/// Meaning of counted instructions for a result.
pub const MEANING: &str = "guests count instructions instead of time, so all results are path lengths \
                           (instructions per operation). Path lengths exclude caches, TLBs, mitigations \
                           and memory latency; each step of a repeated string instruction counts as one.";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accel {
    Kvm,
    Counting,
}

impl Accel {
    /// Returns the words for qemu's command line.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Accel::Kvm => &["-accel", "kvm", "-cpu", "host"],
            Accel::Counting => &[
                "-accel",
                "tcg,thread=single",
                "-cpu",
                "max",
                "-icount",
                // An idle guest waits for its disk: with `sleep=off` its clock would leap from one timer to
                // the next meanwhile, hours ahead, and all its limits of time would be over.
                "shift=1,sleep=on,align=off",
                "-rtc",
                "base=2026-01-01T00:00:00,clock=vm",
            ],
        }
    }

    /// Returns the words to add to a guest's command line.
    ///
    /// Where instructions are counted, pages are not laid out at random. The layout decides how
    /// often a process faults, and how much of its tables a fork copies. It is not a property of a
    /// boot.
    pub fn command_line(self) -> &'static str {
        match self {
            Accel::Kvm => "",
            Accel::Counting => " norandmaps",
        }
    }

    /// Returns the unit of a guest's clock.
    pub fn clock(self) -> PlaceClock {
        match self {
            Accel::Kvm => PlaceClock::Time,
            Accel::Counting => PlaceClock::Instructions { ns_each: NS_EACH },
        }
    }
}

/// Why there is no KVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kvm {
    Works,
    Not(String),
}

/// Finds out if KVM works here.
///
/// If that is not known for this boot of the machine, `plan` is booted with KVM. If that fails, it
/// is booted without KVM, because the guest itself may be at fault. `directory` keeps the finding,
/// and `announce` gets a message before each boot.
pub fn find(
    plan: &mut BootPlan,
    directory: &Path,
    interrupted: &AtomicBool,
    announce: &dyn Fn(&str),
) -> Result<Kvm, TreatmentError> {
    if let Err(error) = OpenOptions::new().read(true).write(true).open(DEVICE) {
        return Ok(Kvm::Not(format!("{DEVICE}: {error}")));
    }
    let file = directory.join(KNOWN);
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    let boot = boot_id().map_err(|error| TreatmentError::Unavailable(error.to_string()))?;
    if let Some(found) = known_of(&known, &boot) {
        return Ok(found);
    }
    announce(&format!(
        "Testing whether a guest boots with KVM (at most {} s).",
        TRIED_FOR.as_secs()
    ));
    let (found, text) = match Guest::start(plan)?.arrive(interrupted, Some(TRIED_FOR)) {
        Ok(_) => (Kvm::Works, "works".to_owned()),
        Err(TreatmentError::Interrupted) => return Err(TreatmentError::Interrupted),
        Err(_) => {
            announce("The guest does not boot with KVM. Testing without KVM.");
            plan.accel = Accel::Counting;
            Guest::start(plan)?.arrive(interrupted, None)?;
            let why = format!(
                "a guest does not boot with {DEVICE}; remove {} to try again",
                file.display()
            );
            (Kvm::Not(why.clone()), why)
        }
    };
    // Not to know it costs half a minute the next time.
    let _ = std::fs::write(file, format!("{boot} {text}\n"));
    Ok(found)
}

/// Returns the kept finding, if it is of this boot of the machine.
fn known_of(kept: &str, boot: &str) -> Option<Kvm> {
    let found = kept.trim_end().strip_prefix(boot)?.strip_prefix(' ')?;
    Some(if found == "works" { Kvm::Works } else { Kvm::Not(found.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_holds_for_one_boot_of_the_machine() {
        assert_eq!(known_of("a works\n", "a"), Some(Kvm::Works));
        assert_eq!(known_of("a it hangs\n", "a"), Some(Kvm::Not("it hangs".into())));
        assert_eq!(known_of("a works\n", "b"), None);
        assert_eq!(known_of("", "a"), None);
    }
}
