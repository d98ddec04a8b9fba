//! An experiment the way that well-known tables look: one file per table.
//!
//! They show rates and differences only. None of them has an interval or a verdict, which is why
//! they are asked for, and never what is shown first.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use super::cumulative::{self, Cumulative};
use super::imported;
use super::table::Table;
use paired::estimate::median;
use weigh_model::format;
use weigh_model::result::imported::{Figure, FigureKey, Imported};
use weigh_model::result::load::LoadAnswers;
use weigh_model::result::report::Report;
use weigh_model::result::run::RunReport;
use weigh_model::result::summary::{NOTHING, Row, Summary};
use weigh_model::result::times::TimesRow;
use weigh_model::result::work_name::WorkName;
use weigh_model::workload::clock::is_path_length;

mod asked_servers;
pub mod lmbench;
mod lmbench_columns;
mod nitzberg;
mod perlbench;
mod reaim;
mod side_by_side;
mod smalley;
pub mod unixbench;
mod whitcher;

/// Whose table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    UnixBench,
    Lmbench,
    Nitzberg,
    Smalley,
    Reaim,
    ReaimCsv,
    Whitcher,
}

impl Dialect {
    /// Whether its numbers are indices and times of a clock; the others show changes, or name their units.
    fn is_of_time(self) -> bool {
        matches!(self, Dialect::UnixBench | Dialect::Lmbench | Dialect::Whitcher)
    }
}

const DIALECTS: [(Dialect, &str); 7] = [
    (Dialect::UnixBench, "unixbench"),
    (Dialect::Lmbench, "lmbench"),
    (Dialect::Nitzberg, "nitzberg"),
    (Dialect::Smalley, "smalley"),
    (Dialect::Reaim, "reaim"),
    (Dialect::ReaimCsv, "reaim-csv"),
    (Dialect::Whitcher, "whitcher"),
];

/// As they are given to `--as`.
pub fn names() -> impl Iterator<Item = &'static str> {
    DIALECTS.iter().map(|(_, name)| *name)
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Dialect, String> {
        let known = DIALECTS.iter().find(|(_, known)| *known == name);
        known
            .map(|(dialect, _)| *dialect)
            .ok_or_else(|| format!("it is one of {}", names().collect::<Vec<_>>().join(", ")))
    }
}

/// What these tables are made of.
struct Sheet {
    /// Of the experiment.
    id: String,
    /// The baseline first; of a run, its only arm.
    arms: Vec<String>,
    lines: Vec<SheetLine>,
    /// Of UnixBench, where the figures are its own.
    version: Option<String>,
    /// The first thing to know, where it was not measured here.
    head: Option<String>,
    /// Where there is one treatment, and records were counted.
    cumulative: Option<Cumulative>,
    /// Of a run: the mixes that were measured with several numbers of users.
    loads: Vec<LoadAnswers>,
    /// Of databases: inserts a second, per arm.
    inserts: Vec<(WorkName, Vec<Option<f64>>)>,
}

/// What workloads call the inserts among their times.
const INSERT: &str = "insert";

/// A workload or test.
struct SheetLine {
    name: WorkName,
    /// Of the rate; where a time was read, that of the time.
    unit: String,
    /// Per arm, of times per second; `None` where it has no result.
    rates: Vec<Option<f64>>,
    /// Per arm, of the pairs' samples: the highest rate and the lowest.
    extremes: Vec<Option<[f64; 2]>>,
    /// The effect of each set in per cent, where there is one treatment.
    sets: Vec<f64>,
    /// Likewise, where they were counted.
    records_per_op: Option<f64>,
    log_bytes_per_op: Option<f64>,
    /// Per arm: what its index counts as the baseline, where the file says so.
    baselines: Vec<Option<f64>>,
}

/// The table, for a terminal.
///
/// # Errors
/// A sentence, where the experiment has nothing that belongs into it.
pub fn render(dialect: Dialect, report: &Report) -> Result<String, String> {
    table(dialect, &Sheet::of(report)?)
}

fn table(dialect: Dialect, sheet: &Sheet) -> Result<String, String> {
    if dialect.is_of_time() {
        check_clock(sheet)?;
    }
    let text = match dialect {
        Dialect::UnixBench => unixbench::render(sheet),
        Dialect::Lmbench => lmbench::render(sheet),
        Dialect::Nitzberg => nitzberg::render(sheet),
        Dialect::Smalley => smalley::render(sheet),
        Dialect::Reaim => reaim::render(sheet),
        Dialect::ReaimCsv => reaim::render_csv(sheet),
        Dialect::Whitcher => whitcher::render(sheet),
    }?;
    let head = sheet.head.as_ref().map(|head| format!("{head}\n\n")).unwrap_or_default();
    Ok(head + &text)
}

/// # Errors
/// A sentence, where a line is of instructions: per thousand million of them it would be read as per second.
fn check_clock(sheet: &Sheet) -> Result<(), String> {
    match sheet.lines.iter().find(|line| is_path_length(&line.unit)) {
        None => Ok(()),
        Some(line) => Err(format!(
            "this table has times, and {} is a path length ({}): its guest counted instructions, which are \
             no time. `--as smalley` shows instructions per operation",
            line.name, line.unit
        )),
    }
}

/// The table as a page, which only Nitzberg's has: with his figure.
///
/// # Errors
/// A sentence, where the experiment has nothing that belongs into it, or the table has no page.
pub fn page(dialect: Dialect, report: &Report) -> Result<String, String> {
    match dialect {
        Dialect::Nitzberg => nitzberg::page(&Sheet::of(report)?),
        _ => Err("only `--as nitzberg` has a page; the others are text".into()),
    }
}

/// Inserts per second of each workload that reports how many of its queries inserted: that share of the
/// query rate in the table. A sum over all time next to a median could show more inserts than queries.
fn inserts(
    times: &[TimesRow],
    arms: &[&str],
    lines: &[SheetLine],
) -> Vec<(WorkName, Vec<Option<f64>>)> {
    let mut found: Vec<(WorkName, Vec<Option<f64>>)> = Vec::new();
    for row in times.iter().filter(|row| row.of == INSERT) {
        let Some(line) = lines.iter().find(|line| line.name == row.workload) else { continue };
        let arm = match &row.treatment {
            Some(label) => arms.iter().position(|arm| arm == label),
            None => Some(0),
        };
        let at = found.iter().position(|(name, _)| *name == row.workload).unwrap_or_else(|| {
            found.push((row.workload.clone(), vec![None; arms.len()]));
            found.len() - 1
        });
        if let Some(arm) = arm {
            let rate = line.rates[arm];
            found[at].1[arm] = rate.zip(row.per_op).map(|(queries, share)| queries * share);
        }
    }
    found
}

impl Sheet {
    fn of(report: &Report) -> Result<Sheet, String> {
        match report {
            Report::Compared(s) => Ok(Sheet::of_summary(s)),
            Report::Run(report) => Ok(Sheet::of_run(report)),
            Report::Rules(_) | Report::Budget(_) | Report::Profile(_) => Err(format!(
                "{} is a result of {}, which no table of another tool can show: leave out --as",
                report.id(),
                report.header().kind.commands()
            )),
        }
    }

    fn of_run(report: &RunReport) -> Sheet {
        let RunReport { id, results, times, loads, .. } = report;
        let rates = results.iter().map(|row| (row.workload.clone(), row.unit.clone(), row.rate));
        let mut sheet = Sheet::of_rates(id, NOTHING, rates);
        for (line, row) in sheet.lines.iter_mut().zip(results) {
            line.extremes = vec![Some([row.highest, row.lowest])];
        }
        sheet.inserts = inserts(times, &[NOTHING], &sheet.lines);
        Sheet { loads: loads.clone(), ..sheet }
    }

    /// The same of name, unit and rate of each workload.
    fn of_rates(
        id: &str,
        label: &str,
        rates: impl Iterator<Item = (WorkName, String, f64)>,
    ) -> Sheet {
        let lines = rates.map(|(name, unit, rate)| SheetLine {
            rates: vec![Some(rate)],
            extremes: vec![None],
            baselines: vec![None],
            ..SheetLine::of(&name, &unit)
        });
        Sheet {
            id: format::label(id),
            arms: vec![format::label(label)],
            lines: lines.collect(),
            version: None,
            head: None,
            cumulative: None,
            loads: Vec::new(),
            inserts: Vec::new(),
        }
    }

    /// Of an experiment that compares, or an import.
    fn of_summary(s: &Summary) -> Sheet {
        let treatments: Vec<&str> = s.treatments.iter().map(|t| t.label.as_str()).collect();
        let arms = std::iter::once(s.baseline.as_str()).chain(treatments.iter().copied());
        let arms: Vec<&str> = arms.collect();
        let figures = s.imported.as_ref().filter(|imported| imported.is_figures());
        let mut sheet = Sheet {
            id: format::label(&s.id),
            arms: arms.iter().map(format::label).collect(),
            lines: Vec::new(),
            version: figures.and_then(version),
            head: s.imported.as_ref().map(imported::head),
            cumulative: None,
            loads: Vec::new(),
            inserts: Vec::new(),
        };
        match figures {
            Some(imported) => sheet.add_figures(imported, &arms),
            None => sheet.add_rows(&s.results, &treatments),
        }
        sheet.inserts = inserts(&s.times, &arms, &sheet.lines);
        if treatments.len() == 1 {
            sheet.cumulative = cumulative::of(s).pop();
            let mut rows: BTreeMap<&WorkName, &Row> = BTreeMap::new();
            for row in &s.results {
                rows.entry(&row.workload).or_insert(row);
            }
            for line in &mut sheet.lines {
                let row = rows.get(&line.name);
                line.sets = row
                    .map(|row| row.sets.iter().map(|set| set.effect_pct).collect())
                    .unwrap_or_default();
                let per_op = |name| row?.evidence.amounts.number(name);
                line.records_per_op = per_op("records_per_op");
                line.log_bytes_per_op = per_op("log_bytes_per_op");
            }
        }
        sheet
    }

    /// The middle of what the files of each arm say.
    fn add_figures(&mut self, imported: &Imported, arms: &[&str]) {
        let mut indices: HashMap<&str, Vec<HashMap<FigureKey, &Figure>>> = HashMap::new();
        for file in &imported.files {
            indices.entry(&file.arm).or_default().push(file.index());
        }
        for figure in imported.distinct() {
            let of_arm = |arm: &&str| -> Vec<&Figure> {
                let files = indices.get(*arm).into_iter().flatten();
                files.filter_map(|index| index.get(&figure.key()).copied()).collect()
            };
            let rate = |figures: Vec<&Figure>| {
                let rates = figures.iter().filter_map(|figure| figure.rate_of(figure.value));
                median(&rates.collect::<Vec<f64>>())
            };
            let baseline = |figures: Vec<&Figure>| figures.iter().find_map(|f| f.baseline);
            self.lines.push(SheetLine {
                name: figure.name(),
                unit: figure.unit.clone(),
                records_per_op: None,
                log_bytes_per_op: None,
                rates: arms.iter().map(|arm| rate(of_arm(arm))).collect(),
                extremes: vec![None; arms.len()],
                sets: Vec::new(),
                baselines: arms.iter().map(|arm| baseline(of_arm(arm))).collect(),
            });
        }
    }

    fn add_rows(&mut self, rows: &[Row], treatments: &[&str]) {
        let mut places: BTreeMap<&WorkName, usize> = BTreeMap::new();
        for row in rows {
            let at = *places.entry(&row.workload).or_insert_with(|| {
                self.lines.push(SheetLine {
                    rates: vec![None; treatments.len() + 1],
                    extremes: vec![None; treatments.len() + 1],
                    baselines: vec![None; treatments.len() + 1],
                    ..SheetLine::of(&row.workload, &row.unit)
                });
                self.lines.len() - 1
            });
            let SheetLine { rates, extremes, .. } = &mut self.lines[at];
            // These tables show rates over all time; the rate of interleaved pairs is the median slice's.
            let over_all = row.baseline_over_all.unwrap_or(row.baseline) / row.baseline;
            rates[0].get_or_insert(row.baseline * over_all);
            let of_baseline = extremes[0].or_else(|| extremes_of(row, 0));
            extremes[0] = of_baseline;
            if let Some(arm) = treatments.iter().position(|label| *label == row.treatment) {
                rates[arm + 1] = Some(row.treated * over_all);
                extremes[arm + 1] = extremes_of(row, 1);
            }
        }
    }
}

impl SheetLine {
    fn of(name: &WorkName, unit: &str) -> SheetLine {
        SheetLine {
            name: name.clone(),
            unit: unit.into(),
            rates: Vec::new(),
            extremes: Vec::new(),
            sets: Vec::new(),
            records_per_op: None,
            log_bytes_per_op: None,
            baselines: Vec::new(),
        }
    }
}

/// The highest and the lowest rate of an arm's samples: 0 is the baseline, 1 the treated arm.
fn extremes_of(row: &Row, arm: usize) -> Option<[f64; 2]> {
    let rates = || row.series.iter().map(|pair| pair.rates_over_all[arm]);
    Some([rates().reduce(f64::max)?, rates().reduce(f64::min)?])
}

/// Which UnixBench it was; `None` for figures of another program.
fn version(imported: &Imported) -> Option<String> {
    let format = &imported.files.first()?.format;
    format.strip_prefix("UnixBench").map(|version| version.trim().to_owned())
}

/// At least three significant digits, and every digit before the point, as these tables have them.
fn three_digits(value: f64) -> String {
    if !value.is_finite() {
        return format::NONE.into();
    }
    let decimals = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        size if size >= 0.09995 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

/// A ratio less 1, in whole per cent.
fn whole_percent(ratio: f64) -> String {
    // Adding 0 takes the sign from what rounds to nothing.
    format!("{}%", ((ratio - 1.0) * 100.0).round() + 0.0).replace('-', "−")
}

/// All columns, however many: these tables are compared with printed ones.
fn lines(table: &Table) -> String {
    table.to_lines(usize::MAX).join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_length_is_in_no_table_of_times() {
        let sheet = |unit: &str| {
            let rate = |name: &str| (name.into(), unit.into(), 1e6);
            let names = ["execl", "stat", "lat-pipe@same-cpu"];
            Sheet::of_rates("id", "none", names.map(rate).into_iter())
        };
        for dialect in [Dialect::UnixBench, Dialect::Lmbench, Dialect::Whitcher] {
            assert!(table(dialect, &sheet("ops/s")).is_ok(), "{dialect:?}");
            let refused = table(dialect, &sheet("ops/Ginstr")).unwrap_err();
            assert!(
                refused.contains("execl is a path length (ops/Ginstr)"),
                "{dialect:?}: {refused}"
            );
        }
        let instructions = table(Dialect::Smalley, &sheet("ops/Ginstr")).unwrap();
        assert!(instructions.contains("instr"), "{instructions}");
    }
}
