//! Mechanism that makes the next boot, once, differ from the normal boot.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::entry::BootEntry;
use super::reboot::WayDown;
use super::{grub, kexec};

/// How the machine gets into a boot of an arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// The running kernel starts the next one, without firmware and boot loader
    #[default]
    Kexec,
    /// The machine resets, and GRUB boots weigh's own entry, for this one boot
    Grub,
}

impl Mechanism {
    /// Tries whether it would boot this, and leaves it at that.
    pub fn try_out(self, entry: &BootEntry) -> Result<(), String> {
        match self {
            Mechanism::Kexec if kexec::is_loaded()? => {
                Err("a kernel is already loaded for kexec: unload it with `kexec -u`".into())
            }
            Mechanism::Kexec => {
                kexec::load(&entry.kernel, &entry.line)?;
                kexec::unload()
            }
            Mechanism::Grub => grub::try_out(&entry.kernel, &entry.line),
        }
    }

    /// Makes this boot the next one, and no other after it.
    pub fn load(self, entry: &BootEntry, mark: &str) -> Result<(), String> {
        match self {
            Mechanism::Kexec => kexec::load(&entry.kernel, &entry.marked(mark)),
            Mechanism::Grub => grub::load(&entry.kernel, &entry.marked(mark)),
        }
    }

    /// Makes the normal entry the next one again.
    pub fn unload(self) -> Result<(), String> {
        match self {
            Mechanism::Kexec if kexec::is_loaded()? => kexec::unload(),
            Mechanism::Kexec => Ok(()),
            Mechanism::Grub => grub::unload(),
        }
    }

    /// Where the machine goes when it goes down.
    pub fn way_down(self) -> WayDown {
        match self {
            Mechanism::Kexec => WayDown::Loaded,
            Mechanism::Grub => WayDown::Reset,
        }
    }

    /// For who is asked.
    pub fn sentence(self) -> &'static str {
        match self {
            Mechanism::Kexec => {
                "by kexec, which bypasses firmware and boot loader and leaves both unchanged"
            }
            Mechanism::Grub => {
                "by a one-shot GRUB entry, which weigh writes to custom.cfg and removes at the end"
            }
        }
    }

    /// Returns true if a watchdog that was set before stays on when the next kernel begins.
    ///
    /// A reset stops it.
    pub fn keeps_watchdog(self) -> bool {
        self == Mechanism::Kexec
    }
}
