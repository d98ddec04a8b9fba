//! Trial of a root file system: workloads are executed in it once.
//!
//! The trial shows which of their builds runs there, and which libc the root has.

use crate::{ApplyContext, TreatmentError};
use weigh_workload::executable::{Executable, FILE_NAME};
use weigh_workload::launcher::{Job, Launched, Launcher, LauncherError};
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::root_facts::{DISTRIBUTION, LIBC, RootFacts};
use weigh_workload::setup::kind::root_seen::SEEN;

const LIMIT_MS: u64 = 30_000;

/// Findings of the trial of a root file system.
#[derive(Default)]
pub struct TriedRoot {
    pub distribution: Option<String>,
    pub libc: Option<String>,
    /// The static build, where no other runs in it, and why.
    pub needs_static: Option<(Executable, String)>,
}

impl TriedRoot {
    pub fn find_out(
        setup: &Setup,
        context: &ApplyContext,
        number: u64,
    ) -> Result<TriedRoot, TreatmentError> {
        let setup = setup.clone().with(RootFacts {});
        let mut launcher =
            context.place.start_launcher(&setup, context.interrupted).map_err(broken)?;
        let own = &context.place.executable;
        let (launched, needs_static) = match run(own, &mut launcher, context)? {
            Ok(launched) => (launched, None),
            Err(why) => {
                let other = own.as_static().map_err(TreatmentError::Unavailable)?;
                let Some(other) = other.filter(|_| !own.is_static) else {
                    let problem = format!("the workloads do not run in it: {why}");
                    return Err(TreatmentError::Unavailable(problem));
                };
                let launched = run(&other, &mut launcher, context)?.map_err(|problem| {
                    TreatmentError::Unavailable(format!(
                        "no build of the workloads runs in it: {why}; the static build: {problem}"
                    ))
                })?;
                (launched, Some((other, why)))
            }
        };
        let seen = |name: &str| launched.seen.get(name).cloned();
        if seen(SEEN) != Some(format!("{number:016x}")) {
            return Err(TreatmentError::NotInForce(
                "a process launched in the root file system does not see it".into(),
            ));
        }
        Ok(TriedRoot { distribution: seen(DISTRIBUTION), libc: seen(LIBC), needs_static })
    }
}

/// Runs a workload for one operation; `Err` with the reason, where it does not run.
fn run(
    executable: &Executable,
    launcher: &mut Launcher,
    context: &ApplyContext,
) -> Result<Result<Launched, String>, TreatmentError> {
    let argv = executable.operations_argv("getppid", 1, 1);
    let job = Job::new(argv, &context.place.work_directory, LIMIT_MS);
    // The next session of this experiment has another scratch directory.
    let of_any_place = |why: &str| {
        let path = executable.path();
        why.replace(&*path.to_string_lossy(), FILE_NAME)
    };
    match launcher.run(&job, context.interrupted) {
        Ok(launched) if launched.exit_code == Some(0) => Ok(Ok(launched)),
        Ok(launched) => {
            let said = launched
                .stderr
                .lines()
                .next()
                .unwrap_or("it ended without an error message")
                .trim();
            Ok(Err(of_any_place(said)))
        }
        Err(LauncherError::Refused(why)) => Ok(Err(of_any_place(&why))),
        Err(other) => Err(broken(other)),
    }
}

fn broken(error: LauncherError) -> TreatmentError {
    match error {
        LauncherError::Interrupted => TreatmentError::Interrupted,
        other => TreatmentError::Unavailable(other.to_string()),
    }
}
