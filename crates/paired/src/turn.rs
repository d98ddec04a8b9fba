//! How a pair was measured.

/// How a pair was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// True if the coin let the baseline's sample come first.
    pub baseline_first: bool,
    /// True if the sample launched before this pair, of any row, was a treated one.
    pub after_treated: bool,
}

impl Turn {
    /// Returns true if neither sample of the pair was launched after a treated one.
    pub fn is_clean(self) -> bool {
        self.baseline_first && !self.after_treated
    }
}
