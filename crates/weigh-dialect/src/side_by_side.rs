//! Rows of one system, or of two beside each other with the difference between them.

use super::{Sheet, whole_percent};
use weigh_model::ids::ArmId;
use weigh_model::result::imported::Better;
use weigh_report::table::{Align, Table};

pub const NOT_AVAILABLE: &str = "n/a";

/// Returns a row with each system's values; for two systems, also how much faster the first is.
pub fn row(
    title: &str,
    values: &[Option<f64>],
    text: impl Fn(f64) -> String,
    better: Better,
) -> Vec<String> {
    let not_available = || NOT_AVAILABLE.to_owned();
    let mut cells = vec![title.to_owned()];
    cells.extend(values.iter().map(|value| value.map_or_else(not_available, &text)));
    if let [own, other] = *values {
        let (more, less) = if better == Better::Less { (other, own) } else { (own, other) };
        let both = more.zip(less);
        cells.push(both.map_or_else(not_available, |(more, less)| whole_percent(more / less)));
    }
    cells
}

/// With a column for each system, and for the difference where there are two.
pub fn table(sheet: &Sheet, systems: &[ArmId], title: &str, rows: Vec<Vec<String>>) -> Table {
    let mut columns = vec![(title, Align::Left)];
    columns.extend(systems.iter().map(|arm| (&*sheet.arms[*arm], Align::Right)));
    if systems.len() > 1 {
        columns.push(("Difference", Align::Right));
    }
    Table::new(columns, rows)
}
