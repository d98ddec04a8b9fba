//! Amounts that a treatment's rows produced together. Nitzberg (1994, section 5) asks for "the cost
//! of producing the audit trail on available storage for individual tests and cumulatively".

use serde::Serialize;

use crate::result::quantity::{Amount, Amounts, EvidenceQuantity, QuantityKind};
use crate::result::summary::{Row, Summary, by_treatment};

/// The rows of one treatment of which all was counted that operations make.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cumulative {
    pub treatment: String,
    /// How many rows these are.
    pub workloads: usize,
    /// Amounts that the rows' operations produce. `NAME_of_one_each` counts one operation of each
    /// row. `NAME` counts the timed operations of all treated samples.
    #[serde(flatten)]
    pub amounts: Amounts,
}

impl Cumulative {
    /// Returns the amount that one operation of each row produces.
    pub fn of_one_each(&self, name: &str) -> Option<f64> {
        self.amounts.number(&of_one_each(name))
    }
}

fn of_one_each(name: &str) -> String {
    format!("{name}_of_one_each")
}

/// One for each treatment that was counted.
pub fn of(s: &Summary) -> Vec<Cumulative> {
    let sums = by_treatment(s).into_iter();
    sums.filter_map(|(treatment, rows)| {
        let quantities = rows.first().map(|row| s.quantities(row)).unwrap_or_default();
        let is_made = |quantity: &&EvidenceQuantity| quantity.kind == QuantityKind::Made;
        sum(treatment, &rows, &quantities.iter().filter(is_made).collect::<Vec<_>>())
    })
    .collect()
}

fn sum(treatment: &str, rows: &[&Row], quantities: &[&EvidenceQuantity]) -> Option<Cumulative> {
    let is_counted = |row: &&&Row| {
        let amounts = &row.evidence.amounts;
        quantities.iter().all(|quantity| amounts.number(&quantity.per_op()).is_some())
    };
    let counted: Vec<&&Row> = rows.iter().filter(is_counted).collect();
    if counted.is_empty() || quantities.is_empty() {
        return None;
    }
    let mut amounts = Amounts::default();
    for quantity in quantities {
        let of = |name: &str| {
            let all = counted.iter().filter_map(|row| row.evidence.amounts.get(name));
            all.fold(None, |sum: Option<Amount>, amount| {
                sum.map_or(Some(amount.clone()), |sum| sum.plus(amount))
            })
        };
        let one_each = of(&quantity.per_op()).and_then(|amount| amount.number());
        one_each.into_iter().for_each(|sum| amounts.set(of_one_each(&quantity.name), sum));
        of(&quantity.name).into_iter().for_each(|sum| amounts.set(&*quantity.name, sum));
    }
    Some(Cumulative { treatment: treatment.to_owned(), workloads: counted.len(), amounts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::result::summary::RowEvidence;

    #[test]
    fn one_operation_of_each_and_all_of_them_are_summed() {
        let mut s = example::two_sets();
        let counted = |records: u64, bytes: u64, records_per_op: f64, bytes_per_op: f64| {
            let mut evidence = RowEvidence::default();
            evidence.amounts.set("records", records);
            evidence.amounts.set("log_bytes", bytes);
            evidence.amounts.set("records_per_op", records_per_op);
            evidence.amounts.set("log_bytes_per_op", bytes_per_op);
            evidence
        };
        s.results[0].evidence = counted(300, 50_000, 3.0, 500.0);
        s.results[1].evidence = counted(7, 700, 2.5, 250.0);
        let [sum] = &of(&s)[..] else { panic!("one treatment") };
        let whole = |name| sum.amounts.whole(name);
        assert_eq!(
            (sum.workloads, whole("records"), whole("log_bytes")),
            (2, Some(307), Some(50_700))
        );
        let one_each = |name| sum.of_one_each(name);
        assert_eq!((one_each("records"), one_each("log_bytes")), (Some(5.5), Some(750.0)));
        s.results[1].evidence = RowEvidence::default();
        assert_eq!(of(&s)[0].workloads, 1, "what was not counted is not in it");
        s.results[0].evidence = RowEvidence::default();
        assert_eq!(of(&s), []);
    }
}
