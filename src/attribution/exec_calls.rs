//! The system calls of one `exec`, of the parent and of the child: counted of a prober that does just that,
//! as a C library adds a hundred of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::process::Stdio;

use super::operation::Operation;
use super::prober::SUBCOMMAND;
use super::prober_process::{Order, Run, Setup};
use crate::own_program;
use crate::profile::ptrace;
use crate::treatment::Bench;
use crate::treatment::audit::BASELINE_LOGINUID;

/// What a prober calls besides is the same however often it executes, but for the last digit of some.
const OPERATIONS: u64 = 16;

/// By number, calls of one operation on average.
///
/// # Errors
/// Where the prober cannot be traced.
pub fn count(bench: &Bench) -> io::Result<BTreeMap<u64, f64>> {
    let more = of_prober(bench, 2 * OPERATIONS)?;
    let few = of_prober(bench, OPERATIONS)?;
    let each = |(number, calls): (u64, u64)| {
        let besides = few.get(&number).copied().unwrap_or(0);
        (number, calls.saturating_sub(besides) as f64 / OPERATIONS as f64)
    };
    Ok(more.into_iter().map(each).filter(|(_, calls)| *calls > 0.0).collect())
}

/// In a thread of its own, as the tracer waits for all children of its thread, and our helpers live on.
fn of_prober(bench: &Bench, operations: u64) -> io::Result<BTreeMap<u64, u64>> {
    let setup = Setup {
        loginuid: BASELINE_LOGINUID,
        cpu: None,
        directory: bench.scratch.join("traced"),
        new: bench.scratch.join("created").join("traced"),
        program: bench.kernels.path().to_owned(),
        canary: bench.scratch.join("canary"),
        counts_instructions: false,
    };
    let order = Order::Weigh(vec![Run { operation: Operation::Exec, operations }]);
    let script = bench.scratch.join("traced.json");
    let mut file = File::create(&script)?;
    writeln!(file, "{}", serde_json::to_string(&setup)?)?;
    writeln!(file, "{}", serde_json::to_string(&order)?)?;
    let trace = || {
        let mut prober = own_program::command(SUBCOMMAND);
        ptrace::count(prober.stdin(File::open(&script)?).stdout(Stdio::null()))
    };
    let counts = std::thread::scope(|scope| scope.spawn(trace).join());
    Ok(counts.map_err(|_| io::Error::other("the tracer panicked"))??.calls)
}
