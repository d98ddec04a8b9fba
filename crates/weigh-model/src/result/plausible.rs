//! Checks that a document can be the result of an experiment: counts are not negative, and ordered
//! values are in order. Sums, charts and other reports rely on that.

use crate::result::metrics::{Contrast, Latency};
use crate::result::summary::{Row, Summary};
use crate::result::versus::CommandTimes;

/// Checks all numbers that a person or another program may have changed.
pub fn check(s: &Summary) -> Result<(), String> {
    // An import sets `started` later.
    if !s.started.is_empty() && !is_moment(&s.started) {
        return Err("`started` is not a time such as 2026-11-21T20:15:04Z".into());
    }
    if ![s.elapsed_s, s.budget_s].into_iter().all(is_amount) {
        return Err("`elapsed_s` or `budget_s` is not a valid time".into());
    }
    if !(s.alpha > 0.0 && s.alpha < 1.0 && s.margin_pct.is_finite() && s.margin_pct > 0.0) {
        return Err("`alpha` is not between 0 and 1, or `margin_pct` not above 0".into());
    }
    for times in s.versus.iter().flat_map(|versus| &versus.commands) {
        check_times(times).map_err(|problem| format!("{:?}: {problem}", times.command))?;
    }
    for row in &s.results {
        check_row(row).map_err(|problem| {
            format!("{:?} under {:?}: {problem}", row.workload, row.treatment)
        })?;
    }
    Ok(())
}

fn check_times(times: &CommandTimes) -> Result<(), String> {
    let CommandTimes { times_s, user_s, system_s, exit_codes, peak_memory_bytes, .. } = times;
    let cpu = user_s.iter().chain(system_s);
    if times_s.is_empty() || !times_s.iter().chain(cpu).copied().all(is_amount) {
        return Err("it has no times, or one is negative or infinite".into());
    }
    let runs = times_s.len();
    if exit_codes.len() != runs || ![0, runs].contains(&peak_memory_bytes.len()) {
        return Err("it has not as many exit codes or amounts of memory as times".into());
    }
    Ok(())
}

fn check_row(row: &Row) -> Result<(), String> {
    if ![row.baseline, row.treated].into_iter().all(is_amount) {
        return Err("a rate is negative or infinite".into());
    }
    let sets = row.sets.iter().map(|set| (Some(set.effect_pct), set.low_pct, set.high_pct));
    let metrics = &row.metrics;
    let mean = (metrics.mean_effect_pct, metrics.mean_low_pct, metrics.mean_high_pct);
    let own = (Some(row.effect_pct), row.low_pct, row.high_pct);
    if !sets.chain([own, mean]).all(is_interval) {
        return Err(
            "an effect is below −100 % or infinite, or the bounds of its interval are swapped"
                .into(),
        );
    }
    if row.disturbed_pairs > row.pairs || row.seconds_needed.is_some_and(|time| !is_amount(time)) {
        return Err(
            "it has more disturbed pairs than pairs, or `seconds_needed` is not a valid time"
                .into(),
        );
    }
    if let Some(stalls) = row.stalls {
        let is_share = (0.0..=100.0).contains(&stalls.treated_at_most_pct);
        let are_of_pairs = stalls.baseline.max(stalls.treated) <= row.pairs;
        if !is_share || !are_of_pairs || !is_amount(stalls.longer_pct) {
            return Err(
                "it has more stalled samples than samples, or the share of stalled samples is not \
                valid"
                    .into(),
            );
        }
    }
    let evidence = &row.evidence;
    let declared = [evidence.syscalls_per_op, evidence.treated_s].into_iter().flatten();
    if !declared.chain(evidence.amounts.numbers()).all(f64::is_finite) {
        return Err("a number in the evidence is infinite".into());
    }
    metrics.latency.as_ref().map_or(Ok(()), check_latency)
}

fn check_latency(latency: &Latency) -> Result<(), String> {
    let known: Vec<&Contrast> =
        [&latency.p50_ns, &latency.p99_ns, &latency.p99_9_ns].into_iter().flatten().collect();
    let is_in_order = |of: fn(&Contrast) -> f64| {
        known.iter().all(|contrast| is_amount(of(contrast)))
            && known.windows(2).all(|pair| of(pair[0]) <= of(pair[1]))
    };
    match is_in_order(|contrast| contrast.baseline) && is_in_order(|contrast| contrast.treated) {
        true => Ok(()),
        false => Err("its latencies are not ordered p50 ≤ p99 ≤ p99.9".into()),
    }
}

/// True if `text` is a time of RFC 3339, which reports print as it is.
pub fn is_moment(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok()
}

fn is_amount(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

/// `None` is what the pairs do not bound, or what was not measured.
fn is_interval((effect, low, high): (Option<f64>, Option<f64>, Option<f64>)) -> bool {
    let numbers = [effect, low, high];
    numbers.into_iter().flatten().all(|number| number.is_finite() && number >= -100.0)
        && low.zip(high).is_none_or(|(low, high)| low <= high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn what_weigh_writes_is_plausible() {
        let versus = [example::versus(), example::one_command()];
        for summary in
            [example::audit(), example::two_sets(), example::control()].iter().chain(&versus)
        {
            assert_eq!(check(summary), Ok(()));
        }
    }

    #[test]
    fn times_of_commands_are_checked() {
        let with = |change: fn(&mut CommandTimes)| {
            let mut s = example::versus();
            change(&mut s.versus.as_mut().unwrap().commands[0]);
            check(&s)
        };
        assert_eq!(with(|_| {}), Ok(()));
        assert!(with(|times| times.times_s.clear()).is_err());
        assert!(with(|times| times.times_s[0] = -1.0).is_err());
        assert!(with(|times| times.user_s = Some(f64::NAN)).is_err());
        assert!(with(|times| times.exit_codes.truncate(1)).is_err());
    }

    #[test]
    fn a_moment_is_nothing_else() {
        let mut summary = example::audit();
        summary.started += "\n::error::forged";
        assert!(check(&summary).unwrap_err().contains("`started`"));
    }

    #[test]
    fn what_cannot_be_is_named_with_its_row() {
        let broken = |change: fn(&mut Summary)| {
            let mut summary = example::audit();
            change(&mut summary);
            check(&summary).unwrap_err()
        };
        let row = |problem: &str| problem.contains(" under \"audit\": ");
        assert!(row(&broken(|s| s.results[0].baseline = -1.0)));
        assert!(row(&broken(|s| s.results[0].treated = f64::INFINITY)));
        assert!(row(&broken(|s| s.results[0].effect_pct = -101.0)));
        assert!(row(&broken(|s| {
            s.results[0].low_pct = Some(5.0);
            s.results[0].high_pct = Some(-5.0);
        })));
        assert!(row(&broken(|s| s.results[0].disturbed_pairs = s.results[0].pairs + 1)));
        assert!(row(&broken(|s| {
            let number = |baseline| Some(Contrast { baseline, ..Contrast::default() });
            let latency =
                Latency { p50_ns: number(9.0), p99_ns: number(8.0), ..Latency::default() };
            s.results[0].metrics.latency = Some(latency);
        })));
        assert!(broken(|s| s.elapsed_s = -1.0).contains("elapsed_s"));
        assert!(broken(|s| s.alpha = 2.0).contains("alpha"));
    }
}
