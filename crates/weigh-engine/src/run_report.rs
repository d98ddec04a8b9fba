//! This machine alone: the rate of every workload with its spread, and the indices of the suites
//! that were measured.

use std::collections::BTreeSet;

use super::net_answers::net_answers;
use super::provenance::Provenance;
use super::times;
use weigh_model::ids::{ArmId, RowId};
use weigh_model::record::Stored;
use weigh_model::result::run::{RunReport, RunRow, SCHEMA, counts};
use weigh_model::result::series::{RunSample, RunSeries};
use weigh_model::result::suite_index;
use weigh_model::result::suite_index::{SuiteIndex, items};
use weigh_model::result::warning::Warning;
use weigh_model::result::work_name::WorkName;
use weigh_model::samples::RowSamples;
use weigh_model::workload::suite;
use weigh_model::workload::suite::{FromFile, Suite};
use weigh_verdict::load_answers::load_answers;
use weigh_verdict::run_row::{add_efficiency, row};

pub fn report(stored: &Stored) -> RunReport {
    let suites = suite::embedded().unwrap_or_default();
    let is_classic = stored.header.is_classic;
    let mut results: Vec<RunRow> =
        stored.header.work_ids().filter_map(|work| row(stored, work, is_classic)).collect();
    add_efficiency(&mut results);
    let own = &stored.header.suites;
    let named: Vec<&Suite> = suites.iter().filter(|suite| is_asked_for(stored, suite)).collect();
    let asked_for: Vec<&Suite> =
        own.iter().map(|own| &own.suite).chain(named.iter().copied()).collect();
    let scored = scored(&suites, &named, &results);
    let shown = asked_for.iter().copied().find(|suite| suite.index.is_some());
    let shown = shown.or_else(|| suites.iter().find(|suite| suite.name == "unixbench"));
    let mut indices = Vec::new();
    for count in counts(&results) {
        indices.extend(indices_of(own, &scored, &results, count));
        if let Some(suite) = shown {
            add_index(&mut results, suite, count);
        }
    }
    suite_index::add_efficiency(&mut indices);
    let gives_index = |suite: &&Suite| suite::gives_index(&suites, suite);
    RunReport {
        schema: SCHEMA,
        id: stored.id.to_string(),
        started: stored.started.clone(),
        state: stored.state,
        failure: stored.failure.clone(),
        command: stored.header.command.clone(),
        machine: stored.header.machine.clone(),
        facts: stored.facts.first().cloned().unwrap_or_default(),
        indices,
        is_scored: is_classic || asked_for.iter().any(gives_index),
        is_endurance: is_endurance(stored),
        results,
        times: times::of_run(stored),
        profiles: stored.profiles.clone(),
        loads: load_answers(stored),
        net: net_answers(stored),
        failures: stored.failures.clone(),
        warnings: stored.warnings.iter().cloned().chain(unread(stored)).collect(),
        series: series(stored),
    }
}

/// Says what the report lacks if the stored request cannot be read.
fn unread(stored: &Stored) -> Option<Warning> {
    let problem = Provenance::kept(stored).err()?;
    Some(Warning::RequestOfRunUnread { problem })
}

/// Returns true for `--for`. An imported run has no request; [`unread`] warns of one that cannot be read.
fn is_endurance(stored: &Stored) -> bool {
    matches!(Provenance::kept(stored), Ok(Some(origin)) if origin.request.plan.endurance().is_some())
}

/// The samples of each work, by arm.
pub fn series(stored: &Stored) -> Vec<RunSeries> {
    let of_row = |(&(work, treated), row): (&RowId, &RowSamples)| {
        let work = &stored.header.works[work];
        let unit = row.baseline.as_ref().and_then(|totals| totals.unit.as_ref());
        let of_arm = |arm: ArmId| {
            let points = row.points.iter().filter(|point| point.is_treated != arm.is_baseline());
            let samples = points.map(|point| RunSample {
                started_s: point.started_s,
                operations: point.operations,
                elapsed_s: point.elapsed_s,
                rate: point.rate,
            });
            RunSeries {
                workload: work.name.clone(),
                arm,
                unit: unit.unwrap_or(&work.unit).clone(),
                samples: samples.collect(),
            }
        };
        BTreeSet::from([ArmId::BASELINE, treated]).into_iter().map(of_arm).collect::<Vec<_>>()
    };
    stored.samples.iter().flat_map(of_row).collect()
}

fn rate(rows: &[RunRow], workload: &str, count: usize) -> Option<f64> {
    rows.iter().find(|row| row.is_of(workload, count)).map(|row| row.rate)
}

/// The suites whose indices are told: those that were asked for, which need no more than what their index
/// counts; or, where none of these has an index, those of which all workloads were measured.
fn scored<'a>(suites: &'a [Suite], named: &[&'a Suite], rows: &[RunRow]) -> Vec<&'a Suite> {
    let with_index: Vec<&Suite> =
        named.iter().copied().filter(|suite| suite.index.is_some()).collect();
    if !with_index.is_empty() {
        return with_index;
    }
    let is_measured = |name: &str| rows.iter().any(|row| row.workload.name == name);
    let is_whole = |suite: &&Suite| suite.members.iter().all(|member| is_measured(&member.name));
    suites.iter().filter(is_whole).collect()
}

fn indices_of(
    own: &[FromFile],
    suites: &[&Suite],
    rows: &[RunRow],
    count: usize,
) -> Vec<SuiteIndex> {
    let rate = |name: &str| rate(rows, name, count);
    let of_own = own.iter().filter_map(|own| {
        let file = Some(own.file.clone());
        Some(SuiteIndex { file, ..SuiteIndex::new(&own.suite, count, rate)? })
    });
    of_own.chain(suites.iter().filter_map(|suite| SuiteIndex::new(suite, count, rate))).collect()
}

fn add_index(rows: &mut [RunRow], suite: &Suite, count: usize) {
    for item in items(suite, |name| rate(rows, name, count)) {
        let row = rows.iter_mut().find(|row| row.is_of(&item.workload, count));
        row.expect("an item is made from a row").index = Some(item.index);
    }
}

/// With a load or without.
fn is_asked_for(stored: &Stored, suite: &Suite) -> bool {
    let names = stored.header.asked_for.iter().filter_map(|label| WorkName::parse(label).ok());
    names.flatten().any(|name| name.name == suite.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use weigh_model::example::point;
    use weigh_model::ids::WorkId;
    use weigh_model::role::SampleRole;
    use weigh_model::samples::{CustomReadingMean, Kept, Point, Totals};

    /// A load point whose three samples that chose it are a tenth above its eight in rounds.
    fn chosen_by_luck(work: WorkId, rate: f64) -> RowSamples {
        let mut row = RowSamples::default();
        for number in 0..11 {
            let (role, luck) = match number {
                0..3 => (SampleRole::Compared, 1.1),
                _ => (SampleRole::Remeasured, 1.0),
            };
            let driver = CustomReadingMean { unit: "%".into(), sum: 10.0 * luck, launches: 1 };
            row.add(Kept {
                row: (work, ArmId::BASELINE),
                point: Point { role, ..point(number, rate * luck + number as f64) },
                copy_rates: Vec::new(),
                further: None,
                totals: Totals {
                    launches: 1,
                    told: [("driver_cpu".to_owned(), driver)].into(),
                    ..Totals::default()
                },
            });
        }
        row
    }

    #[test]
    fn a_request_that_cannot_be_read_is_a_warning() {
        let mut stored = example::ramp([1]);
        assert!(report(&stored).warnings.is_empty());
        stored.header.origin = Some("{}".into());
        let warnings = report(&stored).warnings;
        assert!(matches!(&warnings[..], [Warning::RequestOfRunUnread { .. }]), "{warnings:?}");
    }

    #[test]
    fn table_and_sentence_have_one_figure_for_a_load_point() {
        let mut stored = example::ramp([1, 2, 4]);
        // One user was told apart before the rounds.
        let mut alone = chosen_by_luck(WorkId(0), 500.0);
        alone.points.truncate(3);
        alone.in_rounds = None;
        stored.samples.extend([
            ((WorkId(0), ArmId::BASELINE), alone),
            ((WorkId(1), ArmId::BASELINE), chosen_by_luck(WorkId(1), 1000.0)),
            ((WorkId(2), ArmId::BASELINE), chosen_by_luck(WorkId(2), 990.0)),
        ]);
        let report = report(&stored);
        let (load, rows) = (&report.loads[0], &report.results);
        for (point, row) in load.points.iter().zip(rows) {
            let of_point = (point.jobs_per_min, point.spread_pct, point.samples);
            assert_eq!((row.rate, Some(row.spread_pct), row.samples), of_point, "{point:?}");
        }
        assert_eq!(rows.iter().map(|row| row.samples).collect::<Vec<_>>(), [3, 8, 8]);
        assert_eq!(
            load.points.iter().map(|at| at.in_rounds).collect::<Vec<_>>(),
            [false, true, true]
        );
        let best = load.best().unwrap();
        assert_eq!((best.users, best.throughput.jobs_per_min), (2, rows[1].rate));
        assert_eq!((rows[1].lowest, rows[1].highest), (1003.0, 1010.0));
        // The driver's share is of the same samples.
        assert_eq!((rows[1].readings[0].mean, rows[1].readings[0].samples), (10.0, 8));
    }
}
