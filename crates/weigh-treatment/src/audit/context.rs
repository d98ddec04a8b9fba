//! Finding out whether new processes carry an audit context: it shows in nothing but its cost.

use super::{BASELINE_LOGINUID, TREATED_LOGINUID, setup, system};
use crate::{ApplyContext, TreatmentError};
use weigh_model::workload::sample::Sample;
use weigh_workload::executable::Length;
use weigh_workload::launcher::{self, Job, Launcher};

/// How many times as long `getppid` takes in an ordinary new process as in one that a `never,task`
/// rule exempts, in kernel instructions where the PMU counts them. The rule must be loaded.
pub fn cost_of_context(context: &ApplyContext) -> Result<f64, TreatmentError> {
    const ROUNDS: usize = 9;
    let [mut exempt, mut ordinary] = [f64::INFINITY; 2];
    let start =
        |loginuid| context.place.start_launcher(&setup(loginuid, None), context.interrupted);
    let mut launchers = [BASELINE_LOGINUID, TREATED_LOGINUID].map(start);
    for _ in 0..ROUNDS {
        for (launcher, least) in launchers.iter_mut().zip([&mut exempt, &mut ordinary]) {
            let launcher = launcher.as_mut().map_err(|error| system(&*error))?;
            // The least of several is what the code costs when nothing disturbs it.
            *least = least.min(getppid_cost(context, launcher)?);
        }
    }
    Ok(ordinary / exempt)
}

fn getppid_cost(context: &ApplyContext, launcher: &mut Launcher) -> Result<f64, TreatmentError> {
    let mut argv = context.place.executable.sample_argv("getppid", 1, Length::of_ms(15));
    argv.push("--count-instructions".into());
    let job = Job::new(argv, &context.place.work_directory, 10_000);
    let launched = launcher.run(&job, context.interrupted).map_err(|error| match error {
        launcher::LauncherError::Interrupted => TreatmentError::Interrupted,
        other => system(other),
    })?;
    match Sample::parse(&launched.stdout) {
        Some(Ok(sample)) => Ok(cost_per_operation(&sample)),
        _ => Err(system(format!("getppid failed: {}", launched.stderr.trim()))),
    }
}

/// In instructions, or in CPU time: while it waits for a CPU that others have, it costs nothing.
fn cost_per_operation(sample: &Sample) -> f64 {
    // Some virtual machines have a PMU that counts nothing.
    let counted = sample.kernel_instructions.filter(|count| *count > 0);
    let cpu_ns = sample.user_ns.zip(sample.system_ns).map(|(user, system)| user + system);
    let cost = counted.or(cpu_ns.filter(|ns| *ns > 0)).unwrap_or(sample.elapsed_ns);
    cost as f64 / sample.operations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_cpu_is_no_cost_of_a_call() {
        let mut sample = Sample { operations: 100.0, elapsed_ns: 90_000, ..Sample::default() };
        assert_eq!(cost_per_operation(&sample), 900.0);
        (sample.user_ns, sample.system_ns) = (Some(4_000), Some(6_000));
        assert_eq!(cost_per_operation(&sample), 100.0);
        sample.kernel_instructions = Some(0);
        assert_eq!(cost_per_operation(&sample), 100.0);
        sample.kernel_instructions = Some(20_000);
        assert_eq!(cost_per_operation(&sample), 200.0);
    }
}
