//! The rows of an experiment while it is measured, and what is known of them by now.

use std::time::Duration;

use super::readings::Readings;
use paired::Verdict;
use paired::betting::{Betting, DEFAULT_SCALE, Start};
use paired::carry_over::Turn;
use paired::design::Design;
use paired::doubt::Doubt;
use paired::judge::{Judgement, MIN_PAIRS, WeightedClaim, judge_claims, judge_rows, least_pairs};
use weigh_model::format;
use weigh_model::ids::{ArmId, PairId, RowId, WorkId};
use weigh_model::record::RowPlan;
use weigh_model::result::factorial::{Effect, Factorial};
use weigh_model::result::scheme::{LEAST_INTERLEAVED, Scheme, StartScales};
use weigh_model::workload::metric::Metric;
use weigh_verdict::effect_doubts::ArmOfEffect;
use weigh_verdict::family::ClaimWeights;
use weigh_verdict::gate;
use weigh_verdict::interleaved::{self, Claims};
use weigh_verdict::late::{self, AGE, Late};
use weigh_verdict::outside::OutsideUse;
use weigh_verdict::prior_row::PriorRow;
use weigh_verdict::schedule::{PILOT_PAIRS, Schedule, SchemePilot, plan};

/// One of so many sequential pairs is clean: the coins of this pair and of the one before decide that. Clean
/// pairs have to confirm a favourable verdict.
const PAIRS_PER_CLEAN: usize = 4;

/// A workload under a treatment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowKey {
    pub work: WorkId,
    /// The arm that is compared with the baseline.
    pub treated_arm: ArmId,
    /// s₀: the spread of the pairs' log-ratios expected before the first, for [`Betting::new`].
    pub start_scale: StartScales,
}

impl RowKey {
    pub fn id(&self) -> RowId {
        (self.work, self.treated_arm)
    }

    /// The arms of a pair, in the order of its coin.
    pub fn arms(&self, baseline_first: bool) -> [ArmId; 2] {
        match baseline_first {
            true => [ArmId::BASELINE, self.treated_arm],
            false => [self.treated_arm, ArmId::BASELINE],
        }
    }

    /// How many pairs it will probably have, to be stored.
    pub fn plan(&self, pairs: f64) -> RowPlan {
        RowPlan { work: self.work, arm: self.treated_arm, pairs }
    }
}

/// Another metric of the same pairs, judged as a claim of its own.
pub struct Further {
    pub metric: Metric,
    /// True if the user asked for the metric: the row then needs pairs until it has a verdict.
    pub is_wanted: bool,
    /// True if none of the row's first pairs had the metric: it is then no claim of this row.
    pub is_absent: bool,
    pub betting: Betting,
    pub judgement: Judgement,
}

/// An effect of a full factorial design, judged as a claim of its own.
pub struct EffectClaim {
    pub factorial: Factorial,
    pub effect: Effect,
    /// Betting on the contrasts of whole rounds.
    pub betting: Betting,
    pub judgement: Judgement,
}

/// A row as it is measured.
pub struct RowState {
    pub unit: RowKey,
    pub betting: Betting,
    pub judgement: Judgement,
    pub further: Vec<Further>,
    /// In a full factorial design, with the last arm of each workload: the effects of its factors.
    pub effects: Vec<EffectClaim>,
    /// Why this workload gives no result.
    pub failure: Option<String>,
    /// True if the failure was in the baseline's arm.
    pub(super) failed_alone: bool,
    pub(super) schedule: Schedule,
    /// The limit of the gate, a log-ratio: the row goes on until it is on one side of it.
    pub(super) limit: Option<f64>,
    /// Pairs that a verdict on its rate takes at least, among so many rows.
    least_pairs: usize,
    /// Use of the partner's slices by the processes of interleaved pairs. It is kept after the row
    /// left turns because of it.
    pub(super) outside: OutsideUse,
    pub(super) late: Late,
    /// The first pair of its pilot, which is sequential, with its log-ratio.
    first_pair: Option<([Readings; 2], (f64, Turn))>,
    /// True if claims about the row must hold for old processes too.
    needs_old_pair: bool,
    /// n*, where it was known after the pilot alone.
    planned: Option<f64>,
    /// Time that its pairs took, launches and all, and how many those were: all, whether it is judged by them
    /// or not.
    pub(super) spent: Duration,
    pub(super) measured: usize,
    /// The number of its next pair: that of an earlier session's half pair is not used again.
    pub(super) next_pair: PairId,
    /// Until it has a verdict, it is measured before those that are not.
    pub(super) is_first: bool,
    /// Expected time of a pair, if it is known before the first. Such a row is begun only if there
    /// is time for all pairs that a verdict needs.
    pub(super) expected_pair: Option<Duration>,
    /// True if the first pair was ended to leave other rows time: no verdict of such long pairs fits the
    /// budget.
    pub(super) is_too_long: bool,
}

impl RowState {
    /// A row without pairs.
    pub fn new(unit: RowKey, design: &Design) -> RowState {
        let schedule = Schedule::Fixed(Scheme::Sequential);
        let betting = Betting::new(start(unit, &schedule, design, None));
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
            limit: None,
            least_pairs: MIN_PAIRS,
            outside: OutsideUse::default(),
            late: Late::default(),
            first_pair: None,
            needs_old_pair: false,
            planned: None,
            spent: Duration::ZERO,
            measured: 0,
            next_pair: PairId(0),
            is_first: false,
            expected_pair: None,
            is_too_long: false,
        }
        .judging(Metric::judged(design.fixed_pairs, &[]), design)
    }

    /// Adds these metrics to the row, which has no pairs of them yet.
    pub fn judging(mut self, metrics: Vec<Metric>, design: &Design) -> RowState {
        let start = Start { scale: DEFAULT_SCALE, ..self.start(design) };
        let betting = Betting::new(start);
        let judgement = judge_rows([&betting], design).remove(0);
        let others = metrics.into_iter().filter(|metric| *metric != Metric::Rate);
        let further = |metric: Metric| Further {
            is_wanted: !metric.is_implicit(),
            is_absent: false,
            metric,
            betting: betting.clone(),
            judgement: judgement.clone(),
        };
        self.further = others.map(further).collect();
        self.least_pairs = least_pairs(design, self.weights(design).rate);
        self
    }

    /// Adds claims on the effects of this design to the row, which has no rounds of them yet.
    pub fn claim_effects(&mut self, factorial: &Factorial, design: &Design) {
        let betting = Betting::new(start(self.unit, &self.schedule, design, None));
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
    pub fn resumed(unit: RowKey, design: &Design, past: &PriorRow) -> RowState {
        let start = start(unit, &past.schedule, design, past.planned);
        let betting = Betting::from_log_ratios(&past.log_ratios, start)
            .expect("what is stored was checked to be finite")
            .with_turns(past.turns.clone());
        let judgement = judge_rows([&betting], design).remove(0);
        let metrics = past.further.iter().map(|past| past.metric.clone()).collect();
        let mut row = RowState {
            betting,
            judgement,
            schedule: past.schedule.clone(),
            outside: past.outside.clone(),
            late: Late::after(past.late.clone()),
            planned: past.planned,
            spent: past.spent,
            measured: past.log_ratios.len(),
            next_pair: past.next_pair,
            ..RowState::new(unit, design)
        }
        .judging(metrics, design);
        for (further, past) in row.further.iter_mut().zip(&past.further) {
            let start = Start { scale: DEFAULT_SCALE, ..start };
            further.is_absent = past.is_absent;
            further.betting = Betting::from_log_ratios(&past.log_ratios, start)
                .expect("what is stored was checked to be finite")
                .with_turns(past.turns.clone());
        }
        row
    }

    /// Sets a limit of the rate, as a share. The row goes on until it is on one side of the limit.
    pub fn with_limit(mut self, limit: Option<f64>) -> RowState {
        self.limit = limit.map(|limit| (-limit).ln_1p());
        self
    }

    /// Makes the row take old pairs, if wanted, before it is called equivalent or faster.
    pub fn with_old_pairs(mut self, are_wanted: bool) -> RowState {
        self.late.is_wanted = are_wanted;
        self
    }

    /// Sets how the row's pairs are taken, unless its earlier pairs have begun otherwise.
    pub fn on(mut self, schedule: Schedule, design: &Design) -> RowState {
        let is_begun = self.next_pair.0 >= PILOT_PAIRS;
        if matches!(self.schedule, Schedule::Fixed(_)) && self.schedule != schedule && !is_begun {
            self.judge_by(schedule, design);
        }
        self
    }

    /// From now on it is judged by what is to come.
    fn judge_by(&mut self, schedule: Schedule, design: &Design) {
        self.schedule = schedule;
        if self.outside.difference().is_none() {
            self.outside = OutsideUse::default();
        }
        self.late.log_ratios.clear();
        self.betting = Betting::new(self.start(design));
        self.judgement = judge_rows([&self.betting], design).remove(0);
        let fresh = Start { scale: DEFAULT_SCALE, ..self.start(design) };
        for further in &mut self.further {
            further.is_absent = false;
            further.betting = Betting::new(fresh);
            further.judgement = judge_rows([&further.betting], design).remove(0);
        }
        let factorial = self.effects.first().map(|claim| claim.factorial.clone());
        factorial.iter().for_each(|factorial| self.claim_effects(factorial, design));
    }

    fn start(&self, design: &Design) -> Start {
        start(self.unit, &self.schedule, design, self.planned)
    }

    /// Returns true if the row's pilot has just ended, and no plan could be made before.
    pub(super) fn lacks_plan(&self, design: &Design) -> bool {
        let is_open = design.fixed_pairs.is_none() && design.planned_pairs.is_none();
        is_open && self.planned.is_none() && self.betting.pairs() == MIN_PAIRS
    }

    /// Sets the number of pairs planned for the row, if any.
    pub fn planning(mut self, pairs: Option<f64>) -> RowState {
        if let Some(pairs) = pairs {
            self.plan(pairs);
        }
        self
    }

    /// Half of what is staked on it is from now on staked as suits so many pairs.
    pub(super) fn plan(&mut self, pairs: f64) {
        self.planned = Some(pairs);
        self.betting = self.betting.clone().plan_after_pilot(pairs);
        for further in &mut self.further {
            further.betting = further.betting.clone().plan_after_pilot(pairs);
        }
    }

    /// n*, where it was known after the pilot alone.
    pub(super) fn planned(&self) -> Option<f64> {
        self.planned
    }

    /// Returns the weights of the row's claims.
    fn weights(&self, design: &Design) -> ClaimWeights {
        let further = self.further.iter().map(|further| (&further.metric, !further.is_absent));
        ClaimWeights::of(further, design.fixed_pairs.is_some())
    }

    /// Goes on with sequential pairs, as interleaved ones cannot be believed. Returns false where it has no
    /// choice. Before the first interleaved pair nothing is staked on those yet, and the first pair counts.
    pub(super) fn leave_interleaving(&mut self, design: &Design) -> bool {
        let sequential = match &self.schedule {
            Schedule::Open(_) if self.betting.pairs() == 0 => Schedule::Fixed(Scheme::Sequential),
            Schedule::Open(_) | Schedule::Chosen(Scheme::Interleaved) => {
                Schedule::Chosen(Scheme::Sequential)
            }
            Schedule::Fixed(_) | Schedule::Chosen(Scheme::Sequential) => return false,
        };
        self.judge_by(sequential, design);
        let first_pair = self.first_pair.take();
        if matches!(self.schedule, Schedule::Fixed(_))
            && let Some(([baseline, treated], evidence)) = first_pair
        {
            self.count([&baseline, &treated], evidence).expect("its log-ratio is finite");
        }
        true
    }

    /// Adds a pair to what the row is judged by.
    ///
    /// # Errors
    /// Where its log-ratio is no finite number.
    pub(super) fn count(
        &mut self,
        [baseline, treated]: [&Readings; 2],
        (log_ratio, turn): (f64, Turn),
    ) -> Result<(), String> {
        let counted = self.betting.push_turn(log_ratio, turn);
        for further in &mut self.further {
            let [baseline, treated] =
                [baseline, treated].map(|of_arm| of_arm.log_of(&further.metric));
            if let Some((baseline, treated)) = baseline.zip(treated) {
                // What is no number is no evidence, and the rate may be one all the same.
                let _ = further.betting.push_turn(treated - baseline, turn);
            }
            if self.betting.pairs() == MIN_PAIRS {
                further.is_absent = further.betting.pairs() == 0;
            }
        }
        counted.map_err(|error| error.to_string())
    }

    /// Keeps the pair by which a pilot begins, as long as it may still count.
    pub(super) fn keep_first(&mut self, readings: [Readings; 2], evidence: (f64, Turn)) {
        if self.measured == 0 && evidence.0.is_finite() {
            self.first_pair = Some((readings, evidence));
        }
    }

    /// Why its interleaved pairs cannot be believed, where that is known by now.
    pub(super) fn objection(&self) -> Option<String> {
        let because = self.judgement.withheld.map(|withheld| withheld.because);
        let disagreement = because.filter(|because| *because == Doubt::ClaimsDisagree);
        let difference = self.outside.confirmed_difference().map(|one| one.to_string());
        difference.or(disagreement.map(format::doubt))
    }

    /// Returns true if the row's next pair is to be of processes that have run for a second.
    pub(super) fn wants_old_pair(&self) -> bool {
        self.needs_old_pair && self.late.doubt(self.judgement.estimate) == Some(Doubt::NotYetAged)
    }

    /// Adds such a pair. It counts for an average one, as its time says nothing of the others'.
    pub(super) fn add_old_pair(&mut self, log_ratio: f64) {
        self.late.log_ratios.extend(Some(log_ratio).filter(|d| d.is_finite()));
        self.spent += self.pair_cost();
        self.measured += 1;
    }

    /// Withdraws verdicts that the other readings of its pairs do not support.
    fn guard(&mut self, design: &Design) {
        let mut judgement = self.judgement.clone();
        interleaved::guard(&mut judgement, self.schedule.main(), &self.other_readings(), design);
        self.judgement = judgement;

        self.late.beside(self.betting.values(), design.margin);
        // Also if another reason still prevents the verdict.
        let Judgement { verdict, withheld, within_margin, .. } = self.judgement;
        let borne = withheld.map_or(verdict, |withheld| withheld.verdict);
        let lowest = self.claims().lowest_of_young(design);
        let is_below_limit = self.limit.zip(lowest).is_some_and(|(limit, lowest)| lowest >= limit);
        self.needs_old_pair = is_below_limit
            || within_margin
            || matches!(borne, Verdict::Equivalent | Verdict::Faster);
        late::guard(&mut self.judgement, &self.late);
    }

    /// Other readings of its pairs, beside the rate.
    fn other_readings(&self) -> Claims<'_> {
        let of = |metric: &Metric| {
            let judged = self.further.iter().find(|further| further.metric == *metric);
            judged.map(|further| &further.judgement)
        };
        Claims {
            pairs: self.betting.pairs(),
            outside: &self.outside,
            cpu_time: of(&Metric::CpuTime),
            all_time: of(&Metric::OverallRate),
        }
    }

    /// Its pairs as a part of an effect, with this weight.
    pub(super) fn of_effect(&self, weight: f64) -> ArmOfEffect<'_> {
        ArmOfEffect {
            weight,
            judgement: &self.judgement,
            betting: &self.betting,
            claims: self.other_readings(),
            scheme: self.schedule.main(),
            late: &self.late,
        }
    }

    /// The claims of a promise about it.
    fn claims(&self) -> gate::Promise<'_> {
        let scheme = self.schedule.main();
        let others = gate::others(scheme, &self.outside);
        let is_claim = |one: &&Further| others.contains(&one.metric);
        let others = self.further.iter().filter(is_claim);
        let others = others.map(|one| &one.betting).filter(|betting| betting.pairs() > 0);
        gate::Promise {
            bettings: std::iter::once(&self.betting).chain(others).collect(),
            scheme,
            outside: &self.outside,
            judgement: &self.judgement,
            late: &self.late,
        }
    }

    /// Adds what a pair took.
    pub(super) fn spend(&mut self, scheme: Scheme, log_ratio: f64, spent: Duration) {
        self.spent += spent;
        self.measured += 1;
        if let Schedule::Open(pilot) = &mut self.schedule {
            pilot.add(scheme, log_ratio, spent);
        }
    }

    /// Its pilot, if that is over and nothing was chosen yet.
    pub(super) fn ended_pilot(&self) -> Option<&SchemePilot> {
        match &self.schedule {
            Schedule::Open(pilot) if self.next_pair.0 >= PILOT_PAIRS => Some(pilot),
            _ => None,
        }
    }

    /// Takes the pairs after its pilot in this scheme.
    pub(super) fn settle(&mut self, scheme: Scheme, design: &Design) {
        match scheme {
            Scheme::Interleaved => self.schedule = Schedule::Chosen(Scheme::Interleaved),
            Scheme::Sequential => self.judge_by(Schedule::Chosen(Scheme::Sequential), design),
        }
    }

    /// How many pairs it has, whether it is judged by them or not.
    pub(super) fn measured(&self) -> usize {
        self.measured
    }

    /// Puts the row before others until it has a verdict.
    pub fn first(self) -> RowState {
        RowState { is_first: true, ..self }
    }

    /// Sets the known time of the row's pairs.
    pub fn expecting(self, pair: Option<Duration>) -> RowState {
        RowState { expected_pair: pair, ..self }
    }

    pub(super) fn comes_first(&self) -> bool {
        self.is_first && self.judgement.verdict == Verdict::Inconclusive
    }

    /// Returns the time that the row lacks, if it is begun only when it can be judged.
    pub(super) fn lacks(&self) -> Option<Duration> {
        let pairs = self.least_pairs.saturating_sub(self.betting.pairs()) as u32;
        self.expected_pair.map(|_| self.pair_cost() * pairs)
    }

    /// Returns true if the row needs no more pairs.
    pub fn is_done(&self, design: &Design) -> bool {
        let has_all = design.fixed_pairs.is_some_and(|pairs| self.betting.pairs() >= pairs);
        let is_decided = design.fixed_pairs.is_none()
            && self.judgement.verdict != Verdict::Inconclusive
            && self.judgement.precise
            && self.open_wanted().next().is_none()
            && !self.wants_old_pair()
            && !self.is_gate_open(design);
        self.failure.is_some() || has_all || is_decided
    }

    /// Returns true if the row's pairs show neither that it costs more than the limit nor that it
    /// costs less.
    fn is_gate_open(&self, design: &Design) -> bool {
        let Some(limit) = self.limit else { return false };
        let claims = self.claims();
        !gate::is_above(&claims.bettings, (claims.scheme, claims.outside), limit, design)
            && claims.lowest(design).is_none_or(|lowest| lowest < limit)
    }

    /// Returns the judgements of requested claims without a verdict. A metric that the first pairs
    /// lack will not appear in later pairs either, so it is left out.
    fn open_wanted(&self) -> impl Iterator<Item = &Judgement> {
        let is_known =
            |further: &&Further| further.betting.pairs() > 0 || self.betting.pairs() < MIN_PAIRS;
        let wanted = self.further.iter().filter(|further| further.is_wanted).filter(is_known);
        let effects = self.effects.iter().map(|claim| &claim.judgement);
        let judgements = wanted.map(|further| &further.judgement).chain(effects);
        judgements.filter(|judgement| judgement.verdict == Verdict::Inconclusive)
    }

    /// The time that it will probably take until it needs no more pairs: without end if its verdict is
    /// withheld for a reason that pairs alone do not take away, as such a row is measured to the end of the
    /// budget.
    pub(super) fn time_left(&self, design: &Design) -> Duration {
        let Judgement { verdict, withheld, pairs_needed, estimate, .. } = self.judgement;
        if withheld.is_some() && pairs_needed.is_none() {
            return Duration::MAX;
        }
        // A difference from 0 of more than half the margin is found sooner than equivalence.
        let will_be = withheld.map_or(verdict, |withheld| withheld.verdict);
        let seems_slower = will_be == Verdict::Inconclusive && estimate < -design.margin / 2.0;
        let waits = verdict == Verdict::Inconclusive && will_be != Verdict::Slower && !seems_slower;
        if !waits || design.fixed_pairs.is_some() {
            return self.time_of_pairs();
        }
        let pairs = self.betting.pairs();
        let least = match self.schedule.main() {
            Scheme::Interleaved => LEAST_INTERLEAVED,
            // As many clean pairs as the evidence needs pairs.
            Scheme::Sequential if withheld.is_none() && self.betting.turns().is_some() => {
                PAIRS_PER_CLEAN * (pairs + pairs_needed.unwrap_or(0))
            }
            Scheme::Sequential => 0,
        };
        let old = Duration::from_secs_f64(self.late.time_left_s());
        self.time_of_pairs().max(self.time_of(least.saturating_sub(pairs))).saturating_add(old)
    }

    /// The time of the pairs that the evidence seems to need.
    fn time_of_pairs(&self) -> Duration {
        let wanted = self.open_wanted().filter_map(|judgement| judgement.pairs_needed);
        self.time_of(wanted.fold(self.judgement.pairs_left, usize::max))
    }

    /// Returns true if any of the row's metrics has a verdict.
    pub(super) fn has_verdict(&self) -> bool {
        self.judgements().any(|judgement| judgement.verdict != Verdict::Inconclusive)
    }

    /// Returns the judgements of all metrics that the samples have.
    fn judgements(&self) -> impl Iterator<Item = &Judgement> {
        let known = self.further.iter().filter(|further| further.betting.pairs() >= MIN_PAIRS);
        std::iter::once(&self.judgement).chain(known.map(|further| &further.judgement))
    }

    /// Returns the time until any of the row's metrics has a verdict. If a metric already has one,
    /// returns the time until the rate has a verdict. If the rate already has one, returns the time
    /// until the row needs no more pairs.
    pub(super) fn time_to_next_step(&self) -> Duration {
        let (pairs, interval) = (self.betting.pairs(), self.judgement.interval);
        let excludes_zero = interval.low > 0.0 || interval.high < 0.0;
        let needed = match self.judgement.verdict {
            // With fewer, nothing is found among so many rows, however large it is.
            Verdict::Inconclusive
                if pairs < MIN_PAIRS || excludes_zero && pairs < self.least_pairs =>
            {
                Some(self.least_pairs.saturating_sub(pairs))
            }
            Verdict::Inconclusive if self.has_verdict() => self.judgement.pairs_needed,
            Verdict::Inconclusive => self.judgements().filter_map(|one| one.pairs_needed).min(),
            _ => return self.time_of_pairs(),
        };
        self.time_of(needed.unwrap_or(usize::MAX))
    }

    fn time_of(&self, pairs: usize) -> Duration {
        self.pair_cost().saturating_mul(u32::try_from(pairs).unwrap_or(u32::MAX))
    }

    /// Returns true if another pair will probably end in the time left. A first pair is always
    /// begun, so that a budget that is too small shows a number and says that it is inconclusive.
    pub fn can_begin_pair(&self, left: Duration) -> bool {
        let is_begun_anyway = self.measured == 0 && self.expected_pair.is_none();
        let growing_old = if self.wants_old_pair() { 2 * AGE } else { Duration::ZERO };
        let fits = is_begun_anyway || growing_old + self.pair_cost() <= left;
        fits && !self.is_too_long
    }

    /// Time that one of its pairs takes on average.
    pub fn pair_cost(&self) -> Duration {
        match self.measured {
            0 => self.expected_pair.unwrap_or_default(),
            pairs => self.spent / pairs as u32,
        }
    }
}

fn start(unit: RowKey, schedule: &Schedule, design: &Design, planned: Option<f64>) -> Start {
    Start {
        scale: schedule.scale(unit.start_scale),
        plan: plan(design.planned_pairs, planned),
        capital: schedule.capital(),
        interleaved: schedule.main() == Scheme::Interleaved,
    }
}

/// Judges all rows together. Those that failed have no result, but count among those compared.
pub fn judge(rows: &mut [RowState], design: &Design) {
    let measured = || rows.iter().filter(|row| row.failure.is_none());
    let weights: Vec<ClaimWeights> = measured().map(|row| row.weights(design)).collect();
    let primary = measured().zip(&weights);
    let primary =
        primary.map(|(row, of_row)| WeightedClaim { row: &row.betting, weight: of_row.rate });
    let further = measured().zip(&weights).flat_map(|(row, of_row)| {
        let claims = row.further.iter().zip(&of_row.further);
        claims.map(|(further, weight)| WeightedClaim { row: &further.betting, weight: *weight })
    });
    let effects = measured().flat_map(|row| &row.effects);
    let effects = effects.map(|claim| WeightedClaim { row: &claim.betting, weight: 1.0 });
    let mut judgements = judge_claims(primary.chain(further).chain(effects), design).into_iter();
    let mut next = || judgements.next().expect("one for each");
    measured_of(rows).for_each(|row| row.judgement = next());
    let further = measured_of(rows).flat_map(|row| &mut row.further);
    further.for_each(|further| further.judgement = next());
    let effects = measured_of(rows).flat_map(|row| &mut row.effects);
    effects.for_each(|claim| claim.judgement = next());
    measured_of(rows).for_each(|row| row.guard(design));
}

fn measured_of(rows: &mut [RowState]) -> impl Iterator<Item = &mut RowState> {
    rows.iter_mut().filter(|row| row.failure.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::simulated::unit;
    use paired::simulated::white_row;

    /// Twenty rows with CPU time and all-time are 20 comparisons, not 60.
    #[test]
    fn what_nobody_asked_for_leaves_the_rates_most_of_the_promise() {
        let metrics = || vec![Metric::CpuTime, Metric::OverallRate];
        let design = Design { rows: 20, ..Design::default() };
        let unit = unit(0, 1);
        let new = || RowState::new(unit, &design).judging(metrics(), &design);
        let mut rows: Vec<RowState> = (0..20).map(|_| new()).collect();
        rows[0].betting = white_row(-0.5, 13, 1);
        judge(&mut rows, &design);
        assert_eq!(rows[0].judgement.verdict, Verdict::Slower);
        let alike = Design { rows: 60, ..design.clone() };
        let counted_alike = judge_rows([&rows[0].betting], &alike);
        assert_eq!(counted_alike[0].verdict, Verdict::Inconclusive);
        // CPU time with the same evidence is no more than a tenth of a row.
        rows[1].further[0].betting = white_row(-0.5, 13, 1);
        judge(&mut rows, &design);
        assert_eq!(rows[1].further[0].judgement.verdict, Verdict::Inconclusive);
    }
}
