//! Reports of UnixBench (BYTE UNIX Benchmarks) 3.11, 4.x, 5.1.3 and 6.0.0, and its CSV.
//!
//! A result is a line `TITLE  VALUE UNIT  (SECONDS, N samples)`; a line of the index is
//! `TITLE  BASELINE  RESULT  INDEX`. 5.x repeats both for each number of parallel copies.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Content, Document, ForeignFormat, ImportedResults, Problem, figure, number, words};
use weigh_model::format;
use weigh_model::result::imported::Figure;
use weigh_model::result::unixbench_index::Formula;
use weigh_model::result::work_name::WorkName;

pub static IMPORT: ForeignFormat = ForeignFormat {
    name: "unixbench",
    what: "a report of UnixBench",
    rank: 6,
    is_json: false,
    is_it: |text| text.contains("BYTE UNIX Benchmarks"),
    read,
};

/// Each report begins with it.
const HEAD: &str = "BYTE UNIX Benchmarks (Version ";
/// Everything is printed with one decimal.
const ROUNDING: f64 = 0.051;

/// Reads the reports, and does their sums again.
fn read(text: &str) -> Result<Document, Problem> {
    let mut reports = vec![Report::default()];
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.contains(HEAD) {
            reports.push(Report::default());
        }
        let report = reports.last_mut().expect("there is a first report");
        report.line(line).map_err(|problem| (Some(number + 1), problem))?;
    }
    // What stands before the first head is make's output, or a report that has lost its head.
    reports.retain(|report| !report.figures.is_empty());
    let is_alone = reports.len() < 2;
    let hosts: BTreeSet<&str> = reports.iter().map(|report| report.host.as_str()).collect();
    let is_told_by_host = hosts.len() == reports.len() && !hosts.contains("");
    let (mut results, mut warnings) = (Vec::new(), Vec::new());
    for (number, report) in reports.into_iter().enumerate() {
        let label = match is_told_by_host {
            true => report.host.clone(),
            false => format!("report {}", number + 1),
        };
        let label = Some(label).filter(|_| !is_alone);
        warnings.extend(report.doubts().map(|doubt| match &label {
            Some(label) => format!("{label}: {doubt}"),
            None => doubt,
        }));
        let format = format!("UnixBench {}", report.version).trim_end().into();
        results.push(ImportedResults {
            format,
            label,
            figures: report.figures,
            ..Default::default()
        });
    }
    Ok(Document { content: Content::Results(results), warnings })
}

#[derive(Default)]
struct Report {
    version: String,
    /// As it calls the machine; empty where it does not.
    host: String,
    copies: Option<u32>,
    /// True if the lines belong to the index.
    in_index: bool,
    /// True if an index began, or the report states that it has no index.
    has_index: bool,
    /// Indices from the results over the baselines of this index, each with the largest that
    /// rounding allows.
    indices: Vec<[f64; 2]>,
    figures: Vec<Figure>,
    /// Where each is, by its name.
    places: BTreeMap<WorkName, usize>,
    warnings: Vec<String>,
}

impl Report {
    /// Inconsistencies, as whole sentences.
    fn doubts(&self) -> impl Iterator<Item = String> {
        let end = if self.in_index {
            Some("The report ends within its index.")
        } else if !self.has_index {
            Some("The report has no index, so its end may be missing.")
        } else {
            None
        };
        self.warnings.iter().cloned().chain(end.map(str::to_owned))
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some((_, rest)) = line.split_once(HEAD) {
            self.version = rest.split(')').next().unwrap_or_default().trim().into();
        } else if let Some(system) = line.strip_prefix("System: ").filter(|_| self.host.is_empty())
        {
            self.host = words(system.split(':').next().unwrap_or_default());
        } else if let Some((_, rest)) = line.split_once("; running ") {
            let copies = rest.split(' ').next().and_then(|word| word.parse().ok());
            self.copies = copies.filter(|copies| *copies != 1);
            if !self.figures.is_empty() && !self.has_index {
                self.warnings
                    .push("A part of the file has no index, so its end may be missing.".into());
            }
            (self.in_index, self.has_index) = (false, false);
        } else if line.contains("BASELINE") && line.contains("INDEX") {
            (self.in_index, self.has_index) = (true, true);
            self.indices.clear();
        } else if line.starts_with("No index results available") {
            self.has_index = true;
        } else if let Some((name, tail)) = sample_tail(line) {
            self.result(name, tail)?;
        } else if self.in_index {
            self.index_line(line)?;
        }
        Ok(())
    }

    /// `TITLE VALUE UNIT`, and what stood between the parentheses.
    fn result(&mut self, head: &str, tail: &str) -> Result<(), String> {
        let mut parts = head.split_whitespace().rev();
        let (unit, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let title: Vec<&str> = parts.rev().collect();
        let value = number(value).filter(|_| !title.is_empty()).ok_or_else(|| {
            format!("a result is `TITLE VALUE UNIT ({tail})`, but {value:?} is not a number")
        })?;
        let figure = Figure { copies: self.copies, ..figure(&title.join(" "), value, unit) };
        if self.places.contains_key(&figure.name()) {
            return Err(format!(
                "{:?} appears twice in one report: each report begins with `{HEAD}…)`",
                figure.name()
            ));
        }
        self.keep(figure);
        Ok(())
    }

    fn keep(&mut self, figure: Figure) {
        self.places.insert(figure.name(), self.figures.len());
        self.figures.push(figure);
    }

    fn index_line(&mut self, line: &str) -> Result<(), String> {
        let is_score = ["FINAL SCORE", "Index Score", "AVERAGE"].iter().any(|of| line.contains(of));
        if let Some(printed) = line.split_whitespace().last().and_then(number)
            && is_score
        {
            self.score(printed);
            return Ok(());
        }
        let mut parts = line.split_whitespace().rev();
        let last: Vec<&str> = parts.by_ref().take(3).collect();
        let title = parts.rev().collect::<Vec<_>>().join(" ");
        let [index, result, baseline] = last[..] else {
            return Ok(());
        };
        if let (Some(index), Some(result), Some(baseline)) =
            (number(index), number(result), number(baseline))
            && !title.is_empty()
        {
            if baseline <= 0.0 {
                return Err(format!("the baseline of {title:?} must be above 0"));
            }
            self.of_index(&title, baseline, result, index);
            return Ok(());
        }
        Ok(())
    }

    fn of_index(&mut self, title: &str, baseline: f64, result: f64, printed: f64) {
        let formula = Formula::of_version(&self.version);
        let [index, most] =
            [result, result + ROUNDING].map(|result| formula.index(result, baseline));
        self.indices.push([index, most]);
        if (index - printed).abs() > most - index + ROUNDING {
            self.warnings.push(format!(
                "The report prints the index {printed} for {title}, but result divided by baseline gives \
                 {index:.1}."
            ));
        }
        // Where only the index was kept, this is its result.
        let own = figure(title, result, unit_of(title));
        let own = Figure { copies: self.copies, baseline: Some(baseline), ..own };
        match self.places.get(&own.name()) {
            Some(&place) => {
                let figure = &mut self.figures[place];
                if (figure.value - result).abs() > ROUNDING {
                    self.warnings.push(format!(
                        "The report gives {} for {title} among the results, but {result} in its index.",
                        figure.value
                    ));
                }
                figure.baseline = Some(baseline);
            }
            None => self.keep(own),
        }
    }

    fn score(&mut self, printed: f64) {
        let [found, most] = [0, 1].map(|which| {
            let indices: Vec<f64> = self.indices.iter().map(|index| index[which]).collect();
            Formula::of_version(&self.version).score(&indices).unwrap_or(printed)
        });
        if (found - printed).abs() > most - found + ROUNDING {
            self.warnings.push(format!(
                "The report prints the final index {printed}, but its {} give {found:.1}.",
                format::plural(self.indices.len(), "line")
            ));
        }
        self.in_index = false;
    }
}

/// Splits a result's line at its last parenthesis, if that is about samples.
fn sample_tail(line: &str) -> Option<(&str, &str)> {
    let (head, tail) = line.strip_suffix(')')?.rsplit_once('(')?;
    (tail.ends_with("samples") || tail.ends_with("sample")).then_some((head, tail))
}

/// The unit of a test that stands only in a table without units.
fn unit_of(title: &str) -> &'static str {
    let has = |word: &str| title.contains(word);
    if has("Whetstone") {
        "MWIPS"
    } else if has("File ") {
        "KBps"
    } else if has("Shell") || has("Compiler") || has("Dc:") || has("Grep") {
        "lpm"
    } else {
        "lps"
    }
}

/// `Concurrency,TITLE,…`, then a line of scores per number of copies.
pub fn read_csv(text: &str) -> Result<Vec<ImportedResults>, Problem> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, head) = lines.next().ok_or((None, "the file is empty".to_owned()))?;
    let titles: Vec<String> = head.split(',').skip(1).map(words).collect();
    let mut figures = Vec::new();
    for (at, line) in lines {
        let said = |problem: String| (Some(at + 1), problem);
        let mut cells = line.split(',');
        let copies: u32 = cells
            .next()
            .and_then(|cell| cell.trim().parse().ok())
            .ok_or_else(|| said("a line begins with the number of copies".into()))?;
        let values: Vec<&str> = cells.collect();
        if values.len() != titles.len() {
            let scores = format::plural(values.len(), "score");
            let problem = format!("{scores} for {}", format::plural(titles.len(), "test"));
            return Err(said(problem));
        }
        for (title, value) in titles.iter().zip(values) {
            let value = number(value)
                .ok_or_else(|| said(format!("{value:?} is not a score of {title:?}")))?;
            let copies = Some(copies).filter(|copies| *copies != 1);
            figures.push(Figure { copies, ..figure(title, value, unit_of(title)) });
        }
    }
    Ok(vec![ImportedResults {
        format: "UnixBench CSV".into(),
        label: None,
        figures,
        ..Default::default()
    }])
}
