//! Further evidence that pairs must show before a row is *equivalent* or *faster*.
//!
//! Their rate is that of the median slice, so it does not see what happens in a few slices, or outside of
//! them. Three more readings of the same pairs do: the rate over all slices, CPU time, and what each process
//! used in its partner's slices. *Slower* needs none of them; *equivalent*, *faster* and "costs at most"
//! need all three, and enough pairs for these to be sensitive.

use super::outside::OutsideUse;
use paired::design::Design;
use paired::doubt::Doubt;
use paired::judge::{Judgement, pairs_until};
use paired::{Interval, Verdict, Withheld};
use weigh_model::result::scheme::{LEAST_INTERLEAVED, Scheme};

/// Returns how many pairs a row of this scheme needs before it is equivalent or faster.
pub fn least_favourable(scheme: Scheme) -> usize {
    if scheme == Scheme::Interleaved { LEAST_INTERLEAVED } else { 0 }
}

/// Largest distance between claims (ln 1.03) before they contradict each other. CPU time and the rate of one
/// effect differ by what a slice's clock takes.
const MOST_APART: f64 = 0.029_558_802_241_544_4;

/// Other readings of a row's pairs, beside the rate.
pub struct Claims<'a> {
    pub pairs: usize,
    pub outside: &'a OutsideUse,
    /// Judgement of the CPU time. This field and the next one are set if the metric is judged, with
    /// or without pairs.
    pub cpu_time: Option<&'a Judgement>,
    pub all_time: Option<&'a Judgement>,
}

impl Claims<'_> {
    /// Why no verdict on these pairs is valid, so that the row needs sequential pairs.
    pub fn objection(&self, rate: &Judgement) -> Option<Doubt> {
        if self.outside.difference().is_some() {
            return Some(Doubt::WorksOutside);
        }
        let all = [Some(rate), self.cpu_time, self.all_time];
        let intervals = || all.iter().flatten().map(|claim| claim.interval);
        let highest_low = intervals().map(|one| one.low).fold(f64::NEG_INFINITY, f64::max);
        let lowest_high = intervals().map(|one| one.high).fold(f64::INFINITY, f64::min);
        (highest_low - lowest_high > MOST_APART).then_some(Doubt::ClaimsDisagree)
    }

    /// By how much work in its partner's slices may have moved the rate of either process: of the one that
    /// did it, and of the partner that waited for it.
    pub(super) fn bias(&self) -> f64 {
        2.0 * self.outside.excess()
    }

    /// Why *equivalent* is not shown, and how many more pairs it may take; those of a claim that is beyond
    /// the margin will not bring it back.
    fn not_equivalent(&self, rate: Interval, margin: f64) -> Option<(Doubt, Option<usize>)> {
        if self.pairs < LEAST_INTERLEAVED {
            return Some((Doubt::FewPairs, Some(LEAST_INTERLEAVED - self.pairs)));
        }
        let (low, high) = (rate.low - self.bias().max(0.0), rate.high - self.bias().min(0.0));
        // Of commands nothing is outside: all that they do is in their CPU time.
        if self.bias() != 0.0 && !(Interval { low, high }).is_within(margin) {
            return Some((Doubt::WorksOutside, None));
        }
        let claims = [(Doubt::OverallRate, self.all_time), (Doubt::CpuTime, self.cpu_time)];
        claims.into_iter().find_map(|(doubt, claim)| {
            let claim = claim.filter(|claim| !claim.interval.is_within(margin))?;
            let room = margin - claim.estimate.abs();
            Some((doubt, pairs_until(self.pairs, claim.interval.half_width(), room)))
        })
    }

    /// Why *faster* is not shown. A program may wait less and use as much CPU time, but not more of it; and
    /// it must be faster over all slices.
    fn not_faster(&self, rate: Interval, margin: f64) -> Option<(Doubt, Option<usize>)> {
        if self.pairs < LEAST_INTERLEAVED {
            return Some((Doubt::FewPairs, Some(LEAST_INTERLEAVED - self.pairs)));
        }
        if rate.low <= self.bias() {
            return Some((Doubt::WorksOutside, None));
        }
        let claims =
            [(Doubt::OverallRate, self.all_time, 0.0), (Doubt::CpuTime, self.cpu_time, -margin)];
        claims.into_iter().find_map(|(doubt, claim, least)| {
            let claim = claim.filter(|claim| claim.interval.low <= least)?;
            let room = claim.estimate - least;
            Some((doubt, pairs_until(self.pairs, claim.interval.half_width(), room)))
        })
    }
}

/// Withdraws verdicts that the pairs do not support. This only removes claims, so every promise stands.
pub fn guard(rate: &mut Judgement, scheme: Scheme, claims: &Claims, design: &Design) {
    match scheme {
        Scheme::Interleaved => guard_interleaved(rate, claims, design),
        Scheme::Sequential if claims.outside.difference().is_none() => {}
        Scheme::Sequential => {
            if let Some(cpu_time) = claims.cpu_time {
                guard_sequential(rate, cpu_time, claims.pairs, design.margin);
            }
        }
    }
}

fn guard_interleaved(rate: &mut Judgement, claims: &Claims, design: &Design) {
    if let Some(doubt) = claims.objection(rate) {
        return withhold(rate, doubt, claims.outside.unconfirmed());
    }
    let not_equivalent = claims.not_equivalent(rate.interval, design.margin);
    rate.equivalent &= not_equivalent.is_none();
    rate.within_margin &= rate.equivalent;
    let refuted = match rate.verdict {
        Verdict::Equivalent => not_equivalent,
        Verdict::Faster => claims.not_faster(rate.interval, design.margin),
        Verdict::Slower if rate.interval.high >= claims.bias() => Some((Doubt::WorksOutside, None)),
        Verdict::Slower | Verdict::Inconclusive => None,
    };
    if let Some((doubt, pairs)) = refuted {
        withhold(rate, doubt, pairs);
    }
}

/// Withdraws verdicts on sequential pairs that CPU time does not support, in a row that left interleaved
/// pairs because a process works outside its slices.
///
/// Each task gets a share of a busy CPU. So a process with an extra thread runs faster beside others,
/// whatever that thread costs: costs of 12 to 20 % were measured as +14 to +42 % (docs/hidden-costs.md, load
/// 9). All of the process runs on one CPU, where more CPU time for an operation is a cost.
fn guard_sequential(rate: &mut Judgement, cpu_time: &Judgement, pairs: usize, margin: f64) {
    let is_equivalent = cpu_time.interval.is_within(margin);
    rate.equivalent &= is_equivalent;
    rate.within_margin &= is_equivalent;
    let room = match rate.verdict {
        Verdict::Equivalent if !is_equivalent => margin - cpu_time.estimate.abs(),
        Verdict::Faster if cpu_time.interval.low <= -margin => margin + cpu_time.estimate,
        _ => return,
    };
    withhold(rate, Doubt::CpuTime, pairs_until(pairs, cpu_time.interval.half_width(), room));
}

/// Withdraws a favourable verdict on another claim of the same pairs, where the rate has none for a reason
/// that concerns all of them.
pub fn guard_beside(claim: &mut Judgement, because: Option<Doubt>) {
    let concerns_all = because.is_some_and(|doubt| {
        use Doubt::{ClaimsDisagree, FewPairs, LateCost, NotYetAged, WorksOutside};
        matches!(doubt, ClaimsDisagree | FewPairs | LateCost | NotYetAged | WorksOutside)
    });
    if let (true, Verdict::Equivalent | Verdict::Faster, Some(because)) =
        (concerns_all, claim.verdict, because)
    {
        withhold(claim, because, None);
    }
}

/// Withdraws a verdict, of which so many more pairs may show that it holds.
pub(super) fn withhold(rate: &mut Judgement, because: Doubt, pairs: Option<usize>) {
    if rate.verdict != Verdict::Inconclusive {
        rate.withheld = Some(Withheld { verdict: rate.verdict, because });
    }
    rate.verdict = Verdict::Inconclusive;
    (rate.equivalent, rate.within_margin) = (false, false);
    rate.pairs_needed = pairs;
    rate.pairs_left = rate.pairs_left.max(pairs.unwrap_or(1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use paired::betting::Betting;
    use paired::judge::judge_rows;
    use paired::simulated::white_pairs;
    use weigh_model::workload::sample::Outside;

    /// So many pairs of this effect, which scatter by 1 % of `scatter`.
    fn judged(effect: f64, scatter: f64, pairs: usize) -> Judgement {
        let noise = white_pairs(0.0, pairs, 7);
        let values: Vec<f64> = noise.iter().map(|d| effect + scatter * d).collect();
        let row = Betting::from_log_ratios(&values, 0.002).unwrap();
        judge_rows([&row], &Design::default()).remove(0)
    }

    fn outside(points: f64) -> OutsideUse {
        outside_in_pairs(points, 5)
    }

    fn outside_in_pairs(points: f64, pairs: usize) -> OutsideUse {
        let mut comparison = OutsideUse::default();
        for _ in 0..pairs {
            comparison.add([0.0, points].map(|points| {
                Some(Outside { ns_per_slice: 1000.0 * points, slice_cpu_ns: 1e5, tasks: 1 })
            }));
        }
        comparison
    }

    /// Returns the verdict on the rate that these claims leave.
    fn left(rate: &Judgement, others: [&Judgement; 2], points: f64, pairs: usize) -> Judgement {
        let [all_time, cpu_time] = others.map(Some);
        let outside = outside(points);
        let claims = Claims { pairs, outside: &outside, cpu_time, all_time };
        let mut rate = rate.clone();
        guard(&mut rate, Scheme::Interleaved, &claims, &Design::default());
        rate
    }

    fn because(judgement: &Judgement) -> Option<Doubt> {
        assert_eq!(judgement.withheld.is_some(), judgement.verdict == Verdict::Inconclusive);
        judgement.withheld.map(|withheld| withheld.because)
    }

    #[test]
    fn equivalent_takes_pairs_and_all_three_claims() {
        let equal = judged(0.0, 0.1, 40);
        assert_eq!(equal.verdict, Verdict::Equivalent);
        assert_eq!(because(&left(&equal, [&equal, &equal], 0.0, LEAST_INTERLEAVED)), None);
        let few = left(&equal, [&equal, &equal], 0.0, LEAST_INTERLEAVED - 3);
        assert_eq!((because(&few), few.pairs_needed), (Some(Doubt::FewPairs), Some(3)));
        // As noisy as a stall makes it, or a cost of 1.5 %.
        for other in [judged(0.0, 4.0, 40), judged(-0.015, 0.1, 40)] {
            assert_eq!(because(&left(&equal, [&other, &equal], 0.0, 40)), Some(Doubt::OverallRate));
            assert_eq!(because(&left(&equal, [&equal, &other], 0.0, 40)), Some(Doubt::CpuTime));
        }
    }

    #[test]
    fn a_small_difference_is_not_within_the_margin_unless_all_claims_are() {
        let slower = judged(-0.004, 0.1, 40);
        assert!(slower.verdict == Verdict::Slower && slower.within_margin);
        assert!(left(&slower, [&slower, &slower], 0.0, 40).within_margin);
        let more = left(&slower, [&slower, &judged(-0.015, 0.1, 40)], 0.0, 40);
        assert_eq!((more.verdict, more.within_margin), (Verdict::Slower, false));
    }

    #[test]
    fn claims_that_are_more_than_three_per_cent_apart_take_every_verdict_back() {
        let [slower, faster] = [-0.1, 0.1].map(|effect| judged(effect, 0.1, 40));
        for (rate, other) in [(&slower, &faster), (&faster, &slower)] {
            let left = left(rate, [rate, other], 0.0, 40);
            assert_eq!(because(&left), Some(Doubt::ClaimsDisagree));
        }
        let nearly = judged(-0.12, 0.1, 40);
        assert_eq!(because(&left(&slower, [&slower, &nearly], 0.0, 40)), None);
    }

    /// A process that uses 1 point of each slice of its partner has an effect of −1 % that its slices do not
    /// show, and makes its partner 1 % slower.
    #[test]
    fn what_happens_outside_the_slices_moves_every_verdict() {
        let faster = judged(0.015, 0.05, 40);
        assert_eq!(because(&left(&faster, [&faster, &faster], 0.5, 40)), None);
        assert_eq!(because(&left(&faster, [&faster, &faster], 1.0, 40)), Some(Doubt::WorksOutside));
        let slower = judged(-0.015, 0.05, 40);
        assert_eq!(because(&left(&slower, [&slower, &slower], 1.0, 40)), None);
        assert_eq!(
            because(&left(&slower, [&slower, &slower], -1.0, 40)),
            Some(Doubt::WorksOutside)
        );
        let equal = judged(0.0, 0.05, 40);
        assert_eq!(because(&left(&equal, [&equal, &equal], 0.3, 40)), None);
        assert_eq!(because(&left(&equal, [&equal, &equal], 0.6, 40)), Some(Doubt::WorksOutside));
        // Beyond 3 points nothing is believed.
        assert_eq!(because(&left(&slower, [&slower, &slower], 4.0, 40)), Some(Doubt::WorksOutside));
    }

    /// Without a number of pairs, a row waits until all others are decided.
    #[test]
    fn a_difference_that_is_not_confirmed_yet_takes_more_pairs() {
        let slower = judged(-0.1, 0.1, 40);
        for (pairs, needed) in [(3, Some(2)), (4, Some(1)), (5, None)] {
            let outside = outside_in_pairs(4.0, pairs);
            let claims = Claims { pairs: 40, outside: &outside, cpu_time: None, all_time: None };
            let mut rate = slower.clone();
            guard(&mut rate, Scheme::Interleaved, &claims, &Design::default());
            assert_eq!((because(&rate), rate.pairs_needed), (Some(Doubt::WorksOutside), needed));
        }
    }

    /// A thread more gets the process more of a busy CPU.
    #[test]
    fn cpu_time_decides_about_sequential_pairs_of_what_works_outside_its_slices() {
        let left = |rate: &Judgement, cpu_time: &Judgement| {
            let mut rate = rate.clone();
            guard_sequential(&mut rate, cpu_time, 40, Design::default().margin);
            rate
        };
        let [faster, equal] = [0.3, 0.0].map(|effect| judged(effect, 0.1, 40));
        let costs_more = judged(-0.1, 0.1, 40);
        for rate in [&faster, &equal] {
            let left = left(rate, &costs_more);
            assert_eq!((because(&left), left.within_margin), (Some(Doubt::CpuTime), false));
            assert_eq!(because(&self::left(rate, [rate, rate], 0.0, 40)), None);
        }
        assert_eq!(because(&left(&faster, &equal)), None);
        assert_eq!(because(&left(&equal, &equal)), None);
        assert_eq!(left(&costs_more, &faster).verdict, Verdict::Slower);
    }

    /// A treatment that saves a little in each call and loses more in each 5000th.
    #[test]
    fn faster_takes_pairs_and_the_other_claims_too() {
        let faster = judged(0.02, 0.05, 40);
        assert_eq!(because(&left(&faster, [&faster, &faster], 0.0, 40)), None);
        assert_eq!(because(&left(&faster, [&faster, &faster], 0.0, 10)), Some(Doubt::FewPairs));
        let slower = judged(-0.008, 0.05, 40);
        assert_eq!(because(&left(&faster, [&slower, &faster], 0.0, 40)), Some(Doubt::OverallRate));
        let more = judged(-0.009, 0.2, 40);
        assert_eq!(because(&left(&faster, [&faster, &more], 0.0, 40)), Some(Doubt::CpuTime));
        // It waits less.
        let as_much = judged(0.0, 0.05, 40);
        assert_eq!(because(&left(&faster, [&faster, &as_much], 0.0, 40)), None);
    }
}
