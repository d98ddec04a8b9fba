//! Curves: workloads that differ in one number only, a size or how many there are, over that number.
//!
//! This is the data that a chart is made of and a table shows, grouped; `weigh-report/html/chart.rs`
//! draws it, and `weigh-report/curve_text.rs` does so on a terminal.

use serde::{Deserialize, Serialize};

use crate::format;
use crate::result::work_name::{COPIES, WorkName};

/// Where a row is a point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnCurve {
    /// Name of the curve; curves that belong together share the part before a comma.
    pub series: String,
    pub x: f64,
    pub x_unit: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// Nanoseconds that an operation takes.
    Time,
    /// Nanoseconds within which so many per cent of a load's jobs end.
    JobTime(u8),
    /// A rate, in its unit.
    Rate(String),
    /// The effect of a treatment, in per cent.
    Effect,
    /// By how many per cent something takes longer.
    Slowdown,
}

/// A point, and how far it is uncertain; an end that is not known lies beyond every axis.
#[derive(Clone, Debug, PartialEq)]
pub struct CurvePoint {
    pub workload: WorkName,
    pub x: f64,
    pub y: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// The points of one series, by x.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    pub series: String,
    pub points: Vec<CurvePoint>,
}

/// Curves that belong together, in one picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    pub quantity: Quantity,
    pub x_unit: String,
    pub curves: Vec<Curve>,
    pub marks: Vec<ChartMark>,
}

/// A place on the horizontal axis that has a name.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartMark {
    pub text: String,
    /// Values of the mark in numbers, with their intervals.
    pub note: String,
    pub x: f64,
    /// How far it is uncertain.
    pub low: f64,
    pub high: f64,
    /// Bounds of the value there, on the axis of its own chart.
    pub y: Option<[f64; 2]>,
    /// Which curve it is of, where there are several.
    pub curve: Option<usize>,
}

impl Chart {
    /// Returns the subject that all its curves share.
    pub fn title(&self) -> &str {
        self.curves.first().map_or("", |curve| base(&curve.series))
    }

    /// Returns the part of a curve's name that distinguishes it from the other curves of its chart.
    pub fn label<'a>(&self, curve: &'a Curve) -> &'a str {
        let rest = curve.series.strip_prefix(base(&curve.series)).unwrap_or_default();
        match rest.trim_start_matches(", ") {
            "" => &curve.series,
            rest => rest,
        }
    }

    /// Returns true if the number of copies varies: then the question is how well it scales.
    pub fn is_scaling(&self) -> bool {
        self.x_unit == COPIES
    }

    /// Returns true if there is a shape to see: over one or two places, a table shows all that there is.
    pub fn has_shape(&self) -> bool {
        let mut places: Vec<f64> = self.points().map(|point| point.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places.len() > 2
    }

    pub fn points(&self) -> impl Iterator<Item = &CurvePoint> {
        self.curves.iter().flat_map(|curve| &curve.points)
    }

    /// Returns the title of the vertical axis, with its unit.
    pub fn y_title(&self) -> String {
        match &self.quantity {
            Quantity::JobTime(pct) => format!("{pct} % of the jobs end within"),
            Quantity::Time => "time per operation".into(),
            Quantity::Rate(unit) if self.is_scaling() => {
                format!("rate of all copies together, {unit}")
            }
            Quantity::Rate(unit) => format!("rate, {unit}"),
            Quantity::Effect => "effect on the rate".into(),
            Quantity::Slowdown => "takes longer by".into(),
        }
    }
}

fn base(series: &str) -> &str {
    series.split(", ").next().unwrap_or(series)
}

/// The charts of points in any order. Points of no curve, and curves of one point, are left out.
pub fn charts<'a>(points: impl Iterator<Item = (&'a OnCurve, Quantity, CurvePoint)>) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    for (on, quantity, point) in points {
        let is_its = |chart: &&mut Chart| {
            chart.title() == base(&on.series)
                && chart.x_unit == on.x_unit
                && chart.quantity == quantity
        };
        let new = Curve { series: on.series.clone(), points: Vec::new() };
        let Some(chart) = charts.iter_mut().find(is_its) else {
            let curves = vec![Curve { points: vec![point], ..new }];
            charts.push(Chart { quantity, x_unit: on.x_unit.clone(), curves, marks: Vec::new() });
            continue;
        };
        match chart.curves.iter_mut().find(|curve| curve.series == on.series) {
            Some(curve) => curve.points.push(point),
            None => chart.curves.push(Curve { points: vec![point], ..new }),
        }
    }
    for chart in &mut charts {
        for curve in &mut chart.curves {
            curve.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        chart.curves.retain(|curve| curve.points.len() > 1);
    }
    charts.retain(|chart| !chart.curves.is_empty());
    charts
}

/// A value of x as people say it: bytes in powers of 1024, `64K`, everything else as it is.
pub fn x_text(x: f64, x_unit: &str) -> String {
    if x_unit != "bytes" {
        return format::per_op(x);
    }
    let steps = [(f64::from(1 << 30), "G"), (f64::from(1 << 20), "M"), (1024.0, "K")];
    let (scale, suffix) = steps.into_iter().find(|(scale, _)| x >= *scale).unwrap_or((1.0, ""));
    format!("{}{suffix}", format::per_op(x / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(series: &str, x: f64) -> (OnCurve, CurvePoint) {
        let on = OnCurve { series: series.into(), x, x_unit: "bytes".into() };
        (
            on,
            CurvePoint {
                workload: (*format!("{series} {x}")).into(),
                x,
                y: 1.0,
                low: None,
                high: None,
            },
        )
    }

    #[test]
    fn curves_that_share_a_beginning_are_one_chart_and_a_lone_point_is_none() {
        let points = [
            point("memory latency, 64 bytes on", 8192.0),
            point("memory latency, 64 bytes on", 4096.0),
            point("memory latency, at random", 4096.0),
            point("memory latency, at random", 8192.0),
            point("file read", 1.0),
            point("file read", 2.0),
            point("mmap", 2.0),
        ];
        let charts = charts(points.iter().map(|(on, point)| (on, Quantity::Time, point.clone())));
        let titles: Vec<&str> = charts.iter().map(Chart::title).collect();
        assert_eq!(titles, ["memory latency", "file read"]);
        let labels: Vec<&str> =
            charts[0].curves.iter().map(|curve| charts[0].label(curve)).collect();
        assert_eq!(labels, ["64 bytes on", "at random"]);
        assert_eq!(charts[1].label(&charts[1].curves[0]), "file read");
        let xs: Vec<f64> = charts[0].curves[0].points.iter().map(|point| point.x).collect();
        assert_eq!(xs, [4096.0, 8192.0]);
    }

    #[test]
    fn two_places_have_no_shape() {
        let points = |xs: &[f64]| xs.iter().map(|x| point("file read", *x)).collect::<Vec<_>>();
        let has_shape = |xs: &[f64]| {
            let points = points(xs);
            let points = points.iter().map(|(on, point)| (on, Quantity::Time, point.clone()));
            charts(points)[0].has_shape()
        };
        assert!(!has_shape(&[1.0, 2.0]) && has_shape(&[1.0, 2.0, 4.0]));
    }

    #[test]
    fn sizes_are_said_in_powers_of_1024() {
        let said = [4096.0, 49_152.0, 1_048_576.0, 1000.0].map(|x| x_text(x, "bytes"));
        assert_eq!(said, ["4K", "48K", "1M", "1,000"]);
        assert_eq!(x_text(96.0, "processes"), "96");
    }
}
