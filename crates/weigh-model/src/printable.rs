//! Foreign text on a terminal: what comes from files, commands and databases must not drive it.
//!
//! A control character can start an escape sequence, which may change the title, move the cursor or
//! type for the user. A bidirectional override can show another order than the one that is there. All of
//! these become U+FFFD. Everything that weigh prints passes through here: names where a report is put
//! together ([`line()`]), and the whole text again where it is written ([`text`], [`styled`]).
//!
//! So this is also the place that removes the numbers of errors, as in "No such file or directory (os error
//! 2)": `io::Error` writes them, and the words before them say the same.

use std::borrow::Cow;

const REPLACEMENT: char = '\u{fffd}';
const ERROR_NUMBER: &str = " (os error ";

/// Returns true if a terminal may interpret this character instead of showing it. These are the
/// controls C0, DEL and C1, bidirectional marks, embeddings, overrides and isolates (UAX #9), and
/// the separators that break a line.
fn is_unsafe(c: char) -> bool {
    let is_mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_mark || matches!(c, '\u{2028}'..='\u{202e}')
}

fn replaced(c: char) -> char {
    if is_unsafe(c) { REPLACEMENT } else { c }
}

/// A name or a sentence that stays on one line.
pub fn line(text: &str) -> String {
    without_error_numbers(text).chars().map(replaced).collect()
}

/// Several lines; line breaks and tabs stay.
pub fn text(text: &str) -> Cow<'_, str> {
    let text = without_error_numbers(text);
    let is_kept = |c: char| matches!(c, '\n' | '\t') || !is_unsafe(c);
    if text.chars().all(is_kept) {
        return text;
    }
    text.chars().map(|c| if is_kept(c) { c } else { REPLACEMENT }).collect::<String>().into()
}

/// Removes the numbers that `io::Error` writes after the words of an error. The same number after other words
/// is somebody's text, and stays.
fn without_error_numbers(text: &str) -> Cow<'_, str> {
    let mut parts = text.split(ERROR_NUMBER);
    let first = parts.next().unwrap_or_default();
    if first.len() == text.len() {
        return Cow::Borrowed(text);
    }
    parts
        .fold(first.to_owned(), |before, part| match number_and_rest(part) {
            Some((number, rest)) if before.ends_with(&words_of(number)) => before + rest,
            _ => before + ERROR_NUMBER + part,
        })
        .into()
}

fn number_and_rest(text: &str) -> Option<(i32, &str)> {
    let (number, rest) = text.split_once(')')?;
    Some((number.parse().ok()?, rest))
}

/// Returns the words that `io::Error` writes before this number.
fn words_of(number: i32) -> String {
    let error = std::io::Error::from_raw_os_error(number).to_string();
    error.split(ERROR_NUMBER).next().unwrap_or_default().to_owned()
}

/// Makes text with weigh's own colours safe to print: only sequences of bold, faint and coloured
/// text stay.
pub fn styled(coloured: &str) -> String {
    let mut safe = String::with_capacity(coloured.len());
    let mut rest = coloured;
    while let Some(at) = rest.find('\u{1b}') {
        safe += &text(&rest[..at]);
        match own_sequence(&rest[at..]) {
            Some(length) => {
                safe += &rest[at..at + length];
                rest = &rest[at + length..];
            }
            None => {
                safe.push(REPLACEMENT);
                rest = &rest[at + 1..];
            }
        }
    }
    safe + &text(rest)
}

/// The length of the sequence that a text begins with, where it is one that weigh itself writes. No
/// background, so that no text can be hidden.
fn own_sequence(text: &str) -> Option<usize> {
    let number = text.strip_prefix("\x1b[")?.split_once('m')?.0;
    let is_own = matches!(number.parse(), Ok(0..=2 | 30..=37 | 39 | 90..=97));
    (is_own && number.len() <= 2).then_some("\x1b[m".len() + number.len())
}

/// JSON that is written whole: what its writer leaves as it is (DEL, C1, bidirectional marks) is escaped,
/// so that it is read back unchanged. Only strings hold such characters.
pub fn json(document: &str) -> Cow<'_, str> {
    let is_kept = |c: char| c == '\n' || !is_unsafe(c);
    if document.chars().all(is_kept) {
        return Cow::Borrowed(document);
    }
    let mut safe = String::with_capacity(document.len());
    for c in document.chars() {
        match is_kept(c) {
            true => safe.push(c),
            // All of them are in the basic plane.
            false => safe += &format!("\\u{:04x}", u32::from(c)),
        }
    }
    safe.into()
}

/// The first 1000 characters, to quote a far end's text of any length.
pub fn brief(foreign: &str) -> String {
    match foreign.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{}…", &foreign[..end]),
        None => foreign.to_owned(),
    }
}

/// Limit of [`brief`], in characters.
const BRIEF: usize = 1000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use anstyle::{AnsiColor, Style};

    const BOLD: Style = Style::new().bold();
    const WARNING: Style = AnsiColor::Yellow.on_default();

    #[test]
    fn what_drives_a_terminal_is_replaced() {
        assert_eq!(
            line("a\x1b]0;pwned\x07b\n\u{9b}31m"),
            "a\u{fffd}]0;pwned\u{fffd}b\u{fffd}\u{fffd}31m"
        );
        assert_eq!(text("a\n\tb\r\u{202e}c"), "a\n\tb\u{fffd}\u{fffd}c");
        assert!(matches!(text("plain, with “quotes” and −1 %"), Cow::Borrowed(_)));
    }

    #[test]
    fn errors_are_printed_without_their_numbers() {
        let error = std::io::Error::from_raw_os_error(2);
        let told = format!("a: {error}; b: {error}");
        let expected = "a: No such file or directory; b: No such file or directory";
        assert!(told.contains("(os error 2)"), "{told}");
        for printed in [line(&told), text(&told).into_owned(), styled(&told)] {
            assert_eq!(printed, expected);
        }
        for kept in [
            "a (os error two) b",
            "a (os error ",
            "a (os error ) b",
            "a (os error 2",
            "grep 'x (os error 2)' log",
            "No such file or directory (os error 13)",
        ] {
            assert_eq!(text(kept), kept);
        }
    }

    #[test]
    fn only_our_own_colours_stay() {
        let own = format!("{BOLD}a{BOLD:#} {}b{:#}", WARNING.bold(), WARNING.bold());
        assert_eq!(styled(&own), own);
        for foreign in [
            "\x1b[8m",
            "\x1b[41m",
            "\x1b[2J",
            "\x1b]0;pwned\x07",
            "\x1b[",
            "\x1b",
            "\x1b[31;5m",
            "\x1bc",
        ] {
            assert!(!styled(&format!("{own}{foreign}")).ends_with(foreign), "{foreign:?}");
            assert_eq!(styled(foreign).matches('\x1b').count(), 0, "{foreign:?}");
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"a\u{9b}": ["\x1b[31m\u{7f}\u{202e}", "plain"]});
        let document = serde_json::to_string_pretty(&value).unwrap();
        let safe = json(&document);
        assert!(safe.chars().all(|c| c == '\n' || !is_unsafe(c)), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }

    proptest! {
        #[test]
        fn no_text_drives_the_terminal(foreign in any::<String>()) {
            prop_assert!(!line(&foreign).contains(is_unsafe));
            prop_assert!(!text(&foreign).contains(|c| is_unsafe(c) && !matches!(c, '\n' | '\t')));
            let left = styled(&foreign);
            for (at, _) in left.match_indices('\x1b') {
                prop_assert!(own_sequence(&left[at..]).is_some());
            }
        }
    }
}
