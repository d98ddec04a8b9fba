//! Files that a qemu gets from us, opened before it starts, and the words that name them.
//!
//! A qemu that root starts is another user, in a file system of its own ([`confined`]).
//! It could open none of these files.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;

use super::accel::Accel;
use super::confined::{self, Confinement};
use super::{GuestKernel, Image, Initramfs, fresh};
use trust::start::{self, Inherited};
use weigh_fixture::programs::NOBODY;
use weigh_host::own_program;

/// Memory of a guest: for a workload with 64 MiB of its own, and for its memory file systems.
const MEMORY_MIB: u32 = 1024;
/// Actions that qemu is forbidden, even for somebody who got out of the guest.
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

#[cfg(target_arch = "x86_64")]
const MACHINE: &str = "pc";
#[cfg(not(target_arch = "x86_64"))]
const MACHINE: &str = "virt";

const KERNEL: &str = "kernel";
const INITRAMFS: &str = "initramfs";

/// Plan of a guest that is booted again and again.
pub struct BootPlan {
    pub kernel: GuestKernel,
    pub image: Image,
    pub initramfs: Initramfs,
    pub command_line: String,
    pub accel: Accel,
    /// A private directory of here.
    pub scratch: PathBuf,
}

/// All of it, opened.
pub struct GuestFiles {
    /// Where a qemu of root's has its root and its temporary files; others have these files alone.
    pub own_directory: PathBuf,
    image: File,
    kernel: File,
    initramfs: File,
    console: File,
    /// Listener for the guest's serial port.
    port: UnixListener,
}

impl GuestFiles {
    /// Opens what the guest reads, and makes what it writes.
    pub fn open(plan: &BootPlan, socket: &Path, console: &Path) -> io::Result<GuestFiles> {
        let own_directory = fresh(&plan.scratch, "guest")?;
        fs::create_dir(&own_directory)?;
        Ok(GuestFiles {
            own_directory,
            image: File::open(&plan.image.file)?,
            kernel: File::open(&plan.kernel.image)?,
            initramfs: File::open(&plan.initramfs.file)?,
            console: File::create(console)?,
            port: UnixListener::bind(socket)?,
        })
    }

    /// How qemu is started with them, while this lives.
    pub fn command(&self, qemu: &Path, plan: &BootPlan) -> io::Result<Command> {
        let inherited = [self.image.as_raw_fd(), self.console.as_raw_fd(), self.port.as_raw_fd()];
        let copied = [(&self.kernel, KERNEL), (&self.initramfs, INITRAMFS)];
        let copies: Vec<(RawFd, String)> =
            copied.map(|(file, name)| (file.as_raw_fd(), name.to_owned())).into();
        let handed_over = inherited.into_iter().chain(copies.iter().map(|(file, _)| *file));
        let handed_over: Vec<RawFd> = handed_over.collect();
        let (mut command, kernel, initramfs) = if geteuid().is_root() {
            let [root, temporary] = ["root", "tmp"].map(|name| self.own_directory.join(name));
            for directory in [&root, &temporary] {
                fs::create_dir(directory)?;
            }
            fs::set_permissions(&temporary, Permissions::from_mode(0o700))?;
            chown(&temporary, Some(NOBODY), Some(NOBODY))?;
            let confinement = Confinement { root, temporary, copies, open: inherited.into() };
            let mut command = own_program::command(confined::SUBCOMMAND);
            command.arg(confinement.to_argument()).arg(qemu);
            (command, Path::new("/").join(KERNEL), Path::new("/").join(INITRAMFS))
        } else {
            let mut command = start::command(qemu, Inherited::Fixed);
            command.env("TMPDIR", &self.own_directory);
            (command, plan.kernel.image.clone(), plan.initramfs.file.clone())
        };
        command.args(self.words(plan, &kernel, &initramfs));
        start::hand_over(&mut command, handed_over);
        Ok(command)
    }

    /// How qemu is told all of it. What a guest writes to its disk goes into a file without a name.
    fn words(&self, plan: &BootPlan, kernel: &Path, initramfs: &Path) -> Vec<String> {
        let memory = MEMORY_MIB.to_string();
        let set = |file: RawFd, number: u32| format!("fd={file},set={number}");
        let [image, console] = [(&self.image, 1), (&self.console, 2)]
            .map(|(file, number)| set(file.as_raw_fd(), number));
        let port = format!("socket,id=port,server=on,wait=off,fd={}", self.port.as_raw_fd());
        let [kernel, initramfs] = [kernel, initramfs].map(|path| path.display().to_string());
        let flags = ["-nodefaults", "-no-user-config", "-no-reboot"];
        let options = [
            ["-sandbox", SANDBOX],
            ["-display", "none"],
            ["-M", MACHINE],
            ["-smp", "1"],
            ["-m", &memory],
            ["-kernel", &kernel],
            ["-initrd", &initramfs],
            ["-append", &plan.command_line],
            ["-add-fd", &image],
            ["-add-fd", &console],
            ["-drive", "if=none,id=root,format=raw,snapshot=on,file=/dev/fdset/1"],
            ["-device", "virtio-blk-pci,drive=root"],
            ["-chardev", &port],
            ["-device", "virtio-serial-pci"],
            ["-device", "virtserialport,chardev=port,name=weigh"],
            ["-chardev", "file,id=console,path=/dev/fdset/2"],
            ["-serial", "chardev:console"],
        ];
        let accel = plan.accel.words().iter();
        let words = flags.iter().chain(options.as_flattened()).chain(accel);
        words.map(|word| (*word).to_owned()).collect()
    }
}
