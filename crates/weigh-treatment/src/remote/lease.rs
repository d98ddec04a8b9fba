//! Lease of our files and processes on another machine: they stay there only for a term.
//!
//! Their owner reports every few seconds that it still wants them. The other machine may not see
//! for hours that a connection was cut.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use weigh_host::machine::process::processes;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__lease";
/// How often it is said.
const EVERY: Duration = Duration::from_secs(5);
/// After so long without a word nobody wants it any more. ssh gives up sooner at the other end.
const TERM: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };
const WORD: &[u8] = b".";

/// Says it there, as long as this lives.
pub struct Lease {
    _ends: Sender<()>,
}

impl Lease {
    /// Over this pipe.
    pub fn keep(pipe: OwnedFd) -> io::Result<Lease> {
        let (_ends, ended) = channel();
        let say = move || {
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                match rustix::io::write(&pipe, WORD) {
                    // A connection that hangs; ssh finds out.
                    Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(_) => return,
                }
            }
        };
        thread::Builder::new().spawn(say)?;
        Ok(Lease { _ends })
    }
}

/// There: waits until its input ends, as that of the others does; or until its term is over, and then ends
/// them.
pub fn run() -> io::Result<()> {
    match is_silent(io::stdin().as_fd(), &TERM)? {
        true => end_the_others(),
        false => Ok(()),
    }
}

/// Returns when nothing came for so long; `false` at the end of the input.
fn is_silent(input: BorrowedFd, term: &Timespec) -> io::Result<bool> {
    let mut words = [0; 64];
    loop {
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(term)) {
            Ok(0) => return Ok(true),
            Err(Errno::INTR) => continue,
            other => other?,
        };
        if rustix::io::read(input, &mut words)? == 0 {
            return Ok(false);
        }
    }
}

/// Launchers, which end what they have: of this very file, and started by another program.
fn end_the_others() -> io::Result<()> {
    let program = |pid: u32| {
        let found = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
        Some((found.dev(), found.ino()))
    };
    let own = program(std::process::id());
    for (pid, life) in processes()? {
        let is_other = pid != std::process::id() && program(pid) == own && own.is_some();
        if is_other && program(life.parent) != own {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            // One that has ended meanwhile needs none.
            let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Write, pipe};

    use super::*;

    #[test]
    fn it_lasts_until_nobody_says_anything_or_the_input_ends() {
        let (input, mut said) = pipe().unwrap();
        said.write_all(b"...").unwrap();
        let short = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        assert!(is_silent(input.as_fd(), &short).unwrap());
        said.write_all(b".").unwrap();
        drop(said);
        let long = Timespec { tv_sec: 3600, tv_nsec: 0 };
        assert!(!is_silent(input.as_fd(), &long).unwrap());
    }
}
