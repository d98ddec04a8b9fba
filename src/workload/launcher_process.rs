//! The launcher itself: reads jobs from stdin, runs each as a fresh process, answers on stdout.
//!
//! It is single-threaded, so that forking is safe, and it ends at the end of its input, whatever
//! ended the parent; the worker's whole process group goes with it.

use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use super::launcher::{Answer, Job, Launched, Setup, status_number};

const KEEP_OUTPUT_BYTES: usize = 64 << 10;

/// Runs the launcher on stdin and stdout until end of input.
///
/// # Errors
/// Where stdin or stdout fail.
pub fn run() -> io::Result<()> {
    let mut requests = io::stdin().lock();
    let mut line = String::new();
    requests.read_line(&mut line)?;
    let setup: Setup = serde_json::from_str(&line)?;
    if let Err(problem) = take(&setup) {
        return answer(&Answer::Error(problem));
    }
    answer(&Answer::Ready)?;
    loop {
        line.clear();
        if requests.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let job: Job = serde_json::from_str(&line)?;
        match launch(&setup, &job) {
            Ok(Some(launched)) => answer(&Answer::Launched(Box::new(launched)))?,
            Ok(None) => return Ok(()), // the parent is gone
            Err(error) => answer(&Answer::Error(format!(
                "cannot run `{}`: {error}",
                job.argv.first().map_or("", String::as_str)
            )))?,
        }
    }
}

fn answer(answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.flush()
}

fn take(setup: &Setup) -> Result<(), String> {
    // Orphans of a worker become ours, so that none outlives its sample.
    rustix::process::set_child_subreaper(Pid::from_raw(1)).map_err(|e| e.to_string())?;
    if let Some(loginuid) = setup.loginuid {
        fs::write("/proc/self/loginuid", loginuid.to_string()).map_err(|error| {
            format!(
                "cannot set the login uid ({error}): this needs CAP_AUDIT_CONTROL, and a host \
                 without `--loginuid-immutable`"
            )
        })?;
    }
    Ok(())
}

/// Runs a job; `None` where the parent went away meanwhile.
fn launch(setup: &Setup, job: &Job) -> io::Result<Option<Launched>> {
    let started = Instant::now();
    let mut child = spawn(setup, job)?;
    let pid = Pid::from_child(&child);
    let (outcome, mut launched) = watch(&mut child, pid, started, job.timeout_ms)?;
    launched.wall_ns = started.elapsed().as_nanos() as u64;
    // It has ended but is not reaped, so its status can still be read.
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    launched.seccomp_mode = status.as_ref().ok().and_then(|text| status_number(text, "Seccomp"));
    launched.seccomp_filters =
        status.as_ref().ok().and_then(|text| status_number(text, "Seccomp_filters"));
    reap(pid, &mut launched)?;
    end_leftovers(pid);
    if let Outcome::ParentGone = outcome {
        return Ok(None);
    }
    launched.timed_out = matches!(outcome, Outcome::TimedOut);
    if let Some(canary) = &setup.canary {
        launched.canary_after_pid = Some(open_in_child(canary)?);
    }
    Ok(Some(launched))
}

fn spawn(setup: &Setup, job: &Job) -> io::Result<Child> {
    let (program, arguments) =
        job.argv.split_first().ok_or_else(|| io::Error::other("there is no command"))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&job.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let setup = setup.clone();
    // SAFETY: the launcher has one thread, so the forked child may use the heap.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if let Some(canary) = &setup.canary {
                drop(fs::File::open(canary)?);
            }
            match &setup.seccomp {
                Some(program) => crate::workload::seccomp::install(program),
                None => Ok(()),
            }
        });
    }
    command.spawn()
}

enum Outcome {
    Ended,
    TimedOut,
    ParentGone,
}

/// Gathers output until the worker ends, the time is up, or the parent is gone. In the latter
/// cases the worker's group is killed; in all of them the worker has ended and waits to be reaped.
fn watch(
    child: &mut Child,
    pid: Pid,
    started: Instant,
    timeout_ms: u64,
) -> io::Result<(Outcome, Launched)> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let stdin = io::stdin();
    let mut stdout = child.stdout.take();
    let mut stderr = child.stderr.take();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut outcome = Outcome::Ended;
    let deadline = started + Duration::from_millis(timeout_ms);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let mut ready = vec![
            PollFd::new(&pidfd, PollFlags::IN),
            // Nothing is sent to us while a job runs, so readable means end of input.
            PollFd::new(&stdin, PollFlags::IN),
        ];
        ready.extend(
            stdout.as_ref().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)),
        );
        ready.extend(
            stderr.as_ref().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)),
        );
        let count = match poll(&mut ready, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let is_ready: Vec<bool> = ready.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(ready);
        let has_stdout = stdout.is_some();
        if has_stdout && is_ready[2] {
            drain(&mut stdout, &mut out)?;
        }
        if stderr.is_some() && is_ready.get(2 + usize::from(has_stdout)) == Some(&true) {
            drain(&mut stderr, &mut err)?;
        }
        if is_ready[0] {
            break;
        }
        if is_ready[1] || count == 0 {
            outcome = if count == 0 { Outcome::TimedOut } else { Outcome::ParentGone };
            let _ = kill_process_group(pid, Signal::KILL);
            let mut ended = [PollFd::new(&pidfd, PollFlags::IN)];
            let _ = poll(&mut ended, None);
            break;
        }
    }
    // Whatever the worker left running must not hold the pipes open.
    let _ = kill_process_group(pid, Signal::KILL);
    while stdout.is_some() {
        drain(&mut stdout, &mut out)?;
    }
    while stderr.is_some() {
        drain(&mut stderr, &mut err)?;
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let launched = Launched {
        pid: pid.as_raw_nonzero().get() as u32,
        stdout: text(out),
        stderr: text(err),
        ..Launched::default()
    };
    Ok((outcome, launched))
}

/// Reads once; at the end the pipe goes. Only the tail is kept, so that a flood costs no memory.
fn drain(pipe: &mut Option<impl Read>, kept: &mut Vec<u8>) -> io::Result<()> {
    let mut chunk = [0u8; 16 << 10];
    let Some(reader) = pipe else { return Ok(()) };
    let read_bytes = reader.read(&mut chunk)?;
    if read_bytes == 0 {
        *pipe = None;
    }
    kept.extend_from_slice(&chunk[..read_bytes]);
    if kept.len() > 2 * KEEP_OUTPUT_BYTES {
        kept.drain(..kept.len() - KEEP_OUTPUT_BYTES);
    }
    Ok(())
}

fn reap(pid: Pid, launched: &mut Launched) -> io::Result<()> {
    let mut status = 0;
    // SAFETY: `rusage` is plain data, for which zeroes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the right type.
    if unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, &raw mut usage) } < 0 {
        return Err(io::Error::last_os_error());
    }
    if libc::WIFEXITED(status) {
        launched.exit_code = Some(libc::WEXITSTATUS(status));
    } else {
        launched.signal = Some(libc::WTERMSIG(status));
    }
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    launched.user_ns = ns(usage.ru_utime);
    launched.system_ns = ns(usage.ru_stime);
    launched.voluntary_switches = usage.ru_nvcsw as u64;
    launched.involuntary_switches = usage.ru_nivcsw as u64;
    launched.minor_faults = usage.ru_minflt as u64;
    launched.major_faults = usage.ru_majflt as u64;
    Ok(())
}

/// Kills and reaps whatever the worker left behind, in its group or outside of it.
fn end_leftovers(group: Pid) {
    let _ = kill_process_group(group, Signal::KILL);
    loop {
        let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        let orphans: Vec<Pid> = children
            .split_whitespace()
            .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
            .collect();
        if orphans.is_empty() {
            return;
        }
        for orphan in orphans {
            let _ = kill_process(orphan, Signal::KILL);
            let _ = rustix::process::waitpid(Some(orphan), rustix::process::WaitOptions::empty());
        }
    }
}

/// Opens a file in a process forked for just that, and gives its process id once it has ended.
fn open_in_child(path: &Path) -> io::Result<u32> {
    // SAFETY: the launcher has one thread, so the forked child may use the heap.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let opened = fs::File::open(path).is_ok();
            // SAFETY: ends the child at once, without the parent's clean-up.
            unsafe { libc::_exit(i32::from(!opened)) }
        }
        pid => {
            rustix::process::waitpid(Pid::from_raw(pid), rustix::process::WaitOptions::empty())?;
            Ok(pid as u32)
        }
    }
}
