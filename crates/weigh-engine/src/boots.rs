//! Pairs whose halves come from two boots of this machine. The process that measures ends with each boot, so
//! nothing is kept but the store: from the samples that are there follows which boot is due.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::host::Host;
use super::measure::Session;
use super::order::Coins;
use super::platform::{Platform, SampleError, SampleSlot, Stop};
use super::prior_sessions::PriorSessions;
use super::provenance::Provenance;
use super::request::{ProgressSink, Request};
use super::session::{Done, conduct};
use weigh_model::ids::{ArmId, PairId, SetId, WorkId};
use weigh_model::record::Stored;
use weigh_store::Store;
use weigh_treatment::boot::{BootState, DueBoot};

/// Against the baseline.
const TREATED: ArmId = ArmId(1);
/// A boot takes a minute or more: so long is a sample of it, where nobody says otherwise.
pub const SAMPLE_MS: u64 = 1000;

/// Which boot is due next, so much time after the experiment began; `None` where it is at its end.
pub fn due(stored: &Stored, elapsed: Duration) -> Result<Option<DueBoot>, String> {
    let request = Provenance::stored(stored)?.request;
    let measured = Halves::of(stored);
    if let Some(half) = measured.missing(request.common.seed) {
        return Ok(Some(half));
    }
    let is_over = measured.works.is_empty()
        || PriorSessions::of(stored).is_done(stored, &request)
        || !may_begin(measured.rounds, elapsed, request.common.budget);
    Ok((!is_over).then(|| half(request.common.seed, PairId(measured.rounds), 0)))
}

/// Returns true if another round will probably end in time. The first round is always begun.
fn may_begin(rounds: usize, elapsed: Duration, budget: Duration) -> bool {
    rounds == 0 || elapsed + elapsed / rounds as u32 <= budget
}

/// A half of a pair: the coin says which arm boots first.
fn half(seed: u64, round: PairId, position: usize) -> DueBoot {
    let baseline_first = Coins::new(seed, SetId(0), round.0).baseline_first();
    let arm = if baseline_first == (position == 0) { ArmId::BASELINE } else { TREATED };
    DueBoot { round, arm, position }
}

/// Halves of pairs that were measured.
struct Halves {
    /// Works that have not failed.
    works: Vec<WorkId>,
    rounds: usize,
    /// Work, round, arm.
    samples: BTreeSet<(WorkId, PairId, ArmId)>,
}

impl Halves {
    fn of(stored: &Stored) -> Halves {
        let failed = PriorSessions::of(stored).failed;
        let works = stored.header.work_ids();
        let works = works.filter(|work| !failed.contains(&(*work, TREATED))).collect();
        let of_rows = stored.samples.iter().flat_map(|((work, _), row)| {
            row.points
                .iter()
                .map(move |point| (*work, point.pair, ArmId(usize::from(point.is_treated))))
        });
        let samples: BTreeSet<(WorkId, PairId, ArmId)> = of_rows.collect();
        let rounds = samples.iter().map(|(_, round, _)| round.0 + 1).max().unwrap_or(0);
        Halves { works, rounds, samples }
    }

    /// Returns the half of the last round that lacks a sample.
    fn missing(&self, seed: u64) -> Option<DueBoot> {
        let round = PairId(self.rounds.checked_sub(1)?);
        let halves = [0, 1].map(|position| half(seed, round, position));
        halves.into_iter().find(|half| self.lacking(half).next().is_some())
    }

    /// The works that have no sample in this half.
    fn lacking(&self, half: &DueBoot) -> impl Iterator<Item = WorkId> {
        let DueBoot { round, arm, .. } = *half;
        let works = self.works.iter().copied();
        works.filter(move |work| !self.samples.contains(&(*work, round, arm)))
    }
}

/// Goes on in another boot: measures what it is for, and says by its state whether another is due
/// (`State::Running`).
pub fn in_next_boot(
    stored: &Stored,
    store: &Store,
    progress_sink: &mut dyn ProgressSink,
    interrupted: &Arc<AtomicBool>,
) -> Result<Done, String> {
    let origin = Provenance::stored(stored)?;
    let request: Request = origin.request.clone();
    Ok(conduct(&request, Some((stored, &origin)), store, progress_sink, interrupted)?)
}

impl Session<'_> {
    /// Measures the half of a pair that this boot is for, if it is for one.
    ///
    /// # Errors
    /// [`Stop::NextBoot`], where another boot is due.
    pub(super) fn in_this_boot(
        &self,
        host: &mut Host,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let state = BootState::read().map_err(Stop::Failed)?;
        let Some(state) = state.filter(|state| state.experiment == *self.id) else {
            return Err(Stop::NextBoot);
        };
        if let Some(half) = state.here() {
            self.measure_half(host, &half, progress_sink)?;
        }
        let stored = self.store.load(self.id)?;
        if Halves::of(&stored).works.is_empty() {
            return Err(Stop::Failed("every workload failed".into()));
        }
        match due(&stored, state.elapsed()).map_err(Stop::Failed)? {
            Some(_) => Err(Stop::NextBoot),
            None => Ok(()),
        }
    }

    /// Measures a half of a pair, without works that already have a sample of it because the half
    /// was cut off.
    fn measure_half(
        &self,
        host: &mut Host,
        half: &DueBoot,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let DueBoot { round, arm, position } = *half;
        let lacking: BTreeSet<WorkId> =
            Halves::of(&self.store.load(self.id)?).lacking(half).collect();
        let broken =
            host.try_all(|work, of| of != arm || !lacking.contains(&work), progress_sink)?;
        let mut works: Vec<WorkId> =
            lacking.into_iter().filter(|work| !broken.contains(&(*work, arm))).collect();
        let mut coins = Coins::new(self.request.common.seed, SetId(0), round.0);
        // The first is which arm boots first.
        coins.baseline_first();
        coins.shuffle(&mut works, |_| TREATED);
        for work in works {
            let unit = self.unit(work, TREATED);
            progress_sink.begins(&format!("measuring {}", self.works[work].name()));
            let slot = SampleSlot { arm, position, ..SampleSlot::alone(unit, round) };
            match host.half(&slot) {
                Ok(_) => {}
                Err(SampleError::Workload(reason)) => host.failed(&slot, &reason)?,
                Err(other) => return Err(other.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halves(works: &[usize], samples: &[(usize, usize, ArmId)]) -> Halves {
        let rounds = samples.iter().map(|(_, round, _)| round + 1).max().unwrap_or(0);
        let samples =
            samples.iter().map(|(work, round, arm)| (WorkId(*work), PairId(*round), *arm));
        let works = works.iter().copied().map(WorkId).collect();
        Halves { works, rounds, samples: samples.collect() }
    }

    /// Whatever the machine was doing when it went down, the samples say what is next.
    #[test]
    fn what_was_cut_off_is_measured_next_and_nothing_twice() {
        let first = half(5, PairId(0), 0);
        let second = half(5, PairId(0), 1);
        assert_ne!(first.arm, second.arm);
        assert_eq!(second.position, 1);
        assert_eq!(halves(&[0, 1], &[]).missing(5), None, "nothing was begun");
        let cut = halves(&[0, 1], &[(0, 0, first.arm)]);
        assert_eq!(cut.missing(5), Some(first));
        assert_eq!(cut.lacking(&first).collect::<Vec<_>>(), [WorkId(1)]);
        let half_way = halves(&[0, 1], &[(0, 0, first.arm), (1, 0, first.arm)]);
        assert_eq!(half_way.missing(5), Some(second));
        let whole = [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(work, arm)| (work, 0, ArmId(arm)));
        assert_eq!(halves(&[0, 1], &whole).missing(5), None);
        // What failed in one arm is not waited for in the other.
        assert_eq!(halves(&[0], &[whole[0], whole[2], (1, 0, first.arm)]).missing(5), None);
    }

    #[test]
    fn both_orders_come_and_the_seed_gives_them_again() {
        let firsts =
            |seed| (0..64).map(|round| half(seed, PairId(round), 0).arm).collect::<Vec<_>>();
        assert_eq!(firsts(3), firsts(3));
        let treated = firsts(3).iter().filter(|arm| **arm == TREATED).count();
        assert!((16..48).contains(&treated), "{treated}");
    }

    #[test]
    fn a_round_is_begun_where_it_will_probably_end_in_time() {
        let s = Duration::from_secs;
        assert!(may_begin(0, s(100), s(1)), "the first one always");
        assert!(may_begin(2, s(100), s(150)) && !may_begin(2, s(101), s(150)));
    }
}
