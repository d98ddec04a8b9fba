//! Tables as text and as Markdown, and the part of a document that is regenerated.

use std::path::Path;

const END: &str = "<!-- end -->";

/// A table before it has a format.
pub struct Table {
    pub title: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// For a terminal.
pub fn text(table: &Table) -> String {
    let rows = || std::iter::once(&table.head).chain(&table.rows);
    let width = |column: usize| rows().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table.head.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    format!("{}\n\n{}", table.title, rows().map(line).collect::<String>())
}

/// For a document.
pub fn markdown(table: &Table) -> String {
    let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
    let rule = vec!["---".to_owned(); table.head.len()];
    let rows: String = table.rows.iter().map(line).collect();
    format!("### {}\n\n{}{}{rows}", table.title, line(&table.head), line(&rule))
}

/// Puts what the bench `name` generated between the markers of a document.
///
/// # Errors
/// A sentence, where the file cannot be read or written, or has no markers.
pub fn write(path: &Path, name: &str, generated: &str) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    let document = std::fs::read_to_string(path).map_err(said)?;
    let begin = format!("<!-- begin: cargo bench -p benches --bench {name} -->");
    let missing = || format!("{}: it has no `{begin}` with an `{END}` behind it", path.display());
    let (before, rest) = document.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    let document = format!("{before}{begin}\n\n{generated}\n{END}{after}");
    std::fs::write(path, document).map_err(said)
}
