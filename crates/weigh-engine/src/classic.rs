//! Durations and passes of the original of a suite (`--classic`).

use super::work::Work;
use weigh_model::workload::suite::Member;

/// UnixBench's `-i` default for its short tests, where a suite says nothing.
pub fn classic_passes(work: &Work) -> usize {
    member(work).and_then(|member| member.classic_passes).unwrap_or(3)
}

pub fn classic_ms(work: &Work) -> u64 {
    member(work).and_then(|member| member.classic_seconds).unwrap_or(10) * 1000
}

fn member(work: &Work) -> Option<&Member> {
    match work {
        Work::Builtin { member, .. } => member.as_ref(),
        Work::Interpreted(_)
        | Work::Command { .. }
        | Work::CommandComparison { .. }
        | Work::Load(_)
        | Work::Net(_) => None,
    }
}
