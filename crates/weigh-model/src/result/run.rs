//! This machine alone: the rate of every workload with its spread, and the indices of the suites that were
//! measured.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::facts::Facts;
use crate::format;
use crate::result::curve;
use crate::result::curve::{Chart, CurvePoint, OnCurve, Quantity};
use crate::result::load::{DRIVER_READING, LoadAnswers};
use crate::result::net::NetAnswers;
use crate::result::profiled::Profiled;
use crate::result::series::RunSeries;
use crate::result::suite_index::SuiteIndex;
use crate::result::summary::{Failure, State};
use crate::result::times::TimesRow;
use crate::result::warning::{Warning, as_sentences};
use crate::result::work_name::{APP, COPIES, WorkName};

/// CPU time of the servers over the time of the sample, in per cent of one CPU.
const SERVER_READING: &str = "server_cpu_share";

/// The version of the JSON document.
pub const SCHEMA: &str = "weighbridge/run/2";

#[derive(Debug, Default, Serialize)]
pub struct RunReport {
    pub schema: &'static str,
    pub id: String,
    pub started: String,
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    pub command: String,
    pub machine: Facts,
    /// Conditions of the measurements, in whole sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    pub results: Vec<RunRow>,
    /// Times of parts of the operations, for workloads that report them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<TimesRow>,
    /// Reports of a profiler, from launches beside the samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Profiled>,
    /// Answers about every mix that was measured with several numbers of users.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadAnswers>,
    /// Where a grid of network cells was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<NetAnswers>,
    /// Index of every suite whose workloads were all measured, in each number of copies. It is
    /// compatible with the formulas of the originals, and is computed from workloads of our own.
    pub indices: Vec<SuiteIndex>,
    /// True if it was measured as UnixBench does, with a table for each number of copies.
    #[serde(skip)]
    pub is_scored: bool,
    /// True if the samples are passes over one server that goes on (`--for`).
    #[serde(skip)]
    pub is_endurance: bool,
    pub failures: Vec<Failure>,
    #[serde(serialize_with = "as_sentences")]
    pub warnings: Vec<Warning>,
    /// Every sample, in the order measured within each workload: for CSV, not part of the JSON.
    #[serde(skip)]
    pub series: Vec<RunSeries>,
}

impl RunReport {
    /// The numbers of copies, ascending.
    pub fn counts(&self) -> Vec<usize> {
        counts(&self.results)
    }

    /// The rows that are points of curves.
    pub fn charts(&self) -> Vec<Chart> {
        if let Some(net) = &self.net {
            return net.charts();
        }
        let mut charts = curve::charts(self.results.iter().filter_map(|row| {
            let on_curve = row.on_curve.as_ref()?;
            Some((on_curve, row.quantity(), row.point(on_curve.x)))
        }));
        for chart in &mut charts {
            let load = self.loads.iter().find(|load| load.mix == chart.title());
            chart.marks.extend(load.map(LoadAnswers::marks).unwrap_or_default());
        }
        charts
    }
}

/// The numbers of copies of these rows, ascending.
pub fn counts(rows: &[RunRow]) -> Vec<usize> {
    let counts: BTreeSet<usize> = rows.iter().map(|row| row.workload.copies()).collect();
    counts.into_iter().collect()
}

#[derive(Debug, Default, PartialEq, Serialize)]
pub struct RunRow {
    #[serde(flatten)]
    pub workload: WorkName,
    /// Where the workload is a point of a curve.
    #[serde(flatten)]
    pub on_curve: Option<OnCurve>,
    pub unit: String,
    /// Median of the samples' rates; for a classic run, UnixBench's score: the geometric mean of
    /// all but the lowest third of the passes.
    pub rate: f64,
    /// 1.4826 · MAD over the median: the standard deviation of an undisturbed sample, in per cent.
    pub spread_pct: f64,
    pub lowest: f64,
    pub highest: f64,
    pub samples: usize,
    /// Mean length of the timed part of a sample.
    pub elapsed_s: f64,
    /// Mean CPU time of a sample in user mode and in kernel mode, where all samples report it. The CPU time
    /// of a server is not in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_s: Option<f64>,
    /// Index of the row in the suite that was asked for, or in `unixbench`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<f64>,
    /// File I/O of an operation in bytes, and I/O of the device meanwhile; only for operations on
    /// files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes_per_op: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_bytes_per_op: Option<f64>,
    /// True if the device moved less than half of the file I/O.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cached: bool,
    /// Over copies: the rate of one of them over that of one of the fewest, in per cent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efficiency_pct: Option<f64>,
    /// Where several copies ran at the same time; `rate` is their sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<CopiesSpread>,
    /// Other readings that the workload reported about itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<RunReading>,
}

/// A value that samples tell, in the mean.
#[derive(Debug, PartialEq, Serialize)]
pub struct RunReading {
    pub name: String,
    pub unit: String,
    pub mean: f64,
    /// Number of samples in the mean.
    pub samples: usize,
}

/// How the copies of a workload compare. Each one's rate is the median of its samples.
#[derive(Debug, PartialEq, Serialize)]
pub struct CopiesSpread {
    pub count: usize,
    pub lowest: f64,
    pub highest: f64,
    /// Their standard deviation over their mean, in per cent.
    pub variation_pct: f64,
}

impl RunRow {
    /// Describes how many inserts that a database had acknowledged were lost in crashes, in a
    /// sentence.
    pub fn lost_inserts(&self) -> Option<String> {
        let mean = |name: &str| {
            let reading = self.readings.iter().find(|reading| reading.name == name);
            reading.map(|reading| reading.mean)
        };
        let (lost, made) = (mean("lost_inserts")?, mean("acknowledged_inserts")?);
        Some(format!(
            "{}: a crash lost {lost:.1} of {made:.1} acknowledged inserts ({:.2} %), mean of {}.",
            self.workload,
            100.0 * lost / made.max(1.0),
            format::plural(self.samples, "sample")
        ))
    }

    /// Formats the shares of a sample's time that were CPU time in user mode, in kernel mode, and of servers:
    /// 100 % is one CPU. A workload that sends requests to a server has only the last, as its CPU time is
    /// mostly the server's.
    pub fn cpu_shares(&self) -> [String; 3] {
        let has_server = self.workload.name.starts_with(APP);
        let [user, system] = [self.user_s, self.system_s].map(|cpu_s| {
            let share = cpu_s.filter(|_| !has_server).map(|cpu_s| 100.0 * cpu_s / self.elapsed_s);
            share.map(|share| format!("{share:.1} %")).unwrap_or_default()
        });
        [user, system, self.share(SERVER_READING).unwrap_or_default()]
    }

    /// Formats the driver's share of the CPU time; only for a load.
    pub fn driver_share(&self) -> Option<String> {
        self.share(DRIVER_READING)
    }

    fn share(&self, name: &str) -> Option<String> {
        let reading = self.readings.iter().find(|reading| reading.name == name)?;
        Some(format!("{:.1} %", reading.mean))
    }

    /// Returns the time of an operation, where the rate counts operations done one after the other.
    pub fn time_ns(&self) -> Option<f64> {
        (self.unit == "ops/s" && self.copies.is_none()).then(|| 1e9 / self.rate)
    }

    /// How much of its file I/O the device did, and whether the rest was in the page cache.
    pub fn device_share(&self) -> Option<String> {
        let share = self.device_bytes_per_op? / self.file_bytes_per_op?;
        let cache = if self.is_cached { " cache" } else { "" };
        Some(format!("{share:.2}{cache}"))
    }

    /// Sweeps of latencies are read as times, and those of servers as what all clients together take for an
    /// operation; how a workload scales shows in its rate.
    pub fn quantity(&self) -> Quantity {
        let is_of_clients = self.unit == "ops/s" && self.workload.name.starts_with(APP);
        let is_time = self.time_ns().is_some() || is_of_clients;
        match is_time && self.copies_on_curve().is_none() {
            true => Quantity::Time,
            false => Quantity::Rate(self.unit.clone()),
        }
    }

    pub fn point(&self, x: f64) -> CurvePoint {
        let spread = self.spread_pct / 100.0;
        let slowest = (spread < 1.0).then_some(self.rate * (1.0 - spread));
        let fastest = self.rate * (1.0 + spread);
        let workload = self.workload.clone();
        match self.quantity() {
            Quantity::Time => {
                let [y, low] = [self.rate, fastest].map(|rate| 1e9 / rate);
                CurvePoint { workload, x, y, low: Some(low), high: slowest.map(|rate| 1e9 / rate) }
            }
            _ => CurvePoint {
                workload,
                x,
                y: self.rate,
                low: Some(slowest.unwrap_or(0.0)),
                high: Some(fastest),
            },
        }
    }

    /// The curve over copies that it is on, and where.
    pub fn copies_on_curve(&self) -> Option<(&str, f64)> {
        let on_curve = self.on_curve.as_ref().filter(|on| on.x_unit == COPIES);
        on_curve.map(|on| (on.series.as_str(), on.x))
    }

    /// Returns true if this is the row of so many copies of a workload.
    pub fn is_of(&self, workload: &str, copies: usize) -> bool {
        self.workload.name == workload && self.workload.copies() == copies
    }
}
