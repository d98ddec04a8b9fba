//! Carries bytes between a channel and file descriptors of this machine: in both directions, waiting for
//! nobody, and holding no more than one piece of each.
//!
//! A frame is what was read at a time, so packets of a socket stay packets. An empty frame is the end of what
//! is read.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};

use channel::{Channel, LONGEST_FRAME_BYTES};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{Shutdown, shutdown};

/// What is read at a time; a message of COMM is shorter.
const PIECE_BYTES: usize = LONGEST_FRAME_BYTES;

/// What becomes of a piece that came, before anybody here gets it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub on: Vec<u8>,
    /// What is answered in place of who would have got the rest.
    pub back: Vec<u8>,
}

/// Looks at what came.
pub type PassGate = Box<dyn FnMut(&[u8]) -> Result<Passed, String>>;

/// How it stands.
#[derive(Debug, PartialEq, Eq)]
pub enum Flow {
    GoesOn,
    /// Both sides have said all.
    Ended,
    /// The connection is gone, or what came over it makes no sense.
    Lost(String),
}

pub struct Pump {
    stream: TcpStream,
    channel: Channel,
    /// What is read from it goes over the channel.
    source: Option<File>,
    /// What comes over the channel goes to it.
    sink: Option<File>,
    gate: Option<PassGate>,
    unsent: Vec<u8>,
    unwritten: Vec<u8>,
    /// Whether the other end has no more to say.
    has_heard_all: bool,
}

impl Pump {
    /// Between a channel that is open and these descriptors; without them, until the other end has ended.
    ///
    /// # Errors
    /// Where they cannot be made non-blocking.
    pub fn new(
        stream: TcpStream,
        channel: Channel,
        (source, sink): (Option<OwnedFd>, Option<OwnedFd>),
        gate: Option<PassGate>,
    ) -> io::Result<Pump> {
        stream.set_nonblocking(true)?;
        for end in [&source, &sink].into_iter().flatten() {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        Ok(Pump {
            stream,
            channel,
            source: source.map(File::from),
            sink: sink.map(File::from),
            gate,
            unsent: Vec::new(),
            unwritten: Vec::new(),
            has_heard_all: false,
        })
    }

    /// Says something of our own.
    ///
    /// # Errors
    /// Where the channel is not open, or that is too long.
    pub fn say(&mut self, words: &[u8]) -> Result<(), channel::ChannelError> {
        self.channel.send(words)?;
        self.unsent.extend(self.channel.unsent());
        Ok(())
    }

    /// What becomes ready when there is something to do.
    pub fn interests(&self) -> Vec<PollFd<'_>> {
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, self.unwritten.is_empty());
        wanted.set(PollFlags::OUT, !self.unsent.is_empty());
        let mut interests = vec![PollFd::new(&self.stream, wanted)];
        if let (Some(source), true) = (&self.source, self.unsent.is_empty()) {
            interests.push(PollFd::from_borrowed_fd(source.as_fd(), PollFlags::IN));
        }
        if let (Some(sink), false) = (&self.sink, self.unwritten.is_empty()) {
            interests.push(PollFd::from_borrowed_fd(sink.as_fd(), PollFlags::OUT));
        }
        interests
    }

    /// Does what can be done without waiting.
    pub fn step(&mut self) -> Flow {
        match self.turn() {
            Ok(()) => {}
            Err(problem) => return Flow::Lost(problem),
        }
        let has_said_all = self.source.is_none() && self.unsent.is_empty();
        match has_said_all && self.has_heard_all && self.unwritten.is_empty() {
            true => Flow::Ended,
            false => Flow::GoesOn,
        }
    }

    fn turn(&mut self) -> Result<(), String> {
        if self.unwritten.is_empty() {
            self.hear()?;
        }
        self.pass_on();
        if self.unsent.is_empty() && self.source.is_some() {
            self.tell()?;
        }
        self.send()
    }

    fn hear(&mut self) -> Result<(), String> {
        let mut bytes = [0; PIECE_BYTES];
        match self.stream.read(&mut bytes) {
            Ok(0) => return Err("the connection was closed".into()),
            Ok(count) => self.channel.take(&bytes[..count]),
            Err(error) if is_for_later(&error) => {}
            Err(error) => return Err(error.to_string()),
        }
        while let Some(frame) = self.channel.next_frame().map_err(|error| error.to_string())? {
            if frame.is_empty() {
                self.has_heard_all = true;
                break;
            }
            match &mut self.gate {
                None => self.write_later(&frame),
                Some(gate) => {
                    let Passed { on, back } = gate(&frame)?;
                    self.write_later(&on);
                    if !back.is_empty() {
                        self.say(&back).map_err(|error| error.to_string())?;
                    }
                }
            }
        }
        Ok(())
    }

    fn write_later(&mut self, bytes: &[u8]) {
        if self.sink.is_none() {
            return;
        }
        // At once, where nothing waits: packets of a socket stay apart.
        if self.unwritten.is_empty()
            && let Some(Ok(count)) = self.sink.as_mut().map(|sink| sink.write(bytes))
        {
            self.unwritten.extend(&bytes[count..]);
            return;
        }
        self.unwritten.extend(bytes);
    }

    fn pass_on(&mut self) {
        while let (Some(sink), false) = (&mut self.sink, self.unwritten.is_empty()) {
            match sink.write(&self.unwritten) {
                Ok(count) => drop(self.unwritten.drain(..count)),
                Err(error) if is_for_later(&error) => return,
                // It reads no more; what it said comes before its end.
                Err(_) => {
                    self.sink = None;
                    self.unwritten.clear();
                }
            }
        }
        if let (true, true, Some(sink)) =
            (self.has_heard_all, self.unwritten.is_empty(), &self.sink)
        {
            // Of a socket the other half is still read; a pipe's end is its end.
            let _ = shutdown(sink, Shutdown::Write);
            self.sink = None;
        }
    }

    fn tell(&mut self) -> Result<(), String> {
        let Some(source) = &mut self.source else { return Ok(()) };
        let mut bytes = [0; PIECE_BYTES];
        match source.read(&mut bytes) {
            Err(error) if is_for_later(&error) => Ok(()),
            // A socket whose other end was killed says so; a program that has ended is at its end.
            Ok(0) | Err(_) => {
                self.source = None;
                self.say(&[]).map_err(|error| error.to_string())
            }
            Ok(count) => self.say(&bytes[..count]).map_err(|error| error.to_string()),
        }
    }

    fn send(&mut self) -> Result<(), String> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if is_for_later(&error) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
