//! The first process of a guest: it loads what a kernel needs, goes into the root file system, switches its
//! security modules on, and then starts one process after the other for whoever asks through the serial port.
//!
//! It never executes itself again, so the root file system may have another libc.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::mount::{MountFlags, mount, mount_move};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::machine::PORT;
use super::port::{ARRIVAL, BEGIN, END, LAUNCHER};
use super::{SCRATCH, initramfs};
use crate::remote::handshake;
use trust::start::{self, Inherited};
use weigh_host::orphans::wait_until;
use weigh_host::said;
use weigh_workload::launcher_process;

/// The hidden subcommand, which the kernel gives to its first process.
pub const SUBCOMMAND: &str = "__guest";
const DISK: &str = "/dev/vda";
const NEW_ROOT: &str = "/root";
/// A new file system has tables to clear. The kernel would begin with it within 5 s, at a moment of chance,
/// and take 0.8 % of the instructions of a sample that it comes into.
const NO_TABLES_ARE_CLEARED: &std::ffi::CStr = c"noinit_itable";
/// As whom all is executed under a policy of Debian: the user who is not confined.
const CONTEXT: &str = "unconfined_u:unconfined_r:unconfined_t:s0";
/// A device appears within moments of its driver.
const APPEARS_WITHIN: Duration = Duration::from_secs(60);
const NOBODY_THERE: Duration = Duration::from_millis(5);

/// Lives until the machine is switched off.
pub fn run() -> Result<(), String> {
    if std::process::id() != 1 {
        return Err("this subcommand runs only as the first process of a guest".into());
    }
    let problem = live().err().unwrap_or_default();
    if let Ok(mut console) = OpenOptions::new().write(true).open("/dev/console") {
        let _ = writeln!(console, "weigh: {problem}");
    }
    rustix::fs::sync();
    // SAFETY: it takes a number. With -no-reboot, qemu ends.
    unsafe { libc::reboot(libc::RB_AUTOBOOT) };
    Err(problem)
}

fn live() -> Result<(), String> {
    mount_one("devtmpfs", "/dev", "devtmpfs", c"")?;
    mount_one("proc", "/proc", "proc", c"")?;
    mount_one("sysfs", "/sys", "sysfs", c"")?;
    load_modules()?;
    let port = port()?;
    enter_root()?;
    let mode = parameter("weigh.selinux");
    if mode.is_some() {
        load_policy()?;
    }
    furnish()?;
    if let Some(mode) = mode {
        enforce(&mode)?;
    }
    serve(&port).map_err(|error| format!("cannot use the serial port: {error}"))
}

fn mount_one(source: &str, at: &str, kind: &str, options: &std::ffi::CStr) -> Result<(), String> {
    mount(source, at, kind, MountFlags::empty(), Some(options))
        .map_err(|error| format!("cannot mount {at}: {error}"))
}

/// A word of the kernel's command line.
fn parameter(name: &str) -> Option<String> {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let value = |word: &str| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned());
    line.split_whitespace().find_map(value)
}

fn load_modules() -> Result<(), String> {
    let say = |error: io::Error| format!("{}: {error}", initramfs::MODULES);
    let entries = fs::read_dir(initramfs::MODULES).map_err(say)?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files {
        let module = File::open(&file).map_err(say)?;
        // SAFETY: an open file, and a string that ends.
        let loaded =
            unsafe { libc::syscall(libc::SYS_finit_module, module.as_raw_fd(), c"".as_ptr(), 0) };
        let error = io::Error::last_os_error();
        // What is built in as well is there already.
        if loaded < 0 && error.raw_os_error() != Some(libc::EEXIST) {
            return Err(format!("cannot load {}: {error}", file.display()));
        }
    }
    Ok(())
}

/// The serial port by its name.
fn port() -> Result<File, String> {
    let mut found = None;
    wait_until(Instant::now() + APPEARS_WITHIN, || {
        let ports = fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten();
        found = ports.map(|entry| entry.path()).find(|path| {
            fs::read_to_string(path.join("name")).is_ok_and(|name| name.trim() == PORT)
        });
        found.is_some()
    });
    let found = found.ok_or("weigh's serial port is missing")?;
    let device = Path::new("/dev").join(found.file_name().unwrap_or_default());
    let opened = OpenOptions::new().read(true).write(true).open(&device);
    opened.map_err(|error| format!("{}: {error}", device.display()))
}

fn enter_root() -> Result<(), String> {
    wait_until(Instant::now() + APPEARS_WITHIN, || Path::new(DISK).exists());
    mount(DISK, NEW_ROOT, "ext4", MountFlags::NOATIME, Some(NO_TABLES_ARE_CLEARED))
        .map_err(|error| format!("cannot mount {NEW_ROOT}: {error}"))?;
    let say = |what: &str, error: rustix::io::Errno| format!("{what}: {error}");
    for kernel in ["dev", "proc", "sys"] {
        let (from, to) = (format!("/{kernel}"), format!("{NEW_ROOT}/{kernel}"));
        mount_move(&from, &to).map_err(|error| say(&to, error))?;
    }
    let change = |error: io::Error| format!("cannot enter the root file system: {error}");
    std::env::set_current_dir(NEW_ROOT).map_err(change)?;
    mount_move(".", "/").map_err(|error| say("cannot move the root file system", error))?;
    std::os::unix::fs::chroot(".").map_err(change)?;
    std::env::set_current_dir("/").map_err(change)
}

fn load_policy() -> Result<(), String> {
    mount_one("selinuxfs", "/sys/fs/selinux", "selinuxfs", c"")?;
    let mut command = start::command("/usr/sbin/load_policy", Inherited::Fixed);
    command.arg("-i");
    let loaded = said::output(command).map_err(|error| format!("load_policy: {error}"))?;
    // It answers 3 where the policy is loaded and a mode is not as it is configured.
    match loaded.status.success() || Path::new("/sys/fs/selinux/class").exists() {
        true => Ok(()),
        false => Err(format!("load_policy: {}", said::words(&loaded.stderr))),
    }
}

/// Mounts the memory file systems that every system has, and makes the rest of its surroundings.
fn furnish() -> Result<(), String> {
    let make = |path: &str| match fs::create_dir(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(format!("{path}: {error}")),
        _ => Ok(()),
    };
    mount_one("tmpfs", "/run", "tmpfs", c"mode=755")?;
    mount_one("tmpfs", "/tmp", "tmpfs", c"mode=1777")?;
    for (name, kind, options) in
        [("/dev/pts", "devpts", c"ptmxmode=666"), ("/dev/shm", "tmpfs", c"mode=1777")]
    {
        make(name)?;
        mount_one(kind, name, kind, options)?;
    }
    // A kernel without it has no modules to tell of.
    let _ = mount_one("securityfs", "/sys/kernel/security", "securityfs", c"");
    make(SCRATCH)?;
    let _ = fs::write("/proc/sys/kernel/hostname", "guest");
    raise_loopback().map_err(|error| format!("cannot raise the loopback interface: {error}"))?;
    for (name, value) in
        [("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("HOME", "/root"), ("LANG", "C")]
    {
        // SAFETY: there is one thread.
        unsafe { std::env::set_var(name, value) };
    }
    std::env::set_current_dir(SCRATCH).map_err(|error| format!("{SCRATCH}: {error}"))
}

fn raise_loopback() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketType, socket};
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: zeroes are valid for plain data.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: an open socket, and a structure that lives.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Becomes the user's process that the policy does not confine, and has it enforced.
fn enforce(mode: &str) -> Result<(), String> {
    let set = |file: &str, value: &str| {
        fs::write(file, value).map_err(|error| format!("cannot write {value} to {file}: {error}"))
    };
    set("/sys/fs/selinux/enforce", "0")?;
    set("/proc/self/attr/current", CONTEXT)?;
    set("/sys/fs/selinux/enforce", if mode == "enforcing" { "1" } else { "0" })
}

/// Starts what is asked for, one after the other.
fn serve(port: &File) -> io::Result<()> {
    let mut unread = Vec::new();
    loop {
        let role = asked_for(port, &mut unread)?;
        let (to_child, from_us) = pipe()?;
        let (to_us, from_child) = pipe()?;
        let child = start(
            &role,
            [to_child, from_child],
            [from_us.as_fd().as_raw_fd(), to_us.as_fd().as_raw_fd()],
        )?;
        (&*port).write_all(&[BEGIN, b'\n'])?;
        let passed = pass_on(port, from_us.into(), to_us.into(), &mut unread);
        let _ = kill_process(child, Signal::CONT);
        wait_until(Instant::now() + Duration::from_secs(5), || has_ended(child));
        let _ = kill_process(child, Signal::KILL);
        // Whatever it left is ours by now.
        while matches!(waitpid(None, WaitOptions::NOHANG), Ok(Some(_))) {}
        passed?;
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

fn has_ended(child: Pid) -> bool {
    !matches!(waitpid(Some(child), WaitOptions::NOHANG), Ok(None))
}

/// Forks a process that has these as its stdin and stdout; those of ours are none of its.
fn start(role: &str, [stdin, stdout]: [OwnedFd; 2], ours: [i32; 2]) -> io::Result<Pid> {
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: descriptors that are open.
            unsafe {
                libc::dup2(stdin.as_raw_fd(), 0);
                libc::dup2(stdout.as_raw_fd(), 1);
                for fd in ours {
                    libc::close(fd);
                }
            }
            drop((stdin, stdout));
            let done = match role {
                ARRIVAL => handshake::run([SCRATCH.into()].into_iter()),
                LAUNCHER => launcher_process::run().map_err(|error| error.to_string()),
                other => Err(format!("unknown role `{other}`")),
            };
            if let Err(problem) = &done {
                eprintln!("weigh: {role}: {problem}");
            }
            std::process::exit(i32::from(done.is_err()))
        }
        child => Pid::from_raw(child).ok_or_else(|| io::Error::other("no process")),
    }
}

/// Reads on until somebody asks for a role.
fn asked_for(port: &File, unread: &mut Vec<u8>) -> io::Result<String> {
    loop {
        if let Some(begin) = unread.iter().position(|byte| *byte == BEGIN) {
            unread.drain(..begin);
            if let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = unread.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[1..end]).into_owned());
            }
        } else {
            unread.clear();
        }
        if !read_more(port, unread)? {
            std::thread::sleep(NOBODY_THERE);
        }
    }
}

/// `false` where nobody is at the other end.
fn read_more(mut port: &File, unread: &mut Vec<u8>) -> io::Result<bool> {
    let mut chunk = [0; 8192];
    match port.read(&mut chunk) {
        Ok(length) => {
            unread.extend_from_slice(&chunk[..length]);
            Ok(length > 0)
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}

/// Passes all on between the port and a process, until either has no more.
fn pass_on(mut port: &File, to: File, mut from: File, unread: &mut Vec<u8>) -> io::Result<()> {
    let mut to = Some(to);
    let mut chunk = [0; 8192];
    loop {
        if let Some(end) = unread.iter().position(|byte| matches!(*byte, BEGIN | END)) {
            let rest = unread.split_off(end);
            let _ = to.take().map(|mut to| to.write_all(unread));
            *unread = rest;
            return Ok(());
        }
        // A process that ended reads no more.
        let _ = to.as_mut().map(|to| to.write_all(unread));
        unread.clear();
        let mut ready = [PollFd::new(&port, PollFlags::IN), PollFd::new(&from, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let [from_port, from_child] = ready.map(|one| !one.revents().is_empty());
        if from_child {
            match from.read(&mut chunk)? {
                0 => return Ok(()),
                length => port.write_all(&chunk[..length])?,
            }
        }
        if from_port && !read_more(port, unread)? {
            return Ok(());
        }
    }
}
