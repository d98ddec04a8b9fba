//! Facts that the arms of a host state about themselves, for the report.

use super::{Host, MeasureConfig, SampleError, Stop};
use crate::request::ProgressSink;
use weigh_model::ids::{ArmId, WorkId};
use weigh_model::result::warning::Warning;
use weigh_treatment::PairDraw;

impl Host<'_> {
    /// Stores what the treatments say of themselves and of the baseline.
    ///
    /// # Errors
    /// Where that cannot be stored.
    pub fn store_facts(&self) -> Result<(), Stop> {
        let MeasureConfig { store, id, .. } = &self.site;
        store.in_one_commit(|| {
            for (arm, named) in self.arms.ids().zip(self.arms.treatments()) {
                let facts = self.facts(arm);
                store.set_facts(id, arm, &facts, &named.treatment.quantities())?;
            }
            let state = (self.arms.ids().zip(self.arms.treatments()))
                .find_map(|(arm, named)| named.treatment.state(arm.is_baseline()));
            Ok(store.set_baseline_state(id, state)?)
        })
    }

    /// Tells what the treatments could not do as asked, and keeps it as warnings.
    ///
    /// # Errors
    /// Where that cannot be stored.
    pub fn tell_warnings(&self, progress_sink: &mut dyn ProgressSink) -> Result<(), Stop> {
        for named in self.arms.treatments() {
            for sentence in named.treatment.warnings() {
                let warning = Warning::Treatment { arm: named.label.clone(), sentence };
                progress_sink.announce(&warning.to_string());
                self.site.store.add_warning(self.site.id, &warning)?;
            }
        }
        Ok(())
    }

    /// Tells how many answers were wrong in each arm, and keeps it as warnings.
    ///
    /// # Errors
    /// Where that cannot be stored.
    pub fn tell_wrong_answers(&mut self, progress_sink: &mut dyn ProgressSink) -> Result<(), Stop> {
        for ((work, arm), answers) in std::mem::take(&mut self.answers) {
            let arm = self.arms.label(arm).to_owned();
            if let Some(warning) = answers.warning(self.site.works[work].name(), arm) {
                progress_sink.announce(&warning.to_string());
                self.site.store.add_warning(self.site.id, &warning)?;
            }
        }
        Ok(())
    }

    /// Servers of an arm for passes over a work.
    ///
    /// # Errors
    /// Where they do not start.
    pub fn begin_passes(&mut self, work: WorkId, arm: ArmId) -> Result<(), SampleError> {
        self.arms.need(arm, &self.site.works[work].needs());
        Ok(self.arms.renew(arm, PairDraw::default())?)
    }

    /// Stores a sentence with what is said of the arm.
    ///
    /// # Errors
    /// Where that cannot be stored.
    pub fn add_fact(&mut self, fact: String) -> Result<(), Stop> {
        self.found.push(fact);
        self.store_facts()
    }

    /// Returns the facts about an arm. Facts that all arms share come with the first arm.
    pub(super) fn facts(&self, arm: ArmId) -> Vec<String> {
        let of_treatment = self.arms.treatments().nth(arm.0).map(|named| named.treatment.facts());
        let mut facts = of_treatment.unwrap_or_default();
        if arm.is_baseline() {
            facts.extend(self.net_facts().iter().cloned());
            facts.extend(self.arms.server_facts(arm));
            facts.extend(self.found.iter().cloned());
        } else {
            let common = self.arms.server_facts(ArmId::BASELINE);
            let own = self.arms.server_facts(arm).into_iter();
            facts.extend(own.filter(|fact| !common.contains(fact)));
        }
        facts
    }

    /// Returns the facts that treatments state now and did not state when the experiment began;
    /// `then` is per arm.
    pub fn differences(&self, then: &[Vec<String>]) -> Vec<Warning> {
        let mut differences = Vec::new();
        for (named, then) in self.arms.treatments().zip(then) {
            let new = named.treatment.facts().into_iter().filter(|fact| !then.contains(fact));
            let of_arm = |sentence| Warning::Treatment { arm: named.label.clone(), sentence };
            differences.extend(new.map(of_arm));
        }
        differences
    }
}
