//! From the pairs of all rows of an experiment to a verdict for each.

use super::betting::{Betting, DEFAULT_SCALE, PairPlan, Start};
use super::carry_over::CarryOver;
use super::design::Design;
pub use super::design::MIN_PAIRS;
use super::doubt::{Doubt, Withheld, doubt};
use super::multiplicity::Multiplicity;
use super::parallel::map_rows;
use super::wilcoxon::{signed_rank_interval, signed_rank_p};
use super::{Interval, Verdict};

/// The half-width, ln 1.1, that is precise however large the effect: a factor known to 10 %. A quarter of
/// a log-ratio alone would call 99.3 % [98.6, 99.7] precise, a factor of 72 to 385.
pub const PRECISE: f64 = 0.095_310_179_804_324_87;

/// A row to be judged, and its share of what is promised of all.
#[derive(Clone, Copy, Debug)]
pub struct WeightedClaim<'a> {
    /// Its pairs.
    pub row: &'a Betting,
    /// At least 0; 1 for what counts like a row of its own. With 0 it is never slower nor faster.
    pub weight: f64,
}

/// Judgement on the pairs of one row. Effects are log-ratios: e^x − 1 is the change of the rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The estimate that belongs to the interval, and is inside: [`Betting::estimate`], or, with a
    /// fixed number of pairs, Hodges and Lehmann's. 0, in an unbounded interval, before the first pair.
    pub estimate: f64,
    /// The interval of this row alone, with error rate `alpha`.
    pub interval: Interval,
    /// The p-value of "no effect" of this row alone; anytime-valid unless the number of pairs was
    /// fixed.
    pub p_zero: f64,
    /// True if "the effect is −margin or lower" and "it is +margin or higher" are both refuted.
    pub equivalent: bool,
    /// The level asked of "no effect" for it, at worst, by what was found of the others.
    pub level: f64,
    /// Verdict on this row, under the promise that the [`Design`] makes for all rows.
    pub verdict: Verdict,
    /// The verdict that the interval would bear, where something speaks against giving it.
    pub withheld: Option<Withheld>,
    /// Findings on carry-over, if a verdict depended on them.
    pub carry_over: Option<CarryOver>,
    /// Slower or faster, and yet equivalent: real, and too small to matter.
    pub within_margin: bool,
    /// True if the interval is narrow enough to stop: its half-width is at most the margin, or a
    /// quarter of the estimate and [`PRECISE`].
    pub precise: bool,
    /// How many more pairs an inconclusive row will probably take; an estimate from the spread so
    /// far, as half-widths shrink like 1/√n. `None` for a row with a verdict.
    pub pairs_needed: Option<usize>,
    /// Pairs left until the row has a verdict *and* is precise; 0 when it has both.
    pub pairs_left: usize,
}

/// The fewest pairs after which a claim of this weight can be the first to be slower or faster, however large
/// its effect: each pair bears all the evidence that a pair can.
pub fn least_pairs(design: &Design, weight: f64) -> usize {
    if let Some(fixed) = design.fixed_pairs {
        return fixed;
    }
    let all = weight.max(design.rows as f64);
    let level = match design.multiplicity {
        Multiplicity::Holm => design.alpha * weight / all,
        // If all others are found too, each is asked for no more than alone.
        Multiplicity::EBh => design.alpha,
    };
    let plan = design.planned_pairs.map_or(PairPlan::AfterPilot(f64::MAX), PairPlan::AtFirst);
    let mut row = Betting::new(Start { plan: Some(plan), ..DEFAULT_SCALE.into() });
    while row.pairs() < MIN_PAIRS || row.p_zero() > level {
        row.push(f64::from(i16::MAX)).expect("a finite number");
    }
    row.pairs()
}

/// Judges rows that count alike: [`judge_claims`], each of weight 1.
pub fn judge_rows<'a>(
    rows: impl IntoIterator<Item = &'a Betting>,
    design: &Design,
) -> Vec<Judgement> {
    judge_claims(rows.into_iter().map(|row| WeightedClaim { row, weight: 1.0 }), design)
}

/// Judges all claims of one experiment together, in the order given.
///
/// A row is slower or faster when the method over all claims rejects "no effect" *and* its own
/// interval leaves zero out now. The second condition can take a verdict back while measuring goes
/// on; it only ever removes claims, so the error rate stands. Otherwise it is equivalent when both
/// one-sided tests at ±margin reject, which is never corrected for the number of rows: the claim is
/// made of each row by itself.
pub fn judge_claims<'a>(
    claims: impl IntoIterator<Item = WeightedClaim<'a>>,
    design: &Design,
) -> Vec<Judgement> {
    let claims: Vec<WeightedClaim> = claims.into_iter().collect();
    let weight = claims.iter().map(|claim| claim.weight).sum::<f64>();
    let weight = weight.max(design.rows as f64);
    let rows = map_rows(
        claims,
        |claim| claim.row.pairs(),
        |claim| UnjudgedRow::new(claim, weight, design),
    );
    let family = Family::of(&rows, weight, design);
    let judged = rows.iter().enumerate().map(|(row, of_row)| {
        let is_found = (family.is_sound[row], family.is_borne[row]);
        let level = (family.next_level * of_row.weight).min(design.alpha);
        of_row.judge(is_found, level, design)
    });
    judged.collect()
}

/// Which claims hold together, and at what level.
struct Family {
    /// Which rows differ from zero, whatever treated samples leave behind.
    is_sound: Vec<bool>,
    /// Which would, were nothing doubted.
    is_borne: Vec<bool>,
    /// The level asked of the next claim of weight 1, at worst.
    next_level: f64,
}

impl Family {
    fn of(rows: &[UnjudgedRow], weight: f64, design: &Design) -> Family {
        // Rows without a result are compared, too, and never rejected.
        let absent = weight - rows.iter().map(|row| row.weight).sum::<f64>();
        let weights: Vec<f64> =
            rows.iter().map(|row| row.weight).chain([absent.max(0.0)]).collect();
        let how = design.multiplicity;
        let by = |evidence: &dyn Fn(&UnjudgedRow) -> f64| {
            let evidence = rows.iter().map(evidence).chain([f64::NEG_INFINITY]);
            how.reject(&evidence.collect::<Vec<f64>>(), &weights, design.alpha)
        };
        let is_sound = by(&|row| row.sound_evidence(how));
        let next_level = how.next_level(&is_sound, &weights, design.alpha);
        Family { is_sound, is_borne: by(&|row| row.evidence(how)), next_level }
    }
}

/// One row before the other rows are known.
struct UnjudgedRow<'a> {
    row: &'a Betting,
    weight: f64,
    estimate: f64,
    interval: Interval,
    p_zero: f64,
    /// On which side of zero the interval is, and what speaks against saying so.
    side: Option<(Verdict, Option<Doubt>)>,
    /// Where it is within the margin: what speaks against saying so.
    equivalent: Option<Option<Doubt>>,
    carry_over: Option<CarryOver>,
}

impl<'a> UnjudgedRow<'a> {
    fn new(
        WeightedClaim { row, weight }: WeightedClaim<'a>,
        all: f64,
        design: &Design,
    ) -> UnjudgedRow<'a> {
        let fixed = design.fixed_pairs.filter(|n| row.pairs() >= *n);
        let at_any_time = design.fixed_pairs.is_none();
        let (estimate, interval, p_zero, equivalent) = if fixed.is_some() {
            let interval = |alpha| interval_fixed(row, alpha);
            (
                row.pseudo_median(),
                interval(design.alpha),
                signed_rank_p(row.values()),
                interval(2.0 * design.alpha).is_within(design.margin),
            )
        } else {
            // Also the fixed design before its number is reached: the only interval valid while
            // peeking.
            let needed = (1.0 / design.alpha).ln();
            (
                row.estimate(),
                row.interval(design.alpha),
                row.p_zero(),
                row.log_e_value_upper(-design.margin) >= needed
                    && row.log_e_value_lower(design.margin) >= needed,
            )
        };
        let complete = row.pairs() >= MIN_PAIRS && (at_any_time || fixed.is_some());
        let estimate = estimate.unwrap_or(0.0);
        let side = match interval {
            _ if !complete => None,
            Interval { high, .. } if high < 0.0 => Some(Verdict::Slower),
            Interval { low, .. } if low > 0.0 => Some(Verdict::Faster),
            _ => None,
        };
        let equivalent = equivalent && complete;
        // Two contrasts of each row.
        let carry_over =
            (side.is_some() || equivalent).then(|| CarryOver::of(row, design.alpha / (2.0 * all)));
        let found = carry_over.unwrap_or_default();
        let doubt = |verdict| doubt(verdict, row, interval, &found, design);
        UnjudgedRow {
            row,
            weight,
            estimate,
            interval,
            p_zero,
            side: side.map(|verdict| (verdict, doubt(verdict))),
            equivalent: equivalent.then(|| doubt(Verdict::Equivalent)),
            carry_over,
        }
    }

    /// The evidence against "no effect", a logarithm, if no sample changes the next one.
    fn evidence(&self, multiplicity: Multiplicity) -> f64 {
        match multiplicity {
            Multiplicity::Holm => -self.p_zero.ln(),
            // A claim that would be taken back is no claim, and no evidence of it helps the others.
            Multiplicity::EBh if self.side.is_none() => f64::NEG_INFINITY,
            Multiplicity::EBh => self.row.log_e_zero(),
        }
    }

    /// The evidence that holds whatever treated samples leave behind: none where that is in doubt, and where
    /// the clean pairs have to confirm it, no more than theirs.
    fn sound_evidence(&self, multiplicity: Multiplicity) -> f64 {
        let evidence = self.evidence(multiplicity);
        match self.side.and_then(|(_, because)| because) {
            None => evidence,
            Some(Doubt::NotYetConfirmed) => evidence.min(self.row.clean_log_e(0.0, 1.0)),
            Some(_) => f64::NEG_INFINITY,
        }
    }

    fn judge(&self, (is_sound, is_borne): (bool, bool), level: f64, design: &Design) -> Judgement {
        let side = self.side.and_then(|(verdict, because)| match because {
            None | Some(Doubt::NotYetConfirmed) if is_sound => Some((verdict, None)),
            Some(_) if is_borne => Some((verdict, because)),
            _ => None,
        });
        let (borne, because) = match (side, self.equivalent) {
            (Some(side), _) => side,
            (None, Some(because)) => (Verdict::Equivalent, because),
            (None, None) => (Verdict::Inconclusive, None),
        };
        let withheld = because.map(|because| Withheld { verdict: borne, because });
        let verdict = if withheld.is_some() { Verdict::Inconclusive } else { borne };
        let equivalent = self.equivalent == Some(None);
        let differs = matches!(verdict, Verdict::Slower | Verdict::Faster);
        let width_allowed = design.margin.max((self.estimate.abs() / 4.0).min(PRECISE));
        let inconclusive = verdict == Verdict::Inconclusive;
        let pairs_needed = match withheld {
            _ if !inconclusive => None,
            Some(Withheld { because: Doubt::NotYetConfirmed, .. }) => {
                Some(self.pairs_to_confirm(borne, level, design))
            }
            // That is not the pairs' number.
            Some(_) => None,
            None => self.pairs_needed(level, design),
        };
        let half_width = self.interval.half_width();
        let pairs_to_precision = match half_width <= width_allowed {
            true => 0,
            false => pairs_until(self.row.pairs(), half_width, width_allowed).unwrap_or(1),
        };
        Judgement {
            estimate: self.estimate,
            interval: self.interval,
            p_zero: self.p_zero,
            level,
            equivalent,
            verdict,
            withheld,
            carry_over: self.carry_over,
            within_margin: differs && equivalent,
            precise: half_width <= width_allowed,
            pairs_needed,
            pairs_left: pairs_to_precision.max(pairs_needed.unwrap_or(usize::from(inconclusive))),
        }
    }

    /// How many more pairs, at least 1, until those in which no treated sample came before show it by
    /// themselves: their evidence grows like their number.
    fn pairs_to_confirm(&self, verdict: Verdict, level: f64, design: &Design) -> usize {
        let pairs = self.row.pairs();
        let (has, level) = match verdict {
            Verdict::Equivalent => (self.row.clean_log_e_within(design.margin), design.alpha),
            _ => (self.row.clean_log_e(0.0, 1.0), level),
        };
        let needed = (1.0 / level).ln();
        let in_all = pairs as f64 * (needed / has.max(needed / 4.0));
        ((in_all - pairs as f64).ceil() as usize).max(1)
    }

    /// The cheaper of the two ways to a verdict, at least 1, if estimate and spread stay as they
    /// are.
    fn pairs_needed(&self, level: f64, design: &Design) -> Option<usize> {
        let pairs = self.row.pairs();
        if let Some(fixed) = design.fixed_pairs.filter(|n| *n > pairs) {
            return Some(fixed - pairs);
        }
        if pairs < MIN_PAIRS {
            return Some(MIN_PAIRS - pairs);
        }
        let interval = |alpha| match design.fixed_pairs {
            Some(_) => interval_fixed(self.row, alpha),
            None => self.row.interval(alpha),
        };
        let size = self.estimate.abs();
        let ways = [(interval(level), size), (interval(2.0 * design.alpha), design.margin - size)];
        ways.iter()
            .filter_map(|(interval, target)| pairs_until(pairs, interval.half_width(), *target))
            .min()
    }
}

fn interval_fixed(row: &Betting, alpha: f64) -> Interval {
    signed_rank_interval(row.values(), alpha).unwrap_or(Interval::UNBOUNDED)
}

/// How many more pairs than `pairs`, at least 1, until `half_width` shrinks to `target`; `None` if that is
/// not positive. While nothing is bounded yet, as many again: evidence grows like the number of pairs.
pub fn pairs_until(pairs: usize, half_width: f64, target: f64) -> Option<usize> {
    if target <= 0.0 {
        return None;
    }
    if half_width.is_infinite() {
        return Some(pairs);
    }
    let in_all = pairs as f64 * (half_width / target).powi(2);
    Some(((in_all - pairs as f64).ceil() as usize).max(1))
}

#[cfg(test)]
mod tests {
    use super::super::simulated::white_row as row;
    use super::*;

    fn fixed(pairs: usize) -> Design {
        Design { fixed_pairs: Some(pairs), ..Design::default() }
    }

    fn judge_one(row: &Betting, design: &Design) -> Judgement {
        judge_rows([row], design).remove(0)
    }

    #[test]
    fn many_rows_take_more_pairs_however_large_their_effects() {
        let design = |rows, multiplicity, planned_pairs| Design {
            rows,
            multiplicity,
            planned_pairs,
            ..Design::default()
        };
        let least = |rows, multiplicity| least_pairs(&design(rows, multiplicity, None), 1.0);
        assert_eq!([1, 10, 100].map(|rows| least(rows, Multiplicity::Holm)), [8, 12, 15]);
        assert_eq!(least(100, Multiplicity::EBh), 8);
        assert_eq!(least_pairs(&fixed(9), 1.0), 9);
        for planned in [None, Some(12.0), Some(200.0)] {
            let design = design(10, Multiplicity::Holm, planned);
            let plan = planned.map_or(PairPlan::AfterPilot(200.0), PairPlan::AtFirst);
            let start = Start { plan: Some(plan), ..DEFAULT_SCALE.into() };
            let judged = |pairs| {
                let row = Betting::from_log_ratios(&vec![-5.0; pairs], start).unwrap();
                judge_rows(&vec![row; 10], &design).remove(0).verdict
            };
            let least = least_pairs(&design, 1.0);
            assert_eq!(judged(least), Verdict::Slower, "{planned:?}: {least}");
            assert_eq!(judged(least - 1), Verdict::Inconclusive, "{planned:?}: {least}");
        }
    }

    #[test]
    fn an_effect_of_85_percent_is_decided_at_the_floor() {
        for seed in 0..50 {
            let effect = 0.15_f64.ln();
            let seven = judge_one(&row(effect, MIN_PAIRS - 1, seed), &Design::default());
            assert_eq!(seven.verdict, Verdict::Inconclusive);
            assert_eq!(seven.pairs_needed, Some(1));
            for design in [Design::default(), fixed(MIN_PAIRS)] {
                let slower = judge_one(&row(effect, MIN_PAIRS, seed), &design);
                assert_eq!(slower.verdict, Verdict::Slower);
                assert!(slower.interval.high < 0.0 && slower.precise);
                let faster = judge_one(&row(-effect, MIN_PAIRS, seed), &design);
                assert_eq!(faster.verdict, Verdict::Faster);
                assert_eq!(faster.pairs_needed, None);
            }
        }
    }

    #[test]
    fn a_small_effect_can_be_both_slower_and_within_the_margin() {
        for design in [Design::default(), fixed(1000)] {
            let judgement = judge_one(&row(-0.005, 1000, 1), &design);
            assert_eq!(judgement.verdict, Verdict::Slower);
            assert!(judgement.within_margin && judgement.equivalent);
        }
    }

    #[test]
    fn no_effect_becomes_equivalent() {
        for design in [Design::default(), fixed(100)] {
            let judgement = judge_one(&row(0.0, 100, 2), &design);
            assert_eq!(judgement.verdict, Verdict::Equivalent);
            assert!(judgement.precise && !judgement.within_margin);
        }
    }

    #[test]
    fn a_fixed_number_is_not_judged_before_it_is_reached() {
        let judgement = judge_one(&row(-0.1, 19, 3), &fixed(20));
        assert_eq!(judgement.verdict, Verdict::Inconclusive);
        assert_eq!(judgement.pairs_needed, Some(1));
        assert!(judgement.interval.high.is_finite());
        let needed = |pairs, design| judge_one(&row(-0.1, pairs, 3), &design).pairs_needed;
        assert_eq!([needed(9, fixed(20)), needed(3, Design::default())], [Some(11), Some(5)]);
        let at_least = judge_one(&row(0.0, MIN_PAIRS, 5), &Design::default());
        assert!(at_least.pairs_needed.is_some_and(|pairs| pairs > 0), "{at_least:?}");
    }

    #[test]
    fn more_rows_ask_for_more_evidence() {
        let strong = row(-0.03, 8, 4);
        let alone = judge_one(&strong, &Design::default());
        assert_eq!(alone.verdict, Verdict::Slower);
        let empty = Betting::new(DEFAULT_SCALE);
        let rows = std::iter::once(&strong).chain(std::iter::repeat_n(&empty, 20));
        let among_many = judge_rows(rows, &Design::default());
        assert_eq!(among_many[0].verdict, Verdict::Inconclusive);
        assert_eq!(among_many[0].interval, alone.interval);
        assert!(among_many[0].pairs_needed.is_some_and(|more| more <= 8));
        assert_eq!(among_many[1].interval, Interval::UNBOUNDED);
        assert_eq!(among_many[1].pairs_needed, Some(MIN_PAIRS));
    }

    #[test]
    fn the_pairs_needed_are_about_those_that_it_takes() {
        let judgement = judge_one(&row(0.0, 12, 5), &Design::default());
        assert_eq!(judgement.verdict, Verdict::Inconclusive);
        let needed = judgement.pairs_needed.unwrap();
        assert!((2..200).contains(&needed), "{needed}");
        // The cheaper of showing a difference and of refuting both margins.
        let row = row(0.0, 12, 5);
        let (size, margin) = (judgement.estimate.abs(), Design::default().margin);
        let to = |alpha, target| pairs_until(12, row.interval(alpha).half_width(), target);
        assert_eq!(
            Some(needed),
            [to(0.05, size), to(0.1, margin - size)].into_iter().flatten().min()
        );
        let strict = Design { margin: 1e-6, ..fixed(12) };
        assert!(judge_one(&row, &strict).pairs_needed.is_some_and(|pairs| pairs > 0));
    }

    #[test]
    fn a_width_shrinks_like_the_root_of_the_pairs() {
        assert_eq!(pairs_until(10, 0.2, 0.1), Some(30));
        assert_eq!(pairs_until(10, 0.1, 0.2), Some(1));
        assert_eq!(pairs_until(10, f64::INFINITY, 0.1), Some(10));
        assert_eq!([0.0, -1.0].map(|target| pairs_until(10, 0.1, target)), [None; 2]);
    }

    #[test]
    fn claims_have_their_weight_of_the_level_and_rows_without_a_result_have_theirs() {
        let strong = row(-0.03, 30, 4);
        let judged = |weights: &[f64], rows: usize| {
            let claim = |weight: &f64| WeightedClaim { row: &strong, weight: *weight };
            judge_claims(weights.iter().map(claim), &Design { rows, ..Design::default() })
        };
        let verdicts = |judged: &[Judgement]| -> Vec<Verdict> {
            judged.iter().map(|one| one.verdict).collect()
        };
        let with_none = judged(&[1.0, 0.0], 0);
        assert_eq!(verdicts(&with_none), [Verdict::Slower, Verdict::Inconclusive]);
        let empty = Betting::new(DEFAULT_SCALE);
        let weights = [(&strong, 1.0), (&empty, 1.0), (&empty, 0.5)];
        let claims = weights.map(|(row, weight)| WeightedClaim { row, weight });
        let levels: Vec<f64> =
            judge_claims(claims, &Design::default()).iter().map(|one| one.level).collect();
        // 0.05 of the 1.5 that are left.
        for (found, expected) in levels.iter().zip([0.05 / 1.5, 0.05 / 1.5, 0.025 / 1.5]) {
            assert!((found - expected).abs() < 1e-12, "{levels:?}");
        }
        let rare = 1_000_000_000_000;
        assert_eq!(verdicts(&judged(&[1.0], rare)), [Verdict::Inconclusive]);
        assert!((judged(&[1.0], rare)[0].level * rare as f64 - 0.05).abs() < 1e-12);
    }

    #[test]
    fn what_is_undecided_is_not_done_before_it_is_precise() {
        let wide = judge_one(&row(0.0, 12, 5), &Design::default());
        assert!(!wide.precise && wide.pairs_left >= wide.pairs_needed.unwrap());
        let to_precision =
            pairs_until(12, wide.interval.half_width(), Design::default().margin).unwrap();
        assert!(wide.pairs_left >= to_precision && to_precision > 1);
        let done = judge_one(&row(0.0, 100, 2), &Design::default());
        assert_eq!((done.precise, done.pairs_left), (true, 0));
        // A quarter of the estimate, but not more than a factor of 1.1.
        for (effect, is_precise) in [(-0.05, false), (-0.2, true)] {
            let judgement = judge_one(&row(effect, 8, 2), &Design::default());
            let half_width = judgement.interval.half_width();
            assert_eq!(judgement.precise, is_precise, "{effect}: {half_width}");
            assert!(half_width > Design::default().margin && half_width < PRECISE);
        }
    }

    #[test]
    fn without_clean_pairs_it_takes_four_times_as_many_to_confirm() {
        use super::super::carry_over::Turn;
        let unclean = Turn { baseline_first: true, after_treated: true };
        let row = row(0.0, 100, 2).with_turns(vec![unclean; 100]);
        let judgement = judge_one(&row, &Design::default());
        let because = Doubt::NotYetConfirmed;
        assert_eq!(judgement.withheld, Some(Withheld { verdict: Verdict::Equivalent, because }));
        assert_eq!(judgement.verdict, Verdict::Inconclusive);
        assert_eq!((judgement.pairs_needed, judgement.pairs_left), (Some(300), 300));
    }

    #[test]
    fn a_doubted_verdict_is_withheld_only_where_all_claims_together_would_bear_it() {
        use super::super::carry_over::Turn;
        let unclean = Turn { baseline_first: true, after_treated: true };
        let row = row(0.03, 30, 4).with_turns(vec![unclean; 30]);
        let of = |rows| judge_one(&row, &Design { rows, ..Design::default() });
        let because = Doubt::NotYetConfirmed;
        assert_eq!(of(0).withheld, Some(Withheld { verdict: Verdict::Faster, because }));
        let among_many = of(1_000_000_000_000);
        assert_eq!((among_many.verdict, among_many.withheld), (Verdict::Inconclusive, None));
        assert!(among_many.interval.low > 0.0);
    }

    #[test]
    fn one_strong_row_is_found_by_either_method() {
        for multiplicity in [Multiplicity::Holm, Multiplicity::EBh] {
            let design = Design { multiplicity, ..Design::default() };
            assert_eq!(judge_one(&row(-0.03, 30, 4), &design).verdict, Verdict::Slower);
        }
    }
}
