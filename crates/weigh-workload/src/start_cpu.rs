//! The CPU on which the processes of a pair's two samples begin, and the gate where they meet.
//!
//! Left alone, a process begins where the kernel last woke it up, and that depends on what was done to it
//! before. A process that was moved into a control group waits for that, and wakes up on an idle CPU; the
//! baseline's does not. Beside one busy process `fork` was 30 to 99 % "faster" for that reason alone.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use super::gate::Gate;

/// Where a worker begins. Both samples of a pair draw the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartCpu {
    /// Decides which of the CPUs it is.
    pub chance: u64,
    /// The CPUs that both arms may use; empty for all that the launcher may use.
    pub among: Vec<usize>,
    /// Where the worker, with all that it starts, may run from then on.
    pub then: Range,
    /// Where it waits for the other command of its pair, if both run at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// True if its CPU use is counted although it meets nobody at a gate.
    #[serde(default)]
    pub counts_cpu: bool,
}

/// How far a worker may go from the CPU on which it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Range {
    /// It stays there.
    ThatCpu,
    /// To CPUs that are equally fast. A pair whose samples ran on different kinds would compare these.
    ThatKind,
    /// To all that its arm may use.
    All,
}

impl StartCpu {
    /// Returns true if the worker has to be held when it has executed its program: to wait for the other one,
    /// or to have its CPU use counted from then on.
    pub fn holds(&self) -> bool {
        self.counts_cpu || self.gate.is_some()
    }

    /// The CPUs that a worker which begins on `cpu` may use from then on, of these. `kinds` are those of a
    /// machine with CPUs that are not equally fast.
    pub fn range(&self, cpu: usize, allowed: &[usize], kinds: &[Vec<usize>]) -> Vec<usize> {
        let kind = kinds.iter().find(|kind| kind.contains(&cpu));
        let is_near = |other: &&usize| match self.then {
            Range::ThatCpu => **other == cpu,
            Range::ThatKind => kind.is_none_or(|kind| kind.contains(other)),
            Range::All => true,
        };
        allowed.iter().filter(is_near).copied().collect()
    }

    /// The CPU, for a launcher that may use these; `None` if it may use none of those that are drawn from.
    pub fn choose(&self, allowed: &[usize]) -> Option<usize> {
        let is_open = |cpu: &&usize| self.among.is_empty() || self.among.contains(cpu);
        let cpus: Vec<usize> = allowed.iter().filter(is_open).copied().collect();
        let number = self.chance.checked_rem(cpus.len() as u64)?;
        cpus.get(usize::try_from(number).ok()?).copied()
    }
}

pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect())
}

pub fn keep_to_cpus(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn both_arms_draw_one_cpu_of_those_that_both_may_use() {
        let drawn = |chance, among: &[usize], allowed: &[usize]| {
            let among = among.to_vec();
            StartCpu { chance, among, then: Range::ThatCpu, gate: None, counts_cpu: false }
                .choose(allowed)
        };
        assert_eq!(
            [4, 5, 6].map(|chance| drawn(chance, &[], &[1, 3])),
            [Some(1), Some(3), Some(1)]
        );
        assert_eq!([0, 1].map(|chance| drawn(chance, &[3, 7], &[1, 3])), [Some(3); 2]);
        assert_eq!(drawn(0, &[7], &[1, 3]), None, "as if it were not drawn");
        let mut counts: BTreeMap<Option<usize>, u64> = BTreeMap::new();
        (0..1000)
            .for_each(|chance| *counts.entry(drawn(chance, &[], &[0, 2, 5])).or_default() += 1);
        assert!(counts.values().all(|count| (333..=334).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_worker_stays_on_cpus_as_fast_as_the_one_it_began_on() {
        let range = |then, cpu, kinds: &[Vec<usize>]| {
            let start =
                StartCpu { chance: 0, among: Vec::new(), then, gate: None, counts_cpu: false };
            start.range(cpu, &[1, 2, 3, 4], kinds)
        };
        let kinds = [vec![0, 1, 2], vec![3, 4, 5]];
        assert_eq!(range(Range::ThatKind, 2, &kinds), [1, 2]);
        assert_eq!(range(Range::ThatKind, 4, &kinds), [3, 4]);
        assert_eq!(range(Range::ThatKind, 4, &[]), [1, 2, 3, 4]);
        assert_eq!(range(Range::ThatCpu, 4, &kinds), [4]);
        assert_eq!(range(Range::All, 4, &kinds), [1, 2, 3, 4]);
    }
}
