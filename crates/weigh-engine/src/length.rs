//! How long a sample of a workload should be: as long as gives the most precision for the time.
//!
//! A short sample pays its launch again and again, a long one measures the same process where
//! another would tell more. Kalibera and Jones ("Rigorous benchmarking in reasonable time", ISMM
//! 2013, §6) weigh the variance within a launch against that between launches. Per pair
//!
//! ```text
//! Var(d)/2 = B + A/τ         B between launches, A/τ within a launch of length τ
//! cost/2   = o + kτ          o what a launch takes besides, k what a timed second takes in all
//! ```
//!
//! and the product is least at τ = √(A·o / (B·k)).
//!
//! The first pairs are the pilot. Their spread gives B + A/τ, and the times of the slices of their
//! samples give A, both as robustly as the estimate itself. A length that knows the past only
//! leaves the pairs to come symmetric, so the interval stays valid.

use std::time::Duration;

use paired::estimate::{deviation, hodges_lehmann, median};
use weigh_model::workload::sample::Sample;
use weigh_treatment::Named;
use weigh_workload::executable::Length;

/// Length of a sample before anything is known. Short ones resist drift best
/// (`docs/interleaving.md`).
const START_MS: u64 = 20;
/// First length for treatments that cost more after a while, in milliseconds. It is also the length
/// for an absolute rate, which no pair protects.
pub const LONG_START_MS: u64 = 70;
/// The least length. Where neighbours on the same core come and go within a second, as on virtual machines,
/// the two samples of a pair are the more alike the closer they are (docs/verdicts.md).
const SHORTEST_MS: f64 = 10.0;
/// The least length where a treatment costs more after a while. Shorter ones would show less of that, and
/// more of what it does to the launch: of that, records are written while the workload runs.
const SHORTEST_LATE_MS: f64 = 50.0;
/// Above, drift gets in between the two of a pair.
const LONGEST_MS: f64 = 250.0;
/// Number of operations from which the calibration is as long as the target makes it. With fewer,
/// it takes as long as a few operations, whatever the target.
const MANY_OPERATIONS: f64 = 64.0;
/// A change must promise at least this gain: the pilot is short, and its estimates rough.
const WORTHWHILE: f64 = 0.9;

/// How long the samples of a workload are, and what is learnt while that is open.
#[derive(Clone, Debug)]
pub struct SampleLength {
    target_ms: u64,
    /// True if a treatment costs more after a while.
    sets_in_late: bool,
    pilot: Option<Pilot>,
}

/// Returns true if any of the treatments costs more after a while.
pub fn sets_in_late<'a>(mut treatments: impl Iterator<Item = &'a Named>) -> bool {
    treatments.any(|named| named.treatment.sets_in_late())
}

/// Returns the first length of a sample, in milliseconds.
pub fn start_ms(sets_in_late: bool) -> u64 {
    if sets_in_late { LONG_START_MS } else { START_MS }
}

impl SampleLength {
    /// Makes a fixed length of so many milliseconds, or one that the first samples choose.
    pub fn new(fixed_ms: Option<u64>, sets_in_late: bool) -> SampleLength {
        let pilot = fixed_ms.is_none().then(Pilot::default);
        let target_ms = fixed_ms.unwrap_or(start_ms(sets_in_late));
        SampleLength { target_ms, sets_in_late, pilot }
    }

    pub fn wanted(&self) -> Length {
        let length = match self.sets_in_late {
            true => Length::settled(self.target_ms),
            false => Length::of_ms(self.target_ms),
        };
        Length { has_slices: self.pilot.is_some(), ..length }
    }

    /// Looks at a sample that took `launch` in all.
    pub fn learn(&mut self, sample: &Sample, launch: Duration) {
        if let Some(pilot) = &mut self.pilot {
            pilot.add(sample, launch.as_nanos() as f64);
        }
    }

    /// Ends the pilot of a workload whose pairs spread by `deviation`, and gives the new length in
    /// milliseconds where there is one. Only the first call decides.
    pub fn choose(&mut self, deviation: f64) -> Option<u64> {
        let shortest_ms = if self.sets_in_late { SHORTEST_LATE_MS } else { SHORTEST_MS };
        let chosen = self.pilot.take()?.choose(deviation, shortest_ms)?;
        self.target_ms = chosen;
        Some(chosen)
    }
}

/// Times of a workload's first samples.
#[derive(Clone, Debug, Default)]
struct Pilot {
    /// Standard deviation of ln(rate) from slice to slice, of each launch.
    spreads: Vec<f64>,
    slice_ns: Vec<f64>,
    timed_ns: Vec<f64>,
    /// Time of a launch that does not depend on its length.
    fixed_ns: Vec<f64>,
    /// Time of a launch in proportion to its timed part: 1 and the calibration's share.
    per_timed_ns: Vec<f64>,
}

impl Pilot {
    /// Adds a sample that came with slices; others tell nothing.
    fn add(&mut self, sample: &Sample, launch_ns: f64) {
        let Some(slices) = sample.slices_ns.as_deref().filter(|slices| slices.len() > 1) else {
            return;
        };
        // All slices but for one operation are equal, so the spread of times is that of rates.
        let times: Vec<f64> = slices.iter().map(|ns| (*ns).max(1) as f64).collect();
        let logs: Vec<f64> = times.iter().map(|ns| ns.ln()).collect();
        self.spreads.push(deviation(&logs));
        self.slice_ns.push(median(&times).unwrap_or(0.0));
        let timed = sample.elapsed_ns as f64;
        let calibration = sample.calibration_ms.unwrap_or(0.0) * 1e6;
        let is_scaled = sample.operations >= MANY_OPERATIONS;
        let scaled = if is_scaled { calibration } else { 0.0 };
        self.timed_ns.push(timed);
        self.fixed_ns.push((launch_ns - timed - scaled).max(0.0));
        self.per_timed_ns.push(1.0 + scaled / timed);
    }

    /// The length in milliseconds that a pair whose log-ratio spreads by `deviation` should have, or
    /// `None` where that of the pilot is about as good.
    fn choose(&self, deviation: f64, shortest_ms: f64) -> Option<u64> {
        let (slice, timed) = (median(&self.slice_ns)?, median(&self.timed_ns)?);
        let spread = hodges_lehmann(&self.spreads)?;
        let within = spread * spread * slice;
        let (fixed, per_timed) = (median(&self.fixed_ns)?, median(&self.per_timed_ns)?);
        let between = (deviation * deviation / 2.0 - within / timed).max(0.0);
        let waste = |ns: f64| (between + within / ns) * (fixed + per_timed * ns);
        // Without variance between launches this is infinite, and the longest is best.
        let best = (within * fixed / (between * per_timed)).sqrt();
        let best = if best.is_nan() { timed } else { best };
        let best = best.clamp(shortest_ms * 1e6, LONGEST_MS * 1e6);
        (waste(best) < WORTHWHILE * waste(timed)).then(|| (best / 1e7).round() as u64 * 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten slices of 7 ms that spread by `within`, in a launch that takes `fixed_ms` more.
    fn pilot(within: f64, fixed_ms: u64) -> Pilot {
        let mut pilot = Pilot::default();
        for launch in 0..16_u64 {
            let slice =
                |i: u64| (7e6 * (within * ((launch + i) * 7 % 10) as f64 / 5.0).exp()) as u64;
            let sample = Sample {
                slices_ns: Some((0..10).map(slice).collect()),
                ..serde_json::from_str(r#"{"operations":7000,"elapsed_ns":70000000}"#).unwrap()
            };
            pilot.add(&sample, (70 + fixed_ms) as f64 * 1e6);
        }
        pilot
    }

    #[test]
    fn noise_between_launches_asks_for_short_samples_but_for_a_cost_that_may_grow() {
        assert_eq!(pilot(0.001, 20).choose(0.05, SHORTEST_MS), Some(10));
        assert_eq!(pilot(0.001, 20).choose(0.05, SHORTEST_LATE_MS), Some(50));
    }

    #[test]
    fn noise_within_a_launch_and_dear_launches_ask_for_long_ones() {
        assert_eq!(pilot(0.2, 200).choose(0.03, SHORTEST_MS), Some(250));
    }

    #[test]
    fn the_best_length_follows_the_formula() {
        let mut pilot = Pilot::default();
        pilot.spreads.push(0.02);
        pilot.slice_ns.push(100e6);
        pilot.timed_ns.push(70e6);
        pilot.fixed_ns.push(360e6);
        pilot.per_timed_ns.push(1.0);
        // B = 4e-4, A = 4e-4 · 100 ms and o = 360 ms: τ = √(100 · 360) ms.
        let deviation = (2.0_f64 * (4e-4 + 4e-4 * 100.0 / 70.0)).sqrt();
        assert_eq!(pilot.choose(deviation, SHORTEST_MS), Some(190));
    }

    #[test]
    fn about_as_good_is_left_alone_and_so_is_what_told_nothing() {
        let even = Pilot {
            spreads: vec![0.01],
            slice_ns: vec![60e6],
            timed_ns: vec![70e6],
            fixed_ns: vec![60e6],
            per_timed_ns: vec![1.0],
        };
        let deviation = (2.0_f64 * (1e-4 + 1e-4 * 60.0 / 70.0)).sqrt();
        assert_eq!(even.choose(deviation, SHORTEST_MS), None);
        assert_eq!(Pilot::default().choose(0.01, SHORTEST_MS), None);
        let mut silent = Pilot::default();
        let sample = serde_json::from_str(r#"{"operations":1,"elapsed_ns":70000000}"#).unwrap();
        silent.add(&sample, 100e6);
        assert_eq!(silent.choose(0.01, SHORTEST_MS), None);
    }

    #[test]
    fn the_pilot_ends_once_and_a_fixed_length_has_none() {
        let mut open = SampleLength::new(None, false);
        assert_eq!(open.wanted(), Length { has_slices: true, ..Length::of_ms(START_MS) });
        open.pilot = Some(pilot(0.001, 20));
        assert_eq!(open.choose(0.05), Some(10));
        assert_eq!(open.choose(0.05), None);
        assert_eq!(open.wanted(), Length::of_ms(10));
        let mut fixed = SampleLength::new(Some(100), false);
        assert_eq!((fixed.choose(0.05), fixed.wanted()), (None, Length::of_ms(100)));
    }

    #[test]
    fn what_sets_in_late_is_given_time() {
        let mut late = SampleLength::new(None, true);
        let long = Length { has_slices: true, ..Length::settled(LONG_START_MS) };
        assert_eq!(late.wanted(), long);
        assert_eq!(long.warm_up_ms, LONG_START_MS / 2);
        late.pilot = Some(pilot(0.001, 20));
        assert_eq!(late.choose(0.05), Some(50));
    }

    #[test]
    fn a_launch_that_was_held_up_does_not_change_the_length() {
        let mut held_up = pilot(0.01, 40);
        let length = held_up.choose(0.05, SHORTEST_MS);
        assert!(length.is_some());
        held_up.spreads[3] *= 50.0;
        assert_eq!(held_up.choose(0.05, SHORTEST_MS), length);
    }

    #[test]
    fn no_noise_at_all_is_no_reason_to_change() {
        assert_eq!(pilot(0.0, 10).choose(0.0, SHORTEST_MS), None);
    }
}
