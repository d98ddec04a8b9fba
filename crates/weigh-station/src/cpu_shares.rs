//! CPUs of their own for servers and for who asks them, where there are enough: what the client takes is then
//! not taken from what is weighed.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity};

use weigh_model::cpu_share::cpus_of;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::allowed_cpus::AllowedCpus;

/// With fewer, either would have less than it needs.
const ENOUGH: usize = 4;

/// Half of the CPUs each.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuShares {
    servers: Vec<usize>,
    clients: Vec<usize>,
}

impl CpuShares {
    /// Splits the CPUs that this process may use, by whole cores. Returns `None` if there are too
    /// few CPUs, or if an arm sets the CPUs of its processes itself.
    pub fn here(arms: &[Setup]) -> Option<CpuShares> {
        if arms.iter().any(|setup| setup.get::<AllowedCpus>().is_some()) {
            return None;
        }
        let allowed = sched_getaffinity(None).ok()?;
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        let core = |cpu| {
            let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            let siblings = fs::read_to_string(file).ok().and_then(|list| cpus_of(list.trim()));
            siblings.map_or(cpu, |cpus| cpus[0])
        };
        CpuShares::of(cpus.map(|cpu| (core(cpu), cpu)).collect())
    }

    /// Splits CPUs into shares; each CPU is preceded by the first CPU of its core.
    fn of(mut cpus: Vec<(usize, usize)>) -> Option<CpuShares> {
        if cpus.len() < ENOUGH {
            return None;
        }
        cpus.sort_unstable();
        let half = cpus.len() / 2;
        // Threads of one core are no two CPUs.
        let cut = (half..cpus.len()).find(|cut| cpus[*cut].0 != cpus[*cut - 1].0)?;
        let numbers = |of: &[(usize, usize)]| of.iter().map(|(_, cpu)| *cpu).collect();
        let (servers, clients) = (numbers(&cpus[..cut]), numbers(&cpus[cut..]));
        Some(CpuShares { servers, clients })
    }

    /// Restricts a setup to the CPUs of the servers, if it is of a server launcher, or else to the
    /// CPUs of the clients.
    pub fn kept(&self, setup: Setup, is_of_servers: bool) -> Setup {
        let cpus = if is_of_servers { &self.servers } else { &self.clients };
        setup.with(AllowedCpus { cpus: cpus.clone() })
    }

    /// For the report.
    pub fn sentence(&self) -> String {
        let list = |cpus: &[usize]| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        format!(
            "The servers are bound to the CPUs {}, the clients to the CPUs {}.",
            list(&self.servers),
            list(&self.clients)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(cores: &[usize]) -> Option<(Vec<usize>, Vec<usize>)> {
        let cpus = cores.iter().enumerate().map(|(cpu, core)| (*core, cpu)).collect();
        CpuShares::of(cpus).map(|shares| (shares.servers, shares.clients))
    }

    #[test]
    fn each_has_half_of_the_cores() {
        assert_eq!(shares(&[0, 1, 2, 3]), Some((vec![0, 1], vec![2, 3])));
        assert_eq!(shares(&[0, 1, 0, 1]), Some((vec![0, 2], vec![1, 3])));
        assert_eq!(shares(&[0, 0, 1, 1, 2, 2]), Some((vec![0, 1, 2, 3], vec![4, 5])));
        assert_eq!(shares(&[0, 1, 2, 3, 4]), Some((vec![0, 1], vec![2, 3, 4])));
        for few in [&[][..], &[0], &[0, 1, 2], &[0, 0, 0, 0]] {
            assert_eq!(shares(few), None, "{few:?}");
        }
    }

    #[test]
    fn an_arm_that_chooses_its_cpus_keeps_them() {
        let chosen = Setup::default().with(AllowedCpus { cpus: vec![0] });
        assert_eq!(CpuShares::here(&[Setup::default(), chosen]), None);
    }
}
