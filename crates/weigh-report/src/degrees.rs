//! Arms that record more or less, side by side: cost and storage of each workload by degree. Nitzberg
//! (1994, section 5) asks for the cost "with varying degrees of security", and for its storage.

use super::curve_text::bar;
use super::table::{Table, columns};
use super::{evidence, has_several_treatments, results};
use paired::Verdict;
use weigh_model::format;
use weigh_model::result::summary::{Row, Summary};
use weigh_model::result::work_name::WorkName;

pub const TITLE: &str = "Cost and storage by degree";
pub const LEGEND: &str = "the arm that records least is first; each bar is a share of the longest in its \
                          workload: of the time added to an operation, and of its bytes";

const BAR_CELLS: usize = 10;

/// A row for each workload and arm; `None` unless several arms store something.
pub fn table(s: &Summary) -> Option<Table> {
    let stored = evidence::stored(s);
    if !has_several_treatments(s) || stored.is_empty() {
        return None;
    }
    let mut workloads: Vec<&WorkName> = Vec::new();
    for row in &s.results {
        if !workloads.contains(&&row.workload) {
            workloads.push(&row.workload);
        }
    }
    let cells = workloads.into_iter().flat_map(|workload| {
        let mut rows: Vec<&Row> =
            s.results.iter().filter(|row| row.workload == *workload).collect();
        let bytes = |row: &Row| evidence::stored_per_op(&stored, row);
        rows.sort_by(|a, b| bytes(a).total_cmp(&bytes(b)));
        let most = |of: &dyn Fn(&Row) -> f64| rows.iter().map(|row| of(row)).fold(0.0, f64::max);
        let (slowest, largest) = (most(&slowdown), most(&bytes));
        let cells = |row: &Row| {
            let [effect, _, factor, _] = results::measured(row);
            let [records, log, per_day] = evidence::storage_cells(s, row);
            vec![
                format::label(&row.workload),
                format::label(&row.treatment),
                effect,
                factor,
                results::verdict(row, s.margin_pct),
                bar(slowdown(row) / slowest, BAR_CELLS),
                records,
                log,
                bar(bytes(row) / largest, BAR_CELLS),
                per_day,
            ]
        };
        rows.iter().map(|row| cells(row)).collect::<Vec<_>>()
    });
    let titles =
        "workload|degree|>effect|>factor|verdict|cost|>records/op|>log B/op|storage|>max per day";
    Some(Table::new(columns(titles), cells.collect()))
}

/// Time that the treatment adds to an operation, as a share of the baseline's; 0 unless it was shown to
/// add any.
fn slowdown(row: &Row) -> f64 {
    match row.verdict {
        Verdict::Slower => row.baseline / row.treated - 1.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    /// Two degrees on one workload: the second row records more and costs more.
    fn degrees() -> Summary {
        let mut s = example::audit();
        s.results.truncate(2);
        let degrees = [("audit:class=all", -90.0, 10.0), ("audit:class=open", -50.0, 2.0)];
        for (row, (treatment, pct, records)) in s.results.iter_mut().zip(degrees) {
            row.workload = "open-close".into();
            row.treatment = treatment.into();
            (row.effect_pct, row.low_pct, row.high_pct) = (pct, Some(pct - 1.0), Some(pct + 1.0));
            row.verdict = Verdict::Slower;
            row.treated = row.baseline * (1.0 + pct / 100.0);
            row.evidence.treated_s = Some(1.0);
            row.evidence.amounts.set("records_per_op", records);
            row.evidence.amounts.set("log_bytes_per_op", records * 100.0);
            row.evidence.amounts.set("log_bytes", 1 << 20);
        }
        s
    }

    #[test]
    fn degrees_are_side_by_side_and_the_one_that_records_least_is_first() {
        let table = table(&degrees()).unwrap();
        let shown: Vec<String> = table.rows.iter().map(|row| row.join(" ")).collect();
        assert!(shown[0].starts_with("open-close audit:class=open −50.0 %"), "{shown:?}");
        assert!(shown[0].ends_with("█▏ 2 200 ██ 84.4 GiB/day"), "{shown:?}");
        assert!(shown[1].starts_with("open-close audit:class=all −90.0 %"), "{shown:?}");
        assert!(shown[1].ends_with("██████████ 10 1,000 ██████████ 84.4 GiB/day"), "{shown:?}");
    }

    #[test]
    fn one_arm_and_arms_that_store_nothing_have_no_degrees() {
        assert_eq!(table(&example::audit()), None);
        assert_eq!(table(&example::factorial()), None);
    }
}
