//! A hidden role of `weigh`, started by root alone: it becomes another program (qemu) that runs as the user
//! `nobody`, without a network, in a file system of its own. In that are the system's programs and libraries,
//! some devices, and files that were opened before: whoever gets out of a guest finds nothing else.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{BorrowedFd, FromRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, mount_remount, unmount,
};
use rustix::process::{Signal, getppid, pivot_root, umask};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde::{Deserialize, Serialize};

use trust::program::follow_parent;
use trust::start::{self, Inherited};
use weigh_fixture::programs::NOBODY;
use weigh_host::own_program::be_signalled_as_usual;
use weigh_workload::keeper::become_user;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__confined";
/// With the programs of the system and their libraries, as far as they are there.
const SYSTEM: [&str; 8] =
    ["usr", "bin", "sbin", "lib", "lib32", "lib64", "nix", "run/current-system"];
/// Where a library is.
const LIBRARIES: &str = "etc/ld.so.cache";
const DEVICES: [&str; 3] = ["dev/null", "dev/urandom", "dev/kvm"];

/// Files and directories that the confined program has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Confinement {
    /// An empty directory, on which its root is mounted.
    pub root: PathBuf,
    /// A directory of its own, for its temporary files: it has this path there, too.
    pub temporary: PathBuf,
    /// Open files of which it finds copies in its root, under these names.
    pub copies: Vec<(RawFd, String)>,
    /// Open files that it inherits.
    pub open: Vec<RawFd>,
}

/// The role: does not return where the program was executed.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let parent = getppid().ok_or("the parent process has ended")?;
    let confinement = arguments.next().and_then(|text| text.into_string().ok());
    let confinement: Confinement = confinement
        .and_then(|text| serde_json::from_str(&text).ok())
        .ok_or("the first argument is not a confinement in JSON")?;
    let program = arguments.next().ok_or("the second argument, a program, is missing")?;
    let say = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    confinement.enter().map_err(say("cannot make a private file system"))?;
    // While this is root: its `PATH` is that of the system.
    let mut command = start::command(&program, Inherited::Fixed);
    command.args(arguments).env("TMPDIR", &confinement.temporary);
    umask(Mode::from_raw_mode(0o077));
    become_user(NOBODY).map_err(say("cannot become the user nobody"))?;
    be_signalled_as_usual().map_err(say("cannot reset the signals"))?;
    // The kernel forgets it when the user changes.
    if !follow_parent(parent, Signal::KILL)
        .map_err(say("cannot ask for a signal at the parent's end"))?
    {
        return Err("the parent process has ended".into());
    }
    for file in &confinement.open {
        // SAFETY: it was left open for this.
        let file = unsafe { BorrowedFd::borrow_raw(*file) };
        fcntl_setfd(file, FdFlags::empty())
            .map_err(|error| format!("cannot pass on an open file: {}", io::Error::from(error)))?;
    }
    let error = command.exec();
    Err(format!("cannot execute {}: {error}", program.display()))
}

impl Confinement {
    /// Before the program and its arguments, on the command line of this role.
    pub fn to_argument(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    /// Moves this process there. It must have one thread.
    fn enter(&self) -> io::Result<()> {
        let apart = UnshareFlags::NEWNS
            | UnshareFlags::NEWNET
            | UnshareFlags::NEWIPC
            | UnshareFlags::NEWUTS;
        // SAFETY: it closes no file descriptors, and this process has one thread.
        unsafe { unshare_unsafe(apart) }?;
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        umask(Mode::from_raw_mode(0o022));
        mount("weigh", &self.root, "tmpfs", MountFlags::NOSUID, Some(c"mode=755"))?;
        SYSTEM.iter().try_for_each(|name| self.bring(name))?;
        DEVICES.iter().try_for_each(|name| self.bring_device(name))?;
        self.bring_copies()?;
        let temporary = self.within(&self.temporary);
        fs::create_dir_all(&temporary)?;
        mount_bind(&self.temporary, &temporary)?;
        std::env::set_current_dir(&self.root)?;
        // The old root is on top of the new one for a moment (pivot_root(2)).
        pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        std::env::set_current_dir("/")
    }

    /// Where a path of now will be.
    fn within(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A directory of the system, or the link that it is.
    fn bring(&self, name: &str) -> io::Result<()> {
        let (from, to) = (Path::new("/").join(name), self.root.join(name));
        let kind = match fs::symlink_metadata(&from) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            found => found?.file_type(),
        };
        if let Some(above) = to.parent() {
            fs::create_dir_all(above)?;
        }
        if kind.is_symlink() {
            return symlink(fs::read_link(&from)?, to);
        }
        fs::create_dir(&to)?;
        mount_bind_recursive(&from, &to)?;
        let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        Ok(mount_remount(&to, flags, "")?)
    }

    /// Everybody may use it: only the program is here.
    fn bring_device(&self, name: &str) -> io::Result<()> {
        let (from, to) = (Path::new("/").join(name), self.root.join(name));
        let device = match fs::metadata(&from) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            found => found?.rdev(),
        };
        if let Some(above) = to.parent() {
            fs::create_dir_all(above)?;
        }
        mknodat(CWD, &to, FileType::CharacterDevice, Mode::empty(), device)?;
        fs::set_permissions(to, Permissions::from_mode(0o666))
    }

    fn bring_copies(&self) -> io::Result<()> {
        let libraries = Path::new("/").join(LIBRARIES);
        if libraries.exists() {
            fs::create_dir(self.root.join("etc"))?;
            fs::copy(libraries, self.root.join(LIBRARIES))?;
        }
        for (file, name) in &self.copies {
            // SAFETY: it was left open for this, and nothing else of this process knows it.
            let mut file = unsafe { File::from_raw_fd(*file) };
            let mut copy = File::create(self.root.join(name))?;
            io::copy(&mut file, &mut copy)?;
            copy.set_permissions(Permissions::from_mode(0o444))?;
        }
        Ok(())
    }
}
