//! The effects of a full factorial design: claims on the contrasts of rounds, while they are measured and
//! from the pairs of a stored experiment.

use super::effect_doubts::{ArmOfEffect, doubt};
use super::late::Late;
use super::log_ratio::{bound, percent};
use super::pairs::Measurements;
use super::schedule::plan;
use super::stored_guards::claims_of;
use paired::betting::{Betting, Start};
use paired::design::Design;
use paired::judge::Judgement;
use paired::{Verdict, Withheld};
use weigh_model::ids::WorkId;
use weigh_model::record::Stored;
use weigh_model::result::factorial::{Effect, Factorial, FactorialEffect};
use weigh_model::workload::metric::Metric;

/// The contrast of each round, from the log-ratios of each arm.
pub fn contrasts<'a>(
    factorial: &'a Factorial,
    effect: Effect,
    series: &'a [&'a [f64]],
) -> impl Iterator<Item = f64> + 'a {
    let rounds = series.iter().map(|of_arm| of_arm.len()).min().unwrap_or(0);
    (0..rounds).map(move |round| {
        let log_ratios: Vec<f64> = series.iter().map(|of_arm| of_arm[round]).collect();
        factorial.contrast(effect, &log_ratios)
    })
}

/// Withdraws a verdict on an effect that the pairs of its arms do not support.
pub fn withhold(effect: &mut Judgement, arms: &[ArmOfEffect], design: &Design) {
    if effect.verdict == Verdict::Inconclusive {
        return;
    }
    let equal = || doubt(effect, Verdict::Equivalent, arms, design);
    let is_within_margin = effect.within_margin && equal().is_none();
    if let Some(because) = doubt(effect, effect.verdict, arms, design) {
        effect.withheld = Some(Withheld { verdict: effect.verdict, because });
        effect.verdict = Verdict::Inconclusive;
    }
    effect.within_margin = is_within_margin && effect.withheld.is_none();
}

/// A claim on an effect of a workload, as while it was measured.
pub struct Claimed {
    work: WorkId,
    factors: Vec<String>,
    /// Weights of the arms, from arm 1 on.
    weights: Vec<f64>,
    pub betting: Betting,
}

/// Returns the claims on the design of the arms, of each workload that was measured in all of them;
/// `bettings` belong to `measurements`.
pub fn claimed(
    stored: &Stored,
    factorial: Option<&Factorial>,
    measurements: &[Measurements],
    bettings: &[Betting],
) -> Vec<Claimed> {
    let Some(factorial) = factorial else { return Vec::new() };
    let mut all = Vec::new();
    for work in stored.header.work_ids() {
        let of_work = of_work(measurements, work);
        let is_whole = of_work.len() == stored.header.arms.len() - 1;
        // While it was measured, the row of the last arm had the claims.
        let Some(last) = of_work.last().filter(|_| is_whole) else { continue };
        let row = &measurements[*last];
        // Rounds have no pilot of their own.
        let start = Start { plan: plan(stored.header.planned_pairs, None), ..row.start };
        let series: Vec<&[f64]> = of_work.iter().map(|row| bettings[*row].values()).collect();
        for effect in factorial.effects() {
            let usable = contrasts(factorial, effect, &series).filter(|d| d.is_finite());
            let betting = Betting::from_log_ratios(&usable.collect::<Vec<f64>>(), start)
                .expect("only finite values are left");
            let factors = factorial.factors_of(effect);
            let weights = factorial.weights(effect);
            all.push(Claimed { work, factors, weights, betting });
        }
    }
    all
}

/// Returns the effects to report. `judgements` belong to the claims, and `of_rows` to `measurements`. If the
/// sets of a row differ, an effect depends on the set, and nothing is claimed about it.
pub fn told(
    stored: &Stored,
    measurements: &[Measurements],
    claimed: Vec<Claimed>,
    judgements: Vec<Judgement>,
    of_rows: &RowsOfEffects,
) -> Vec<FactorialEffect> {
    let judged = claimed.into_iter().zip(judgements);
    let told = judged.map(|(claimed, mut judgement)| {
        let rows = of_work(measurements, claimed.work);
        if rows.iter().any(|row| of_rows.differ[*row]) {
            judgement.verdict = Verdict::Inconclusive;
            judgement.within_margin = false;
        }
        let late: Vec<Late> = rows.iter().map(|row| of_rows.late(measurements, *row)).collect();
        let arms = rows.iter().zip(&claimed.weights).zip(&late);
        let arms = arms.map(|((row, weight), late)| ArmOfEffect {
            weight: *weight,
            judgement: &of_rows.judged[*row],
            betting: &of_rows.bettings[*row],
            claims: claims_of(
                *row,
                measurements,
                &of_rows.judged[measurements.len()..],
                of_rows.further,
            ),
            scheme: measurements[*row].schedule.main(),
            late,
        });
        withhold(&mut judgement, &arms.collect::<Vec<_>>(), of_rows.design);
        FactorialEffect {
            workload: stored.header.works[claimed.work].name.clone(),
            factors: claimed.factors,
            effect_pct: percent(judgement.estimate),
            low_pct: bound(judgement.interval.low),
            high_pct: bound(judgement.interval.high),
            verdict: judgement.verdict,
            withheld: judgement.withheld,
            rounds: claimed.betting.pairs(),
        }
    });
    told.collect()
}

/// Knowledge of the rows that effects are made of; all in the order of the measurements.
pub struct RowsOfEffects<'a> {
    pub bettings: &'a [Betting],
    /// The rates of all rows, then each further metric of all rows.
    pub judged: &'a [Judgement],
    pub further: &'a [Metric],
    /// True for rows whose sets differ.
    pub differ: &'a [bool],
    pub design: &'a Design,
}

impl RowsOfEffects<'_> {
    fn late(&self, measurements: &[Measurements], row: usize) -> Late {
        let mut late = measurements[row].late.clone();
        late.beside(&measurements[row].log_ratios(), self.design.margin);
        late
    }
}

/// The measurements of a workload, by their arms.
fn of_work(measurements: &[Measurements], work: WorkId) -> Vec<usize> {
    let mut of_work: Vec<usize> =
        (0..measurements.len()).filter(|row| measurements[*row].work == work).collect();
    of_work.sort_by_key(|row| measurements[*row].arm);
    of_work
}
