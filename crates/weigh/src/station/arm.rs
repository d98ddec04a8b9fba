//! One arm: its treatment, and a launcher that is renewed, with all that is made afresh around a sample.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::treatment::{self, Named, PairDraw, Treatment};
use crate::workload::instance::Instance;
use crate::workload::launcher::{self, Job, Launched, Launcher, LauncherError};
use crate::workload::member::{MemberDuring, MemberSeen, Raise};
use crate::workload::place::LaunchPlace;
use crate::workload::setup::Setup;
use crate::workload::setup::kind::enter_root::EnterRoot;
use crate::workload::setup::kind::login_uid::{LOGIN_UID_SEEN, LoginUid};

/// A server that stores what it holds when it ends gets so long for it.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// Where a workload finds the processes that it asks, for their CPU time (workloads/shared/server.c).
const SERVERS: &str = "WEIGH_SERVERS";

/// Why there is no launch, or none that counts.
#[derive(Debug, thiserror::Error)]
pub enum ArmsError {
    #[error(transparent)]
    Treatment(#[from] treatment::TreatmentError),
    #[error(transparent)]
    Launcher(#[from] launcher::LauncherError),
    /// What a sample needs around it did not start, died, or is another: the row has no result.
    #[error("{0}")]
    Fixture(String),
    /// The connection to another machine ended: there is no such pair.
    #[error("{0}")]
    Lost(String),
}

pub struct Arm {
    pub named: Named,
    /// What single workloads need around them, by its label.
    pub servers: BTreeMap<String, Box<dyn Treatment>>,
    /// Those of these that the next launch needs.
    needs: Vec<String>,
    /// Where it is launched, and how its processes differ, but for what is made afresh.
    place: LaunchPlace,
    setup: Setup,
    raised: Option<Raised>,
}

/// A launcher, and the instance of what is around its samples.
struct Raised {
    launcher: Launcher,
    place: LaunchPlace,
    setup: Setup,
    environment: Vec<(String, String)>,
    /// As they were when they were started.
    members: Vec<MemberSeen>,
    /// The processes of those that workloads ask.
    asked: Vec<u32>,
}

impl Arm {
    pub fn new(
        named: Named,
        servers: BTreeMap<String, Box<dyn Treatment>>,
        place: LaunchPlace,
        setup: Setup,
    ) -> Arm {
        Arm { named, servers, needs: Vec::new(), place, setup, raised: None }
    }

    /// What the next launches need around them; what there is without it, or with another, ends.
    pub fn need(&mut self, labels: &[&str]) {
        if self.needs != labels {
            self.needs = labels.iter().map(|label| (*label).to_owned()).collect();
            self.lower();
        }
    }

    /// What the launches of now need around them.
    pub fn needed(&mut self) -> impl Iterator<Item = &mut Box<dyn Treatment>> {
        let Arm { servers, needs, .. } = self;
        servers.iter_mut().filter(|(label, _)| needs.contains(label)).map(|(_, server)| server)
    }

    fn instance(&mut self) -> Result<Instance, ArmsError> {
        let mut instance = self.named.treatment.instance()?;
        if self.needs.is_empty() {
            return Ok(instance);
        }
        if !self.place.is_here() || self.setup.get::<EnterRoot>().is_some() {
            return Err(ArmsError::Fixture(format!(
                "servers run on this system alone, and the processes of `{}` are elsewhere",
                self.named.label
            )));
        }
        for server in self.needed() {
            instance = instance.joined(server.instance()?);
        }
        Ok(instance)
    }

    /// The processes that its workloads ask.
    pub fn asked(&self) -> &[u32] {
        self.raised.as_ref().map_or(&[], |raised| &raised.asked)
    }

    /// Lets its members go on, as far as they live.
    pub fn thaw(&mut self) {
        let never = AtomicBool::new(false);
        if let Some(Raised { launcher, members, .. }) = &mut self.raised {
            for member in members {
                let _ = launcher.thaw(&member.name, &never);
            }
        }
    }

    /// How its processes differ from others.
    pub fn setup(&self) -> &Setup {
        self.raised.as_ref().map_or(&self.setup, |raised| &raised.setup)
    }

    /// Where its processes are launched.
    pub fn place(&self) -> &LaunchPlace {
        self.raised.as_ref().map_or(&self.place, |raised| &raised.place)
    }

    /// From the next launcher on, what its treatment varies is that of this pair.
    ///
    /// # Errors
    /// Where its place is gone, and cannot be had again.
    pub fn vary(&mut self, draw: PairDraw) -> Result<(), ArmsError> {
        self.place = self.named.treatment.vary(self.place.clone(), draw)?;
        Ok(())
    }

    /// What does not answer elsewhere was lost on the way.
    fn of_place(&self, error: ArmsError) -> ArmsError {
        match error {
            ArmsError::Launcher(LauncherError::Broken(problem)) if !self.place.is_here() => {
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
        self.lower();
        let instance = self.instance()?;
        let Instance { setup, members, environment, work_directory } = instance;
        let has_steps = setup != Setup::default();
        let setup = setup.overridden_by(self.setup.clone());
        let mut place = self.place.clone();
        place.work_directory = work_directory.unwrap_or(place.work_directory);
        // What one without an instance can do is refused because of the instance.
        let launcher = place.start_launcher(&setup, interrupted).map_err(|error| match error {
            LauncherError::Refused(problem) if has_steps => ArmsError::Fixture(problem),
            other => self.of_place(other.into()),
        })?;
        let (members_seen, asked) = (Vec::new(), Vec::new());
        let mut raised =
            Raised { launcher, place, setup, environment, members: members_seen, asked };
        let started = members.iter().try_for_each(|member| raised.start(member, interrupted));
        let started = started.and_then(|()| raised.freeze(interrupted));
        self.raised = Some(raised);
        started.inspect_err(|_| self.lower())
    }

    /// Ends the launcher, and before it the members, last first, in good order.
    pub fn lower(&mut self) {
        let Some(mut raised) = self.raised.take() else { return };
        // Also after an interrupt: a server that is just killed may leave something behind.
        let never = AtomicBool::new(false);
        for MemberSeen { name, .. } in raised.members.iter().rev() {
            let _ = raised.launcher.lower(name, ENDS_WITHIN, &never);
        }
    }

    /// Runs a job with its members awake.
    ///
    /// # Errors
    /// Where the launcher fails, or a member is not what was started.
    pub fn run(
        &mut self,
        job: &Job,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<(Launched, Vec<MemberDuring>), ArmsError> {
        if self.raised.is_none() {
            self.renew(interrupted)?;
        }
        let Some(raised) = &mut self.raised else { return Err(gone()) };
        let done = raised.run(job, interrupted);
        done.map_err(|error| self.of_place(error)).inspect_err(|_| self.lower())
    }
}

impl Arm {
    /// Has it run a job without waiting for its end, where it has no members.
    ///
    /// # Errors
    /// Where the launcher fails.
    pub fn begin(&mut self, job: &Job, interrupted: &Arc<AtomicBool>) -> Result<(), ArmsError> {
        if self.raised.is_none() {
            self.renew(interrupted)?;
        }
        let Some(raised) = &mut self.raised else { return Err(gone()) };
        let mut job = job.clone();
        job.environment.extend(raised.environment.iter().cloned());
        Ok(raised.launcher.begin(&job)?)
    }

    /// What became of that job; `None` where it has not ended within this time.
    ///
    /// # Errors
    /// Where the launcher fails.
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
    ///
    /// # Errors
    /// Where the launcher fails, or there are members.
    pub fn run_watched(
        &mut self,
        job: &Job,
        interrupted: &Arc<AtomicBool>,
        meanwhile: &mut dyn FnMut(u32),
    ) -> Result<Launched, ArmsError> {
        self.begin(job, interrupted)?;
        let Some(raised) = &mut self.raised else { return Err(gone()) };
        let ended = match raised.members.is_empty() {
            true => raised.launcher.watch(job, interrupted, meanwhile).map_err(ArmsError::from),
            false => Err(ArmsError::Fixture("it asks a server, which is not looked at".into())),
        };
        ended.inspect_err(|_| self.lower())
    }
}

impl Raised {
    fn start(&mut self, member: &Raise, interrupted: &AtomicBool) -> Result<(), ArmsError> {
        let seen = self.launcher.raise(member, interrupted).map_err(of_member)?;
        if member.is_asked {
            self.asked.push(seen.pid);
        }
        self.members.push(seen);
        Ok(())
    }

    fn freeze(&mut self, interrupted: &AtomicBool) -> Result<(), ArmsError> {
        for MemberSeen { name, .. } in self.members.iter().rev() {
            self.launcher.freeze(name, interrupted).map_err(of_member)?;
        }
        Ok(())
    }

    fn run(
        &mut self,
        job: &Job,
        interrupted: &AtomicBool,
    ) -> Result<(Launched, Vec<MemberDuring>), ArmsError> {
        for MemberSeen { name, .. } in &self.members {
            self.launcher.thaw(name, interrupted).map_err(of_member)?;
        }
        let before = self.look(interrupted)?;
        let mut job = job.clone();
        job.environment.extend(self.environment.iter().cloned());
        if !self.asked.is_empty() {
            let pids: Vec<String> = self.asked.iter().map(u32::to_string).collect();
            job.environment.push((SERVERS.into(), pids.join(":")));
        }
        let launched = self.launcher.run(&job, interrupted)?;
        let after = self.look(interrupted)?;
        self.freeze(interrupted)?;
        let both = before.into_iter().zip(after);
        Ok((launched, both.map(|(before, after)| MemberDuring { before, after }).collect()))
    }

    /// The members now; each is the process that was started, with the login uid of its arm.
    fn look(&mut self, interrupted: &AtomicBool) -> Result<Vec<MemberSeen>, ArmsError> {
        let login_uid = self.setup.get::<LoginUid>().map(|uid| uid.workers.to_string());
        let mut members = Vec::new();
        for started in &self.members {
            let name = &started.name;
            let seen = self.launcher.look(name, interrupted).map_err(of_member)?;
            if (seen.pid, seen.start) != (started.pid, started.start) {
                return Err(ArmsError::Fixture(format!(
                    "`{name}` was restarted during the sample"
                )));
            }
            if login_uid.as_ref().is_some_and(|uid| seen.seen.get(LOGIN_UID_SEEN) != Some(uid)) {
                return Err(ArmsError::Fixture(format!(
                    "`{name}` has the login uid of another arm"
                )));
            }
            members.push(seen);
        }
        Ok(members)
    }
}

fn gone() -> ArmsError {
    ArmsError::Fixture("there is no launcher".into())
}

/// What a launcher refuses of a member is the member's fault.
fn of_member(error: LauncherError) -> ArmsError {
    match error {
        LauncherError::Refused(problem) => ArmsError::Fixture(problem),
        other => other.into(),
    }
}
