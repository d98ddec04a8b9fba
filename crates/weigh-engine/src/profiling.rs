//! One more launch of each row in each arm, after all that counts, with the user's profiler beside it.

use std::sync::atomic::Ordering;

use super::host::Host;
use super::measure::Session;
use super::platform::{SampleSlot, Stop};
use super::request::ProgressSink;
use super::row::RowKey;
use weigh_model::format;
use weigh_model::ids::PairId;
use weigh_model::result::profiled::Profiled;
use weigh_model::result::warning::Warning;

/// Number that a profile of a peak is stored with, in place of a pair's. No pair has this number.
const NO_PAIR: PairId = PairId(0);

impl Session<'_> {
    /// Profiles these rows, of which there may be one for each treatment, in the baseline and in theirs. A
    /// profiler that fails is a warning: what was measured stands.
    pub(super) fn profile(
        &self,
        host: &mut Host,
        units: &[RowKey],
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let Some(line) = self.request.plan.profiler() else { return Ok(()) };
        host.lift_limit();
        progress_sink.announce(&format!(
            "Profiling {}, in launches that do not count as samples.",
            format::plural(units.len(), "row")
        ));
        let mut found: Vec<Profiled> = Vec::new();
        for unit in units {
            let workload = self.works[unit.work].name();
            let has_baseline = found.last().is_some_and(|last| last.workload == workload);
            if !has_baseline {
                found.push(Profiled { workload, arms: Vec::new() });
            }
            let [baseline, own] = unit.arms(true);
            let lacks_baseline = !has_baseline && baseline != own;
            for arm in lacks_baseline.then_some(baseline).into_iter().chain([own]) {
                if self.interrupted.load(Ordering::Relaxed) {
                    return Err(Stop::Interrupted);
                }
                let slot = SampleSlot { arm, ..SampleSlot::alone(*unit, NO_PAIR) };
                let label = &self.request.common.arms[arm];
                let name = self.works[unit.work].name();
                progress_sink.begins(&format!("profiling {name} under `{label}`"));
                match host.profiled(&slot, line)? {
                    Ok(profile) => found.last_mut().expect("pushed").arms.push(profile),
                    Err(problem) => {
                        let workload = self.works[unit.work].name();
                        let arm = self.request.common.arms[arm].clone();
                        let warning = Warning::NotProfiled { workload, arm, problem };
                        self.warn(progress_sink, &warning)?;
                    }
                }
            }
        }
        found.retain(|profiled| !profiled.arms.is_empty());
        Ok(self.store.set_profiles(self.id, &found)?)
    }
}
