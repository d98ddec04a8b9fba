//! Lines of JSON to and from another process, over any two file descriptors: the pipes of a child, whether
//! that is a program of ours here or an `ssh` to elsewhere, a socket, a serial port.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde::de::DeserializeOwned;
use weigh_model::printable::brief;

const LOOK_UP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// A worker's output is part of a line: of stdout and stderr 64 KiB each, before they are escaped. What a
/// guest or another machine sends may be anything.
const LONGEST_LINE: usize = 16 << 20;
/// Time limit for immediate work, long enough for the busiest machine.
pub const PROMPTLY: Duration = Duration::from_secs(60);

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The user asked us to stop.
    #[error("interrupted")]
    Interrupted,
    #[error("no answer before the timeout; was the process stopped?")]
    TimedOut,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Answers with one line on stdout, as a helper of ours does.
///
/// # Errors
/// `EPIPE` where nobody reads any more.
pub fn say(answer: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.flush()
}

pub struct Lines {
    outgoing: Option<File>,
    incoming: File,
    unread: Vec<u8>,
    /// So much of it has no end of a line.
    scanned: usize,
}

impl Lines {
    /// Over these two, of which the first may be non-blocking: then who does not read is given up.
    pub fn over(outgoing: OwnedFd, incoming: OwnedFd) -> Lines {
        let (outgoing, incoming) = (Some(outgoing.into()), incoming.into());
        Lines { outgoing, incoming, unread: Vec::new(), scanned: 0 }
    }

    /// Sends one line.
    ///
    /// # Errors
    /// `EPIPE` where the other has ended, `ETIMEDOUT` where it does not read.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let Some(file) = &mut self.outgoing else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut unsent = line.as_slice();
        let deadline = Instant::now() + PROMPTLY;
        while !unsent.is_empty() {
            match file.write(unsent) {
                Ok(sent) => unsent = &unsent[sent..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() > deadline {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    let _ = poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(&LOOK_UP));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for one line, looking up from time to time whether the user gave up.
    ///
    /// # Errors
    /// [`LinesError::TimedOut`] after `deadline`; [`LinesError::Io`] where the other ended or talks nonsense.
    pub fn receive<T: DeserializeOwned>(
        &mut self,
        interrupted: &AtomicBool,
        deadline: Instant,
    ) -> Result<T, LinesError> {
        loop {
            if let Some(line) = self.unread() {
                return Ok(line?);
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(LinesError::Interrupted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LinesError::TimedOut);
            }
            let left =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let mut ready = [PollFd::new(&self.incoming, PollFlags::IN)];
            match poll(&mut ready, Some(&left.min(LOOK_UP))) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
            if !self.fill()? {
                return Err(io::Error::other("the helper process ended unexpectedly").into());
            }
        }
    }

    /// The next line of what was read already.
    pub fn unread<T: DeserializeOwned>(&mut self) -> Option<io::Result<T>> {
        let Some(end) = self.unread[self.scanned..].iter().position(|&byte| byte == b'\n') else {
            self.scanned = self.unread.len();
            return None;
        };
        let line: Vec<u8> = self.unread.drain(..=self.scanned + end).collect();
        self.scanned = 0;
        // The error quotes what is wrong, which may be all of the line.
        let said = |error: serde_json::Error| io::Error::other(brief(&error.to_string()));
        Some(serde_json::from_slice(&line).map_err(said))
    }

    /// Reads what there is, waiting where that is nothing; `false` at the end of all input.
    pub fn fill(&mut self) -> io::Result<bool> {
        if self.scanned > LONGEST_LINE {
            return Err(io::Error::other("it sent a line of more than 16 MiB"));
        }
        let mut chunk = [0u8; 8192];
        match self.incoming.read(&mut chunk) {
            Ok(read_bytes) => {
                self.unread.extend_from_slice(&chunk[..read_bytes]);
                Ok(read_bytes > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Where lines are sent to, for who has more to say there.
    ///
    /// # Errors
    /// `EPIPE` after [`Lines::end`].
    pub fn outgoing(&self) -> io::Result<OwnedFd> {
        match &self.outgoing {
            Some(file) => Ok(file.try_clone()?.into()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Has the other read the end of its input.
    pub fn end(&mut self) {
        self.outgoing = None;
    }
}

/// Descriptor that becomes readable when a line comes, or the end.
impl AsFd for Lines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.incoming.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn both() -> [Lines; 2] {
        let (one, other) = UnixStream::pair().unwrap();
        [one, other].map(|end| {
            end.set_nonblocking(true).unwrap();
            Lines::over(end.try_clone().unwrap().into(), end.into())
        })
    }

    #[test]
    fn lines_go_both_ways_over_a_socket_too() {
        let [mut here, mut there] = both();
        let never = AtomicBool::new(false);
        here.send(&"a\nb").unwrap();
        here.send(&vec![1, 2]).unwrap();
        let deadline = Instant::now() + PROMPTLY;
        assert_eq!(there.receive::<String>(&never, deadline).unwrap(), "a\nb");
        assert_eq!(there.receive::<Vec<u8>>(&never, deadline).unwrap(), [1, 2]);
        there.send(&7).unwrap();
        assert_eq!(here.receive::<u8>(&never, deadline).unwrap(), 7);
        drop(there);
        assert!(matches!(here.receive::<u8>(&never, deadline), Err(LinesError::Io(_))));
    }

    /// Another machine may have written it.
    #[test]
    fn an_error_about_a_line_is_short() {
        let [mut here, mut there] = both();
        here.send(&"x".repeat(1 << 17)).unwrap();
        let never = AtomicBool::new(false);
        let problem =
            there.receive::<u8>(&never, Instant::now() + PROMPTLY).unwrap_err().to_string();
        assert!(problem.contains("invalid type") && problem.len() < 2000, "{}", problem.len());
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut here = Lines::over(ours.try_clone().unwrap().into(), ours.into());
        let sending = std::thread::spawn(move || while theirs.write_all(&[b'1'; 65536]).is_ok() {});
        let never = AtomicBool::new(false);
        let problem = here.receive::<u8>(&never, Instant::now() + PROMPTLY).unwrap_err();
        assert!(problem.to_string().contains("more than 16 MiB"), "{problem}");
        drop(here);
        sending.join().unwrap();
    }

    #[test]
    fn who_says_nothing_is_given_up_and_so_is_a_line_that_makes_no_sense() {
        let [mut here, mut there] = both();
        let never = AtomicBool::new(false);
        assert!(matches!(here.receive::<u8>(&never, Instant::now()), Err(LinesError::TimedOut)));
        let gave_up = AtomicBool::new(true);
        let deadline = Instant::now() + PROMPTLY;
        assert!(matches!(here.receive::<u8>(&gave_up, deadline), Err(LinesError::Interrupted)));
        there.send(&"many").unwrap();
        assert!(matches!(here.receive::<u8>(&never, deadline), Err(LinesError::Io(_))));
        assert!(here.unread::<u8>().is_none(), "the line is gone");
    }
}
