//! One arm: its treatment, and a launcher that is renewed, with all that is made afresh around a sample.

mod away_members;
mod denied_calls;
mod held_client;
mod hook_calls;

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use self::away_members::AwayMembers;
use super::client::{ExemptClient, WhoIsTreated};
use super::cpu_shares::CpuShares;
use super::remote_client::AwayClient;
use weigh_treatment::{self as treatment, Named, PairDraw, Treatment};
use weigh_workload::instance::Instance;
use weigh_workload::launcher::{self, Job, Launched, Launcher, LauncherError};
use weigh_workload::member::{MemberDuring, MemberSeen, StartServer};
use weigh_workload::place::LaunchPlace;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::enter_root::EnterRoot;
use weigh_workload::setup::kind::login_uid::{LOGIN_UID_SEEN, LoginUid};
use weigh_workload::setup::kind::private_mount::PrivateMount;

/// A server that stores what it holds when it ends gets so long for it.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// Another process may take the port that was chosen for a server, before the server does.
const TRIES_FOR_A_PORT: u32 = 5;

/// Where a workload finds the processes that it asks, for their CPU time (workloads/shared/server.c).
const SERVERS: &str = "WEIGH_SERVERS";

/// Why there is no launch, or none that counts.
#[derive(Debug, thiserror::Error)]
pub enum ArmsError {
    #[error(transparent)]
    Treatment(#[from] treatment::TreatmentError),
    #[error(transparent)]
    Launcher(#[from] launcher::LauncherError),
    /// Fixture of a sample that did not start, died, or was replaced: the row has no result.
    #[error("{0}")]
    Fixture(String),
    /// The connection to another machine ended: there is no such pair.
    #[error("{0}")]
    Lost(String),
}

pub struct Arm {
    pub named: Named,
    /// Fixtures that single workloads need, by label.
    pub servers: BTreeMap<String, Box<dyn Treatment>>,
    /// Labels of the servers that the next launch needs.
    needs: Vec<String>,
    /// Where it is launched, and how its processes differ, but for what is made afresh.
    place: LaunchPlace,
    setup: Setup,
    exempt: Exempt,
    /// Servers that are not ready by then are given up.
    starts_until: Option<Instant>,
    raised: Option<Raised>,
}

/// Who of an arm with servers is not treated, where and how that is launched.
#[derive(Clone)]
pub struct Exempt {
    pub treated: WhoIsTreated,
    /// Also the arm's own place, unless its treatment has another.
    pub place: LaunchPlace,
    pub setup: Setup,
    /// Where the client is on another machine.
    pub away: Option<Rc<RefCell<AwayClient>>>,
    /// Where the two have CPUs of their own.
    pub shares: Option<CpuShares>,
}

/// Outcome of a launch: its worker, the client that did the worker's work, and the members.
struct LaunchedArm {
    launched: Launched,
    client: Option<Launched>,
    members: Vec<MemberDuring>,
}

/// A launcher, and the instance of what is around its samples.
struct Raised {
    launcher: Launcher,
    /// Launcher of the members, if these are exempt.
    of_members: Option<Launcher>,
    /// Members on the client's machine, with their launcher.
    away: Option<AwayMembers>,
    client: Option<ExemptClient>,
    place: LaunchPlace,
    setup: Setup,
    /// True if the instance has set-up steps of its own.
    has_steps: bool,
    environment: Vec<(String, String)>,
    /// As they were when they were started.
    members: Vec<MemberSeen>,
    /// The processes of those that workloads ask.
    asked: Vec<u32>,
}

impl Arm {
    pub fn new(
        mut named: Named,
        servers: BTreeMap<String, Box<dyn Treatment>>,
        setup: Setup,
        exempt: Exempt,
    ) -> Arm {
        let place = named.launch_place(exempt.place.clone());
        let needs = Vec::new();
        Arm { named, servers, needs, place, setup, exempt, starts_until: None, raised: None }
    }

    /// Gives up servers that are not ready by this moment; `None` leaves them their own time.
    pub fn limit_starts(&mut self, until: Option<Instant>) {
        self.starts_until = until;
    }

    /// Who of its servers and of who asks them has its treatment.
    pub fn treated(&self) -> WhoIsTreated {
        self.exempt.treated
    }

    /// The client, where it is on another machine.
    pub fn away(&self) -> Option<Ref<'_, AwayClient>> {
        self.exempt.away.as_ref().map(|away| away.borrow())
    }

    /// Which CPUs its servers are kept to, and who asks them, where these are not one.
    pub fn shares(&self) -> Option<&CpuShares> {
        self.exempt.shares.as_ref().filter(|_| self.treated() != WhoIsTreated::Both)
    }

    /// With the CPUs of servers, or of who asks them.
    fn kept(&self, setup: Setup, is_of_servers: bool) -> Setup {
        match self.shares() {
            Some(shares) => shares.kept(setup, is_of_servers),
            None => setup,
        }
    }

    /// Sets the servers that the next launches need. Ends the raised instance if it has other
    /// servers.
    pub fn need(&mut self, labels: &[&str]) {
        if self.needs != labels {
            self.needs = labels.iter().map(|label| (*label).to_owned()).collect();
            self.lower();
        }
    }

    /// Returns the servers that the current launches need.
    pub fn needed(&mut self) -> impl Iterator<Item = &mut Box<dyn Treatment>> {
        let Arm { servers, needs, .. } = self;
        servers.iter_mut().filter(|(label, _)| needs.contains(label)).map(|(_, server)| server)
    }

    fn instance(&mut self) -> Result<Instance, ArmsError> {
        let mut instance = self.named.treatment.instance()?;
        if self.treated() == WhoIsTreated::Client && !instance.members.is_empty() {
            return Err(ArmsError::Fixture(format!(
                "`{}` has its own server, which gets the other treatments of this arm too. With --treat \
                 client, remove that server: each workload starts its own",
                self.named.label
            )));
        }
        if !self.needs.is_empty() && !self.place.is_here() {
            return Err(ArmsError::Fixture(format!(
                "servers run only on this machine, but the processes of `{}` run on a different machine",
                self.named.label
            )));
        }
        for server in self.needed() {
            instance = instance.joined(server.instance()?);
        }
        if self.treated() != WhoIsTreated::Client {
            instance = instance.moving_data();
        }
        let is_elsewhere =
            self.treated() != WhoIsTreated::Client && self.setup.get::<EnterRoot>().is_some();
        match instance.is_of_this_system && is_elsewhere {
            false => Ok(instance),
            true => Err(ArmsError::Fixture(format!(
                "`{}` has a different root file system, but a server or library of this one. Remove the \
                 server or library: each workload starts its own from that root (for a background load, use \
                 --beside)",
                self.named.label
            ))),
        }
    }

    /// The processes that its workloads ask.
    pub fn asked(&self) -> &[u32] {
        self.raised.as_ref().map_or(&[], |raised| &raised.asked)
    }

    /// Returns true if the arm has members, which live alongside its worker.
    pub fn has_members(&self) -> bool {
        self.raised.as_ref().is_some_and(|raised| !raised.members.is_empty())
    }

    /// Lets its members go on, as far as they live.
    pub fn thaw(&mut self) {
        let never = AtomicBool::new(false);
        let Some(raised) = &mut self.raised else { return };
        raised.wake();
        for MemberSeen { name, .. } in raised.members.clone() {
            // One that does not answer is not waited for once for each.
            if let Err(LauncherError::Broken(_)) = raised.launcher_of(&name).thaw(&name, &never) {
                break;
            }
        }
    }

    /// How its processes differ from others.
    pub fn setup(&self) -> &Setup {
        self.raised.as_ref().map_or(&self.setup, |raised| &raised.setup)
    }

    /// Without its instance, and without the CPUs of servers and clients.
    pub fn setup_of_treatment(&self) -> &Setup {
        &self.setup
    }

    /// Where its processes are launched.
    pub fn place(&self) -> &LaunchPlace {
        self.raised.as_ref().map_or(&self.place, |raised| &raised.place)
    }

    /// Sets the place of the next launchers to that of this pair.
    pub fn set_place(&mut self, draw: PairDraw) -> Result<(), ArmsError> {
        self.place = self.named.place_for_pair(self.exempt.place.clone(), draw)?;
        Ok(())
    }

    /// Returns true if a process that does not answer may be out of reach on another machine. When
    /// a connection ends, its processes are lost before they are seen to have ended themselves.
    fn may_be_lost(&self) -> bool {
        !self.place.is_here() || self.exempt.away.is_some()
    }

    /// Turns a broken launcher of an arm that may be elsewhere into a lost connection.
    fn of_place(&self, error: ArmsError) -> ArmsError {
        match error {
            ArmsError::Launcher(LauncherError::Broken(problem)) if self.may_be_lost() => {
                ArmsError::Lost(format!("`{}`: {problem}", self.named.label))
            }
            other => other,
        }
    }

    /// Ends what there is, and makes all of it anew: a launcher, the instance, members that stand still.
    ///
    /// # Errors
    /// Where something does not start; then nothing of it is left.
    pub fn renew(&mut self, interrupted: &Arc<AtomicBool>) -> Result<(), ArmsError> {
        self.begin_renewal(interrupted)?;
        self.settle(interrupted)
    }

    /// As [`Arm::renew`], but a launcher without members may still take its set-up: [`Arm::settle`] waits for
    /// that.
    ///
    /// # Errors
    /// As [`Arm::renew`].
    pub fn begin_renewal(&mut self, interrupted: &Arc<AtomicBool>) -> Result<(), ArmsError> {
        let mut tries_left = TRIES_FOR_A_PORT;
        loop {
            self.lower();
            let instance = self.instance()?;
            let members = instance.members.clone();
            let started = self.raise(instance, interrupted);
            let started = started.map_err(|error| self.of_place(error));
            let started = started.inspect_err(|_| self.lower());
            tries_left -= 1;
            if started.is_ok() || tries_left == 0 || !members.iter().any(StartServer::is_kept_out) {
                return started;
            }
        }
    }

    /// Waits until the launcher has taken its set-up.
    ///
    /// # Errors
    /// As [`Arm::renew`].
    pub fn settle(&mut self, interrupted: &AtomicBool) -> Result<(), ArmsError> {
        let Some(raised) = &mut self.raised else { return Ok(()) };
        let has_steps = raised.has_steps;
        let settled = raised.launcher.settle(interrupted);
        settled.map_err(|error| self.of_launcher(error, has_steps)).inspect_err(|_| self.lower())
    }

    /// Blames the instance for a refusal of something that an arm without an instance can do.
    fn of_launcher(&self, error: LauncherError, has_steps: bool) -> ArmsError {
        match error {
            LauncherError::Refused(problem) if has_steps => ArmsError::Fixture(problem),
            other => self.of_place(other.into()),
        }
    }

    /// Has the launcher end without a wait for its end, where it has no members.
    pub fn let_go(&mut self) {
        if let Some(raised) = self.raised.as_mut().filter(|raised| raised.members.is_empty()) {
            raised.launcher.let_go();
        }
    }

    fn raise(
        &mut self,
        instance: Instance,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<(), ArmsError> {
        let Instance { setup, members, environment, work_directory, .. } = instance;
        let has_servers = members.iter().any(|member| member.is_asked);
        // An image is mounted once: exempt servers are not on the file system of their clients.
        let of_servers = setup.clone().without::<PrivateMount>();
        let of_servers = self.kept(of_servers.overridden_by(self.exempt.setup.clone()), true);
        let has_steps = setup != Setup::default();
        let mut setup = setup.overridden_by(self.setup.clone());
        if has_servers {
            setup = self.kept(setup, self.treated() == WhoIsTreated::Server);
        }
        if let Some(root) = setup.get::<EnterRoot>().cloned() {
            let directories = members.iter().map(|member| &*member.directory);
            setup = setup.with(directories.fold(root, EnterRoot::sharing));
        }
        let mut place = self.place.clone();
        place.work_directory = work_directory.unwrap_or(place.work_directory);
        let begun = place.begin_launcher(&setup);
        let mut launcher = begun.map_err(|error| self.of_launcher(error, has_steps))?;
        if !members.is_empty() {
            let settled = launcher.settle(interrupted);
            settled.map_err(|error| self.of_launcher(error, has_steps))?;
        }
        let (mut client, mut of_members) = (None, None);
        match self.exempt.treated {
            WhoIsTreated::Server if has_servers => client = Some(self.client(interrupted)?),
            WhoIsTreated::Client if has_servers => {
                of_members = Some(self.exempt.place.start_launcher(&of_servers, interrupted)?);
            }
            _ => {}
        }
        let away = AwayMembers::start(&members, self.exempt.away.as_deref(), interrupted)?;
        let mut raised = Raised {
            launcher,
            of_members,
            away,
            client,
            place,
            setup,
            has_steps,
            environment,
            members: Vec::new(),
            asked: Vec::new(),
        };
        let left = || Some(self.starts_until?.saturating_duration_since(Instant::now()));
        let started =
            members.iter().try_for_each(|member| raised.start(&member.within(left()), interrupted));
        let started = started.and_then(|()| raised.freeze(interrupted));
        self.raised = Some(raised);
        started
    }

    fn client(&self, interrupted: &AtomicBool) -> Result<ExemptClient, ArmsError> {
        let Exempt { place: here, setup, away, .. } = &self.exempt;
        let setup = self.kept(setup.clone(), false);
        let started = match away {
            None => ExemptClient::start(&here.scratch, here, &setup, interrupted),
            Some(away) => {
                let there = away.borrow_mut().place()?;
                ExemptClient::start(&here.scratch, &there, &AwayClient::setup(), interrupted)
            }
        };
        started.map_err(|error| self.of_place(of_member(error)))
    }

    /// Returns true if the arm's launcher is running, with its members.
    pub fn is_raised(&self) -> bool {
        self.raised.is_some()
    }

    /// Ends the launcher, and before it the members, last first, in good order.
    pub fn lower(&mut self) {
        let Some(mut raised) = self.raised.take() else { return };
        // Also after an interrupt: a server that is just killed may leave something behind.
        let never = AtomicBool::new(false);
        raised.wake();
        for MemberSeen { name, .. } in raised.members.clone().iter().rev() {
            // A launcher that does not answer is ended with all that it has, and not asked for each.
            if let Err(LauncherError::Broken(_)) =
                raised.launcher_of(name).lower(name, ENDS_WITHIN, &never)
            {
                break;
            }
        }
    }

    /// Runs a job with its members awake.
    pub fn run(
        &mut self,
        job: &Job,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<(Launched, Vec<MemberDuring>), ArmsError> {
        if self.raised.is_none() {
            self.renew(interrupted)?;
        }
        self.hold_asking(job)?;
        let Arm { named, servers, needs, raised, .. } = self;
        let Some(raised) = raised else { return Err(gone()) };
        let done = raised.run(job, interrupted, &mut || {
            named.treatment.query_servers()?;
            let mut needed = servers.iter_mut().filter(|(label, _)| needs.contains(label));
            needed.try_for_each(|(_, server)| Ok(server.query_servers()?))
        });
        let done = done.map_err(|error| self.of_place(error)).inspect_err(|_| self.lower())?;
        self.hold_client(job, &done)?;
        let launched = match &done.client {
            // Whoever only hands the work over uses nothing for it.
            Some(client) => Launched {
                peak_memory_bytes: client.peak_memory_bytes,
                block_input_bytes: client.block_input_bytes,
                block_output_bytes: client.block_output_bytes,
                kills: done.launched.kills.with(&client.kills),
                ..done.launched
            },
            None => done.launched,
        };
        Ok((launched, done.members))
    }
}

impl Arm {
    /// Has it run a job without waiting for its end, where it has no members.
    ///
    /// # Errors
    /// Where the launcher fails, or there are members: they would stand still.
    pub fn begin(&mut self, job: &Job, interrupted: &Arc<AtomicBool>) -> Result<(), ArmsError> {
        if self.raised.is_none() {
            self.renew(interrupted)?;
        }
        self.hold_asking(job)?;
        let Some(raised) = &mut self.raised else { return Err(gone()) };
        if !raised.members.is_empty() {
            return Err(ArmsError::Fixture(
                "its servers would be stopped during the launch".into(),
            ));
        }
        let mut job = job.clone();
        job.environment.extend(raised.environment.iter().cloned());
        Ok(raised.launcher.begin(&job)?)
    }

    /// Waits up to `time` for the job to end; `None` if it has not ended by then.
    pub fn end_within(
        &mut self,
        time: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Option<Launched>, ArmsError> {
        let Some(raised) = &mut self.raised else { return Err(gone()) };
        Ok(raised.launcher.end_within(time, interrupted)?)
    }
}

impl Arm {
    /// Runs a job to its end, and lets `meanwhile` look again and again.
    pub fn run_watched(
        &mut self,
        job: &Job,
        interrupted: &Arc<AtomicBool>,
        meanwhile: &mut dyn FnMut(u32),
    ) -> Result<Launched, ArmsError> {
        self.begin(job, interrupted).inspect_err(|_| self.lower())?;
        let Some(raised) = &mut self.raised else { return Err(gone()) };
        let ended = raised.launcher.watch(job, interrupted, meanwhile);
        ended.map_err(ArmsError::from).inspect_err(|_| self.lower())
    }
}

impl Raised {
    fn launcher_of(&mut self, member: &str) -> &mut Launcher {
        match &mut self.away {
            Some(away) if away.has(member) => &mut away.launcher,
            _ => self.of_members.as_mut().unwrap_or(&mut self.launcher),
        }
    }

    /// Lets the launchers of the members go on where somebody stopped them.
    fn wake(&mut self) {
        self.of_members.as_ref().unwrap_or(&self.launcher).wake();
        if let Some(away) = &self.away {
            away.launcher.wake();
        }
    }

    fn start(&mut self, member: &StartServer, interrupted: &AtomicBool) -> Result<(), ArmsError> {
        let placed = self.away.as_ref().filter(|_| member.is_away).map(|away| away.placed(member));
        let member = placed.as_ref().unwrap_or(member);
        let seen = self.launcher_of(&member.name).raise(member, interrupted).map_err(of_member)?;
        if member.is_asked {
            self.asked.push(seen.pid);
        }
        self.members.push(seen);
        Ok(())
    }

    fn freeze(&mut self, interrupted: &AtomicBool) -> Result<(), ArmsError> {
        for MemberSeen { name, .. } in self.members.clone().iter().rev() {
            self.launcher_of(name).freeze(name, interrupted).map_err(of_member)?;
        }
        Ok(())
    }

    fn run(
        &mut self,
        job: &Job,
        interrupted: &AtomicBool,
        query_servers: &mut dyn FnMut() -> Result<(), ArmsError>,
    ) -> Result<LaunchedArm, ArmsError> {
        for MemberSeen { name, .. } in self.members.clone() {
            self.launcher_of(&name).thaw(&name, interrupted).map_err(of_member)?;
        }
        let before = self.look(interrupted)?;
        let mut job = job.clone();
        job.environment.extend(self.environment.iter().cloned());
        // On another machine these numbers are those of others.
        if !self.asked.is_empty() && self.client.as_ref().is_none_or(ExemptClient::is_here) {
            let pids: Vec<String> = self.asked.iter().map(u32::to_string).collect();
            job.environment.push((SERVERS.into(), pids.join(":")));
        }
        let is_ours = |word: &String| self.place.executable.path().as_os_str() == word.as_str();
        let (launched, client) = match &mut self.client {
            Some(client) if job.argv.first().is_some_and(is_ours) => {
                client.run(&mut self.launcher, &job, interrupted)?
            }
            _ => (self.launcher.run(&job, interrupted)?, None),
        };
        let after = self.look(interrupted)?;
        if launched.exit_code == Some(0) {
            query_servers()?;
        }
        self.freeze(interrupted)?;
        let is_away = |name: &str| self.away.as_ref().is_some_and(|away| away.has(name));
        let both = before.into_iter().zip(after);
        let during = both.map(|(before, after)| {
            let is_away = is_away(&after.name);
            MemberDuring { before, after, is_away }
        });
        let members = during.collect();
        Ok(LaunchedArm { launched, client, members })
    }

    /// The members now; each is the process that was started, with the login uid of its arm.
    fn look(&mut self, interrupted: &AtomicBool) -> Result<Vec<MemberSeen>, ArmsError> {
        let login_uid = self.setup.get::<LoginUid>().map(|uid| uid.workers.to_string());
        let login_uid = login_uid.filter(|_| self.of_members.is_none());
        let mut members = Vec::new();
        for started in self.members.clone() {
            let name = &started.name;
            let seen = self.launcher_of(name).look(name, interrupted).map_err(of_member)?;
            if (seen.pid, seen.start) != (started.pid, started.start) {
                return Err(ArmsError::Fixture(format!(
                    "`{name}` was restarted during the sample"
                )));
            }
            if let Some(away) = self.away.as_ref().filter(|away| away.has(name)) {
                away.hold_place(&seen).map_err(of_member)?;
            } else if login_uid
                .as_ref()
                .is_some_and(|uid| seen.seen.get(LOGIN_UID_SEEN) != Some(uid))
            {
                return Err(ArmsError::Fixture(format!(
                    "`{name}` has the login uid of a different arm"
                )));
            }
            members.push(seen);
        }
        Ok(members)
    }
}

fn gone() -> ArmsError {
    ArmsError::Fixture("the arm has no launcher".into())
}

/// Turns a launcher's refusal of a member into a fault of that member.
fn of_member(error: LauncherError) -> ArmsError {
    match error {
        LauncherError::Refused(problem) => ArmsError::Fixture(problem),
        other => other.into(),
    }
}
