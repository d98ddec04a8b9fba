//! A kernel that the running one executes in its place: `kexec_file_load(2)`, and no program for it.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use super::kernel::BootKernel;
use super::normal::here;
use weigh_host::machine::gone::{SETTING_FILES, check_gone};

const UNLOAD: libc::c_ulong = 1;
const NO_INITRAMFS: libc::c_ulong = 4;

pub fn is_loaded() -> Result<bool, String> {
    let file = Path::new("/sys/kernel/kexec_loaded");
    let found = match fs::read_to_string(file) {
        // A kernel without kexec.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            check_gone(file, &SETTING_FILES).map(|()| false)
        }
        text => text.map(|text| text.trim() == "1"),
    };
    found.map_err(|error| format!("{}: {error}", file.display()))
}

/// Loads one, to be executed by the next `kexec` of the kernel.
pub fn load(kernel: &BootKernel, line: &str) -> Result<(), String> {
    let open = |path: &std::path::Path| {
        File::open(here(path)).map_err(|error| format!("{}: {error}", path.display()))
    };
    let image = open(&kernel.image)?;
    let initramfs = kernel.initramfs.as_deref().map(open).transpose()?;
    let line = CString::new(line)
        .map_err(|_| "the kernel's command line contains a NUL byte".to_owned())?;
    let bytes = line.as_bytes_with_nul();
    let (initramfs, flags) = match &initramfs {
        Some(file) => (file.as_raw_fd(), 0),
        None => (-1, NO_INITRAMFS),
    };
    // SAFETY: open files, and a string that ends within its length.
    let loaded = unsafe {
        libc::syscall(
            libc::SYS_kexec_file_load,
            image.as_raw_fd(),
            initramfs,
            bytes.len(),
            bytes.as_ptr(),
            flags,
        )
    };
    if loaded == 0 { Ok(()) } else { Err(explained(&kernel.image, &io::Error::last_os_error())) }
}

fn explained(image: &std::path::Path, error: &io::Error) -> String {
    let why = match error.raw_os_error() {
        Some(libc::EPERM) => {
            ": kexec is switched off here (kernel.kexec_load_disabled), or the kernel is locked down"
        }
        Some(libc::ENOSYS) => ": this kernel was built without CONFIG_KEXEC_FILE",
        Some(libc::EKEYREJECTED | libc::ENOKEY | libc::EBADMSG | libc::ENODATA) => {
            ": this kernel starts signed kernels only (Secure Boot)"
        }
        _ => "",
    };
    format!("the kernel refuses to load {} for kexec ({error}){why}", image.display())
}

pub fn unload() -> Result<(), String> {
    // SAFETY: numbers, and a pointer that is not used.
    let done = unsafe { libc::syscall(libc::SYS_kexec_file_load, -1, -1, 0, c"".as_ptr(), UNLOAD) };
    match done {
        0 => Ok(()),
        _ => Err(format!(
            "cannot unload the kernel that was loaded for kexec ({}): run `kexec -u`",
            io::Error::last_os_error()
        )),
    }
}
