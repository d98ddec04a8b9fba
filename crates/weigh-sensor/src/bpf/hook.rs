//! Places in the kernel where a program can run, as each kind of program needs them.

use std::ffi::CString;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::kernel;

const KPROBE_TYPE: &str = "/sys/bus/event_source/devices/kprobe/type";
/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT_TYPE: u32 = 2;
/// `PERF_EVENT_IOC_SET_BPF` and `PERF_EVENT_IOC_ENABLE`.
const SET_PROGRAM: libc::c_ulong = 0x4004_2408;
const ENABLE: libc::c_ulong = 0x2400;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;

/// Place where programs can run.
pub enum Hook {
    RawTracepoint(CString),
    /// An event of perf_event_open(2).
    Event {
        kind: u32,
        id: u64,
        /// For a kprobe, the function whose first instruction it replaces.
        function: CString,
    },
    /// A function that the program was loaded for.
    Function,
}

/// `struct perf_event_attr`, as far as its first published size and one word more.
#[repr(C)]
#[derive(Default)]
struct EventAttributes {
    kind: u32,
    bytes: u32,
    id: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    function: u64,
    offset: u64,
}

impl Hook {
    /// The tracepoint of one system call.
    pub fn tracepoint(call: &str) -> io::Result<Hook> {
        let path = format!("events/syscalls/sys_enter_{call}/id");
        let text = read_from("tracefs", &path).map_err(|error| {
            let needs = "which needs CONFIG_FTRACE_SYSCALLS";
            io::Error::other(format!(
                "cannot read {path} of the kernel's tracefs, {needs}: {error}"
            ))
        })?;
        let id = text.trim().parse().map_err(|_| {
            io::Error::other(format!("{path} of the kernel's tracefs is not a number: {text}"))
        })?;
        Ok(Hook::Event { kind: TRACEPOINT_TYPE, id, function: CString::default() })
    }

    pub fn kprobe(function: &str) -> io::Result<Hook> {
        let text = fs::read_to_string(KPROBE_TYPE).map_err(|error| {
            let needs = "kprobes, which need CONFIG_KPROBE_EVENTS";
            io::Error::other(format!("this kernel lacks {needs} ({KPROBE_TYPE}: {error})"))
        })?;
        let kind = text
            .trim()
            .parse()
            .map_err(|_| io::Error::other(format!("{KPROBE_TYPE} is not a number: {text}")))?;
        Ok(Hook::Event { kind, id: 0, function: CString::new(function)? })
    }

    /// Lets a program run there until the descriptor is closed.
    pub fn attach(&self, program: &OwnedFd) -> io::Result<OwnedFd> {
        let attached = match self {
            Hook::RawTracepoint(name) => kernel::attach(Some(name), program),
            Hook::Function => kernel::attach(None, program),
            Hook::Event { kind, id, function } => attach_to_event(*kind, *id, function, program),
        };
        attached.map_err(|error| io::Error::other(format!("cannot attach a BPF program: {error}")))
    }
}

fn attach_to_event(
    kind: u32,
    id: u64,
    function: &CString,
    program: &OwnedFd,
) -> io::Result<OwnedFd> {
    let attributes = EventAttributes {
        kind,
        bytes: size_of::<EventAttributes>() as u32,
        id,
        function: if function.is_empty() { 0 } else { function.as_ptr() as u64 },
        ..EventAttributes::default()
    };
    // A program at a tracepoint or a kprobe runs on all CPUs, whichever its event is for.
    const ALL_PROCESSES: libc::c_int = -1;
    const FIRST_CPU: libc::c_int = 0;
    // SAFETY: the structure lives across the call and says how long it is, as does the string.
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            ALL_PROCESSES,
            FIRST_CPU,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just opened for us.
    let event = unsafe { OwnedFd::from_raw_fd(event as i32) };
    for (request, argument) in [(SET_PROGRAM, program.as_raw_fd()), (ENABLE, 0)] {
        // SAFETY: both requests take a number.
        if unsafe { libc::ioctl(event.as_raw_fd(), request, argument) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(event)
}

/// Fails with a sentence unless this kernel asks BPF programs as a security module.
pub fn check_security_module() -> io::Result<()> {
    let modules = read_from("securityfs", "lsm").map_err(|error| {
        io::Error::other(format!(
            "cannot read the list of security modules of this kernel: {error}"
        ))
    })?;
    match modules.trim().split(',').any(|module| module == "bpf") {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "the security module `bpf` is not active here, only {modules}: boot with `bpf` in lsm="
        ))),
    }
}

/// Reads a file of a file system of the kernel's, wherever that is mounted, or nowhere.
fn read_from(file_system: &str, path: &str) -> io::Result<String> {
    let context = fsopen(file_system, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let file = openat(&mount, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = String::new();
    fs::File::from(file).read_to_string(&mut text)?;
    Ok(text)
}
