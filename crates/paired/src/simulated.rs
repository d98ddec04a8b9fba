//! A machine whose true effect is known, for tests and `benches/verdict`: seeded, with the noise of
//! real machines.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::betting::{Betting, DEFAULT_SCALE};
use crate::design::Design;

/// How the rate of one workload wanders from sample to sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// N0: independent, normal, 1 %.
    White,
    /// N1: independent, Student's t with 2 degrees of freedom, whose variance is infinite.
    HeavyTailed,
    /// N2: heavy tails on AR(1) drift of 2 %.
    Wandering,
    /// N3: normal noise on AR(1) drift of 2 %, a warm-up, and a noisy neighbour who comes and goes.
    Drifting,
    /// Every other sample is 4 % slower: what defeats a strict A B A B.
    Alternating,
    /// AR(1), 2 %, of which nine tenths are left in the next sample.
    Autocorrelated,
    /// The clock's frequency: full, 5 % or 12 % lower, for some thirty samples each.
    Regimes,
    /// A hypervisor that takes time away from every seventh sample, 8 % of it on average.
    Stealing,
    /// One sample in fifty takes up to four times as long.
    Stalling,
}

impl Noise {
    /// Every kind once.
    pub const ALL: [Noise; 9] = [
        Noise::White,
        Noise::HeavyTailed,
        Noise::Wandering,
        Noise::Drifting,
        Noise::Alternating,
        Noise::Autocorrelated,
        Noise::Regimes,
        Noise::Stealing,
        Noise::Stalling,
    ];
}

/// Draws pairs as the engine measures them: two samples in the order a coin decides.
pub struct Machine {
    random: ChaCha8Rng,
    noise: Noise,
    samples: u32,
    drift: f64,
    neighbour: bool,
    /// ln of the rate at the present frequency.
    regime: f64,
}

impl Machine {
    /// A machine with this noise; the same seed draws the same pairs on every computer.
    pub fn new(noise: Noise, seed: u64) -> Machine {
        Machine {
            random: ChaCha8Rng::seed_from_u64(seed),
            noise,
            samples: 0,
            drift: 0.0,
            neighbour: false,
            regime: 0.0,
        }
    }

    /// The log-ratio of one pair when the treatment changes ln(rate) by `effect`.
    pub fn pair(&mut self, effect: f64) -> f64 {
        let baseline_first = self.random.random_bool(0.5);
        let (first, second) = (self.sample(), self.sample());
        if baseline_first { second + effect - first } else { first + effect - second }
    }

    /// ln of the rate of the next sample, about 0.
    pub fn sample(&mut self) -> f64 {
        self.samples += 1;
        match self.noise {
            Noise::White => 0.01 * self.normal(),
            Noise::HeavyTailed => 0.005 * self.student2(),
            Noise::Wandering => {
                self.drift(0.95, 0.02);
                self.drift + 0.005 * self.student2()
            }
            Noise::Drifting => self.drifting(),
            Noise::Alternating if self.samples.is_multiple_of(2) => 0.005 * self.normal() - 0.04,
            Noise::Alternating => 0.005 * self.normal(),
            Noise::Autocorrelated => {
                self.drift(0.9, 0.02);
                self.drift + 0.005 * self.normal()
            }
            Noise::Regimes => {
                if self.random.random_bool(1.0 / 30.0) {
                    self.regime = [0.0, -0.05, -0.12][self.random.random_range(0..3)];
                }
                self.regime + 0.005 * self.normal()
            }
            Noise::Stealing => {
                let is_hit = self.random.random_bool(1.0 / 7.0);
                let stolen = if is_hit { -0.08 * self.random.random::<f64>().ln() } else { 0.0 };
                0.007 * self.normal() - stolen.min(3.0)
            }
            Noise::Stalling => {
                let is_hit = self.random.random_bool(0.02);
                let stalled = if is_hit { 4.0_f64.ln() * self.random.random::<f64>() } else { 0.0 };
                0.006 * self.normal() - stalled
            }
        }
    }

    /// A step of AR(1) with the correlation `kept` and the standard deviation `sd` in the long run.
    fn drift(&mut self, kept: f64, sd: f64) {
        self.drift = kept * self.drift + sd * (1.0 - kept * kept).sqrt() * self.normal();
    }

    fn drifting(&mut self) -> f64 {
        self.drift(0.95, 0.02);
        let flip = if self.neighbour { 0.1 } else { 0.02 };
        self.neighbour ^= self.random.random_bool(flip);
        let stolen = if self.neighbour { self.random.random_range(0.0..0.2) } else { 0.0 };
        let warm_up = 0.05 * (-f64::from(self.samples) / 20.0).exp();
        0.007 * self.normal() + self.drift - stolen - warm_up
    }

    /// Standard normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.random.random::<f64>()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.random.random::<f64>()).cos()
    }

    /// Student's t with 2 degrees of freedom, by its inverse distribution function.
    fn student2(&mut self) -> f64 {
        let u: f64 = self.random.random_range(1e-9..1.0 - 1e-9);
        (2.0 * u - 1.0) / (2.0 * u * (1.0 - u)).sqrt()
    }
}

/// Log-ratios of pairs under white noise.
pub fn white_pairs(effect: f64, pairs: usize, seed: u64) -> Vec<f64> {
    let mut machine = Machine::new(Noise::White, seed);
    (0..pairs).map(|_| machine.pair(effect)).collect()
}

/// A row of such pairs.
pub fn white_row(effect: f64, pairs: usize, seed: u64) -> Betting {
    Betting::from_log_ratios(&white_pairs(effect, pairs, seed), DEFAULT_SCALE)
        .expect("a machine's are finite")
}

/// The highest rate of errors that chance explains: α and three standard errors of a rate that was counted in
/// this many repetitions.
pub fn allowed(repetitions: u64) -> f64 {
    let alpha = Design::default().alpha;
    alpha + 3.0 * (alpha * (1.0 - alpha) / repetitions as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_pairs_on_every_computer() {
        let sums = [
            835.073182155,
            1018.239091732,
            869.875109805,
            793.037203375,
            1123.736591078,
            751.954376305,
            758.314186267,
            970.053696608,
            81.838349817,
        ];
        for (noise, expected) in Noise::ALL.into_iter().zip(sums) {
            let mut machine = Machine::new(noise, 7);
            let sum: f64 = (1..=400).map(|i| f64::from(i) * machine.pair(0.01)).sum();
            assert!((sum - expected).abs() < 1e-6, "{noise:?}: {sum}");
        }
    }

    #[test]
    fn chance_explains_three_standard_errors_above_the_promise() {
        assert!((allowed(400) - 0.082_691_7).abs() < 1e-6, "{}", allowed(400));
    }
}
