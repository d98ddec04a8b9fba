//! The design of a stored experiment: what its judgements promise.

use super::effects;
use paired::design::Design;
use weigh_model::record::Stored;
use weigh_verdict::family;

/// The design that an experiment was made with.
pub fn design(stored: &Stored) -> Design {
    Design {
        alpha: stored.header.alpha,
        margin: stored.header.margin.ln_1p(),
        fixed_pairs: stored.header.fixed_pairs,
        multiplicity: stored.header.multiplicity,
        planned_pairs: stored.header.planned_pairs,
        rows: family::weight(
            stored.planned_rows(),
            &stored.header.metrics,
            stored.header.fixed_pairs.is_some(),
            effects::claims(&stored.header.arms, stored.header.works.len()),
        ),
    }
}
