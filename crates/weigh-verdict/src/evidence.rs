//! Evidence that a treatment produced besides the change of a rate: per operation, and in total.

use super::pairs::Measurements;
use weigh_model::evidence::Evidence;
use weigh_model::record::{Startup, Stored};
use weigh_model::result::quantity::{
    Amount, Amounts, EvidenceQuantity, QuantityKind, QuantityUnit,
};
use weigh_model::result::summary::RowEvidence;
use weigh_model::samples::Totals;

/// Returns the evidence that the row's treated samples produced, as the treatment declares it.
pub fn of_row(stored: &Stored, measurements: &Measurements) -> RowEvidence {
    let startup = stored
        .startups
        .iter()
        .find(|startup| (startup.work, startup.arm) == (measurements.work, measurements.arm));
    let quantities = &stored.quantities[measurements.arm];
    let mut amounts = account(quantities, measurements.totals, startup);
    let started = startup.map(|startup| &startup.evidence);
    let texts = measurements.totals.evidence.amounts.texts();
    texts.for_each(|(name, text)| amounts.set(name, text));
    let why = started.and_then(Evidence::why_not_counted);
    if let Some(why) = why.filter(|_| amounts.get(Evidence::NOT_COUNTED).is_none()) {
        amounts.set(Evidence::NOT_COUNTED, why);
    }
    let is_stored = |quantity: &EvidenceQuantity| {
        let is_made = (quantity.unit, quantity.kind) == (QuantityUnit::Bytes, QuantityKind::Made);
        is_made && amounts.get(&quantity.name).is_some()
    };
    RowEvidence {
        syscalls_per_op: stored.header.works[measurements.work].syscalls_per_op,
        treated_s: quantities.iter().any(is_stored).then_some(measurements.totals.elapsed_s),
        amounts,
    }
}

/// Per operation and in total.
fn account(quantities: &[EvidenceQuantity], totals: &Totals, startup: Option<&Startup>) -> Amounts {
    let started = startup.map(|startup| &startup.evidence.amounts);
    let produced = &totals.evidence.amounts;
    let sums = Sums {
        launches: totals.launches as f64,
        operations: totals.total_operations,
        startup_operations: startup.map_or(0.0, |startup| startup.operations),
    };
    // A start is not the same to the record every time: less than one record per launch is nothing.
    let is_noise = |quantity: &EvidenceQuantity| {
        let name = quantity.of.as_ref().unwrap_or(&quantity.name);
        let at_startup = started.and_then(|started| started.number(name));
        let besides = produced.number(name).map(|total| sums.besides(total, at_startup));
        started.is_some() && besides.is_some_and(|besides| besides < sums.launches)
    };
    let per_op = |quantity: &EvidenceQuantity| {
        let at_startup = started.map(|started| started.number(&quantity.name));
        // What a start makes is not nothing where it was not counted.
        if at_startup == Some(None) {
            return None;
        }
        let total = produced.number(&quantity.name)?;
        let per_op = sums.per_operation(total, at_startup.flatten())?;
        Some(if is_noise(quantity) { 0.0 } else { per_op })
    };
    let mut amounts = Amounts::default();
    for quantity in quantities {
        let name = &*quantity.name;
        let scale = if quantity.unit == QuantityUnit::Seconds { 1e9 } else { 1.0 };
        match quantity.kind {
            QuantityKind::Made => {
                if let Some(per_op) = per_op(quantity) {
                    amounts.set(quantity.per_op(), per_op * scale);
                    amounts.set(name, of_timed(quantity, per_op * totals.operations));
                }
            }
            QuantityKind::Spent => {
                let per_op = per_op(quantity);
                per_op.into_iter().for_each(|it| amounts.set(quantity.per_op(), it * scale));
                produced.get(name).into_iter().for_each(|it| amounts.set(name, it.clone()));
            }
            QuantityKind::Waited => {
                if let Some(total) = produced.number(name) {
                    amounts.set(name, total);
                    amounts.set(quantity.per_op(), total * scale / totals.total_operations);
                }
            }
            QuantityKind::Lost => {
                produced.get(name).into_iter().for_each(|it| amounts.set(name, it.clone()));
                let arrived = quantity.of.as_ref().and_then(|of| produced.number(of));
                let pct = lost_pct(produced.number(name), arrived);
                pct.into_iter().for_each(|pct| amounts.set(quantity.pct(), pct));
            }
            QuantityKind::Arrived => {}
        }
    }
    amounts
}

/// Converts a total to an amount; counts and bytes are whole numbers.
fn of_timed(quantity: &EvidenceQuantity, total: f64) -> Amount {
    match quantity.unit {
        QuantityUnit::Count | QuantityUnit::Bytes => (total as u64).into(),
        QuantityUnit::Seconds => total.into(),
    }
}

/// Returns the least share of all items due, from any source, that was dropped, in per cent. If the
/// first audit record of a system call finds no room, the kernel counts one record as lost and
/// makes no others (kernel/auditsc.c, `audit_log_exit`).
fn lost_pct(lost: Option<f64>, arrived: Option<f64>) -> Option<f64> {
    let lost = lost.filter(|lost| *lost > 0.0)?;
    Some(100.0 * lost / (lost + arrived?))
}

/// Launches of a workload, and the operations of one that does next to none.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    pub launches: f64,
    /// Operations of all launches, with warm-up and calibration.
    pub operations: f64,
    pub startup_operations: f64,
}

impl Sums {
    fn besides(&self, total: f64, at_startup: Option<f64>) -> f64 {
        total - self.launches * at_startup.unwrap_or(0.0)
    }

    /// Returns the amount that an operation produced. A launch makes s besides its operations, and
    /// a launch of few operations shows s. So Σr = n·s + p·Σops and r₁ = s + p·ops₁ give p = (Σr −
    /// n·r₁) / (Σops − n·ops₁).
    pub fn per_operation(&self, total: f64, at_startup: Option<f64>) -> Option<f64> {
        let rest = self.operations - self.launches * self.startup_operations;
        (rest > 0.0).then(|| (self.besides(total, at_startup) / rest).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::ids::{ArmId, WorkId};

    #[test]
    fn the_least_share_lost_is_of_those_counted_and_those_that_arrived() {
        assert_eq!(lost_pct(Some(30.0), Some(10.0)), Some(75.0));
        assert_eq!(lost_pct(Some(1.0), Some(0.0)), Some(100.0));
        assert_eq!((lost_pct(Some(0.0), Some(10.0)), lost_pct(Some(1.0), None)), (None, None));
    }

    #[test]
    fn what_a_start_produces_is_taken_off() {
        let sums = Sums { launches: 2.0, operations: 202.0, startup_operations: 1.0 };
        // Each launch makes 50 besides 3 per operation.
        assert_eq!(sums.per_operation(2.0 * 50.0 + 3.0 * 202.0, Some(53.0)), Some(3.0));
        assert_eq!(sums.per_operation(0.0, Some(53.0)), Some(0.0));
        assert_eq!(Sums { operations: 2.0, ..sums }.per_operation(9.0, None), None);
    }

    /// Checks the evidence of a treatment that nothing here knows.
    #[test]
    fn whatever_a_treatment_declares_is_accounted_for_by_its_kind() {
        let new = |name, unit, kind, of| EvidenceQuantity::new(name, "lookups", unit, kind, of);
        let quantities = [
            new("lookups", QuantityUnit::Count, QuantityKind::Made, None),
            new("helper_s", QuantityUnit::Seconds, QuantityKind::Spent, Some("lookups")),
            new("queue_s", QuantityUnit::Seconds, QuantityKind::Waited, None),
            new("missed", QuantityUnit::Count, QuantityKind::Lost, Some("seen")),
            new("seen", QuantityUnit::Count, QuantityKind::Arrived, None),
        ];
        let read = |text: &str| serde_json::from_str::<Evidence>(text).unwrap();
        let totals = |lookups: u32| Totals {
            launches: 2,
            operations: 150.0,
            total_operations: 202.0,
            evidence: read(&format!(
                r#"{{"lookups":{lookups},"helper_s":4.0,"queue_s":1.01,"missed":30,"seen":10}}"#
            )),
            ..Totals::default()
        };
        let startup = Startup {
            work: WorkId(0),
            arm: ArmId(1),
            operations: 1.0,
            evidence: read(r#"{"lookups":53,"helper_s":1.0,"queue_s":0.0,"missed":0,"seen":0}"#),
        };
        let of = |totals: &Totals| account(&quantities, totals, Some(&startup));
        let amounts = of(&totals(706));
        let number = |name: &str| amounts.number(name);
        assert_eq!((number("lookups_per_op"), amounts.whole("lookups")), (Some(3.0), Some(450)));
        assert_eq!((number("helper_ns_per_op"), number("helper_s")), (Some(1e7), Some(4.0)));
        assert_eq!((number("queue_ns_per_op"), number("queue_s")), (Some(5e6), Some(1.01)));
        assert_eq!((amounts.whole("missed"), number("missed_pct")), (Some(30), Some(75.0)));
        assert_eq!(amounts.get("seen"), None);
        let idle = of(&totals(107));
        assert_eq!((idle.number("lookups_per_op"), idle.whole("lookups")), (Some(0.0), Some(0)));
        assert_eq!(
            idle.number("helper_ns_per_op"),
            Some(0.0),
            "it is of the lookups, and there are none"
        );
    }
}
