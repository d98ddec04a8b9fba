//! Where the two samples of a pair begin: on one CPU, which both arms may use.

use super::arms::Arms;
use weigh_model::ids::ArmId;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::allowed_cpus::AllowedCpus;
use weigh_workload::setup::kind::control_group::ControlGroup;
use weigh_workload::start_cpu::{Range, StartCpu};

impl Arms<'_> {
    /// How the worker of `own` begins, for a pair with the arm `other`. `chance` is the pair's, and `wanted`
    /// is how far the workload may go.
    ///
    /// The worker may go anywhere if a treatment of the pair says on which CPUs it runs: that is its effect.
    /// The shares of servers and clients are none. It is not kept to one CPU if other processes of its arm
    /// run beside it, which are not kept there.
    pub fn start(&self, own: ArmId, other: ArmId, chance: u64, wanted: Range) -> StartCpu {
        let arms = [own, other];
        let [own_cpus, others_cpus] = arms.map(|arm| cpus_of(self.setup(arm)));
        let is_free = arms.iter().all(|arm| cpus_of(self.setup_of_treatment(*arm)).is_empty());
        let are_alone = !arms.iter().any(|arm| self.has_members(*arm));
        let then = range(wanted, is_free, are_alone);
        StartCpu {
            chance,
            among: common(own_cpus, others_cpus),
            then,
            gate: None,
            counts_cpu: false,
        }
    }
}

fn range(wanted: Range, is_free: bool, are_alone: bool) -> Range {
    match wanted {
        _ if !is_free => Range::All,
        Range::ThatCpu if !are_alone => Range::ThatKind,
        wanted => wanted,
    }
}

/// The CPUs that a set-up keeps a worker to; empty if it leaves that as it is.
fn cpus_of(setup: &Setup) -> &[usize] {
    let by_affinity = setup.get::<AllowedCpus>().map(|step| &*step.cpus);
    let by_group = setup.get::<ControlGroup>().map(|step| &*step.cpus);
    by_affinity.filter(|cpus| !cpus.is_empty()).or(by_group).unwrap_or_default()
}

/// The CPUs that both arms may use. Two arms without a common CPU each begin on one of their own.
fn common(own: &[usize], others: &[usize]) -> Vec<usize> {
    if own.is_empty() {
        return others.to_vec();
    }
    let both: Vec<usize> = own.iter().filter(|cpu| others.contains(cpu)).copied().collect();
    if both.is_empty() { own.to_vec() } else { both }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_that_are_drawn_from_are_those_of_both_arms() {
        assert_eq!(common(&[], &[]), [0_usize; 0]);
        assert_eq!((common(&[1], &[]), common(&[], &[1])), (vec![1], vec![1]));
        assert_eq!((common(&[0, 1, 2], &[1, 2, 3]), common(&[1, 2, 3], &[0, 1, 2])), {
            (vec![1, 2], vec![1, 2])
        });
        assert_eq!((common(&[0], &[1]), common(&[1], &[0])), (vec![0], vec![1]));
    }

    #[test]
    fn only_a_treatment_that_chooses_cpus_lets_a_worker_go_to_all_of_them() {
        let of = |is_free, are_alone| {
            [Range::ThatCpu, Range::ThatKind, Range::All].map(|one| range(one, is_free, are_alone))
        };
        assert_eq!(of(false, true), [Range::All; 3]);
        assert_eq!(of(true, true), [Range::ThatCpu, Range::ThatKind, Range::All]);
        assert_eq!(of(true, false), [Range::ThatKind, Range::ThatKind, Range::All]);
    }

    #[test]
    fn a_set_up_keeps_a_worker_to_its_list_or_to_that_of_its_group() {
        let list = |cpus: &[usize]| AllowedCpus { cpus: cpus.to_vec() };
        let group = ControlGroup { directories: Vec::new(), cpus: vec![3] };
        assert!(cpus_of(&Setup::default().with(list(&[]))).is_empty());
        assert_eq!(cpus_of(&Setup::default().with(list(&[])).with(group.clone())), [3]);
        assert_eq!(cpus_of(&Setup::default().with(list(&[1])).with(group)), [1]);
    }
}
