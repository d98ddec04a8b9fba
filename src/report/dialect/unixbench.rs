//! UnixBench's index: baseline, result and index of each test, and the final index.

use super::super::table::{Align, Table};
use super::{Line, Sheet, format, lines};
use crate::stats::estimate::geometric_mean;
use crate::workload::suite::{self, Member};

/// What a machine as fast as the baseline has as its index.
pub fn points(version: &str) -> f64 {
    if is_linear(version) { 1.0 } else { 10.0 }
}

/// The final index: 3.11 averages linearly; since 4.0 the mean is geometric.
pub fn score(version: &str, indices: &[f64]) -> Option<f64> {
    match is_linear(version) {
        _ if indices.is_empty() => None,
        true => Some(indices.iter().sum::<f64>() / indices.len() as f64),
        false => geometric_mean(indices),
    }
}

fn is_linear(version: &str) -> bool {
    version.starts_with("3.")
}

/// A table per arm, and per number of parallel copies.
pub fn render(sheet: &Sheet) -> Result<String, String> {
    let suites = suite::embedded()?;
    let members = suites.iter().find(|suite| suite.name == "unixbench");
    let members = members.map(|suite| suite.members.as_slice()).unwrap_or_default();
    let mut copies: Vec<Option<u32>> = Vec::new();
    for line in &sheet.lines {
        if !copies.contains(&line.copies) {
            copies.push(line.copies);
        }
    }
    let mut parts = Vec::new();
    for copies in copies {
        let of_it: Vec<&Line> = sheet.lines.iter().filter(|line| line.copies == copies).collect();
        let mut tests: Vec<Vec<String>> = Vec::new();
        for (number, arm) in sheet.arms.iter().enumerate() {
            let index = Index::new(sheet, &of_it, number, members);
            let several = copies.map(|copies| format!(", {copies} copies")).unwrap_or_default();
            let table = index.table();
            parts.extend(table.map(|table| format!("{}{several}\n{table}", format::label(arm))));
            tests.push(index.items.into_iter().map(|item| item.title).collect());
        }
        if tests.iter().any(|of_arm| *of_arm != tests[0]) {
            parts.push(
                "These final scores are not of the same tests, and cannot be compared.\n".into(),
            );
        }
    }
    if !parts.iter().any(|part| part.contains(FINAL) || part.contains(AVERAGE)) {
        return Err("no test of UnixBench's index is in it".into());
    }
    if sheet.version.is_none() {
        parts.push("Compatible with UnixBench's formula; not measured by UnixBench.\n".into());
    }
    Ok(parts.join("\n"))
}

const FINAL: &str = "FINAL SCORE";
const AVERAGE: &str = "AVERAGE";

/// The index of one arm.
struct Index<'a> {
    version: &'a str,
    items: Vec<Item>,
    /// Whether tests of the suite are missing, as far as one can know.
    is_partial: bool,
}

struct Item {
    title: String,
    baseline: f64,
    rate: f64,
    index: f64,
}

impl Index<'_> {
    fn new<'a>(sheet: &'a Sheet, of_it: &[&Line], arm: usize, members: &[Member]) -> Index<'a> {
        let version = sheet.version.as_deref().unwrap_or_default();
        // A report has its own baselines: what is not in its index does not count.
        let says = of_it.iter().any(|line| line.baselines[arm].is_some());
        let item = |line: &&Line| {
            let member = members.iter().find(|member| {
                member.name == line.name || member.title.as_deref() == Some(line.name.as_str())
            });
            let known = member.and_then(|member| member.baseline).filter(|_| !says);
            let (baseline, rate) = (line.baselines[arm].or(known)?, line.rates[arm]?);
            let title = member.and_then(|member| member.title.clone());
            let title = title.unwrap_or_else(|| line.name.clone());
            Some(Item { title, baseline, rate, index: rate / baseline * points(version) })
        };
        let items: Vec<Item> = of_it.iter().filter_map(item).collect();
        Index { version, is_partial: !says && items.len() < members.len(), items }
    }

    /// `None` where no test has a baseline.
    fn table(&self) -> Option<String> {
        let one = |value: f64| format!("{value:.1}");
        let row = |item: &Item| {
            let title = format::label(&item.title);
            vec![title, one(item.baseline), one(item.rate), one(item.index)]
        };
        let mut rows: Vec<Vec<String>> = self.items.iter().map(row).collect();
        let indices: Vec<f64> = self.items.iter().map(|item| item.index).collect();
        let final_index = score(self.version, &indices)?;
        let mut add = |title: &str, value: f64| {
            rows.push(vec![title.into(), String::new(), String::new(), one(value)]);
        };
        if is_linear(self.version) {
            add(&format!("SUM of {} items", indices.len()), indices.iter().sum());
            add(AVERAGE, final_index);
        } else {
            let partial = if self.is_partial { " (partial only)" } else { "" };
            add(&format!("{FINAL}{partial}"), final_index);
        }
        let right = Align::Right;
        let columns =
            vec![("TEST", Align::Left), ("BASELINE", right), ("RESULT", right), ("INDEX", right)];
        Some(lines(&Table::new(columns, rows)))
    }
}
