//! The line of JSON that a workload prints, and what a whole process amounts to where it prints none.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::workload::metric::{CLIPPED, Direction, INTERLEAVED, Metric, MetricValue};
use crate::workload::times::{MOST_TIMES, Times};

mod metrics;

pub use metrics::{PEAK_MEMORY, SAMPLE_METRICS, SampleMetric};

/// Possible rates of a program per second, in any unit; with these bounds a ratio of rates is
/// finite, too.
const RATES: RangeInclusive<f64> = 1e-12..=1e21;
/// A program may take its time from another clock than ours, which is steered by 0.05 % at most.
const CLOCKS_DIFFER_BY: f64 = 1.01;
const CLOCK_GRAIN_NS: f64 = 1e6;
/// A program may report so many readings, in units so long: what prints more is no workload.
const MOST_READINGS: usize = 100;
const LONGEST_UNIT: usize = 20;

/// Sample of one launch of a workload. A foreign program's line may lack all but the first two
/// fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Operations in the timed part.
    pub operations: f64,
    /// Length of the timed part.
    pub elapsed_ns: u64,
    /// Operations of the whole process, warm-up and calibration included: what its audit records
    /// are to be divided by.
    pub total_operations: Option<f64>,
    /// Operations, converted to `unit`, per second (or per the unit's own time).
    pub rate: Option<f64>,
    pub unit: Option<String>,
    pub syscalls_per_op: Option<f64>,
    pub user_ns: Option<u64>,
    pub system_ns: Option<u64>,
    pub voluntary_switches: Option<u64>,
    pub involuntary_switches: Option<u64>,
    pub minor_faults: Option<u64>,
    pub major_faults: Option<u64>,
    /// Times of equal parts of the timed part, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices_ns: Option<Vec<u64>>,
    /// Resources that an interleaved process used outside its own slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Outside>,
    /// How long finding the number of operations took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration_ms: Option<f64>,
    /// From the PMU, where it was asked for and is there.
    pub kernel_instructions: Option<u64>,
    /// Peak memory of the whole process, as the launcher saw it, with its block I/O below:
    /// `ru_maxrss`, `ru_inblock` and `ru_oublock` of wait4(2), in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_input_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_output_bytes: Option<u64>,
    /// Exit status of a command, as the launcher saw it; absent for 0, which most have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// Other readings that the program measured about itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<OwnReading>,
    /// Times of parts of its operations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<Times>,
    /// Where several copies ran at the same time, the rate of each; `rate` is their sum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy_rates: Vec<f64>,
}

/// CPU time that a whole process (threads, children, what it left to its launcher) used while its partner
/// had the turn, without what handing over takes; and how many tasks it had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outside {
    /// On average.
    pub ns_per_slice: f64,
    /// CPU time of one of its own slices, on average.
    pub slice_cpu_ns: f64,
    /// The most at any hand-over; 0 where they could not be counted.
    pub tasks: u32,
}

/// Reading that a program reports besides its rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnReading {
    pub name: String,
    pub value: f64,
    pub unit: String,
    /// Direction that is better: more of it, or less.
    pub better: Direction,
}

impl OwnReading {
    pub fn new(
        name: impl Into<String>,
        value: f64,
        unit: impl Into<String>,
        better: Direction,
    ) -> OwnReading {
        OwnReading { name: name.into(), value, unit: unit.into(), better }
    }

    /// A time of which less is better.
    pub fn of_ns(name: impl Into<String>, value: f64) -> OwnReading {
        OwnReading::new(name, value, "ns", Direction::Lower)
    }

    fn check(&self) -> Result<(), String> {
        let OwnReading { name, value, unit, .. } = self;
        let is_own = matches!(Metric::parse(name), Ok(Metric::Named(_) | Metric::Latency(_)));
        if !is_own || SampleMetric::find(name).is_some() {
            return Err(format!("it reported a reading with the invalid name `{name}`"));
        }
        if !(value.is_finite() && *value >= 0.0) || unit.len() > LONGEST_UNIT {
            return Err(format!(
                "its reading `{name}` is {value} `{unit}`: not a number and a unit"
            ));
        }
        Ok(())
    }
}

impl Sample {
    /// The last line of a workload's output, where that is a sample.
    pub fn parse(output: &str) -> Option<Result<Sample, String>> {
        let line = output.lines().rev().find(|line| !line.trim().is_empty())?;
        match serde_json::from_str::<Sample>(line.trim()) {
            Ok(sample) => Some(sample.checked()),
            Err(error) => has_readings(line.trim())
                .then(|| Err(format!("the `readings` in its line cannot be read: {error}"))),
        }
    }

    /// Operations per second, in the unit of the workload: over all of the timed part, or, where it took
    /// turns, what its slices say.
    pub fn rate(&self) -> f64 {
        self.reading(INTERLEAVED).map_or_else(|| self.rate_over_all(), |own| own.value)
    }

    /// Operations per second over all of the timed part, in the unit of the workload.
    pub fn rate_over_all(&self) -> f64 {
        self.rate.unwrap_or(self.operations * 1e9 / self.elapsed_ns as f64)
    }

    /// Returns the rate of each slice of an interleaved sample, in operations per second in the unit of
    /// the workload.
    pub fn slice_rates(&self) -> Vec<f64> {
        let slices_ns = self.slices_ns.as_deref().unwrap_or_default();
        let of_all = self.rate_over_all() * self.elapsed_ns as f64 / slices_ns.len() as f64;
        slices_ns.iter().map(|ns| of_all / *ns as f64).collect()
    }

    /// Returns the rate over all time of an interleaved sample; slices longer than `longest_ns` are
    /// cut off there.
    pub fn clipped_rate(&self, longest_ns: f64) -> f64 {
        let slices_ns = self.slices_ns.as_deref().unwrap_or_default();
        let clipped_ns: f64 = slices_ns.iter().map(|ns| (*ns as f64).min(longest_ns)).sum();
        self.rate_over_all() * self.elapsed_ns as f64 / clipped_ns
    }

    /// CPU time per operation of the timed part; `None` where it is not known, or none was used.
    pub fn cpu_ns_per_op(&self) -> Option<f64> {
        let time = (self.user_ns? + self.system_ns?) as f64 / self.operations;
        Some(time).filter(|time| time.is_normal() && *time > 0.0)
    }

    /// Returns the value of a metric besides the rate; `None` where it is not known.
    pub fn amount(&self, metric: &Metric) -> Option<MetricValue> {
        match metric {
            Metric::Rate => None,
            Metric::OverallRate => self.own_amount(CLIPPED),
            Metric::CpuTime => Some(MetricValue::of(self.cpu_ns_per_op()?, "ns/op")),
            Metric::Latency(_) | Metric::Named(_) => match SampleMetric::find(metric.name()) {
                Some(known) => known.of(self),
                None => self.own_amount(metric.name()),
            },
        }
    }

    fn own_amount(&self, name: &str) -> Option<MetricValue> {
        let OwnReading { value, unit, better, .. } = self.reading(name)?;
        Some(MetricValue { value: *value, unit: unit.as_str().into(), better: *better })
    }

    fn reading(&self, name: &str) -> Option<&OwnReading> {
        self.readings.iter().find(|own| own.name == name)
    }

    /// Refuses a timed part that is longer than the whole process lived.
    pub fn hold_against_wall_time(&self, wall_ns: u64) -> Result<(), String> {
        if self.elapsed_ns as f64 <= wall_ns as f64 * CLOCKS_DIFFER_BY + CLOCK_GRAIN_NS {
            return Ok(());
        }
        Err(format!(
            "it reported {} ns of work, but ran for only {wall_ns} ns: is `elapsed_ns` in nanoseconds, and \
             measured with a clock?",
            self.elapsed_ns
        ))
    }

    fn checked(mut self) -> Result<Sample, String> {
        // A client that got wrong answers alone has the rate 0.
        let is_rate_of_copy = |rate: &f64| *rate == 0.0 || RATES.contains(rate);
        let is_possible = self.elapsed_ns > 0
            && self.operations > 0.0
            && RATES.contains(&self.rate())
            && self.copy_rates.iter().all(is_rate_of_copy);
        if !is_possible {
            return Err(format!(
                "it reported {} operations in {} ns and a rate of {}, which is not a valid measurement",
                self.operations,
                self.elapsed_ns,
                self.rate()
            ));
        }
        if let Some(total) =
            self.total_operations.filter(|total| total.is_nan() || *total < self.operations)
        {
            return Err(format!(
                "it reported {total} operations in total, but {} in the timed part",
                self.operations
            ));
        }
        let numbers = [self.syscalls_per_op, self.calibration_ms];
        let outside = self.outside.iter().flat_map(|one| [one.ns_per_slice, one.slice_cpu_ns]);
        let mut numbers = numbers.into_iter().flatten().chain(outside);
        if let Some(number) = numbers.find(|n| !(n.is_finite() && *n >= 0.0)) {
            return Err(format!(
                "it reported {number}, which is not valid as `syscalls_per_op`, `calibration_ms` or in \
                 `outside`"
            ));
        }
        if self.times.len() > MOST_TIMES {
            return Err(format!("it reported more than {MOST_TIMES} kinds of times"));
        }
        self.times.iter().try_for_each(Times::check)?;
        let named = self.times.iter().flat_map(Times::named_ns);
        let readings: Vec<OwnReading> =
            named.map(|(name, value)| OwnReading::of_ns(name, value)).collect();
        self.readings.extend(readings);
        check_readings(&self.readings)?;
        let slices_ns = self.slices_ns.iter().flatten();
        let sum_ns = slices_ns.fold(0u64, |sum, slice| sum.saturating_add(*slice));
        if sum_ns as f64 > self.elapsed_ns as f64 * CLOCKS_DIFFER_BY + CLOCK_GRAIN_NS {
            return Err(format!(
                "its `slices_ns` add up to {sum_ns} ns, but its time is {} ns",
                self.elapsed_ns
            ));
        }
        Ok(self)
    }
}

/// Checks the names, the values and the number of the readings of a program.
///
/// # Errors
/// A sentence about the program.
pub fn check_readings(readings: &[OwnReading]) -> Result<(), String> {
    if readings.len() > MOST_READINGS {
        return Err(format!("it reported more than {MOST_READINGS} readings"));
    }
    readings.iter().try_for_each(OwnReading::check)
}

/// Returns true if an invalid line would be a valid sample without its readings.
fn has_readings(line: &str) -> bool {
    let Ok(serde_json::Value::Object(mut fields)) = serde_json::from_str(line) else {
        return false;
    };
    fields.remove("readings").is_some()
        && serde_json::from_value::<Sample>(serde_json::Value::Object(fields)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_line_counts_and_the_rate_is_derived_where_it_is_absent() {
        let output = "noise\n{\"operations\":50,\"elapsed_ns\":1000000000}\n\n";
        assert_eq!(Sample::parse(output).unwrap().unwrap().rate(), 50.0);
    }

    #[test]
    fn the_rate_over_all_slices_is_the_clipped_one_or_unknown() {
        let own = |name, value| OwnReading::new(name, value, "ops/s", Direction::Higher);
        let sample = |readings| Sample {
            operations: 5.0,
            elapsed_ns: 1_000_000_000,
            readings,
            ..Sample::default()
        };
        let over_all = |readings| Some(sample(readings).amount(&Metric::OverallRate)?.value);
        assert_eq!(over_all(vec![own(INTERLEAVED, 6.0), own(CLIPPED, 5.5)]), Some(5.5));
        assert_eq!(over_all(vec![own(INTERLEAVED, 6.0)]), None);
        assert_eq!(over_all(Vec::new()), None);
    }

    #[test]
    fn an_ordinary_programs_output_is_no_sample() {
        assert!(Sample::parse("hello\n").is_none());
        assert!(Sample::parse("").is_none());
        assert!(Sample::parse("{\"operations\":\"many\"}").is_none());
    }

    #[test]
    fn work_in_no_time_is_refused() {
        for line in [
            r#"{"operations":5,"elapsed_ns":0}"#,
            r#"{"operations":0,"elapsed_ns":5}"#,
            r#"{"operations":5,"elapsed_ns":5,"rate":-1}"#,
        ] {
            assert!(Sample::parse(line).unwrap().is_err(), "{line}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let line = |more: &str| format!(r#"{{"operations":5,"elapsed_ns":7000000,{more}}}"#);
        for (more, said) in [
            (r#""total_operations":-5"#, "-5 operations in total"),
            (r#""total_operations":4"#, "4 operations in total"),
            (r#""rate":1e300"#, "not a valid measurement"),
            (r#""copy_rates":[1,-1]"#, "not a valid measurement"),
            (r#""syscalls_per_op":-1"#, "reported -1"),
            (r#""slices_ns":[7000000,7000000]"#, "add up to 14000000"),
        ] {
            let problem = Sample::parse(&line(more)).unwrap().unwrap_err();
            assert!(problem.contains(said), "{problem}");
        }
        let starved = Sample::parse(&line(r#""copy_rates":[1,0]"#)).unwrap().unwrap();
        assert_eq!(starved.copy_rates, [1.0, 0.0]);
        let sample = Sample::parse(&line(r#""total_operations":5"#)).unwrap().unwrap();
        assert!(sample.hold_against_wall_time(7_000_000).is_ok());
        let problem = sample.hold_against_wall_time(5_000_000).unwrap_err();
        assert!(problem.contains("ran for only 5000000 ns"), "{problem}");
    }

    proptest! {
        #[test]
        fn foreign_output_never_panics(output in ".{0,200}") {
            let _ = Sample::parse(&output);
        }
    }
}
