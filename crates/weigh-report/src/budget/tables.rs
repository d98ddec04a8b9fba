//! The tables of a budget.

use crate::table::{Table, columns};
use weigh_model::format;
use weigh_model::result::budget::{Backlog, BudgetReport, Day, DiskFull, KeptUp, Load};

/// A day's log as gzip leaves it.
pub fn gzipped(day: &Day) -> Option<String> {
    day.gzip_bytes.map(format::bytes)
}

pub fn days(report: &BudgetReport) -> Table {
    let columns = columns(">rate||>log|>MiB/day|>gzipped");
    let rows = report.days.iter().map(|day| {
        let remark = match (day.is_full_speed, day.multiple == 1.0) {
            (true, _) => "maximum rate".to_owned(),
            (false, true) => String::new(),
            (false, false) => format!("{}x", day.multiple),
        };
        vec![
            format!("{}/s", format::rate(day.rate, "")),
            remark,
            format::bytes(day.log_bytes),
            format::rate(day.log_bytes / (1 << 20) as f64, ""),
            gzipped(day).unwrap_or_default(),
        ]
    });
    Table::new(columns, rows.collect())
}

/// Builds the table of results at several times the rate.
pub fn loads(report: &BudgetReport) -> Table {
    let columns = columns(">rate||>due|>made|kept up|>lost|>waited|>receiver CPU|>kauditd CPU");
    let share =
        |share: Option<f64>| share.map(|s| format!("{:.0} %", s * 100.0)).unwrap_or_default();
    let row = |load: &Load| {
        vec![
            format!("{}/s", format::rate(load.rate, "")),
            format!("{}x", load.multiple),
            format::rate(load.asked, ""),
            format::rate(load.achieved, ""),
            match load.kept_up {
                KeptUp::Yes => "yes",
                KeptUp::No => "no",
                KeptUp::Undecided => "not decided",
            }
            .into(),
            format::integer(load.lost),
            format::seconds(load.waited_s),
            share(load.sink_cpu),
            share(load.kauditd_cpu),
        ]
    };
    Table::new(columns, report.loads.iter().map(row).collect())
}

pub fn limits(backlog: &Backlog, bytes_per_record: Option<f64>) -> Table {
    let columns = columns(">backlog limit||lost|>waited|>lost despite waiting|>memory");
    let memory = |limit: u32| {
        bytes_per_record.map_or_else(String::new, |bytes| format::bytes(bytes * f64::from(limit)))
    };
    let tried =
        [("half the sufficient limit", &backlog.half), ("smallest sufficient", &backlog.enough)];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (remark, tried) in tried {
        let Some(tried) = tried else { continue };
        let lost: Vec<String> = tried.lost.iter().map(|lost| format::integer(*lost)).collect();
        let limit = format::integer(tried.limit.into());
        let (none, memory) = (String::new(), memory(tried.limit));
        rows.push(vec![limit, remark.into(), lost.join(", "), none.clone(), none, memory]);
    }
    for (common, remark) in backlog.common.iter().zip(["kernel default", "usual in distributions"])
    {
        rows.push(vec![
            format::integer(common.limit.into()),
            remark.into(),
            format::integer(common.lost_without_wait),
            format::seconds(common.waited_s),
            format::integer(common.lost),
            memory(common.limit),
        ]);
    }
    Table::new(columns, rows)
}

pub fn policies(outcomes: &[DiskFull]) -> Table {
    let columns = columns(
        "policy|workload|>opened|>in the log|>lost|>still waiting|>waited|>longest call|\
         auditd",
    );
    let row = |outcome: &DiskFull| {
        vec![
            outcome.action.clone(),
            if outcome.went_on() { "continued" } else { "stalled" }.into(),
            format::integer(outcome.made),
            format::integer(outcome.logged),
            format::integer(outcome.lost),
            format::integer(outcome.backlog.into()),
            format::seconds(outcome.waited_s),
            format::seconds(outcome.longest_s),
            match (outcome.has_ended, outcome.is_registered) {
                (true, _) => "ended",
                (false, true) => "still receiving",
                (false, false) => "not receiving",
            }
            .into(),
        ]
    };
    Table::new(columns, outcomes.iter().map(row).collect())
}
