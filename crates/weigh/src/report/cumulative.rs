//! What a treatment's rows produced together: Nitzberg (1994, section 5) asks for "the cost of producing the
//! audit trail on available storage for individual tests and cumulatively".

use serde::Serialize;

use crate::result::summary::{Row, Summary};

/// The rows of one treatment of which the records were counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cumulative {
    pub treatment: String,
    /// How many rows these are.
    pub workloads: usize,
    /// Records and bytes of log of one operation of each of them.
    pub records_of_one_each: f64,
    pub log_bytes_of_one_each: f64,
    /// Of the timed operations of all treated samples.
    pub records: u64,
    pub log_bytes: u64,
}

/// One for each treatment that was counted.
pub fn of(s: &Summary) -> Vec<Cumulative> {
    let sums = super::by_treatment(s).into_iter();
    sums.filter_map(|(treatment, rows)| sum(treatment, &rows)).collect()
}

fn sum(treatment: &str, rows: &[&Row]) -> Option<Cumulative> {
    let mut sum = Cumulative {
        treatment: treatment.to_owned(),
        workloads: 0,
        records_of_one_each: 0.0,
        log_bytes_of_one_each: 0.0,
        records: 0,
        log_bytes: 0,
    };
    for evidence in rows.iter().map(|row| &row.evidence) {
        let (Some(records), Some(log_bytes)) = (evidence.records_per_op, evidence.log_bytes_per_op)
        else {
            continue;
        };
        sum.workloads += 1;
        sum.records_of_one_each += records;
        sum.log_bytes_of_one_each += log_bytes;
        sum.records = sum.records.saturating_add(evidence.records.unwrap_or(0));
        sum.log_bytes = sum.log_bytes.saturating_add(evidence.log_bytes.unwrap_or(0));
    }
    (sum.workloads > 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::result::summary::RowEvidence;

    #[test]
    fn one_operation_of_each_and_all_of_them_are_summed() {
        let mut s = sample::two_sets();
        let counted = |records, bytes, records_per_op, bytes_per_op| RowEvidence {
            records: Some(records),
            log_bytes: Some(bytes),
            records_per_op: Some(records_per_op),
            log_bytes_per_op: Some(bytes_per_op),
            ..RowEvidence::default()
        };
        s.results[0].evidence = counted(300, 50_000, 3.0, 500.0);
        s.results[1].evidence = counted(7, 700, 2.5, 250.0);
        let [sum] = &of(&s)[..] else { panic!("one treatment") };
        assert_eq!((sum.workloads, sum.records, sum.log_bytes), (2, 307, 50_700));
        assert_eq!((sum.records_of_one_each, sum.log_bytes_of_one_each), (5.5, 750.0));
        s.results[1].evidence = RowEvidence::default();
        assert_eq!(of(&s)[0].workloads, 1, "what was not counted is not in it");
        s.results[0].evidence = RowEvidence::default();
        assert_eq!(of(&s), []);
    }
}
