//! Finding out whether new processes carry an audit context: it shows in nothing but its cost.

use super::{BASELINE_LOGINUID, TREATED_LOGINUID, setup, system};
use crate::treatment::{Bench, TreatmentError};
use crate::workload::executable::Length;
use crate::workload::launcher::{self, Job, Launcher};
use crate::workload::sample::Sample;
use crate::workload::stdout_use::StdoutUse;

/// How many times as long `getppid` takes in an ordinary new process as in one that a `never,task`
/// rule exempts, in kernel instructions where the PMU counts them. The rule must be loaded.
///
/// # Errors
/// Where the login uid cannot be set, or the workload fails.
pub fn cost_of_context(bench: &Bench) -> Result<f64, TreatmentError> {
    const ROUNDS: usize = 9;
    let [mut exempt, mut ordinary] = [f64::INFINITY; 2];
    let start = |loginuid| bench.place.start_launcher(&setup(loginuid, None), bench.interrupted);
    let mut launchers = [BASELINE_LOGINUID, TREATED_LOGINUID].map(start);
    for _ in 0..ROUNDS {
        for (launcher, least) in launchers.iter_mut().zip([&mut exempt, &mut ordinary]) {
            let launcher = launcher.as_mut().map_err(|error| system(&*error))?;
            // The least of several is what the code costs when nothing disturbs it.
            *least = least.min(getppid_cost(bench, launcher)?);
        }
    }
    Ok(ordinary / exempt)
}

fn getppid_cost(bench: &Bench, launcher: &mut Launcher) -> Result<f64, TreatmentError> {
    let mut argv = bench.place.executable.sample_argv("getppid", 1, Length::of_ms(15));
    argv.push("--count-instructions".into());
    let job = Job {
        argv,
        environment: Vec::new(),
        directory: bench.place.work_directory.clone(),
        timeout_ms: 10_000,
        stdout: StdoutUse::KeepEnd,
    };
    let launched = launcher.run(&job, bench.interrupted).map_err(|error| match error {
        launcher::LauncherError::Interrupted => TreatmentError::Interrupted,
        other => system(other),
    })?;
    match Sample::parse(&launched.stdout) {
        Some(Ok(sample)) => {
            // Some virtual machines have a PMU that counts nothing.
            let counted = sample.kernel_instructions.filter(|count| *count > 0);
            let cost = counted.unwrap_or(sample.elapsed_ns);
            Ok(cost as f64 / sample.operations)
        }
        _ => Err(system(format!("getppid failed: {}", launched.stderr.trim()))),
    }
}
