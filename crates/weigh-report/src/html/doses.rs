//! The cost over a number in which arms differ: its table, and a picture of each curve.

use minijinja::{Value, context};

use super::{chart, table};
use crate::doses;
use weigh_model::result::curve::{Chart, Curve, CurvePoint, Quantity};
use weigh_model::result::dose::{DoseCurve, DoseUnit};
use weigh_model::result::summary::Summary;

/// Table and pictures for the page.
pub fn section(s: &Summary) -> Option<Value> {
    let charts = s.doses.iter().flat_map(|curve| chart::figures(&picture(curve), None));
    Some(context! {
        title => doses::TITLE,
        legend => doses::LEGEND,
        table => table(&doses::table_of(s)?),
        charts => charts.collect::<Vec<Value>>(),
    })
}

fn picture(curve: &DoseCurve) -> Chart {
    let (quantity, origin, scale) = match curve.unit {
        DoseUnit::Nanoseconds => (Quantity::Time, curve.baseline, 1.0),
        _ => (Quantity::Slowdown, 0.0, 100.0 / curve.baseline),
    };
    let y = |added: f64| origin + scale * added;
    let points = curve.points.iter().map(|point| CurvePoint {
        workload: curve.workload.clone(),
        x: point.dose,
        y: y(point.cost.added),
        low: Some(y(point.cost.low)),
        high: Some(y(point.cost.high)),
    });
    let series = format!("{} under {}", curve.workload, curve.treatment);
    let curves = vec![Curve { series, points: points.collect() }];
    Chart { quantity, x_unit: curve.parameter.clone(), curves, marks: Vec::new() }
}

#[cfg(test)]
mod tests {
    use crate::html;
    use weigh_model::example;

    #[test]
    fn a_curve_has_a_table_and_a_picture() {
        let page = html::render(&example::doses()).unwrap();
        assert!(page.contains("<h2>Cost by dose</h2>") && page.contains("under landlock:layers=N"));
    }
}
