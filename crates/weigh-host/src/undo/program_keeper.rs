//! A program that goes on while others run, such as an agent, below a keeper: a process of ours that adopts
//! whatever the program leaves behind. So each of its processes descends from a process that the journal
//! names, also a daemon and a process that cleared its environment, where the mark is.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};
use serde::{Deserialize, Serialize};

use crate::lines::{Lines, LinesError, PROMPTLY};
use crate::machine::cpu_time::of_process_ns;
use crate::machine::process::{process_start, processes, read_proc, unless_gone};
use crate::own_program::{self, Helper, be_signalled_as_usual};
use crate::undo::running::{MARK, NotedCommand, Spared, end, processes_of};
use crate::undo::undo_command::UserCommand;
use trust::start::{self, Inherited};

/// The hidden subcommand that turns `weigh` into a keeper.
pub const SUBCOMMAND: &str = "__keeper";
/// Time until processes that did not end are looked for again, unless a child dies sooner. Each search reads
/// all of `/proc`, beside the experiments of others.
const TRY_AGAIN: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// Ways to lose a keeper, each with advice.
const ENDED: [&str; 2] = [
    "ended unexpectedly",
    "If nobody killed it, look for \"Out of memory\" in `dmesg`. Then start the experiment again",
];
const SILENT: [&str; 2] =
    ["does not answer", "Start the experiment again, and do not stop this process"];

#[derive(Serialize, Deserialize)]
enum Order {
    Start(UserCommand),
    /// Asks how the process that was started last has ended.
    Status,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Started,
    CannotStart(String),
    /// The wait status; `None` while it runs.
    Status(Option<i32>),
}

/// A keeper, and the program below it if that runs. Dropping it ends both; a keeper stays as long as a
/// process of the program does.
pub struct ProgramKeeper {
    helper: Helper,
    note: NotedCommand,
}

/// Processes of a program, and their use of the machine now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    pub processes: usize,
    pub resident_bytes: u64,
    /// Sum over the threads that live.
    pub cpu_ns: u64,
}

impl ProgramKeeper {
    /// Starts a keeper, which does nothing yet. The mark goes into the environment of all that it starts.
    pub fn start(mark: &str) -> io::Result<ProgramKeeper> {
        let mut command = own_program::command(SUBCOMMAND);
        command.env(MARK, mark);
        let mut helper = Helper::start(command)?;
        // Killed, it would leave what hangs to init, and no journal could name that any more.
        helper.let_end_itself();
        let pid = helper.pid();
        let start = process_start(pid)?.ok_or_else(|| lost(pid, ENDED))?;
        Ok(ProgramKeeper { helper, note: NotedCommand { pid, start, mark: mark.to_owned() } })
    }

    /// Note for the journal, to be written before the first program is started.
    pub fn note(&self) -> &NotedCommand {
        &self.note
    }

    /// Starts a program in a process group of its own.
    pub fn start_program(&mut self, command: &UserCommand) -> io::Result<()> {
        match self.ask(&Order::Start(command.clone()))? {
            Answer::Started => Ok(()),
            Answer::CannotStart(problem) => Err(io::Error::other(problem)),
            other => Err(self.confused(&other)),
        }
    }

    /// The status of the process that was started last, if that has failed.
    pub fn failure(&mut self) -> io::Result<Option<ExitStatus>> {
        match self.ask(&Order::Status)? {
            Answer::Status(status) => {
                Ok(status.map(ExitStatus::from_raw).filter(|status| !status.success()))
            }
            other => Err(self.confused(&other)),
        }
    }

    fn ask(&mut self, order: &Order) -> io::Result<Answer> {
        let (lines, never) = (&mut self.helper.lines, AtomicBool::new(false));
        let sent = lines.send(order).map_err(LinesError::from);
        let answer = sent.and_then(|()| lines.receive(&never, Instant::now() + PROMPTLY));
        answer.map_err(|error| match error {
            LinesError::TimedOut => lost(self.note.pid, SILENT),
            LinesError::Interrupted | LinesError::Io(_) => lost(self.note.pid, ENDED),
        })
    }

    fn confused(&self, answer: &Answer) -> io::Error {
        let what = format!("sent an unexpected answer: {answer:?}");
        lost(self.note.pid, [what.as_str(), "Start the experiment again"])
    }

    /// # Errors
    /// A process that has not ended cannot be read: the sum would be too small.
    pub fn footprint(&self) -> io::Result<Footprint> {
        let found = below(&self.note)?;
        let mut all = Footprint { processes: found.len(), ..Footprint::default() };
        // One that ends meanwhile has nothing any more.
        for pid in found {
            let unknown = |error| io::Error::other(format!("process {pid}: {error}"));
            all.resident_bytes += unless_gone(resident_bytes(pid)).map_err(unknown)?.unwrap_or(0);
            all.cpu_ns += unless_gone(of_process_ns(pid)).map_err(unknown)?.unwrap_or(0);
        }
        Ok(all)
    }

    /// Ends all processes of the program, and waits for their end.
    ///
    /// # Errors
    /// Its processes cannot be seen, or one does not end. Another call tries again.
    pub fn end_program(&self) -> io::Result<()> {
        end(&self.note, Spared::First)
    }
}

/// Ends the program of a journal's note, and then its keeper: without that, processes without a mark could
/// not be found.
pub fn end_kept(note: &NotedCommand) -> io::Result<()> {
    end(note, Spared::First)?;
    end(note, Spared::None)
}

fn below(note: &NotedCommand) -> io::Result<BTreeSet<u32>> {
    let mut found = processes_of(note, &processes()?)?;
    found.remove(&note.pid);
    Ok(found)
}

/// Users do not know a keeper: the error says what the process does, and what to do.
fn lost(pid: u32, [what, advice]: [&str; 2]) -> io::Error {
    io::Error::other(format!(
        "process {pid} {what}. It is `weigh __keeper`, which starts and ends the agent. {advice}"
    ))
}

fn resident_bytes(pid: u32) -> io::Result<u64> {
    let status = read_proc(pid, "status")?;
    let invalid = || io::Error::other(format!("/proc/{pid}/status has an invalid VmRSS line"));
    resident(&String::from_utf8_lossy(&status)).ok_or_else(invalid)
}

/// A process without memory, such as one that nobody has reaped, has no such line.
fn resident(status: &str) -> Option<u64> {
    let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmRSS:")) else {
        return Some(0);
    };
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The process that was started last.
#[derive(Default)]
struct Started {
    pid: Option<i32>,
    status: Option<i32>,
}

impl Started {
    fn answer(&mut self, order: Order) -> Answer {
        match order {
            Order::Status => Answer::Status(self.status),
            Order::Start(command) => match start(&command) {
                Ok(pid) => {
                    *self = Started { pid: Some(pid), status: None };
                    Answer::Started
                }
                Err(error) => Answer::CannotStart(error.to_string()),
            },
        }
    }

    /// Reaps all that have ended, also orphans; returns true if a child is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if self.pid == Some(pid.as_raw_nonzero().get()) {
                        self.status = Some(status.as_raw());
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::CHILD) => return false,
                Ok(None) | Err(_) => return true,
            }
        }
    }
}

fn start(command: &UserCommand) -> io::Result<i32> {
    let mut shell = start::command("/bin/sh", Inherited::Callers);
    shell.args(["-c", &command.line]).current_dir(&command.directory).process_group(0);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: system calls alone, between fork and exec.
    unsafe { shell.pre_exec(be_signalled_as_usual) };
    Ok(shell.spawn()?.id().cast_signed())
}

/// Runs the keeper: starts what it is asked to, until the end of its input; then it ends all of it.
pub fn run() -> io::Result<()> {
    let own = getpid();
    let mark = std::env::var(MARK).map_err(io::Error::other)?;
    set_child_subreaper(Some(own))?;
    let (mut deaths, writer) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(libc::SIGCHLD, writer)?;
    deaths.set_nonblocking(true)?;
    // Not inherited: `weigh` could not see the end of a keeper whose pipes the program has.
    let requests = rustix::stdio::stdin().try_clone_to_owned()?;
    let answers = rustix::stdio::stdout().try_clone_to_owned()?;
    let mut lines = Lines::over(answers, requests);
    let mut started = Started::default();
    let served = loop {
        match step(&mut lines, &mut deaths, &mut started) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let pid = own.as_raw_nonzero().get().cast_unsigned();
    let start = process_start(pid)?.ok_or(io::ErrorKind::NotFound)?;
    let note = NotedCommand { pid, start, mark };
    let has_child = || {
        let has_child = started.reap();
        if has_child {
            wait_for_death(&mut deaths);
        }
        has_child
    };
    end_children(|| end(&note, Spared::First).inspect_err(|_| be_silent()), has_child)?;
    served
}

/// Ends what the keeper started until it has no child. One that hangs (on a disk, in a frozen control group)
/// would be nobody's child without the keeper, and nobody could find it: so the keeper waits as long.
fn end_children(
    mut end: impl FnMut() -> io::Result<()>,
    mut has_child: impl FnMut() -> bool,
) -> io::Result<()> {
    loop {
        let ended = end();
        if !has_child() {
            return ended;
        }
    }
}

fn wait_for_death(deaths: &mut UnixStream) {
    // An error is an interrupt: then the next search is sooner.
    let _ = poll(&mut [PollFd::new(&*deaths, PollFlags::IN)], Some(&TRY_AGAIN));
    let _ = deaths.read(&mut [0; 256]);
}

/// Whoever reads what `weigh` said waits for the end of the pipe, and this process may have to stay.
fn be_silent() {
    if let Ok(nothing) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stderr(&nothing);
    }
}

/// Waits for an order or a death; returns false at the end of the input.
fn step(lines: &mut Lines, deaths: &mut UnixStream, started: &mut Started) -> io::Result<bool> {
    let mut ready = [
        PollFd::from_borrowed_fd(lines.as_fd(), PollFlags::IN),
        PollFd::new(&*deaths, PollFlags::IN),
    ];
    match poll(&mut ready, None) {
        Err(Errno::INTR) => return Ok(true),
        other => other?,
    };
    let [has_order, has_death] = ready.map(|file| !file.revents().is_empty());
    if has_death {
        // One byte each, as far as they fit.
        let _ = deaths.read(&mut [0; 256]);
    }
    started.reap();
    if has_order && !lines.fill()? {
        return Ok(false);
    }
    while let Some(order) = lines.unread() {
        let answer = started.answer(order?);
        lines.send(&answer)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_none_without_a_line_and_unknown_with_a_wrong_one() {
        assert_eq!(resident("Name:\ta\nVmRSS:\t    12 kB\nThreads:\t1\n"), Some(12 << 10));
        assert_eq!(resident("Name:\ta\nState:\tZ (zombie)\n"), Some(0));
        assert_eq!(resident("VmRSS:\t12 MB\n"), None);
    }

    #[test]
    fn a_keeper_stays_until_it_has_no_child() {
        let (mut ended, mut looked) = (0, 0);
        let end = || {
            ended += 1;
            if ended < 3 { Err(io::Error::other("process 7 does not end")) } else { Ok(()) }
        };
        let has_child = || {
            looked += 1;
            looked < 4
        };
        end_children(end, has_child).unwrap();
        assert_eq!((ended, looked), (4, 4));
        let unseen = end_children(|| Err(io::Error::other("no /proc")), || false);
        assert_eq!(unseen.unwrap_err().to_string(), "no /proc");
    }
}
