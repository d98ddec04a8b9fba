//! A program in a network namespace on one CPU: what it printed, and the CPU time of it and its children.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use wire::Namespace;

const PATIENCE: Duration = Duration::from_secs(30);

/// Ended where it is dropped.
pub struct Started {
    child: Child,
    is_over: bool,
}

/// Result of a process that has ended.
pub struct Ended {
    pub stdout: String,
    pub processor_s: f64,
}

impl Started {
    /// # Errors
    /// A sentence.
    pub fn new(host: &Namespace, cpu: usize, argv: &[String]) -> Result<Started, String> {
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        // SAFETY: between fork and exec there are only system calls, which are safe there.
        unsafe {
            command.pre_exec(move || wire::stay_on(&[cpu]));
        }
        let child =
            host.run(|| command.spawn()).map_err(|error| format!("{}: {error}", argv[0]))?;
        Ok(Started { child, is_over: false })
    }

    /// Ends a server that would go on; what it used.
    ///
    /// # Errors
    /// Where it cannot be ended.
    pub fn stop(mut self) -> Result<f64, String> {
        self.child.kill().map_err(|error| error.to_string())?;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some((_, used_s)) = wait(self.child.id()).map_err(|error| error.to_string())? {
                self.is_over = true;
                return Ok(used_s);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err("it does not end".into())
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Where it fails or takes too long.
    pub fn end(mut self) -> Result<Ended, String> {
        use std::io::Read;
        let mut stdout = String::new();
        let mut pipe = self.child.stdout.take().ok_or("it has no output")?;
        let reading = std::thread::spawn(move || {
            let read = pipe.read_to_string(&mut stdout);
            read.map(|_| stdout)
        });
        let deadline = Instant::now() + PATIENCE;
        let (status, processor_s) = loop {
            match wait(self.child.id()).map_err(|error| error.to_string())? {
                Some(ended) => break ended,
                None if Instant::now() > deadline => return Err("it does not end".into()),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        self.is_over = true;
        let stdout = reading.join().map_err(|_| "a thread panicked")?;
        if status != 0 {
            return Err(format!("it ended with status {status:#x}"));
        }
        Ok(Ended { stdout: stdout.map_err(|error| error.to_string())?, processor_s })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Status and CPU seconds, where it has ended.
fn wait(pid: u32) -> io::Result<Option<(libc::c_int, f64)>> {
    let mut status = 0;
    // SAFETY: all zeros are a valid `rusage`.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both live as long as the call.
    let got = unsafe { libc::wait4(pid as i32, &raw mut status, libc::WNOHANG, &raw mut used) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    match got {
        0 => Ok(None),
        1.. => Ok(Some((status, seconds(used.ru_utime) + seconds(used.ru_stime)))),
        _ => Err(io::Error::last_os_error()),
    }
}
