//! From a stored experiment to what reports show: judged anew from the raw samples, so that what
//! `weigh show` says is what `weigh compare` said.

use super::effects::factorial;
use super::provenance::Provenance;
use super::ranking;
use super::request::Request;
use super::run_report::series;
use super::stored_design::design;
use super::times;
use paired::betting::Betting;
use paired::design::Design;
use paired::estimate::median;
use paired::forecast::{Forecast, FutureVerdict, forecast};
use paired::judge::{Judgement, judge_claims, least_pairs};
use paired::parallel::map_rows;
use paired::stalls;
use paired::{Doubt, Interval, Verdict, Withheld};
use weigh_model::format;
use weigh_model::ids::ArmId;
use weigh_model::record::{ExperimentKind, Header, Stored, StoredWork};
use weigh_model::result::cost::{AddedCost, treated};
use weigh_model::result::factorial::FactorialEffect;
use weigh_model::result::metrics::Metrics;
use weigh_model::result::reading::Reading;
use weigh_model::result::scheme::Scheme;
use weigh_model::result::summary::{
    AppliedTreatment, Future, Pair, Row, SCHEMA, StallSummary, State, Summary,
};
use weigh_model::result::versus::Versus;
use weigh_model::result::warning::Warning;
use weigh_model::workload::clock::{PATH_LENGTH, is_path_length};
use weigh_model::workload::metric::{Direction, Metric};
use weigh_model::workload::sample::SampleMetric;
use weigh_treatment::differences::differences;
use weigh_verdict::effects::{self, RowsOfEffects};
use weigh_verdict::interleaved::least_favourable;
use weigh_verdict::load_compared::{compared_loads, on_curve};
use weigh_verdict::log_ratio::{bound, percent, preliminary};
use weigh_verdict::notes::{self, Judged};
use weigh_verdict::pairs::{Measurements, gather, unmeasured};
use weigh_verdict::sets::{self, Set};
use weigh_verdict::stored_guards::{guard, scheme_of};
use weigh_verdict::{disturbed, doses, evidence, family, gate, metrics};

/// The whole report of an experiment that compares.
pub fn summarise(stored: &Stored) -> Summary {
    let header = &stored.header;
    let (origin, unread) = match Provenance::kept(stored) {
        Ok(origin) => (origin, None),
        Err(problem) => (None, Some(Warning::RequestUnread { problem })),
    };
    let mut warnings = stored.warnings.clone();
    warnings.extend(unread);
    let is_of_one_start = origin.as_ref().is_some_and(|it| it.request.plan.endurance().is_some());
    warnings.extend(is_of_one_start.then_some(Warning::OneStartPerArm));
    let (results, effects) = rows(stored, is_of_one_start);
    if results.iter().any(|row| row.metric == PATH_LENGTH) {
        warnings.insert(0, Warning::PathLengths);
    } else {
        warnings.extend(disturbed::warning(&results, &header.machine));
    }
    let versus = ranking::versus(stored, origin.as_ref(), &results);
    let of_servers = origin.and_then(|origin| of_servers(stored, origin.request));
    warnings.extend(versus.as_ref().and_then(Versus::warning));
    let measurements = gather(stored);
    let gate = stored.fail_above.map(|limit| {
        let design = design(stored);
        let rows = (&measurements[..], &results[..]);
        gate::gate(limit, stored, rows, (&design, &pooled(stored, &design)))
    });
    Summary {
        schema: SCHEMA.into(),
        id: stored.id.to_string(),
        started: stored.started.clone(),
        state: stored.state,
        failure: stored.failure.clone(),
        command: header.command.clone(),
        seed: header.seed,
        sessions: stored.sessions,
        samples: stored.samples.values().map(|row| row.points.len()).sum(),
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
            .map(ArmId)
            .map(|arm| AppliedTreatment {
                label: header.arms[arm].clone(),
                differences: several_differences(header, arm),
                facts: stored.facts[arm].clone(),
                quantities: stored.quantities[arm].clone(),
            })
            .collect(),
        versus,
        treat: of_servers.as_ref().map(|request| request.plan.treated().word().to_owned()),
        client: of_servers.and_then(|request| request.plan.client().map(str::to_owned)),
        doses: doses::of(stored, &results),
        results,
        effects,
        loads: compared_loads(stored),
        times: times::of_comparison(stored),
        profiles: stored.profiles.clone(),
        failures: stored.failures.clone(),
        unmeasured: unmeasured(stored, &measurements),
        warnings,
        gate,
        passes: if is_of_one_start { series(stored) } else { Vec::new() },
        imported: None,
        requested_metrics: header.metrics.iter().filter(|it| !it.is_implicit()).cloned().collect(),
    }
}

/// Returns the request if a workload sends requests to a server. It has the treated side and the
/// client's place.
fn of_servers(stored: &Stored, request: Request) -> Option<Request> {
    let surroundings = request.surroundings();
    let asks = |work: &StoredWork| surroundings.is_server_asked(&work.name.name);
    stored.header.works.iter().any(asks).then_some(request)
}

/// One difference is the label itself. The labels of commands are none of treatments.
fn several_differences(header: &Header, arm: ArmId) -> Vec<String> {
    if header.kind == ExperimentKind::Versus {
        return Vec::new();
    }
    let all = differences(&header.arms[0], &header.arms[arm]);
    Some(all).filter(|all| all.len() > 1).unwrap_or_default()
}

/// The rows. Nothing is concluded from a failed experiment, nor from passes over one start of each arm.
fn rows(stored: &Stored, is_of_one_start: bool) -> (Vec<Row>, Vec<FactorialEffect>) {
    let measurements = gather(stored);
    let design = design(stored);
    let bettings = map_rows(&measurements, |of_row| of_row.series.len(), |of_row| of_row.betting());
    let pooled = pooled(stored, &design);
    let concludes_nothing = is_of_one_start || stored.state == State::Failed;
    let further = further(stored);
    let of_further = bettings_of(&further, &measurements);

    let factorial = factorial(&stored.header.arms);
    let claimed = effects::claimed(stored, factorial.as_ref(), &measurements, &bettings);
    let of_effects = claimed.iter().map(|claimed| &claimed.betting);
    let claims = family::claims(stored, &measurements, &bettings, &of_further, of_effects);
    let mut judgements = judge_claims(claims, &pooled);
    if concludes_nothing {
        judgements.iter_mut().for_each(|one| conclude_nothing(one, is_of_one_start));
    }
    let judged_effects = judgements.split_off(judgements.len() - claimed.len());
    if !concludes_nothing {
        guard(&mut judgements, &measurements, &further, &pooled);
    }
    let sets: Vec<Vec<Set>> = measurements.iter().map(|row| sets::of_row(row, &design)).collect();
    let differ: Vec<bool> = sets.iter().map(|sets| sets::differ(sets)).collect();
    let (bettings, judged) = (&bettings, &judgements);
    let of_rows =
        RowsOfEffects { bettings, judged, further: &further, differ: &differ, design: &pooled };

    let effects = effects::told(stored, &measurements, claimed, judged_effects, &of_rows);
    let judged_further = judgements.split_off(bettings.len());
    let readings = readings(&measurements, &further, judged_further, &design);
    let of_sets: Vec<Vec<String>> = judgements
        .iter_mut()
        .zip(&sets)
        .map(|(whole, sets)| sets::reconcile(whole, sets))
        .collect();
    let forecasts = match concludes_nothing {
        true => vec![Forecast::default(); measurements.len()],
        false => forecasts(&measurements, (bettings, &judgements), &pooled),
    };
    let extra = forecasts.into_iter().zip(sets.into_iter().zip(of_sets)).zip(readings);
    let rows = map_rows(
        measurements.into_iter().zip(bettings.iter().zip(judgements)).zip(extra),
        |((of_row, _), _)| of_row.series.len(),
        |((of_row, (betting, judgement)), ((forecast, (sets, notes)), readings))| {
            let (row_work, row_arm) = (of_row.work, of_row.arm);
            let times = PairTimes { pair_s: of_row.pair_s(), old_s: of_row.late.time_left_s() };
            let least_pairs = least_pairs(&pooled, family::weights(stored, &of_row).rate);
            let mut row = row(stored, of_row, betting, &judgement, &design);
            if concludes_nothing {
                (row.cost_at_most_pct, row.stalls) = (None, None);
                row.preliminary = row.preliminary.filter(|_| is_of_one_start);
            }
            row.least_pairs = least_pairs;
            add_sets(&mut row, &sets, &forecast, &times);
            row.readings = readings;
            row.metrics = metrics::of_row(stored, row_work, row_arm, design.alpha);
            let judged = Judged {
                betting,
                judgement: &judgement,
                series: &row.series,
                least_pairs: row.least_pairs,
                evidence: &row.evidence,
                quantities: &stored.quantities[row_arm],
                metrics: &row.metrics,
            };
            row.notes = [notes, notes::of_row(&judged, &pooled, concludes_nothing)].concat();
            row.notes.extend(not_known(&further, &row));
            row
        },
    );
    (rows, effects)
}

/// The bettings of all rows on each further metric.
fn bettings_of(further: &[Metric], measurements: &[Measurements]) -> Vec<Vec<Betting>> {
    let of_metric = |metric: &Metric| {
        map_rows(measurements, |row| row.series.len(), |of_row| of_row.betting_of(metric))
    };
    further.iter().map(of_metric).collect()
}

/// Adds the effect of each set; and the forecast, unless the sets differ.
fn add_sets(row: &mut Row, sets: &[Set], forecast: &Forecast, times: &PairTimes) {
    row.sets = sets.iter().map(Set::effect).collect();
    if sets::differ(sets) {
        // Of what a further set costs these say nothing, and more pairs would not either.
        row.cost_at_most_pct =
            row.low_pct.map(|low| -low).filter(|_| row.cost_at_most_pct.is_some());
    } else {
        add_forecast(row, forecast, times);
    }
}

/// Returns the readings of each row for all metrics but the rate. `judged` has the judgements of
/// all rows for the first metric, then for the next.
fn readings(
    measurements: &[Measurements],
    further: &[Metric],
    mut judged: Vec<Judgement>,
    design: &Design,
) -> Vec<Vec<Reading>> {
    let claims =
        further.iter().flat_map(|metric| measurements.iter().map(move |row| (metric, row)));
    for ((metric, of_row), whole) in claims.zip(&mut judged) {
        sets::reconcile(whole, &sets::of_metric(of_row, metric, design));
    }
    let of_row = |(row, measured): (usize, &Measurements)| {
        let metrics = further.iter().enumerate();
        let known = metrics.filter_map(|(which, metric)| {
            reading(metric, &measured.series, &judged[which * measurements.len() + row])
        });
        known.collect()
    };
    measurements.iter().enumerate().map(of_row).collect()
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
    let disturbed_pairs = series.iter().filter(|pair| pair.is_disturbed).count();
    Row {
        workload: work.name.clone(),
        treatment: stored.header.arms[measurements.arm].clone(),
        metric: if is_path_length(&unit) { PATH_LENGTH } else { "rate" }.into(),
        scheme: scheme_of(stored, &measurements),
        cost: AddedCost::of(&work.name, &unit, baseline, effect_pct),
        unit,
        baseline,
        baseline_over_all: (measurements.schedule.main() == Scheme::Interleaved)
            .then(|| rates(|pair| pair.rates_over_all[0]))
            .flatten(),
        treated: treated(baseline, effect_pct),
        treated_median: rates(|pair| pair.treated_rate),
        effect_pct,
        low_pct: bound(judgement.interval.low),
        high_pct: bound(judgement.interval.high),
        cost_at_most_pct: cost_at_most_pct(stored, &measurements, judgement, design),
        preliminary: preliminary(betting, judgement),
        verdict: judgement.verdict,
        withheld: judgement.withheld,
        within_margin: judgement.within_margin,
        precise: judgement.precise,
        pairs: series.len(),
        pairs_needed: None,
        pairs_needed_low: None,
        pairs_needed_high: None,
        seconds_needed: None,
        least_pairs: 0,
        futures: Vec::new(),
        disturbed_pairs,
        stalls: stalls(&measurements, design),
        readings: Vec::new(),
        metrics: Metrics::default(),
        notes: Vec::new(),
        evidence,
        on_curve: stored
            .header
            .on_curve(measurements.work)
            .or_else(|| on_curve(stored, measurements.work, measurements.arm)),
        sets: Vec::new(),
        series: measurements.series,
    }
}

/// Removes every conclusion and keeps what was measured. Passes over one start say nothing of another
/// start, so they have no interval.
fn conclude_nothing(judgement: &mut Judgement, is_of_one_start: bool) {
    if is_of_one_start {
        judgement.interval = Interval::UNBOUNDED;
    }
    judgement.verdict = Verdict::Inconclusive;
    judgement.withheld = None;
    judgement.within_margin = false;
}

/// Returns the metrics that are judged besides the rate.
fn further(stored: &Stored) -> Vec<Metric> {
    stored.header.metrics.iter().filter(|metric| **metric != Metric::Rate).cloned().collect()
}

/// Returns the number of pairs whose amounts have no ratio, such as 0 bytes.
fn without_ratio(metric: &Metric, series: &[Pair]) -> usize {
    let has_none =
        |pair: &&Pair| pair.amounts(metric).is_some() && pair.log_ratio_of(metric).is_none();
    series.iter().filter(has_none).count()
}

/// Returns a row's reading of another metric; `None` if no pair has it, or if a pair has no ratio: to judge
/// the other pairs would choose pairs by their outcome.
fn reading(metric: &Metric, series: &[Pair], judgement: &Judgement) -> Option<Reading> {
    if without_ratio(metric, series) > 0 {
        return None;
    }
    let amounts = || series.iter().filter_map(|pair| pair.amounts(metric));
    let values: Vec<f64> = match metric {
        Metric::CpuTime => series.iter().filter_map(|pair| Some(pair.cpu_ns_per_op?[0])).collect(),
        _ => amounts().map(|both| both[0].value).collect(),
    };
    let baseline = median(&values)?;
    let first = amounts().next().map(|both| &both[0]);
    let better = first.map_or(Direction::Lower, |first| first.better);
    // A log-ratio is positive where the treatment is better.
    let [estimate, low, high] = {
        let (estimate, interval) = (judgement.estimate, judgement.interval);
        match better {
            Direction::Higher => [estimate, interval.low, interval.high],
            Direction::Lower => [-estimate, -interval.high, -interval.low],
        }
    };
    let effect_pct = percent(estimate);
    Some(Reading {
        metric: metric.clone(),
        unit: first.map_or("ns/op".into(), |first| first.unit.to_string()),
        better,
        baseline,
        treated: treated(baseline, effect_pct),
        effect_pct,
        low_pct: bound(low),
        high_pct: bound(high),
        verdict: judgement.verdict,
        withheld: judgement.withheld,
        within_margin: judgement.within_margin,
        precise: judgement.precise,
        pairs: series.iter().filter_map(|pair| pair.log_ratio_of(metric)).count(),
    })
}

/// Tells of each metric that was asked for and has no reading.
fn not_known(further: &[Metric], row: &Row) -> Vec<String> {
    further.iter().filter_map(|metric| why_unknown(metric, &row.readings, &row.series)).collect()
}

/// Tells of a metric that was asked for and that no pair has, or not each; CPU time is judged unasked.
fn why_unknown(metric: &Metric, readings: &[Reading], series: &[Pair]) -> Option<String> {
    let is_known = readings.iter().any(|reading| reading.metric == *metric);
    let zeros = without_ratio(metric, series);
    if zeros > 0 {
        let pairs = format::plural(series.len(), "pair");
        return Some(format!(
            "no verdict on `{}`: in {zeros} of {pairs}, a value is 0, which has no ratio",
            metric.name()
        ));
    }
    let why = match metric {
        _ if is_known => return None,
        Metric::Rate | Metric::OverallRate | Metric::CpuTime => return None,
        Metric::Latency(_) => {
            "its samples have too few operations, or its operations cannot be timed one by one"
        }
        Metric::Named(name) => SampleMetric::find(name)
            .map_or("the workload's output has no reading with this name", |known| known.absent),
    };
    Some(format!("no verdict on `{}`: {why}", metric.name()))
}

/// Forecasts the outcome of each row. Rows with a verdict have no forecast.
fn forecasts(
    measurements: &[Measurements],
    (rows, judgements): (&[Betting], &[Judgement]),
    design: &Design,
) -> Vec<Forecast> {
    let open = judgements.iter().filter(|row| row.verdict == Verdict::Inconclusive).count();
    let of_row = |(measured, (row, judgement)): (&Measurements, (&Betting, &Judgement))| {
        let is_over = design.fixed_pairs.is_some_and(|pairs| row.pairs() >= pairs);
        if judgement.verdict != Verdict::Inconclusive || is_over {
            return Forecast::default();
        }
        let least = least_favourable(measured.schedule.main());
        match judgement.withheld {
            None | Some(Withheld { because: Doubt::NotYetConfirmed, .. }) => {
                forecast(row, judgement.level, open, design, least)
            }
            // The row may change to other pairs then.
            Some(Withheld { because: Doubt::WorksOutside, .. }) => Forecast::default(),
            // Whoever withheld the verdict knows how many pairs it takes, if that is a matter of pairs.
            Some(Withheld { verdict, .. }) => {
                let is_favourable = verdict != Verdict::Slower;
                let known = judgement.pairs_needed;
                known.map_or_else(Forecast::default, |pairs| {
                    Forecast::of_pairs(pairs, is_favourable)
                })
            }
        }
    };
    measurements.iter().zip(rows.iter().zip(judgements)).map(of_row).collect()
}

/// Times that further pairs of a row take.
struct PairTimes {
    pair_s: Option<f64>,
    /// Time that the old pair takes besides, before a favourable verdict.
    old_s: f64,
}

impl PairTimes {
    fn future(&self, forecast: &Forecast, verdict: Option<FutureVerdict>) -> Future {
        let pairs = verdict.map_or(forecast.horizon, |verdict| verdict.pairs);
        let is_favourable = verdict.is_some_and(|verdict| verdict.is_favourable);
        let old_s = if is_favourable { self.old_s } else { 0.0 };
        let seconds = pairs as f64 * self.pair_s.unwrap_or(0.0) + old_s;
        Future { seconds, is_at_least: verdict.is_none() }
    }
}

fn add_forecast(row: &mut Row, forecast: &Forecast, times: &PairTimes) {
    if forecast.futures.is_empty() {
        return;
    }
    let futures = forecast.futures.iter();
    row.futures = futures.map(|verdict| times.future(forecast, *verdict)).collect();
    let mut seconds: Vec<f64> = row.futures.iter().map(|future| future.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    row.pairs_needed = forecast.quantile(0.5);
    row.pairs_needed_low = Some(forecast.quantile(0.1).unwrap_or(forecast.horizon));
    row.pairs_needed_high = forecast.quantile(0.9);
    let middle = seconds[(seconds.len() - 1) / 2];
    row.seconds_needed = row.pairs_needed.and(times.pair_s).map(|_| middle);
}

/// The design for the pairs of all sets together: a number of pairs that was fixed in advance is
/// reached only where every set has reached it.
fn pooled(stored: &Stored, design: &Design) -> Design {
    let fixed_pairs = design.fixed_pairs.map(|pairs| pairs * stored.header.sets);
    Design { fixed_pairs, ..design.clone() }
}

/// Returns the upper limit of a row's cost, in per cent.
fn cost_at_most_pct(
    stored: &Stored,
    of_row: &Measurements,
    judgement: &Judgement,
    design: &Design,
) -> Option<f64> {
    let bettings = gate::bettings(stored, of_row);
    let mut late = of_row.late.clone();
    late.beside(&of_row.log_ratios(), design.margin);
    let claims = gate::Promise {
        bettings: bettings.iter().collect(),
        scheme: of_row.schedule.main(),
        outside: &of_row.outside,
        judgement,
        late: &late,
    };
    Some(-bound(claims.lowest(&pooled(stored, design))?)?)
}

/// Returns the rare long delays that the pairs do not exclude. It uses whole samples, as a median
/// of slices shows no such delay.
fn stalls(of_row: &Measurements, design: &Design) -> Option<StallSummary> {
    let ratios = of_row.series.iter().map(|pair| {
        let [baseline, treated] = pair.rates_over_all;
        (treated / baseline).ln()
    });
    let whole: Vec<f64> = ratios.filter(|d| d.is_finite()).collect();
    let whole =
        Betting::from_log_ratios(&whole, of_row.start).expect("only finite values are left");
    let found = stalls::Stalls::of(&whole, design.margin)?;
    Some(StallSummary {
        longer_pct: percent(found.threshold),
        baseline: found.baseline,
        treated: found.treated,
        treated_at_most_pct: 100.0 * found.treated_at_most(design.alpha),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::request::{Comparison, Plan};

    #[test]
    fn a_request_that_cannot_be_read_is_a_warning_and_not_a_default() {
        let compared = |origin: Option<&str>| {
            let work = example::work("app:db.point-read@mariadb", "ops/s");
            let mut stored = example::stored(Plan::Compare(Comparison::default()), [work]);
            stored.header.kind = ExperimentKind::Compare;
            if let Some(origin) = origin {
                stored.header.origin = Some(origin.to_owned());
            }
            summarise(&stored)
        };
        let known = compared(None);
        assert!(known.treat.is_some() && known.warnings.is_empty(), "{:?}", known.warnings);
        let unread = compared(Some(r#"{"request":{"plan":"of a later version"}}"#));
        assert_eq!(unread.treat, None);
        let [Warning::RequestUnread { problem }] = &unread.warnings[..] else {
            panic!("{:?}", unread.warnings)
        };
        assert!(problem.contains("its stored request cannot be read"), "{problem}");
    }
}
