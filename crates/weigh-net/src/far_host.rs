//! A black box that is another machine, reached by ssh for as long as the experiment lasts.

use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::peer::{peer_socket, raise_peer};
use super::site_error::SiteError;
use weigh_host::lines::PROMPTLY;
use weigh_model::printable::brief;
use weigh_model::{described, format};
use weigh_testbed::own_address::{interface_of, own_address_towards};
use weigh_testbed::{self as testbed, BlackBox, Extent, Testbed, TestbedError, TestbedSetup};
use weigh_treatment::remote::Ssh;
use weigh_treatment::remote::connection::Connection;
use weigh_workload::launcher::Launcher;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::whereabouts::Whereabouts;

/// Longest description of another machine, in characters; the rest is cut off.
const LONGEST_MACHINE: usize = 400;
/// Real-time priority of ssh: below the wires, above W_test's processes, so begin messages go out at once.
const PRIORITY: i32 = 40;
/// Version 0, with the size of `peer_request` in `workloads/driver/comm.h`.
const INVALID_REQUEST: [u8; 128] = [0; 128];
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The machines that are black boxes, as `USER@HOST` and what may be behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FarHosts {
    pub active: String,
    pub passive: String,
}

impl FarHosts {
    /// Reads what the user wrote; paths become absolute.
    pub fn read(active: &str, passive: &str) -> Result<FarHosts, String> {
        let stored = |black_box, text: &str| {
            let form = form(black_box);
            Ssh::stored(text, form, &[]).map_err(|problem| format!("{form}: {problem}"))
        };
        let (active, passive) =
            (stored(BlackBox::Active, active)?, stored(BlackBox::Passive, passive)?);
        Ok(FarHosts { active, passive })
    }

    fn ssh(&self, black_box: BlackBox) -> Result<Ssh, String> {
        let text = match black_box {
            BlackBox::Active => &self.active,
            BlackBox::Passive => &self.passive,
        };
        let form = form(black_box);
        let read = Ssh::read(text, form, &[]);
        read.map(|(ssh, _)| ssh).map_err(|problem| format!("{form}: {problem}"))
    }
}

/// The option as the user writes it.
fn form(black_box: BlackBox) -> &'static str {
    match black_box {
        BlackBox::Active => "--active USER@HOST",
        BlackBox::Passive => "--passive USER@HOST",
    }
}

/// A black box on another machine. The order of the fields is the order in which they are dropped.
pub struct FarHost {
    pub black_box: BlackBox,
    launcher: Option<Launcher>,
    pub testbed: Testbed,
    /// The interface of this machine that leads there.
    pub interface: String,
    /// Address of that machine, as ssh reached it.
    pub address: IpAddr,
    connection: Connection,
    /// Why ssh runs without real-time priority; `None` where it has that.
    not_real_time: Option<String>,
    destination: String,
}

impl FarHost {
    /// Call after an interrupt: `weigh` then waits once for a silent machine, not once per process there.
    pub fn let_go(&mut self) {
        self.launcher.iter_mut().for_each(Launcher::let_go);
        self.testbed.let_go();
        self.connection.let_go();
    }

    /// Connects and starts the machine's part of the testbed. `scratch` is a private local directory.
    pub fn connect(
        hosts: &FarHosts,
        black_box: BlackBox,
        nonce: u64,
        scratch: &Path,
        interrupted: &AtomicBool,
    ) -> Result<FarHost, SiteError> {
        if !geteuid().is_root() {
            return Err(SiteError::Failed(
                "--active and --passive need root, on this machine and for the ssh login".into(),
            ));
        }
        let ssh = hosts.ssh(black_box).map_err(SiteError::Failed)?;
        let destination = ssh.destination.clone();
        let failed = |problem: String| SiteError::Failed(format!("{destination}: {problem}"));
        let socket = scratch.join(match black_box {
            BlackBox::Active => "ssh-active",
            BlackBox::Passive => "ssh-passive",
        });
        let connection = Connection::open(&ssh, &socket, interrupted)?;
        // Without it a busy CPU delays the begin of a cell.
        let real_time = wire::make_real_time(connection.pid(), PRIORITY);
        let not_real_time = real_time.err().map(|error| error.to_string());
        let [here, there] = addresses(&connection).map_err(failed)?;
        let interface = interface_between(here, there).map_err(failed)?;
        let setup = TestbedSetup {
            wire_cpus: Vec::new(),
            real_time: true,
            extent: Extent::Far { black_box, at: there },
            nonce,
            collect_in: Some(connection.place.scratch.clone()),
        };
        let helper = connection.start_role(testbed::SUBCOMMAND);
        let helper = helper.map_err(|error| failed(error.to_string()))?;
        let testbed = Testbed::over(helper, &setup, interrupted).map_err(|error| match error {
            TestbedError::Interrupted => SiteError::Interrupted,
            TestbedError::Refused(problem) if problem.contains("not permitted") => {
                failed(format!("the testbed: {problem}. The ssh login must be root"))
            }
            other => failed(other.to_string()),
        })?;
        Ok(FarHost {
            black_box,
            launcher: None,
            testbed,
            interface,
            address: there,
            connection,
            not_real_time,
            destination,
        })
    }

    /// Starts the peer there, and has ssh forward the local Unix socket `socket` to the peer.
    pub fn start_peer(
        &mut self,
        socket: &Path,
        ftp: Option<(&str, &str)>,
        nonce: &str,
        interrupted: &AtomicBool,
    ) -> Result<(), SiteError> {
        let failed =
            |problem: String| SiteError::Failed(format!("{}: {problem}", self.destination));
        let Some(host) = self.testbed.ready.host(self.black_box.host()) else {
            return Err(failed("its testbed lacks this black box".into()));
        };
        let setup = Setup::default().with(host.join.clone());
        let place = &self.connection.place;
        let mut launcher = place.start_launcher(&setup, interrupted)?;
        let there = peer_socket(&place.scratch);
        let executable = place.executable.path();
        launcher.raise(
            &raise_peer(executable, &place.scratch, there.clone(), ftp, nonce),
            interrupted,
        )?;
        self.connection.forward(socket, &there, interrupted)?;
        check_answer(socket, interrupted).map_err(|error| {
            match error.kind() {
            ErrorKind::Interrupted => SiteError::Interrupted,
            // sshd closes a connection that it forbids.
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => failed(
                "its sshd does not forward Unix sockets: set `AllowStreamLocalForwarding yes` (the \
                 default) in its sshd_config, and use a key without `restrict`"
                    .into(),
            ),
            _ => failed(format!("its peer does not answer: {error}")),
        }
        })?;
        self.launcher = Some(launcher);
        Ok(())
    }

    pub fn fact(&self) -> String {
        let name = match self.black_box {
            BlackBox::Active => "W_active",
            BlackBox::Passive => "W_passive",
        };
        let machine = described::line(&self.connection.arrival.machine);
        let machine = format::shorten(&machine, LONGEST_MACHINE);
        let late = self.not_real_time.as_ref().map(|why| {
            format!(" ssh to it runs without real-time priority ({why}), so cells may begin late.")
        });
        format!(
            "{name} is a different machine, {}: {machine}.{}",
            self.destination,
            late.unwrap_or_default()
        )
    }

    pub fn check(&mut self, interrupted: &AtomicBool) -> Result<(), SiteError> {
        let answer = self.testbed.counters(self.black_box, interrupted);
        answer.map(drop).map_err(|error| self.failed(error))
    }

    /// Why its testbed did not do something.
    pub fn failed(&self, error: TestbedError) -> SiteError {
        match error {
            TestbedError::Interrupted => SiteError::Interrupted,
            TestbedError::Refused(problem) => {
                SiteError::Failed(format!("{}: the testbed: {problem}", self.destination))
            }
            TestbedError::Failed(problem) => SiteError::Lost(format!(
                "the connection to {} was lost ({problem}). The results so far are stored: resume with \
                 `weigh net --continue latest`",
                self.destination
            )),
        }
    }
}

/// Addresses of the connection: this machine's, then the other machine's.
fn addresses(connection: &Connection) -> Result<[IpAddr; 2], String> {
    let word = &connection.arrival.whereabouts;
    let found = Whereabouts::addresses(word).ok_or("its SSH_CONNECTION has no addresses")?;
    let [here, there] = found.map(|address| address.parse::<IpAddr>());
    match (here, there) {
        (Ok(here), Ok(there)) => Ok([here.to_canonical(), there.to_canonical()]),
        _ => Err(format!("its SSH_CONNECTION has invalid addresses: {}", brief(&found.join(" ")))),
    }
}

/// The interface of this machine between these two. Both addresses are what the other machine says, so the
/// kernel's own way to it has to be the same.
fn interface_between(here: IpAddr, there: IpAddr) -> Result<String, String> {
    let system = |error: std::io::Error| error.to_string();
    let found = interface_of(here).map_err(system)?;
    let name = found.ok_or_else(|| {
        format!(
            "it sees this machine as {here}, but no interface here has this address (NAT?): all machines \
             must be on one Ethernet network"
        )
    })?;
    let own = own_address_towards(there).map_err(system)?;
    if name == "lo" || here == there || interface_of(there).map_err(system)?.is_some() {
        return Err(
            "it is this machine: omit --active and --passive to run all three hosts here".into()
        );
    }
    match own == here {
        true => Ok(name),
        false => Err(format!(
            "it sees this machine as {here}, but the route to its address {there} starts at {own}"
        )),
    }
}

/// Checks that the peer answers: it replies to an invalid request with an error message.
fn check_answer(socket: &Path, interrupted: &AtomicBool) -> std::io::Result<()> {
    let mut peer = UnixStream::connect(socket)?;
    peer.set_read_timeout(Some(LOOK_AGAIN))?;
    peer.write_all(&INVALID_REQUEST)?;
    let deadline = Instant::now() + PROMPTLY;
    loop {
        match peer.read(&mut [0]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(()),
            Err(_) if interrupted.load(Ordering::Relaxed) => {
                return Err(ErrorKind::Interrupted.into());
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
                    && Instant::now() < deadline => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_this_one_or_sees_it_by_another_address_is_refused() {
        let refused = |here: &str, there: &str| {
            interface_between(here.parse().unwrap(), there.parse().unwrap()).unwrap_err()
        };
        assert!(refused("127.0.0.1", "127.0.0.1").contains("it is this machine"));
        assert!(refused("127.0.0.1", "127.0.0.2").contains("it is this machine"));
        assert!(refused("192.0.2.1", "192.0.2.2").contains("sees this machine as 192.0.2.1"));
    }
}
