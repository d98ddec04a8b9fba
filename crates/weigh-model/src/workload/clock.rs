//! Unit of a place's clock: time, or instructions where an emulator advances its clock by one step
//! for each. A count of instructions is a path length: how many instructions an operation takes. It
//! does not include cache misses, TLB misses or waits for memory, so it is never in one table with
//! time.

use std::borrow::Cow;

use crate::workload::sample::Sample;

/// Behind the name of what is done, in the unit of a rate: per thousand million instructions.
pub const PER_INSTRUCTIONS: &str = "/Ginstr";
/// Name of the metric of a row with such rates.
pub const PATH_LENGTH: &str = "path_length";
const INSTRUCTIONS: &str = "instr";
/// Least share of a computing sample's length that its processes use. Seven workloads of UnixBench
/// used 98 % and more. The kernel's own threads run seldom, but take some of a short sample.
const LEAST_SHARE: f64 = 0.8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlaceClock {
    #[default]
    Time,
    /// So many nanoseconds of its clock for an instruction.
    Instructions { ns_each: u32 },
}

impl PlaceClock {
    /// A sample as this clock has measured it.
    ///
    /// # Errors
    /// A sentence, where it waited: the emulator's clock then went on without instructions.
    pub fn read(self, sample: Sample, unit: &str) -> Result<Sample, String> {
        match self {
            PlaceClock::Time => Ok(sample),
            PlaceClock::Instructions { ns_each } => in_instructions(sample, unit, ns_each.into()),
        }
    }
}

/// Returns true if a rate in this unit counts per instructions.
pub fn is_path_length(unit: &str) -> bool {
    unit.ends_with(PER_INSTRUCTIONS)
}

fn in_instructions(sample: Sample, unit: &str, ns_each: f64) -> Result<Sample, String> {
    let (Some(user), Some(system)) = (sample.user_ns, sample.system_ns) else {
        return Err(
            "it reports no CPU time, so it is not known whether it waited: without KVM a guest counts \
             instructions, and waiting takes none"
                .into(),
        );
    };
    let (used, elapsed) = ((user + system) as f64, sample.elapsed_ns as f64);
    if used < elapsed * LEAST_SHARE {
        return Err(format!(
            "it waited for {:.0} % of its time: without KVM a guest counts instructions, and waiting takes \
             none",
            (1.0 - used / elapsed) * 100.0
        ));
    }
    let unit = sample.unit.as_deref().unwrap_or(unit);
    let (what, seconds) = counted(unit);
    let unit = format!("{what}{PER_INSTRUCTIONS}");
    let mut readings = sample.readings.clone();
    for reading in readings.iter_mut().filter(|reading| reading.unit == "ns") {
        reading.value /= ns_each;
        reading.unit = INSTRUCTIONS.into();
    }
    let rate = sample.rate() * ns_each / seconds;
    Ok(Sample {
        rate: Some(rate),
        unit: Some(unit),
        readings,
        // All of these would be times.
        user_ns: None,
        system_ns: None,
        slices_ns: None,
        outside: None,
        calibration_ms: None,
        times: Vec::new(),
        copy_rates: Vec::new(),
        ..sample
    })
}

/// Splits a unit into the counted noun and the seconds it is counted in.
fn counted(unit: &str) -> (Cow<'_, str>, f64) {
    match unit {
        "lpm" => ("ops".into(), 60.0),
        "jobs/min" => ("jobs".into(), 60.0),
        "KBps" => ("KB".into(), 1.0),
        "MBps" => ("MB".into(), 1.0),
        "MWIPS" => ("MWI".into(), 1.0),
        other => match other.strip_suffix("/s") {
            Some(what) => (what.into(), 1.0),
            None => (format!("{other}·s").into(), 1.0),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(more: &str) -> Sample {
        let line = format!("{{\"operations\":1000,\"elapsed_ns\":2000000000{more}}}");
        Sample::parse(&line).unwrap().unwrap()
    }

    /// One that only computes.
    fn busy(more: &str) -> Sample {
        sample(&format!(r#","user_ns":1990000000,"system_ns":0{more}"#))
    }

    const CLOCK: PlaceClock = PlaceClock::Instructions { ns_each: 2 };

    #[test]
    fn an_operation_of_two_milliseconds_at_two_nanoseconds_each_is_a_million_instructions() {
        let read = CLOCK.read(busy(""), "ops/s").unwrap();
        assert_eq!((read.rate(), read.unit.as_deref()), (1000.0, Some("ops/Ginstr")));
        let per_minute = CLOCK.read(busy(r#","rate":30000,"unit":"lpm""#), "lpm").unwrap();
        assert_eq!((per_minute.rate(), per_minute.unit.as_deref()), (1000.0, Some("ops/Ginstr")));
        assert!(is_path_length("KB/Ginstr") && !is_path_length("KBps"));
        assert_eq!(PlaceClock::Time.read(sample(""), "ops/s").unwrap(), sample(""));
    }

    #[test]
    fn what_waits_has_no_path_length() {
        let of =
            |used: u64| CLOCK.read(sample(&format!(r#","user_ns":{used},"system_ns":0"#)), "ops/s");
        assert!(of(1_950_000_000).unwrap().user_ns.is_none(), "no time is left in it");
        assert!(of(1_500_000_000).unwrap_err().contains("it waited for 25 %"));
        let untold = CLOCK.read(sample(""), "ops/s").unwrap_err();
        assert!(untold.starts_with("it reports no CPU time"), "{untold}");
        assert!(of(200_000_000).unwrap_err().contains("it waited for 90 %"));
    }
}
