//! A machine whose true effect is known, for tests and `benches/verdict`: seeded, with the noise of
//! real machines.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

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
}

/// Draws pairs as the engine measures them: two samples in the order a coin decides.
pub struct Machine {
    random: ChaCha8Rng,
    noise: Noise,
    samples: u32,
    drift: f64,
    neighbour: bool,
}

impl Machine {
    pub fn new(noise: Noise, seed: u64) -> Machine {
        Machine {
            random: ChaCha8Rng::seed_from_u64(seed),
            noise,
            samples: 0,
            drift: 0.0,
            neighbour: false,
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
            Noise::Wandering => 0.005 * self.student2() + self.drift(),
            Noise::Drifting => self.drifting(),
            Noise::Alternating if self.samples.is_multiple_of(2) => 0.005 * self.normal() - 0.04,
            Noise::Alternating => 0.005 * self.normal(),
        }
    }

    fn drifting(&mut self) -> f64 {
        let drift = self.drift();
        let flip = if self.neighbour { 0.1 } else { 0.02 };
        self.neighbour ^= self.random.random_bool(flip);
        let stolen = if self.neighbour { self.random.random_range(0.0..0.2) } else { 0.0 };
        let warm_up = 0.05 * (-f64::from(self.samples) / 20.0).exp();
        0.007 * self.normal() + drift - stolen - warm_up
    }

    /// AR(1) of standard deviation 2 %, of which a sample takes over 0.95 from the one before.
    fn drift(&mut self) -> f64 {
        let innovation = (1.0 - 0.95_f64 * 0.95).sqrt();
        self.drift = 0.95 * self.drift + 0.02 * innovation * self.normal();
        self.drift
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
