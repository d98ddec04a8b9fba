//! One boot of a guest: a qemu that ends with us, and how its first process is talked to.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::guest_files::{BootPlan, GuestFiles};
use super::{QEMU, SCRATCH, fresh, port, program};
use crate::TreatmentError;
use crate::remote::handshake::Handshake;
use trust::program::end_with_us;
use weigh_host::lines::LinesError;
use weigh_host::orphans;
use weigh_host::own_program;
use weigh_host::own_program::Helper;
use weigh_host::said;
use weigh_workload::place::LaunchPlace;

/// The name of its serial port, as it sees it.
pub const PORT: &str = "weigh";
/// It takes 10 to 30 s to boot without KVM, and some minutes on a machine that is very busy.
const BOOTS_WITHIN: Duration = Duration::from_secs(600);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A Unix socket's path is limited (unix(7)).
const MAX_SOCKET_BYTES: usize = 100;

#[cfg(target_arch = "x86_64")]
pub const CONSOLE: &str = "ttyS0";
#[cfg(not(target_arch = "x86_64"))]
pub const CONSOLE: &str = "ttyAMA0";

/// A guest that boots or has booted. Dropping it ends it.
pub struct Guest {
    qemu: Child,
    socket: PathBuf,
    console: PathBuf,
    /// Where its root is mounted, and its temporary files are.
    own_directory: PathBuf,
}

impl Guest {
    /// Starts one, and does not wait.
    pub fn start(plan: &BootPlan) -> Result<Guest, TreatmentError> {
        let refused = TreatmentError::Unavailable;
        let name = |what| fresh(&plan.scratch, what).map_err(|error| refused(error.to_string()));
        let (socket, console) = (name("port")?, name("console")?);
        if socket.as_os_str().len() > MAX_SOCKET_BYTES {
            let path = socket.display();
            return Err(refused(format!(
                "{path} is too long for a socket: set TMPDIR to a shorter path"
            )));
        }
        let qemu = program(QEMU).map_err(refused)?;
        let system = |error: io::Error| TreatmentError::Unavailable(format!("{QEMU}: {error}"));
        let files = GuestFiles::open(plan, &socket, &console).map_err(system)?;
        let mut command = files.command(&qemu, plan).map_err(system)?;
        let said = File::create(console.with_extension("qemu")).map_err(system)?;
        command.stdin(Stdio::null()).stdout(said.try_clone().map_err(system)?).stderr(said);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        end_with_us(&mut command, Signal::KILL);
        orphans::adopt().map_err(system)?;
        let qemu = command.spawn().map_err(system)?;
        orphans::keep(qemu.id());
        let own_directory = files.own_directory.clone();
        Ok(Guest { qemu, socket, console, own_directory })
    }

    /// Waits until its first process has made all ready, and tells what it found.
    pub fn arrive(
        &mut self,
        interrupted: &AtomicBool,
        limit: Option<Duration>,
    ) -> Result<Handshake, TreatmentError> {
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
            match helper.lines.receive::<Handshake>(interrupted, Instant::now() + LOOK_EVERY) {
                Ok(arrival) => return Ok(arrival),
                Err(LinesError::Interrupted) => return Err(TreatmentError::Interrupted),
                Err(LinesError::TimedOut) => self.is_up(deadline)?,
                Err(LinesError::Io(error)) => {
                    return Err(self.lost(&format!("it does not answer weigh ({error})")));
                }
            }
        }
    }

    fn is_up(&mut self, deadline: Instant) -> Result<(), TreatmentError> {
        if self.has_ended() {
            return Err(self.lost("it ended before it was ready"));
        }
        match Instant::now() > deadline {
            true => Err(self.lost("it did not boot in time")),
            false => Ok(()),
        }
    }

    fn lost(&self, problem: &str) -> TreatmentError {
        let said = [self.console.with_extension("qemu"), self.console.clone()]
            .map(|file| said::end_of(File::open(file)));
        let printed = match said::words(&said.concat()) {
            nothing if nothing.is_empty() => "it printed nothing".into(),
            words => format!("it printed: {words}"),
        };
        TreatmentError::Unavailable(format!("the guest: {problem}; {printed}"))
    }

    /// Itself, where it is not gone.
    pub fn living(mut self) -> Option<Guest> {
        (!self.has_ended()).then_some(self)
    }

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

    pub fn place(&self, arrival: &Handshake, plan: &BootPlan) -> LaunchPlace {
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
        let _ = fs::remove_dir_all(&self.own_directory);
    }
}
