//! Mix of operations that makes an average system call. Without a profile, a plain mix stands for
//! the many cheap and the few expensive calls of an ordinary program.

use std::collections::BTreeMap;

use super::operation::{CALLS_OF_FORK, Operation};
use linux_audit::rule_fields::Decoded;
use linux_audit::rule_kind::RuleKind;
use syscalls::Sysno;
use weigh_model::profile::SyscallProfile;

/// By [`Operation::SHORT`]: of a hundred system calls.
const PLAIN_PCT: [f64; 5] = [60.0, 25.0, 8.0, 6.0, 1.0];

/// System calls by name, and how many of each.
#[derive(Clone)]
pub struct Mix {
    pub phrase: String,
    calls: Vec<(String, f64)>,
}

impl Mix {
    /// Returns the mix for use without a profile.
    pub fn plain() -> Mix {
        let mut calls = Vec::new();
        for (operation, pct) in Operation::SHORT.iter().zip(PLAIN_PCT) {
            let of_operation = operation.calls();
            let share = pct / 100.0 / of_operation.len() as f64;
            calls.extend(of_operation.iter().map(|call| (call.name().to_owned(), share)));
        }
        let phrase =
            "a plain mix: per 100 system calls 60 like getppid, 25 reads, 8 stats, 6 to open and close, \
             1 to create or remove"
                .into();
        Mix { phrase, calls }
    }

    /// Builds the mix of calls by number; calls without a name are left out.
    pub fn of_calls(counts: BTreeMap<u64, f64>) -> Mix {
        let name = |number: &u64| Some(Sysno::new(*number as usize)?.name().to_owned());
        let named = counts.iter().filter_map(|(number, count)| Some((name(number)?, *count)));
        Mix { phrase: String::new(), calls: named.collect() }
    }

    /// Returns the mix without some calls. The remaining parts still refer to a system call of the
    /// whole.
    pub fn without(&self, is_left_out: impl Fn(&str) -> bool) -> Mix {
        let calls = self.calls.iter().filter(|(name, _)| !is_left_out(name)).cloned();
        Mix { phrase: self.phrase.clone(), calls: calls.collect() }
    }

    /// By name, how many of each.
    pub fn by_name(&self) -> impl Iterator<Item = (&str, f64)> {
        self.calls.iter().map(|(name, share)| (name.as_str(), *share))
    }

    /// How many system calls the shares add up to.
    pub fn calls(&self) -> f64 {
        self.calls.iter().map(|(_, share)| share).sum()
    }

    pub fn of_profile(profile: &SyscallProfile) -> Mix {
        let all = profile.calls.values().sum::<u64>().max(1) as f64;
        let calls = profile.calls.iter().map(|(name, count)| (name.clone(), *count as f64 / all));
        Mix { phrase: profile.title(), calls: calls.collect() }
    }

    /// The calls that a program makes most, for which an exemption may be worth its price.
    pub fn hot_calls(&self) -> Vec<(&str, u32)> {
        const OFTEN: f64 = 0.1;
        let often = self.calls.iter().filter(|(_, share)| *share > OFTEN);
        // In the plain mix getppid stands for others.
        let named = often.filter(|(name, _)| name != "getppid");
        named
            .filter_map(|(name, _)| Some((name.as_str(), name.parse::<Sysno>().ok()? as u32)))
            .collect()
    }

    /// Operations per system call, where every call costs what one of the operation does that it is
    /// most like.
    pub fn weights(&self) -> Vec<f64> {
        let mut weights = vec![0.0; Operation::SHORT.len()];
        for (name, share) in &self.calls {
            let operation = resembles(name);
            weights[operation as usize] += share / operation.calls().len() as f64;
        }
        weights
    }

    /// Returns the weights for one rule. A rule may concern a call but not the most similar
    /// operation, or the reverse. Then the calls of another operation show its cost.
    pub fn weights_for(&self, rule: &Decoded) -> Vec<f64> {
        let mut weights = vec![0.0; Operation::SHORT.len()];
        for (name, share) in &self.calls {
            let like = resembles(name);
            let kind_of = |call: Sysno| rule.kind_for(call.id() as u32);
            let Some(kind) = name.parse().ok().map(kind_of) else {
                weights[like as usize] += share / like.calls().len() as f64;
                continue;
            };
            let alike = |operation: &Operation| {
                operation.calls().iter().filter(|call| kind_of(**call) == kind).count()
            };
            let all = |operation: &Operation| operation.calls().len();
            let candidates = || std::iter::once(like).chain(Operation::SHORT);
            let found = candidates()
                .find(|operation| alike(operation) == all(operation))
                .or_else(|| candidates().find(|operation| alike(operation) > 0))
                // Nothing that was measured has this price; its like comes nearest.
                .unwrap_or(like);
            let same = alike(&found);
            if same == 0 {
                weights[found as usize] += share / all(&found) as f64;
                continue;
            }
            weights[found as usize] += share / same as f64;
            // Without the operation's other calls, which the rule does not concern.
            if same < all(&found) && kind_of(Sysno::getppid) == RuleKind::OtherSyscalls {
                let rest = (all(&found) - same) as f64 / same as f64;
                weights[Operation::Getppid as usize] -= share * rest;
            }
        }
        weights
    }

    /// Returns true if no operation shows this rule's cost for one of the calls.
    pub fn has_gap(&self, rule: &Decoded) -> bool {
        let kind_of = |call: Sysno| rule.kind_for(call.id() as u32);
        self.calls.iter().filter_map(|(name, _)| name.parse().ok()).map(kind_of).any(|kind| {
            let mut measured = Operation::SHORT.iter().flat_map(|o| o.calls());
            matches!(kind, RuleKind::Fields { .. }) && !measured.any(|call| kind_of(*call) == kind)
        })
    }
}

/// The operation whose calls take the kernel the same way as this one.
pub fn resembles(call: &str) -> Operation {
    match call {
        "unlink" | "unlinkat" | "rename" | "renameat" | "renameat2" | "mkdir" | "mkdirat"
        | "rmdir" | "link" | "linkat" | "symlink" | "symlinkat" | "mknod" | "mknodat" | "creat" => {
            Operation::CreateUnlink
        }
        "open" | "openat" | "openat2" | "open_by_handle_at" | "close" => Operation::OpenClose,
        "stat" | "lstat" | "newfstatat" | "fstatat" | "statx" | "access" | "faccessat"
        | "faccessat2" | "readlink" | "readlinkat" | "chmod" | "fchmodat" | "chown" | "lchown"
        | "fchownat" | "truncate" | "chdir" | "chroot" | "statfs" | "utime" | "utimes"
        | "futimesat" | "utimensat" | "setxattr" | "lsetxattr" | "getxattr" | "lgetxattr"
        | "listxattr" | "llistxattr" | "removexattr" | "lremovexattr" | "mount" | "umount2"
        | "pivot_root" | "swapon" | "swapoff" | "acct" | "inotify_add_watch" | "execve"
        | "execveat" => Operation::Stat,
        "read" | "pread64" | "readv" | "preadv" | "preadv2" | "write" | "pwrite64" | "writev"
        | "pwritev" | "pwritev2" | "recvfrom" | "recvmsg" | "sendto" | "sendmsg" | "getdents"
        | "getdents64" | "copy_file_range" | "sendfile" => Operation::Read,
        _ => Operation::Getppid,
    }
}

/// The operation that a rule's matches are most like: the most expensive of those that its calls resemble.
pub fn matches_like(rule: &Decoded) -> Operation {
    let is_watch = |name: &str| matches!(name, "path" | "dir" | "inode");
    if rule.syscalls.is_all() {
        let watches = rule.fields.iter().any(|field| is_watch(field.name));
        return if watches { Operation::OpenClose } else { Operation::Getppid };
    }
    let calls = (0..512).filter(|number| rule.syscalls.contains(*number));
    let names = calls.filter_map(|number| Some(Sysno::new(number as usize)?.name()));
    let like = names.map(|name| match name {
        "execve" | "execveat" => Operation::Exec,
        "clone" | "clone3" | "fork" | "vfork" => Operation::Fork,
        other => resembles(other),
    });
    like.max_by_key(|operation| *operation as usize).unwrap_or(Operation::Getppid)
}

pub fn fork_calls() -> Mix {
    Mix::of_calls(CALLS_OF_FORK.iter().map(|call| (*call as u64, 1.0)).collect())
}

/// Returns true if the call starts a process or a thread.
fn is_fork(call: &str) -> bool {
    matches!(call, "clone" | "clone3" | "fork" | "vfork")
}

fn is_exec(call: &str) -> bool {
    matches!(call, "execve" | "execveat")
}

/// Returns true if the call has a price of its own here.
pub fn is_start(call: &str) -> bool {
    is_fork(call) || is_exec(call)
}

/// By [`Operation::ALL`], per system call of the mix: what calls that start a process or a program cost
/// beyond what the short operations tell that they are most like. `exec` are the calls of one `exec`.
///
/// Single rules are measured on short operations only, so a line prices `execve` as a `stat`, and `clone` as
/// a `getppid`. What all rules together cost is measured on whole processes as well: of these, what their
/// other calls cost is taken off, which a profile counts by themselves.
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
    use super::*;
    use linux_audit::rule::Rule;

    fn profile(calls: &[(&str, u64)]) -> SyscallProfile {
        SyscallProfile {
            command: vec!["server".into()],
            calls: calls.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            ..SyscallProfile::default()
        }
    }

    fn sum_of_calls(weights: &[f64]) -> f64 {
        Operation::SHORT.iter().zip(weights).map(|(o, w)| w * o.calls().len() as f64).sum()
    }

    #[test]
    fn the_plain_mix_is_one_system_call() {
        let mix = Mix::plain();
        assert!((sum_of_calls(&mix.weights()) - 1.0).abs() < 1e-9);
        let everything = Rule::always_exit(1, "k").decode();
        let weights = mix.weights_for(&everything);
        assert!((sum_of_calls(&weights) - 1.0).abs() < 1e-9, "{weights:?}");
    }

    #[test]
    fn a_call_is_priced_by_an_operation_that_the_rule_treats_alike() {
        let profile = profile(&[("pread64", 30), ("read", 10)]);
        let mix = Mix::of_profile(&profile);
        assert_eq!(mix.weights()[Operation::Read as usize], 1.0);
        // A rule for read alone: what it costs pread is what it costs getppid.
        let rule = Rule::always_exit_of(&[Sysno::read as u32], 7).decode();
        let weights = mix.weights_for(&rule);
        assert_eq!(weights[Operation::Read as usize], 0.25);
        assert_eq!(weights[Operation::Getppid as usize], 0.75);
        // A rule for pread alone: nothing that was measured tells.
        assert!(mix.has_gap(&Rule::always_exit_of(&[Sysno::pread64 as u32], 7).decode()));
    }

    #[test]
    fn what_a_rule_costs_the_plain_mix_is_what_was_measured_of_it() {
        let mix = Mix::plain();
        let rule = Rule::always_exit_of(&[Sysno::openat as u32], 7).decode();
        // Of the price of a call that it is about and of any other.
        let cost = |operation: &Operation| -> f64 {
            let of_call = |call: &Sysno| if *call == Sysno::openat { 200.0 } else { 6.0 };
            operation.calls().iter().map(of_call).sum()
        };
        let total = |weights: Vec<f64>| -> f64 {
            Operation::SHORT.iter().zip(weights).map(|(o, weight)| weight * cost(o)).sum()
        };
        assert!((total(mix.weights_for(&rule)) - total(mix.weights())).abs() < 1.0);
    }

    #[test]
    fn a_part_of_an_operation_is_priced_without_the_rest() {
        let profile = profile(&[("openat", 1)]);
        let rule = Rule::always_exit_of(&[Sysno::openat as u32], 7).decode();
        let weights = Mix::of_profile(&profile).weights_for(&rule);
        assert_eq!(weights[Operation::OpenClose as usize], 1.0);
        assert_eq!(weights[Operation::Getppid as usize], -1.0);
    }

    fn mix_of(calls: &[(Sysno, f64)]) -> Mix {
        Mix::of_calls(calls.iter().map(|(call, count)| (*call as u64, *count)).collect())
    }

    #[test]
    fn a_program_that_is_started_pays_what_was_measured_of_that() {
        let exec = mix_of(&[
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
        let weights = beyond_their_likes(&Mix::plain(), &mix_of(&[(Sysno::execve, 1.0)]));
        assert!(weights.iter().all(|weight| *weight == 0.0));
    }
}
