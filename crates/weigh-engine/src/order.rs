//! The coins: which row comes when in a round, and which arm of a pair first.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::platform::SampleSlot;
use weigh_model::ids::{ArmId, SetId};

/// The experiment's source of chance. The same seed gives the same order, on every machine.
pub struct Coins(ChaCha8Rng);

impl Coins {
    /// Sets of one experiment are separate, so each has a stream of its own; and so has each session of an
    /// continued experiment, counted from 0: no coin is flipped twice.
    pub fn new(seed: u64, set: SetId, session: usize) -> Coins {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(((session as u64) << 32) | set.0 as u64);
        Coins(generator)
    }

    /// The rows in the order of one round, those of an arm together: what arms share of the kernel, as
    /// audit rules, then changes hands once per arm. Each pair has a baseline of its own beside it, so no
    /// comparison rests on the order of the rows.
    pub fn shuffle<T: Copy>(&mut self, rows: &mut [T], arm_of: impl Fn(T) -> ArmId) {
        rows.shuffle(&mut self.0);
        let arms: Vec<ArmId> = rows.iter().map(|row| arm_of(*row)).collect();
        rows.sort_by_key(|row| arms.iter().position(|arm| *arm == arm_of(*row)));
    }

    /// Tosses the coin for a pair; true means that the baseline is measured first. The coin is
    /// fair, and the interval's validity rests on it.
    pub fn baseline_first(&mut self) -> bool {
        self.0.random()
    }
}

/// A page: further the stack is where it was.
const MAX_PADDING_BYTES: usize = 4096;

/// How much longer the environment of a sample is made. Mytkowicz et al., "Producing Wrong Data Without Doing
/// Anything Obviously Wrong!" (ASPLOS 2009): its size moves the stack, and with it the time. So it varies.
/// Drawn from the seed for each place in the experiment, whatever was measured before: the same seed gives
/// the same sizes again.
pub fn padding_bytes(seed: u64, slot: &SampleSlot) -> usize {
    let mut generator = of_pair(!seed, slot);
    let of_pair: [usize; 2] = [0, 1].map(|_| generator.random_range(0..MAX_PADDING_BYTES));
    of_pair[slot.arm.side()]
}

/// So that it is another stream than those of the coins and of the padding.
const OF_PAIRS: u64 = 0x7061_6972_7061_6972;

/// Returns the random number by which the treatments of a pair vary. It is equal for both samples.
pub fn chance_of_pair(seed: u64, slot: &SampleSlot) -> u64 {
    of_pair(seed ^ OF_PAIRS, slot).random()
}

/// So that it is yet another stream.
const OF_CPUS: u64 = 0x6370_7573_6370_7573;

/// Returns the random number that chooses the CPU on which both samples of a pair begin.
pub fn cpu_chance(seed: u64, slot: &SampleSlot) -> u64 {
    of_pair(seed ^ OF_CPUS, slot).random()
}

/// A source of chance for the place of a pair in the experiment.
fn of_pair(seed: u64, slot: &SampleSlot) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let [set, work, treated] =
        [slot.set.0, slot.unit.work.0, slot.unit.treated_arm.0].map(|n| n as u64);
    let place = ((slot.role as u64) << 28) | slot.pair.0 as u64;
    generator.set_stream((set << 56) | (work << 40) | (treated << 32) | place);
    generator
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::simulated::unit;
    use weigh_model::ids::PairId;
    use weigh_model::ids::SetId;

    fn flips(seed: u64, set: usize, session: usize) -> Vec<bool> {
        let mut coins = Coins::new(seed, SetId(set), session);
        (0..10_000).map(|_| coins.baseline_first()).collect()
    }

    #[test]
    fn the_seed_decides_and_sets_and_sessions_differ() {
        assert_eq!(flips(7, 0, 1), flips(7, 0, 1));
        for other in [flips(8, 0, 0), flips(7, 1, 0), flips(7, 0, 1)] {
            assert_ne!(flips(7, 0, 0), other);
        }
    }

    #[test]
    fn the_padding_is_that_of_the_seed_and_the_place_and_of_no_other() {
        let mut sizes = BTreeMap::new();
        for (seed, set, work) in [(7, 0, 0), (8, 0, 0), (7, 1, 0), (7, 0, 1)] {
            let slot = |pair, arm| SampleSlot {
                arm: ArmId(arm),
                set: SetId(set),
                ..SampleSlot::alone(unit(work, 1), PairId(pair))
            };
            let of_arm = |arm| (0..64).map(|pair| padding_bytes(seed, &slot(pair, arm))).collect();
            let of_both: [Vec<usize>; 2] = [0, 1].map(of_arm);
            let swapped = SampleSlot { position: 1, ..slot(9, 1) };
            assert_eq!(padding_bytes(seed, &swapped), of_both[1][9], "the coin decides nothing");
            assert_eq!(chance_of_pair(seed, &slot(9, 0)), chance_of_pair(seed, &swapped));
            assert_ne!(chance_of_pair(seed, &slot(8, 0)), chance_of_pair(seed, &swapped));
            for (arm, sizes_of_arm) in of_both.into_iter().enumerate() {
                let mean = sizes_of_arm.iter().sum::<usize>() / 64;
                assert!((1500..2600).contains(&mean), "{mean}");
                sizes.insert(sizes_of_arm, (seed, set, work, arm));
            }
        }
        assert_eq!(sizes.len(), 8, "each place has sizes of its own");
    }

    #[test]
    fn both_arms_of_a_pair_have_one_order_and_pairs_differ() {
        let unit = unit(3, 1);
        let slot = |position, pair| SampleSlot {
            arm: ArmId(position),
            position,
            ..SampleSlot::alone(unit, PairId(pair))
        };
        let cpus = |arm| (0..200).map(move |pair| cpu_chance(7, &slot(arm, pair)) % 2);
        assert!(cpus(0).eq(cpus(1)), "one CPU for both arms");
        assert!((70..=130).contains(&cpus(0).sum::<u64>()), "each pair draws anew");
        assert!(cpus(0).ne((0..200).map(|pair| chance_of_pair(7, &slot(0, pair)) % 2)));
        assert_eq!(chance_of_pair(7, &slot(0, 5)), chance_of_pair(7, &slot(1, 5)));
        assert_ne!(chance_of_pair(7, &slot(0, 5)), chance_of_pair(7, &slot(0, 6)));
        assert_ne!(chance_of_pair(7, &slot(0, 5)), chance_of_pair(8, &slot(0, 5)));
    }

    #[test]
    fn the_rows_of_an_arm_are_together_and_the_rest_is_chance() {
        let mut coins = Coins::new(1, SetId(0), 0);
        let rounds: Vec<Vec<usize>> = (0..50)
            .map(|_| {
                let mut rows: Vec<usize> = (0..12).collect();
                coins.shuffle(&mut rows, |row| ArmId(row % 3));
                rows
            })
            .collect();
        for rows in &rounds {
            let changes = rows.windows(2).filter(|two| two[0] % 3 != two[1] % 3).count();
            assert_eq!(changes, 2, "{rows:?}");
        }
        let firsts: std::collections::BTreeSet<usize> = rounds.iter().map(|rows| rows[0]).collect();
        assert!(firsts.len() > 8, "{firsts:?}");
    }

    #[test]
    fn the_coin_is_fair_and_has_no_memory() {
        let flips = flips(1, 0, 0);
        // Six standard deviations of 10 000 fair flips are 300.
        let heads = flips.iter().filter(|head| **head).count();
        assert!(heads.abs_diff(5000) < 300, "{heads}");
        let changes = flips.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes.abs_diff(5000) < 300, "{changes}");
    }
}
