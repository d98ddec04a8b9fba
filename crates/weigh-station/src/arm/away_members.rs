//! Members of an arm that run on the client's machine: activities that send requests to servers of here.

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::{ArmsError, of_member};
use crate::client::hold_place;
use crate::remote_client::AwayClient;
use weigh_workload::launcher::{Launcher, LauncherError};
use weigh_workload::member::{MemberSeen, Readiness, StartServer};
use weigh_workload::place::LaunchPlace;

pub(super) struct AwayMembers {
    pub(super) launcher: Launcher,
    place: LaunchPlace,
    /// Where they have to be.
    there: String,
    names: Vec<String>,
}

impl AwayMembers {
    /// Starts their launcher, for those of `members` that run there; `None` if none does.
    pub(super) fn start(
        members: &[StartServer],
        away: Option<&RefCell<AwayClient>>,
        interrupted: &AtomicBool,
    ) -> Result<Option<AwayMembers>, ArmsError> {
        let names =
            members.iter().filter(|member| member.is_away).map(|member| member.name.clone());
        let names: Vec<String> = names.collect();
        if names.is_empty() {
            return Ok(None);
        }
        let away = away.ok_or_else(|| {
            ArmsError::Fixture("the client's machine is unknown: name it with --client".into())
        })?;
        let place = away.borrow_mut().place()?;
        let launcher =
            place.start_launcher(&AwayClient::setup(), interrupted).map_err(of_member)?;
        let there = away.borrow().whereabouts().to_owned();
        Ok(Some(AwayMembers { launcher, place, there, names }))
    }

    pub(super) fn has(&self, member: &str) -> bool {
        self.names.iter().any(|name| name == member)
    }

    /// The member as it is started there: its paths are in the scratch directory of that machine, and its
    /// program is the build of there.
    pub(super) fn placed(&self, member: &StartServer) -> StartServer {
        let there = |path: &Path| self.place.scratch.join(path);
        let mut placed = member.clone();
        if let Some(program) = placed.argv.first_mut() {
            *program = self.place.executable.path().display().to_string();
        }
        if let Readiness::Exists(file) = &mut placed.ready {
            *file = there(file);
        }
        placed.directory = there(&member.directory);
        placed.log = there(&member.log);
        placed.progress = member.progress.as_deref().map(there);
        placed
    }

    /// Checks, by boot, name and connection, that the member runs there.
    pub(super) fn hold_place(&self, member: &MemberSeen) -> Result<(), LauncherError> {
        hold_place(&member.seen, &self.there)
    }
}
