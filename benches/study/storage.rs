//! The thesis's open question: how many bytes of audit trail each benchmark makes, and all together.

use super::Part;
use super::table::Table;
use super::weigh::{Weigh, bytes, effect, list, number, text};

pub fn measure(weigh: &Weigh) -> Result<Part, String> {
    let budget = weigh.budget(180);
    let result =
        weigh.json(&["compare", "audit", "-w", "unixbench", "--budget", &budget, "--no-detail"])?;
    let results = list(&result, "/results");
    let (mut total_per_s, mut counted) = (0.0, 0);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for row in results {
        // Absent where records could not be counted: then nothing is known, which is not 0.
        let log_bytes = number(row, "/evidence/log_bytes");
        let treated_s = number(row, "/evidence/treated_s").filter(|&seconds| seconds > 0.0);
        let per_s = log_bytes.zip(treated_s).map(|(bytes, seconds)| bytes / seconds);
        if let Some(per_s) = per_s {
            counted += 1;
            total_per_s += per_s;
        }
        let log_in = |seconds: f64| per_s.map_or("–".into(), |per_s| bytes(per_s * seconds));
        let per_op = |path| number(row, path).map_or("–".into(), |value| format!("{value:.1}"));
        rows.push(vec![
            format!("`{}`", text(row, "/workload")),
            effect(row),
            text(row, "/verdict").into(),
            per_op("/evidence/records_per_op"),
            per_op("/evidence/log_bytes_per_op"),
            log_in(1.0),
            log_in(10.0),
        ]);
    }
    let lost: f64 = results.iter().filter_map(|row| number(row, "/evidence/lost")).sum();
    let sentence = format!(
        "A run of the {counted} of UnixBench's {} tests whose records were counted, ten seconds each, would \
         write {} of audit trail with every system call audited; {lost:.0} records were lost while this was \
         measured.",
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
