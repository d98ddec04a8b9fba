//! A machine for tests that reboot one: a disk with GRUB, a kernel, a shell and `weigh`, and a qemu that
//! boots it. The machine that the tests run on is never booted: `weigh` has no capability for it there.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::{Home, program, wait_until};

pub const QEMU: &str = "/usr/bin/qemu-system-x86_64";
pub const BUSYBOX: &str = "/usr/bin/busybox";
/// Kernel modules for a disk, after the modules that they need, and for the watchdog.
const MODULES: [&str; 13] = [
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "drivers/block/virtio_blk",
    "lib/crc16",
    "crypto/crc32c_generic",
    "fs/mbcache",
    "fs/jbd2/jbd2",
    "fs/ext4/ext4",
    "drivers/watchdog/watchdog",
    "drivers/watchdog/i6300esb",
];
const DISK_MIB: u64 = 512;
const SECOND_MIB: u64 = 192;
/// Where the one partition begins: before it are the sectors that GRUB is in.
const GAP_BYTES: u64 = 1 << 20;
const SECTOR_BYTES: u64 = 512;
/// Eighteen boots took 25 minutes on a machine that was busy.
const OFF_WITHIN: Duration = Duration::from_secs(5400);
/// One that hangs says nothing any more. The watchdog wakes it before.
const SAYS_WITHIN: Duration = Duration::from_secs(900);

/// Parameters of modules are those of the command line, as modprobe(8) has it.
const FIRST: &str = "#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t devtmpfs dev /dev
$b grep -q test.hangs /proc/cmdline && while :; do $b sleep 1000; done
for module in /modules/*; do
  name=${module##*-} name=${name%.ko}
  $b insmod $module $($b tr ' ' '\n' </proc/cmdline | $b sed -n \"s/^$name\\.//p\")
done
root=$($b tr ' ' '\n' </proc/cmdline | $b sed -n 's/^root=//p')
while ! [ -e $root ]; do $b sleep 0.1; done
$b mount -t ext4 $root /new
exec $b switch_root /new /sbin/init
";

/// As a System V init: what is in /etc/rcS.d and /etc/rc2.d is started. `/first` is done once.
const INIT: &str = "#!/bin/sh
export PATH=/bin HOME=/root XDG_DATA_HOME=/var/data
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t securityfs sec /sys/kernel/security
mount -t tmpfs tmp /tmp
mount -t tmpfs -o mode=755 run /run
ifconfig lo 127.0.0.1
for script in /etc/rcS.d/S*; do [ -x $script ] && $script start; done
grep -q test.stalls /proc/cmdline && while :; do sleep 1000; done
echo TEST: up
for script in /etc/rc2.d/S*; do [ -x $script ] && $script start; done
[ -e /first ] && mv /first /run/first && sync && sh /run/first
while pidof boot-weigh >/dev/null || [ -e /etc/rc2.d/S99weigh-boot ]; do sleep 0.2; done
echo TEST: idle
sync
poweroff -f
";

/// Modules of a GRUB that finds its `grub.cfg`.
const GRUB: &str = "biosdisk part_msdos ext2 normal configfile search search_fs_uuid loadenv test echo linux \
                    serial terminal boot";

/// As Debian's: an environment with the next entry, one of its own, and others that may be there.
const GRUB_CONFIGURATION: &str = "serial
terminal_output serial
load_env
set timeout=0
set default=0
if [ \"${next_entry}\" ]; then
  set default=\"${next_entry}\"
  set next_entry=
  save_env next_entry
fi
menuentry 'normal' {
  linux /boot/vmlinuz-RELEASE console=ttyS0 root=/dev/vda1 panic=10
  initrd /boot/initrd.img-RELEASE
}
if [ -f ${prefix}/custom.cfg ]; then
  source ${prefix}/custom.cfg
fi
";

/// A machine whose disk stays when it is switched off.
pub struct Machine {
    home: Home,
    /// On a disk of its own, `/dev/vdb`.
    has_second_system: bool,
    has_watchdog: bool,
}

/// One that is switched on; dropping it cuts the power.
pub struct SwitchedOn(Child);

impl Drop for SwitchedOn {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn shell(directory: &Path, line: &str) {
    let done = Command::new("sh").args(["-euc", line]).current_dir(directory).output().unwrap();
    assert!(done.status.success(), "{line}: {done:?}");
}

/// The distribution's kernel and its GRUB, unpacked once and kept; nothing of it is installed.
fn distribution() -> PathBuf {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bootable-amd64");
    // Tests that run side by side want the same: the first fetches it.
    let lock = File::create(kept.with_extension("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    if !kept.join("whole").exists() {
        let _ = fs::remove_dir_all(&kept);
        fs::create_dir_all(&kept).unwrap();
        shell(
            &kept,
            "kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p' | head -1)
             apt-get -q -o APT::Sandbox::User=root download $kernel grub-pc-bin grub-common grub2-common
             for package in *.deb; do dpkg-deb -x $package .; done
             rm *.deb && touch whole",
        );
    }
    kept
}

fn busybox_below(root: &Path) {
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::copy(BUSYBOX, root.join("bin/busybox")).unwrap();
}

fn script(file: PathBuf, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The first sector of a disk with one partition, whose first part is this.
fn first_sector(boot: &[u8]) -> Vec<u8> {
    let mut sector = boot[..SECTOR_BYTES as usize].to_vec();
    let sectors = [GAP_BYTES, DISK_MIB << 20].map(|bytes| (bytes / SECTOR_BYTES) as u32);
    let entry = [
        &[0x80, 0xfe, 0xff, 0xff, 0x83, 0xfe, 0xff, 0xff][..],
        &sectors[0].to_le_bytes(),
        &sectors[1].to_le_bytes(),
    ];
    sector[446..462].copy_from_slice(&entry.concat());
    sector[462..510].fill(0);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

/// The first file system, which finds the disk.
fn make_early(early: &Path, from: &Path, release: &str) {
    busybox_below(early);
    for directory in ["proc", "dev", "new", "modules"] {
        fs::create_dir_all(early.join(directory)).unwrap();
    }
    for (number, module) in MODULES.iter().enumerate() {
        let name = module.rsplit('/').next().unwrap();
        let file = from.join(format!("lib/modules/{release}/kernel/{module}.ko"));
        fs::copy(file, early.join(format!("modules/{number:02}-{name}.ko"))).unwrap();
    }
    script(early.join("init"), FIRST);
}

/// The root file system, but for what others have built.
fn make_root(root: &Path, first: &str, release: &str) {
    busybox_below(root);
    let applets = [
        "sh", "mount", "ifconfig", "sync", "sleep", "pidof", "poweroff", "mv", "env", "sed",
        "basename", "grep", "cat", "chmod", "mkdir",
    ];
    applets.iter().for_each(|name| symlink("busybox", root.join("bin").join(name)).unwrap());
    let directories = [
        "proc",
        "sys",
        "dev",
        "tmp",
        "run",
        "root",
        "boot/grub",
        "etc/rcS.d",
        "etc/rc2.d",
        "var/lib",
        "var/data",
        "usr/bin",
        "usr/sbin",
        "usr/share/grub",
    ];
    directories.iter().for_each(|name| fs::create_dir_all(root.join(name)).unwrap());
    script(root.join("sbin/init"), INIT);
    script(root.join("first"), first);
    let configuration = GRUB_CONFIGURATION.replace("RELEASE", release);
    fs::write(root.join("boot/grub/grub.cfg"), configuration).unwrap();
}

/// A disk of the partition, and GRUB before it.
fn put_together(home: &Home, from: &Path) {
    let boot = fs::read(from.join("usr/lib/grub/i386-pc/boot.img")).unwrap();
    let core = fs::read(home.path("core")).unwrap();
    let mut gap = [first_sector(&boot), core].concat();
    assert!(gap.len() as u64 <= GAP_BYTES);
    gap.resize(GAP_BYTES as usize, 0);
    let mut disk = File::create(home.path("disk")).unwrap();
    io::copy(&mut &gap[..], &mut disk).unwrap();
    io::copy(&mut File::open(home.path("partition")).unwrap(), &mut disk).unwrap();
    fs::remove_file(home.path("partition")).unwrap();
}

impl Machine {
    /// One that does this when it is switched on for the first time.
    pub fn that_does(first: &str) -> Machine {
        Machine::put_up(first, "")
    }

    /// One with another system on a second disk, without `weigh` and its boot loader.
    pub fn with_second_system(first: &str) -> Machine {
        let second = format!(
            "cp -a root second && rm -r second/first second/bin/weigh second/boot/grub second/var/data
             mke2fs -q -t ext4 -d second second-disk {SECOND_MIB}M && rm -r second"
        );
        Machine { has_second_system: true, ..Machine::put_up(first, &second) }
    }

    /// Puts one together. This shell line is for the directory with its root, when that is whole.
    fn put_up(first: &str, then: &str) -> Machine {
        let home = Home::new();
        let from = distribution();
        let release = fs::read_dir(from.join("lib/modules")).unwrap().next().unwrap().unwrap();
        let release = release.file_name().into_string().unwrap();
        make_early(&home.path("early"), &from, &release);
        make_root(&home.path("root"), first, &release);
        shell(
            &home.path(""),
            &format!(
                "from={from}
                 strip -o root/bin/weigh {weigh}
                 (cd early && find . | cpio --quiet -o -H newc) >root/boot/initrd.img-{release}
                 cp $from/boot/vmlinuz-{release} root/boot
                 cp $from/usr/bin/grub-editenv $from/usr/bin/grub-mkrelpath root/usr/bin
                 cp $from/usr/sbin/grub-probe $from/usr/sbin/grub-reboot root/usr/sbin
                 cp $from/usr/share/grub/grub-mkconfig_lib root/usr/share/grub
                 root/usr/bin/grub-editenv root/boot/grub/grubenv create
                 ldd root/bin/weigh root/usr/bin/grub-editenv root/usr/sbin/grub-probe |
                   grep -o '/[^ :]*lib[^ :]*' | grep -v ^root | sort -u >libraries
                 dirname $(grep /libc.so libraries) | sed 's,$,/libm.so.6,' >>libraries
                 for file in $(cat libraries); do
                   mkdir -p root$(dirname $file); cp -L $file root$file; done
                 {then}
                 mke2fs -q -t ext4 -d root partition {DISK_MIB}M && rm -r root early
                 $from/usr/bin/grub-mkimage -O i386-pc -d $from/usr/lib/grub/i386-pc \
                   -p '(hd0,msdos1)/boot/grub' -o core {GRUB}",
                from = from.display(),
                weigh = program().display(),
            ),
        );
        put_together(&home, &from);
        Machine { home, has_second_system: false, has_watchdog: false }
    }

    /// Returns the machine with a watchdog, which resets it.
    pub fn with_watchdog(self) -> Machine {
        Machine { has_watchdog: true, ..self }
    }

    /// All that it printed, in all its boots.
    pub fn said(&self) -> String {
        let bytes = fs::read(self.home.path("console")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }

    pub fn switch_on(&self) -> SwitchedOn {
        let console = self.home.path("console");
        let console = File::options().create(true).append(true).open(console).unwrap();
        let mut command = self.home.command(QEMU);
        command
            .args(["-machine", "pc", "-accel", "tcg", "-m", "1024", "-nodefaults"])
            .args(["-display", "none", "-serial", "stdio", "-device", "virtio-blk-pci,drive=disk"])
            .arg("-drive")
            .arg(format!(
                "if=none,id=disk,format=raw,cache=unsafe,file={}",
                self.home.path("disk").display()
            ));
        if self.has_second_system {
            let second = self.home.path("second-disk");
            command.args(["-device", "virtio-blk-pci,drive=second", "-drive"]).arg(format!(
                "if=none,id=second,format=raw,cache=unsafe,file={}",
                second.display()
            ));
        }
        if self.has_watchdog {
            command.args(["-device", "i6300esb", "-action", "watchdog=reset"]);
        }
        // SAFETY: a system call, and no allocation. It ends with the test, however that ends.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let child = command.stdin(Stdio::null()).stdout(console).stderr(Stdio::null()).spawn();
        SwitchedOn(child.unwrap())
    }

    /// Waits until it has said this, after what it had said before.
    pub fn wait_for(&self, text: &str, before: usize, on: &mut SwitchedOn) {
        let has_said = || self.said().get(before..).is_some_and(|said| said.contains(text));
        let mut is_off = false;
        let came = wait_until(Duration::from_secs(1800), || {
            is_off = on.0.try_wait().unwrap().is_some();
            is_off || has_said()
        });
        assert!(came && has_said(), "it never said `{text}`: {}", self.said());
    }

    /// Waits until it has nothing left to do, and is switched off by itself.
    pub fn wait_until_off(&self, mut on: SwitchedOn) {
        let mut is_off = false;
        let mut heard = (0, Instant::now());
        wait_until(OFF_WITHIN, || {
            let length = fs::metadata(self.home.path("console")).unwrap().len();
            if length > heard.0 {
                heard = (length, Instant::now());
            }
            is_off = on.0.try_wait().unwrap().is_some();
            is_off || heard.1.elapsed() > SAYS_WITHIN
        });
        assert!(is_off, "it goes on and on, or hangs: {}", self.said());
        assert!(self.said().contains("TEST: idle"), "it was not done: {}", self.said());
    }

    /// Lists a directory of its disk.
    pub fn list(&self, directory: &str) -> String {
        self.debugfs(&format!("ls -p {directory}"))
    }

    /// Lists a directory of its second system.
    pub fn list_second(&self, directory: &str) -> String {
        debugfs(&format!("ls -p {directory}"), &self.home.path("second-disk").display().to_string())
    }

    fn debugfs(&self, request: &str) -> String {
        debugfs(request, &format!("{}?offset={GAP_BYTES}", self.home.path("disk").display()))
    }

    /// A home with its database.
    pub fn into_home(self) -> Home {
        let data = self.home.path("data");
        fs::remove_dir_all(&data).unwrap();
        let request = format!("rdump /var/data {}", self.home.path("").display());
        self.debugfs(&request);
        assert!(self.home.database().exists(), "{}", self.said());
        self.home
    }
}

fn debugfs(request: &str, disk: &str) -> String {
    let done = Command::new("debugfs").args(["-R", request, disk]).output().unwrap();
    String::from_utf8_lossy(&done.stdout).into_owned()
}
