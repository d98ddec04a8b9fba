//! Results that others published: what was read, and what it can bear.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::result::load::LoadPoint;
use crate::result::work_name::WorkName;

/// Where an imported experiment is from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// In the order of the command line; a file with several results is here once for each.
    pub files: Vec<File>,
    /// Conclusions that these numbers do not allow; whole sentences.
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
    /// Mixes with their load points, where the file is of `weigh load`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub loads: Vec<ImportedLoad>,
}

/// A mix that was measured with several numbers of users.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedLoad {
    pub mix: String,
    /// Ascending in users.
    pub points: Vec<LoadPoint>,
    /// The users of the point that the file calls the best, where it names one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub best_users: Option<usize>,
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
    /// How many users did the jobs of a mix, which is the test.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub users: Option<u32>,
    /// The value of each run, where the file has them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub runs: Vec<f64>,
    /// The result that the suite's index counts as its baseline, where the file says it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub baseline: Option<f64>,
    /// The interval of the value, where the file states it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interval: Option<[f64; 2]>,
}

/// Key that two comparable figures share: test, copies, users, unit, direction.
pub type FigureKey<'a> = (&'a str, [Option<u32>; 2], &'a str, Better);

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
    /// Returns the name of the row that contains the figure.
    pub fn name(&self) -> WorkName {
        match self.users {
            Some(users) => WorkName::of_users(&self.test, users as usize),
            None => WorkName::of_copies(&self.test, self.copies.unwrap_or(1) as usize),
        }
    }

    /// By what it is found in another result.
    pub fn key(&self) -> FigureKey<'_> {
        (&self.test, [self.copies, self.users], &self.unit, self.better)
    }

    /// A value of this figure as a rate, of which more is better; `None` for a count.
    pub fn rate_of(&self, value: f64) -> Option<f64> {
        match self.better {
            Better::More => Some(value),
            Better::Less => Some(self.per_second() / value),
            Better::Neither => None,
        }
    }

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
    pub fn index(&self) -> HashMap<FigureKey<'_>, &Figure> {
        let mut index = HashMap::new();
        for figure in &self.figures {
            index.entry(figure.key()).or_insert(figure);
        }
        index
    }
}

impl Imported {
    /// Returns true if these are figures of other programs, and not an experiment of weigh.
    pub fn is_figures(&self) -> bool {
        self.files.iter().any(|file| !file.figures.is_empty())
    }

    /// Every test of any file, in the order in which they come.
    pub fn distinct(&self) -> Vec<&Figure> {
        let mut known = HashSet::new();
        let all = self.files.iter().flat_map(|file| &file.figures);
        all.filter(|figure| known.insert(figure.key())).collect()
    }
}
