//! How much a machine itself changes while a ramp lasts. A virtual machine may be a fifth faster for half a
//! minute and then slower again: fresh samples one right after the other then agree with each other better
//! than with those of the next run.

use std::collections::HashMap;

use paired::estimate::median;
use paired::student::two_sided_quantile;

/// A sample of a ramp, in the order in which they were taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RampSample {
    pub users: usize,
    pub jobs_per_min: f64,
    /// Whether it was taken at the peak after that was chosen.
    pub is_fresh: bool,
}

impl RampSample {
    /// In proportion to how long it lasted: every user does one list of jobs. With a period all last as long,
    /// and those of more users count for a little more.
    fn length(&self) -> f64 {
        self.users as f64 / self.jobs_per_min
    }
}

/// The time of a ramp is cut into so many stretches: few enough that what changes within tens of seconds has
/// mostly changed from one to the next (Schmeiser, Batch size effects in the analysis of simulation output,
/// 1982).
const STRETCHES: usize = 5;
/// The chance that the interval misses.
const ALPHA: f64 = 0.05;

/// Half the width of the interval of the fresh samples' jobs per minute, as a share, by how far the machine
/// was from its own median in each stretch of the ramp: batch means. A sample tells that if its point has
/// others; the more stretches the fresh ones cover, the narrower is the interval. `None` where too little was
/// measured more than once.
pub fn half_width(ramp_samples: &[RampSample]) -> Option<f64> {
    let mut rates: HashMap<usize, Vec<f64>> = HashMap::new();
    for sample in ramp_samples {
        rates.entry(sample.users).or_default().push(sample.jobs_per_min);
    }
    rates.retain(|_, rates| rates.len() > 1);
    let usual: HashMap<usize, f64> =
        rates.iter().filter_map(|(users, rates)| Some((*users, median(rates)?))).collect();
    let repeated = || ramp_samples.iter().filter(|sample| usual.contains_key(&sample.users));
    let total: f64 = repeated().map(RampSample::length).sum();
    let fresh: f64 = repeated().filter(|sample| sample.is_fresh).map(RampSample::length).sum();
    let mut stretches = [(0.0, 0.0); STRETCHES];
    let mut passed = 0.0;
    for sample in repeated() {
        // A median of few samples lies near each of them.
        let count = rates[&sample.users].len() as f64;
        let deviation = (sample.jobs_per_min / usual[&sample.users]).ln();
        let middle = passed + sample.length() / 2.0;
        let stretch =
            &mut stretches[((middle / total * STRETCHES as f64) as usize).min(STRETCHES - 1)];
        stretch.0 += sample.length() * deviation * (count / (count - 1.0)).sqrt();
        stretch.1 += sample.length();
        passed += sample.length();
    }
    let means: Vec<f64> = stretches
        .iter()
        .filter(|(_, length)| *length > 0.0)
        .map(|(sum, length)| sum / length)
        .collect();
    let freedom = means.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let squares: f64 = means.iter().map(|one| (one - mean).powi(2)).sum();
    let deviation = (squares / freedom as f64).sqrt();
    let covered = (fresh / total * STRETCHES as f64).max(1.0);
    Some((two_sided_quantile(ALPHA, freedom) * deviation / covered.sqrt()).exp() - 1.0)
}

/// Fresh samples alone.
#[cfg(test)]
pub fn all_fresh(users: usize, rates: &[f64]) -> Vec<RampSample> {
    rates.iter().map(|rate| RampSample { users, jobs_per_min: *rate, is_fresh: true }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp_samples(rates: &[(usize, f64, bool)]) -> Vec<RampSample> {
        let sample = |(users, jobs_per_min, is_fresh): &(usize, f64, bool)| RampSample {
            users: *users,
            jobs_per_min: *jobs_per_min,
            is_fresh: *is_fresh,
        };
        rates.iter().map(sample).collect()
    }

    #[test]
    fn a_machine_that_stays_as_it_is_adds_nothing() {
        let steady = ramp_samples(
            &[(4, 100.0, false), (8, 120.0, false), (8, 120.0, false)]
                .into_iter()
                .chain([(8, 120.0, true); 8])
                .collect::<Vec<_>>(),
        );
        assert!(half_width(&steady).unwrap() < 1e-9);
    }

    #[test]
    fn nothing_is_known_of_samples_that_are_alone() {
        assert_eq!(half_width(&[]), None);
        assert_eq!(half_width(&ramp_samples(&[(1, 10.0, false), (2, 20.0, false)])), None);
    }

    /// The fresh samples agree with each other, and those before say that the machine changes by a tenth.
    #[test]
    fn what_changed_before_the_fresh_samples_widens_their_interval() {
        let before = [(8, 110.0, false), (4, 88.0, false), (8, 108.0, false), (4, 80.0, false)];
        let all: Vec<_> = before.into_iter().chain([(8, 100.0, true); 8]).collect();
        let found = half_width(&ramp_samples(&all)).unwrap();
        assert!((0.02..0.2).contains(&found), "{found}");
    }
}
