//! Search for the peaks of mixes before they are compared, each for its share of the budget.

use super::host::Host;
use super::measure::Session;
use super::order::Coins;
use super::plan::peak::PeakPlanner;
use super::plan::{MixPoint, drive};
use super::platform::{Platform, Stop};
use super::request::ProgressSink;
use super::work::LoadRole;
use weigh_model::format;
use weigh_model::ids::{ArmId, RowId, SetId, WorkId};
use weigh_model::record::ChosenPeak;
use weigh_model::result::warning::Warning;
use weigh_model::samples::Point;

/// So much of the budget the searches may take together.
const SHARE: u32 = 3;

/// The coins of a search are a stream of their own, which no set has.
const COINS_OF_SEARCH: SetId = SetId(255);

impl Session<'_> {
    /// Chooses the load points that are compared, where there are mixes whose peak is sought and that was not
    /// done yet; tells the host.
    pub(super) fn seek_peaks(
        &mut self,
        host: &mut Host,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        if self.peaks.is_empty() {
            let works = self.works;
            let peaks =
                (0..works.len()).map(WorkId).filter(|work| works[*work].role() == LoadRole::Peak);
            let arms = (1..self.request.common.arms.len()).map(ArmId);
            let sought: Vec<RowId> =
                peaks.flat_map(|peak| arms.clone().map(move |arm| (peak, arm))).collect();
            let share = sought.len().max(1) as u32;
            let seed = self.request.common.seed;
            let mut coins = Coins::new(seed, COINS_OF_SEARCH, self.earlier.sessions);
            let mut found = Vec::new();
            for sought in sought {
                found.extend(self.seek_peak(host, sought, share, &mut coins, progress_sink)?);
            }
            if !found.is_empty() {
                self.store.set_peaks(self.id, &found)?;
            }
            self.peaks = found;
        }
        let of_host = self.peaks.iter().map(|peak| ((peak.work, peak.treated_arm), peak.at));
        host.peaks = of_host.collect();
        Ok(())
    }

    /// Searches the peak of a mix under a treatment, and chooses where each arm is the best; or as near to it
    /// as there is time for a verdict, which is told. So many searches share the budget.
    fn seek_peak(
        &mut self,
        host: &mut Host,
        (peak, treated_arm): RowId,
        share: u32,
        coins: &mut Coins,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<Option<ChosenPeak>, Stop> {
        let (works, name) = (self.works, self.works[peak].name());
        let is_its = |work: &WorkId| {
            works[*work].role() == LoadRole::Candidate && works[*work].name().name == name.name
        };
        let its: Vec<WorkId> = (0..works.len()).map(WorkId).filter(is_its).collect();
        let points = self.load_points(&its, treated_arm);
        let (common, searched) = (&self.request.common, &self.earlier.searched);
        let arms = [ArmId::BASELINE, treated_arm].map(|arm| &*common.arms[arm]);
        let key = |point: &MixPoint| (point.unit.work, treated_arm);
        let of_point = |point| searched.get(&key(point)).map_or(&[][..], Vec::as_slice);
        let earlier: Vec<&[Point]> = points.iter().map(of_point).collect();
        let end = self.earlier.elapsed + common.budget;
        let time = common.budget / SHARE / share;
        let ends = [host.elapsed() + time, end];
        progress_sink.announce(&format!(
            "Searching for the peak of {}, without and with `{}`: {} at most.",
            name.name,
            arms[1],
            format::seconds(time.as_secs_f64())
        ));
        let mut plan = PeakPlanner::new(points, arms, ends, coins, &earlier);
        drive(&mut plan, host, progress_sink)?;
        if plan.has_failed {
            return Ok(None);
        }
        self.pair_costs.extend(plan.pair_costs().map(|(point, cost)| (key(point), cost)));
        let left = end.saturating_sub(host.elapsed()) / share;
        let Some((at, better)) = plan.chosen(left) else { return Ok(None) };
        if let Some(best) = better {
            let users = |point: usize| plan.points[point].users;
            let (mix, arm) = (name, arms[1].to_owned());
            let (peaks, users) = (best.map(users), users(at[0]));
            let warning = Warning::BudgetBelowPeaks { mix, arm, peaks, users };
            self.warn(progress_sink, &warning)?;
        }
        let others = plan.search.points().into_iter().filter(|point| at != [*point, *point]);
        let work = |point: usize| plan.points[point].unit.work;
        Ok(Some(ChosenPeak {
            work: peak,
            treated_arm,
            at: at.map(work),
            points: others.map(work).collect(),
        }))
    }
}
