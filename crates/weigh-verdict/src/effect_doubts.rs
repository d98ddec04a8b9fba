//! Reasons against a verdict on an effect of a full factorial design: what is known of the pairs of its arms.
//!
//! An effect is a weighted sum of its arms' log-ratios, so what may be wrong with these adds up by the same
//! weights ([`Factorial`](weigh_model::result::factorial::Factorial)). The reasons are those against an arm's
//! own verdict (`paired::doubt`, [`interleaved`](super::interleaved), [`late`](super::late)), and they count
//! also where the arm itself has no verdict that one could withhold.

use paired::betting::Betting;
use paired::carry_over::CarryOver;
use paired::design::Design;
use paired::doubt::Doubt;
use paired::judge::Judgement;
use paired::{Interval, Verdict};
use weigh_model::result::scheme::{LEAST_INTERLEAVED, Scheme};

use super::interleaved::Claims;
use super::late::Late;

/// The pairs of an arm that an effect is made of.
pub struct ArmOfEffect<'a> {
    /// Weight of its log-ratio in the effect.
    pub weight: f64,
    /// Judgement of its rate, after its own guards.
    pub judgement: &'a Judgement,
    pub betting: &'a Betting,
    pub claims: Claims<'a>,
    pub scheme: Scheme,
    pub late: &'a Late,
}

impl ArmOfEffect<'_> {
    /// Returns what speaks against this verdict on an effect, of which these pairs are a part. What may only
    /// make an arm look too fast does not speak against *slower*, unless the arm's weight is negative.
    fn doubt(&self, verdict: Verdict) -> Option<Doubt> {
        let is_against = match verdict {
            Verdict::Slower => self.weight < 0.0,
            Verdict::Faster => self.weight > 0.0,
            Verdict::Equivalent | Verdict::Inconclusive => true,
        };
        let is_interleaved = self.scheme == Scheme::Interleaved;
        let withheld = self.judgement.withheld.map(|withheld| withheld.because);
        let objection =
            is_interleaved.then(|| self.claims.objection(self.judgement)).flatten().or(withheld);
        let few =
            (is_interleaved && self.claims.pairs < LEAST_INTERLEAVED).then_some(Doubt::FewPairs);
        let late = || self.late.doubt(self.judgement.estimate);
        let all = [objection, few].into_iter().chain(std::iter::once_with(late));
        let speaks_against = |because: &Doubt| match because {
            // How much of the effect it may be is added up over the arms.
            Doubt::CarryOver | Doubt::OrderMatters | Doubt::NotYetConfirmed => false,
            Doubt::ClaimsDisagree | Doubt::WorksOutside => true,
            Doubt::FewPairs => verdict != Verdict::Slower,
            _ => is_against,
        };
        all.flatten().find(speaks_against)
    }

    /// Returns true if a verdict on this arm depends on its CPU time. Of pairs in sequence, that decides
    /// where the two processes do not share a CPU fairly.
    fn is_by_cpu_time(&self) -> bool {
        self.scheme == Scheme::Interleaved || self.claims.outside.difference().is_some()
    }
}

/// Why the verdict on an effect should not be given; `None` where nothing is known against it.
pub fn doubt(
    effect: &Judgement,
    verdict: Verdict,
    arms: &[ArmOfEffect],
    design: &Design,
) -> Option<Doubt> {
    let of_arms = arms.iter().find_map(|arm| arm.doubt(verdict));
    of_arms
        .or_else(|| carried_over(effect.interval, verdict, arms, design))
        .or_else(|| outside(effect.interval, verdict, arms, design))
        .or_else(|| other_claim(verdict, arms, design))
}

/// The weighted sum of intervals, which holds all sums of values in them.
fn sum(weighted: impl Iterator<Item = (f64, Interval)>) -> Interval {
    weighted.fold(Interval { low: 0.0, high: 0.0 }, |sum, (weight, Interval { low, high })| {
        let (low, high) = if weight < 0.0 { (high, low) } else { (low, high) };
        Interval { low: sum.low + weight * low, high: sum.high + weight * high }
    })
}

/// As for the verdict on an arm (`paired::doubt`), with the sum of what may have carried over. Of pairs in
/// sequence, an arm's own verdict confirms it.
fn carried_over(
    effect: Interval,
    verdict: Verdict,
    arms: &[ArmOfEffect],
    design: &Design,
) -> Option<Doubt> {
    let alpha = design.alpha / (2.0 * design.rows.max(arms.len()) as f64);
    let known = arms.iter().filter(|arm| arm.betting.turns().is_some());
    let found: Vec<(&ArmOfEffect, CarryOver)> =
        known.map(|arm| (arm, CarryOver::of(arm.betting, alpha))).collect();
    let bias = |is_meant: fn(&CarryOver) -> bool| {
        let meant = found.iter().filter(|(_, found)| is_meant(found));
        sum(meant.map(|(arm, found)| (arm.weight, found.bias())))
    };
    let all = bias(|_| true);
    let is_beyond = match verdict {
        Verdict::Slower => effect.high < bias(CarryOver::is_previous_significant).low,
        Verdict::Faster => effect.low > all.high,
        Verdict::Equivalent => {
            let whatever = Interval { low: effect.low - all.high, high: effect.high - all.low };
            whatever.is_within(design.margin)
        }
        Verdict::Inconclusive => true,
    };
    if is_beyond {
        return None;
    }
    let is_unconfirmed = |(arm, _): &(&ArmOfEffect, CarryOver)| {
        arm.scheme == Scheme::Sequential && arm.judgement.verdict == Verdict::Inconclusive
    };
    match () {
        () if found.iter().any(|(_, found)| found.is_previous_significant()) => {
            Some(Doubt::CarryOver)
        }
        () if found.iter().any(|(_, found)| found.is_order_significant()) => {
            Some(Doubt::OrderMatters)
        }
        () => found.iter().any(is_unconfirmed).then_some(Doubt::NotYetConfirmed),
    }
}

/// Work in the partners' slices: it may have moved each arm by as much as its bias, or by nothing.
fn outside(
    effect: Interval,
    verdict: Verdict,
    arms: &[ArmOfEffect],
    design: &Design,
) -> Option<Doubt> {
    let interleaved = arms.iter().filter(|arm| arm.scheme == Scheme::Interleaved);
    let bias = sum(interleaved.map(|arm| {
        let bias = arm.claims.bias();
        (arm.weight, Interval { low: bias.min(0.0), high: bias.max(0.0) })
    }));
    let stands = match verdict {
        Verdict::Slower => effect.high < bias.low,
        Verdict::Faster => effect.low > bias.high,
        Verdict::Equivalent => {
            let whatever = Interval { low: effect.low - bias.high, high: effect.high - bias.low };
            whatever.is_within(design.margin)
        }
        Verdict::Inconclusive => true,
    };
    (!stands).then_some(Doubt::WorksOutside)
}

/// The effect by the rate over all time and by CPU time, where all arms have these claims: as for an arm,
/// both must bear *equivalent*, and *faster* must not cost CPU time. With an arm of negative weight, *slower*
/// may be that arm's unproved gain, so it must not save CPU time either.
fn other_claim(verdict: Verdict, arms: &[ArmOfEffect], design: &Design) -> Option<Doubt> {
    let has_negative = arms.iter().any(|arm| arm.weight < 0.0);
    let by = |claim: fn(&ArmOfEffect<'_>) -> Option<Interval>| {
        let of_arms: Option<Vec<(f64, Interval)>> =
            arms.iter().map(|arm| Some((arm.weight, claim(arm)?))).collect();
        of_arms.map(|of_arms| sum(of_arms.into_iter()))
    };
    let all_time = by(|arm| {
        let all_time = (arm.scheme == Scheme::Interleaved).then_some(arm.claims.all_time)?;
        all_time.map(|claim| claim.interval)
    });
    let cpu_time = by(|arm| {
        let claim = if arm.is_by_cpu_time() { arm.claims.cpu_time } else { Some(arm.judgement) };
        claim.map(|claim| claim.interval)
    });
    let cpu_time = cpu_time.filter(|_| arms.iter().any(ArmOfEffect::is_by_cpu_time));
    let claims = [(Doubt::OverallRate, all_time, 0.0), (Doubt::CpuTime, cpu_time, design.margin)];
    claims.into_iter().find_map(|(doubt, claim, most)| {
        let claim = claim?;
        let bears = match verdict {
            Verdict::Equivalent => claim.is_within(design.margin),
            Verdict::Faster => claim.low > -most,
            // Without CPU times, the doubt of an arm that looks faster counts by itself.
            Verdict::Slower => !has_negative || claim.high < most || claim.high.is_infinite(),
            Verdict::Inconclusive => true,
        };
        (!bears).then_some(doubt)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outside::OutsideUse;
    use paired::carry_over::Turn;
    use paired::judge::judge_rows;
    use paired::simulated::white_pairs;
    use weigh_model::workload::sample::Outside;

    /// Weights of the arms A, B and A+B in the effect of A.
    const OF_A: [f64; 3] = [0.5, -0.5, 0.5];

    fn judged(row: &Betting) -> Judgement {
        judge_rows([row], &Design::default()).remove(0)
    }

    /// Pairs of this effect that scatter by 0.1 %; `after` is added where a treated sample came before.
    fn pairs(effect: f64, after: f64, pairs: usize) -> Betting {
        let turn = |i: usize| Turn {
            baseline_first: i.is_multiple_of(2),
            after_treated: (i / 2).is_multiple_of(2),
        };
        let turns: Vec<Turn> = (0..pairs).map(turn).collect();
        let noise = white_pairs(0.0, pairs, 7);
        let of_pair = |(d, turn): (&f64, &Turn)| {
            effect + 0.1 * d + if turn.after_treated == turn.baseline_first { after } else { 0.0 }
        };
        let values: Vec<f64> = noise.iter().zip(&turns).map(of_pair).collect();
        Betting::from_log_ratios(&values, 0.002).unwrap().with_turns(turns)
    }

    /// The pairs of three arms, of which the second is planted, and what else is known of it.
    struct Planted<'a> {
        rows: [&'a Betting; 3],
        scheme: Scheme,
        outside: OutsideUse,
        cpu_time: Option<Judgement>,
    }

    /// Cost of B's that begins late, in an effect of A of this size.
    fn with_late_cost(effect: f64, weights: [f64; 3]) -> Option<Doubt> {
        let row = pairs(0.0, 0.0, 40);
        let judgement = judged(&row);
        let none = OutsideUse::default();
        let mut costs_later = Late { is_wanted: true, ..Late::after(vec![-0.2; 9]) };
        costs_later.beside(row.values(), 0.01);
        let young = Late::default();
        let claims = || Claims { pairs: 40, outside: &none, cpu_time: None, all_time: None };
        let arms = [0, 1, 2].map(|arm| ArmOfEffect {
            weight: weights[arm],
            judgement: &judgement,
            betting: &row,
            claims: claims(),
            scheme: Scheme::Interleaved,
            late: if arm == 1 { &costs_later } else { &young },
        });
        let effect = judged(&pairs(effect, 0.0, 40));
        doubt(&effect, effect.verdict, &arms, &Design::default())
    }

    #[test]
    fn an_arm_that_looks_too_fast_speaks_against_what_its_weight_makes_of_it() {
        let is_late = |it: Option<Doubt>| it == Some(Doubt::LateCost);
        assert!(is_late(with_late_cost(-0.02, OF_A)), "B's gain is a part of A's cost");
        assert!(!is_late(with_late_cost(0.02, OF_A)));
        let of_b = [-0.5, 0.5, 0.5];
        assert!(is_late(with_late_cost(0.02, of_b)));
        assert!(!is_late(with_late_cost(-0.02, of_b)));
    }

    impl Planted<'_> {
        /// The reason against the verdict that an effect of A of this size has.
        fn against(&self, effect: f64) -> Option<Doubt> {
            let judgements = self.rows.map(judged);
            let none = OutsideUse::default();
            let late = Late::default();
            let arms = [0, 1, 2].map(|arm| ArmOfEffect {
                weight: OF_A[arm],
                judgement: &judgements[arm],
                betting: self.rows[arm],
                claims: Claims {
                    pairs: self.rows[arm].pairs(),
                    outside: if arm == 1 { &self.outside } else { &none },
                    cpu_time: if arm == 1 {
                        self.cpu_time.as_ref()
                    } else {
                        Some(&judgements[arm])
                    },
                    all_time: None,
                },
                scheme: self.scheme,
                late: &late,
            });
            let effect = judged(&pairs(effect, 0.0, 40));
            doubt(&effect, effect.verdict, &arms, &Design::default())
        }
    }

    fn planted(row: &Betting, scheme: Scheme, of_others: &Betting) -> Option<Doubt> {
        let planted = Planted {
            rows: [of_others, row, of_others],
            scheme,
            outside: OutsideUse::default(),
            cpu_time: Some(judged(row)),
        };
        planted.against(-0.02)
    }

    #[test]
    fn what_treated_samples_leave_behind_counts_where_its_arm_has_no_verdict() {
        let clean = pairs(-0.02, 0.0, 40);
        let carries = pairs(-0.05, 0.1, 40);
        assert_eq!(judged(&carries).verdict, Verdict::Inconclusive);
        assert_eq!(planted(&clean, Scheme::Sequential, &clean), None);
        assert_eq!(planted(&carries, Scheme::Sequential, &clean), Some(Doubt::CarryOver));
    }

    #[test]
    fn a_favourable_effect_takes_confirmed_arms_or_more_than_could_carry_over() {
        let scatters: Vec<f64> = white_pairs(0.0, 40, 3);
        let turns = pairs(0.0, 0.0, 40).turns().unwrap().to_vec();
        let scatters = Betting::from_log_ratios(&scatters, 0.02).unwrap().with_turns(turns);
        assert_eq!(judged(&scatters).verdict, Verdict::Inconclusive);
        let of = |effect| {
            let rows = [&scatters; 3];
            let outside = OutsideUse::default();
            Planted { rows, scheme: Scheme::Sequential, outside, cpu_time: None }.against(effect)
        };
        assert_eq!(of(0.005), Some(Doubt::NotYetConfirmed));
        assert_eq!(of(0.3), None, "more than all that could carry over");
        assert_eq!(of(-0.005), None, "a cost needs no confirmation");
    }

    #[test]
    fn few_interleaved_pairs_and_cpu_time_speak_against_favourable_effects_alone() {
        let of = |effect: f64, count: usize, cpu_time: f64| {
            let row = pairs(0.0, 0.0, count);
            let cpu_time = Some(judged(&pairs(cpu_time, 0.0, 40)));
            let outside = OutsideUse::default();
            Planted { rows: [&row; 3], scheme: Scheme::Interleaved, outside, cpu_time }
                .against(effect)
        };
        assert_eq!(of(0.02, LEAST_INTERLEAVED - 1, 0.0), Some(Doubt::FewPairs));
        assert_eq!(of(-0.02, LEAST_INTERLEAVED - 1, 0.0), None);
        assert_eq!(of(0.0, 40, 0.0), None);
        // By CPU time, B makes no difference of A's −2.5 %.
        assert_eq!(of(0.0, 40, 0.025), Some(Doubt::CpuTime));
    }

    #[test]
    fn an_arm_that_works_in_its_partners_slices_bears_no_effect_whatever_its_own_verdict() {
        let noisy = Betting::from_log_ratios(&white_pairs(0.0, 6, 3), 0.02).unwrap();
        assert_eq!(judged(&noisy).verdict, Verdict::Inconclusive);
        let mut outside = OutsideUse::default();
        for _ in 0..5 {
            let of = |tasks| Some(Outside { ns_per_slice: 0.0, slice_cpu_ns: 1e5, tasks });
            outside.add([of(1), of(2)]);
        }
        let clean = pairs(-0.02, 0.0, 40);
        let rows = [&clean, &noisy, &clean];
        let planted = Planted { rows, scheme: Scheme::Interleaved, outside, cpu_time: None };
        assert_eq!(planted.against(-0.02), Some(Doubt::WorksOutside));
    }
}
