//! How the machine goes down: into the kernel that was loaded, or by its firmware into the next entry of its
//! boot loader. With
//! systemd all services are stopped in order; without it file systems are written out and made read-only.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::SIGTERM;

use super::hook::has_systemd;
use trust::start::{self, Inherited};

/// Services that do not stop keep it up so long at most (systemd's default is 90 s for each).
const GOES_DOWN_WITHIN: Duration = Duration::from_secs(900);

/// How long services are stopped at most, before the kernel goes down.
pub fn services_stop_within() -> Duration {
    if has_systemd() { GOES_DOWN_WITHIN } else { Duration::ZERO }
}

/// Where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayDown {
    /// The kernel that was loaded.
    Loaded,
    /// The next entry of the boot loader.
    Reset,
}

/// Checks that this process may boot the machine.
///
/// It needs root with the capability to boot, and must not be in a container.
pub fn may_boot() -> Result<(), String> {
    /// `CAP_SYS_BOOT`, capabilities(7).
    const SYS_BOOT: u32 = 22;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    if !rustix::process::geteuid().is_root() {
        return Err("only root can reboot this machine".into());
    }
    if bits >> SYS_BOOT & 1 == 0 {
        return Err("this process cannot reboot the machine: it lacks CAP_SYS_BOOT".into());
    }
    match weigh_host::machine::facts::read().container {
        Some(container) => Err(format!(
            "this is a container ({container}), which cannot reboot: run weigh on the host"
        )),
        None => Ok(()),
    }
}

/// Does not return where it works.
pub fn go_down(way: WayDown) -> Result<(), String> {
    may_boot()?;
    rustix::fs::sync();
    if has_systemd() {
        let verb = if way == WayDown::Loaded { "kexec" } else { "reboot" };
        let program = trust::program::find("systemctl")?.ok_or("systemctl is missing")?;
        // systemd ends this process with all others, and waits for it.
        let goes_down = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_shutdown(SIGTERM, 0, Arc::clone(&goes_down))
            .map_err(|error| format!("cannot listen for signals: {error}"))?;
        let done = start::command(program, Inherited::Fixed).arg(verb).status();
        let has_failed = !done.as_ref().is_ok_and(|status| status.success());
        if !has_failed {
            std::thread::sleep(GOES_DOWN_WITHIN);
        }
        goes_down.store(false, Ordering::Relaxed);
        return Err(match has_failed {
            true => format!("`systemctl {verb}` failed: the machine stays up"),
            false => format!("`systemctl {verb}` succeeded, but the machine is still up"),
        });
    }
    // Read-only, as far as that goes: what was written is on disk already.
    let _ = fs::write("/proc/sysrq-trigger", "u");
    let how = match way {
        WayDown::Loaded => libc::LINUX_REBOOT_CMD_KEXEC,
        WayDown::Reset => libc::LINUX_REBOOT_CMD_RESTART,
    };
    // SAFETY: it takes a number.
    unsafe { libc::reboot(how) };
    Err(format!("cannot reboot the machine: {}", std::io::Error::last_os_error()))
}
