//! A screen that a report is shown on.

/// Room for a text: sentences are wrapped, and what must stay on one line is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    pub wrap: usize,
    pub cut: usize,
}

impl Room {
    /// A pipe, a file or a log. Whoever reads it cannot make it wider, so nothing is cut; sentences have
    /// lines that fit a mail.
    pub const FILE: Room = Room { wrap: 100, cut: usize::MAX };

    /// A terminal of so many columns.
    pub const fn terminal(columns: usize) -> Room {
        Room { wrap: columns, cut: columns }
    }

    pub fn is_file(self) -> bool {
        self.cut == usize::MAX
    }

    /// Room that is no narrower than this.
    pub fn at_least(self, columns: usize) -> Room {
        Room { wrap: self.wrap.max(columns), cut: self.cut.max(columns) }
    }
}

/// Settings for showing a report on a screen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Screen<'a> {
    pub room: Room,
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
