//! The coins: which row comes when in a round, and which arm of a pair first.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The experiment's source of chance. The same seed gives the same order, on every machine.
pub struct Coins(ChaCha8Rng);

impl Coins {
    /// Sets of one experiment are separate, so each has a stream of its own.
    pub fn new(seed: u64, set: usize) -> Coins {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(set as u64);
        Coins(generator)
    }

    /// The rows in the order of one round.
    pub fn shuffle(&mut self, rows: &mut [usize]) {
        rows.shuffle(&mut self.0);
    }

    /// Whether the baseline is measured first in this pair: a fair coin, on which the interval's
    /// validity rests.
    pub fn baseline_first(&mut self) -> bool {
        self.0.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flips(seed: u64, set: usize) -> Vec<bool> {
        let mut coins = Coins::new(seed, set);
        (0..10_000).map(|_| coins.baseline_first()).collect()
    }

    #[test]
    fn the_seed_decides_and_sets_differ() {
        assert_eq!(flips(7, 0), flips(7, 0));
        assert_ne!(flips(7, 0), flips(8, 0));
        assert_ne!(flips(7, 0), flips(7, 1));
    }

    #[test]
    fn the_coin_is_fair_and_has_no_memory() {
        let flips = flips(1, 0);
        // Six standard deviations of 10 000 fair flips are 300.
        let heads = flips.iter().filter(|head| **head).count();
        assert!(heads.abs_diff(5000) < 300, "{heads}");
        let changes = flips.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes.abs_diff(5000) < 300, "{changes}");
    }
}
