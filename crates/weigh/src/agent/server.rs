//! The agent itself: one thread that waits for all at once. Who calls has some seconds to prove that he knows
//! the token; of those who do, one at a time has an experiment, with a launcher and a testbed.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use channel::{Channel, Secret};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::Gates;
use crate::far::dial::set_up;
use crate::far::pump::{Flow, PassGate, Pump};
use crate::far::{CallFor, Hello, Premises, VERSION, Welcome, interface};
use crate::net::peer::peer_socket;
use crate::station::Station;
use crate::testbed;
use crate::workload::launcher;
use weigh_host::{orphans, own_program};
use weigh_model::described;

/// From the connection to the words that say what is wanted.
const GREET_WITHIN: Duration = Duration::from_secs(5);
/// Of those who have not proved anything; where there are more, the first one goes.
const MOST_WAITING: usize = 64;
/// Of those who have; COMM has 64 connections at most, to each peer.
const MOST_SESSIONS: usize = 80;
const LOOK_UP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Whoever is told what happens, in a sentence.
pub type Log<'a> = &'a mut dyn FnMut(&str);

/// What it allows.
#[derive(Clone, Copy, Debug)]
pub struct AgentLimits {
    /// An experiment that lasts longer is ended.
    pub longest: Duration,
}

pub struct AgentServer {
    listener: TcpListener,
    secret: Secret,
    limits: AgentLimits,
    waiting: Vec<Stranger>,
    sessions: Vec<AgentSession>,
    experiment: Option<Experiment>,
    refused: u64,
}

/// Somebody who has not proved anything.
struct Stranger {
    stream: TcpStream,
    channel: Channel,
    from: SocketAddr,
    since: Instant,
}

/// A connection of the experiment.
struct AgentSession {
    pump: Pump,
    wants: CallFor,
    program: Option<Child>,
}

struct Experiment {
    id: String,
    from: SocketAddr,
    began: Instant,
    station: Station,
    gates: Gates,
}

/// What became of a stranger.
enum Met {
    StillGreeting,
    Gone,
    Known(Hello),
}

impl AgentServer {
    /// # Errors
    /// As `fcntl(2)`.
    pub fn new(
        listener: TcpListener,
        secret: Secret,
        limits: AgentLimits,
    ) -> io::Result<AgentServer> {
        listener.set_nonblocking(true)?;
        let (waiting, sessions) = (Vec::new(), Vec::new());
        Ok(AgentServer {
            listener,
            secret,
            limits,
            waiting,
            sessions,
            experiment: None,
            refused: 0,
        })
    }

    /// Serves until it is interrupted; then all is ended and put back.
    ///
    /// # Errors
    /// Where the socket fails.
    pub fn serve(&mut self, interrupted: &Arc<AtomicBool>, log: Log) -> io::Result<()> {
        orphans::adopt()?;
        let served = loop {
            if interrupted.load(Ordering::Relaxed) {
                break Ok(());
            }
            if let Err(error) = self.wait() {
                break Err(error);
            }
            self.accept();
            self.meet(log);
            self.carry(log);
            if self.refused > 0 {
                let refused = std::mem::take(&mut self.refused);
                log(&format!("{refused} refused, who did not have the token"));
            }
        };
        self.end("the agent is stopped", log);
        served
    }

    fn wait(&self) -> io::Result<()> {
        let mut ready = vec![PollFd::new(&self.listener, PollFlags::IN)];
        ready.extend(self.waiting.iter().map(|one| PollFd::new(&one.stream, PollFlags::IN)));
        ready.extend(self.sessions.iter().flat_map(|session| session.pump.interests()));
        match poll(&mut ready, Some(&LOOK_UP)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn accept(&mut self) {
        // Whoever is left waits in the kernel.
        for _ in 0..MOST_WAITING {
            let Ok((stream, from)) = self.listener.accept() else { return };
            if set_up(&stream).and_then(|()| stream.set_nonblocking(true)).is_err() {
                continue;
            }
            if self.waiting.len() >= MOST_WAITING {
                self.waiting.remove(0);
                self.refused += 1;
            }
            let (channel, since) = (Channel::answer(&self.secret), Instant::now());
            self.waiting.push(Stranger { stream, channel, from, since });
        }
    }

    fn meet(&mut self, log: Log) {
        for mut stranger in std::mem::take(&mut self.waiting) {
            match stranger.hear() {
                Met::StillGreeting if stranger.since.elapsed() < GREET_WITHIN => {
                    self.waiting.push(stranger);
                }
                Met::StillGreeting | Met::Gone => self.refused += 1,
                Met::Known(hello) => self.welcome(stranger, &hello, log),
            }
        }
    }

    /// Does what is wanted, if it may be had now, and answers.
    fn welcome(&mut self, stranger: Stranger, hello: &Hello, log: Log) {
        let Stranger { stream, mut channel, from, .. } = stranger;
        channel.allow_long_frames();
        let had = self.check(hello, from).and_then(|()| self.open(hello, &stream, from, log));
        let (welcome, opened) = match had {
            Ok((welcome, opened)) => (welcome, Some(opened)),
            Err(problem) => {
                log(&format!("{from}: refused: {problem}"));
                (Welcome::Refused(problem), None)
            }
        };
        let Opened { ends, gate, mut program } = opened.unwrap_or_default();
        let is_refused = matches!(welcome, Welcome::Refused(_));
        let words = serde_json::to_vec(&welcome).expect("plain data with text keys");
        let pump = Pump::new(stream, channel, ends, gate).map_err(|error| error.to_string());
        let said = pump.and_then(|mut pump| match pump.say(&words) {
            Ok(()) => Ok(pump),
            Err(error) => Err(error.to_string()),
        });
        match said {
            Ok(pump) => {
                let mut session = AgentSession { pump, wants: hello.wants, program };
                // Whoever has gone meanwhile is found out on the next turn, and all of it ends then.
                session.pump.step();
                if !is_refused {
                    self.sessions.push(session);
                }
            }
            Err(problem) => {
                program.iter_mut().for_each(own_program::see_off);
                if hello.wants == CallFor::Experiment && !is_refused {
                    self.end(&problem, log);
                }
            }
        }
    }

    fn check(&self, hello: &Hello, from: SocketAddr) -> Result<(), String> {
        if hello.version != VERSION {
            return Err(format!("this agent is `{VERSION}`, and you are `{}`", hello.version));
        }
        match (&self.experiment, hello.wants) {
            (None, CallFor::Experiment) => Ok(()),
            (None, _) => Err("there is no such experiment".into()),
            (Some(one), CallFor::Experiment) => Err(format!(
                "it has an experiment of {} since {} s, and one at a time",
                one.from.ip(),
                one.began.elapsed().as_secs()
            )),
            (Some(one), _) if one.id != hello.experiment || one.from.ip() != from.ip() => {
                Err("it has another experiment".into())
            }
            (Some(_), _) if self.sessions.len() >= MOST_SESSIONS => {
                Err("there are too many connections".into())
            }
            (Some(_), _) => Ok(()),
        }
    }

    fn open(
        &mut self,
        hello: &Hello,
        stream: &TcpStream,
        from: SocketAddr,
        log: Log,
    ) -> Result<(Welcome, Opened), String> {
        let system = |error: io::Error| error.to_string();
        if hello.wants == CallFor::Experiment {
            let here = stream.local_addr().map_err(system)?.ip().to_canonical();
            let experiment = Experiment::begin(hello, here, from, log)?;
            let premises = experiment.gates.premises.clone();
            log(&format!("{from}: an experiment begins"));
            self.experiment = Some(experiment);
            return Ok((Welcome::Experiment(Box::new(premises)), Opened::default()));
        }
        let experiment = self.experiment.as_mut().ok_or("there is no experiment")?;
        let opened = match hello.wants {
            CallFor::Experiment => Opened::default(),
            CallFor::Testbed if experiment.gates.testbed.is_some() => {
                return Err("it has a testbed already".into());
            }
            CallFor::Testbed => {
                let gate = experiment.gates.clone().testbed();
                let opened = Opened::program(testbed::SUBCOMMAND, gate).map_err(system)?;
                experiment.gates.testbed = opened.program.as_ref().map(Child::id);
                opened
            }
            CallFor::Launcher => {
                let gate = experiment.gates.clone().launcher();
                Opened::program(launcher::SUBCOMMAND, gate).map_err(system)?
            }
            CallFor::Peer => Opened::peer(&experiment.gates.premises.directory)
                .map_err(|error| format!("its peer: {error}"))?,
        };
        Ok((Welcome::Connected, opened))
    }

    fn carry(&mut self, log: Log) {
        let mut over = None;
        for mut session in std::mem::take(&mut self.sessions) {
            match session.pump.step() {
                Flow::GoesOn => self.sessions.push(session),
                Flow::Ended if session.wants == CallFor::Experiment => {
                    // Whoever waits for our end is told so, and not that the connection was lost.
                    let _ = session.pump.say(&[]);
                    session.pump.step();
                    over = Some("it is over".into());
                }
                Flow::Lost(why) if session.wants == CallFor::Experiment => over = Some(why),
                Flow::Ended | Flow::Lost(_) => session.end(),
            }
        }
        let is_too_long = |one: &Experiment| one.began.elapsed() > self.limits.longest;
        if self.experiment.as_ref().is_some_and(is_too_long) {
            over.get_or_insert_with(|| "it took longer than --longest allows".into());
        }
        if let Some(why) = over {
            self.end(&why, log);
        }
    }

    /// Ends the experiment, and all that was started for it.
    fn end(&mut self, why: &str, log: Log) {
        // The launcher before the testbed in which it has its peer.
        self.sessions.sort_by_key(|session| session.wants == CallFor::Testbed);
        std::mem::take(&mut self.sessions).into_iter().for_each(AgentSession::end);
        let Some(experiment) = self.experiment.take() else { return };
        let from = experiment.from;
        let left = experiment.station.close();
        log(&format!("{from}: the experiment has ended: {why}"));
        left.into_iter().for_each(|left| {
            log(&format!("the system is not as it was: {left}; `weigh restore` tries again"));
        });
    }
}

impl Stranger {
    fn hear(&mut self) -> Met {
        let mut bytes = [0; 2048];
        match self.stream.read(&mut bytes) {
            Ok(0) => return Met::Gone,
            Ok(count) => self.channel.take(&bytes[..count]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Met::StillGreeting;
            }
            Err(_) => return Met::Gone,
        }
        let frame = match self.channel.next_frame() {
            Ok(frame) => frame,
            Err(_) => return Met::Gone,
        };
        // A greeting fits into any socket's buffer.
        let answer = self.channel.unsent();
        if self.stream.write_all(&answer).is_err() {
            return Met::Gone;
        }
        match frame.map(|frame| serde_json::from_slice(&frame)) {
            None => Met::StillGreeting,
            Some(Ok(hello)) => Met::Known(hello),
            Some(Err(_)) => Met::Gone,
        }
    }
}

impl AgentSession {
    fn end(self) {
        let AgentSession { pump, program, .. } = self;
        // Its input ends with this.
        drop(pump);
        if let Some(mut program) = program {
            own_program::see_off(&mut program);
        }
    }
}

impl Experiment {
    fn begin(
        hello: &Hello,
        here: std::net::IpAddr,
        from: SocketAddr,
        log: Log,
    ) -> Result<Experiment, String> {
        let is_plain = |c: char| c.is_ascii_hexdigit();
        if hello.experiment.len() != 32 || !hello.experiment.chars().all(is_plain) {
            return Err("an experiment has a number of 32 hexadecimal digits".into());
        }
        let found = interface::of_address(here).map_err(|error| error.to_string())?;
        let interface = found.ok_or("the address that was called has no interface")?;
        let station = Station::open([], &mut |sentence| log(sentence))?;
        let premises = Premises {
            machine: described::line(&weigh_host::machine::facts::read()),
            directory: station.place.scratch.clone(),
            executable: station.place.executable.path().to_owned(),
            interface,
            agent: std::process::id(),
        };
        let gates = Gates { premises, testbed: None };
        let (id, began) = (hello.experiment.clone(), Instant::now());
        Ok(Experiment { id, from, began, station, gates })
    }
}

/// What a connection is carried to.
#[derive(Default)]
struct Opened {
    ends: (Option<OwnedFd>, Option<OwnedFd>),
    gate: Option<PassGate>,
    program: Option<Child>,
}

impl Opened {
    fn program(subcommand: &str, gate: PassGate) -> io::Result<Opened> {
        let mut command: Command = own_program::command(subcommand);
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        orphans::keep(program.id());
        let ends =
            (program.stdout.take().map(OwnedFd::from), program.stdin.take().map(OwnedFd::from));
        Ok(Opened { ends, gate: Some(gate), program: Some(program) })
    }

    fn peer(directory: &Path) -> io::Result<Opened> {
        let flags = SocketFlags::CLOEXEC;
        let packets = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        connect(&packets, &SocketAddrUnix::new(peer_socket(directory))?)?;
        let ends = (Some(packets.as_fd().try_clone_to_owned()?), Some(packets));
        Ok(Opened { ends, gate: None, program: None })
    }
}
