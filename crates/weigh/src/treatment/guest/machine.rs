//! One boot of a guest: a qemu that ends with us, and how its first process is talked to.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::accel::Accel;
use super::{GuestKernel, Image, Initramfs, QEMU, SCRATCH, fresh, port, program};
use crate::lines::LinesError;
use crate::orphans;
use crate::own_program::{self, Helper};
use crate::treatment::TreatmentError;
use crate::treatment::elsewhere::arrival::Arrival;
use crate::workload::place::LaunchPlace;
use trust::program::end_with_us;

/// The name of its serial port, as it sees it.
pub const PORT: &str = "weigh";
/// What a guest has. A workload with 64 MiB of its own, and all that is in memory file systems.
const MEMORY_MIB: u32 = 1024;
/// It takes 10 to 30 s to boot without KVM, and some minutes on a machine that is very busy.
const BOOTS_WITHIN: Duration = Duration::from_secs(600);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A Unix socket's path is limited (unix(7)).
const MAX_SOCKET_BYTES: usize = 100;
/// So much of what a guest printed last is told.
const TOLD_LINES: usize = 3;

/// What a guest that got out of qemu could not do any more.
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

#[cfg(target_arch = "x86_64")]
pub const CONSOLE: &str = "ttyS0";
#[cfg(target_arch = "x86_64")]
const MACHINE: &str = "pc";
#[cfg(not(target_arch = "x86_64"))]
pub const CONSOLE: &str = "ttyAMA0";
#[cfg(not(target_arch = "x86_64"))]
const MACHINE: &str = "virt";

/// What is booted again and again.
pub struct BootPlan {
    pub kernel: GuestKernel,
    pub image: Image,
    pub initramfs: Initramfs,
    pub command_line: String,
    pub accel: Accel,
    /// A private directory of here.
    pub scratch: PathBuf,
}

/// A guest that boots or has booted. Dropping it ends it.
pub struct Guest {
    qemu: Child,
    socket: PathBuf,
    console: PathBuf,
}

impl Guest {
    /// Starts one, and does not wait.
    ///
    /// # Errors
    /// A sentence, where there is no qemu, or it does not start.
    pub fn start(plan: &BootPlan) -> Result<Guest, TreatmentError> {
        let refused = TreatmentError::Unavailable;
        let (socket, console) = (fresh(&plan.scratch, "port"), fresh(&plan.scratch, "console"));
        if socket.as_os_str().len() > MAX_SOCKET_BYTES {
            let path = socket.display();
            return Err(refused(format!("{path} is too long for a socket: set TMPDIR to another")));
        }
        let mut command = Command::new(program(QEMU).map_err(refused)?);
        command.args(words(plan, &socket, &console)).env("TMPDIR", &plan.scratch);
        let system = |error: io::Error| TreatmentError::Unavailable(format!("{QEMU}: {error}"));
        let said = File::create(console.with_extension("qemu")).map_err(system)?;
        command.stdin(Stdio::null()).stdout(said.try_clone().map_err(system)?).stderr(said);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        end_with_us(&mut command, Signal::KILL);
        orphans::adopt().map_err(system)?;
        let qemu = command.spawn().map_err(system)?;
        orphans::keep(qemu.id());
        Ok(Guest { qemu, socket, console })
    }

    /// Waits until its first process has made all ready, and tells what it found.
    ///
    /// # Errors
    /// Where it ends, or does not come up, with its last words.
    pub fn arrive(
        &mut self,
        interrupted: &AtomicBool,
        limit: Option<Duration>,
    ) -> Result<Arrival, TreatmentError> {
        let deadline = Instant::now() + limit.unwrap_or(BOOTS_WITHIN);
        while !self.socket.exists() {
            self.is_up(deadline)?;
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut command = own_program::command(port::SUBCOMMAND);
        command.arg(&self.socket).arg(port::ARRIVAL);
        let mut helper = Helper::start(command)
            .map_err(|error| TreatmentError::Unavailable(error.to_string()))?;
        loop {
            match helper.lines.receive::<Arrival>(interrupted, Instant::now() + LOOK_EVERY) {
                Ok(arrival) => return Ok(arrival),
                Err(LinesError::Interrupted) => return Err(TreatmentError::Interrupted),
                Err(LinesError::TimedOut) => self.is_up(deadline)?,
                Err(LinesError::Io(error)) => {
                    return Err(self.lost(&format!("it does not answer ({error})")));
                }
            }
        }
    }

    fn is_up(&mut self, deadline: Instant) -> Result<(), TreatmentError> {
        if self.has_ended() {
            return Err(self.lost("it ended before it was ready"));
        }
        match Instant::now() > deadline {
            true => Err(self.lost("it does not come up in time")),
            false => Ok(()),
        }
    }

    fn lost(&self, problem: &str) -> TreatmentError {
        let said = [self.console.with_extension("qemu"), self.console.clone()]
            .map(|file| end_of(&file).unwrap_or_default());
        let said = String::from_utf8_lossy(&said.concat()).into_owned();
        let lines: Vec<&str> =
            said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(TOLD_LINES)..].join("; ");
        let printed = if last.is_empty() {
            "it printed nothing".into()
        } else {
            format!("it printed: {last}")
        };
        TreatmentError::Unavailable(format!("the guest: {problem}; {printed}"))
    }

    /// Itself, where it is not gone.
    pub fn living(mut self) -> Option<Guest> {
        (!self.has_ended()).then_some(self)
    }

    /// Whether it is gone.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.qemu.try_wait(), Ok(None))
    }

    /// Lets it stand still, with its clock.
    pub fn freeze(&self) {
        let _ = kill_process(Pid::from_child(&self.qemu), Signal::STOP);
    }

    pub fn thaw(&self) {
        let _ = kill_process(Pid::from_child(&self.qemu), Signal::CONT);
    }

    /// Where its processes are launched.
    pub fn place(&self, arrival: &Arrival, plan: &BootPlan) -> LaunchPlace {
        let socket = self.socket.display().to_string();
        let words = ["/proc/self/exe", port::SUBCOMMAND, &socket, port::LAUNCHER];
        LaunchPlace {
            executable: arrival.executable.clone(),
            scratch: SCRATCH.into(),
            work_directory: SCRATCH.into(),
            reached_by: words.map(str::to_owned).to_vec(),
            clock: plan.accel.clock(),
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
        orphans::forget(self.qemu.id());
        for file in [&self.socket, &self.console, &self.console.with_extension("qemu")] {
            let _ = fs::remove_file(file);
        }
    }
}

/// A guest prints as much as it likes; this much of its end holds the lines that are told.
fn end_of(file: &Path) -> io::Result<Vec<u8>> {
    const END: u64 = 64 << 10;
    let mut file = File::open(file)?;
    let begin = file.metadata()?.len().saturating_sub(END);
    file.seek(SeekFrom::Start(begin))?;
    let mut end = Vec::new();
    file.take(END).read_to_end(&mut end)?;
    Ok(end)
}

/// In a value of an option of qemu, a comma is written twice.
fn value(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// How qemu is told all of it. What a guest writes to its disk goes into a file without a name.
fn words(plan: &BootPlan, socket: &Path, console: &Path) -> Vec<String> {
    let memory = MEMORY_MIB.to_string();
    let drive = format!("if=none,id=root,format=raw,snapshot=on,file={}", value(&plan.image.file));
    let socket = format!("socket,id=port,server=on,wait=off,path={}", value(socket));
    let serial = format!("file:{}", console.display());
    let (kernel, initramfs) =
        (plan.kernel.image.display().to_string(), plan.initramfs.file.display().to_string());
    let fixed = [
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-sandbox",
        SANDBOX,
        "-display",
        "none",
        "-M",
        MACHINE,
        "-smp",
        "1",
        "-m",
        &memory,
        "-kernel",
        &kernel,
        "-initrd",
        &initramfs,
        "-append",
        &plan.command_line,
        "-drive",
        &drive,
        "-device",
        "virtio-blk-pci,drive=root",
        "-chardev",
        &socket,
        "-device",
        "virtio-serial-pci",
        "-device",
        "virtserialport,chardev=port,name=weigh",
        "-serial",
        &serial,
    ];
    let accel = plan.accel.words().iter();
    fixed.iter().chain(accel).map(|word| (*word).to_owned()).collect()
}
