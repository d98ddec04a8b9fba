//! How many requests a second does a server bear before their p99 passes a limit? Each search begins with
//! servers of its own, and halves the range in which the answer lies, by passes in an open loop: requests
//! begin at moments of chance, and the time of each counts from there.
//!
//! A stall of a tenth of a second is more than 1 % of a pass of two seconds, though it may come once a
//! minute. So a pass beyond the limit is repeated, and two of three decide. A wrong decision would cut off
//! all higher rates: so before a search ends, the lowest failed rate gets a second trial.
//!
//! A pass near the limit is within it by chance, and a start has luck of its own; so there are several
//! searches, and no rule says how they scatter. All of them are on one side of the median with a probability
//! of 2 in 2^searches: from the lowest to the highest is an interval for what a start bears in the median.
//! The next start lies in it with a probability of (searches - 1) / (searches + 1): it is as likely to be
//! the lowest or the highest of them all as any other is.

use super::host::Host;
use super::host::passes::PassFound;
use super::measure::Session;
use super::platform::{SampleError, SampleSlot, Stop};
use super::request::ProgressSink;
use weigh_model::format;
use weigh_model::ids::{ArmId, PairId, WorkId};
use weigh_model::record::Measured;
use weigh_workload::executable::Length;

/// 96.9 % of their intervals have the median in them.
pub const SEARCHES: usize = 6;
/// Where the ends of the range are as near as this, one of them is the answer.
const NEAR: f64 = 1.04;
/// The range at first, in parts of what the clients get in a closed loop.
const LOWEST: f64 = 1.0 / 32.0;
const HIGHEST: f64 = 1.5;
/// Share of requests that are slower than a p99.
const SLOW_SHARE: f64 = 0.01;
/// A p99 of fewer is a matter of a few.
const LEAST_REQUESTS: f64 = 1200.0;
const MOST_MS: f64 = 20_000.0;

/// A search: the highest rate that was within the limit, and those that were not.
#[derive(Clone, Debug, PartialEq)]
pub struct RateSearch {
    low: f64,
    /// The lowest is the last one. The first one is where the search ends, without a trial.
    beyond: Vec<f64>,
    /// True if the lowest rate beyond the limit had its second trial.
    is_confirmed: bool,
    /// Passes of the present trial: within the limit, and beyond it.
    passes: [usize; 2],
}

impl RateSearch {
    /// Where so many a second are answered to clients that wait for each other.
    pub fn around(closed_rate: f64) -> RateSearch {
        let (low, beyond) = (closed_rate * LOWEST, vec![closed_rate * HIGHEST]);
        RateSearch { low, beyond, is_confirmed: false, passes: [0; 2] }
    }

    /// The lowest rate that is beyond the limit, as far as is known.
    pub fn high(&self) -> f64 {
        *self.beyond.last().expect("the first one stays")
    }

    /// The rate of the next pass; `None` where the answer is known.
    pub fn next(&self) -> Option<f64> {
        if self.high() / self.low > NEAR {
            return Some((self.low * self.high()).sqrt());
        }
        (self.beyond.len() > 1 && !self.is_confirmed).then(|| self.high())
    }

    /// Takes what a pass at the rate of `next` was: one within the limit is enough if it comes first; of
    /// three, two decide. Whether the rate was found to be within the limit.
    pub fn learn(&mut self, rate: f64, is_within: bool) -> bool {
        self.passes[usize::from(!is_within)] += 1;
        match self.passes {
            [1, 0] | [2, _] => self.bears(rate),
            [_, 2] if rate < self.high() => {
                self.beyond.push(rate);
                self.is_confirmed = false;
            }
            [_, 2] => self.is_confirmed = true,
            _ => return false,
        }
        self.passes = [0; 2];
        self.low == rate
    }

    fn bears(&mut self, rate: f64) {
        self.low = rate;
        self.is_confirmed &= rate < self.high();
        let first = self.beyond[0];
        self.beyond.retain(|beyond| *beyond > rate || *beyond == first);
    }
}

enum SearchFound {
    /// The highest rate within the limit, with the sample of that pass.
    Bears(f64, Box<Measured>),
    /// No rate that was tried was within it.
    Below,
    /// Why it is none.
    Failed(String),
}

impl Session<'_> {
    /// Searches for each work, one work after the other.
    pub(super) fn seek_capacity(
        &self,
        host: &mut Host,
        works: &[WorkId],
        (limit_ns, pass_ms): (f64, u64),
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        for &work in works {
            let name = self.works[work].name().to_string();
            let mut rates = Vec::new();
            for search in 0..SEARCHES {
                let slot = SampleSlot::alone(self.unit(work, ArmId::BASELINE), PairId(search));
                let number = format!("{name}, search {} of {SEARCHES}", search + 1);
                match self.search(host, slot, (limit_ns, pass_ms), &number, progress_sink)? {
                    SearchFound::Bears(rate, measured) => {
                        host.keep_pass(&measured)?;
                        rates.push(rate);
                    }
                    SearchFound::Below => rates.push(0.0),
                    SearchFound::Failed(reason) => {
                        host.keep_failure(work, ArmId::BASELINE, &reason)?;
                        rates.clear();
                        break;
                    }
                }
            }
            if rates.is_empty() {
                continue;
            }
            match sentence(&name, limit_ns, &rates) {
                Ok(sentence) => {
                    progress_sink.announce(&sentence);
                    host.add_fact(sentence)?;
                }
                Err(reason) => host.keep_failure(work, ArmId::BASELINE, &reason)?,
            }
        }
        Ok(())
    }

    fn search(
        &self,
        host: &mut Host,
        slot: SampleSlot,
        (limit_ns, pass_ms): (f64, u64),
        number: &str,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<SearchFound, Stop> {
        progress_sink.begins(&format!("measuring {number}"));
        match host.begin_passes(slot.unit.work, slot.arm) {
            Err(SampleError::Workload(reason)) => return Ok(SearchFound::Failed(reason)),
            begun => begun?,
        }
        let pass_ms = pass_ms as f64;
        let mut best = None;
        // Each pass knows its visits by its number.
        let mut passes = slot.pair.0 * 1000;
        let mut probe = |host: &mut Host, rate: f64| {
            passes += 1;
            let least_ms = if rate > 0.0 { LEAST_REQUESTS / rate * 1e3 } else { 0.0 };
            let target_ms = pass_ms.max(least_ms).min(MOST_MS.max(pass_ms)) as u64;
            let per_1000s = (rate * 1e3).round() as u64;
            let length = Length { endures: true, per_1000s, ..Length::of_ms(target_ms) };
            let slot = SampleSlot { pair: PairId(passes), ..slot };
            self.take(|| host.probe(&slot, length))?.map_err(Stop::Failed)
        };
        let (closed, _) = probe(host, 0.0)?;
        let closed_rate = match (closed.good_rate, why_not(&closed)) {
            (Some(rate), None) => rate,
            (_, problem) => {
                let problem = problem.unwrap_or("no answer was good".into());
                return Ok(SearchFound::Failed(problem));
            }
        };
        let mut search = RateSearch::around(closed_rate);
        while let Some(rate) = search.next() {
            let (pass, measured) = probe(host, rate)?;
            if !pass.are_there {
                let problem = pass.problem.unwrap_or_default();
                return Ok(SearchFound::Failed(format!("its servers exited: {problem}")));
            }
            let requests = measured.as_ref().map_or(0.0, |measured| measured.sample.operations);
            let is_within = is_within(&pass, requests, limit_ns);
            let is_borne = search.learn(rate, is_within);
            progress_sink.announce(&format!("{number}: {}", tried(rate, &pass, is_within)));
            if let Some(measured) = measured.filter(|_| is_borne) {
                best = Some((rate, pass.p99_ns, Measured { pair: slot.pair, ..measured }));
            }
        }
        let (found, said) = match best {
            Some((rate, p99_ns, measured)) => {
                let p99 = format::seconds(p99_ns.unwrap_or_default() / 1e9);
                let said = format!("{} requests/s with a p99 of {p99}", format::rate(rate, ""));
                (SearchFound::Bears(rate, Box::new(measured)), said)
            }
            None => {
                let (rate, limit) =
                    (format::rate(search.high(), ""), format::seconds(limit_ns / 1e9));
                let said =
                    format!("no rate met the p99 limit of {limit}, down to {rate} requests/s");
                (SearchFound::Below, said)
            }
        };
        let closed = format::rate(closed_rate, "");
        progress_sink.announce(&format!("{number}: {said} (closed loop: {closed} requests/s)."));
        Ok(found)
    }
}

/// With every answer right, and no more requests that could not begin than may be slow.
fn is_within(pass: &PassFound, requests: f64, limit_ns: f64) -> bool {
    let is_fast = pass.p99_ns.is_some_and(|p99_ns| p99_ns <= limit_ns);
    is_fast && pass.unsent <= SLOW_SHARE * requests && why_not(pass).is_none()
}

/// Why what a pass says is nothing to go by.
fn why_not(pass: &PassFound) -> Option<String> {
    let wrong = pass.wrong.as_ref().map(|wrong| wrong.sentence());
    pass.problem.clone().or(wrong)
}

fn tried(rate: f64, pass: &PassFound, is_within: bool) -> String {
    let rate = format::rate(rate, "");
    let p99 = pass.p99_ns.map(|ns| format!("a p99 of {}", format::seconds(ns / 1e9)));
    let said = why_not(pass).or(p99).unwrap_or("too few answers for a p99".into());
    let verdict = if is_within { "within the limit" } else { "not within the limit" };
    let unsent = match pass.unsent {
        unsent if unsent > 0.0 => {
            format!(", and {} were not sent", format::plural(unsent as usize, "request"))
        }
        _ => String::new(),
    };
    format!("{rate} requests/s: {said}, {verdict}{unsent}")
}

/// Describes the rate that a start bears. A rate of 0 stands for a search in which no rate was
/// within the limit.
///
/// # Errors
/// If half of the rates or more are 0: they have no usable median.
fn sentence(name: &str, limit_ns: f64, rates: &[f64]) -> Result<String, String> {
    let limit = format::seconds(limit_ns / 1e9);
    let without = rates.iter().filter(|rate| **rate == 0.0).count();
    let median = paired::estimate::median(rates).filter(|_| 2 * without < rates.len());
    let median = median.ok_or_else(|| {
        format!(
            "{without} of {} searches found no rate within the p99 limit of {limit}: allow a higher p99 \
             (--capacity), or use fewer --clients",
            rates.len()
        )
    })?;
    let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let coverage_pct = 100.0 * (1.0 - 0.5f64.powi(rates.len() as i32 - 1));
    let note = match without {
        0 => String::new(),
        _ => format!("; {without} of them found no rate within the limit"),
    };
    Ok(format!(
        "{name}: {} requests/s with a p99 of at most {limit}: the median of {} searches, each with its own \
         servers{note}. The {coverage_pct:.1} % interval of the median is {} to {} requests/s.",
        format::rate(median, ""),
        rates.len(),
        if without > 0 { "0".into() } else { format::rate(lowest, "") },
        format::rate(highest, "")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::repetitions;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Searches for the limit of a server that keeps it up to about 700 requests a second.
    fn search(chance: &mut ChaCha8Rng, noise: f64) -> f64 {
        let bears = 700.0 * (1.0 + noise * (chance.random::<f64>() - 0.5));
        ends_at(|rate| rate <= bears * (1.0 + noise / 2.0 * (chance.random::<f64>() - 0.5)))
    }

    /// Where a search ends that begins at a closed loop's 1000 a second.
    fn ends_at(mut pass: impl FnMut(f64) -> bool) -> f64 {
        let mut search = RateSearch::around(1000.0);
        let mut passes = 0;
        while let Some(rate) = search.next() {
            passes += 1;
            assert!(passes < 200, "{search:?}");
            search.learn(rate, pass(rate));
        }
        search.low
    }

    #[test]
    fn a_search_ends_next_to_what_the_server_bears() {
        let found = search(&mut ChaCha8Rng::seed_from_u64(1), 0.0);
        assert!(found <= 700.0 && found * NEAR >= 700.0, "{found}");
    }

    #[test]
    fn two_of_three_passes_decide_and_the_lowest_that_failed_is_tried_again() {
        let mut search = RateSearch::around(1000.0);
        let first = search.next().unwrap();
        assert!(!search.learn(first, false));
        assert_eq!(search.next(), Some(first), "it is repeated");
        search.learn(first, true);
        assert_eq!(search.next(), Some(first), "one and one");
        assert!(search.learn(first, true));
        assert!(search.next() > Some(first));
        // Both first trials of a rate fail by chance: the end finds that out.
        let mut failures = 0;
        let found = ends_at(|rate| {
            let fails_by_chance = rate == first && failures < 2;
            failures += usize::from(fails_by_chance);
            rate <= 700.0 && !fails_by_chance
        });
        assert_eq!(failures, 2);
        assert!(found <= 700.0 && found * NEAR >= 700.0, "{found}");
    }

    /// A pass over a server with two workers, who take 2 ms for a request, more or less, and which as a whole
    /// stalls for 100 ms now and then: whether its p99 is within 20 ms.
    fn pass(chance: &mut ChaCha8Rng, rate: f64, s_between_stalls: f64) -> bool {
        let (stall_s, service_s, limit_s) = (0.1, 0.002, 0.02);
        let mut gap = |mean: f64| -mean * (1.0 - chance.random::<f64>()).ln();
        let lasts_s = (LEAST_REQUESTS / rate).clamp(2.0, MOST_MS / 1e3);
        let (mut free, mut due, mut stall) = ([0.0f64; 2], 0.0, gap(s_between_stalls));
        let (mut requests, mut slow, mut unsent) = (0.0, 0.0, 0.0);
        loop {
            due += gap(1.0 / rate);
            if due >= lasts_s {
                return slow <= SLOW_SHARE * requests && unsent <= SLOW_SHARE * requests;
            }
            let worker = usize::from(free[1] < free[0]);
            let mut begins = free[worker].max(due);
            if begins >= lasts_s {
                unsent += 1.0;
                continue;
            }
            while stall + stall_s < begins {
                stall += stall_s + gap(s_between_stalls);
            }
            if begins >= stall {
                begins = stall + stall_s;
            }
            let ends = begins + gap(service_s);
            free[worker] = if begins < stall && ends > stall { ends + stall_s } else { ends };
            requests += 1.0;
            slow += f64::from(free[worker] - due > limit_s);
        }
    }

    /// Once in 20 s, which is 0.5 % of the time, so that the p99 is within the limit at nearly every rate
    /// that it is without. Where one pass decided, a third of such searches ended below 600.
    #[test]
    fn stalls_that_are_rare_end_few_searches_early() {
        let mut chance = ChaCha8Rng::seed_from_u64(3);
        let searches = repetitions(60, 1000) as usize;
        let mut below = |s_between_stalls: f64| {
            let found = || ends_at(|rate| pass(&mut chance, rate, s_between_stalls));
            std::iter::repeat_with(found).take(searches).filter(|rate| *rate < 600.0).count()
        };
        let (never, rare) = (below(f64::INFINITY), below(20.0));
        assert_eq!(never, 0);
        assert!(rare <= searches / 12, "{rare} of {searches}");
    }

    #[test]
    fn the_interval_has_the_median_of_starts_in_it() {
        let mut chance = ChaCha8Rng::seed_from_u64(2);
        let mut all: Vec<f64> = (0..2000).map(|_| search(&mut chance, 0.3)).collect();
        let intervals: Vec<(f64, f64)> = all
            .chunks_exact(SEARCHES)
            .map(|of| {
                (
                    of.iter().copied().fold(f64::MAX, f64::min),
                    of.iter().copied().fold(0.0, f64::max),
                )
            })
            .collect();
        all.sort_by(f64::total_cmp);
        let median = all[all.len() / 2];
        let has = intervals.iter().filter(|(low, high)| (*low..=*high).contains(&median)).count();
        let share = has as f64 / intervals.len() as f64;
        assert!(share > 0.94, "{share}");
    }

    #[test]
    fn what_was_found_is_a_sentence() {
        let said = sentence("x", 5e7, &[600.0, 580.0, 640.0, 610.0, 590.0, 620.0]).unwrap();
        for part in [
            "605.0 requests/s",
            "p99 of at most 50 ms",
            "96.9 % interval of the median is 580.0 to 640.0",
            "6 searches",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = sentence("x", 5e7, &[600.0, 0.0, 640.0, 610.0, 590.0, 620.0]).unwrap();
        for part in ["605.0 requests/s", "median is 0 to 640.0", "1 of them found no rate"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let none = sentence("x", 5e7, &[600.0, 0.0, 640.0, 0.0, 590.0, 0.0]).unwrap_err();
        assert!(none.starts_with("3 of 6 searches found no rate"), "{none}");
    }
}
