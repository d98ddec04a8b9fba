//! Another root file system for the launcher and all that it starts, in a mount namespace of its own: when
//! the last of them ends, nothing of it is left. What they write goes to memory, except below one directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, mount_remount, unmount,
};
use rustix::process::{geteuid, pivot_root};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde::{Deserialize, Serialize};

use crate::setup::Act;
use weigh_host::chance;
use weigh_host::user_namespace;

/// In `base`: the root file system or a link to it, what lies above it, and where mounts are made.
pub const TREE: &str = "tree";
pub const ABOVE: &str = "above";
pub const MOUNTS: &str = "mounts";
/// Devices that a program expects in `/dev`; equal in all roots.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// A root file system that was made ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnterRoot {
    pub base: PathBuf,
    /// Directories that are in it at the same path, with what is mounted in them, and are written to as they
    /// are here.
    pub shared: Vec<PathBuf>,
}

impl Act for EnterRoot {
    fn in_launcher(&self) -> Result<(), String> {
        own_mounts()?;
        self.enter()
    }

    fn directory(&self, wanted: PathBuf) -> PathBuf {
        let is_shared = self.shared.iter().any(|shared| wanted.starts_with(shared));
        if is_shared || wanted.is_dir() { wanted } else { "/".into() }
    }
}

/// A mount namespace of the calling thread's own, in which no mount is seen by others; without root in a user
/// namespace of its own, which has this user alone.
pub fn own_mounts() -> Result<(), String> {
    if geteuid().is_root() {
        // SAFETY: it closes no file descriptors. Where the process has several threads, as `weigh` when it
        // mounts a squashfs, it is this one alone, and what it starts, that is in the new namespace.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(|error| forbidden(&error.into()))?;
    } else {
        user_namespace::enter_new(UnshareFlags::NEWNS)?;
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| forbidden(&error.into()))
}

fn forbidden(error: &io::Error) -> String {
    if geteuid().is_root() {
        return format!(
            "cannot make a mount namespace ({error}): this needs CAP_SYS_ADMIN, which containers often \
             lack"
        );
    }
    user_namespace::forbidden(error)
}

/// Returns a function that describes a failure for a person.
fn say<E: Into<io::Error>>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {}", error.into())
}

impl EnterRoot {
    /// Returns the step with this directory added to the shared directories.
    pub fn sharing(mut self, directory: &Path) -> EnterRoot {
        if !self.shared.iter().any(|shared| directory.starts_with(shared)) {
            self.shared.push(directory.to_owned());
        }
        self
    }

    fn enter(&self) -> Result<(), String> {
        // Relative paths need no escapes, whatever the directory is called.
        std::env::set_current_dir(&self.base)
            .map_err(say("cannot enter the directory of the root file system"))?;
        mount("weigh", MOUNTS, "tmpfs", MountFlags::empty(), Some(c"mode=755"))
            .map_err(say("cannot make a file system in memory"))?;
        for name in [ABOVE, "upper", "work", "root"] {
            fs::create_dir(Path::new(MOUNTS).join(name))
                .map_err(say("cannot make a file system in memory"))?;
        }
        bring_above().map_err(say("cannot make a file system in memory"))?;
        lay_over()?;
        std::env::set_current_dir(Path::new(MOUNTS).join("root"))
            .map_err(say("cannot enter the new root"))?;
        // A name that no link in a foreign root can lead to.
        let old = chance::number().map_err(say("cannot make a directory in the new root"))?;
        let old = format!(".weigh-old-{old:016x}");
        fs::create_dir(&old).map_err(say("cannot make a directory in the new root"))?;
        pivot_root(".", &*old).map_err(say("cannot change to the new root (pivot_root)"))?;
        std::env::set_current_dir("/").map_err(say("cannot enter the new root"))?;
        // From here on links lead nowhere else but into the new root.
        let old = Path::new("/").join(old);
        self.furnish(&old)?;
        unmount(&old, UnmountFlags::DETACH).map_err(say("cannot leave the old root"))?;
        fs::remove_dir(&old).map_err(say("cannot leave the old root"))
    }

    /// Brings what is the kernel's, and what is shared.
    fn furnish(&self, old: &Path) -> Result<(), String> {
        let kernels = ["/proc", "/sys", "/dev"].map(Path::new);
        let shared = self.shared.iter().map(PathBuf::as_path);
        // All of them before the first mount: through `/proc` a link in a foreign root would lead out. To
        // mount on what is out there, the kernel refuses.
        for directory in kernels.into_iter().chain(shared) {
            fs::create_dir_all(directory).map_err(|error| within(directory, &error))?;
        }
        let [proc, sys, dev] = kernels;
        mount_bind_recursive(old.join("proc"), proc)
            .map_err(|error| within(proc, &error.into()))?;
        bring_sys(&old.join("sys")).map_err(|error| within(sys, &error))?;
        bring_devices(&old.join("dev")).map_err(|error| within(dev, &error))?;
        for directory in &self.shared {
            let here = old.join(directory.strip_prefix("/").unwrap_or(directory));
            let bound = mount_bind_recursive(here, directory);
            bound.map_err(|error| within(directory, &error.into()))?;
        }
        // What was needed to get in is not for those who are in.
        unmount(self.base.join(MOUNTS), UnmountFlags::DETACH)
            .map_err(say("cannot leave the old root"))
    }
}

fn within(directory: &Path, error: &io::Error) -> String {
    format!("cannot bring {} into the new root: {error}", directory.display())
}

/// In a user namespace what is mounted below a directory cannot be left out.
fn bind(from: &Path, to: &Path) -> io::Result<()> {
    match geteuid().is_root() {
        true => Ok(mount_bind(from, to)?),
        false => Ok(mount_bind_recursive(from, to)?),
    }
}

/// Copies what lies above the root to memory: of the host's own root, it would lie beneath itself.
fn bring_above() -> io::Result<()> {
    for entry in fs::read_dir(ABOVE)? {
        let entry = entry?;
        fs::copy(entry.path(), Path::new(MOUNTS).join(ABOVE).join(entry.file_name()))?;
    }
    Ok(())
}

/// Tries whether an overlay can lie over the host's root here; for a process that ends after that.
pub fn try_over_host() -> Result<(), String> {
    own_mounts()?;
    let base = std::env::temp_dir();
    std::env::set_current_dir("/").map_err(say("cannot enter the root directory"))?;
    mount("weigh", &base, "tmpfs", MountFlags::empty(), Some(c"mode=755"))
        .map_err(say("cannot make a file system in memory"))?;
    std::env::set_current_dir(&base).map_err(say("cannot make a file system in memory"))?;
    let made = [MOUNTS, "mounts/above", "mounts/upper", "mounts/work", "mounts/root"];
    made.into_iter()
        .try_for_each(fs::create_dir)
        .map_err(say("cannot make a file system in memory"))?;
    std::os::unix::fs::symlink("/", TREE).map_err(say("cannot make a file system in memory"))?;
    lay_over()
}

/// The overlay at `mounts/root`.
fn lay_over() -> Result<(), String> {
    const PLAIN: &std::ffi::CStr =
        c"lowerdir=mounts/above:tree,upperdir=mounts/upper,workdir=mounts/work";
    // A user namespace may set these attributes alone; before Linux 6.6 a file system in memory has none.
    const OF_USER: &std::ffi::CStr =
        c"lowerdir=mounts/above:tree,upperdir=mounts/upper,workdir=mounts/work,userxattr";
    let lay = |options| mount("weigh", "mounts/root", "overlay", MountFlags::NODEV, Some(options));
    let laid = match geteuid().is_root() {
        true => lay(PLAIN),
        false => lay(OF_USER).or_else(|_| lay(PLAIN)),
    };
    laid.map_err(|error| {
        let error = io::Error::from(error);
        format!(
            "cannot mount an overlay over the root ({error}): this needs overlayfs, Linux 5.11 for \
             ordinary users, and a file system that overlayfs supports"
        )
    })
}

fn bring_sys(from: &Path) -> io::Result<()> {
    bind(from, Path::new("/sys"))?;
    let read_only = MountFlags::BIND
        | MountFlags::RDONLY
        | MountFlags::NOSUID
        | MountFlags::NODEV
        | MountFlags::NOEXEC;
    Ok(mount_remount("/sys", read_only, "")?)
}

fn bring_devices(from: &Path) -> io::Result<()> {
    mount("weigh", "/dev", "tmpfs", MountFlags::NOSUID, Some(c"mode=755"))?;
    let dev = Path::new("/dev");
    for name in DEVICES.iter().filter(|name| from.join(name).exists()) {
        fs::File::create(dev.join(name))?;
        mount_bind(from.join(name), dev.join(name))?;
    }
    for (name, target) in DEVICE_LINKS {
        std::os::unix::fs::symlink(target, dev.join(name))?;
    }
    fs::create_dir(dev.join("shm"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("weigh", "/dev/shm", "tmpfs", flags, Some(c"mode=1777"))?;
    if from.join("pts").is_dir() {
        fs::create_dir(dev.join("pts"))?;
        bind(&from.join("pts"), &dev.join("pts"))?;
        fs::File::create(dev.join("ptmx"))?;
        mount_bind(from.join("ptmx"), dev.join("ptmx"))?;
    }
    Ok(())
}
