//! A treatment in force, and launches of its arm alone.

use std::path::Path;

use linux_audit::netlink::Client;
use linux_audit::status::Status;
use weigh_engine::platform::Stop;
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::ids::ArmId;
use weigh_station::arms::{Arms, Proved, Serving};
use weigh_treatment::audit::needs;
use weigh_treatment::{ApplyContext, parse};
use weigh_workload::launcher::{Job, Launched};
use weigh_workload::setup::kind::canary::Canary;

/// A receiver that stands still for half a second does not do so every time.
const TRIES: usize = 5;

/// An arm without a baseline, until it is taken down, or the guard undoes it.
pub struct Treated<'a> {
    pub client: Client,
    arms: Arms<'a>,
}

/// The only one there is.
pub const ARM: ArmId = ArmId(0);

impl<'a> Treated<'a> {
    /// Applies a treatment. `announce` is told what a person should know before that.
    ///
    /// # Errors
    /// Where it cannot be applied; what was applied is the guard's to undo.
    pub fn set_up(
        context: ApplyContext<'a>,
        label: &str,
        guard: &mut Guard,
        announce: &mut dyn FnMut(&str),
    ) -> Result<Treated<'a>, Stop> {
        let treatment = parse(label).map_err(Stop::Failed)?;
        let arms = Arms::raise(context, vec![treatment], &Serving::default(), guard, announce)?;
        let client = Client::open().map_err(needs)?;
        Ok(Treated { client, arms })
    }

    /// Returns the bench for its launches.
    pub fn context(&self) -> &ApplyContext<'a> {
        &self.arms.context
    }

    /// Launches a job, and proves that it was audited and nobody interfered.
    pub fn launch_proved(&mut self, job: &Job) -> Result<(Launched, Evidence), Stop> {
        let Proved { launched, evidence, .. } = self.arms.launch(ARM, ARM, job)?;
        Ok((launched, evidence))
    }

    /// Launches a job until all the records of it were counted.
    ///
    /// # Errors
    /// As [`Treated::launch_proved`]; where some may have been missed each time.
    pub fn launch_counted(&mut self, job: &Job) -> Result<(Launched, Evidence), Stop> {
        let mut why = String::new();
        for _ in 0..TRIES {
            let (launched, evidence) = self.launch_proved(job)?;
            match evidence.why_not_counted() {
                None => return Ok((launched, evidence)),
                Some(reason) => why = reason.to_owned(),
            }
        }
        Err(Stop::Failed(format!(
            "the records could not be counted in {TRIES} consecutive launches: {why}. Try again with fewer \
             programs running, or with TMPDIR on a faster disk"
        )))
    }

    /// Launches a job without that, for when we change the settings ourselves.
    pub fn launch(&mut self, job: &Job) -> Result<Launched, Stop> {
        Ok(self.arms.launch_unproved(ARM, job)?)
    }

    pub fn status(&mut self) -> Result<Status, Stop> {
        let status = self.client.status().map_err(needs)?;
        match status.enabled {
            0 => Err(Stop::Failed("auditing was switched off during the measurement".into())),
            _ => Ok(status),
        }
    }

    /// The file whose opening is audited whatever the rules are.
    pub fn canary(&self) -> Result<&Path, Stop> {
        let missing = || Stop::Failed("this treatment produces no audit records".into());
        self.arms.setup(ARM).get::<Canary>().map(|canary| &*canary.file).ok_or_else(missing)
    }

    pub fn facts(&self) -> Vec<String> {
        self.arms.treatments().flat_map(|named| named.treatment.facts()).collect()
    }

    pub fn take_down(self, guard: &mut Guard) -> Result<(), Stop> {
        self.arms.lower(guard, &mut |_| {}).map_err(Stop::Failed)
    }
}
