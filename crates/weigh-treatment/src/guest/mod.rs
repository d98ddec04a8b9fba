//! Virtual machines that arms are launched in: an image of a root file system that is built once and never
//! written to, a kernel, an initramfs of ours with `weigh` as its first process, and a qemu for each boot.

pub mod accel;
mod builder;
pub mod confined;
mod guest_files;
mod image;
mod initramfs;
pub mod inside;
pub mod kernel;
mod machine;
pub mod options;
pub mod port;

use std::cell::OnceCell;
use std::io;
use std::path::{Path, PathBuf};

use accel::{Accel, Kvm};
use builder::Workshop;
pub use guest_files::BootPlan;
pub use image::Image;
pub use initramfs::Initramfs;
pub use kernel::GuestKernel;
pub use machine::Guest;
use options::GuestOptions;

use super::{ApplyContext, TreatmentError};
use weigh_host::chance;
use weigh_host::undo::guard::Guard;

/// Where the workloads are in a guest, in memory.
pub const SCRATCH: &str = "/run/weigh";

/// Programs that a guest needs here, each with its Debian package.
pub const PROGRAMS: [(&str, &str); 5] = [
    (QEMU, QEMU_PACKAGE),
    ("mmdebstrap", "mmdebstrap"),
    ("mke2fs", "e2fsprogs"),
    ("dpkg-deb", "dpkg"),
    ("unshare", "util-linux"),
];

#[cfg(target_arch = "x86_64")]
pub const QEMU: &str = "qemu-system-x86_64";
#[cfg(target_arch = "x86_64")]
const QEMU_PACKAGE: &str = "qemu-system-x86";
#[cfg(not(target_arch = "x86_64"))]
pub const QEMU: &str = "qemu-system-aarch64";
#[cfg(not(target_arch = "x86_64"))]
const QEMU_PACKAGE: &str = "qemu-system-arm";

pub fn program(name: &str) -> Result<PathBuf, String> {
    let package = PROGRAMS.iter().find(|(known, _)| *known == name).map_or(name, |known| known.1);
    trust::program::find(name)?.ok_or_else(|| {
        format!("{name} is missing: apt-get install --no-install-recommends {package}")
    })
}

/// The packages of those that are not here.
pub fn lacking() -> Vec<&'static str> {
    let is_missing = |name: &str| !matches!(trust::program::find(name), Ok(Some(_)));
    PROGRAMS.iter().filter(|(name, _)| is_missing(name)).map(|(_, package)| *package).collect()
}

/// A name in a private directory that no other guest has.
fn fresh(directory: &Path, what: &str) -> io::Result<PathBuf> {
    Ok(directory.join(format!("{what}-{:08x}", chance::small()?)))
}

/// Looks whether what guests are made of is here, without making anything: that takes more than a minute.
pub fn check_material(options: &GuestOptions) -> Result<(), String> {
    // What was typed comes first, as it may be wrong wherever it is run.
    GuestKernel::check(options.kernel.as_deref())?;
    Image::check(options.root.as_deref())?;
    PROGRAMS.into_iter().try_for_each(|(name, _)| program(name).map(drop))
}

/// Makes all ready that it takes to boot a guest again and again, and finds out whether there is KVM where
/// that is not known yet.
pub fn make(
    options: &GuestOptions,
    context: &ApplyContext,
    guard: &mut Guard,
    known: &OnceCell<Kvm>,
) -> Result<(BootPlan, Kvm), TreatmentError> {
    if let Some(file) = &context.place.executable.foreign {
        return Err(TreatmentError::Unavailable(format!(
            "a guest cannot run the workloads of {}: unset WEIGH_WORKLOADS",
            file.display()
        )));
    }
    for (name, _) in PROGRAMS {
        program(name).map_err(TreatmentError::Unavailable)?;
    }
    let mut workshop = Workshop::open(guard, context.interrupted)?;
    let kernel = GuestKernel::find(options.kernel.as_deref(), &mut workshop)?;
    let image = Image::find(options.root.as_deref(), context, &mut workshop)?;
    if options.selinux.is_some() && !image.is_labelled {
        return Err(TreatmentError::Unavailable(format!(
            "{} has no SELinux policy: install selinux-policy-default and policycoreutils in it, or use \
             a root with /etc/selinux and setfiles",
            image.shown
        )));
    }
    let scratch = context.place.scratch.clone();
    let initramfs =
        fresh(&scratch, "initramfs").and_then(|file| Initramfs::write(&kernel, file)).map_err(
            |error| TreatmentError::Unavailable(format!("cannot write the initramfs: {error}")),
        )?;
    let accel = Accel::Kvm;
    let command_line = options.command_line(machine::CONSOLE, accel);
    let mut plan = BootPlan { kernel, image, initramfs, command_line, accel, scratch };
    let kvm = match known.get() {
        Some(kvm) => kvm.clone(),
        None => {
            let announce = |sentence: &str| eprintln!("{}", weigh_model::printable::line(sentence));
            accel::find(&mut plan, workshop.directory(), context.interrupted, &announce)?
        }
    };
    if kvm != Kvm::Works {
        plan.accel = Accel::Counting;
        plan.command_line = options.command_line(machine::CONSOLE, plan.accel);
    }
    Ok((plan, kvm))
}
