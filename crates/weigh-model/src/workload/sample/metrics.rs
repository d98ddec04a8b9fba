//! Metrics that are made of what weigh knows of every sample. To add one, add it to the list.

use super::Sample;
use crate::workload::metric::{Direction, MetricValue};

/// A metric that `--metric NAME` judges.
pub struct SampleMetric {
    /// As documents have it.
    pub name: &'static str,
    /// Heading of its table.
    pub title: &'static str,
    /// Explanation of the heading.
    pub legend: &'static str,
    /// Why samples may lack it.
    pub absent: &'static str,
    /// `B`, `B/op` and `ns/op` are scaled in reports, others are not.
    pub unit: &'static str,
    pub better: Direction,
    pub value: fn(&Sample) -> Option<f64>,
}

pub const PEAK_MEMORY: &str = "peak_memory";

pub static SAMPLE_METRICS: &[SampleMetric] = &[
    SampleMetric {
        name: PEAK_MEMORY,
        title: "Peak memory",
        legend: "the largest resident set of the workload or of a process that it waited for",
        absent: "the workload used no more memory than weigh's launcher, from which it is forked",
        unit: "B",
        better: Direction::Lower,
        value: |sample| Some(sample.peak_memory_bytes? as f64),
    },
    SampleMetric {
        name: "block_input",
        title: "Block input per operation",
        legend: "read from block devices; reads from the page cache are excluded",
        absent: "the kernel counted no block I/O",
        unit: "B/op",
        better: Direction::Lower,
        value: |sample| per_op_of_all(sample, sample.block_input_bytes),
    },
    SampleMetric {
        name: "block_output",
        title: "Block output per operation",
        legend: "written to block devices, at once or later",
        absent: "the kernel counted no block I/O",
        unit: "B/op",
        better: Direction::Lower,
        value: |sample| per_op_of_all(sample, sample.block_output_bytes),
    },
];

/// An amount of the whole process, per operation with those before the timed part.
fn per_op_of_all(sample: &Sample, amount: Option<u64>) -> Option<f64> {
    Some(amount? as f64 / sample.total_operations.unwrap_or(sample.operations))
}

impl SampleMetric {
    pub fn find(name: &str) -> Option<&'static SampleMetric> {
        SAMPLE_METRICS.iter().find(|metric| metric.name == name)
    }

    /// Returns how much a sample has of it.
    pub fn of(&self, sample: &Sample) -> Option<MetricValue> {
        let value = (self.value)(sample)?;
        Some(MetricValue { value, unit: self.unit.into(), better: self.better })
    }
}
