//! The arms of an experiment: their treatments in force, and a launcher for each. The life of a treatment,
//! from `prepare` to `restore`, is here and nowhere else.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

pub use super::arm::ArmsError;
use super::arm::{Arm, Exempt};
use super::client::WhoIsTreated;
use super::cpu_shares::CpuShares;
use super::remote_client::{AwayClient, ClientLabel};
use weigh_fixture::is_server;
use weigh_host::lines::{LinesError, PROMPTLY};
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::ids::ArmId;
use weigh_treatment::{
    ApplyContext, Launch, Named, PairDraw, Role, Treatment, TreatmentError, asked_of_servers,
    on_demand,
};
use weigh_workload::launcher::{Job, Launched, LauncherError};
use weigh_workload::member::MemberDuring;
use weigh_workload::place::LaunchPlace;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::denied_calls::Found;
use weigh_workload::setup::kind::enter_root::EnterRoot;

/// Treatments in force, each in an arm of its own, until [`Arms::lower`] or the guard takes them back.
pub struct Arms<'a> {
    pub context: ApplyContext<'a>,
    arms: Vec<Arm>,
}

/// Where an arm is launched whose treatment says nothing of it. Two builds of the workloads would be one more
/// difference between arms: where one takes the static one alone, all on the same machine do.
fn common_place(here: &LaunchPlace, treatments: &mut [Named]) -> LaunchPlace {
    let mut places = treatments.iter_mut().map(|named| named.launch_place(here.clone()));
    let is_static =
        |place: &LaunchPlace| place.executable.is_static && place.scratch == here.scratch;
    places.find(is_static).map_or_else(
        || here.clone(),
        |place| LaunchPlace { executable: place.executable, ..here.clone() },
    )
}

fn servers_of_arm(
    labels: &BTreeSet<String>,
    arm: &str,
    context: &ApplyContext,
    guard: &mut Guard,
) -> Result<BTreeMap<String, Box<dyn Treatment>>, ArmsError> {
    let mut servers = BTreeMap::new();
    for label in labels {
        let mut server = on_demand(label, arm).map_err(ArmsError::Fixture)?;
        server.prepare(context, guard)?;
        servers.insert(label.clone(), server);
    }
    Ok(servers)
}

/// Note on workloads that send requests to servers of their own.
const WARM: &str = "Samples with these servers start warm (with --good-answers: cold): each sample gets a \
                    new server, and the workload sends requests before it is timed. Passes of --for and \
                    --capacity start with the servers as the pass before left them; the first pass starts \
                    cold.";

/// Time to wait for one of two simultaneous launches before looking at the other. Also how long a
/// launch may go on after its partner failed.
const LOOK_AT_OTHER: Duration = Duration::from_millis(20);
const LEFT_ALONE_FOR: Duration = Duration::from_secs(2);

/// Servers that single workloads need, and who asks them.
#[derive(Default)]
pub struct Serving {
    /// The labels of their fixtures, in all arms.
    pub labels: BTreeSet<String>,
    pub treated: WhoIsTreated,
    /// Where the client is on another machine.
    pub client: Option<ClientLabel>,
}

/// Why there are no two launches: because of that one.
#[derive(Debug)]
pub struct LaunchOfPairError {
    pub position: usize,
    pub error: ArmsError,
}

/// A launch whose arm's treatment proved that it was in force.
pub struct Proved {
    pub launched: Launched,
    pub evidence: Evidence,
}

impl<'a> Arms<'a> {
    /// Applies the treatments, the first one's first, and starts a launcher for every arm. `announce` is told
    /// what a person should know before the system is changed. For the servers see [`Arms::need`].
    ///
    /// # Errors
    /// Where a treatment cannot be applied; what was applied is the guard's to undo.
    pub fn raise(
        mut context: ApplyContext<'a>,
        mut treatments: Vec<Named>,
        serving: &Serving,
        guard: &mut Guard,
        announce: &mut dyn FnMut(&str),
    ) -> Result<Arms<'a>, ArmsError> {
        let labels = treatments.iter().map(|named| &*named.label);
        context.circumstances.asked_of_servers = labels.filter_map(asked_of_servers).collect();
        let away = match &serving.client {
            None => None,
            Some(label) => {
                announce(&label.takes_time());
                let client = AwayClient::connect(label, &context)?;
                context.circumstances.away = Some(client.addresses());
                Some(Rc::new(RefCell::new(client)))
            }
        };
        let takes_time = treatments.iter().filter_map(|named| named.treatment.takes_time());
        // All before the first begins: then the sum is known.
        takes_time.collect::<BTreeSet<_>>().iter().for_each(|sentence| announce(sentence));
        for named in &mut treatments {
            for sentence in named.treatment.prepare(&context, guard)? {
                announce(&sentence);
            }
        }
        for named in &mut treatments {
            named.treatment.apply(&context, guard)?;
        }
        let setups: Vec<Setup> = (0..treatments.len())
            .map(|own| {
                let others = treatments.iter().enumerate().filter(|(index, _)| *index != own);
                let others = others.fold(context.surroundings.clone(), |setup, (_, other)| {
                    setup.overridden_by(other.treatment.setup(false))
                });
                others.overridden_by(treatments[own].treatment.setup(true))
            })
            .collect();
        let here = common_place(context.place, &mut treatments);
        let nothing = treatments.iter().fold(context.surroundings.clone(), |setup, named| {
            setup.overridden_by(named.treatment.setup(false))
        });
        let treated = serving.treated;
        let shares = CpuShares::here(&setups).filter(|_| away.is_none());
        let exempt = Exempt { treated, place: here, setup: nothing, away, shares };
        let mut arms = Vec::new();
        for (named, setup) in treatments.into_iter().zip(setups) {
            let root = setup.get::<EnterRoot>().cloned();
            context.circumstances.root_of_servers =
                root.clone().filter(|_| treated != WhoIsTreated::Client);
            context.circumstances.root_of_workers = root;
            let servers = servers_of_arm(&serving.labels, &named.label, &context, guard)?;
            let exempt = exempt.clone();
            let mut arm = Arm::new(named, servers, setup, exempt);
            arm.renew(context.interrupted)?;
            arms.push(arm);
        }
        Ok(Arms { context, arms })
    }

    /// Sets the fixtures that the next launches in an arm need, chosen from the fixtures of
    /// [`Arms::raise`].
    pub fn need(&mut self, arm: ArmId, labels: &[&str]) {
        self.arms[arm].need(labels);
    }

    /// From now on servers that are not ready by this moment are given up; `None` leaves them their own time.
    pub fn limit_starts(&mut self, until: Option<Instant>) {
        self.arms.iter_mut().for_each(|arm| arm.limit_starts(until));
    }

    /// The processes that workloads of an arm ask.
    pub fn asked(&self, arm: ArmId) -> &[u32] {
        self.arms[arm].asked()
    }

    /// Returns true if the launcher of an arm is running, with its members. A failure removes the
    /// launcher, and the next launch starts a new one.
    pub fn is_raised(&self, arm: ArmId) -> bool {
        self.arms[arm].is_raised()
    }

    /// Raises an arm that is not raised, so that [`Arms::place`] has the work directory of its instance.
    ///
    /// # Errors
    /// As [`Arms::renew`].
    pub fn raise_arm(&mut self, arm: ArmId) -> Result<(), ArmsError> {
        match self.arms[arm].is_raised() {
            true => Ok(()),
            false => self.arms[arm].renew(self.context.interrupted),
        }
    }

    /// Returns true if processes of an arm live alongside its worker.
    pub fn has_members(&self, arm: ArmId) -> bool {
        self.arms[arm].has_members()
    }

    /// Lets the members of an arm go on.
    pub fn thaw(&mut self, arm: ArmId) {
        self.arms[arm].thaw();
    }

    /// Returns the facts that the servers started in an arm report about themselves.
    pub fn server_facts(&self, arm: ArmId) -> Vec<String> {
        let servers = &self.arms[arm].servers;
        let facts = servers.iter().map(|(label, server)| (label, server.facts()));
        let known = facts.filter(|(_, facts)| !facts.is_empty());
        let told = known.map(|(label, facts)| format!("`{label}`: {}", facts.join(" ")));
        let who = match self.arms[arm].away() {
            Some(client) => Some(client.fact()),
            None => self.arms[arm].treated().sentence().map(str::to_owned),
        };
        let is_of_interest = self.count() > 1 || self.arms[arm].away().is_some();
        let is_asked = servers.keys().any(|label| is_server(label));
        let is_away = self.arms[arm].has_away_activity();
        let who = who.filter(|_| is_of_interest && (is_asked || is_away));
        let shares = self.arms[arm].shares().filter(|_| who.is_some()).map(CpuShares::sentence);
        let warm = is_asked.then(|| WARM.to_owned());
        told.chain(who).chain(shares).chain(warm).collect()
    }

    /// Their treatments, in order.
    pub fn treatments(&self) -> impl Iterator<Item = &Named> {
        self.arms.iter().map(|arm| &arm.named)
    }

    /// Returns true if a launch in an arm that gave this evidence made nothing that outlasts it.
    pub fn left_no_async_work(&self, arm: ArmId, evidence: &Evidence) -> bool {
        self.arms[arm].named.treatment.left_no_async_work(evidence)
    }

    pub fn label(&self, arm: ArmId) -> &str {
        &self.arms[arm].named.label
    }

    /// How the processes of an arm differ from others.
    pub fn setup(&self, arm: ArmId) -> &Setup {
        self.arms[arm].setup()
    }

    /// The part of [`Arms::setup`] that is the arm's treatment.
    pub fn setup_of_treatment(&self, arm: ArmId) -> &Setup {
        self.arms[arm].setup_of_treatment()
    }

    /// Where an arm's processes are launched.
    pub fn place(&self, arm: ArmId) -> &LaunchPlace {
        self.arms[arm].place()
    }

    pub fn ids(&self) -> impl Iterator<Item = ArmId> + use<> {
        (0..self.count()).map(ArmId)
    }

    pub fn count(&self) -> usize {
        self.arms.len()
    }

    /// Launches a job in an arm, for a pair with the treated one. All treatments are told before and asked
    /// after, not only those of the pair: each has a say in what the other arms are.
    pub fn launch(
        &mut self,
        arm: ArmId,
        treated_arm: ArmId,
        job: &Job,
    ) -> Result<Proved, ArmsError> {
        self.begin_sample(arm, treated_arm)?;
        let (launched, members) = self.arms[arm].run(job, self.context.interrupted)?;
        self.prove(arm, launched, &members)
    }

    /// Launches a job while `meanwhile` is called repeatedly with the launcher's process number. It
    /// is for callers that watch the processes of a launch from outside.
    ///
    /// # Errors
    /// As [`Arms::launch`]; also if there are members, which would stand still.
    pub fn launch_watched(
        &mut self,
        arm: ArmId,
        treated_arm: ArmId,
        job: &Job,
        meanwhile: &mut dyn FnMut(u32),
    ) -> Result<Proved, ArmsError> {
        self.begin_sample(arm, treated_arm)?;
        let launched = self.arms[arm].run_watched(job, self.context.interrupted, meanwhile);
        self.prove(arm, launched?, &[])
    }

    /// Announces the next launch to the treatments, whose changes the guard watches.
    fn begin_sample(&mut self, arm: ArmId, treated_arm: ArmId) -> Result<(), ArmsError> {
        let guarded = self.context.running.check_undoing();
        guarded.map_err(|error| TreatmentError::Unavailable(error.to_string()))?;
        // What the others do is over before the launched arm begins: two agents may share a port.
        let others = (0..self.arms.len()).map(ArmId).filter(|index| *index != arm);
        let order: Vec<ArmId> = others.chain([arm]).collect();
        for index in &order {
            self.arms[*index].named.treatment.take_turn(Role::of(*index, arm, treated_arm))?;
        }
        for index in &order {
            self.arms[*index].named.treatment.begin_sample(Role::of(*index, arm, treated_arm))?;
        }
        Ok(())
    }

    /// Asks all treatments about a launch in an arm that is over.
    pub fn prove(
        &mut self,
        arm: ArmId,
        launched: Launched,
        members: &[MemberDuring],
    ) -> Result<Proved, ArmsError> {
        let mut evidence = Evidence::default();
        let setup = self.arms[arm].setup().clone();
        // The launched arm ends its agent before others prove that theirs does not work.
        let others = (0..self.arms.len()).map(ArmId).filter(|index| *index != arm);
        for index in std::iter::once(arm).chain(others) {
            let (is_treated, one) = (index == arm, &mut self.arms[index]);
            let (setup, launched) = (&setup, &launched);
            // Exempt servers are none of its processes.
            let of_arm = if one.treated() == WhoIsTreated::Client { &[][..] } else { members };
            let launch = Launch { is_treated, setup, launched, members: of_arm };
            let found = one.named.treatment.verify_sample(&launch)?;
            if is_treated {
                evidence = found;
                for server in one.needed() {
                    server.verify_sample(&Launch { members, ..launch }).map_err(of_row)?;
                }
            }
        }
        Ok(Proved { launched, evidence })
    }

    /// Launches a job in each of two arms that live at the same time, each to be proved afterwards; in the
    /// order of `arms`. Where one fails, the other may be missing: if it takes turns with the failed one, it
    /// is ended if it does not end by itself. Commands that met at a gate do not wait for each other.
    ///
    /// # Errors
    /// Of the launch at that position.
    pub fn launch_both(
        &mut self,
        arms: [ArmId; 2],
        treated_arm: ArmId,
        jobs: &[Job; 2],
    ) -> Result<[Option<Launched>; 2], LaunchOfPairError> {
        for (index, one) in self.arms.iter_mut().enumerate() {
            let roles = arms.map(|arm| Role::of(ArmId(index), arm, treated_arm));
            let begun = one.named.treatment.begin_pair(roles);
            begun.map_err(|error| LaunchOfPairError { position: 0, error: error.into() })?;
        }
        for (position, arm) in arms.into_iter().enumerate() {
            let begun = self.arms[arm].begin(&jobs[position], self.context.interrupted);
            if let Err(error) = begun {
                arms.into_iter().for_each(|arm| self.arms[arm].lower());
                return Err(LaunchOfPairError { position, error });
            }
        }
        let mut launched = [None, None];
        let mut give_up = None;
        let has_gate = |job: &Job| job.start.as_ref().is_some_and(|start| start.gate.is_some());
        let take_turns = !jobs.iter().any(has_gate);
        // Each launcher ends what lasts longer than it may; one that was stopped does not.
        let longest_ms = jobs.iter().map(|job| job.timeout_ms).max().unwrap_or_default();
        let deadline = Instant::now() + Duration::from_millis(longest_ms) + PROMPTLY;
        while launched.iter().any(Option::is_none) {
            for (position, arm) in arms.into_iter().enumerate() {
                if launched[position].is_some() {
                    continue;
                }
                let ended = self.arms[arm].end_within(LOOK_AT_OTHER, self.context.interrupted);
                launched[position] = ended.map_err(|error| {
                    arms.into_iter().for_each(|arm| self.arms[arm].lower());
                    LaunchOfPairError { position, error }
                })?;
            }
            if let Some(position) = launched.iter().position(Option::is_none)
                && Instant::now() > deadline
            {
                arms.into_iter().for_each(|arm| self.arms[arm].lower());
                let error = LauncherError::from(LinesError::TimedOut).into();
                return Err(LaunchOfPairError { position, error });
            }
            let has_failed = |one: &Launched| take_turns && one.exit_code != Some(0);
            if give_up.is_none() && launched.iter().flatten().any(has_failed) {
                give_up = Some(Instant::now() + LEFT_ALONE_FOR);
            }
            if give_up.is_some_and(|time| Instant::now() > time) {
                let missing = arms.into_iter().zip(&launched).filter(|(_, one)| one.is_none());
                missing.for_each(|(arm, _)| self.arms[arm].lower());
                break;
            }
        }
        Ok(launched)
    }

    /// Returns true if a filter of an arm denies any system call.
    pub fn has_denying_filter(&self, arm: ArmId) -> bool {
        self.arms[arm].denying_filter().is_some()
    }

    /// Launches a job once to find the calls that the filter of an arm denies. The launch gives no sample.
    ///
    /// # Errors
    /// Where somebody interrupts.
    pub fn denied_calls(&mut self, arm: ArmId, job: &Job) -> Result<Option<Found>, ArmsError> {
        self.arms[arm].denied_calls(job, self.context.interrupted)
    }

    /// Returns true if an arm is to count the calls of SELinux's functions.
    pub fn counts_hooks(&self, arm: ArmId) -> bool {
        self.arms[arm].counts_hooks()
    }

    /// Launches jobs that give no sample, to count the calls of SELinux's functions in an arm.
    ///
    /// # Errors
    /// Where somebody interrupts.
    pub fn hook_calls(
        &mut self,
        arm: ArmId,
        jobs: &[Job; 2],
    ) -> Result<Result<[Launched; 2], String>, ArmsError> {
        self.arms[arm].hook_calls(jobs, self.context.interrupted)
    }

    /// Launches a job without any proof, for callers that meanwhile change a treatment's settings.
    /// The launch gives no sample.
    pub fn launch_unproved(&mut self, arm: ArmId, job: &Job) -> Result<Launched, ArmsError> {
        Ok(self.arms[arm].run(job, self.context.interrupted)?.0)
    }

    /// A new launcher, with what is made afresh around a sample: where a process lies in memory, or how a
    /// server started, may make all samples a little faster or slower, and no coin would take that out. What
    /// else its treatment varies from pair to pair is that of this one.
    pub fn renew(&mut self, arm: ArmId, draw: PairDraw) -> Result<(), ArmsError> {
        self.arms[arm].set_place(draw)?;
        self.arms[arm].renew(self.context.interrupted)
    }

    /// As [`Arms::renew`], for the arms of a pair: their launchers are started in this order, one right after
    /// the other, and take their set-ups at the same time.
    ///
    /// # Errors
    /// As [`Arms::renew`]; then none of them has a launcher.
    pub fn renew_all(&mut self, arms: &[ArmId], draw: PairDraw) -> Result<(), ArmsError> {
        // Servers of both arms would be started on a machine that is busy with the others.
        if arms.iter().any(|arm| self.has_members(*arm)) {
            return arms.iter().try_for_each(|arm| self.renew(*arm, draw));
        }
        arms.iter().for_each(|arm| self.arms[*arm].let_go());
        arms.iter().for_each(|arm| self.arms[*arm].lower());
        let interrupted = self.context.interrupted;
        let begun = arms.iter().try_for_each(|arm| {
            self.arms[*arm].set_place(draw)?;
            self.arms[*arm].begin_renewal(interrupted)
        });
        let renewed = begun
            .and_then(|()| arms.iter().try_for_each(|arm| self.arms[*arm].settle(interrupted)));
        renewed.inspect_err(|_| arms.iter().for_each(|arm| self.arms[*arm].lower()))
    }

    /// Ends the launchers, takes the treatments back, last first, and looks whether they are gone. `begins`
    /// gets each step, as removing an unpacked root file system may take a minute.
    pub fn lower(self, guard: &mut Guard, begins: &mut dyn FnMut(&str)) -> Result<(), String> {
        let lowered = self.arms.into_iter().map(|mut arm| {
            arm.lower();
            arm.named
        });
        let treatments: Vec<Named> = lowered.collect();
        let mut left = Vec::new();
        for mut named in treatments.into_iter().rev() {
            match named.kinds.iter().all(|kind| kind.name == "none") {
                true => begins("cleaning up"),
                false => begins(&format!("undoing `{}`", named.label)),
            }
            if let Err(error) = named.treatment.restore(guard) {
                left.push(error.to_string());
            }
        }
        if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
    }
}

/// A server that dies takes the row with it that needs it, and no other.
fn of_row(error: TreatmentError) -> ArmsError {
    match error {
        TreatmentError::NotInForce(problem) => ArmsError::Fixture(problem),
        other => other.into(),
    }
}
