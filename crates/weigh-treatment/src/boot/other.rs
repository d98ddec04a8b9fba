//! Another system on this hardware: a root file system on a device, with a kernel of its own.
//!
//! `weigh` is not installed there. Its copy, its state and the database stay on the normal root file system,
//! which the hook of the other system mounts. The kernel and its initramfs are copied to the state directory,
//! so that all boots load them from one place.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use rustix::mount::mount_bind;

use super::hook;
use super::kernel::BootKernel;
use super::normal::{NORMAL, NormalBoot};
use crate::guest::options::GuestOptions;
use trust::start::{self, Inherited};
use weigh_host::said;
use weigh_host::undo::state_dir::StateDir;
use weigh_workload::setup::kind::enter_root::own_mounts;

/// Mount point of the other root file system, in the mounts of one thread.
const OTHER: &str = "/run/weigh-other";
const IMAGE: &str = "boot-kernel";
const INITRAMFS: &str = "boot-initramfs";

/// Number of a device, which `/` has where it is mounted there.
pub fn number_of(device: &str) -> Result<u64, String> {
    let status = fs::metadata(device).map_err(|error| format!("root={device}: {error}"))?;
    match status.file_type().is_block_device() {
        true => Ok(status.rdev()),
        false => Err(format!(
            "root={device}: takes the partition of another system, such as /dev/sda3. For a directory or \
             an archive, under this kernel, use rootfs:{device}"
        )),
    }
}

/// Checks that `/`, as a sample saw it, is on the device with this name and number, and that the normal root
/// file system is another one, which is mounted too. A kernel that finds disks in another order gives the
/// name to another disk, so the name alone proves nothing.
pub fn check_root(device: &str, number: u64, seen: u64, normal: Option<u64>) -> Result<(), String> {
    if seen != number {
        return Err(format!("the root file system is not on {device}"));
    }
    match normal {
        Some(normal) if normal != seen => Ok(()),
        _ => Err(format!(
            "the root file system is the normal one: this kernel names the disks in another order, so \
             {device} is not the other system. If that has an initramfs, use root=/dev/disk/by-partuuid/ID"
        )),
    }
}

/// The kernel that [`bring`] has copied.
pub fn kept() -> Result<BootKernel, String> {
    let state = open()?;
    let (image, initramfs) = (state.path(IMAGE), state.path(INITRAMFS));
    BootKernel::at(image, initramfs.exists().then_some(initramfs))
}

/// Copies the kernel of the other system to the state directory.
pub fn bring(options: &GuestOptions, database: &Path) -> Result<(), String> {
    let device = options.root.as_deref().unwrap_or_default();
    if number_of(device)? == device_of(Path::new("/"))? {
        return Err(format!("root={device}: is the root file system of this system"));
    }
    check_place(database)?;
    let line = fs::read_to_string("/proc/cmdline");
    check_line(&line.map_err(|error| format!("/proc/cmdline: {error}"))?)?;
    // An earlier kernel may have left an initramfs, which this one would be loaded with.
    forget()?;
    mounted(device, |root| {
        let kernel = match &options.kernel {
            Some(file) => root.join(file.trim_start_matches('/')),
            None => only_kernel(root)?,
        };
        let kernel = BootKernel::named(&kernel.to_string_lossy())?;
        let copy = |from: &Path, to: &str| {
            let bytes = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
            let copied = open()?.replace(to, &bytes);
            copied.map_err(|error| format!("cannot copy {}: {error}", from.display()))
        };
        copy(&kernel.image, IMAGE)?;
        kernel.initramfs.iter().try_for_each(|file| copy(file, INITRAMFS))
    })
}

/// Has the other system start `weigh`'s copy when it is up, and tries whether the copy runs there.
pub fn install(device: &str, normal: &NormalBoot) -> Result<(), String> {
    let own = root_of(&normal.command_line)?.to_owned();
    mounted(device, |root| {
        let state = open()?;
        let seen = root.join("proc");
        mount_bind(state.place(), &seen).map_err(|error| format!("{}: {error}", seen.display()))?;
        let copy = Path::new("/proc").join(hook::PROGRAM);
        let mut command = start::command(copy, Inherited::Fixed);
        command.arg("--version");
        let inside = root.to_owned();
        // SAFETY: between fork and exec there are two system calls on paths that exist.
        unsafe {
            command.pre_exec(move || {
                rustix::process::chroot(&inside)?;
                Ok(rustix::process::chdir("/")?)
            });
        }
        let why = match said::output(command) {
            Ok(done) if done.status.success() => {
                return hook::install_elsewhere(root, &own, state.place());
            }
            Ok(done) => said::words(&done.stderr),
            Err(error) => error.to_string(),
        };
        Err(format!(
            "weigh cannot run in the system on {device} ({why}): its C library may be older than that of \
             weigh; use a static build of weigh"
        ))
    })
}

/// Removes what the other system starts, from the normal one.
pub fn uninstall(device: &str) -> Result<(), String> {
    // The other system itself has it below its own root.
    if Path::new(NORMAL).exists() { Ok(()) } else { mounted(device, hook::remove_below) }
}

/// Removes the copy of the kernel.
pub fn forget() -> Result<(), String> {
    let state = open()?;
    [IMAGE, INITRAMFS].into_iter().try_for_each(|name| {
        let file = state.path(name);
        hook::gone(&file).map_err(|error| format!("{}: {error}; remove it", file.display()))
    })
}

/// The command line of the normal boot with another root file system.
pub fn rooted(line: &str, device: &str) -> String {
    let of_root = ["root=", "rootflags=", "rootfstype=", "resume="];
    let words = line.split_whitespace();
    let kept = words.filter(|word| !of_root.iter().any(|start| word.starts_with(start)));
    let root = format!("root={device}");
    [root.as_str()].into_iter().chain(kept).collect::<Vec<_>>().join(" ")
}

fn root_of(line: &str) -> Result<&str, String> {
    let found = line.split_whitespace().rev().find_map(|word| word.strip_prefix("root="));
    found.ok_or_else(|| {
        "the normal command line has no root=, so another system cannot find weigh's files".into()
    })
}

/// Checks that the other system can mount the normal root file system as it is: it mounts it without options.
fn check_line(line: &str) -> Result<(), String> {
    match line.split_whitespace().find(|word| word.starts_with("rootflags=")) {
        None => Ok(()),
        Some(word) => Err(format!(
            "this system mounts its root file system with options ({word}), as btrfs does for a subvolume. \
             The other system mounts it without them, and would not find weigh's files: root= needs a normal \
             entry without rootflags="
        )),
    }
}

/// Checks that the other system finds all that it needs on one file system.
fn check_place(database: &Path) -> Result<(), String> {
    let state = open()?;
    let root = device_of(Path::new("/"))?;
    let directory = database.parent().unwrap_or(database);
    for file in [state.place(), directory, Path::new("/boot")] {
        if file.exists() && device_of(file)? != root {
            return Err(format!(
                "{} is not on the file system of /, which is all that the other system mounts",
                file.display()
            ));
        }
    }
    Ok(())
}

fn only_kernel(root: &Path) -> Result<PathBuf, String> {
    let boot = root.join("boot");
    let entries = fs::read_dir(&boot).map_err(|error| format!("its /boot: {error}"))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_kernel = |name: &String| {
        ["vmlinuz-", "vmlinux-"].iter().any(|start| name.starts_with(start))
            && !name.contains("rescue")
    };
    let mut kernels: Vec<String> = names.filter(is_kernel).collect();
    kernels.sort();
    match &kernels[..] {
        [one] => Ok(boot.join(one)),
        [] => {
            Err("its /boot has no kernel (vmlinuz-RELEASE): add kernel=PATH, a path in it".into())
        }
        many => Err(format!(
            "its /boot has several kernels ({}): add kernel=PATH, such as kernel=/boot/{}",
            many.join(", "),
            many[many.len() - 1]
        )),
    }
}

/// Calls this with the root file system of a device, which is mounted for one thread only: whatever happens,
/// nothing stays mounted.
fn mounted<T: Send>(
    device: &str,
    act: impl FnOnce(&Path) -> Result<T, String> + Send,
) -> Result<T, String> {
    let program = trust::program::find("mount")?.ok_or("mount is missing")?;
    let there = || {
        own_mounts()?;
        match fs::create_dir(OTHER) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(format!("{OTHER}: {error}"));
            }
            _ => {}
        }
        let mut command = start::command(program, Inherited::Fixed);
        command.args([device, OTHER]);
        let done = said::output(command).map_err(|error| format!("mount: {error}"))?;
        if !done.status.success() {
            return Err(format!("cannot mount {device}: {}", said::words(&done.stderr)));
        }
        let other = Path::new(OTHER);
        let done = check_other(other, Path::new("/")).and_then(|()| act(other));
        let done = done.map_err(|problem| format!("{device}: {problem}"));
        rustix::fs::sync();
        done
    };
    let done = std::thread::scope(|scope| scope.spawn(there).join());
    let _ = fs::remove_dir(OTHER);
    done.unwrap_or_else(|_| Err(format!("{device}: weigh failed while it was mounted")))
}

/// Checks that what is mounted is not the normal root file system, whatever the device was called before.
fn check_other(mounted: &Path, normal: &Path) -> Result<(), String> {
    let [mounted, normal] = [mounted, normal].map(device_of);
    match mounted? == normal? {
        true => Err("is the root file system of this system now: nothing there was changed".into()),
        false => Ok(()),
    }
}

fn device_of(file: &Path) -> Result<u64, String> {
    let status = fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()));
    status.map(|status| status.dev())
}

fn open() -> Result<StateDir, String> {
    StateDir::open().map_err(|error| format!("cannot open the state directory: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_root_takes_the_place_of_the_normal_one() {
        let line = "root=UUID=1 rootflags=subvol=a ro console=ttyS0 -- x";
        assert_eq!(rooted(line, "/dev/vdb"), "root=/dev/vdb ro console=ttyS0 -- x");
        assert_eq!(root_of("ro root=UUID=1"), Ok("UUID=1"));
        assert!(root_of("ro").unwrap_err().contains("no root="));
        assert!(check_line(line).unwrap_err().contains("(rootflags=subvol=a)"));
        assert_eq!(check_line("root=UUID=1 ro"), Ok(()));
    }

    #[test]
    fn a_directory_is_no_system_to_boot() {
        let refused = number_of("/proc").unwrap_err();
        assert!(refused.contains("use rootfs:/proc"), "{refused}");
    }

    #[test]
    fn the_normal_root_under_the_name_of_another_is_no_other_system() {
        assert_eq!(check_root("/dev/b", 17, 17, Some(16)), Ok(()));
        let refused = |seen, normal| check_root("/dev/b", 17, seen, normal).unwrap_err();
        assert!(refused(16, Some(16)).contains("is not on /dev/b"));
        // As where the normal system came up, and has nothing mounted elsewhere.
        assert!(refused(17, None).contains("another order"));
        assert!(refused(17, Some(17)).contains("by-partuuid"));
        assert_eq!(check_other(Path::new("/proc"), Path::new("/")), Ok(()));
        assert!(check_other(Path::new("/"), Path::new("/")).unwrap_err().contains("nothing there"));
    }

    #[test]
    fn the_kernel_is_found_where_there_is_one() {
        let root = tempfile::tempdir().unwrap();
        let boot = root.path().join("boot");
        fs::create_dir(&boot).unwrap();
        assert!(only_kernel(root.path()).unwrap_err().contains("add kernel=PATH"));
        fs::write(boot.join("vmlinuz-6.1"), "").unwrap();
        fs::write(boot.join("vmlinuz-0-rescue-1"), "").unwrap();
        assert_eq!(only_kernel(root.path()), Ok(boot.join("vmlinuz-6.1")));
        fs::write(boot.join("vmlinuz-6.2"), "").unwrap();
        let refused = only_kernel(root.path()).unwrap_err();
        assert!(refused.contains("kernel=/boot/vmlinuz-6.2"), "{refused}");
    }
}
