//! From results that were read to an experiment that says what they can bear, and no more.
//!
//! One number each has no noise to be judged by: there is a difference, and neither interval nor
//! verdict. Where both sides have their runs there is an interval as `weigh diff` makes it, of what was
//! not paired, and no verdict either. An experiment of weigh keeps its own.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::labels::{Labels, as_alternatives, name};
use super::{Content, Document, ImportedResults};
use paired::estimate::median;
use paired::unpaired::{difference, median_interval};
use paired::{Interval, Verdict};
use weigh_model::format;
use weigh_model::result::imported::{Figure, FigureKey, File, Imported};
use weigh_model::result::plausible;
use weigh_model::result::summary::{
    AppliedTreatment, Failure, Row, SCHEMA, SetEffect, State, Summary,
};
use weigh_model::result::warning::Warning;
use weigh_model::result::work_name::WorkName;

/// Error rate of an interval.
const ALPHA: f64 = 0.05;

/// Makes an experiment of files, without the id that the store gives it.
pub fn summary(documents: Vec<(String, Document)>, labels: &Labels) -> Result<Summary, String> {
    if let Some((file, _)) = documents.iter().find(|(_, document)| document.is_experiment())
        && documents.len() > 1
    {
        return Err(format!(
            "{file} is a whole weigh experiment, which must be imported alone: run `weigh import {file}`, \
             and compare experiments with `weigh diff ID ID`"
        ));
    }
    let mut warnings = Vec::new();
    let mut results: Vec<(String, ImportedResults)> = Vec::new();
    for (file, document) in documents {
        let of_file = |doubt| Warning::ImportedFile { file: file.clone(), doubt };
        warnings.extend(document.warnings.into_iter().map(of_file));
        match document.content {
            Content::Experiment(summary) => {
                plausible::check(&summary).map_err(|problem| format!("{file}: {problem}"))?;
                return Ok(of_weigh(file, *summary));
            }
            Content::Results(of_file) => {
                results.extend(of_file.into_iter().map(|results| (file.clone(), results)));
            }
        }
    }
    as_alternatives(&mut results);
    let files = name(results, labels)?;
    let baseline = labels.base.clone().unwrap_or_else(|| files[0].arm.clone());
    let mut summary = empty(baseline, warnings);
    compare(&mut summary, &files)?;
    if states_intervals(&files) {
        // Each file's interval has its own error rate.
        summary.alpha = 2.0 * ALPHA;
    }
    let cannot = cannot(&summary, &files);
    summary.imported = Some(Imported { files, cannot, original: None });
    plausible::check(&summary)?;
    Ok(summary)
}

/// Its verdicts stand; that they were reached elsewhere is said.
fn of_weigh(file: String, mut summary: Summary) -> Summary {
    let original = Some(summary.id.clone());
    let arm = summary.baseline.clone();
    summary.imported.get_or_insert_with(|| Imported {
        files: vec![File { file, format: SCHEMA.into(), arm, set: 1, ..File::default() }],
        cannot: vec![
            "The verdicts are from the original experiment: its pairs are not in the file, so weigh cannot \
             evaluate them again."
                .into(),
        ],
        original,
    });
    summary
}

fn empty(baseline: String, warnings: Vec<Warning>) -> Summary {
    Summary {
        schema: SCHEMA.into(),
        state: State::Complete,
        sessions: 1,
        alpha: ALPHA,
        multiplicity: "holm".into(),
        margin_pct: 1.0,
        baseline,
        warnings,
        ..Summary::default()
    }
}

/// A result whose figures are found at once: a file may have a hundred thousand.
struct Indexed<'a> {
    file: &'a File,
    figures: HashMap<FigureKey<'a>, &'a Figure>,
}

/// The results of each label, in the order in which the labels come.
fn by_arm(files: &[File]) -> Vec<(&str, Vec<Indexed<'_>>)> {
    let mut arms: Vec<(&str, Vec<Indexed>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for file in files {
        let place = *places.entry(&file.arm).or_insert_with(|| {
            arms.push((&file.arm, Vec::new()));
            arms.len() - 1
        });
        arms[place].1.push(Indexed { file, figures: file.index() });
    }
    arms
}

/// Holds every other label against the baseline, set by set.
fn compare(summary: &mut Summary, files: &[File]) -> Result<(), String> {
    let (base, treated): (Vec<_>, Vec<_>) =
        by_arm(files).into_iter().partition(|(arm, _)| *arm == summary.baseline);
    let base: Vec<Indexed> = base.into_iter().flat_map(|(_, results)| results).collect();
    for (treatment, treated) in treated {
        if treated.len() != base.len() {
            return Err(format!(
                "{:?} has {} and {treatment:?} has {}: give the same number of results per label",
                summary.baseline,
                format::plural(base.len(), "result"),
                treated.len()
            ));
        }
        let mut known = HashSet::new();
        // What all have, the first has.
        for figure in base.first().into_iter().flat_map(|first| &first.file.figures) {
            let is_rate = figure.rate_of(1.0).is_some();
            let mut all = base.iter().chain(&treated);
            if !is_rate
                || !known.insert(figure.key())
                || !all.all(|results| results.figures.contains_key(&figure.key()))
            {
                continue;
            }
            match row(figure, &base, &treated, treatment) {
                Ok(row) => summary.results.push(row),
                Err(reason) => summary.failures.push(Failure {
                    workload: figure.name(),
                    arm: treatment.to_owned(),
                    reason,
                }),
            }
        }
        summary.treatments.push(AppliedTreatment {
            label: treatment.to_owned(),
            differences: Vec::new(),
            facts: Vec::new(),
            quantities: Vec::new(),
        });
    }
    if summary.results.is_empty() && !summary.treatments.is_empty() {
        return Err("no test is in all files with the same unit".into());
    }
    Ok(())
}

/// One test under one label, which all results have; or why there is no difference to tell.
fn row(figure: &Figure, base: &[Indexed], treated: &[Indexed], arm: &str) -> Result<Row, String> {
    let find = |results: &Indexed| -> Result<Figure, String> {
        let found = results.figures[&figure.key()];
        match found.value > 0.0 {
            true => Ok(found.clone()),
            false => Err(format!("{} contains the value 0, which has no ratio", results.file.file)),
        }
    };
    let (mut rates, mut sets, mut interval) = ([Vec::new(), Vec::new()], Vec::new(), None);
    for (before, after) in base.iter().zip(treated) {
        let (before, after) = (find(before)?, find(after)?);
        let logs = [&before, &after].map(|figure| {
            let runs = figure.runs.iter().filter_map(|run| figure.rate_of(*run));
            runs.map(f64::ln).filter(|log| log.is_finite()).collect::<Vec<f64>>()
        });
        let values = [&before, &after].map(|figure| figure.rate_of(figure.value).unwrap_or(0.0));
        let mut middles = values.map(f64::ln);
        if base.len() == 1
            && let [Some(a), Some(b)] = [median(&logs[0]), median(&logs[1])]
        {
            let [a_in, b_in] = [&logs[0], &logs[1]].map(|logs| median_interval(logs, ALPHA / 2.0));
            middles = [a, b];
            interval = Some(difference(a_in, b_in));
        }
        if base.len() == 1
            && let Some([a_in, b_in]) = stated(&before, &after)
        {
            interval = Some(difference(a_in, b_in));
        }
        for (rates, middle) in rates.iter_mut().zip(middles) {
            rates.push(middle.exp());
        }
        sets.push(middles[1] - middles[0]);
    }
    let percent = |log: f64| log.exp_m1() * 100.0;
    let bound = |log: f64| log.is_finite().then(|| percent(log));
    let Interval { low, high } = interval.unwrap_or(Interval::UNBOUNDED);
    let set = |log: &f64| SetEffect { effect_pct: percent(*log), ..SetEffect::default() };
    Ok(Row {
        workload: figure.name(),
        treatment: arm.into(),
        metric: "rate".into(),
        unit: figure.rate_unit(),
        baseline: median(&rates[0]).unwrap_or(0.0),
        treated: median(&rates[1]).unwrap_or(0.0),
        effect_pct: percent(sets.iter().sum::<f64>() / sets.len() as f64),
        low_pct: bound(low),
        high_pct: bound(high),
        verdict: Verdict::Inconclusive,
        precise: true,
        sets: if sets.len() > 1 { sets.iter().map(set).collect() } else { Vec::new() },
        ..Row::default()
    })
}

/// The intervals that two files state themselves, of the logarithms of rates.
fn stated(before: &Figure, after: &Figure) -> Option<[Interval; 2]> {
    let log = |figure: &Figure| {
        let ends = figure.interval?.map(|end| figure.rate_of(end).map(f64::ln));
        let [one, other] = [ends[0]?, ends[1]?];
        Some(Interval { low: one.min(other), high: one.max(other) })
    };
    Some([log(before)?, log(after)?])
}

fn states_intervals(files: &[File]) -> bool {
    files.iter().flat_map(|file| &file.figures).any(|figure| figure.interval.is_some())
}

/// Writes which conclusions these files do not allow.
fn cannot(summary: &Summary, files: &[File]) -> Vec<String> {
    let mut said = Vec::new();
    let has_interval = |row: &Row| row.low_pct.is_some() || row.high_pct.is_some();
    if summary.treatments.is_empty() {
        said.push(
            "No difference: only one label was imported, so there is no baseline.".to_owned(),
        );
    } else if summary.results.iter().any(has_interval) {
        said.push(
            "No verdict: the runs were not paired. An interval covers the noise within the runs of both \
             sides. It does not cover other differences, such as boot, memory layout, heat and neighbours."
                .to_owned(),
        );
    }
    if states_intervals(files) && summary.results.iter().any(has_interval) {
        said.push(
            "The interval of a difference comes from the intervals of 95 % in the two files, so it is one of \
             90 %."
                .to_owned(),
        );
    }
    if !summary.treatments.is_empty() && !summary.results.iter().all(has_interval) {
        said.push(
            "Rows with one number per side have no interval and no verdict: their difference may be noise."
                .to_owned(),
        );
    }
    let all = || files.iter().flat_map(|file| &file.figures);
    let mut holders: HashMap<FigureKey, usize> = HashMap::new();
    for key in files.iter().flat_map(|file| file.index().into_keys().collect::<Vec<FigureKey>>()) {
        *holders.entry(key).or_default() += 1;
    }
    let alone = all().filter(|figure| holders[&figure.key()] < files.len());
    let alone: BTreeSet<WorkName> = alone.map(Figure::name).collect();
    if !alone.is_empty() {
        let (number, verb) = (alone.len(), if alone.len() == 1 { "test is" } else { "tests are" });
        said.push(format!("{number} {verb} missing from some files and not compared."));
    }
    let counts = all().any(|figure| figure.rate_of(1.0).is_none());
    if counts {
        said.push(
            "Counts of events are shown without a difference: they are neither a cost nor a gain."
                .to_owned(),
        );
    }
    said
}
