//! A screen that a report is shown on.

/// Settings for showing a report on a screen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Screen<'a> {
    pub width: usize,
    pub colour: bool,
    /// Everything, not just what fits 24 lines.
    pub is_verbose: bool,
    /// Where the HTML report is, if there is one.
    pub html: Option<&'a str>,
    /// Rows of audit rules; [`RULES_SHOWN`] without.
    pub rules: Option<usize>,
}

/// The default of `weigh rules --top`.
pub const RULES_SHOWN: usize = 20;

/// The first sentence of a warning: what is the matter, without what to do.
pub fn first_sentence(text: &str) -> String {
    text.split_once(". ").map_or_else(|| text.to_owned(), |(first, _)| format!("{first}."))
}
