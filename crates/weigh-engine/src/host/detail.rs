//! A launch of the detail pass on this machine: like that of a sample, but for what is kept of it.

use super::{Host, cells, padding, padding_bytes};
use crate::detail::{DetailPlatform, Look};
use crate::platform::{Platform, SampleError, SampleSlot, Stop};
use weigh_model::result::warning::Warning;
use weigh_model::workload::detail::Detail;

impl DetailPlatform for Host<'_> {
    fn detail(&mut self, slot: &SampleSlot, look: Look) -> Result<bool, SampleError> {
        self.look_closer(slot, look).map_err(|error| self.settle(error))
    }

    fn no_detail(&mut self, slot: &SampleSlot, reason: &str) -> Result<(), Stop> {
        self.warn(&Warning::DetailAbandoned {
            workload: self.site.works[slot.unit.work].name(),
            arm: self.arms.label(slot.arm).to_owned(),
            reason: reason.to_owned(),
        })
    }
}

impl Host<'_> {
    fn look_closer(&mut self, slot: &SampleSlot, look: Look) -> Result<bool, SampleError> {
        if slot.position == 0 {
            self.renew(slot)?;
        }
        let work = &self.site.works[slot.unit.work];
        let Some(mut job) = work.detail_job(self.arms.place(slot.arm), look) else {
            return Ok(false);
        };
        job.environment.push(padding(padding_bytes(self.site.seed, slot)));
        job.start = self.start(slot);
        let (launched, ..) = self.launch(slot.arm, slot.unit.treated_arm, &job)?;
        self.read(&self.site.works[slot.unit.work], &launched)?;
        let none = || SampleError::Workload("it printed no latencies".into());
        let detail = Detail::parse(&launched.stdout).ok_or_else(none)?;
        detail.check(launched.wall_ns).map_err(SampleError::Workload)?;
        match look {
            Look::Latencies if detail.latencies.is_none() => return Err(none()),
            Look::Counters if !detail.is_counted() => return Ok(false),
            _ => {}
        }
        self.site.store.add_detail(self.site.id, &cells::detailed(slot, detail))?;
        Ok(true)
    }
}
