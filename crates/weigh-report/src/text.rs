//! Running text on a terminal: wrapped by words, a number kept with its unit.

use super::paint::{BOLD, paint};
use super::screen::Room;
use weigh_model::format;

/// Wraps to lines of at most `width` characters; lines after the first get `indent` blanks.
pub fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in words(text) {
        let used = line.chars().count();
        if used > 0 && used + 1 + word.chars().count() > width && !line.trim().is_empty() {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
        } else if !line.trim().is_empty() {
            line.push(' ');
        }
        line += &word;
    }
    if !line.trim().is_empty() {
        lines.push(line);
    }
    lines
}

/// One line on a terminal, cut at the end of a word; in a file all of it.
pub fn brief_line(text: &str, room: Room) -> Vec<String> {
    match room.is_file() {
        true => wrap(text, room.wrap, 2),
        false => vec![format::shorten_sentence(text, room.cut)],
    }
}

/// Splits at blanks, except within an interval and between a number and what it counts.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(last) if word.starts_with('%') || last.starts_with('[') && last.ends_with(',') => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Shows the names between backticks in bold; without colour the backticks stay.
pub fn emphasise(text: &str, colour: bool) -> String {
    if !colour {
        return text.to_owned();
    }
    let parts = text.split('`').enumerate();
    parts
        .map(|(i, part)| if i % 2 == 1 { paint(part, BOLD, true) } else { part.to_owned() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_only() {
        let lines = wrap("costs `syscall` 85.2 % [−85.6, −84.9]; the rest nothing", 24, 2);
        assert_eq!(lines, ["costs `syscall` 85.2 %", "  [−85.6, −84.9]; the", "  rest nothing"]);
        assert_eq!(wrap("longer-than-the-line a", 5, 0), ["longer-than-the-line", "a"]);
        assert!(wrap("  ", 10, 0).is_empty());
    }

    #[test]
    fn names_are_bold_with_colour() {
        assert_eq!(emphasise("`a` b", false), "`a` b");
        assert_eq!(emphasise("`a` b", true), "\u{1b}[1ma\u{1b}[0m b");
    }
}
