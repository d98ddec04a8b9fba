//! Which scheme each pair of a row has, and which of them the row is judged by.
//!
//! Where the pairs of a row can be interleaved, they are from the first ones on. In its pilot every eighth
//! pair is sequential: the first one finds out what cannot be interleaved, and all four tell what such pairs
//! would be worth. The second one comes after eleven interleaved pairs, as eight to ten decide a large
//! effect. A row leaves interleaved pairs where they cannot be believed (`outside.rs`, `interleaved.rs`), or,
//! when the pilot is over, where sequential ones are four times as good by variance × time. It is judged by
//! those that come after.
//!
//! That choice depends on what the pairs have shown. It costs no promise, as a part of the capital was put
//! aside for it: a gambler who bets 0.95 on the interleaved pairs, and if he leaves them the other 0.05 on
//! sequential pairs, has a supermartingale that began with 1, whenever and why ever he leaves.

use std::time::Duration;

use paired::betting::PairPlan;
use paired::estimate::deviation;
use weigh_model::ids::PairId;
use weigh_model::result::scheme::{Scheme, StartScales};
use weigh_model::role::SampleRole;

/// After so many pairs the scheme is chosen; four of them were sequential.
pub const PILOT_PAIRS: usize = 32;
/// Pairs of a pilot per sequential pair.
const SEQUENTIAL_EVERY: usize = 8;
/// Factor by which sequential pairs must be better for a row to switch to them.
const CLEARLY_BETTER: f64 = 4.0;
/// Stake on the interleaved pairs of a row that has a choice; the rest is on the sequential pairs.
/// It is large enough for eight pairs to decide.
const ON_INTERLEAVED: f64 = 0.95;
/// The spread of interleaved pairs, expected before the first where no calibration tells: of
/// six workloads beside other work it was 0.0004 to 0.02.
pub const INTERLEAVED_SCALE: f64 = 0.002;

/// How the pairs of a row are taken.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// All of them so.
    Fixed(Scheme),
    /// In turns, as long as there is too little to choose by.
    Open(SchemePilot),
    /// Scheme that the pilot chose.
    Chosen(Scheme),
}

/// The pairs of a pilot by now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemePilot {
    sequential: TriedScheme,
    interleaved: TriedScheme,
}

/// Results of one scheme's pairs.
#[derive(Clone, Debug, Default, PartialEq)]
struct TriedScheme {
    log_ratios: Vec<f64>,
    spent: Duration,
}

impl Schedule {
    /// How the pair of this number is taken, and what for.
    pub fn next(&self, pair: PairId) -> (SampleRole, Scheme) {
        match self {
            Schedule::Fixed(scheme) | Schedule::Chosen(scheme) => (SampleRole::Compared, *scheme),
            Schedule::Open(_) if is_control(pair) => (SampleRole::Pilot, Scheme::Sequential),
            Schedule::Open(_) => (SampleRole::Compared, Scheme::Interleaved),
        }
    }

    /// Returns the schedule for sets after the first. Only the first set has a pilot.
    pub fn of_later_set(self) -> Schedule {
        match self {
            Schedule::Open(_) => Schedule::Chosen(Scheme::Interleaved),
            settled => settled,
        }
    }

    /// Returns true if a later session keeps the schedule of a row with so many pairs. A first pair
    /// is always sequential; a second one is sequential only after interleaving was given up.
    pub fn is_settled(&self, pairs: usize) -> bool {
        match self {
            Schedule::Chosen(_) => true,
            Schedule::Fixed(scheme) => *scheme == Scheme::Sequential && pairs > 1,
            Schedule::Open(_) => false,
        }
    }

    /// Returns the scheme of the pairs that the row is judged by.
    pub fn main(&self) -> Scheme {
        match self {
            Schedule::Fixed(scheme) | Schedule::Chosen(scheme) => *scheme,
            Schedule::Open(_) => Scheme::Interleaved,
        }
    }

    /// Returns the stake on the pairs that the row is judged by.
    pub fn capital(&self) -> f64 {
        match self {
            Schedule::Fixed(_) => 1.0,
            Schedule::Open(_) | Schedule::Chosen(Scheme::Interleaved) => ON_INTERLEAVED,
            Schedule::Chosen(Scheme::Sequential) => 1.0 - ON_INTERLEAVED,
        }
    }

    /// The spread that is expected of them.
    pub fn scale(&self, StartScales { sequential, interleaved }: StartScales) -> f64 {
        match self {
            Schedule::Open(_) | Schedule::Chosen(Scheme::Interleaved) => {
                interleaved.unwrap_or(INTERLEAVED_SCALE)
            }
            Schedule::Fixed(Scheme::Interleaved) => interleaved.unwrap_or(sequential),
            Schedule::Fixed(Scheme::Sequential) | Schedule::Chosen(Scheme::Sequential) => {
                sequential
            }
        }
    }
}

/// Returns true if this pair of a pilot is sequential.
fn is_control(pair: PairId) -> bool {
    pair.0 == 0 || pair.0 > SEQUENTIAL_EVERY && pair.0 % SEQUENTIAL_EVERY == SEQUENTIAL_EVERY / 2
}

/// Combines the known numbers of a row's pairs: from before the first pair, or else from after the
/// pilot.
pub fn plan(at_first: Option<f64>, after_pilot: Option<f64>) -> Option<PairPlan> {
    at_first.map(PairPlan::AtFirst).or_else(|| after_pilot.map(PairPlan::AfterPilot))
}

impl SchemePilot {
    /// Adds a pair that took `spent`.
    pub fn add(&mut self, scheme: Scheme, log_ratio: f64, spent: Duration) {
        let tried = match scheme {
            Scheme::Sequential => &mut self.sequential,
            Scheme::Interleaved => &mut self.interleaved,
        };
        tried.log_ratios.push(log_ratio);
        tried.spent += spent;
    }

    /// Chooses for rows whose pairs go in step, or for one row.
    ///
    /// Sequential where that takes a quarter of the time to be as precise. Four pairs know a variance to a
    /// factor of four: where both are equally good, "better" alone would leave in 55 %, and the row would
    /// begin again with a twentieth of its capital.
    pub fn choose(pilots: &[&SchemePilot]) -> Scheme {
        let waste = |of: fn(&SchemePilot) -> &TriedScheme| {
            pilots.iter().map(|pilot| of(pilot).waste()).sum::<Option<f64>>()
        };
        match (waste(|pilot| &pilot.interleaved), waste(|pilot| &pilot.sequential)) {
            (Some(turns), Some(sequence)) if sequence * CLEARLY_BETTER < turns => {
                Scheme::Sequential
            }
            _ => Scheme::Interleaved,
        }
    }
}

impl TriedScheme {
    /// Variance × time of a pair.
    fn waste(&self) -> Option<f64> {
        let pair_s = self.spent.as_secs_f64() / self.log_ratios.len() as f64;
        let scale = deviation(&self.log_ratios);
        (self.log_ratios.len() > 1).then_some(scale * scale * pair_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(sequential: (f64, u64), interleaved: (f64, u64)) -> Scheme {
        SchemePilot::choose(&[&pilot(sequential, interleaved)])
    }

    fn pilot(sequential: (f64, u64), interleaved: (f64, u64)) -> SchemePilot {
        let open = Schedule::Open(SchemePilot::default());
        let mut pilot = SchemePilot::default();
        for pair in 0..PILOT_PAIRS {
            let (_, scheme) = open.next(PairId(pair));
            let (spread, ms) = if scheme == Scheme::Interleaved { interleaved } else { sequential };
            let log_ratio = spread * (pair / SEQUENTIAL_EVERY % 4) as f64;
            pilot.add(scheme, log_ratio, Duration::from_millis(ms));
        }
        pilot
    }

    #[test]
    fn variance_times_time_decides() {
        assert_eq!(chosen((0.02, 50), (0.002, 50)), Scheme::Interleaved);
        assert_eq!(chosen((0.02, 50), (0.002, 50_000)), Scheme::Sequential);
        assert_eq!(chosen((0.002, 50), (0.02, 50)), Scheme::Sequential);
        assert_eq!(
            chosen((0.002, 50), (0.0039, 50)),
            Scheme::Interleaved,
            "by less than a factor of 4"
        );
        assert_eq!(chosen((0.0, 50), (0.0, 50)), Scheme::Interleaved, "neither is better");
        assert_eq!(SchemePilot::choose(&[&SchemePilot::default()]), Scheme::Interleaved);
    }

    #[test]
    fn the_row_with_the_largest_spread_decides_for_those_in_step() {
        let [leaves, stays] =
            [((0.02, 50), (0.2, 50)), ((0.02, 50), (0.002, 50))].map(|(one, two)| pilot(one, two));
        assert_eq!(SchemePilot::choose(&[&stays, &leaves]), Scheme::Sequential);
        let louder = pilot((2.0, 50), (0.2, 50));
        assert_eq!(SchemePilot::choose(&[&louder, &leaves]), Scheme::Interleaved);
    }

    #[test]
    fn one_pair_in_eight_of_a_pilot_is_sequential() {
        let open = Schedule::Open(SchemePilot::default());
        let interleaved = |schedule: &Schedule, pairs: std::ops::Range<usize>| {
            pairs.filter(|pair| schedule.next(PairId(*pair)).1 == Scheme::Interleaved).count()
        };
        assert_eq!(interleaved(&open, 0..PILOT_PAIRS), 28);
        assert_eq!(interleaved(&Schedule::Chosen(Scheme::Interleaved), 0..80), 80);
        assert_eq!(interleaved(&Schedule::Chosen(Scheme::Sequential), 0..80), 0);
        assert_eq!(interleaved(&Schedule::Fixed(Scheme::Interleaved), 0..80), 80);
        let is_pilot = |pair: &usize| open.next(PairId(*pair)).0 == SampleRole::Pilot;
        let controls: Vec<usize> = (0..PILOT_PAIRS).filter(is_pilot).collect();
        assert_eq!(controls, [0, 12, 20, 28], "eight to ten interleaved pairs may decide");
        assert_eq!(open.next(PairId(12)), (SampleRole::Pilot, Scheme::Sequential));
    }

    #[test]
    fn a_row_that_gave_up_turns_is_settled_with_its_second_pair() {
        let sequential = Schedule::Fixed(Scheme::Sequential);
        assert_eq!([1, 2].map(|pairs| sequential.is_settled(pairs)), [false, true]);
        let open = Schedule::Open(SchemePilot::default());
        assert!(!open.is_settled(20) && Schedule::Chosen(Scheme::Interleaved).is_settled(40));
    }

    #[test]
    fn later_sets_have_no_pilot() {
        let open = Schedule::Open(SchemePilot::default());
        assert_eq!(open.of_later_set(), Schedule::Chosen(Scheme::Interleaved));
        for kept in [Schedule::Fixed(Scheme::Sequential), Schedule::Chosen(Scheme::Sequential)] {
            assert_eq!(kept.clone().of_later_set(), kept);
        }
    }

    #[test]
    fn no_more_is_staked_on_both_than_there_is() {
        let staked =
            [Scheme::Interleaved, Scheme::Sequential].map(|one| Schedule::Chosen(one).capital());
        assert!((staked[0] + staked[1] - 1.0).abs() < 1e-12);
        assert_eq!(Schedule::Open(SchemePilot::default()).capital(), staked[0]);
    }
}
