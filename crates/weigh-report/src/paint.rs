//! Colours of a terminal, where there are any. No meaning is carried by a colour alone.

use anstyle::{AnsiColor, Style};

use paired::Verdict;

pub const BOLD: Style = Style::new().bold();
pub const FAINT: Style = Style::new().dimmed();
pub const WARNING: Style = AnsiColor::Yellow.on_default();

/// Red and cyan can be told apart by nearly everybody; what has no difference stays quiet.
pub fn of(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Slower => AnsiColor::Red.on_default(),
        Verdict::Faster => AnsiColor::Cyan.on_default(),
        Verdict::Equivalent => Style::new(),
        Verdict::Inconclusive => WARNING,
    }
}

/// The text in a style, if there is colour at all.
pub fn paint(text: &str, style: Style, colour: bool) -> String {
    if !colour || style.is_plain() || text.is_empty() {
        return text.to_owned();
    }
    format!("{style}{text}{style:#}")
}
