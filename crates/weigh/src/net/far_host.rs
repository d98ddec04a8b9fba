//! A black box that is another machine: its agent, held for as long as the experiment lasts.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::peer::{peer_socket, raise_peer};
use super::site_error::SiteError;
use crate::far::{
    Agent, CallFor, Premises, Welcome, carry, dial, interface, new_experiment, relay,
};
use crate::testbed::{BlackBox, Extent, Testbed, TestbedError, TestbedSetup};
use crate::workload::launcher::Launcher;
use crate::workload::setup::Setup;
use weigh_host::lines::{LinesError, PROMPTLY};
use weigh_host::own_program::Helper;
use weigh_model::format;

/// What an agent tells of its machine is cut to so many characters.
const LONGEST_MACHINE: usize = 400;

/// The machines that are black boxes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agents {
    pub active: Agent,
    pub passive: Agent,
}

impl Agents {
    pub fn of(&self, black_box: BlackBox) -> &Agent {
        match black_box {
            BlackBox::Active => &self.active,
            BlackBox::Passive => &self.passive,
        }
    }

    /// The interfaces of this machine that lead to them.
    ///
    /// # Errors
    /// A sentence, where one is on this machine or cannot be reached.
    pub fn interfaces(&self) -> Result<Vec<(BlackBox, String)>, SiteError> {
        let towards = |black_box: BlackBox| -> Result<(BlackBox, String), String> {
            let Agent { address, .. } = self.of(black_box);
            let all = dial::resolve(address)?;
            let found =
                interface::towards(all[0]).map_err(|error| format!("{address}: {error}"))?;
            let name = found.ok_or_else(|| format!("{address}: no interface leads to it"))?;
            match name.as_str() {
                "lo" => Err(format!(
                    "{address} is this machine: the three hosts on one machine are what `weigh net` has \
                     without --active and --passive"
                )),
                _ => Ok((black_box, name)),
            }
        };
        BlackBox::ALL.into_iter().map(towards).collect::<Result<_, _>>().map_err(SiteError::Failed)
    }
}

/// What it has there goes in this order.
pub struct FarHost {
    pub black_box: BlackBox,
    /// What its peer is reached by from here.
    relay: Option<Helper>,
    launcher: Option<Launcher>,
    pub testbed: Testbed,
    /// The experiment lasts as long as this.
    experiment: Helper,
    agent: Agent,
    number: String,
    premises: Premises,
}

impl FarHost {
    /// After an interrupt: an agent that says nothing is waited for once, and not for each connection.
    pub fn let_go(&mut self) {
        if let Some(relay) = &mut self.relay {
            relay.let_go();
        }
        self.launcher.iter_mut().for_each(Launcher::let_go);
        self.testbed.let_go();
        self.experiment.let_go();
    }

    /// Begins an experiment at its agent, and has it lay its side of the links.
    ///
    /// # Errors
    /// Why the agent refuses, or cannot be reached.
    pub fn call(
        agent: &Agent,
        black_box: BlackBox,
        nonce: u64,
        interrupted: &AtomicBool,
    ) -> Result<FarHost, SiteError> {
        let number = new_experiment().map_err(|error| SiteError::Failed(error.to_string()))?;
        let failed = |problem: String| SiteError::Failed(format!("{}: {problem}", agent.address));
        let call = carry::command(agent, &number, CallFor::Experiment);
        let mut experiment = Helper::start(call).map_err(|error| failed(error.to_string()))?;
        let answer = experiment.lines.receive(interrupted, Instant::now() + PROMPTLY);
        let premises = match answer {
            Ok(Welcome::Experiment(premises)) => *premises,
            // It names the agent where that was not reached.
            Ok(Welcome::Refused(problem)) if problem.starts_with(&agent.address) => {
                return Err(SiteError::Failed(problem));
            }
            Ok(Welcome::Refused(problem)) => return Err(failed(problem)),
            Ok(Welcome::Connected) => return Err(failed("it answers something else".into())),
            Err(LinesError::Interrupted) => return Err(SiteError::Interrupted),
            Err(error) => return Err(failed(error.to_string())),
        };
        let extent = Extent::Far { black_box, over: premises.interface.clone() };
        let collect_in = Some(premises.directory.clone());
        let wire_cpus = Vec::new();
        let setup = TestbedSetup { wire_cpus, real_time: true, extent, nonce, collect_in };
        let call = carry::command(agent, &number, CallFor::Testbed);
        let testbed = Testbed::start(call, &setup, interrupted).map_err(|error| match error {
            TestbedError::Interrupted => SiteError::Interrupted,
            other => failed(other.to_string()),
        })?;
        let (relay, launcher, agent) = (None, None, agent.clone());
        Ok(FarHost { black_box, relay, launcher, testbed, experiment, agent, number, premises })
    }

    /// Starts its peer, which a socket of here stands for.
    ///
    /// # Errors
    /// Where it does not start, or is not reached.
    pub fn start_peer(
        &mut self,
        socket: &Path,
        ftp: Option<(&str, &str)>,
        nonce: &str,
        interrupted: &AtomicBool,
    ) -> Result<(), SiteError> {
        let FarHost { agent, number, premises, .. } = self;
        let failed = |problem: String| SiteError::Failed(format!("{}: {problem}", agent.address));
        let Some(host) = self.testbed.ready.host(self.black_box.host()) else {
            return Err(failed("it has no such host".into()));
        };
        let setup = Setup::default().with(host.join.clone());
        let call = carry::command(agent, number, CallFor::Launcher);
        let mut launcher = Launcher::start(call, &setup, interrupted)?;
        let Premises { directory, executable, .. } = &*premises;
        let raise = raise_peer(executable, directory, peer_socket(directory), ftp, nonce);
        launcher.raise(&raise, interrupted)?;
        let relay = Helper::start(relay::command(agent, number, socket));
        let mut relay = relay.map_err(|error| failed(error.to_string()))?;
        let ready: Result<String, _> = relay.lines.receive(interrupted, Instant::now() + PROMPTLY);
        ready.map_err(|error| failed(error.to_string()))?;
        (self.launcher, self.relay) = (Some(launcher), Some(relay));
        Ok(())
    }

    /// What it is, in a sentence.
    pub fn fact(&self) -> String {
        let name = match self.black_box {
            BlackBox::Active => "W_active",
            BlackBox::Passive => "W_passive",
        };
        let machine = format::shorten(&self.premises.machine, LONGEST_MACHINE);
        format!("{name} is another machine, {}: {}.", self.agent.address, machine)
    }

    /// What became of the connection, where something else failed that needs it.
    pub fn lost(&self, problem: &TestbedError) -> SiteError {
        match problem {
            TestbedError::Interrupted => SiteError::Interrupted,
            TestbedError::Failed(problem) => SiteError::Lost(format!(
                "the agent at {} is no longer there, or refuses ({problem}); what was measured until then is \
                 kept, and `weigh net --continue latest` goes on",
                self.agent.address
            )),
        }
    }
}
