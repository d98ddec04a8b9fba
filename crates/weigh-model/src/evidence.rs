//! Evidence that a treatment produced during a launch, with the reason if not all of it was
//! counted.

use serde::{Deserialize, Serialize};

use crate::result::quantity;
use crate::result::quantity::{Amount, Amounts, EvidenceQuantity};

/// Evidence of a treatment during one launch: amounts of the quantities that it declares, and its
/// notices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Evidence {
    pub amounts: Amounts,
}

impl Evidence {
    /// The name of what [`Evidence::why_not_counted`] gives.
    pub const NOT_COUNTED: &str = quantity::NOT_COUNTED;
    /// The name of the system calls that a filter denied, in words.
    pub const DENIED_CALLS: &str = "denied_calls";
    /// The name of the reason why these are not known.
    pub const DENIED_CALLS_UNKNOWN: &str = "denied_calls_unknown";

    /// The name of the calls of SELinux's functions per operation, in words.
    pub const HOOK_CALLS: &str = "hook_calls";
    /// The name of the reason why these are not known.
    pub const HOOK_CALLS_UNKNOWN: &str = "hook_calls_unknown";

    /// Adds so much of a quantity, where it is known.
    pub fn with(
        mut self,
        quantity: &EvidenceQuantity,
        amount: Option<impl Into<Amount>>,
    ) -> Evidence {
        if let Some(amount) = amount {
            self.amounts.set(&*quantity.name, amount);
        }
        self
    }

    /// How much there is of it, where that is known.
    pub fn number(&self, quantity: &EvidenceQuantity) -> Option<f64> {
        self.amounts.number(&quantity.name)
    }

    /// Returns the amount as a count, where it is known.
    pub fn whole(&self, quantity: &EvidenceQuantity) -> Option<u64> {
        self.amounts.whole(&quantity.name)
    }

    /// Why it could not be counted; `None` where it was, or a treatment makes nothing that could be.
    pub fn why_not_counted(&self) -> Option<&str> {
        self.amounts.text(Evidence::NOT_COUNTED)
    }

    /// Takes what was counted of these for incomplete.
    pub fn not_counted(&mut self, quantities: &[&EvidenceQuantity], why: &str) {
        quantities.iter().for_each(|quantity| self.amounts.remove(&quantity.name));
        self.amounts.set(Evidence::NOT_COUNTED, why);
    }

    /// With that of another treatment of the same launch.
    pub fn joined(mut self, other: Evidence) -> Evidence {
        self.amounts.join(other.amounts);
        self
    }

    /// Adds that of another launch. What one of the two does not tell is not known of both.
    pub fn add(&mut self, other: Evidence) {
        self.amounts.add(other.amounts);
    }
}
