//! lmbench's summary (`make see`, 2.x and 3.0): tables of fixed columns under a ruler of dashes, with a
//! line per result. Lines of the same host and system are runs of the same thing.

use std::collections::{BTreeSet, HashMap};

use crate::{Document, ForeignFormat, ImportedResults, Problem, figure, number, words};
use paired::estimate::median;
use weigh_model::result::imported::Figure;

pub static IMPORT: ForeignFormat = ForeignFormat {
    name: "lmbench",
    what: "lmbench's summary",
    rank: 3,
    is_json: false,
    is_it: |text| text.contains("smaller is better") || text.contains("L M B E N C H"),
    read: |text| read(text).map(Document::of),
};

/// No table of lmbench has nearly as many columns, nor its head as many lines.
const MOST_COLUMNS: usize = 100;
const MOST_HEADS: usize = 10;
/// Columns that are no result of a test.
const FACTS: [&str; 2] = ["Mhz", "Guesses"];

/// Reads the tables that say which direction is better; the first, of parameters, does not.
fn read(text: &str) -> Result<Vec<ImportedResults>, Problem> {
    let mut kept = ReadFigures::default();
    let mut section: Option<PrintedTable> = None;
    for (at, line) in text.lines().enumerate() {
        if let Some(next) = PrintedTable::begin(line) {
            section = Some(next);
        } else if let Some(open) = &mut section {
            if open.columns.is_empty() {
                open.head(line);
            } else if line.trim().is_empty() || is_of_make(line) {
                section = None;
            } else {
                let row = open.row(line).map_err(|problem| (Some(at + 1), problem))?;
                kept.add(row);
            }
        }
    }
    Ok(kept.results())
}

/// `make[1]: Leaving directory …`, right behind a table.
fn is_of_make(line: &str) -> bool {
    line.starts_with("make: ") || line.starts_with("make[")
}

/// A host with its system, and its figures.
pub(super) struct Of {
    pub(super) host: String,
    pub(super) system: String,
    /// Each with a run.
    pub(super) figures: Vec<Figure>,
}

/// Figures read so far, with the place of each host and its system, and of each figure.
#[derive(Default)]
pub(super) struct ReadFigures {
    results: Vec<Of>,
    hosts: HashMap<(String, String), usize>,
    /// By host, test and unit.
    figures: HashMap<(usize, String, String), usize>,
}

impl ReadFigures {
    /// Keeps the figures of a line; those that are there already get another run.
    pub(super) fn add(&mut self, row: Of) {
        let Of { host, system, figures } = row;
        if figures.is_empty() {
            return;
        }
        let at = *self.hosts.entry((host.clone(), system.clone())).or_insert_with(|| {
            self.results.push(Of { host, system, figures: Vec::new() });
            self.results.len() - 1
        });
        let known = &mut self.results[at].figures;
        for figure in figures {
            let key = (at, figure.test.clone(), figure.unit.clone());
            match self.figures.get(&key) {
                Some(&place) => known[place].runs.extend(figure.runs),
                None => {
                    self.figures.insert(key, known.len());
                    known.push(figure);
                }
            }
        }
    }

    /// A result per host, or per system of a host where it has several.
    pub(super) fn results(self) -> Vec<ImportedResults> {
        let hosts: BTreeSet<&str> = self.results.iter().map(|of| of.host.as_str()).collect();
        let is_told_by_host = hosts.len() == self.results.len();
        let label = |of: &Of| match is_told_by_host {
            true => of.host.clone(),
            false => words(&format!("{} {}", of.host, of.system)),
        };
        let mut results: Vec<ImportedResults> = self
            .results
            .iter()
            .map(|of| ImportedResults {
                format: "lmbench".into(),
                label: Some(label(of)),
                figures: of.figures.clone(),
                ..Default::default()
            })
            .collect();
        for figure in results.iter_mut().flat_map(|results| &mut results.figures) {
            figure.value = median(&figure.runs).unwrap_or(figure.value);
            // One number is no runs.
            if figure.runs.len() < 2 {
                figure.runs.clear();
            }
        }
        if let [only] = &mut results[..] {
            only.label = None;
        }
        results
    }
}

struct PrintedTable {
    title: String,
    unit: &'static str,
    /// The lines above the ruler.
    heads: Vec<Vec<char>>,
    /// Name, and where it begins and ends.
    columns: Vec<(String, usize, usize)>,
}

impl PrintedTable {
    /// `Processor, Processes - times in microseconds - smaller is better`
    fn begin(line: &str) -> Option<PrintedTable> {
        let is_title = line.contains("smaller is better") || line.contains("bigger is better");
        let units = [("microseconds", "us"), ("nanoseconds", "ns"), ("MB/s", "MB/s")];
        let (_, unit) = units.into_iter().find(|(name, _)| line.contains(name))?;
        let title = line.to_ascii_lowercase();
        is_title.then(|| PrintedTable { title, unit, heads: Vec::new(), columns: Vec::new() })
    }

    /// A line of the head, or the ruler that ends it.
    fn head(&mut self, line: &str) {
        let is_ruler = !line.trim().is_empty() && line.chars().all(|c| matches!(c, '-' | ' '));
        if !is_ruler {
            self.heads.push(line.chars().collect());
            if self.heads.len() > MOST_HEADS {
                self.heads.remove(0);
            }
            return;
        }
        // The one without gaps only underlines the title.
        let spans = spans(line);
        if !(3..=MOST_COLUMNS).contains(&spans.len()) {
            self.heads.clear();
            return;
        }
        let starts: Vec<usize> = spans.iter().map(|(start, _)| *start).collect();
        for (column, &(start, end)) in spans.iter().enumerate() {
            let cells: Vec<String> =
                self.heads.iter().map(|head| title(head, &starts, column)).collect();
            self.columns.push((words(&cells.join(" ")), start, end));
        }
    }

    /// A line of figures, with the host and system that it is of.
    fn row(&self, line: &str) -> Result<Of, String> {
        let (host, values) = self.columns.split_at(2);
        let begin = host[1].2;
        let chars: Vec<char> = line.chars().collect();
        let cell =
            |from: usize, to: usize| words(&chars.iter().take(to).skip(from).collect::<String>());
        let (host, system) = (cell(0, host[0].2), cell(host[0].2, begin));
        let rest: String = chars.iter().skip(begin).collect();
        let found = spans(&rest);
        if found.len() > values.len() {
            let (cells, columns) = (found.len(), values.len());
            return Err(format!("{cells} figures under {columns} columns"));
        }
        let mut figures = Vec::new();
        for (position, &(start, end)) in found.iter().enumerate() {
            let text: String = chars[begin + start..begin + end].iter().collect();
            // A figure that is missing leaves its place empty: then the place tells the column.
            let middle = 2 * begin + start + end;
            let column = match found.len() == values.len() {
                true => &values[position],
                false => values
                    .iter()
                    .min_by_key(|(_, start, end)| (start + end).abs_diff(middle))
                    .expect("there are columns after the system's"),
            };
            if FACTS.contains(&column.0.as_str()) {
                continue;
            }
            let value = scaled(&text).ok_or_else(|| format!("{text:?} is not a number"))?;
            let runs = vec![value];
            figures.push(Figure { runs, ..figure(&self.test(&column.0), value, self.unit) });
        }
        Ok(Of { host, system, figures })
    }

    /// The name of a test: `Pipe` is a column of two tables.
    fn test(&self, column: &str) -> String {
        let remote = if self.title.contains("remote") { "remote " } else { "" };
        if self.title.contains("bandwidth") {
            format!("{remote}{column} bandwidth")
        } else if self.title.contains("communication") {
            format!("{remote}{column} latency")
        } else {
            column.to_owned()
        }
    }
}

/// Returns the title above a column in a line of the head. A word that reaches into the next column
/// belongs to both, as `0K File` above `Create` and `Delete`.
fn title(head: &[char], starts: &[usize], column: usize) -> String {
    let is_within_word = |at: usize| {
        let is_word = |at: usize| head.get(at).is_some_and(|c| !c.is_whitespace());
        is_word(at) && at > 0 && is_word(at - 1)
    };
    let start_of = |column: usize| starts.get(column).copied().unwrap_or(usize::MAX);
    let first = if is_within_word(start_of(column)) { column.saturating_sub(1) } else { column };
    let next = start_of(column + 1);
    let end = if is_within_word(next) { start_of(column + 2) } else { next };
    head.iter().take(end).skip(start_of(first)).collect()
}

/// `12.3K` is 12300.
fn scaled(text: &str) -> Option<f64> {
    match text
        .strip_suffix('K')
        .map(|text| (text, 1e3))
        .or(text.strip_suffix('M').map(|t| (t, 1e6)))
    {
        Some((text, factor)) => Some(number(text)? * factor),
        None => number(text),
    }
}

/// Where the words of a line begin and end, in characters.
fn spans(line: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (at, _) in line.chars().enumerate().filter(|(_, c)| !c.is_whitespace()) {
        match found.last_mut() {
            Some((_, end)) if *end == at => *end = at + 1,
            _ => found.push((at, at + 1)),
        }
    }
    found
}
