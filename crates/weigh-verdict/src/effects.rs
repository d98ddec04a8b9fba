//! The effects of a full factorial design: claims on the contrasts of rounds, while they are measured and
//! from the pairs of a stored experiment.

use super::log_ratio::{bound, percent};
use super::pairs::Measurements;
use super::schedule::plan;
use paired::betting::{Betting, Start};
use paired::doubt::Doubt;
use paired::judge::Judgement;
use paired::{Verdict, Withheld};
use weigh_model::ids::WorkId;
use weigh_model::record::Stored;
use weigh_model::result::factorial::{Effect, Factorial, FactorialEffect};

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

/// An effect is made of its arms' pairs: where the sample before matters to one of them, nothing is claimed.
pub fn withhold<'a>(effect: &mut Judgement, arms: impl IntoIterator<Item = &'a Judgement>) {
    // Fewer pairs than a favourable verdict takes do not speak against an unfavourable one.
    let is_slower = effect.verdict == Verdict::Slower;
    let speaks_against = |because| match because {
        Doubt::CarryOver | Doubt::OrderMatters | Doubt::ClaimsDisagree | Doubt::WorksOutside => {
            true
        }
        _ => !is_slower,
    };
    let doubts = arms.into_iter().filter_map(|arm| arm.withheld.map(|withheld| withheld.because));
    let Some(because) = doubts.into_iter().find(|because| speaks_against(*because)) else { return };
    if effect.verdict != Verdict::Inconclusive {
        effect.withheld = Some(Withheld { verdict: effect.verdict, because });
        effect.verdict = Verdict::Inconclusive;
        effect.within_margin = false;
    }
}

/// A claim on an effect of a workload, as while it was measured.
pub struct Claimed {
    work: WorkId,
    factors: Vec<String>,
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
            all.push(Claimed { work, factors, betting });
        }
    }
    all
}

/// Returns the effects to report. `judgements` belong to the claims; `of_rows` and `differ` belong
/// to `measurements`, and `differ` marks rows whose sets differ. If they do, an effect depends on
/// the set, and nothing is claimed about it.
pub fn told(
    stored: &Stored,
    measurements: &[Measurements],
    claimed: Vec<Claimed>,
    judgements: Vec<Judgement>,
    (of_rows, differ): (&[Judgement], &[bool]),
) -> Vec<FactorialEffect> {
    let judged = claimed.into_iter().zip(judgements);
    let told = judged.map(|(claimed, mut judgement)| {
        let rows = of_work(measurements, claimed.work);
        if rows.iter().any(|row| differ[*row]) {
            judgement.verdict = Verdict::Inconclusive;
            judgement.within_margin = false;
        }
        withhold(&mut judgement, rows.into_iter().map(|row| &of_rows[row]));
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

/// The measurements of a workload, by their arms.
fn of_work(measurements: &[Measurements], work: WorkId) -> Vec<usize> {
    let mut of_work: Vec<usize> =
        (0..measurements.len()).filter(|row| measurements[*row].work == work).collect();
    of_work.sort_by_key(|row| measurements[*row].arm);
    of_work
}
