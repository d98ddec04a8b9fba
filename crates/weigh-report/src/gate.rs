//! Result of a CI job's gate, in a sentence.

use weigh_model::format;
use weigh_model::format::quoted;
use weigh_model::result::gate::Above;
use weigh_model::result::summary::Summary;
use weigh_model::result::versus::WORK;

/// The result in a sentence; `None` where there was no limit.
pub fn sentence(s: &Summary) -> Option<String> {
    let gate = s.gate.as_ref()?;
    let (limit, confidence) = (format::margin(gate.fail_above_pct), format::confidence(s.alpha));
    if gate.passed {
        return Some(format!("PASS: every row costs less than {limit} ({confidence} confidence)."));
    }
    let name = |row: &Above| match row.workload.name == WORK {
        true => quoted(&row.treatment),
        false => format!("{} under {}", quoted(&row.workload), quoted(&row.treatment)),
    };
    let names = |rows: &[Above]| rows.iter().map(name).collect::<Vec<_>>().join(", ");
    Some(match &gate.above[..] {
        [] if gate.open.is_empty() => {
            format!(
                "UNDECIDED: a row has no result, so not every row is shown to cost less than {limit}."
            )
        }
        [] => format!(
            "UNDECIDED: not shown to cost less than {limit}: {}. Use a longer --budget, or --continue {}.",
            names(&gate.open),
            s.id
        ),
        [one] => {
            format!("FAIL: {} costs more than {limit} ({confidence} confidence).", name(one))
        }
        above => format!(
            "FAIL: these rows cost more than {limit} ({confidence} confidence): {}.",
            names(above)
        ),
    })
}
