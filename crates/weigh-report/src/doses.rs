//! The cost over a number in which arms differ: the slope, where the line begins, and whether it bends.

use super::table::{Table, columns};
use weigh_model::format;
use weigh_model::format::quoted;
use weigh_model::result::dose::DoseCurve;
use weigh_model::result::summary::Summary;

pub const TITLE: &str = "Cost by dose";
pub const LEGEND: &str = "straight line through the arms that differ in N, with an interval for each number \
                          alone; at 0: cost of the treatment beyond the cost of its N units";
/// More workloads have no sentence each: the table has them.
const MOST_SENTENCES: usize = 2;

/// A row per workload and number; `None` where no arms differ in a number.
pub fn table_of(s: &Summary) -> Option<Table> {
    let cells = s.doses.iter().map(|curve| {
        let [slope, slope_interval] = curve.texts(curve.per_unit);
        let [at_zero, zero_interval] = curve.texts(curve.at_zero);
        let [from, middle, to] = curve.ends().map(format::per_op);
        let shape = match curve.bend.map(|slopes| slopes.map(|slope| curve.unit.text(slope))) {
            None => "no bend shown".to_owned(),
            Some([below, above]) => format!("{below} up to {middle}, {above} beyond"),
        };
        let (workload, label) = (format::label(&curve.workload), format::label(&curve.treatment));
        let doses = format!("{from} to {to}");
        vec![workload, label, doses, slope, slope_interval, at_zero, zero_interval, shape]
    });
    let columns = columns("workload|treatment|N|>per unit|interval|>at 0|interval|shape");
    (!s.doses.is_empty()).then(|| Table::new(columns, cells.collect()))
}

/// A sentence on each of a few curves.
pub fn sentences(s: &Summary) -> Vec<String> {
    let sentence = |curve: &DoseCurve| {
        let [slope, interval] = curve.texts(curve.per_unit);
        let [from, _, to] = curve.ends().map(format::per_op);
        let bends = if curve.bend.is_some() { ", but not evenly" } else { "" };
        let (workload, name) = (quoted(&curve.workload), quoted(&curve.parameter));
        format!(
            "Each further 1 of {name}, from {from} to {to}, costs {workload} {slope} {interval}{bends}."
        )
    };
    match s.doses.len() {
        few if few <= MOST_SENTENCES => s.doses.iter().map(sentence).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn a_curve_has_a_sentence_and_a_row() {
        let mut s = example::doses();
        let sentence = "Each further 1 of `layers`, from 1 to 16, costs `getppid` +3.10 ns \
                        [+2.90 ns, +3.30 ns].";
        assert_eq!(sentences(&s), [sentence]);
        let shown = table_of(&s).unwrap().rows[0].join(" ");
        assert!(shown.ends_with("+50.0 ns [+45.0 ns, +55.0 ns] no bend shown"), "{shown}");
        s.doses[0].bend = Some([1.0, 5.0]);
        assert!(sentences(&s)[0].ends_with(", but not evenly."));
        let shown = table_of(&s).unwrap().rows[0].join(" ");
        assert!(shown.ends_with("+1.00 ns up to 4, +5.00 ns beyond"), "{shown}");
        s.doses.clear();
        assert_eq!(table_of(&s), None);
    }
}
