//! From a stored experiment to what reports show: judged anew from the raw samples, so that what
//! `weigh show` says is what `weigh compare` said.

use super::drift;
use super::evidence;
use super::metrics;
use super::pairs::{Measurements, gather};
use super::sets::{self, Set};
use super::spoilt;
use crate::report::cost::{Cost, treated};
use crate::report::format;
use crate::report::gate::{Above, Gate};
use crate::report::metrics::Metrics;
use crate::report::summary::{Evidence, Future, Pair, Row, SCHEMA, State, Summary, Treatment};
use crate::stats::Verdict;
use crate::stats::betting::Betting;
use crate::stats::bound::{below, lower_bound};
use crate::stats::design::Design;
use crate::stats::estimate::median;
use crate::stats::forecast::{Forecast, forecast};
use crate::stats::judge::{Judgement, judge_rows};
use crate::stats::multiplicity::Multiplicity;
use crate::stats::order_effect::{OrderEffect, order_effect};
use crate::stats::parallel::map_rows;
use crate::store::record::Stored;
use crate::treatment;

/// The design that an experiment was made with.
pub fn design(stored: &Stored) -> Design {
    Design {
        alpha: stored.header.alpha,
        margin: stored.header.margin.ln_1p(),
        fixed_pairs: stored.header.fixed_pairs,
        multiplicity: stored.header.multiplicity,
    }
}

/// The whole report of an experiment that compares.
pub fn summarise(stored: &Stored) -> Summary {
    let header = &stored.header;
    let results = rows(stored);
    let mut warnings = stored.warnings.clone();
    warnings.extend(spoilt::warning(&results));
    Summary {
        schema: SCHEMA.into(),
        id: stored.id.clone(),
        started: stored.started.clone(),
        state: stored.state,
        failure: stored.failure.clone(),
        command: header.command.clone(),
        seed: header.seed,
        sessions: stored.sessions,
        elapsed_s: stored.elapsed_s,
        budget_s: header.budget_s,
        alpha: header.alpha,
        multiplicity: header.multiplicity.as_str().into(),
        margin_pct: header.margin * 100.0,
        machine: header.machine.clone(),
        baseline: header.arms.first().cloned().unwrap_or_default(),
        baseline_state: stored.baseline_state.clone(),
        baseline_facts: stored.facts.first().cloned().unwrap_or_default(),
        treatments: (1..header.arms.len())
            .map(|arm| Treatment {
                label: header.arms[arm].clone(),
                facts: stored.facts[arm].clone(),
            })
            .collect(),
        results,
        failures: stored.failures.clone(),
        warnings,
        gate: stored.fail_above.map(|limit| gate(limit, stored)),
        imported: None,
    }
}

fn rows(stored: &Stored) -> Vec<Row> {
    let measurements = gather(stored);
    let design = design(stored);
    let bettings = map_rows(&measurements, |of_row| of_row.series.len(), |of_row| of_row.betting());
    let pooled = pooled(stored, &design);
    // What was measured up to a failure is kept, but nothing is concluded from it.
    let mut judgements = judge_rows(&bettings, &pooled);
    if stored.state == State::Failed {
        for judgement in &mut judgements {
            judgement.verdict = Verdict::Inconclusive;
            judgement.within_margin = false;
        }
    }
    let count = measurements.len();
    let sets: Vec<Vec<Set>> = measurements.iter().map(|row| sets::of_row(row, &design)).collect();
    let of_sets: Vec<Vec<String>> = judgements
        .iter_mut()
        .zip(&sets)
        .map(|(whole, sets)| sets::reconcile(whole, sets))
        .collect();
    let forecasts = forecasts(stored, &bettings, &judgements, &pooled);
    let extra = forecasts.into_iter().zip(sets.into_iter().zip(of_sets));
    map_rows(
        measurements.into_iter().zip(bettings.iter().zip(judgements)).zip(extra),
        |((of_row, _), _)| of_row.series.len(),
        |((of_row, (betting, judgement)), (forecast, (sets, notes)))| {
            let (pair_s, (row_work, row_arm)) = (of_row.pair_s(), (of_row.work, of_row.arm));
            let mut row = row(stored, of_row, betting, &judgement, &design);
            row.notes.extend(notes);
            row.sets = sets.iter().map(Set::effect).collect();
            if sets::differ(&sets) {
                // Of what a further set costs these say nothing, and more pairs would not either.
                row.cost_at_most_pct =
                    row.low_pct.map(|low| -low).filter(|_| row.cost_at_most_pct.is_some());
            } else {
                add_forecast(&mut row, &forecast, pair_s);
            }
            row.metrics = metrics::of_row(stored, row_work, row_arm, design.alpha);
            row.notes.extend(metrics::note_on_stalls(&row.metrics, &judgement));
            if stored.state != State::Failed {
                row.notes.extend(note_on_multiplicity(&judgement, count, row.pairs, &pooled));
            }
            row.notes.extend(drift::note(&row.series));
            row.notes.extend(note_on_order(&row.series, design.alpha / count as f64));
            row
        },
    )
}

fn row(
    stored: &Stored,
    measurements: Measurements,
    betting: &Betting,
    judgement: &Judgement,
    design: &Design,
) -> Row {
    let work = &stored.header.works[measurements.work];
    let series = &measurements.series;
    let rates = |rate: fn(&Pair) -> f64| median(&series.iter().map(rate).collect::<Vec<_>>());
    let evidence = evidence::of_row(stored, &measurements);
    let unit = measurements.totals.unit.as_ref().unwrap_or(&work.unit).clone();
    let baseline = rates(|pair| pair.baseline_rate).unwrap_or(0.0);
    let effect_pct = percent(judgement.estimate);
    let spoilt_pairs = series.iter().filter(|pair| pair.is_spoilt).count();
    Row {
        workload: work.name.clone(),
        treatment: stored.header.arms[measurements.arm].clone(),
        metric: "rate".into(),
        cost: Cost::of(&work.name, &unit, baseline, effect_pct),
        unit,
        baseline,
        treated: treated(baseline, effect_pct),
        treated_median: rates(|pair| pair.treated_rate),
        effect_pct,
        low_pct: bound(judgement.interval.low),
        high_pct: bound(judgement.interval.high),
        cost_at_most_pct: cost_at_most_pct(stored, betting, design),
        verdict: judgement.verdict,
        within_margin: judgement.within_margin,
        precise: judgement.precise,
        pairs: series.len(),
        pairs_needed: None,
        pairs_needed_low: None,
        pairs_needed_high: None,
        seconds_needed: None,
        futures: Vec::new(),
        spoilt_pairs,
        metrics: Metrics::default(),
        notes: notes(&evidence),
        evidence,
        on_curve: work.on_curve.clone(),
        sets: Vec::new(),
        series: measurements.series,
    }
}

/// What may become of each row; of one with a verdict, or of an experiment that failed, nothing.
fn forecasts(
    stored: &Stored,
    rows: &[Betting],
    judgements: &[Judgement],
    design: &Design,
) -> Vec<Forecast> {
    let is = |verdicts: &'static [Verdict]| {
        judgements.iter().filter(|judgement| verdicts.contains(&judgement.verdict)).count()
    };
    let (open, differing) = (is(&[Verdict::Inconclusive]), is(&[Verdict::Slower, Verdict::Faster]));
    let level = design.multiplicity.next_level(design.alpha, differing, rows.len());
    let of_row = |(row, judgement): (&Betting, &Judgement)| {
        let is_open = judgement.verdict == Verdict::Inconclusive && stored.state != State::Failed;
        if is_open { forecast(row, level, open, design) } else { Forecast::default() }
    };
    rows.iter().zip(judgements).map(of_row).collect()
}

fn add_forecast(row: &mut Row, forecast: &Forecast, pair_s: Option<f64>) {
    if forecast.futures.is_empty() {
        return;
    }
    row.pairs_needed = forecast.quantile(0.5);
    row.pairs_needed_low = Some(forecast.quantile(0.1).unwrap_or(forecast.horizon));
    row.pairs_needed_high = forecast.quantile(0.9);
    row.seconds_needed = row.pairs_needed.and_then(|pairs| Some(pairs as f64 * pair_s?));
    row.futures = forecast
        .futures
        .iter()
        .map(|pairs| Future {
            seconds: pairs.unwrap_or(forecast.horizon) as f64 * pair_s.unwrap_or(0.0),
            is_at_least: pairs.is_none(),
        })
        .collect();
}

/// The design for the pairs of all sets together: a number of pairs that was fixed in advance is
/// reached only where every set has reached it.
fn pooled(stored: &Stored, design: &Design) -> Design {
    let fixed_pairs = design.fixed_pairs.map(|pairs| pairs * stored.header.sets);
    Design { fixed_pairs, ..design.clone() }
}

/// Nothing is concluded from an experiment that failed.
fn cost_at_most_pct(stored: &Stored, of_row: &Betting, design: &Design) -> Option<f64> {
    let bound = bound(lower_bound(of_row, &pooled(stored, design)))?;
    (stored.state != State::Failed).then_some(-bound)
}

/// The gate of `--fail-above`: the rows that are shown to cost more than `limit`, a share of the rate.
fn gate(limit: f64, stored: &Stored) -> Gate {
    let above = costing_more_than(limit, stored);
    Gate { fail_above_pct: limit * 100.0, passed: above.is_empty(), above }
}

fn costing_more_than(limit: f64, stored: &Stored) -> Vec<Above> {
    if stored.state == State::Failed {
        return Vec::new(); // nothing is concluded
    }
    let measurements = gather(stored);
    let bettings: Vec<Betting> = measurements.iter().map(Measurements::betting).collect();
    let shown = below(bettings.iter(), (-limit).ln_1p(), &pooled(stored, &design(stored)));
    let header = &stored.header;
    let name = |row: &Measurements| Above {
        workload: header.works[row.work].name.clone(),
        treatment: header.arms[row.arm].clone(),
    };
    // Where sets differ, each of them has to show it.
    let set_design = design(stored);
    let all_show = |row: &Measurements| {
        let sets = sets::of_row(row, &set_design);
        let shows = |set: &Set| set.judgement.interval.high < (-limit).ln_1p();
        !sets::differ(&sets) || sets.iter().all(shows)
    };
    let named = measurements.iter().zip(shown).filter(|(row, shown)| *shown && all_show(row));
    named.map(|(row, _)| name(row)).collect()
}

/// A log-ratio as a change in per cent.
pub fn percent(log_ratio: f64) -> f64 {
    log_ratio.exp_m1() * 100.0
}

/// The same for an end of an interval, which may be infinite.
pub fn bound(log_ratio: f64) -> Option<f64> {
    log_ratio.is_finite().then(|| percent(log_ratio))
}

/// A reader sees an interval beside zero and no verdict: he is owed the reason.
fn note_on_multiplicity(
    judgement: &Judgement,
    rows: usize,
    pairs: usize,
    design: &Design,
) -> Option<String> {
    let interval = judgement.interval;
    let leaves_zero_out = interval.low > 0.0 || interval.high < 0.0;
    let correction = match design.multiplicity {
        Multiplicity::Holm => "Holm's correction",
        Multiplicity::EBh => "the e-BH correction",
    };
    // Fewer pairs than were fixed are another reason, and so is an experiment that failed.
    let waits = design.fixed_pairs.is_some_and(|fixed| pairs < fixed);
    let is_open = judgement.verdict == Verdict::Inconclusive && !waits;
    (is_open && leaves_zero_out && rows > 1).then(|| {
        format!(
            "by itself this interval leaves 0 out, but one of {rows} rows may do so by chance: with \
             {correction} for that it is not yet significant"
        )
    })
}

/// A sample that changes the next one breaks what the interval rests on.
fn note_on_order(series: &[Pair], alpha: f64) -> Option<String> {
    let pairs: Vec<(f64, bool)> =
        series.iter().map(|pair| (pair.log_ratio(), pair.baseline_first)).collect();
    let found = order_effect(&pairs, alpha).filter(OrderEffect::is_significant)?;
    let interval = found.interval;
    Some(format!(
        "the order matters: the effect of pairs with the baseline first, less that of the others, is \
         {} {}; a sample may change the next one",
        format::percent(percent(found.estimate)),
        format::interval(bound(interval.low), bound(interval.high))
    ))
}

fn notes(evidence: &Evidence) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(lost) = evidence.lost.filter(|lost| *lost > 0) {
        notes.push(match evidence.lost_pct {
            Some(pct) => format!(
                "cheaper because at least {} % of the records were dropped: {lost} were counted as lost",
                format::unsigned(pct)
            ),
            None => {
                format!("cheaper because evidence was dropped: {lost} audit records were counted as lost")
            }
        });
    }
    if let Some(why) = evidence.other.get(treatment::Evidence::NOT_COUNTED) {
        notes.push(format!("counted incompletely: {why}"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thirty pairs whose second sample is faster by about `gain`.
    fn series(gain: f64) -> Vec<Pair> {
        let pair = |number: usize| {
            let baseline_first = number.is_multiple_of(2);
            let second = 100.0 * (gain + (number * 7919 % 13) as f64 * 1e-3 - 0.006).exp();
            let [baseline_rate, treated_rate] =
                if baseline_first { [100.0, second] } else { [second, 100.0] };
            let started_s = number as f64;
            Pair {
                started_s,
                first_s: 0.1,
                baseline_rate,
                treated_rate,
                baseline_first,
                set: 0,
                is_spoilt: false,
            }
        };
        (0..30).map(pair).collect()
    }

    #[test]
    fn a_row_says_when_the_order_of_its_samples_matters() {
        let note = note_on_order(&series(0.02), 0.05).unwrap();
        assert!(note.starts_with("the order matters") && note.contains("+4."), "{note}");
        assert_eq!(note_on_order(&series(0.0), 0.05), None);
    }
}
