//! The rows of an experiment while it is measured, and what is known of them by now.

use std::time::Duration;

use super::schedule::{PILOT_PAIRS, Schedule};
use crate::result::factorial::{Effect, Factorial};
use crate::result::scheme::Scheme;
use crate::workload::metric::Metric;
use paired::Verdict;
use paired::betting::{Betting, DEFAULT_SCALE, Start};
use paired::carry_over::Turn;
use paired::design::Design;
use paired::judge::{Judgement, MIN_PAIRS, judge_rows};

/// A workload under a treatment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    pub work: usize,
    /// The arm that is held against arm 0.
    pub treated_arm: usize,
    /// s₀: the spread of the pairs' log-ratios expected before the first, for [`Betting::new`].
    pub start_scale: f64,
}

/// Another metric of the same pairs, judged as a claim of its own.
pub struct Further {
    pub metric: Metric,
    /// Whether it was asked for: then the row needs pairs until it has a verdict.
    pub is_wanted: bool,
    pub betting: Betting,
    pub judgement: Judgement,
}

/// An effect of a full factorial design, judged as a claim of its own.
pub struct EffectClaim {
    pub factorial: Factorial,
    pub effect: Effect,
    /// Of the contrasts of whole rounds.
    pub betting: Betting,
    pub judgement: Judgement,
}

/// A row as it is measured.
pub struct RowState {
    pub unit: Unit,
    pub betting: Betting,
    pub judgement: Judgement,
    pub further: Vec<Further>,
    /// In a full factorial design, with the last arm of each workload: the effects of its factors.
    pub effects: Vec<EffectClaim>,
    /// Why this workload gives no result.
    pub failure: Option<String>,
    /// Whether that was in the baseline's arm.
    pub(super) failed_alone: bool,
    pub(super) schedule: Schedule,
    /// Time that its pairs took, launches and all, and how many those were: all, whether it is judged by them
    /// or not.
    spent: Duration,
    measured: usize,
    /// The number of its next pair: that of an earlier session's half pair is not used again.
    pub(super) next_pair: usize,
    /// Until it has a verdict, it is measured before those that are not.
    pub(super) is_first: bool,
    /// What a pair takes, where that is known before the first. Such a row is begun only where there is time
    /// for as many as a verdict needs.
    pub(super) expected_pair: Option<Duration>,
}

/// What an earlier session of the same experiment measured of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// Of its whole pairs.
    pub log_ratios: Vec<f64>,
    /// How each was measured.
    pub turns: Vec<Turn>,
    /// The same of other metrics.
    pub further: Vec<PastReading>,
    pub schedule: Schedule,
    pub spent: Duration,
    pub next_pair: usize,
}

/// What an earlier session measured of another metric.
#[derive(Clone, Debug, PartialEq)]
pub struct PastReading {
    pub metric: Metric,
    pub log_ratios: Vec<f64>,
    pub turns: Vec<Turn>,
}

impl RowState {
    /// A row without pairs.
    pub fn new(unit: Unit, design: &Design) -> RowState {
        let schedule = Schedule::Fixed(Scheme::InSequence);
        let betting = Betting::new(start(unit, &schedule, design));
        let judgement = judge_rows([&betting], design).remove(0);
        RowState {
            unit,
            betting,
            further: Vec::new(),
            effects: Vec::new(),
            judgement,
            failure: None,
            failed_alone: false,
            schedule,
            spent: Duration::ZERO,
            measured: 0,
            next_pair: 0,
            is_first: false,
            expected_pair: None,
        }
        .judging(Metric::judged(design.fixed_pairs, &[]), design)
    }

    /// The same row with these metrics, of which it has no pairs yet.
    pub fn judging(mut self, metrics: Vec<Metric>, design: &Design) -> RowState {
        let start = Start { scale: DEFAULT_SCALE, ..start(self.unit, &self.schedule, design) };
        let betting = Betting::new(start);
        let judgement = judge_rows([&betting], design).remove(0);
        let others = metrics.into_iter().filter(|metric| *metric != Metric::Rate);
        let further = |metric: Metric| Further {
            is_wanted: !metric.is_unasked(),
            metric,
            betting: betting.clone(),
            judgement: judgement.clone(),
        };
        self.further = others.map(further).collect();
        self
    }

    /// The same row with the claims on the effects of this design, of which it has no rounds yet.
    pub fn claim_effects(&mut self, factorial: &Factorial, design: &Design) {
        let betting = Betting::new(start(self.unit, &self.schedule, design));
        let judgement = judge_rows([&betting], design).remove(0);
        let claim = |effect| EffectClaim {
            factorial: factorial.clone(),
            effect,
            betting: betting.clone(),
            judgement: judgement.clone(),
        };
        self.effects = factorial.effects().into_iter().map(claim).collect();
    }

    /// A row with the pairs of an earlier session.
    pub fn resumed(unit: Unit, design: &Design, past: &Past) -> RowState {
        let start = start(unit, &past.schedule, design);
        let betting = Betting::from_log_ratios(&past.log_ratios, start)
            .expect("what is stored was checked to be finite")
            .with_turns(past.turns.clone());
        let judgement = judge_rows([&betting], design).remove(0);
        let metrics = past.further.iter().map(|past| past.metric.clone()).collect();
        let mut row = RowState {
            betting,
            judgement,
            schedule: past.schedule.clone(),
            spent: past.spent,
            measured: past.log_ratios.len(),
            next_pair: past.next_pair,
            ..RowState::new(unit, design)
        }
        .judging(metrics, design);
        for (further, past) in row.further.iter_mut().zip(&past.further) {
            let start = Start { scale: DEFAULT_SCALE, ..start };
            further.betting = Betting::from_log_ratios(&past.log_ratios, start)
                .expect("what is stored was checked to be finite")
                .with_turns(past.turns.clone());
        }
        row.choose_scheme(design);
        row
    }

    /// The same row, whose pairs are taken so, unless earlier ones of it have begun otherwise.
    pub fn on(mut self, schedule: Schedule, design: &Design) -> RowState {
        let is_begun = self.next_pair >= PILOT_PAIRS;
        if matches!(self.schedule, Schedule::Fixed(_)) && self.schedule != schedule && !is_begun {
            self.judge_by(schedule, design);
        }
        self
    }

    /// From now on it is judged by what is to come.
    fn judge_by(&mut self, schedule: Schedule, design: &Design) {
        self.schedule = schedule;
        self.betting = Betting::new(start(self.unit, &self.schedule, design));
        self.judgement = judge_rows([&self.betting], design).remove(0);
        let fresh = Start { scale: DEFAULT_SCALE, ..start(self.unit, &self.schedule, design) };
        for further in &mut self.further {
            further.betting = Betting::new(fresh);
            further.judgement = judge_rows([&further.betting], design).remove(0);
        }
    }

    /// It was found out that it cannot take turns. Whether it gave them up: with a pair in turns it is too
    /// late for that.
    pub(super) fn give_up_turns(&mut self, design: &Design) -> bool {
        let has_choice = matches!(self.schedule, Schedule::Open(_)) && self.betting.pairs() == 0;
        if has_choice {
            self.judge_by(Schedule::Fixed(Scheme::InSequence), design);
        }
        has_choice
    }

    /// Adds what a pair took; the pilot's last one chooses.
    pub(super) fn spend(
        &mut self,
        scheme: Scheme,
        log_ratio: f64,
        spent: Duration,
        design: &Design,
    ) {
        self.spent += spent;
        self.measured += 1;
        if let Schedule::Open(pilot) = &mut self.schedule {
            pilot.add(scheme, log_ratio, spent);
        }
        self.choose_scheme(design);
    }

    fn choose_scheme(&mut self, design: &Design) {
        let Schedule::Open(pilot) = &self.schedule else { return };
        if self.next_pair < PILOT_PAIRS {
            return;
        }
        match pilot.choose() {
            Scheme::InTurns => self.schedule = Schedule::Chosen(Scheme::InTurns),
            Scheme::InSequence => self.judge_by(Schedule::Chosen(Scheme::InSequence), design),
        }
    }

    /// How many pairs it has, whether it is judged by them or not.
    pub(super) fn measured(&self) -> usize {
        self.measured
    }

    /// The same row, to be measured before others until it has a verdict.
    pub fn first(self) -> RowState {
        RowState { is_first: true, ..self }
    }

    /// The same row, whose pairs are known to take so long.
    pub fn expecting(self, pair: Option<Duration>) -> RowState {
        RowState { expected_pair: pair, ..self }
    }

    fn comes_first(&self) -> bool {
        self.is_first && self.judgement.verdict == Verdict::Inconclusive
    }

    /// Of a row that is begun only where it can be judged, the time that it lacks for that.
    fn lacks(&self) -> Option<Duration> {
        let pairs = MIN_PAIRS.saturating_sub(self.betting.pairs()) as u32;
        self.expected_pair.map(|_| self.pair_cost() * pairs)
    }

    /// Whether it needs no more pairs.
    pub fn is_done(&self, design: &Design) -> bool {
        let has_all = design.fixed_pairs.is_some_and(|pairs| self.betting.pairs() >= pairs);
        let is_decided = design.fixed_pairs.is_none()
            && self.judgement.verdict != Verdict::Inconclusive
            && self.judgement.precise
            && self.open_wanted().next().is_none();
        self.failure.is_some() || has_all || is_decided
    }

    /// What was asked for and has no verdict yet. What the first pairs do not have the later ones will not
    /// have either.
    fn open_wanted(&self) -> impl Iterator<Item = &Judgement> {
        let is_known =
            |further: &&Further| further.betting.pairs() > 0 || self.betting.pairs() < MIN_PAIRS;
        let wanted = self.further.iter().filter(|further| further.is_wanted).filter(is_known);
        let effects = self.effects.iter().map(|claim| &claim.judgement);
        let judgements = wanted.map(|further| &further.judgement).chain(effects);
        judgements.filter(|judgement| judgement.verdict == Verdict::Inconclusive)
    }

    /// The time that it will probably take until it needs no more pairs.
    fn time_left(&self) -> Duration {
        let wanted = self.open_wanted().filter_map(|judgement| judgement.pairs_needed);
        self.time_of(wanted.fold(self.judgement.pairs_left, usize::max))
    }

    /// Whether any of its metrics has a verdict.
    fn has_verdict(&self) -> bool {
        self.judgements().any(|judgement| judgement.verdict != Verdict::Inconclusive)
    }

    /// Of all metrics that the samples have.
    fn judgements(&self) -> impl Iterator<Item = &Judgement> {
        let known = self.further.iter().filter(|further| further.betting.pairs() >= MIN_PAIRS);
        std::iter::once(&self.judgement).chain(known.map(|further| &further.judgement))
    }

    /// The same until any of its metrics has a verdict, or, where one has, until its rate has; or, where
    /// that has one, until it needs no more.
    fn time_to_next_step(&self) -> Duration {
        let needed = match self.judgement.verdict {
            Verdict::Inconclusive if self.has_verdict() => self.judgement.pairs_needed,
            Verdict::Inconclusive => self.judgements().filter_map(|one| one.pairs_needed).min(),
            _ => return self.time_left(),
        };
        self.time_of(needed.unwrap_or(usize::MAX))
    }

    fn time_of(&self, pairs: usize) -> Duration {
        self.pair_cost().saturating_mul(u32::try_from(pairs).unwrap_or(u32::MAX))
    }

    /// Whether another pair will probably end in the time left. A first one is always begun, so that
    /// a budget that is too small shows a number and says that it is inconclusive.
    pub fn can_begin_pair(&self, left: Duration) -> bool {
        let is_begun_anyway = self.measured == 0 && self.expected_pair.is_none();
        is_begun_anyway || self.pair_cost() <= left
    }

    /// Time that one of its pairs takes on average.
    pub fn pair_cost(&self) -> Duration {
        match self.measured {
            0 => self.expected_pair.unwrap_or_default(),
            pairs => self.spent / pairs as u32,
        }
    }
}

fn start(unit: Unit, schedule: &Schedule, design: &Design) -> Start {
    Start {
        scale: schedule.scale(unit.start_scale),
        planned_pairs: design.planned_pairs,
        capital: schedule.capital(),
    }
}

/// Judges all rows together. Those that failed have no result, but count among those compared.
pub fn judge(rows: &mut [RowState], design: &Design) {
    let claims = rows.iter().map(|row| 1 + row.further.len() + row.effects.len()).sum();
    let design = &Design { rows: design.rows.max(claims), ..design.clone() };
    let measured = || rows.iter().filter(|row| row.failure.is_none());
    let further = measured().flat_map(|row| row.further.iter().map(|further| &further.betting));
    let effects = measured().flat_map(|row| row.effects.iter().map(|claim| &claim.betting));
    let primary = measured().map(|row| &row.betting);
    let mut judgements = judge_rows(primary.chain(further).chain(effects), design).into_iter();
    let measured: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].failure.is_none()).collect();
    for &row in &measured {
        rows[row].judgement = judgements.next().expect("one for each");
    }
    for &row in &measured {
        for further in &mut rows[row].further {
            further.judgement = judgements.next().expect("one for each");
        }
    }
    for &row in &measured {
        for claim in &mut rows[row].effects {
            claim.judgement = judgements.next().expect("one for each");
        }
    }
}

/// The open rows that are worth a pair now, with so much of the budget left.
///
/// Where it lasts for all, those are all. Where it does not, it goes to those that will be decided
/// soonest: shared out evenly it would leave every row a little short. When none is left that will
/// probably be decided, all have their turns, as such estimates are rough: those without a verdict take
/// half of them, and a row occurs more than once. Which row is measured next depends on the past only, so
/// the promise stands.
pub fn worth_measuring(rows: &[RowState], design: &Design, left: Duration) -> Vec<usize> {
    let mut open: Vec<usize> = (0..rows.len())
        .filter(|&row| !rows[row].is_done(design) && rows[row].can_begin_pair(left))
        .collect();
    if design.fixed_pairs.is_some() {
        return open;
    }
    if open.iter().any(|row| rows[*row].comes_first()) {
        open.retain(|row| rows[*row].comes_first());
        return open;
    }
    let mut lacking = Duration::ZERO;
    open.retain(|row| {
        let lacks = rows[*row].lacks().unwrap_or_default();
        let fits = lacks.is_zero() || lacking + lacks <= left;
        lacking += if fits { lacks } else { Duration::ZERO };
        fits
    });
    // A verdict comes before precision, and before either a row needs pairs to be judged by.
    open.sort_by_key(|&row| {
        let state = &rows[row];
        let is_decided = state.judgement.verdict != Verdict::Inconclusive;
        let has_pairs = state.betting.pairs() >= MIN_PAIRS;
        (has_pairs, state.has_verdict(), is_decided, state.time_to_next_step())
    });
    let mut planned = Duration::ZERO;
    let last = open
        .iter()
        .take_while(|&&row| {
            planned = planned.saturating_add(rows[row].time_to_next_step());
            rows[row].betting.pairs() < MIN_PAIRS || planned <= left
        })
        .count();
    if last > 0 {
        open.truncate(last);
    } else {
        let is_undecided = |&row: &usize| !rows[row].has_verdict();
        let undecided: Vec<usize> = open.iter().copied().filter(is_undecided).collect();
        let decided = open.len() - undecided.len();
        let more = (decided / undecided.len().max(1)).saturating_sub(1);
        open.extend(undecided.repeat(more));
    }
    open.sort_unstable();
    open
}

/// The time that the open rows will probably take, or what is left of the budget.
pub fn time_left(rows: &[RowState], design: &Design, budget: Duration) -> Option<Duration> {
    let open = rows.iter().filter(|row| !row.is_done(design));
    let needed = open.map(RowState::time_left).fold(Duration::ZERO, Duration::saturating_add);
    Some(needed.min(budget))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paired::simulated::white_row;

    /// A row of pairs of 100 ms each that lacks so many for a verdict, and for that and precision.
    fn undecided(pairs_needed: usize, pairs_left: usize) -> RowState {
        let unit = Unit { work: 0, treated_arm: 1, start_scale: 0.01 };
        let mut row = RowState::new(unit, &Design::default());
        row.betting = white_row(0.0, MIN_PAIRS, 1);
        (row.spent, row.measured) = (Duration::from_millis(100) * MIN_PAIRS as u32, MIN_PAIRS);
        row.judgement.pairs_needed = Some(pairs_needed);
        row.judgement.pairs_left = pairs_left;
        row
    }

    #[test]
    fn verdicts_in_reach_are_measured_first_whatever_their_precision_takes() {
        let rows = [undecided(1000, 1000), undecided(10, 5000), undecided(20, 5000)];
        let within =
            |seconds| worth_measuring(&rows, &Design::default(), Duration::from_secs_f64(seconds));
        assert_eq!(within(3.5), [1, 2]);
        assert_eq!(within(2.5), [1]);
        assert_eq!(within(0.5), [0, 1, 2], "none is in reach");
        assert_eq!(within(500.0), [0, 1, 2]);
    }

    #[test]
    fn what_comes_first_does_so_until_it_has_its_verdict() {
        let chosen =
            |rows: &[RowState]| worth_measuring(rows, &Design::default(), Duration::from_secs(600));
        let mut decided = undecided(50, 5000).first();
        assert_eq!(chosen(&[undecided(10, 10), undecided(50, 5000).first()]), [1]);
        decided.judgement.verdict = Verdict::Slower;
        assert_eq!(chosen(&[undecided(10, 10), decided]), [0, 1]);
    }

    #[test]
    fn a_row_whose_pairs_are_known_is_begun_only_where_it_can_be_judged() {
        let unit = Unit { work: 0, treated_arm: 1, start_scale: 0.01 };
        let new = |seconds| {
            let pair = Some(Duration::from_secs(seconds));
            RowState::new(unit, &Design::default()).expecting(pair)
        };
        let within = |rows: &[RowState], seconds| {
            worth_measuring(rows, &Design::default(), Duration::from_secs(seconds))
        };
        // Eight pairs each.
        assert_eq!(within(&[new(1), new(2)], 24), [0, 1]);
        assert_eq!(within(&[new(1), new(2)], 23), [0]);
        assert_eq!(within(&[new(1), new(2)], 7), [0; 0]);
        assert_eq!(within(&[RowState::new(unit, &Design::default())], 0), [0]);
    }

    #[test]
    fn what_is_out_of_reach_takes_half_of_the_turns() {
        let decided = || {
            let mut row = undecided(0, 5000);
            row.judgement.verdict = Verdict::Slower;
            row
        };
        let rows = [undecided(1000, 1000), decided(), decided(), decided()];
        let chosen = worth_measuring(&rows, &Design::default(), Duration::from_secs(5));
        assert_eq!(chosen, [0, 0, 0, 1, 2, 3]);
    }
}
