//! bpf(2): maps, programs, and where programs run. All of it ends with its descriptors.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::assembler::Instruction;

/// Commands of bpf(2).
#[derive(Clone, Copy)]
enum Command {
    CreateMap = 0,
    LookUp = 1,
    Load = 5,
    Info = 15,
    OpenRawTracepoint = 17,
}

/// Kinds of program (`enum bpf_prog_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// At a kprobe.
    Kprobe = 2,
    Tracepoint = 5,
    RawTracepoint = 17,
    /// At the beginning of a function, by its number in the kernel's types.
    Fentry = 26,
    /// At a hook of security modules, likewise.
    SecurityModule = 29,
}

const PER_CPU_ARRAY: u32 = 6;
const RING_BUFFER: u32 = 27;
/// `BPF_TRACE_FENTRY` and `BPF_LSM_MAC`.
const AT_ENTRY: u32 = 24;
const AT_SECURITY_HOOK: u32 = 27;
const LOG_BYTES: usize = 1 << 16;
/// `struct bpf_prog_info`, as far as `recursion_misses`, in words of 8 bytes.
const INFO_WORDS: usize = 27;
const MISSES_WORD: usize = 26;

#[repr(C)]
#[derive(Default)]
struct NewMap {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    node: u32,
    name: [u8; 16],
}

#[repr(C)]
#[derive(Default)]
struct NewProgram {
    kind: u32,
    length: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attached: u32,
    types: u32,
    function_bytes: u32,
    functions: u64,
    function_count: u32,
    line_bytes: u32,
    lines: u64,
    line_count: u32,
    /// Number of the function that it is for.
    function: u32,
}

#[repr(C)]
struct Entry {
    map: u32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct RawTracepoint {
    name: u64,
    program: u32,
    /// Bytes that the compiler would leave as they were, and the kernel refuses unless they are 0.
    unused: u32,
}

#[repr(C)]
struct Info {
    of: u32,
    bytes: u32,
    info: u64,
}

/// Makes a map with a number for each CPU in each of so many entries.
pub fn counters(entries: u32) -> io::Result<OwnedFd> {
    let map = NewMap {
        kind: PER_CPU_ARRAY,
        key_bytes: 4,
        value_bytes: 8,
        entries,
        name: *b"weigh_counters\0\0",
        ..NewMap::default()
    };
    opened(Command::CreateMap, &map)
}

/// Makes a ring buffer.
pub fn ring(bytes: u32) -> io::Result<OwnedFd> {
    let name = *b"weigh_ring\0\0\0\0\0\0";
    let map = NewMap { kind: RING_BUFFER, entries: bytes, name, ..NewMap::default() };
    opened(Command::CreateMap, &map).map_err(|error| match error.raw_os_error() {
        Some(libc::EPERM) => error,
        _ => io::Error::other(format!("cannot make a ring buffer, which needs Linux 5.8: {error}")),
    })
}

/// Returns the sum of an entry over all CPUs.
pub fn sum(counters: &OwnedFd, entry: u32) -> io::Result<u64> {
    let mut values = vec![0u64; possible_cpus()?];
    let asked = Entry {
        map: counters.as_raw_fd() as u32,
        unused: 0,
        key: &raw const entry as u64,
        value: values.as_mut_ptr() as u64,
        flags: 0,
    };
    bpf(Command::LookUp, &asked)?;
    Ok(values.iter().sum())
}

/// The kernel has a value for each CPU that could ever be there.
fn possible_cpus() -> io::Result<usize> {
    const FILE: &str = "/sys/devices/system/cpu/possible";
    let text = fs::read_to_string(FILE)?;
    let last = text.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1)
        .ok_or_else(|| io::Error::other(format!("{FILE} is not a list of CPUs: {text}")))
}

/// Has the kernel check and translate a program. It runs nowhere yet.
///
/// `function` is the number of the function that it is for, or 0.
pub fn load(kind: ProgramKind, function: u32, instructions: &[Instruction]) -> io::Result<OwnedFd> {
    let mut log = vec![0u8; LOG_BYTES];
    let mut program = NewProgram {
        kind: kind as u32,
        length: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        // Some helpers are for programs under the GPL only. These instructions are ours, under both.
        license: c"Dual MIT/GPL".as_ptr() as u64,
        name: *b"weigh_sensor\0\0\0\0",
        attached: match kind {
            ProgramKind::Fentry => AT_ENTRY,
            ProgramKind::SecurityModule => AT_SECURITY_HOOK,
            _ => 0,
        },
        function,
        ..NewProgram::default()
    };
    let error = match opened(Command::Load, &program) {
        Err(error) if error.raw_os_error() != Some(libc::EPERM) => error,
        other => return other,
    };
    program.log_level = 1;
    program.log_bytes = LOG_BYTES as u32;
    program.log = log.as_mut_ptr() as u64;
    opened(Command::Load, &program).map_err(|_| {
        let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
        // Its last line is a statistic.
        let reason = log.lines().rev().find(|line| !line.starts_with("processed"));
        let reason = reason.unwrap_or("no reason given");
        io::Error::other(format!("this kernel refuses a BPF program: {error} ({reason})"))
    })
}

/// Runs a program at a raw tracepoint, or at the function that it is for, until the descriptor is closed.
pub fn attach(tracepoint: Option<&CStr>, program: &OwnedFd) -> io::Result<OwnedFd> {
    let name = tracepoint.map_or(0, |name| name.as_ptr() as u64);
    let attributes = RawTracepoint { name, program: program.as_raw_fd() as u32, unused: 0 };
    opened(Command::OpenRawTracepoint, &attributes)
}

/// Returns how often the kernel skipped a program, as it was already running on that CPU (Linux 5.12).
pub fn misses(program: &OwnedFd) -> io::Result<u64> {
    let mut info = [0u64; INFO_WORDS];
    let asked = Info {
        of: program.as_raw_fd() as u32,
        bytes: size_of_val(&info) as u32,
        info: info.as_mut_ptr() as u64,
    };
    bpf(Command::Info, &asked)?;
    Ok(info[MISSES_WORD])
}

fn opened<T>(command: Command, attributes: &T) -> io::Result<OwnedFd> {
    let descriptor = bpf(command, attributes)?;
    // SAFETY: it was just opened for us, and is closed on execution.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

fn bpf<T>(command: Command, attributes: &T) -> io::Result<libc::c_long> {
    // SAFETY: a structure of the command's, whose addresses are those of memory that lives across the call
    // and is as large as the kernel writes.
    let status =
        unsafe { libc::syscall(libc::SYS_bpf, command as libc::c_int, attributes, size_of::<T>()) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}
