//! Results that others published: what was read, what it can bear, and the table of it.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::format;
use super::sentence::quoted;
use super::summary::{Row, Summary};
use super::table::{Align, Table};

/// Where an imported experiment is from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// In the order of the command line; a file with several results is here once for each.
    pub files: Vec<File>,
    /// What cannot be said from these numbers; whole sentences.
    pub cannot: Vec<String>,
    /// The id that an experiment of weigh had where it was measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub original: Option<String>,
}

/// One result that was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct File {
    pub file: String,
    /// Whose format, with the version that the file states, e.g. `UnixBench 4.1.0`.
    pub format: String,
    /// The label of the baseline or of a treatment.
    pub arm: String,
    /// Which of several results of the same arm, from 1.
    pub set: usize,
    /// Empty for weigh's own JSON, whose rows are in `results`.
    pub figures: Vec<Figure>,
}

/// One number of a result, as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub test: String,
    pub value: f64,
    pub unit: String,
    pub better: Better,
    /// How many copies of the test ran at the same time, where not one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub copies: Option<u32>,
    /// The value of each run, where the file has them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub runs: Vec<f64>,
    /// The result that the suite's index counts as its baseline, where the file says it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub baseline: Option<f64>,
}

/// What two figures share that can be held against each other: test, copies, unit, direction.
pub type Key<'a> = (&'a str, Option<u32>, &'a str, Better);

/// Which direction is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A rate.
    More,
    /// A time.
    Less,
    /// A count of events: a fact, and neither a cost nor a gain.
    Neither,
}

impl Figure {
    /// The test, and the number of copies where that is not one: what a row is called.
    pub fn name(&self) -> String {
        match self.copies {
            Some(copies) => format!("{} ({copies} copies)", self.test),
            None => self.test.clone(),
        }
    }

    /// By what it is found in another result.
    pub fn key(&self) -> Key<'_> {
        (&self.test, self.copies, &self.unit, self.better)
    }

    /// A value of this figure as a rate, of which more is better; `None` for a count.
    pub fn rate_of(&self, value: f64) -> Option<f64> {
        match self.better {
            Better::More => Some(value),
            Better::Less => Some(self.per_second() / value),
            Better::Neither => None,
        }
    }

    /// The unit of that rate.
    pub fn rate_unit(&self) -> String {
        if self.better == Better::Less { "per s".into() } else { self.unit.clone() }
    }

    fn per_second(&self) -> f64 {
        per_second(&self.unit).unwrap_or(1.0)
    }
}

/// How many of a unit of time make a second; `None` for any other unit.
pub fn per_second(unit: &str) -> Option<f64> {
    match unit.to_ascii_lowercase().as_str() {
        "ns" | "nsec" => Some(1e9),
        "us" | "µs" | "μs" | "usec" => Some(1e6),
        "ms" | "msec" => Some(1e3),
        "s" | "sec" | "seconds" => Some(1.0),
        _ => None,
    }
}

impl File {
    /// Its figures by their keys; of two with the same, the first.
    pub fn index(&self) -> HashMap<Key<'_>, &Figure> {
        let mut index = HashMap::new();
        for figure in &self.figures {
            index.entry(figure.key()).or_insert(figure);
        }
        index
    }
}

impl Imported {
    /// Whether these are figures of other programs, and not an experiment of weigh.
    pub fn is_figures(&self) -> bool {
        self.files.iter().any(|file| !file.figures.is_empty())
    }

    /// The first thing that a reader must know.
    pub fn head(&self) -> String {
        let mut names: Vec<String> = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            // One file may hold several results, and several files are often of one format.
            let next = self.files.get(number + 1);
            if next.is_some_and(|next| next.file == file.file) {
                continue;
            }
            let is_last = next.is_none_or(|next| next.format != file.format);
            let of =
                if is_last { format!(" ({})", format::label(&file.format)) } else { String::new() };
            names.push(format!("{}{of}", quoted(&file.file)));
        }
        let original = match &self.original {
            Some(id) => format!(", where it was experiment {}", quoted(id)),
            None => String::new(),
        };
        format!("Imported, not measured here: from {}{original}.", names.join(", "))
    }

    /// What cannot be said, as it may be shown.
    pub fn cannot(&self) -> impl Iterator<Item = String> {
        self.cannot.iter().map(|sentence| format::label(sentence))
    }

    /// Every test of any file, in the order in which they come.
    pub fn distinct(&self) -> Vec<&Figure> {
        let mut known = HashSet::new();
        let all = self.files.iter().flat_map(|file| &file.figures);
        all.filter(|figure| known.insert(figure.key())).collect()
    }
}

/// What an import says instead of a verdict: where it is from, and the largest difference.
pub fn sentences(s: &Summary, imported: &Imported) -> Vec<String> {
    let mut said = vec![imported.head()];
    let size = |row: &&Row| (1.0 + row.effect_pct / 100.0).ln().abs();
    let largest = s.results.iter().max_by(|a, b| size(a).total_cmp(&size(b)));
    said.extend(largest.map(|row| {
        let which = match s.results.len() {
            1 => "The difference is".to_owned(),
            several => format!("The largest of {} is", format::plural(several, "difference")),
        };
        format!(
            "{which} {} under {} against {}: {}.",
            quoted(&row.workload),
            quoted(&row.treatment),
            quoted(&s.baseline),
            format::percent(row.effect_pct)
        )
    }));
    said.extend(imported.cannot());
    said
}

/// A row per test with what each file says, and the differences that follow.
pub fn table(s: &Summary, imported: &Imported) -> Table {
    let mut titles: Vec<String> = vec!["test".into()];
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for file in &imported.files {
        *counts.entry(&file.arm).or_default() += 1;
    }
    for file in &imported.files {
        let number = if counts[&*file.arm] > 1 { format!(" {}", file.set) } else { String::new() };
        titles.push(format::label(&format!("{}{number}", file.arm)));
    }
    titles.push("unit".into());
    let treatments: Vec<&str> = s.treatments.iter().map(|t| t.label.as_str()).collect();
    for treatment in &treatments {
        let of = if treatments.len() > 1 { format!(", {treatment}") } else { String::new() };
        titles.extend([format::label(&format!("effect{of}")), "interval".into()]);
    }
    let indices: Vec<_> = imported.files.iter().map(File::index).collect();
    let mut results: HashMap<(&str, &str), &Row> = HashMap::new();
    for row in &s.results {
        results.entry((&row.treatment, &row.workload)).or_insert(row);
    }
    let rows = imported.distinct().into_iter().map(|figure| {
        let name = figure.name();
        let mut cells = vec![format::label(&name)];
        cells.extend(indices.iter().map(|index| {
            index.get(&figure.key()).map(|other| plain(other.value)).unwrap_or_default()
        }));
        cells.push(format::label(&figure.unit));
        for treatment in &treatments {
            let row = results.get(&(treatment, &name));
            cells.push(row.map(|row| format::percent(row.effect_pct)).unwrap_or_default());
            let bounded = row.filter(|row| row.low_pct.is_some() || row.high_pct.is_some());
            cells.push(
                bounded.map(|row| format::interval(row.low_pct, row.high_pct)).unwrap_or_default(),
            );
        }
        cells
    });
    let last = titles.len();
    let columns = titles.iter().enumerate().map(|(number, title)| {
        let is_text = number == 0 || title == "unit" || title == "interval" || number == last;
        (title.as_str(), if is_text { Align::Left } else { Align::Right })
    });
    Table::new(columns.collect(), rows.collect())
}

/// A figure as it was written, so that it can be found in the file.
fn plain(value: f64) -> String {
    // A median of two has more digits than either, of which the last is an error of binary fractions.
    let rounded: f64 = format!("{value:.11e}").parse().unwrap_or(value);
    if rounded.is_finite() { rounded.to_string() } else { format::NONE.into() }
}
