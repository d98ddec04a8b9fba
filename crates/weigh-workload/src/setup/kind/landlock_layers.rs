//! Layers of Landlock around each worker, which allow all but one thing that no program does; and that this
//! one is denied, which the worker tries itself before it executes its program.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open, unlink};
use rustix::io::Errno;
use rustix::process::{getppid, test_kill_process};
use rustix::thread::set_no_new_privs;
use serde::{Deserialize, Serialize};

use crate::landlock::{Handled, RIGHTS_OF_FILE, Ruleset};
use crate::setup::Act;

/// All rights of the first version, and the one of them that is not given: to make a device of blocks. One of
/// characters would do as well, but Linux 6.1 and 6.12 let that be made beside a rule that does not allow it.
const ALL_RIGHTS: u64 = (1 << 13) - 1;
const MAKE_BLOCK: u64 = 1 << 11;
/// To bind a TCP socket to a port, and to connect it to one.
const BIND_TCP: u64 = 1;
const RIGHTS_OF_PORT: u64 = 0b11;
/// No connection to an abstract socket outside, and no signal to a process outside.
const ALL_SCOPES: u64 = 0b11;
/// To bind this port is denied: the last one, so nobody needs a privilege for it.
const DENIED_PORT: u16 = u16::MAX;

/// Files without a name, each for a rule of every layer. The kernel merges two rules for one file.
static FILES: OnceLock<Vec<OwnedFd>> = OnceLock::new();

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LandlockLayers {
    pub layers: u32,
    /// Number of rules in each layer: one for the whole tree, and the others for files that nobody opens.
    pub rules: u32,
    /// True if each layer also handles TCP, and has a rule for each port.
    #[serde(default)]
    pub has_ports: bool,
    /// True if each layer has both scopes.
    #[serde(default)]
    pub is_scoped: bool,
    /// True in the other arm, which builds the same layers and enters none.
    #[serde(default)]
    pub is_rehearsal: bool,
}

impl LandlockLayers {
    /// Number of layers around its worker.
    pub fn entered(&self) -> u32 {
        if self.is_rehearsal { 0 } else { self.layers }
    }

    /// Tries what the layers forbid, except the device.
    fn are_denied(&self) -> io::Result<Vec<bool>> {
        let port = self.has_ports.then(|| is_port_denied(bind()));
        let signal = self.is_scoped.then(is_signal_denied);
        port.into_iter().chain(signal).collect()
    }
}

/// Builds the ruleset of a layer.
fn built(LandlockLayers { has_ports, is_scoped, .. }: &LandlockLayers) -> io::Result<Ruleset> {
    let ruleset = Ruleset::new(&Handled {
        files: ALL_RIGHTS,
        ports: if *has_ports { RIGHTS_OF_PORT } else { 0 },
        scopes: if *is_scoped { ALL_SCOPES } else { 0 },
    })?;
    let root = open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    ruleset.add_path(&root, ALL_RIGHTS & !MAKE_BLOCK)?;
    for file in FILES.get().into_iter().flatten() {
        ruleset.add_path(file, RIGHTS_OF_FILE & ALL_RIGHTS)?;
    }
    if *has_ports {
        add_ports(&ruleset)?;
    }
    Ok(ruleset)
}

/// Port 0 stands for those that the kernel chooses.
fn add_ports(ruleset: &Ruleset) -> io::Result<()> {
    for port in 0..=u16::MAX {
        let allowed = if port == DENIED_PORT { RIGHTS_OF_PORT & !BIND_TCP } else { RIGHTS_OF_PORT };
        ruleset.add_port(port, allowed)?;
    }
    Ok(())
}

/// Makes files that never have a name. Their inodes last until the launcher ends.
fn files_without_names(count: u32) -> io::Result<Vec<OwnedFd>> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let make = |_| open(std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR);
    (0..count).map(make).collect::<Result<_, Errno>>().map_err(io::Error::from)
}

/// Closes the files in a worker: the execution of its program would, and the launchers of other arms may have
/// fewer.
fn close_files() {
    for file in FILES.get().into_iter().flatten() {
        // SAFETY: this process was forked for a program, which it executes now; nothing uses them any more.
        unsafe { libc::close(file.as_raw_fd()) };
    }
}

/// A device without a driver: `true` where Landlock denied it. It is asked before it is looked whether who
/// makes it may (`do_mknodat` in fs/namei.c), which is refused with another number.
fn is_denied() -> io::Result<bool> {
    let name: PathBuf = std::env::temp_dir().join(format!(".weigh-device-{}", std::process::id()));
    match mknodat(CWD, &name, FileType::BlockDevice, Mode::RUSR, 0) {
        Err(Errno::ACCESS) => Ok(true),
        Err(Errno::PERM) => Ok(false),
        Ok(()) => unlink(&name).map(|()| false).map_err(io::Error::from),
        Err(error) => Err(io::Error::other(format!("{}: {error}", name.display()))),
    }
}

fn bind() -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, DENIED_PORT))
}

/// Judges the binding of the denied port: `true` where it was denied with Landlock's number. A seccomp filter
/// has another.
fn is_port_denied(bound: io::Result<TcpListener>) -> io::Result<bool> {
    match bound {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(false),
        other => other.map(|_| false),
    }
}

/// Asks whether a signal to the launcher, which is outside, would be allowed: `true` where that is denied.
fn is_signal_denied() -> io::Result<bool> {
    let launcher = getppid().ok_or_else(|| io::Error::other("its launcher has ended"))?;
    match test_kill_process(launcher) {
        Err(Errno::PERM) => Ok(true),
        other => other.map(|()| false).map_err(io::Error::from),
    }
}

impl Act for LandlockLayers {
    /// In all arms, so that with one treatment both launchers make the same files.
    fn in_launcher(&self) -> Result<(), String> {
        let files = files_without_names(self.rules.saturating_sub(1)).map_err(|error| {
            format!("cannot make files without a name (O_TMPFILE) in TMPDIR: {error}")
        })?;
        FILES.get_or_init(|| files);
        Ok(())
    }

    fn in_worker(&self) -> io::Result<()> {
        if self.layers == 0 {
            close_files();
            return Ok(());
        }
        // Others refuse with these numbers too: user IDs, a seccomp filter.
        if self.are_denied()?.contains(&true) {
            return Err(io::Error::other(
                "a port or a signal is denied before Landlock denies it, so nothing would prove its layers",
            ));
        }
        if self.is_rehearsal {
            (0..self.layers).try_for_each(|_| built(self).map(drop))?;
            close_files();
            return Ok(());
        }
        set_no_new_privs(true)?;
        (0..self.layers).try_for_each(|_| built(self)?.restrict())?;
        close_files();
        match is_denied()? && !self.are_denied()?.contains(&false) {
            true => Ok(()),
            false => Err(io::Error::other("Landlock does not deny a forbidden call")),
        }
    }

    fn forbids(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_others_deny_is_no_proof_of_landlock() {
        let judged = |errno| is_port_denied(Err(io::Error::from_raw_os_error(errno)));
        assert!(judged(libc::EACCES).unwrap());
        assert!(!judged(libc::EADDRINUSE).unwrap());
        assert_eq!(judged(libc::EPERM).unwrap_err().raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn a_rehearsal_enters_no_layer() {
        let layers = LandlockLayers { layers: 2, rules: 1, ..LandlockLayers::default() };
        assert_eq!(layers.entered(), 2);
        assert_eq!(LandlockLayers { is_rehearsal: true, ..layers }.entered(), 0);
    }
}
