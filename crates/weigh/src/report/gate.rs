//! What became of the gate of a CI job, in a sentence.

use crate::format::{self, quoted};
use crate::result::gate::Above;
use crate::result::summary::Summary;
use crate::result::versus::WORK;

/// The result in a sentence; `None` where there was no limit.
pub fn sentence(s: &Summary) -> Option<String> {
    let gate = s.gate.as_ref()?;
    let limit = format::margin(gate.fail_above_pct);
    if gate.passed {
        return Some(format!("Gate passed: no row is shown to cost more than {limit}."));
    }
    let name = |row: &Above| match row.workload.name == WORK {
        true => quoted(&row.treatment),
        false => format!("{} under {}", quoted(&row.workload), quoted(&row.treatment)),
    };
    let names: Vec<String> = gate.above.iter().map(name).collect();
    Some(format!("Gate failed: shown to cost more than {limit}: {}.", names.join(", ")))
}
