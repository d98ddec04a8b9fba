//! The link itself: a thread that holds both devices, and is told what to do between packets.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::time::{ClockId, clock_gettime};

use crate::counters::{DroppedPacket, LinkCounters};
use crate::impairment::Impairment;
use crate::lane::Lane;
use crate::real_time;
use crate::shaper::Medium;
use crate::tun::{Offload, Tun};

/// The longest piece, with room: the kernel cuts off what does not fit.
const LONGEST_PIECE: usize = 1 << 18;
/// Pieces from one side before the other is looked at.
const AT_ONCE: usize = 16;
/// A thread that does nothing but this answers in no time, however busy the machine is.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// One of the two sides of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first device that it was made of.
    A,
    /// The second.
    B,
}

/// How the link's thread runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// `SCHED_FIFO` with this priority.
    pub priority: Option<i32>,
    /// On these CPUs; on any where it is empty.
    pub cpus: Vec<usize>,
}

/// Two devices, and a thread that carries packets between them. Dropping it removes the devices.
///
/// ```no_run
/// use wire::{End, Impairment, Namespace, Scheduling, Tun, Wire};
///
/// let (here, there) = (Namespace::new()?, Namespace::new()?);
/// let ends = [here.run(|| Tun::open("wire"))?, there.run(|| Tun::open("wire"))?];
/// let wire = Wire::start(ends, Scheduling::default())?;
/// let loss = vec!["1@200%400+3@397%400".parse().unwrap()];
/// wire.configure(End::A, Impairment { loss, ..Impairment::default() })?;
/// println!("{} packets came from the first", wire.counters()?[0].decided.packets);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Wire {
    orders: Sender<Asked>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
    not_real_time: Option<String>,
}

enum Asked {
    Configure(End, Box<Impairment>, Sender<()>),
    Offload(Offload, Sender<io::Result<Offload>>),
    Reset(Sender<()>),
    Counters(Sender<[LinkCounters; 2]>),
    Drops(End, Sender<Vec<DroppedPacket>>),
    End,
}

impl Wire {
    /// Begins to carry packets. Where it may not have the priority that it is to have, it runs without:
    /// [`Wire::not_real_time`] says so.
    ///
    /// # Errors
    /// Where there can be no thread, or it may not run on those CPUs.
    pub fn start(ends: [Tun; 2], scheduling: Scheduling) -> io::Result<Wire> {
        Wire::start_at(&Medium::default(), ends, scheduling)
    }

    /// Starts a wire at a hub with other wires. Their [`shared`](Impairment::shared) directions
    /// have one rate together.
    ///
    /// # Errors
    /// As [`Wire::start`].
    pub fn start_at(hub: &Medium, ends: [Tun; 2], scheduling: Scheduling) -> io::Result<Wire> {
        let hub = hub.clone();
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let woken = wake.try_clone()?;
        let (orders, asked) = mpsc::channel();
        let (began, begin) = mpsc::channel();
        let work = move || {
            let placed = match scheduling.cpus.is_empty() {
                true => Ok(()),
                false => real_time::stay_on(&scheduling.cpus),
            };
            let real_time = scheduling.priority.map_or(Ok(()), real_time::be_real_time);
            let is_placed = placed.is_ok();
            let _ = began.send((placed, real_time.err().map(|error| error.to_string())));
            if is_placed {
                Carrier::new(&hub, ends, woken, asked).run();
            }
        };
        let thread = thread::Builder::new().name("wire".into()).spawn(work)?;
        let (placed, not_real_time) =
            begin.recv().map_err(|_| io::Error::other("the thread of the link ended"))?;
        placed?;
        Ok(Wire { orders, wake, thread: Some(thread), not_real_time })
    }

    /// Why its thread has no real-time priority, though it was to have one.
    pub fn not_real_time(&self) -> Option<&str> {
        self.not_real_time.as_deref()
    }

    /// From now on, what comes from this side is treated so, and counted from 1. What is held leaves when it
    /// was to leave.
    ///
    /// # Errors
    /// Where no link can be so.
    pub fn configure(&self, from: End, impairment: Impairment) -> io::Result<()> {
        impairment.check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.ask(|answer| Asked::Configure(from, Box::new(impairment), answer))
    }

    /// Sets the work that the kernel leaves to the link, on both sides. Returns the work that it
    /// really leaves, which may be less.
    ///
    /// # Errors
    /// The kernel refuses this setting and every lesser one.
    pub fn set_offload(&self, offload: Offload) -> io::Result<Offload> {
        self.ask(|answer| Asked::Offload(offload, answer))?
    }

    /// Resets both directions: they count from 1 again, and draw again from their seeds.
    ///
    /// # Errors
    /// Where the thread of the link has ended.
    pub fn reset(&self) -> io::Result<()> {
        self.ask(Asked::Reset)
    }

    /// Returns the counts of the packets from A, and of those from B.
    ///
    /// # Errors
    /// Where the thread of the link has ended.
    pub fn counters(&self) -> io::Result<[LinkCounters; 2]> {
        self.ask(Asked::Counters)
    }

    /// Which packets from this side were dropped, where that is written down ([`Impairment::logs_drops`]).
    ///
    /// # Errors
    /// Where the thread of the link has ended.
    pub fn drops(&self, from: End) -> io::Result<Vec<DroppedPacket>> {
        self.ask(|answer| Asked::Drops(from, answer))
    }

    fn ask<T>(&self, asked: impl FnOnce(Sender<T>) -> Asked) -> io::Result<T> {
        let (answer, answered) = mpsc::channel();
        let ended = || io::Error::other("the thread of the link has ended");
        self.orders.send(asked(answer)).map_err(|_| ended())?;
        self.wake();
        answered.recv_timeout(ANSWER_LIMIT).map_err(|error| match error {
            RecvTimeoutError::Disconnected => ended(),
            RecvTimeoutError::Timeout => io::Error::new(
                io::ErrorKind::TimedOut,
                "the thread of the link does not answer: it gets no CPU",
            ),
        })
    }

    fn wake(&self) {
        // It fails only where it would overflow, and then it is awake.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.orders.send(Asked::End);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// State of the link's thread.
struct Carrier {
    ends: [Tun; 2],
    /// From A, and from B.
    lanes: [Lane; 2],
    /// True if a device is gone. Such a device is always ready, and never has packets.
    is_gone: [bool; 2],
    woken: OwnedFd,
    asked: Receiver<Asked>,
    piece: Vec<u8>,
}

impl Carrier {
    fn new(hub: &Medium, ends: [Tun; 2], woken: OwnedFd, asked: Receiver<Asked>) -> Carrier {
        let piece = vec![0; LONGEST_PIECE];
        Carrier {
            ends,
            lanes: [Lane::new(hub.clone()), Lane::new(hub.clone())],
            is_gone: [false; 2],
            woken,
            asked,
            piece,
        }
    }

    fn run(&mut self) {
        loop {
            self.release();
            let (ready, is_woken) = self.wait();
            if is_woken && !self.obey() {
                return;
            }
            for (from, is_ready) in ready.into_iter().enumerate() {
                if is_ready {
                    self.carry(from);
                }
            }
        }
    }

    /// Until a packet comes, one is due, or somebody asks.
    fn wait(&mut self) -> ([bool; 2], bool) {
        let due = self.lanes.iter().filter_map(Lane::next_due_ns).min();
        let wait = due.map(|due_ns| {
            let ns = due_ns.saturating_sub(now_ns());
            Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
        });
        let wanted =
            |end: usize| if self.is_gone[end] { PollFlags::empty() } else { PollFlags::IN };
        let mut ready = [
            PollFd::from_borrowed_fd(self.ends[0].as_fd(), wanted(0)),
            PollFd::from_borrowed_fd(self.ends[1].as_fd(), wanted(1)),
            PollFd::new(&self.woken, PollFlags::IN),
        ];
        if poll(&mut ready, wait.as_ref()).is_err() {
            return ([false; 2], false);
        }
        let is_ready = |at: usize| !ready[at].revents().is_empty();
        ([is_ready(0) && !self.is_gone[0], is_ready(1) && !self.is_gone[1]], is_ready(2))
    }

    fn carry(&mut self, from: usize) {
        for _ in 0..AT_ONCE {
            match self.ends[from].read(&mut self.piece) {
                Ok(Some(length)) => {
                    let now_ns = now_ns();
                    let to = 1 - from;
                    self.lanes[from].release(now_ns, &self.ends[to]);
                    self.lanes[from].accept(&self.piece[..length], now_ns, &self.ends[to]);
                    self.lanes[to].release(now_ns, &self.ends[from]);
                }
                Ok(None) => return,
                Err(_) => {
                    self.is_gone[from] = true;
                    return;
                }
            }
        }
    }

    fn release(&mut self) {
        let now_ns = now_ns();
        let [a, b] = &self.ends;
        self.lanes[0].release(now_ns, b);
        self.lanes[1].release(now_ns, a);
    }

    /// Does what it was asked for; `false` at the end. Who asks may have given up.
    fn obey(&mut self) -> bool {
        let _ = rustix::io::read(&self.woken, &mut [0_u8; 8]);
        while let Ok(asked) = self.asked.try_recv() {
            match asked {
                Asked::Configure(from, impairment, answer) => {
                    self.lanes[from as usize].configure(*impairment);
                    let _ = answer.send(());
                }
                Asked::Offload(offload, answer) => {
                    let [a, b] = &self.ends;
                    // The smaller of the two, as one kernel has both.
                    let _ = answer.send(a.set_offload(offload).and_then(|had| b.set_offload(had)));
                }
                Asked::Reset(answer) => {
                    self.lanes.iter_mut().for_each(Lane::reset);
                    let _ = answer.send(());
                }
                Asked::Counters(answer) => {
                    let [a, b] = &self.lanes;
                    let _ = answer.send([a.counters(), b.counters()]);
                }
                Asked::Drops(from, answer) => {
                    let _ = answer.send(self.lanes[from as usize].drops.packets.clone());
                }
                Asked::End => return false,
            }
        }
        true
    }
}

/// `CLOCK_MONOTONIC`.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
