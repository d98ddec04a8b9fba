//! The kernel's one audit configuration, as the arms of an experiment share it.
//!
//! One snapshot of the host, one rule that exempts the baseline, one sink, one canary; of the arms'
//! rules and limits those are in force whose turn it is. They are changed before a launch, and the
//! records of that are out of the kernel's queue before it begins.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::rc::{Rc, Weak};

use super::arm_rules::ArmRules;
use super::host::{HostAuditing, look_at_host};
use super::limits::{Limits, Wanted};
use super::rcu_expedited;
use super::sink_choice::SinkChoice;
use super::state::Snapshot;
use super::watch::Watch;
use super::{needs, system, treated_loginuid};
use crate::{ApplyContext, Launch, Role, TreatmentError};
use linux_audit::netlink::Client;
use linux_audit::status::AuditSetting;
use weigh_host::undo::guard::Guard;
use weigh_host::undo::started;
use weigh_model::evidence::Evidence;

/// Where the arms of an experiment find the configuration: it lives as long as one of them has it.
#[derive(Default)]
pub struct Shared(RefCell<Weak<RefCell<Configuration>>>);

impl Shared {
    /// The configuration, and what is to be said where this is the first arm that asks for it.
    pub fn join(
        &self,
        context: &ApplyContext,
        guard: &mut Guard,
        sink: SinkChoice,
    ) -> Result<(Rc<RefCell<Configuration>>, Vec<String>), TreatmentError> {
        if let Some(configuration) = self.0.borrow().upgrade() {
            return match configuration.borrow().sink == sink {
                true => Ok((Rc::clone(&configuration), Vec::new())),
                false => Err(TreatmentError::Unavailable(
                    "all arms of an experiment share one receiver of audit records: use the same `sink=`, \
                     `flush=`, `format=`, `plugin=` and `delay=` in all arms, or two experiments"
                        .into(),
                )),
            };
        }
        let configuration = Configuration::take(context, guard, sink.clone())?;
        let sentences = [Some(configuration.host.sentence()), sink.sentence()];
        let configuration = Rc::new(RefCell::new(configuration));
        *self.0.borrow_mut() = Rc::downgrade(&configuration);
        Ok((configuration, sentences.into_iter().flatten().collect()))
    }
}

/// Whatever is the same for all arms.
pub struct Configuration {
    host: HostAuditing,
    snapshot: Snapshot,
    client: Client,
    sink: SinkChoice,
    /// From the moment that the first arm is applied.
    watch: Option<Watch>,
    /// In the order of the experiment's.
    arms: Vec<ArmSetup>,
    /// Whose rules are loaded.
    turn: usize,
    /// True if rules are deleted fast, because the arms take turns.
    is_expedited: bool,
    /// True if the launch is of one of the arms, which then needs its own rules and no other arm's.
    is_of_arm: bool,
    /// True once the first arm has been asked to begin the next sample.
    is_settled: bool,
    /// How many arms have the evidence of the last launch.
    answered: usize,
    evidence: Evidence,
}

struct ArmSetup {
    loginuid: u32,
    rules: ArmRules,
    limits: Limits,
}

impl Configuration {
    fn take(
        context: &ApplyContext,
        guard: &mut Guard,
        sink: SinkChoice,
    ) -> Result<Configuration, TreatmentError> {
        let mut client = Client::open().map_err(needs)?;
        let mut snapshot = Snapshot::take(&mut client)?;
        sink.check(snapshot.healthy_daemon())?;
        let host = look_at_host(context, guard, &mut client, &mut snapshot)?;
        Ok(Configuration {
            host,
            snapshot,
            client,
            sink,
            watch: None,
            arms: Vec::new(),
            turn: 0,
            is_expedited: false,
            is_of_arm: false,
            is_settled: false,
            answered: 0,
            evidence: Evidence::default(),
        })
    }

    /// Learns what the rules are that `load` loads, and leaves them loaded: it is their turn now.
    /// Gives the arm's number, by which it asks for its turn.
    ///
    /// # Errors
    /// Where they cannot be loaded; the guard's journal undoes what was done.
    pub fn add_arm(
        &mut self,
        context: &ApplyContext,
        guard: &mut Guard,
        wanted: Wanted,
        load: impl FnOnce(&mut Client, &Watch) -> Result<(), TreatmentError>,
    ) -> Result<usize, TreatmentError> {
        if !self.arms.is_empty() && !self.is_expedited {
            self.is_expedited = rcu_expedited::expedite(guard);
        }
        let daemon = self.snapshot.healthy_daemon();
        if wanted.rate.is_some() && self.is_host_audited() {
            return Err(TreatmentError::Unavailable(
                "`rate=` would also drop records of this host's own auditing: leave it out here"
                    .into(),
            ));
        }
        self.snapshot.has_switched = true;
        self.snapshot.added = None;
        self.snapshot.write_down(guard)?;
        let watch = match &mut self.watch {
            Some(watch) => watch,
            None => {
                let receiver = self.sink.start(context, guard, &mut self.client, daemon)?;
                self.watch.insert(Watch::start(context, receiver)?)
            }
        };
        if let Some(arm) = self.arms.get(self.turn) {
            arm.rules.unload(&mut self.client).map_err(needs)?;
        }
        let before = self.client.rules().map_err(needs)?;
        let limits = wanted.limits(&self.snapshot.status, daemon.is_some());
        limits.set(&mut self.client).map_err(needs)?;
        let as_set = self.client.status().map_err(needs)?;
        let loaded = load(&mut self.client, watch);
        // First: what a line has done to the host is why the next was not loaded.
        self.snapshot.check_loaded(&mut self.client, &as_set)?;
        loaded?;
        let loginuid = self.next_loginuid()?;
        let rules = ArmRules::learn(&before, self.client.rules().map_err(needs)?);
        let listed = rules.listed.clone();
        self.turn = self.arms.len();
        self.arms.push(ArmSetup { loginuid, rules, limits });
        // Whoever undoes it finds one arm's rules, and does not know whose.
        let own = self.arms.iter().flat_map(|arm| arm.rules.own());
        self.snapshot.added = Some(Snapshot::ours(own));
        self.snapshot.write_down(guard)?;
        self.client.set(AuditSetting::Enabled(1)).map_err(needs)?;
        self.watch()?.begin(listed, loginuid, limits.rate)?;
        Ok(self.turn)
    }

    /// The login uid of the processes of the arm that is added next.
    pub fn next_loginuid(&self) -> Result<u32, TreatmentError> {
        treated_loginuid(self.arms.len())
    }

    /// Before all arms begin a sample; told by every arm, and by the launched one last.
    pub fn take_turn(&mut self, role: Role) {
        self.is_of_arm = role == Role::Treated;
        self.is_settled = false;
    }

    /// Before a launch; asked by every arm.
    ///
    /// # Errors
    /// [`TreatmentError::NotInForce`] where the arms' rules cannot be exchanged.
    pub fn begin_sample(&mut self, arm: usize, role: Role) -> Result<(), TreatmentError> {
        self.answered = 0;
        if !self.is_settled {
            // For any arm: otherwise one sample of a pair would wait, and the other would not.
            let has_rate = self.arms.iter().any(|arm| arm.limits.rate.is_some());
            self.watch()?.settle(has_rate)?;
            self.is_settled = true;
        }
        // Before the first of a pair, whichever that is: so both come equally often after a change.
        if role == Role::Treated || (role == Role::Paired && !self.is_of_arm) {
            self.turn_to(arm)?;
            // Only now: an arm that is asked earlier would set the limit of the previous turn.
            self.watch()?.set_rate_limit()?;
        }
        self.watch()?.begin_sample()
    }

    /// Before a pair of the one arm that there is, whose launches live at the same time.
    ///
    /// # Errors
    /// [`TreatmentError::NotInForce`] where the arms' rules cannot be exchanged.
    pub fn begin_pair(&mut self, arm: usize, roles: [Role; 2]) -> Result<(), TreatmentError> {
        self.is_settled = false;
        roles.into_iter().try_for_each(|role| self.begin_sample(arm, role))?;
        self.watch()?.begin_pair();
        Ok(())
    }

    /// After a launch; asked by every arm. Whichever comes first asks for all.
    pub fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        if self.answered == 0 {
            self.evidence = self.watch()?.verify_sample(launch)?;
        }
        self.answered = (self.answered + 1) % self.arms.len();
        Ok(if launch.is_treated { self.evidence.clone() } else { Evidence::default() })
    }

    fn turn_to(&mut self, arm: usize) -> Result<(), TreatmentError> {
        if arm == self.turn {
            return Ok(());
        }
        let (old, new) = (&self.arms[self.turn], &self.arms[arm]);
        let mut changes = 0;
        if !old.rules.is_same(&new.rules) {
            let exchanged = old.rules.unload(&mut self.client);
            exchanged.and_then(|()| new.rules.load(&mut self.client)).map_err(not_exchanged)?;
            changes += old.rules.count() + new.rules.count();
        }
        if old.limits != new.limits {
            changes += new.limits.set(&mut self.client).map_err(needs)?;
        }
        let (listed, limits, loginuid) = (new.rules.listed.clone(), new.limits, new.loginuid);
        self.turn = arm;
        self.watch()?.expect(listed, limits, loginuid, changes)
    }

    fn watch(&mut self) -> Result<&mut Watch, TreatmentError> {
        self.watch.as_mut().ok_or_else(|| system("sample before apply"))
    }

    /// The file that every worker opens.
    pub fn canary(&self) -> Option<PathBuf> {
        self.watch.as_ref().map(|watch| watch.canary.clone())
    }

    /// Describes this arm's limits. For the first arm, it also describes facts about all arms.
    pub fn facts(&self, arm: usize) -> Vec<String> {
        let mut facts = self.arms[arm].limits.facts();
        if self.arms.len() > 1 {
            facts.push(format!(
                "The arms alternate: while this arm is measured, only its own rules are loaded ({}, \
                 including the canary's).",
                self.arms[arm].rules.count()
            ));
        }
        if arm == 0 {
            facts.extend(self.is_expedited.then(|| rcu_expedited::FACT.to_owned()));
            facts.extend(self.watch.iter().map(Watch::fact));
            facts.push(
                "A `never,task` rule on the baseline's login UID exempts its processes: they carry no \
                 audit context. A `never,user` rule drops the records that they write themselves."
                    .into(),
            );
            facts.push(self.host.sentence());
        }
        facts
    }

    /// Returns true if this host records something, so that rules must be confined to spare it.
    pub fn is_host_audited(&self) -> bool {
        self.snapshot.is_audited()
    }

    /// Puts everything back; for the last arm that leaves.
    pub fn restore(mut self, guard: &mut Guard) -> Result<(), TreatmentError> {
        let untouched = match &mut self.watch {
            Some(watch) => {
                watch.lift_rate_limit().and_then(|()| self.snapshot.check_host(&mut self.client))
            }
            None => Ok(()),
        };
        if self.watch.is_some() {
            // First off, then the sink: without one, the kernel prints records to its console.
            let enabled = AuditSetting::Enabled(self.snapshot.status.enabled);
            self.client.set(enabled).map_err(needs)?;
        }
        // It ends with the watch.
        let auditd = self.watch.take().and_then(|watch| watch.own_auditd());
        if let Some(pid) = auditd {
            started::forget(guard, pid).map_err(TreatmentError::Unavailable)?;
        }
        Snapshot::put_back(guard)?;
        rcu_expedited::put_back(guard).map_err(TreatmentError::Unavailable)?;
        untouched
    }
}

fn not_exchanged(error: io::Error) -> TreatmentError {
    TreatmentError::NotInForce(format!(
        "cannot replace one arm's audit rules with a different arm's ({error}): something changed the \
         rules during the measurement, or removed a file that a rule watches"
    ))
}
