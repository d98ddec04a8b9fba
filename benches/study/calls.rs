//! Cost of auditing every system call, for each system call; the worst case; the network.

use serde_json::Value;

use super::Part;
use super::table::Table;
use super::weigh::{Weigh, effect, list, ns_per_op, number, text, time};

/// Loopback, one CPU: what of a connection is the kernel's work.
const NETWORK: [&str; 5] = [
    "lat-udp@same-cpu",
    "lat-tcp@same-cpu",
    "lat-connect@same-cpu",
    "lat-unix@same-cpu",
    "bw-tcp@same-cpu",
];

pub fn measure(weigh: &Weigh) -> Result<Part, String> {
    // A hundred rows take two minutes for eight pairs each, however short their samples are.
    let budget = weigh.budget(600);
    let arguments = ["compare", "audit", "-w", "syscalls", "--budget", &budget, "--no-detail"];
    let calls = weigh.json(&[&arguments[..], &["--sample", weigh.short_sample()]].concat())?;
    let mut arguments = vec!["compare", "audit", "--no-detail", "--budget"];
    let budget = weigh.budget(60);
    arguments.push(&budget);
    NETWORK.iter().for_each(|name| arguments.extend(["-w", name]));
    let network = weigh.json(&arguments)?;
    Ok(Part {
        sentences: sentences(&calls)?,
        tables: vec![
            per_call("Each system call, all of them audited", list(&calls, "/results")),
            per_call("The network, over loopback", list(&network, "/results")),
        ],
    })
}

fn added_ns(row: &Value) -> Option<f64> {
    Some(ns_per_op(number(row, "/treated")?) - ns_per_op(number(row, "/baseline")?))
}

fn sentences(calls: &Value) -> Result<Vec<String>, String> {
    let mut rows: Vec<&Value> = list(calls, "/results").iter().collect();
    let slowdown = |row: &Value| number(row, "/effect_pct").unwrap_or(0.0);
    rows.sort_by(|a, b| slowdown(a).total_cmp(&slowdown(b)));
    let (worst, least) = rows.first().zip(rows.last()).ok_or("no system call was measured")?;
    let middle = rows[rows.len() / 2];
    let slower = rows.iter().filter(|row| text(row, "/verdict") == "slower").count();
    let times = |row: &Value| 1.0 / (1.0 + slowdown(row) / 100.0);
    Ok(vec![format!(
        "{} of {} system calls had the eight pairs that a verdict takes; auditing all of them slows {slower} \
             of these. The worst case is `{}`, which takes {:.0} times as long; the median is `{}` with \
             {:.1} times, the least `{}` with {:.2} times.",
        rows.iter().filter(|row| number(row, "/low_pct").is_some()).count(),
        rows.len(),
        text(worst, "/workload"),
        times(worst),
        text(middle, "/workload"),
        times(middle),
        text(least, "/workload"),
        times(least),
    )])
}

fn per_call(title: &str, rows: &[Value]) -> Table {
    let mut rows: Vec<&Value> = rows.iter().collect();
    let added = |row: &Value| added_ns(row).unwrap_or(0.0);
    rows.sort_by(|a, b| added(b).total_cmp(&added(a)));
    let cell = |row: &Value, path: &str, digits: usize| {
        number(row, path).map_or("–".into(), |value| format!("{value:.digits$}"))
    };
    Table {
        title: title.into(),
        head: [
            "workload",
            "clean",
            "audited",
            "added",
            "effect, %",
            "calls/op",
            "records/op",
            "log B/op",
        ]
        .map(String::from)
        .to_vec(),
        rows: rows
            .iter()
            .map(|row| {
                let per_op =
                    |path| number(row, path).map_or("–".into(), |rate| time(ns_per_op(rate)));
                vec![
                    format!("`{}`", text(row, "/workload")),
                    per_op("/baseline"),
                    per_op("/treated"),
                    added_ns(row).map_or("–".into(), time),
                    effect(row),
                    cell(row, "/evidence/syscalls_per_op", 0),
                    cell(row, "/evidence/records_per_op", 1),
                    cell(row, "/evidence/log_bytes_per_op", 0),
                ]
            })
            .collect(),
    }
}
