//! Prepares the machine for measuring: what every command that measures opens first, and the arms.
//!
//! A station restores what an earlier experiment left, takes the lock, claims what exists once per kernel,
//! starts the guard, and unpacks the workloads. The crate does not know the engine or the store.
//!
//! - [`Station`] is held as long as this process measures;
//! - [`arms::Arms`]: treatments in force, with a launcher for each arm; a treatment's life is here alone;
//! - [`client`]: clients of servers that are exempt from the treatment; [`away`]: clients on other machines;
//! - [`fitness`]: facts of the machine, and whether it is fit to measure.
//!
//! Start with [`Station::open`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod arm;
pub mod arms;
pub mod client;
mod cpu_shares;
pub mod fitness;
pub mod remote_client;
mod start;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fitness::AuditSeen;

use weigh_fixture::Circumstances;
use weigh_host::machine::file_system::file_system;
use weigh_host::undo::claim::{AUDIT, Claim, claim, only_one_at_a_time};
use weigh_host::undo::guard::Guard;
use weigh_host::undo::left_behind::{
    own_state_dir, put_back_what_was_claimed, put_back_what_was_left,
};
use weigh_host::undo::queue::{self, Refused};
use weigh_model::facts::Facts;
use weigh_model::result::warning::Warning;
use weigh_treatment::{ApplyContext, Named, SharedState, undoings};
use weigh_workload::executable::Executable;
use weigh_workload::place::LaunchPlace;
use weigh_workload::setup::Setup;

/// Until it is closed, this process alone measures for this user, and holds what it claimed.
pub struct Station {
    _alone: Option<File>,
    pub guard: Guard,
    pub place: LaunchPlace,
    /// True if this station claimed the right to switch auditing.
    has_audit: bool,
    /// As it was when it was last looked at.
    audit: Cell<Option<AuditSeen>>,
}

/// News of a station that opens, each a sentence.
#[derive(Clone, Copy, Debug)]
pub enum OpeningNews<'a> {
    /// A change of an earlier experiment was restored.
    Restored(&'a str),
    /// The station begins to wait for the experiment that is named, or has waited.
    Waits(&'a str),
}

impl OpeningNews<'_> {
    /// The sentence, for a command that shows both alike.
    pub fn sentence(&self) -> &str {
        let (OpeningNews::Restored(sentence) | OpeningNews::Waits(sentence)) = self;
        sentence
    }
}

/// A lock that one station at a time holds.
#[derive(Clone, Copy)]
enum Wanted {
    /// The lock of this user's experiments.
    Alone,
    Claim(&'static str),
}

#[derive(Default)]
struct Locks {
    alone: Option<File>,
    claims: Vec<Claim>,
}

impl Locks {
    /// Takes all, or none.
    fn take(wanted: &mut [Wanted]) -> Result<Locks, Refused> {
        let mut locks = Locks::default();
        queue::take_all(wanted, |one| {
            match one {
                Wanted::Alone => locks.alone = Some(only_one_at_a_time()?),
                Wanted::Claim(what) => locks.claims.push(claim(what)?),
            }
            Ok(())
        })?;
        Ok(locks)
    }
}

impl Station {
    /// Opens a station, with claims on the things in `occupied`, which exist once per kernel. If another
    /// experiment holds one, waits up to `wait`. `tell` gets the restored changes and the holder's name.
    ///
    /// `check` finds errors in the request, given the workloads. It runs before waiting; otherwise the caller
    /// checks. Without `wait` nothing is unpacked for it, as that would disturb the experiment that measures.
    ///
    /// # Errors
    /// A sentence, and whether another experiment is the reason; nothing was changed, or all of it is put
    /// back.
    pub fn open(
        occupied: impl IntoIterator<Item = &'static str>,
        wait: Option<Duration>,
        tell: &mut dyn FnMut(OpeningNews),
        check: impl FnOnce(&Executable) -> Result<(), String>,
    ) -> Result<Station, Refused> {
        put_back_what_was_left(Path::new("/"), &undoings(), &mut |it| {
            tell(OpeningNews::Restored(it))
        })?;
        let occupied: BTreeSet<&str> = occupied.into_iter().collect();
        let has_audit = occupied.contains(AUDIT);
        let claims = occupied.into_iter().map(Wanted::Claim);
        let mut wanted: Vec<Wanted> = std::iter::once(Wanted::Alone).chain(claims).collect();
        let locks = match Locks::take(&mut wanted) {
            Ok(locks) => locks,
            Err(Refused::Failed(problem)) => return Err(problem.into()),
            Err(Refused::Busy(_)) => {
                if wait.is_some() {
                    with_workloads(check)?;
                }
                let mut waits = |it: &str| tell(OpeningNews::Waits(it));
                let locks = queue::take(wait, &mut waits, || Locks::take(&mut wanted))?;
                // Whoever had them may have been killed meanwhile, with its guard.
                let mut restored = |it: &str| tell(OpeningNews::Restored(it));
                put_back_what_was_left(Path::new("/"), &undoings(), &mut restored)?;
                locks
            }
        };
        let Locks { alone: _alone, claims } = locks;
        put_back_what_was_claimed(&claims, &undoings(), &mut |it| tell(OpeningNews::Restored(it)))?;
        let mut guard = Guard::arm(claims, undoings()).map_err(|error| error.to_string())?;
        match unpack(&mut guard) {
            Ok(place) => Ok(Station { _alone, guard, place, has_audit, audit: Cell::new(None) }),
            Err(problem) => Err(with_what_is_left(problem, guard.disarm().err()).into()),
        }
    }

    /// Returns the parts of the kernel that these treatments need the station to claim.
    pub fn occupied_by(treatments: &[Named]) -> impl Iterator<Item = &'static str> {
        treatments.iter().flat_map(|named| named.treatment.occupies()).map(|occupied| occupied.what)
    }

    /// Returns the resources that treatments may use, and the guard that records their changes.
    pub fn context<'a>(
        &'a mut self,
        interrupted: &'a Arc<AtomicBool>,
    ) -> (ApplyContext<'a>, &'a mut Guard) {
        let Station { place, guard, .. } = self;
        (
            ApplyContext {
                place,
                interrupted,
                running: Rc::clone(guard.running()),
                commons: SharedState::default(),
                seed: 0,
                surroundings: Setup::default(),
                circumstances: Circumstances::default(),
                collector: None,
            },
            guard,
        )
    }

    /// The machine as it is now, and what disturbs a measurement. Room is looked for in the directory for
    /// temporary files and in `data_directory`.
    pub fn look(&self, data_directory: &Path) -> (Facts, Vec<Warning>) {
        let file_system = file_system(&self.place.scratch);
        let scratch = format!("{file_system} ({})", std::env::temp_dir().display());
        let (mut machine, mut warnings, audit) = fitness::look(Some(scratch), data_directory);
        // Who cannot be asked has no room that is known.
        let room = rustix::fs::statvfs(&self.place.scratch).ok();
        machine.scratch_free_bytes = room.map(|room| room.f_bavail.saturating_mul(room.f_frsize));
        self.audit.set(Some(audit));
        warnings.extend(about_build(&self.place.executable));
        (machine, warnings)
    }

    /// Describes, for a report, changes by others since [`Station::look`] that affect every
    /// baseline. Our own changes have been undone by now.
    pub fn changed_meanwhile(&self) -> Option<Warning> {
        let before = self.audit.get()?;
        before.changed_to(before.later(), self.has_audit)
    }

    /// Puts back what is still changed. Gives what is left.
    pub fn close(self) -> Option<String> {
        self.guard.disarm().err()
    }

    /// Closes the station after `problem`. Returns the problem together with what could not be put
    /// back, for a person.
    pub fn close_after(self, problem: String) -> String {
        with_what_is_left(problem, self.close())
    }
}

/// Has the workloads unpacked, for this check alone: nothing is held meanwhile.
///
/// # Errors
/// As `check`, or why the workloads cannot be unpacked.
pub fn with_workloads(check: impl FnOnce(&Executable) -> Result<(), String>) -> Result<(), String> {
    own_state_dir()?;
    let mut guard = Guard::arm(Vec::new(), undoings()).map_err(|error| error.to_string())?;
    let checked = unpack(&mut guard).and_then(|place| check(&place.executable));
    match (checked, guard.disarm()) {
        (Ok(()), left) => left,
        (Err(problem), left) => Err(with_what_is_left(problem, left.err())),
    }
}

fn unpack(guard: &mut Guard) -> Result<LaunchPlace, String> {
    let directory = guard.scratch_directory().map_err(|error| error.to_string());
    directory.and_then(LaunchPlace::here)
}

fn with_what_is_left(problem: String, left: Option<String>) -> String {
    [Some(problem), left].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn about_build(executable: &Executable) -> Option<Warning> {
    match &executable.foreign {
        Some(file) => Some(Warning::ForeignWorkloads { file: file.display().to_string() }),
        None => executable.is_static.then_some(Warning::StaticWorkloads),
    }
}
