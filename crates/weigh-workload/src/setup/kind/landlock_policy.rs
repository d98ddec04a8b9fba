//! Layers of Landlock with somebody's policy around each worker. The worker picks accesses that only the
//! policy denies, enters the layers, and checks that each access now fails. Then it executes its program.

use std::collections::BTreeSet;
use std::fs::{self, canonicalize};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mknodat, open};
use rustix::io::Errno;
use rustix::process::{getppid, test_kill_process};
use rustix::thread::set_no_new_privs;
use serde::{Deserialize, Serialize};

use crate::landlock::{Handled, RIGHTS_OF_FILE, Ruleset};
use crate::setup::Act;

const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
/// Rights to make nodes of the types that a worker may try in its own directory.
const MAKES: [(u64, FileType); 4] = [
    (1 << 11, FileType::BlockDevice),
    (1 << 8, FileType::RegularFile),
    (1 << 10, FileType::Fifo),
    (1 << 9, FileType::Socket),
];
const BIND_TCP: u64 = 1;
const CONNECT_TCP: u64 = 1 << 1;
const ABSTRACT_SOCKETS: u64 = 1;
const SIGNALS: u64 = 1 << 1;
/// A firewall may drop what a trial sends; Landlock denies at once.
const LONGEST_CONNECT: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LandlockPolicy {
    /// How often the worker enters the policy.
    pub layers: u32,
    pub handled: Handled,
    /// Rights beneath each path; a path that does not exist has no rule.
    pub paths: Vec<(PathBuf, u64)>,
    pub ports: Vec<(u16, u64)>,
    /// True in the other arm, which builds the same layers and enters none.
    #[serde(default)]
    pub is_rehearsal: bool,
}

/// Something that the policy denies, to try.
enum Trial {
    Open(PathBuf, OFlags),
    Make(PathBuf, FileType),
    Bind(u16),
    Connect(u16),
    Signal,
    /// A connection to this socket, which was made outside.
    AbstractSocket(UnixListener),
}

impl Trial {
    /// Tries it in the layers.
    fn is_denied(&self) -> bool {
        self.run().is_err_and(|error| self.is_denial(&error))
    }

    /// The error numbers are those by which Landlock denies.
    fn is_denial(&self, error: &io::Error) -> bool {
        let denied = match self {
            Trial::Signal | Trial::AbstractSocket(_) => libc::EPERM,
            _ => libc::EACCES,
        };
        error.raw_os_error() == Some(denied)
    }

    /// Tries it before the layers. What fails now would fail in the same way in the layers, unless the kernel
    /// asks Landlock before it finds that reason.
    fn is_usable(&self) -> bool {
        let Err(error) = self.run() else {
            return true;
        };
        let after_landlock: &[ErrorKind] = match self {
            // EPERM without CAP_MKNOD.
            Trial::Make(_, FileType::BlockDevice) => &[ErrorKind::PermissionDenied],
            Trial::Bind(_) => &[ErrorKind::AddrInUse, ErrorKind::AddrNotAvailable],
            Trial::Connect(_) => &[
                ErrorKind::ConnectionRefused,
                ErrorKind::TimedOut,
                ErrorKind::NetworkUnreachable,
                ErrorKind::AddrNotAvailable,
            ],
            _ => &[],
        };
        !self.is_denial(&error) && after_landlock.contains(&error.kind())
    }

    fn run(&self) -> io::Result<()> {
        match self {
            Trial::Open(path, flags) => {
                open(path, *flags | OFlags::CLOEXEC, Mode::empty()).map(drop).map_err(Into::into)
            }
            Trial::Make(path, node) => {
                mknodat(CWD, path, *node, Mode::RUSR, 0)?;
                fs::remove_file(path)
            }
            Trial::Bind(port) => TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).map(drop),
            Trial::Connect(port) => {
                let address = (Ipv4Addr::LOCALHOST, *port).into();
                TcpStream::connect_timeout(&address, LONGEST_CONNECT).map(drop)
            }
            Trial::Signal => test_kill_process(getppid().ok_or(Errno::SRCH)?).map_err(Into::into),
            Trial::AbstractSocket(socket) => {
                UnixStream::connect_addr(&socket.local_addr()?).map(drop)
            }
        }
    }
}

impl LandlockPolicy {
    /// Number of layers around its worker.
    pub fn entered(&self) -> u32 {
        if self.is_rehearsal { 0 } else { self.layers }
    }

    /// Things that the policy denies and that this process can still do.
    ///
    /// # Errors
    /// A sentence if there are none: then nothing would prove the layers.
    fn trials(&self) -> io::Result<Vec<Trial>> {
        let mut trials = self.trials_of_files();
        let port = |right: u64| {
            let allowed = self.ports.iter().filter(|(_, rights)| rights & right != 0);
            let allowed: BTreeSet<u16> = allowed.map(|(port, _)| *port).collect();
            // Port 0 never has a listener; a bind to it finds a free port.
            let mut ports = [0].into_iter().chain((1024..=u16::MAX).rev());
            let free = || ports.find(|port| !allowed.contains(port));
            (self.handled.ports & right != 0).then(free).flatten()
        };
        trials.extend(port(BIND_TCP).map(Trial::Bind));
        trials.extend(port(CONNECT_TCP).map(Trial::Connect));
        if self.handled.scopes & SIGNALS != 0 {
            trials.push(Trial::Signal);
        }
        if self.handled.scopes & ABSTRACT_SOCKETS != 0 {
            let address = SocketAddr::from_abstract_name(fresh_name())?;
            trials.push(Trial::AbstractSocket(UnixListener::bind_addr(&address)?));
        }
        trials.retain(Trial::is_usable);
        match trials.is_empty() {
            false => Ok(trials),
            true => Err(io::Error::other(
                "the Landlock policy denies nothing that weigh can try here, so nothing would prove it: deny \
                 also to list /proc (read_dir), for example",
            )),
        }
    }

    fn trials_of_files(&self) -> Vec<Trial> {
        let rules: Vec<(PathBuf, u64)> = (self.paths.iter())
            .filter_map(|(path, rights)| Some((canonicalize(path).ok()?, *rights)))
            .collect();
        let is_denied = |path: &Path, right| {
            let allows =
                |(parent, rights): &(PathBuf, u64)| path.starts_with(parent) && rights & right != 0;
            self.handled.files & right != 0 && !rules.iter().any(allows)
        };
        let opens = [
            ("/", READ_DIR, OFlags::RDONLY | OFlags::DIRECTORY),
            ("/proc", READ_DIR, OFlags::RDONLY | OFlags::DIRECTORY),
            ("/dev", READ_DIR, OFlags::RDONLY | OFlags::DIRECTORY),
            ("/etc/passwd", READ_FILE, OFlags::RDONLY),
            ("/proc/version", READ_FILE, OFlags::RDONLY),
            ("/dev/null", READ_FILE, OFlags::RDONLY),
            ("/dev/null", WRITE_FILE, OFlags::WRONLY),
        ];
        let opens = opens.into_iter().filter(|(path, right, _)| is_denied(Path::new(path), *right));
        let directory = canonicalize(std::env::temp_dir()).ok();
        let makes = directory.iter().flat_map(|directory| {
            let node = directory.join(format!(".{}", fresh_name()));
            let makes = MAKES.into_iter().filter(|(right, _)| is_denied(directory, *right));
            makes.map(move |(_, kind)| Trial::Make(node.clone(), kind))
        });
        opens.map(|(path, _, flags)| Trial::Open(path.into(), flags)).chain(makes).collect()
    }

    /// Checks that something which the policy denies can be tried here.
    ///
    /// # Errors
    /// A sentence, if nothing can.
    pub fn check_trials(&self) -> io::Result<()> {
        self.trials().map(drop)
    }

    fn built(&self) -> io::Result<Ruleset> {
        let ruleset = Ruleset::new(&self.handled)?;
        for (path, rights) in &self.paths {
            let parent = match open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
                Err(Errno::NOENT) => continue,
                opened => opened.map_err(|error| problem(path, error.into()))?,
            };
            let is_directory = FileType::from_raw_mode(fstat(&parent)?.st_mode).is_dir();
            let rights = if is_directory { *rights } else { rights & RIGHTS_OF_FILE };
            if rights != 0 {
                ruleset.add_path(&parent, rights).map_err(|error| problem(path, error))?;
            }
        }
        self.ports.iter().try_for_each(|(port, rights)| ruleset.add_port(*port, *rights))?;
        Ok(ruleset)
    }
}

/// A name that no killed worker has left, and no worker with this PID in another namespace uses.
fn fresh_name() -> String {
    let now = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
    format!("weigh-landlock-{}-{now}", std::process::id())
}

fn problem(path: &Path, error: io::Error) -> io::Error {
    io::Error::other(format!("a rule of the Landlock policy, {}: {error}", path.display()))
}

impl Act for LandlockPolicy {
    fn in_worker(&self) -> io::Result<()> {
        let trials = self.trials()?;
        let rulesets: Vec<_> = (0..self.layers).map(|_| self.built()).collect::<Result<_, _>>()?;
        if self.is_rehearsal {
            // The treated worker tries each again in its layers.
            trials.iter().for_each(|trial| drop(trial.run()));
            return Ok(());
        }
        set_no_new_privs(true)?;
        rulesets.iter().try_for_each(Ruleset::restrict)?;
        match trials.iter().all(Trial::is_denied) {
            true => Ok(()),
            false => Err(io::Error::other("Landlock allowed an access that the policy denies")),
        }
    }

    fn forbids(&self) -> bool {
        true
    }
}
