//! How the rates of a grid's cells and the times of its requests are distributed, as curves over the
//! share of the samples.

use crate::result::curve::{Chart, Curve, CurvePoint, Quantity};
use crate::result::net_cells::{FurtherClass, NetCell, NetFurther};
use crate::result::work_name::WorkName;

const STEPS: usize = 20;

/// Charts the rates of all scored samples by class, and the times of requests.
pub fn charts(measured: &[NetCell], further: &[NetFurther]) -> Vec<Chart> {
    let mut sizes: Vec<u32> = measured.iter().map(|cell| cell.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let rates = sizes.into_iter().map(|bytes| {
        let is_its = |cell: &&NetCell| cell.is_scored() && cell.bytes == bytes;
        let cells = measured.iter().filter(is_its);
        let mut rates: Vec<f64> = cells.flat_map(|cell| &cell.rates).copied().collect();
        rates.sort_by(f64::total_cmp);
        let points = if rates.len() < STEPS { Vec::new() } else { quantiles(&rates, bytes) };
        Curve { series: format!("distribution of rates, {bytes} bytes"), points }
    });
    let rates = chart(Quantity::Rate("Mb/s".into()), "% of the samples", rates.collect());
    let times = further.iter().map(|further| {
        let of = |class: &FurtherClass| Curve {
            series: format!("time of {}, {}", further.kind, class.name),
            points: times(class),
        };
        chart(Quantity::Time, "% of the requests", further.classes.iter().map(of).collect())
    });
    std::iter::once(rates).chain(times).filter(|chart| !chart.curves.is_empty()).collect()
}

fn chart(quantity: Quantity, x_unit: &str, mut curves: Vec<Curve>) -> Chart {
    curves.retain(|curve| curve.points.len() > 1);
    Chart { quantity, x_unit: x_unit.into(), curves, marks: Vec::new() }
}

fn quantiles(sorted: &[f64], bytes: u32) -> Vec<CurvePoint> {
    let at = |step: usize| sorted[(sorted.len() - 1) * step / STEPS];
    let workload = WorkName::of_bytes("samples", bytes);
    let x = |step: usize| 100.0 * step as f64 / STEPS as f64;
    (0..=STEPS).map(|step| point(&workload, x(step), at(step))).collect()
}

fn times(class: &FurtherClass) -> Vec<CurvePoint> {
    let FurtherClass { alone, .. } = class;
    let workload = WorkName::of_bytes(&class.name, class.bytes);
    [(50.0, alone.p50_ns), (99.0, alone.p99_ns), (99.9, alone.p99_9_ns)]
        .into_iter()
        .filter_map(|(x, y)| Some(point(&workload, x, y?)))
        .collect()
}

fn point(workload: &WorkName, x: f64, y: f64) -> CurvePoint {
    CurvePoint { workload: workload.clone(), x, y, low: Some(y), high: Some(y) }
}
