//! Results that others published, in sentences and as a table.

use std::collections::{BTreeMap, HashMap};

use super::table::{Align, Table};
use weigh_model::format;
use weigh_model::format::quoted;
use weigh_model::result::imported::{File, Imported};
use weigh_model::result::summary::{Row, Summary};
use weigh_model::result::work_name::WorkName;

/// The first thing that a reader must know.
pub fn head(imported: &Imported) -> String {
    let mut names: Vec<String> = Vec::new();
    for (number, file) in imported.files.iter().enumerate() {
        // One file may hold several results, and several files are often of one format.
        let next = imported.files.get(number + 1);
        if next.is_some_and(|next| next.file == file.file) {
            continue;
        }
        let is_last = next.is_none_or(|next| next.format != file.format);
        let of =
            if is_last { format!(" ({})", format::label(&file.format)) } else { String::new() };
        names.push(format!("{}{of}", quoted(&file.file)));
    }
    let original = match &imported.original {
        Some(id) => format!(", where it was experiment {}", quoted(id)),
        None => String::new(),
    };
    format!("Imported, not measured here: from {}{original}.", names.join(", "))
}

/// Returns the conclusions that are not possible, in a form that may be shown.
pub fn cannot(imported: &Imported) -> impl Iterator<Item = String> {
    imported.cannot.iter().map(format::label)
}

/// Writes the sentences that replace a verdict for an import: its origin, and the largest
/// difference.
pub fn sentences(s: &Summary, imported: &Imported) -> Vec<String> {
    let mut said = vec![head(imported)];
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
    said.extend(cannot(imported));
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
        titles.extend([format::label(&format!("{}{number}", file.arm)), "interval".into()]);
    }
    titles.push("unit".into());
    let treatments: Vec<&str> = s.treatments.iter().map(|t| t.label.as_str()).collect();
    for treatment in &treatments {
        let of = if treatments.len() > 1 { format!(", {treatment}") } else { String::new() };
        titles.extend([format::label(&format!("effect{of}")), "interval".into()]);
    }
    let indices: Vec<_> = imported.files.iter().map(File::index).collect();
    let mut results: BTreeMap<(&str, &WorkName), &Row> = BTreeMap::new();
    for row in &s.results {
        results.entry((&row.treatment, &row.workload)).or_insert(row);
    }
    let rows = imported.distinct().into_iter().map(|figure| {
        let name = figure.name();
        let mut cells = vec![format::label(&name)];
        for index in &indices {
            let found = index.get(&figure.key());
            cells.push(found.map(|found| plain(found.value)).unwrap_or_default());
            let interval = found.and_then(|found| found.interval);
            let bounds = interval.map(bounds);
            cells.push(bounds.unwrap_or_default());
        }
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

/// An interval, to two digits of its width: the digits below say nothing.
fn bounds([low, high]: [f64; 2]) -> String {
    let digits = (1.0 - (high - low).abs().log10().floor()).clamp(0.0, 12.0);
    let rounded = |end: f64| plain((end * 10f64.powf(digits)).round() / 10f64.powf(digits));
    format!("[{}, {}]", rounded(low), rounded(high))
}

/// A figure as it was written, so that it can be found in the file.
fn plain(value: f64) -> String {
    // A median of two has more digits than either, of which the last is an error of binary fractions.
    let rounded: f64 = format!("{value:.11e}").parse().unwrap_or(value);
    if rounded.is_finite() { rounded.to_string() } else { format::NONE.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_two_digits_of_its_width() {
        assert_eq!(bounds([1234.567891234, 1298.765432198]), "[1235, 1299]");
        assert_eq!(bounds([0.012345678912, 0.012456789123]), "[0.01235, 0.01246]");
        assert_eq!(bounds([123456789.4, 193456789.2]), "[123456789, 193456789]");
        assert_eq!(bounds([1.5, 1.5]), "[1.5, 1.5]");
        assert_eq!(bounds([f64::NEG_INFINITY, 2.0]), format!("[{}, 2]", format::NONE));
    }
}
