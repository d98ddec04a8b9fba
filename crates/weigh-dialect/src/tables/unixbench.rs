//! UnixBench's index: baseline, result and index of each test, and the final index.

use std::collections::BTreeSet;

use crate::{Dialect, Sheet, SheetLine, format, lines};
use weigh_model::facts::Facts;
use weigh_model::ids::ArmId;
use weigh_model::result::unixbench_index::Formula;
use weigh_model::workload::suite;
use weigh_model::workload::suite::{Member, Suite};
use weigh_report::table::{Align, Table};

pub static TABLE: Dialect =
    Dialect { name: "unixbench", study_of: None, is_of_time: true, render, page: None };

/// A table per arm, and per number of parallel copies.
pub(super) fn render(sheet: &Sheet) -> Result<String, String> {
    let suite = suite_of(sheet)?;
    let mut counts: Vec<usize> = Vec::new();
    for line in &sheet.lines {
        if !counts.contains(&line.name.copies()) {
            counts.push(line.name.copies());
        }
    }
    let mut parts = Vec::new();
    for copies in counts {
        let of_it: Vec<&SheetLine> =
            sheet.lines.iter().filter(|line| line.name.copies() == copies).collect();
        parts.extend(passes(&of_it, &suite));
        let mut tests: Vec<Vec<String>> = Vec::new();
        for (number, arm) in sheet.arm_ids().zip(&sheet.arms) {
            let index = ArmIndex::new(sheet, &of_it, number, &suite);
            let table = index.table();
            let running = running(sheet, copies);
            parts.extend(table.map(|table| format!("{}{running}\n{table}", format::label(arm))));
            tests.push(index.items.into_iter().map(|item| item.title).collect());
        }
        if tests.iter().any(|of_arm| *of_arm != tests[0]) {
            parts.push("These final scores cover different tests and cannot be compared.\n".into());
        }
    }
    if !parts.iter().any(|part| part.contains(FINAL) || part.contains(AVERAGE)) {
        return Err("no test of UnixBench's index in this result".into());
    }
    if let Some((machine, started)) = &sheet.machine {
        parts.insert(0, head(machine, started));
    }
    if sheet.version.is_none() {
        parts.push("Compatible with UnixBench's formula; not measured by UnixBench.\n".into());
    }
    Ok(parts.join("\n"))
}

/// The results of a run in UnixBench's form: rate, unit, seconds of a sample, number of samples.
fn passes(of_it: &[&SheetLine], suite: &Suite) -> Option<String> {
    let row = |line: &&SheetLine| {
        let (seconds, samples) = line.passes?;
        let rate = format!("{:.1} {}", (*line.rates.first()?)?, format::label(&line.unit));
        let title = title_of(suite, &line.name.name);
        let samples = format::plural(samples, "sample");
        Some(vec![title, rate, format!("({seconds:.1} secs, {samples})")])
    };
    let rows: Vec<Vec<String>> = of_it.iter().filter_map(row).collect();
    let columns = vec![("TEST", Align::Left), ("RATE", Align::Right), ("SAMPLES", Align::Left)];
    (!rows.is_empty()).then(|| lines(&Table::new(columns, rows)))
}

/// The title of a workload in the suite, or else its name.
fn title_of(suite: &Suite, name: &str) -> String {
    let member = suite.members.iter().find(|member| member.name == name);
    format::label(member.and_then(|member| member.title.as_deref()).unwrap_or(name))
}

/// The head of UnixBench's report, without lines of which nothing is known.
fn head(machine: &Facts, started: &str) -> String {
    let Facts { hostname, kernel, kernel_build, architecture, .. } = machine;
    let users = machine.interactive_users.map(|users| format!("{users} interactive users."));
    let up = machine.uptime_s.zip(machine.load_1min);
    let up =
        up.map(|(up_s, load)| format!("up {}, load average: {load:.2}", format::seconds(up_s)));
    let shell = machine.shell.as_ref().map(|target| format!("/bin/sh -> {target}"));
    let room = machine.scratch.as_ref().zip(machine.scratch_free_bytes);
    let room = room.map(|(place, free)| format!("{place}: {} free", format::bytes(free as f64)));
    let system = format!("System -- Linux {hostname} {kernel} {kernel_build} {architecture}");
    let lines =
        [Some(system), Some(format!("Start Benchmark Run: {started}")), users, up, shell, room];
    lines.into_iter().flatten().map(|line| format::label(line.trim_end()) + "\n").collect()
}

/// As UnixBench says it since 5.0; earlier versions ran one copy, and did not say so.
fn running(sheet: &Sheet, copies: usize) -> String {
    match copies {
        1 if sheet.version.is_some() => String::new(),
        1 => "; running 1 parallel copy of tests".into(),
        copies => format!("; running {copies} parallel copies of tests"),
    }
}

const FINAL: &str = "FINAL SCORE";
const AVERAGE: &str = "AVERAGE";

/// The suite that gives the titles and, if no report gives others, the baselines: by the version, or else the
/// suite whose list is most like the measured one.
fn suite_of(sheet: &Sheet) -> Result<Suite, String> {
    let names: BTreeSet<&str> = sheet.lines.iter().map(|line| line.name.name.as_str()).collect();
    match sheet.version.as_deref() {
        Some(version) if version.starts_with("3.") => suite_called("unixbench-3.11"),
        Some(version) if version.starts_with("4.") => suite_called("unixbench-4.1"),
        Some(_) => suite_called("unixbench"),
        None => closest(suite::embedded()?, &names),
    }
}

fn suite_called(name: &str) -> Result<Suite, String> {
    let mut suites = suite::embedded()?.into_iter();
    suites.find(|suite| suite.name == name).ok_or_else(|| format!("unknown suite `{name}`"))
}

/// The suite with an index that fits the measured workloads best. Completely measured indices come first.
/// 4.1 has all tests of 6.0's index, though its own index has one test fewer: so the overlap of the whole
/// lists decides.
fn closest(suites: Vec<Suite>, measured: &BTreeSet<&str>) -> Result<Suite, String> {
    let fit = |suite: &Suite| {
        let is_measured = |member: &Member| measured.contains(member.name.as_str());
        let mut scored = suite.members.iter().filter(|member| member.baseline.is_some());
        let common = suite.members.iter().filter(|member| is_measured(member)).count();
        let either = suite.members.len() + measured.len() - common;
        (scored.all(is_measured), common as f64 / either as f64)
    };
    let with_index = suites.into_iter().filter(|suite| suite.index.is_some());
    let better = |best: Suite, next: Suite| if fit(&next) > fit(&best) { next } else { best };
    with_index.reduce(better).ok_or_else(|| "no suite has an index".into())
}

/// The indices of an arm's tests, with one copy each, and the final index: as UnixBench 4.1 computes it,
/// unless a report names a different version.
pub(super) fn index_of_4_1(sheet: &Sheet, arm: ArmId) -> Result<ArmIndex, String> {
    let of_one: Vec<&SheetLine> =
        sheet.lines.iter().filter(|line| line.name.copies() == 1).collect();
    let suite = match sheet.version {
        Some(_) => suite_of(sheet)?,
        None => suite_called("unixbench-4.1")?,
    };
    Ok(ArmIndex::new(sheet, &of_one, arm, &suite))
}

pub(super) struct ArmIndex {
    formula: Formula,
    pub items: Vec<IndexItem>,
    /// True if tests of the suite are missing, as far as can be known.
    is_partial: bool,
}

pub(super) struct IndexItem {
    /// Name of the workload, if the suite includes it.
    pub name: String,
    pub title: String,
    baseline: f64,
    rate: f64,
    pub index: f64,
}

impl ArmIndex {
    fn new(sheet: &Sheet, of_it: &[&SheetLine], arm: ArmId, suite: &Suite) -> ArmIndex {
        let of_suite = suite.index.zip(suite.baseline_index);
        let formula = match (&sheet.version, of_suite) {
            (None, Some((mean, points))) => Formula { mean, points },
            (version, _) => Formula::of_version(version.as_deref().unwrap_or_default()),
        };
        // A report has its own baselines: what is not in its index does not count.
        let says = of_it.iter().any(|line| line.baselines[arm].is_some());
        let item = |line: &&SheetLine| {
            let member = suite.members.iter().find(|member| {
                let name = line.name.name.as_str();
                member.name == name || member.title.as_deref() == Some(name)
            });
            let known = member.and_then(|member| member.baseline).filter(|_| !says);
            let (baseline, rate) = (line.baselines[arm].or(known)?, line.rates[arm]?);
            let own = || line.name.name.clone();
            let name = member.map_or_else(own, |member| member.name.clone());
            let title = member.and_then(|member| member.title.clone()).unwrap_or_else(own);
            Some(IndexItem { name, title, baseline, rate, index: formula.index(rate, baseline) })
        };
        let items: Vec<IndexItem> = of_it.iter().filter_map(item).collect();
        let of_index = suite.members.iter().filter(|member| member.baseline.is_some()).count();
        ArmIndex { formula, is_partial: !says && items.len() < of_index, items }
    }

    /// `None` where there is no test.
    pub(super) fn score(&self) -> Option<f64> {
        let indices: Vec<f64> = self.items.iter().map(|item| item.index).collect();
        self.formula.score(&indices)
    }

    pub(super) fn score_title(&self) -> String {
        let partial = if self.is_partial { " (partial only)" } else { "" };
        format!("{FINAL}{partial}")
    }

    /// `None` where no test has a baseline.
    fn table(&self) -> Option<String> {
        let one = |value: f64| format!("{value:.1}");
        let row = |item: &IndexItem| {
            let title = format::label(&item.title);
            vec![title, one(item.baseline), one(item.rate), one(item.index)]
        };
        let mut rows: Vec<Vec<String>> = self.items.iter().map(row).collect();
        let indices: Vec<f64> = self.items.iter().map(|item| item.index).collect();
        let final_index = self.score()?;
        let mut add = |title: &str, value: f64| {
            rows.push(vec![title.into(), String::new(), String::new(), one(value)]);
        };
        if self.formula.mean == suite::Index::ArithmeticMean {
            add(&format!("SUM of {} items", indices.len()), indices.iter().sum());
            add(AVERAGE, final_index);
        } else {
            add(&self.score_title(), final_index);
        }
        let right = Align::Right;
        let columns =
            vec![("TEST", Align::Left), ("BASELINE", right), ("RESULT", right), ("INDEX", right)];
        Some(lines(&Table::new(columns, rows)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The report's score of a suite without some of its tests, where each rate is ten times George's.
    fn score_of(suite: &str, left_out: &[&str]) -> String {
        let suite = suite_called(suite).unwrap();
        let measured = suite.members.iter().filter(|test| !left_out.contains(&&*test.name));
        let rate = |test: &Member| 10.0 * test.baseline.unwrap_or(1e6);
        let rates = measured.map(|test| ((&*test.name).into(), "ops/s".into(), rate(test)));
        let text = render(&Sheet::of_rates("id", "none", rates)).unwrap();
        let has_shell1 = text.contains("(1 concurrent)");
        let score = text.lines().find(|line| line.contains(FINAL) || line.contains(AVERAGE));
        format!(
            "{}, shell1: {has_shell1}",
            score.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
        )
    }

    #[test]
    fn the_head_is_of_what_is_known_of_the_machine() {
        let machine =
            Facts { hostname: "w2".into(), interactive_users: Some(4), ..Facts::default() };
        let all = Facts {
            shell: Some("dash".into()),
            uptime_s: Some(60.0),
            load_1min: Some(0.5),
            ..machine
        };
        let text = head(&all, "2003-06-10T11:59:54Z");
        for line in
            ["System -- Linux w2", "4 interactive users.", "up 1 min 00 s, load average: 0.50"]
        {
            assert!(text.contains(line), "{text}");
        }
        assert!(text.contains("/bin/sh -> dash\n") && !text.contains("free"), "{text}");
    }

    #[test]
    fn each_version_has_its_own_tests_in_its_score() {
        // 4.1 has no baseline of shell1, and its rate would have a different unit here.
        for left_out in [&[][..], &["dc"], &["dc", "compile", "arith-short"]] {
            assert_eq!(score_of("unixbench-4.1", left_out), "FINAL SCORE 100.0, shell1: false");
        }
        assert_eq!(score_of("unixbench", &[]), "FINAL SCORE 100.0, shell1: true");
        assert_eq!(score_of("unixbench-3.11", &["dc"]), "AVERAGE 10.0, shell1: false");
        let partial = "FINAL SCORE (partial only) 100.0, shell1: false";
        assert_eq!(score_of("unixbench-4.1", &["execl"]), partial);
    }
}
