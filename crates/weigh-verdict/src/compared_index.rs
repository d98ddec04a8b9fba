//! The verdict on a suite's index: bets on the mean log-ratio of rounds.
//!
//! ```text
//! D_i = 1/k Σ_r d_{r,i}
//! ```
//!
//! A round is the i-th pair of each of the k rows. ln of the ratio of two geometric means is the mean of the
//! rows' log-ratios, so the centre of D_i is the change of the index. Given what the machine does, each
//! d_{r,i} is symmetric about its row's effect, by the coin that orders it. So D_i is symmetric about the
//! mean effect, and bets on it are fair. Rows end when they have a verdict, so the number of rounds depends
//! on the data; by Ville's inequality the error rate holds for any number of them.
//!
//! The verdict on the index is not part of the rows' Holm family; it has its own error rate.

use super::effects::RowsOfEffects;
use super::log_ratio::{bound, percent};
use super::pairs::Measurements;
use paired::Verdict;
use paired::betting::{Betting, DEFAULT_SCALE, Start};
use paired::design::Design;
use paired::judge::{Judgement, judge_rows};
use std::collections::BTreeSet;
use weigh_model::ids::ArmId;
use weigh_model::record::Stored;
use weigh_model::result::compared_index::ComparedIndex;
use weigh_model::workload::clock::is_path_length;
use weigh_model::workload::suite::{self, Index, Suite};

/// The indices of the suites that were asked for, under each treatment, in each number of copies.
pub fn of(stored: &Stored, rows: &[Measurements], known: &RowsOfEffects) -> Vec<ComparedIndex> {
    let header = &stored.header;
    // Instruction counts are not comparable with the original's rates.
    let in_instructions =
        |row: &Measurements| row.totals.unit.as_deref().is_some_and(is_path_length);
    if rows.iter().any(in_instructions) {
        return Vec::new();
    }
    let embedded = suite::embedded().unwrap_or_default();
    let named = embedded.iter().filter(|suite| header.asked_for.contains(&suite.name));
    let suites: Vec<&Suite> = header.suites.iter().map(|own| &own.suite).chain(named).collect();
    let copies: BTreeSet<usize> = header.works.iter().map(|work| work.name.copies()).collect();
    let mut all = Vec::new();
    for suite in suites.into_iter().filter(|suite| suite.index == Some(Index::GeometricMean)) {
        for arm in (1..header.arms.len()).map(ArmId) {
            let of_copies =
                copies.iter().filter_map(|n| index(stored, rows, known, (suite, arm, *n)));
            all.extend(of_copies);
        }
    }
    all
}

/// `None` if a workload with a baseline has no pairs: the index needs all of them.
fn index(
    stored: &Stored,
    measurements: &[Measurements],
    known: &RowsOfEffects,
    (suite, arm, copies): (&Suite, ArmId, usize),
) -> Option<ComparedIndex> {
    let name = |row: usize| &stored.header.works[measurements[row].work].name;
    let counted = suite.members.iter().filter(|member| member.baseline.is_some());
    let find = |workload: &str| {
        (0..measurements.len()).find(|row| {
            let is_its = name(*row).name == workload && name(*row).copies() == copies;
            is_its && measurements[*row].arm == arm && name(*row).load.is_none()
        })
    };
    let rows: Vec<usize> = counted.map(|member| find(&member.name)).collect::<Option<_>>()?;
    if rows.len() < 2 {
        return None;
    }
    let series: Vec<&[f64]> = rows.iter().map(|row| known.bettings[*row].values()).collect();
    // Each row chose the scheme of its pairs by a stake of its own.
    let capital = rows.iter().map(|row| measurements[*row].schedule.capital()).product();
    let (betting, mut judgement) = judge(&series, capital, known.design);
    let weight = 1.0 / rows.len() as f64;
    let weighted: Vec<(usize, f64)> = rows.iter().map(|row| (*row, weight)).collect();
    known.withhold(&mut judgement, measurements, &weighted);
    if rows.iter().any(|row| known.differ[*row]) {
        judgement.verdict = Verdict::Inconclusive;
    }
    let is_opposite = |row: &&usize| match known.judged[**row].verdict {
        Verdict::Inconclusive | Verdict::Equivalent => false,
        verdict => ![Verdict::Inconclusive, verdict].contains(&judgement.verdict),
    };
    Some(ComparedIndex {
        suite: suite.name.clone(),
        treatment: stored.header.arms[arm].clone(),
        copies,
        workloads: rows.len(),
        effect_pct: percent(judgement.estimate),
        low_pct: bound(judgement.interval.low),
        high_pct: bound(judgement.interval.high),
        verdict: judgement.verdict,
        withheld: judgement.withheld,
        within_margin: judgement.within_margin,
        rounds: betting.pairs(),
        opposite: rows.iter().filter(is_opposite).map(|row| name(*row).clone()).collect(),
    })
}

/// Judges the rounds as the only claim.
fn judge(series: &[&[f64]], capital: f64, design: &Design) -> (Betting, Judgement) {
    let count = series.iter().map(|of_row| of_row.len()).min().unwrap_or(0);
    let mean =
        |round: usize| series.iter().map(|of_row| of_row[round]).sum::<f64>() / series.len() as f64;
    let rounds: Vec<f64> = (0..count).map(mean).collect();
    let start = Start { capital, ..DEFAULT_SCALE.into() };
    let betting = Betting::from_log_ratios(&rounds, start).expect("rows keep finite values");
    let judgement = judge_rows([&betting], &Design { rows: 1, ..*design }).remove(0);
    (betting, judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paired::judge::MIN_PAIRS;
    use paired::simulated::white_pairs;

    /// Rows with these effects, of up to 40 pairs that scatter by 1 %.
    fn rows(effects: &[f64], seed: u64) -> Vec<Vec<f64>> {
        let row = |(number, effect): (usize, &f64)| {
            let noise = white_pairs(0.0, 40, seed * 100 + number as u64);
            noise.into_iter().map(|d| effect + d).collect()
        };
        effects.iter().enumerate().map(row).collect()
    }

    fn verdict(rows: &[Vec<f64>], rounds: usize) -> Verdict {
        let series: Vec<&[f64]> = rows.iter().map(|row| &row[..rounds]).collect();
        judge(&series, 0.95, &Design::default()).1.verdict
    }

    /// The worst that a choice of the number of rounds can do: it looks at the verdict after each.
    #[test]
    fn rows_that_cancel_out_have_no_index_that_changed_whenever_one_stops() {
        let effects = [0.10, -0.02, -0.05, 0.0, -0.03];
        let is_false = |seed: &u64| {
            let rows = rows(&effects, *seed);
            let changed = |n| matches!(verdict(&rows, n), Verdict::Slower | Verdict::Faster);
            (MIN_PAIRS..=40).any(changed)
        };
        let wrong = (1..=300).filter(is_false).count();
        // At 5 %, 15 are expected at most, and 25 or more of 300 have a chance below 1 %.
        assert!(wrong < 25, "{wrong} of 300");
    }

    #[test]
    fn a_mean_that_changed_is_found_though_a_row_contradicts_it() {
        let slower = |seed| verdict(&rows(&[-0.06, -0.05, 0.03, -0.04], seed), 40);
        let found = (1..=40).filter(|seed| slower(*seed) == Verdict::Slower).count();
        assert!(found >= 38, "{found} of 40");
    }
}
