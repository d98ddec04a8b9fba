//! The thesis's open question: how many bytes of audit trail each benchmark makes, and all together.

use super::Part;
use super::table::Table;
use super::weigh::{Weigh, bytes, effect, list, number, text};

pub fn measure(weigh: &Weigh) -> Result<Part, String> {
    let budget = weigh.budget(180);
    let result =
        weigh.json(&["compare", "audit", "-w", "unixbench", "--budget", &budget, "--no-detail"])?;
    let results = list(&result, "/results");
    let mut total_per_s = 0.0;
    let mut rows: Vec<Vec<String>> = Vec::new();
    for row in results {
        let treated_s = number(row, "/evidence/treated_s").unwrap_or(0.0);
        let log_bytes = number(row, "/evidence/log_bytes").unwrap_or(0.0);
        let per_s = if treated_s > 0.0 { log_bytes / treated_s } else { 0.0 };
        total_per_s += per_s;
        let per_op = |path| number(row, path).map_or("–".into(), |value| format!("{value:.1}"));
        rows.push(vec![
            format!("`{}`", text(row, "/workload")),
            effect(row),
            text(row, "/verdict").into(),
            per_op("/evidence/records_per_op"),
            per_op("/evidence/log_bytes_per_op"),
            bytes(per_s),
            bytes(per_s * 10.0),
        ]);
    }
    let lost: f64 = results.iter().filter_map(|row| number(row, "/evidence/lost")).sum();
    let sentence = format!(
        "A run of UnixBench's {} tests, ten seconds each, would write {} of audit trail with every system \
         call audited; {lost:.0} records were lost while this was measured.",
        results.len(),
        bytes(total_per_s * 10.0),
    );
    let head = [
        "test",
        "effect, %",
        "verdict",
        "records/op",
        "log B/op",
        "log a second",
        "in ten seconds",
    ];
    let table = Table {
        title: "UnixBench's tests, all of it audited".into(),
        head: head.map(String::from).to_vec(),
        rows,
    };
    Ok(Part { sentences: vec![sentence], tables: vec![table] })
}
