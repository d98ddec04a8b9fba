//! Which rules of the sets cost it: `weigh rules` on each.

use serde_json::Value;

use super::Part;
use super::sets::gather;
use super::table::Table;
use super::weigh::{Weigh, list, number, text};

pub fn measure(weigh: &Weigh) -> Result<Part, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut overview = Vec::new();
    let mut classes = Vec::new();
    let mut unit = "ns";
    for set in gather(scratch.path())? {
        let directory = set.directory.to_string_lossy().into_owned();
        let report = weigh.json(&["rules", &directory])?;
        if text(&report, "/metric") == "instructions" {
            unit = "instructions";
        }
        overview.push(overview_row(set.name, &report));
        for class in list(&report, "/classes") {
            classes.push(vec![
                set.name.into(),
                text(class, "/title").into(),
                number(class, "/rules").map_or("–".into(), |count| format!("{count:.0}")),
                cost(class, "/per_syscall"),
                number(class, "/share_pct").map_or("–".into(), |share| format!("{share:.0} %")),
            ]);
        }
    }
    let head = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Ok(Part {
        sentences: vec![format!(
            "Costs of rules are of a process that makes no records, in {unit} per system call of the mix \
             that `weigh rules` states."
        )],
        tables: vec![
            Table {
                title: "What the sets cost every system call".into(),
                head: head(&[
                    "set",
                    "lines",
                    "loaded",
                    "refused",
                    "first rule",
                    "all rules",
                    "the same, ns",
                    "sum of the lines",
                ]),
                rows: overview,
            },
            Table {
                title: "Which kinds of rules cost it".into(),
                head: head(&["set", "kind of rule", "rules", "cost", "share"]),
                rows: classes,
            },
        ],
    })
}

fn overview_row(name: &str, report: &Value) -> Vec<String> {
    let lines = list(report, "/lines");
    let of_fate = |fate: &str| {
        let has = |line: &&Value| line.pointer(&format!("/fate/{fate}")).is_some();
        lines.iter().filter(has).count().to_string()
    };
    vec![
        name.into(),
        lines.len().to_string(),
        of_fate("loaded"),
        of_fate("refused"),
        cost(report, "/armed"),
        cost(report, "/total"),
        cost(report, "/total_ns"),
        cost(report, "/sum_of_lines"),
    ]
}

/// A cost with its interval.
fn cost(value: &Value, path: &str) -> String {
    let of = |end: &str| number(value, &format!("{path}/{end}"));
    match (of("value"), of("low"), of("high")) {
        (Some(value), Some(low), Some(high)) => format!("{value:.1} [{low:.1}, {high:.1}]"),
        _ => "–".into(),
    }
}
