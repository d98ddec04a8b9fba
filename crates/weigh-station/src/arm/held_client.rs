//! Checks of the exempt client that did the work of an arm's job.

use super::{Arm, ArmsError, LaunchedArm, Raised, of_member};
use weigh_fixture::asks_beside;
use weigh_treatment::Launch;
use weigh_workload::launcher::Job;

impl Arm {
    /// A workload that asks no server has nothing for a client on another machine to do, unless an activity
    /// of the experiment has.
    pub(super) fn hold_asking(&self, job: &Job) -> Result<(), ArmsError> {
        let sends = |raised: &Raised| raised.client.is_some() || raised.away.is_some();
        let has_client = self.raised.as_ref().is_some_and(sends);
        let has_client = has_client || self.has_away_activity();
        match self.exempt.away.is_some() && self.is_workload(job) && !has_client {
            true => Err(ArmsError::Fixture(
                "it sends no requests to a server, so --client does not apply: remove --client"
                    .into(),
            )),
            false => Ok(()),
        }
    }

    /// Returns true if an activity that a launch of this experiment needs, or that the arm has itself, is on
    /// the client's machine.
    pub fn has_away_activity(&self) -> bool {
        let labels = self.servers.keys().chain([&self.named.label]);
        self.exempt.away.is_some() && labels.into_iter().any(|label| asks_beside(label))
    }

    /// Returns true if the job runs our own program and not a command.
    fn is_workload(&self, job: &Job) -> bool {
        let own = self.place().executable.path().as_os_str();
        job.argv.first().is_some_and(|word| own == word.as_str())
    }

    /// Checks that the client that did the work ran at its required place and was exempt.
    pub(super) fn hold_client(&mut self, job: &Job, done: &LaunchedArm) -> Result<(), ArmsError> {
        let client = self.raised.as_ref().and_then(|raised| raised.client.as_ref());
        let Some(client) = client.filter(|_| done.launched.exit_code == Some(0)) else {
            return Ok(());
        };
        let (launched, away) = match (&done.client, &self.exempt.away) {
            (Some(launched), away) => (launched, away),
            (None, None) if !self.needs.is_empty() && self.is_workload(job) => {
                let problem = "it did not pass its work to the exempt client, so the client was treated too: \
                    use --treat both";
                return Err(ArmsError::Fixture(problem.into()));
            }
            // A command, or a workload beside servers that others ask.
            (None, None) => return Ok(()),
            (None, Some(_)) => {
                let problem = "this workload cannot run on the client's machine: remove --client";
                return Err(ArmsError::Fixture(problem.into()));
            }
        };
        if let Some(away) = away {
            return client.hold_place(launched, away.borrow().whereabouts()).map_err(of_member);
        }
        client.hold(launched).map_err(of_member)?;
        let setup = client.setup();
        let launch = Launch { is_treated: false, setup, launched, members: &[] };
        Ok(self.named.treatment.verify_exempt(&launch)?)
    }
}
