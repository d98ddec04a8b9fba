//! `none`: nothing at all, so that `weigh compare none` weighs two identical arms through the very
//! same path (an A/A experiment): what it calls different is a false alarm.

use crate::label::Parameters;
use crate::treatment::{Kind, Parameter, Probe, Treatment};

pub static KIND: None = None;

pub struct None;

impl Kind for None {
    fn name(&self) -> &'static str {
        "none"
    }

    fn summary(&self) -> &'static str {
        "no change: two identical arms (an A/A test), where every difference found is a false alarm"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    fn probe(&self) -> Probe {
        Probe::Available
    }

    fn build(&self, _: &Parameters) -> Result<Box<dyn Treatment>, String> {
        Ok(Box::new(Nothing))
    }
}

struct Nothing;

impl Treatment for Nothing {}
