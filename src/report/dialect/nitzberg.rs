//! Table 2 of Nitzberg, "Performance Benchmarking of UNIX System Auditing" (1994): the difference in
//! per cent of each of two sets, and how far the two lie apart.
//!
//! The thesis prints no consistent sign, and cuts digits off. Here a sign always says the direction,
//! negative is slower, and digits are rounded.

use super::super::table::{Align, Table};
use super::{Sheet, format, lines};

/// As many as the thesis prints at most.
const DECIMALS: usize = 6;

pub fn render(sheet: &Sheet) -> Result<String, String> {
    let sets = sheet.lines.iter().map(|line| line.sets.len()).max().unwrap_or(0);
    if sets < 2 {
        return Err("this table needs one treatment in two sets: `weigh compare TREATMENT --sets 2`, or an \
                    import of four results as on, off, on, off"
            .into());
    }
    let last = if sets == 2 { "Delta-3".into() } else { "largest − smallest".to_owned() };
    let titles: Vec<String> =
        (1..=sets).map(|set| format!("Delta-{set}")).chain(std::iter::once(last)).collect();
    let mut columns = vec![("Benchmark", Align::Left)];
    columns.extend(titles.iter().map(|title| (title.as_str(), Align::Right)));
    let rows = sheet.lines.iter().filter(|line| line.sets.len() == sets).map(|line| {
        let mut cells = vec![format::label(&line.title)];
        cells.extend(line.sets.iter().map(|effect| fixed(*effect)));
        let highest = line.sets.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lowest = line.sets.iter().copied().fold(f64::INFINITY, f64::min);
        cells.push(fixed(highest - lowest));
        cells
    });
    Ok(lines(&Table::new(columns, rows.collect())))
}

fn fixed(pct: f64) -> String {
    // Without a sign where it rounds to nothing.
    let text = format!("{pct:.DECIMALS$}");
    if text.trim_matches(['-', '0', '.']).is_empty() {
        "0".into()
    } else {
        text.replace('-', "−")
    }
}
