//! The workloads as text: all of them at a glance, or each with all that it declares.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use weigh_model::format::NONE;
use weigh_report::text::wrap;
use weigh_workload::catalogue::Workload;

/// Names by group, each sweep and each pair of placements as one word.
pub fn overview(workloads: &[Workload], width: usize) -> String {
    let groups = by_group(workloads.iter());
    let mut text = format!("Workloads: {} in {} groups\n", workloads.len(), groups.len());
    for (group, members) in groups {
        let names = families(&members).join("  ");
        for (number, line) in wrap(&names, width.saturating_sub(12), 0).into_iter().enumerate() {
            let head = if number == 0 { group } else { "" };
            let _ = writeln!(text, "  {head:<9} {line}");
        }
    }
    text.push_str("\n  `weigh list workloads NAME` describes one operation of each.\n");
    text
}

/// Each with its unit, its operation, its system calls and its source.
pub fn table(workloads: &[&Workload], dim: fn(&str) -> String) -> String {
    let name_width = workloads.iter().map(|workload| workload.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (group, members) in by_group(workloads.iter().copied()) {
        let _ = writeln!(text, "{group}");
        let _ = writeln!(
            text,
            "{}",
            dim(&format!("  {:<name_width$} {:>8}  {:<6} one operation", "", "calls/op", "unit"))
        );
        for workload in members {
            let calls = workload.syscalls_per_op.map_or(NONE.into(), calls);
            let _ = writeln!(
                text,
                "  {:<name_width$} {calls:>8}  {:<6} {}",
                workload.name, workload.unit, workload.summary
            );
            let note = workload.syscalls_note.as_deref().map(|note| format!("; calls: {note}"));
            let said = format!("from {}{}", workload.source, note.unwrap_or_default());
            let _ = writeln!(text, "  {:<name_width$} {:>8}  {:<6} {}", "", "", "", dim(&said));
        }
        text.push('\n');
    }
    text
}

fn calls(per_op: f64) -> String {
    if per_op.fract() == 0.0 { format!("{per_op}") } else { format!("{per_op:.3}") }
}

fn by_group<'a>(
    workloads: impl Iterator<Item = &'a Workload>,
) -> BTreeMap<&'a str, Vec<&'a Workload>> {
    let mut groups: BTreeMap<&str, Vec<&Workload>> = BTreeMap::new();
    for workload in workloads {
        groups.entry(&workload.group).or_default().push(workload);
    }
    groups
}

/// `lat-mem-rd-64-{4k … 64m}` for the points of a curve, `lat-pipe@` for its placements.
fn families(workloads: &[&Workload]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut curves: Vec<&str> = Vec::new();
    for workload in workloads {
        let word = match &workload.series {
            Some(series) if curves.contains(&series.as_str()) => continue,
            Some(series) => {
                curves.push(series);
                curve(workloads.iter().filter(|other| other.series.as_ref() == Some(series)))
            }
            None => match workload.name.split_once('@') {
                Some((name, _)) => format!("{name}@"),
                None => workload.name.clone(),
            },
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// Describes a curve: the common part of all names, and the first and last differing part.
fn curve<'a>(points: impl Iterator<Item = &'a &'a Workload>) -> String {
    let mut points: Vec<&Workload> = points.copied().collect();
    points.sort_by(|one, other| one.x.unwrap_or(0.0).total_cmp(&other.x.unwrap_or(0.0)));
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    let shared = |other: &Workload| {
        let same = first.name.chars().zip(other.name.chars()).take_while(|(a, b)| a == b);
        // Names differ in whole parts: 16k and 1m share no 1.
        let length = same.map(|(letter, _)| letter.len_utf8()).sum();
        first.name[..length].rfind('-').map_or(0, |dash| dash + 1)
    };
    let start = points.iter().map(|point| shared(point)).min().unwrap_or(0);
    match first.name == last.name {
        true => first.name.clone(),
        false => {
            format!("{}{{{}…{}}}", &first.name[..start], &first.name[start..], &last.name[start..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(name: &str, series: Option<&str>, x: f64) -> Workload {
        Workload {
            name: name.into(),
            summary: "one thing".into(),
            group: "memory".into(),
            unit: "ops/s".into(),
            units_per_op: 1.0,
            syscalls_per_op: Some(0.0078),
            source: "lmbench".into(),
            series: series.map(String::from),
            x: series.map(|_| x),
            x_unit: series.map(|_| "bytes".into()),
            ..Workload::default()
        }
    }

    #[test]
    fn a_sweep_and_placements_are_one_word() {
        let all = [
            workload("load-16k", Some("load"), 16.0),
            workload("load-1m", Some("load"), 1024.0),
            workload("load-4k", Some("load"), 4.0),
            workload("pong@cross-cpu", None, 0.0),
            workload("pong@same-cpu", None, 0.0),
            workload("stat", None, 0.0),
        ];
        assert_eq!(families(&all.iter().collect::<Vec<_>>()), ["load-{4k…1m}", "pong@", "stat"]);
    }

    #[test]
    fn the_table_has_all_that_is_declared() {
        let one = workload("stat", None, 0.0);
        let text = table(&[&one], str::to_owned);
        for part in ["memory", "stat", "0.008", "ops/s", "one thing", "from lmbench"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
