//! The atlas: a table for each workload, in which the treatments are sorted by cost, and what follows from
//! them in words.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence;
use super::outline::{Outline, OutlineTable, kept_and_again};
use super::results::{has_interval, interval, measured, verdict};
use super::screen::Room;
use super::table::{Table, columns};
use paired::Verdict;
use paired::judge::MIN_PAIRS;
use weigh_model::format;
use weigh_model::result::atlas::{AtlasMeasured, AtlasReport, AtlasResult};
use weigh_model::result::cost::{AddedCost, time_ns};
use weigh_model::result::summary::{Row, State};

/// The workload in which a program is executed.
const EXEC: &str = "exec";
/// Heading of the rows without a verdict, with what to type.
const INCONCLUSIVE: &str =
    "Inconclusive (weigh atlas --continue ID --budget TIME measures more pairs)";
/// So many ways to the same goal are named.
const CHEAPEST: usize = 3;

const LEGEND: &str = "Sorted by cost, the highest first. added/op: time that the treatment adds to one \
                      operation; factor: time per operation under the treatment over that of the baseline. \
                      The interval is that of the change of the rate, in per cent, with 95 % for each row \
                      alone. The verdicts of one treatment hold together. proof: what the treatment \
                      produced, or how many samples of the treated arm proved it. not seen: \
                      what the treatment neither sees nor prevents.";

pub fn render(report: &AtlasReport, room: Room, colour: bool) -> String {
    let text = outline(report).text(room, colour);
    format!("{text}\n{}", kept_and_again(&report.id, &report.command))
}

pub fn outline(report: &AtlasReport) -> Outline {
    let of_workloads = workloads(report).into_iter().map(|workload| {
        OutlineTable::new(
            format!("{} by cost", format::label(&workload)),
            costs(report, &workload),
            "",
        )
    });
    let mut tables: Vec<OutlineTable> = of_workloads.collect();
    if let Some(last) = tables.last_mut() {
        LEGEND.clone_into(&mut last.legend);
    }
    tables.push(OutlineTable::new("Treatments", treatments(report), ""));
    Outline {
        sentences: sentences(report),
        tables,
        lists: vec![
            ("The cheapest ways to see every exec", ways_to_see_exec(report)),
            ("Most expensive in each workload", most_expensive(report)),
            ("No cost shown", without_cost(report)),
            (INCONCLUSIVE, inconclusive(report)),
            ("Cannot run here", obstacles(report, true)),
            ("Failed", failed(report)),
            ("Warnings", warnings(report)),
        ],
    }
}

/// A row with the entry and the experiment that it belongs to.
struct Costed<'a> {
    result: &'a AtlasResult,
    measured: &'a AtlasMeasured,
    row: &'a Row,
}

impl Costed<'_> {
    fn label(&self) -> String {
        format::quoted(&self.result.entry.name())
    }

    /// Added time per operation, `+112 ns`, or the factor where there is no such time.
    fn cost(&self) -> String {
        let [factor, added] = self.row.cost.texts();
        if added.is_empty() { factor } else { added }
    }

    /// Order by added time; rows whose operations have no time are ordered by the effect on their rate. Rows
    /// without any estimate come last.
    fn rank(&self) -> f64 {
        let Row { workload, unit, baseline, preliminary, .. } = self.row;
        let effect_pct = match preliminary {
            Some(few) => few.effect_pct,
            None if has_interval(self.row) => self.row.effect_pct,
            None => return f64::NEG_INFINITY,
        };
        let cost = AddedCost::of(workload, unit, *baseline, effect_pct);
        cost.added_ns_per_op.unwrap_or(-effect_pct)
    }
}

/// The rows of a workload, the most expensive first.
fn by_cost<'a>(report: &'a AtlasReport, workload: &str) -> Vec<Costed<'a>> {
    let of_it = all(report).filter(|of| of.row.workload.to_string() == workload);
    let mut rows: Vec<Costed> = of_it.collect();
    rows.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
    rows
}

fn all(report: &AtlasReport) -> impl Iterator<Item = Costed<'_>> {
    report.entries.iter().flat_map(|result| {
        let measured = result.measured.iter();
        measured.flat_map(move |measured| {
            measured.rows.iter().map(move |row| Costed { result, measured, row })
        })
    })
}

/// All workloads, in the order measured.
fn workloads(report: &AtlasReport) -> Vec<String> {
    let mut names = Vec::new();
    for of in all(report) {
        let name = of.row.workload.to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn sentences(report: &AtlasReport) -> Vec<String> {
    let has_row = |result: &&AtlasResult| !result.rows().is_empty();
    let measured = report.entries.iter().filter(has_row).count();
    let rows = all(report).count();
    let decided = all(report).filter(|of| of.row.verdict != Verdict::Inconclusive).count();
    let mut said = vec![format!(
        "{measured} of {} measured, with a verdict on {decided} of {}.",
        format::plural(report.entries.len(), "treatment"),
        format::plural(rows, "row")
    )];
    let unfinished = |result: &&AtlasResult| result.is_left() && result.obstacle.is_none();
    let left = report.entries.iter().filter(unfinished).count();
    if left > 0 && !report.id.is_empty() {
        said.push(format!(
            "{} left: `weigh atlas --continue {}` measures them.",
            format::plural(left, "treatment"),
            report.id
        ));
    }
    let largest =
        all(report).filter(|of| has_interval(of.row) && of.row.verdict == Verdict::Slower);
    let largest = largest.max_by(|a, b| {
        let factor = |of: &Costed| of.row.cost.factor.unwrap_or(1.0);
        factor(a).total_cmp(&factor(b))
    });
    said.extend(largest.map(|of| {
        let [factor, added] = of.row.cost.texts();
        let added = if added.is_empty() { added } else { format!(" ({added})") };
        let workload = format::quoted(&of.row.workload);
        format!("The largest factor is {factor}: {} on {workload}{added}.", of.label())
    }));
    said
}

/// One workload, a row per treatment.
fn costs(report: &AtlasReport, workload: &str) -> Table {
    let columns =
        columns("treatment|>baseline/op|>added/op|>factor|interval, %|verdict|proof|not seen");
    let rows = by_cost(report, workload).into_iter().map(|of| {
        let [effect, _, factor, added] = measured(of.row);
        let factor = if of.row.preliminary.is_some() { effect } else { factor };
        let baseline = time_ns(&of.row.workload, &of.row.unit, of.row.baseline);
        vec![
            of.result.entry.name(),
            baseline.map(format::time_ns).unwrap_or_default(),
            added,
            factor,
            interval(of.row),
            verdict(of.row, report.margin_pct),
            proof(&of),
            format::label(&of.result.entry.misses),
        ]
    });
    Table::new(columns, rows.collect())
}

/// Amounts that the treatment produced; else the samples, each of which proved that it was in force.
fn proof(of: &Costed) -> String {
    let produced = evidence::proof(of.row, &of.measured.quantities);
    match produced.is_empty() {
        true => format::plural(of.row.pairs, "sample"),
        false => produced,
    }
}

fn treatments(report: &AtlasReport) -> Table {
    let columns = columns("treatment|what it is|group|sees|not seen|experiment|baseline|source");
    let row = |result: &AtlasResult| {
        let entry = &result.entry;
        let state = match (&result.measured, &result.obstacle) {
            (Some(measured), _) => measured.id.clone(),
            (None, Some(obstacle)) if obstacle.is_of_machine => "not here".into(),
            (None, Some(_)) => "failed".into(),
            (None, None) => "left".into(),
        };
        let baseline = result.measured.as_ref().map(|measured| measured.baseline.clone());
        let cells = [
            &entry.treatment,
            &entry.title,
            &entry.group,
            &entry.sees,
            &entry.misses,
            &state,
            &baseline.unwrap_or_default(),
            entry.source.as_deref().unwrap_or_default(),
        ];
        cells.map(format::label).to_vec()
    };
    Table::new(columns, report.entries.iter().map(row).collect())
}

/// The cheapest treatments that see every program executed, with what each misses.
fn ways_to_see_exec(report: &AtlasReport) -> Vec<String> {
    let mut ways = by_cost(report, EXEC);
    // What lost events did not see every exec, and is cheaper for it.
    let lost = |of: &Costed| of.row.evidence.loss(&of.measured.quantities).is_some();
    ways.retain(|of| of.result.entry.sees_every_exec && has_interval(of.row) && !lost(of));
    ways.reverse();
    let shown = &ways[..ways.len().min(CHEAPEST)];
    let line = |(at, of): (usize, &Costed)| {
        let open: Vec<String> = ways[at + 1..]
            .iter()
            .filter(|way| overlap(of.row, way.row))
            .map(Costed::label)
            .collect();
        let order = (!open.is_empty()).then(|| {
            format!(" Its interval overlaps with that of {}: their order is open.", open.join(", "))
        });
        format!(
            "{} ({}): {} per exec ({}). It misses {}.{}",
            of.label(),
            of.result.entry.title,
            of.cost(),
            verdict(of.row, report.margin_pct),
            of.result.entry.misses,
            order.unwrap_or_default()
        )
    };
    shown.iter().enumerate().map(line).collect()
}

/// Compares the intervals of the added time, by which ways are ordered. One that is open to one side overlaps
/// with all that is there.
fn overlap(a: &Row, b: &Row) -> bool {
    let added = |row: &Row, effect_pct: Option<f64>, open: f64| {
        let Row { workload, unit, baseline, .. } = row;
        let cost = effect_pct.map(|pct| AddedCost::of(workload, unit, *baseline, pct));
        cost.and_then(|cost| cost.added_ns_per_op).unwrap_or(open)
    };
    // The lowest rate is the highest time.
    let low = |row: &Row| added(row, row.high_pct, f64::NEG_INFINITY);
    let high = |row: &Row| added(row, row.low_pct, f64::INFINITY);
    low(a) <= high(b) && low(b) <= high(a)
}

fn most_expensive(report: &AtlasReport) -> Vec<String> {
    let of_workload = |workload: String| {
        let most = by_cost(report, &workload).into_iter();
        let most = most.filter(|of| of.row.verdict == Verdict::Slower).take(CHEAPEST);
        let most: Vec<String> = most
            .map(|of| format!("{} ({}, {})", of.label(), of.cost(), of.row.cost.texts()[0]))
            .collect();
        let named = format!("{}: {}.", format::quoted(&workload), most.join(", "));
        (!most.is_empty()).then_some(named)
    };
    workloads(report).into_iter().filter_map(of_workload).collect()
}

/// The treatments that are equivalent to their baseline in every row.
fn without_cost(report: &AtlasReport) -> Vec<String> {
    let is_free = |row: &Row| row.verdict == Verdict::Equivalent;
    let free = report.entries.iter().filter(|result| {
        result.state() == Some(State::Complete)
            && !result.rows().is_empty()
            && result.rows().iter().all(is_free)
            && result.measured.as_ref().is_some_and(|measured| measured.failures.is_empty())
    });
    let names: Vec<String> = free.map(|result| format::quoted(&result.entry.name())).collect();
    match names.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "Equivalent within {} in every workload: {}.",
            format::margin(report.margin_pct),
            names.join(", ")
        )],
    }
}

/// Rows without a verdict, each with the reason, in one line per treatment.
fn inconclusive(report: &AtlasReport) -> Vec<String> {
    let of_treatment = |result: &AtlasResult| {
        let measured = result.measured.as_ref()?;
        let open = measured.rows.iter().filter(|row| row.verdict == Verdict::Inconclusive);
        let why = open.map(|row| {
            format!("{}: {}", format::quoted(&row.workload), why_open(row, report.margin_pct))
        });
        let why: Vec<String> = why.collect();
        let label = format::quoted(&result.entry.name());
        (!why.is_empty()).then(|| format!("{label} ({}): {}.", measured.id, why.join("; ")))
    };
    report.entries.iter().filter_map(of_treatment).collect()
}

/// Why a row has no verdict.
fn why_open(row: &Row, margin_pct: f64) -> String {
    let excludes_zero =
        row.low_pct.is_some_and(|low| low > 0.0) || row.high_pct.is_some_and(|high| high < 0.0);
    match row.withheld {
        _ if row.has_few_pairs() => {
            let least = row.least_pairs.max(MIN_PAIRS);
            format!("{} of at least {}", row.pairs, format::plural(least, "pair"))
        }
        Some(withheld) => {
            let verdict = format::verdict(withheld.verdict, false, 0.0);
            format!("{verdict}, but not yet reported: {}", format::doubt(withheld.because))
        }
        None if excludes_zero => {
            "significant on its own, but not after correcting for the number of rows".to_owned()
        }
        None => {
            let margin = format::margin(margin_pct);
            format!(
                "{} includes 0 and more than {margin}",
                format::interval(row.low_pct, row.high_pct)
            )
        }
    }
}

fn obstacles(report: &AtlasReport, is_of_machine: bool) -> Vec<String> {
    let with = report.entries.iter().filter_map(|result| {
        let obstacle = result.obstacle.as_ref().filter(|it| it.is_of_machine == is_of_machine)?;
        Some(format!("{}: {}", format::quoted(&result.entry.name()), obstacle.reason))
    });
    with.collect()
}

/// Treatments whose measurement failed, and workloads without a result; each reason once per treatment.
fn failed(report: &AtlasReport) -> Vec<String> {
    let mut said: BTreeSet<String> = BTreeSet::new();
    for result in &report.entries {
        let Some(measured) = &result.measured else { continue };
        said.extend(measured.failures.iter().map(|failure| {
            let label = &result.entry.name();
            let workload = format::quoted(&failure.workload);
            format!("{workload} under {}: {}", format::quoted(label), failure.reason)
        }));
    }
    obstacles(report, false).into_iter().chain(said).collect()
}

/// The warnings of all experiments. Most treatments share them, with other numbers; so one of each kind is
/// quoted, with the number of treatments.
fn warnings(report: &AtlasReport) -> Vec<String> {
    let mut kinds: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    for warning in report
        .entries
        .iter()
        .flat_map(|result| result.measured.iter().flat_map(|measured| &measured.warnings))
    {
        let head = warning.split_once(": ").map_or(&**warning, |(head, _)| head);
        let kind = head.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        kinds.entry(kind).or_insert((warning, 0)).1 += 1;
    }
    let line = |(warning, count): (&str, usize)| {
        format!("{warning} ({} with a warning of this kind)", format::plural(count, "treatment"))
    };
    kinds.into_values().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FORMATS;
    use paired::doubt::{Doubt, Withheld};
    use weigh_model::atlas_list::AtlasEntry;
    use weigh_model::example;
    use weigh_model::result::atlas::Obstacle;
    use weigh_model::result::report::Report;
    use weigh_model::result::summary::Failure;

    fn entry(treatment: &str) -> AtlasEntry {
        AtlasEntry {
            treatment: treatment.into(),
            group: "sensor".into(),
            title: format!("title of {treatment}"),
            sees: "something".into(),
            misses: format!("what {treatment} misses"),
            sees_every_exec: true,
            source: None,
        }
    }

    /// With this effect on `exec`, by one per cent more or less.
    fn result(treatment: &str, effect_pct: f64, verdict: Verdict) -> AtlasResult {
        let mut row = example::audit().results.remove(0);
        (row.workload, row.treatment, row.verdict) = (EXEC.into(), treatment.into(), verdict);
        (row.unit, row.baseline, row.effect_pct) = ("ops/s".into(), 1000.0, effect_pct);
        row.cost = AddedCost::of(&row.workload, &row.unit, row.baseline, effect_pct);
        (row.low_pct, row.high_pct) = (Some(effect_pct - 1.0), Some(effect_pct + 1.0));
        let measured = AtlasMeasured {
            id: "k3f9qx".into(),
            state: State::Complete,
            elapsed_s: 1.0,
            baseline: "none".into(),
            facts: Vec::new(),
            quantities: Vec::new(),
            rows: vec![row],
            failures: Vec::new(),
            warnings: Vec::new(),
        };
        AtlasResult { measured: Some(measured), ..AtlasResult::of(entry(treatment)) }
    }

    fn report() -> AtlasReport {
        let obstacle = |reason: &str, is_of_machine| {
            Some(Obstacle { reason: reason.to_owned(), is_of_machine })
        };
        let mut blind = result("blind", -2.0, Verdict::Slower);
        blind.entry.sees_every_exec = false;
        let mut free = result("free", 0.0, Verdict::Equivalent);
        free.entry.sees_every_exec = false;
        AtlasReport {
            id: "a7n2c4".into(),
            command: "weigh atlas".into(),
            margin_pct: 1.0,
            entries: vec![
                result("b", -10.5, Verdict::Slower),
                result("d", -50.0, Verdict::Slower),
                blind,
                result("a", -10.0, Verdict::Slower),
                result("c", -20.0, Verdict::Slower),
                free,
                AtlasResult {
                    obstacle: obstacle("only root", true),
                    ..AtlasResult::of(entry("x"))
                },
                AtlasResult {
                    obstacle: obstacle("it broke", false),
                    ..AtlasResult::of(entry("y"))
                },
                AtlasResult::of(entry("z")),
            ],
            ..AtlasReport::default()
        }
    }

    #[test]
    fn the_three_cheapest_ways_to_see_an_exec_are_named_with_what_they_miss() {
        let ways = ways_to_see_exec(&report());
        assert_eq!(
            ways,
            [
                "`a` (title of a): +111 µs per exec (slower). It misses what a misses. Its interval \
                 overlaps with that of `b`: their order is open.",
                "`b` (title of b): +117 µs per exec (slower). It misses what b misses.",
                "`c` (title of c): +250 µs per exec (slower). It misses what c misses.",
            ]
        );
    }

    #[test]
    fn each_inconclusive_row_has_its_reason() {
        let mut report = report();
        report.entries.truncate(2);
        assert_eq!(inconclusive(&report), [""; 0]);
        let why = |change: &dyn Fn(&mut Row)| {
            let mut report = report.clone();
            let row = &mut report.entries[0].measured.as_mut().unwrap().rows[0];
            row.verdict = Verdict::Inconclusive;
            change(row);
            inconclusive(&report)
        };
        let starts = "`b` (k3f9qx): `exec`: ";
        let few = why(&|row| (row.pairs, row.least_pairs) = (3, 12));
        assert_eq!(few, [format!("{starts}3 of at least 12 pairs.")]);
        let alone = "significant on its own, but not after correcting for the number of rows.";
        assert_eq!(why(&|_| ()), [format!("{starts}{alone}")]);
        let wide = why(&|row| (row.low_pct, row.high_pct) = (Some(-3.0), Some(2.0)));
        assert_eq!(wide, [format!("{starts}[−3.00, +2.00] includes 0 and more than 1 %.")]);
        let because = Doubt::CarryOver;
        let doubt = why(&|row| row.withheld = Some(Withheld { verdict: Verdict::Faster, because }));
        assert!(
            doubt[0].starts_with(&format!("{starts}faster, but not yet reported: ")),
            "{doubt:?}"
        );
    }

    #[test]
    fn rows_are_sorted_by_cost_and_what_was_not_measured_is_named_with_its_reason() {
        let report = report();
        let order: Vec<String> =
            costs(&report, EXEC).rows.into_iter().map(|mut row| row.swap_remove(0)).collect();
        assert_eq!(order, ["d", "c", "b", "a", "blind", "free"]);
        let text = outline(&report).text(Room::FILE, false);
        for part in [
            "6 of 9 treatments measured, with a verdict on 6 of 6 rows.",
            "1 treatment left: `weigh atlas --continue a7n2c4` measures them.",
            "The largest factor is ×2.00: `d` on `exec` (+1.00 ms).",
            "Equivalent within 1 % in every workload: `free`.",
            "Cannot run here\n- `x`: only root\n",
            "Failed\n- `y`: it broke\n",
        ] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
    }

    #[test]
    fn what_has_a_failed_workload_is_not_free_in_every_workload() {
        let mut report = report();
        assert_eq!(without_cost(&report).len(), 1);
        let free = report.entries.iter_mut().find(|result| result.entry.treatment == "free");
        let failures = &mut free.unwrap().measured.as_mut().unwrap().failures;
        failures.push(Failure {
            workload: "pipe".into(),
            arm: "free".into(),
            reason: "it broke".into(),
        });
        assert_eq!(without_cost(&report), Vec::<String>::new());
    }

    #[test]
    fn the_warnings_of_all_experiments_are_quoted_once_per_kind() {
        let mut report = report();
        let mut warn = |at: usize, warning: &str| {
            report.entries[at].measured.as_mut().unwrap().warnings.push(warning.into());
        };
        warn(0, "Load: it is 1.2.");
        warn(1, "Load: it is 3.4.");
        warn(1, "2 of 9 pairs were disturbed.");
        warn(2, "11 of 40 pairs were disturbed.");
        let lines = warnings(&report);
        let of_kind =
            |count| format!("({} with a warning of this kind)", format::plural(count, "treatment"));
        assert_eq!(lines[0], format!("2 of 9 pairs were disturbed. {}", of_kind(2)));
        assert_eq!(lines[1], format!("Load: it is 1.2. {}", of_kind(2)));
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn every_format_but_junit_has_the_atlas_and_no_text_becomes_markup() {
        let mut report = report();
        let hostile = "<script>alert(1)</script>\u{1b}[31m\n|";
        let AtlasEntry { title, misses, sees, .. } = &mut report.entries[0].entry;
        for text in [title, misses, sees] {
            hostile.clone_into(text);
        }
        let report = Report::from(report);
        for format in FORMATS.iter().filter(|format| !format.is_json) {
            let rendered = (format.render)(&report);
            if format.name == "junit" {
                assert!(rendered.unwrap_err().contains("has no tests for --junit"));
                continue;
            }
            let text = rendered.unwrap();
            assert!(!text.contains('\u{1b}'), "{}: {text}", format.name);
            assert!(format.name != "html" || !text.contains("<script"), "{text}");
        }
    }
}
