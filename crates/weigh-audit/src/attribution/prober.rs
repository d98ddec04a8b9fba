//! The parent's side of a prober: starting it, having it measure operations, and tracing it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::operation::Operation;
use super::prober_process::{OperationBatch, Order, ProberSetup, Reply};
use crate::profile::ptrace;
use weigh_host::lines::LinesError;
use weigh_host::own_program;
use weigh_host::own_program::Helper;
use weigh_treatment::audit::{BASELINE_LOGINUID, system};
use weigh_treatment::{ApplyContext, TreatmentError};

/// The hidden subcommand that turns `weigh` into a prober.
pub const SUBCOMMAND: &str = "__prober";
/// Timeout of an order to a prober. Each order takes milliseconds; a full backlog may delay it for
/// a minute.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A process that does operations when asked.
pub struct Prober {
    helper: Helper,
    pub pid: u32,
}

impl Prober {
    /// Starts one, which is born under the login uid that the set-up names.
    pub fn start(setup: &ProberSetup, interrupted: &AtomicBool) -> Result<Prober, TreatmentError> {
        let mut helper = Helper::start(own_program::command(SUBCOMMAND)).map_err(system)?;
        helper.lines.send(setup).map_err(system)?;
        match helper.lines.receive(interrupted, Instant::now() + TIMEOUT) {
            Ok(Reply::Ready(pid)) => Ok(Prober { helper, pid }),
            Ok(Reply::Error(problem)) => Err(system(problem)),
            Ok(Reply::Amounts(_)) => Err(system("the prober answered before any request")),
            Err(error) => Err(stop(error)),
        }
    }

    /// Nanoseconds, or instructions, of each batch.
    pub fn measure(
        &mut self,
        batches: &[OperationBatch],
        interrupted: &AtomicBool,
    ) -> Result<Vec<u64>, TreatmentError> {
        self.order(&Order::Measure(batches.to_vec()), batches.len(), interrupted)
    }

    pub fn open_canary(&mut self, interrupted: &AtomicBool) -> Result<(), TreatmentError> {
        self.order(&Order::Canary, 0, interrupted).map(drop)
    }

    fn order(
        &mut self,
        order: &Order,
        amounts: usize,
        interrupted: &AtomicBool,
    ) -> Result<Vec<u64>, TreatmentError> {
        self.helper.lines.send(order).map_err(system)?;
        match self.helper.lines.receive(interrupted, Instant::now() + TIMEOUT) {
            Ok(Reply::Amounts(answer)) if answer.len() == amounts => Ok(answer),
            Ok(Reply::Error(problem)) => Err(system(problem)),
            Ok(Reply::Amounts(_) | Reply::Ready(_)) => {
                Err(system("the prober sent an unexpected answer"))
            }
            Err(error) => Err(stop(error)),
        }
    }
}

fn stop(error: LinesError) -> TreatmentError {
    match error {
        LinesError::Interrupted => TreatmentError::Interrupted,
        other => system(other),
    }
}

/// Number of operations in the shorter of two runs. The other calls of a prober stay the same in a
/// longer run, except for the last digit of some counts.
const OPERATIONS: u64 = 16;

/// The system calls of one `exec`, of the parent and of the child, by number: calls of one operation on
/// average. They are counted of a prober that does just that, as a C library adds a hundred of its own.
pub fn count_exec_calls(context: &ApplyContext) -> io::Result<BTreeMap<u64, f64>> {
    let more = calls_of_prober(context, 2 * OPERATIONS)?;
    let few = calls_of_prober(context, OPERATIONS)?;
    let each = |(number, calls): (u64, u64)| {
        let besides = few.get(&number).copied().unwrap_or(0);
        (number, calls.saturating_sub(besides) as f64 / OPERATIONS as f64)
    };
    Ok(more.into_iter().map(each).filter(|(_, calls)| *calls > 0.0).collect())
}

/// In a thread of its own, as the tracer waits for all children of its thread, and our helpers live on.
fn calls_of_prober(context: &ApplyContext, operations: u64) -> io::Result<BTreeMap<u64, u64>> {
    let setup = ProberSetup {
        loginuid: BASELINE_LOGINUID,
        cpu: None,
        directory: context.place.scratch.join("traced"),
        new: context.place.scratch.join("created").join("traced"),
        program: context.place.executable.path().to_owned(),
        canary: context.place.scratch.join("canary"),
        counts_instructions: false,
    };
    let order = Order::Measure(vec![OperationBatch { operation: Operation::Exec, operations }]);
    let script = context.place.scratch.join("traced.json");
    let mut file = File::create(&script)?;
    writeln!(file, "{}", serde_json::to_string(&setup)?)?;
    writeln!(file, "{}", serde_json::to_string(&order)?)?;
    let trace = || {
        let mut prober = own_program::command(SUBCOMMAND);
        ptrace::count(prober.stdin(File::open(&script)?).stdout(Stdio::null()))
    };
    let counts = std::thread::scope(|scope| {
        Ok::<_, io::Error>(std::thread::Builder::new().spawn_scoped(scope, trace)?.join())
    })?;
    Ok(counts.map_err(|_| io::Error::other("the tracer panicked"))??.calls)
}
