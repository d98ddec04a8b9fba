//! The way into a guest: a process here that passes its stdin and stdout on through the serial port of a
//! guest to a process there. A port knows no sessions, so the bytes between lines of JSON say where one
//! begins and ends; in JSON they do not occur.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__port";
/// Role of the other end: `ARRIVAL` reports its findings, `LAUNCHER` is a launcher.
pub const ARRIVAL: &str = "arrival";
pub const LAUNCHER: &str = "launcher";
/// Before the name of a role and a new line; alone before a new line it is the answer.
pub const BEGIN: u8 = 0x01;
/// There is no more input.
pub const END: u8 = 0x04;

/// The socket of a qemu that is just starting.
const CONNECTS_WITHIN: Duration = Duration::from_secs(10);

/// Connects to a socket, asks for a role, and passes all on until one end has no more.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let (Some(socket), Some(role)) = (arguments.next(), arguments.next()) else {
        return Err("this subcommand takes a socket and a role".into());
    };
    let mut guest = connect(&socket).map_err(|error| format!("the guest's port: {error}"))?;
    let lost = |error: io::Error| format!("the guest's port: {error}");
    guest.write_all(&begin(&role.to_string_lossy())).map_err(lost)?;
    match pass_on(&mut guest) {
        // Whoever started us finds out by himself that a guest has ended.
        Err(error) if is_gone(&error) => Ok(()),
        other => other.map_err(lost),
    }
}

fn is_gone(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// How a session is asked for.
fn begin(role: &str) -> Vec<u8> {
    [&[BEGIN], role.as_bytes(), b"\n"].concat()
}

fn connect(socket: &OsString) -> io::Result<UnixStream> {
    let deadline = Instant::now() + CONNECTS_WITHIN;
    loop {
        match UnixStream::connect(socket) {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

fn pass_on(guest: &mut UnixStream) -> io::Result<()> {
    // Without a buffer of its own, which would hold what is polled for.
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut stdout = io::stdout().lock();
    let mut answer = Answer::default();
    let mut chunk = [0; 8192];
    loop {
        let mut ready = [PollFd::new(&*guest, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let [from_guest, from_here] = ready.map(|one| !one.revents().is_empty());
        if from_here {
            // Bytes of ours that the guest has no process for yet wait in the socket.
            match stdin.read(&mut chunk)? {
                0 => return guest.write_all(&[END]),
                length => guest.write_all(&chunk[..length])?,
            }
        }
        if from_guest {
            match guest.read(&mut chunk)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                length => {
                    let passed = answer.pass(&chunk[..length]);
                    stdout.write_all(&passed)?;
                    stdout.flush()?;
                }
            }
        }
    }
}

/// Filter for bytes from a guest: all bytes before the answer are of an earlier session.
#[derive(Default)]
struct Answer {
    has_begun: bool,
    last: Option<u8>,
}

impl Answer {
    fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut passed = Vec::new();
        for byte in bytes {
            match (self.has_begun, self.last) {
                (true, _) => passed.push(*byte),
                (false, Some(BEGIN)) if *byte == b'\n' => self.has_begun = true,
                (false, _) => {}
            }
            self.last = Some(*byte);
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_of_before_left_is_passed_over_wherever_it_is_cut() {
        let all = b"{\"old\":1}\n\x01\n{\"new\":2}\n\x01\nx";
        for cut in 0..all.len() {
            let mut answer = Answer::default();
            let mut passed = answer.pass(&all[..cut]);
            passed.extend(answer.pass(&all[cut..]));
            assert_eq!(passed, b"{\"new\":2}\n\x01\nx");
        }
        assert_eq!(begin("launcher"), b"\x01launcher\n");
    }
}
