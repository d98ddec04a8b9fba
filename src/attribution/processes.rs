//! What calls that start a process or a program cost, by what was measured of them.
//!
//! Single rules are weighed on short operations only, so a line prices `execve` as a `stat`, and `clone` as
//! a `getppid`. What all rules together cost is measured on whole processes as well: of these, what their
//! other calls cost is taken off, which a profile counts by themselves.

use syscalls::Sysno;

use super::mix::{Mix, resembles};
use super::operation::Operation;

/// Of the child as well.
pub const CALLS_OF_FORK: [Sysno; 3] = [Sysno::clone, Sysno::exit_group, Sysno::wait4];

/// The calls of one `fork`.
pub fn fork_calls() -> Mix {
    Mix::of_calls(CALLS_OF_FORK.iter().map(|call| (*call as u64, 1.0)).collect())
}

/// Whether it starts a process or a thread.
fn is_fork(call: &str) -> bool {
    matches!(call, "clone" | "clone3" | "fork" | "vfork")
}

fn is_exec(call: &str) -> bool {
    matches!(call, "execve" | "execveat")
}

/// Whether the call has a price of its own here.
pub fn is_start(call: &str) -> bool {
    is_fork(call) || is_exec(call)
}

/// By [`Operation::ALL`], per system call of the mix: what such calls cost beyond what the short operations
/// tell that they are most like. `exec` are the calls of one `exec`.
pub fn beyond_their_likes(mix: &Mix, exec: &Mix) -> Vec<f64> {
    let (fork, exec) = (fork(), execve(exec));
    let mut weights = vec![0.0; Operation::ALL.len()];
    for (call, share) in mix.by_name().filter(|(call, _)| is_start(call)) {
        add(&mut weights, if is_fork(call) { &fork } else { &exec }, share);
        add(&mut weights, &like(call), -share);
    }
    weights
}

/// The price of a call by the operation that it is like.
fn like(call: &str) -> Vec<f64> {
    let operation = resembles(call);
    let mut weights = vec![0.0; Operation::ALL.len()];
    weights[operation as usize] = 1.0 / operation.calls().len() as f64;
    weights
}

/// The end of the child and the wait for it are calls by themselves.
fn fork() -> Vec<f64> {
    let mut weights = vec![0.0; Operation::ALL.len()];
    weights[Operation::Fork as usize] = 1.0;
    let others = CALLS_OF_FORK.iter().map(|call| call.name()).filter(|call| !is_fork(call));
    others.for_each(|call| add(&mut weights, &like(call), -1.0));
    weights
}

fn execve(exec: &Mix) -> Vec<f64> {
    let mut weights = vec![0.0; Operation::ALL.len()];
    weights[Operation::Exec as usize] = 1.0;
    for (call, count) in exec.by_name().filter(|(call, _)| !is_exec(call)) {
        let price = if is_fork(call) { fork() } else { like(call) };
        add(&mut weights, &price, -count);
    }
    weights
}

fn add(weights: &mut [f64], other: &[f64], times: f64) {
    weights.iter_mut().zip(other).for_each(|(weight, other)| *weight += times * other);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use syscalls::Sysno;

    use super::*;

    fn mix(calls: &[(Sysno, f64)]) -> Mix {
        Mix::of_calls(
            calls.iter().map(|(call, count)| (*call as u64, *count)).collect::<BTreeMap<_, _>>(),
        )
    }

    #[test]
    fn a_program_that_is_started_pays_what_was_measured_of_that() {
        let exec = mix(&[
            (Sysno::clone, 1.0),
            (Sysno::execve, 1.0),
            (Sysno::openat, 2.0),
            (Sysno::exit_group, 1.0),
            (Sysno::wait4, 1.0),
        ]);
        // By operation, of prices that a rule set may have: of one exec, everything.
        let prices = [1.0, 1.0, 3.0, 8.0, 12.0, 7.0, 60.0];
        let cost =
            |weights: &[f64]| -> f64 { prices.iter().zip(weights).map(|(p, w)| p * w).sum() };
        let of = |mix: &Mix| cost(&mix.weights()) + cost(&beyond_their_likes(mix, &exec));
        assert!((of(&exec) - 60.0).abs() < 1e-9, "the calls of one exec cost one: {}", of(&exec));
        assert!((of(&fork_calls()) - 7.0).abs() < 1e-9, "{}", of(&fork_calls()));
    }

    #[test]
    fn a_program_that_starts_nothing_pays_nothing_for_it() {
        let weights = beyond_their_likes(&Mix::plain(), &mix(&[(Sysno::execve, 1.0)]));
        assert!(weights.iter().all(|weight| *weight == 0.0));
    }
}
