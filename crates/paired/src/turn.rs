//! How a pair was measured.

/// How a pair was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Whether the coin let the baseline's sample come first.
    pub baseline_first: bool,
    /// Whether the sample launched before this pair, of whatever row, was a treated one.
    pub after_treated: bool,
}

impl Turn {
    /// Whether neither sample of the pair was launched after a treated one.
    pub fn is_clean(self) -> bool {
        self.baseline_first && !self.after_treated
    }
}
