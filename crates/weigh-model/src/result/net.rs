//! Results of a grid of network cells.

use serde::Serialize;

use crate::result::btu::{Means, ScoreInterval};
use crate::result::curve::{Chart, Curve, CurvePoint, Quantity};
use crate::result::net_cells::{Abnormal, NetCell, NetFurther};
use crate::result::net_distribution;
use crate::result::work_name::{BYTES, WorkName};

/// Answers about one grid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetAnswers {
    pub grid: String,
    /// Hash of the scored grid: scores of other grids are not compared.
    pub hash: String,
    pub cells: usize,
    /// How often all cells were measured.
    pub sweeps: usize,
    /// Cells without a result, which leave the score incomplete.
    pub missing: Vec<String>,
    /// Mb/s; `None` where it is incomplete.
    pub btu: Option<ScoreInterval>,
    /// How many times as long activities take beside COMM, and COMM beside activities.
    pub activity_slowdown: Option<ScoreInterval>,
    pub comm_slowdown: Option<ScoreInterval>,
    /// The paper's own mean of percentages; `None` where one of them is not above 0.
    pub paper_penalty_pct: Option<f64>,
    pub activities: Vec<String>,
    pub components: Vec<String>,
    pub classes: Vec<NetClass>,
    /// Packets that a wire lost though it was not to.
    pub lost_packets: f64,
    /// Further measurements that are not part of the score.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<NetFurther>,
    /// Every cell by itself.
    pub measured: Vec<NetCell>,
    /// Cells that went another way than usual, with what TCP did then; the worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub abnormal: Vec<Abnormal>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetClass {
    pub name: String,
    pub bytes: u32,
    pub btu: Option<ScoreInterval>,
    pub activity_slowdown: Option<ScoreInterval>,
    pub comm_slowdown: Option<ScoreInterval>,
    /// Mb/s of each component beside activities, and alone.
    pub components: Vec<Option<f64>>,
    pub components_alone: Vec<Option<f64>>,
    /// Mb/s beside each activity, over components.
    pub beside: Vec<Option<f64>>,
    pub alone: Option<f64>,
    /// Means of the rates in `components`.
    pub means: Option<Means>,
}

impl NetAnswers {
    /// Bits to the user, and penalties, by the size of a write.
    pub fn charts(&self) -> Vec<Chart> {
        let rates = self.activities.iter().enumerate().map(|(at, activity)| {
            let y = |class: &NetClass| class.beside.get(at).copied().flatten();
            self.curve(format!("bits to the user, beside {activity}"), |class| plain(y(class)))
        });
        let alone = self.curve("bits to the user, alone".into(), |class| plain(class.alone));
        let penalty = |slowdown: Option<ScoreInterval>| {
            let percent = |value: f64| (value - 1.0) * 100.0;
            slowdown.map(|found| ScoreInterval {
                value: percent(found.value),
                // One sweep has no interval, which is not an interval without ends.
                low: Some(percent(found.low.unwrap_or(found.value))),
                high: Some(percent(found.high.unwrap_or(found.value))),
            })
        };
        let penalties = vec![
            self.curve("penalty, of the host".into(), |class| penalty(class.activity_slowdown)),
            self.curve("penalty, of the network".into(), |class| penalty(class.comm_slowdown)),
        ];
        let chart = |quantity: Quantity, curves: Vec<Curve>| Chart {
            quantity,
            x_unit: BYTES.into(),
            curves: curves.into_iter().filter(|curve| curve.points.len() > 1).collect(),
            marks: Vec::new(),
        };
        let charts = [
            chart(Quantity::Rate("Mb/s".into()), rates.chain([alone]).collect()),
            chart(Quantity::Slowdown, penalties),
        ];
        let charts =
            charts.into_iter().chain(net_distribution::charts(&self.measured, &self.further));
        charts.filter(|chart| !chart.curves.is_empty()).collect()
    }

    fn curve(&self, series: String, y: impl Fn(&NetClass) -> Option<ScoreInterval>) -> Curve {
        let point = |class: &NetClass| {
            let ScoreInterval { value, low, high } = y(class)?;
            let x = f64::from(class.bytes);
            let workload = WorkName::of_bytes(&class.name, class.bytes);
            Some(CurvePoint { workload, x, y: value, low, high })
        };
        Curve { series, points: self.classes.iter().filter_map(point).collect() }
    }
}

fn plain(value: Option<f64>) -> Option<ScoreInterval> {
    value.map(|value| ScoreInterval { value, low: Some(value), high: Some(value) })
}
