//! Text as GitHub's Markdown. A [`Markdown`] is made of our own constants and of escaped text, and of nothing
//! else: so no name, fact or reason that somebody else wrote is markup, whoever forgets about it.

use std::fmt::Display;

use weigh_model::format;
use weigh_model::printable;

/// A part of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markdown(String);

/// Markup of our own.
impl From<&'static str> for Markdown {
    fn from(own: &'static str) -> Markdown {
        Markdown(own.to_owned())
    }
}

impl Markdown {
    /// A sentence, whose names are in backticks.
    pub fn text(text: &(impl Display + ?Sized)) -> Markdown {
        let text = format::label(text);
        let mut parts: Vec<&str> = text.split('`').collect();
        // The last backtick of an odd number begins nothing.
        let rest = if parts.len().is_multiple_of(2) { parts.pop() } else { None };
        let mut written = String::new();
        for (number, part) in parts.into_iter().enumerate() {
            match number % 2 {
                0 => escape_into(&mut written, part),
                _ => written += &code_span(part),
            }
        }
        if let Some(rest) = rest {
            written += "\\`";
            escape_into(&mut written, rest);
        }
        Markdown(without_block(written))
    }

    pub fn cell(text: &str) -> Markdown {
        let mut written = String::new();
        escape_into(&mut written, &format::label(text));
        Markdown(written)
    }

    /// A name between backticks.
    pub fn code(text: &(impl Display + ?Sized)) -> Markdown {
        Markdown(code_span(&format::label(text)))
    }

    /// A name between backticks in a cell of a table that is no part of a document.
    pub fn code_cell(text: &(impl Display + ?Sized)) -> String {
        code_span(&format::label(text)).replace('|', "\\|")
    }

    /// A code block whose fence is longer than any run of backticks within it.
    pub fn fenced(text: &str) -> Markdown {
        let text = printable::text(text);
        let mut fence = "```".to_owned();
        while text.contains(fence.as_str()) {
            fence.push('`');
        }
        Markdown(format!("{fence}sh\n{text}\n{fence}"))
    }

    /// One after the other.
    pub fn of(parts: impl IntoIterator<Item = Markdown>) -> Markdown {
        Markdown::joined(parts, "")
    }

    pub fn joined(parts: impl IntoIterator<Item = Markdown>, between: &'static str) -> Markdown {
        let parts: Vec<String> = parts.into_iter().map(|part| part.0).collect();
        Markdown(parts.join(between))
    }

    pub fn document(paragraphs: Vec<Markdown>) -> String {
        let paragraphs: Vec<&str> = paragraphs.iter().map(|part| part.0.trim_end()).collect();
        paragraphs.join("\n\n") + "\n"
    }
}

/// One within it would end it early.
fn code_span(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!("`{}`", text.replace('`', "'")),
    }
}

/// Adds text that stands outside of code.
fn escape_into(written: &mut String, text: &str) {
    let mut before = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let after = rest.as_str();
        let begins_link = after.starts_with(['(', '[', ':']);
        let is_interval = after.starts_with(|c: char| c.is_ascii_digit() || "−–-+".contains(c));
        match c {
            // Renderers that know no escapes pass HTML through.
            '<' => *written += "&lt;",
            '&' => *written += "&amp;",
            '\\' | '`' | '|' | '*' | '_' | '~' => written.extend(['\\', c]),
            '[' if !is_interval => *written += "\\[",
            ']' if begins_link => *written += "\\]",
            '!' if after.starts_with('[') => *written += "\\!",
            ':' if after.starts_with("//") => *written += "\\:",
            // GitHub looks for people when escapes are gone, but not in code.
            '@' if !before.is_some_and(char::is_alphanumeric) => *written += "`@`",
            _ => written.push(c),
        }
        before = Some(c);
    }
}

/// Escapes characters that would begin a heading, a list or a quotation at the start of a line.
fn without_block(text: String) -> String {
    let text = text.trim_start();
    let number = text.bytes().take_while(u8::is_ascii_digit).count();
    if text.starts_with(['#', '-', '+', '>', '=']) {
        return format!("\\{text}");
    }
    match text.get(number..number + 1) {
        Some("." | ")") if number > 0 => format!("{}\\{}", &text[..number], &text[number..]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> String {
        Markdown::text(text).0
    }

    #[test]
    fn foreign_text_is_no_markup() {
        for (foreign, escaped) in [
            ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
            ("[x](javascript:alert(1))", "\\[x\\](javascript:alert(1))"),
            ("![x](http://evil/x.png)", "\\!\\[x\\](http\\://evil/x.png)"),
            ("[1](x) [2]: y", "[1\\](x) [2\\]: y"),
            ("a & @people, x@same-cpu", "a &amp; `@`people, x@same-cpu"),
            ("**a** _b_ ~c~ | d \\ e", "\\*\\*a\\*\\* \\_b\\_ \\~c\\~ \\| d \\\\ e"),
            ("one ` alone <b>", "one \\` alone &lt;b>"),
            ("# a", "\\# a"),
            ("- a", "\\- a"),
            ("1. a", "1\\. a"),
            ("    a\nb", "a\u{fffd}b"),
        ] {
            assert_eq!(text(foreign), escaped);
        }
        assert_eq!(Markdown::cell("`a` <b> | @c").0, "\\`a\\` &lt;b> \\| `@`c");
    }

    #[test]
    fn names_in_backticks_and_numbers_stay_as_they_are() {
        let own = "`a<b>|@c` slows 1 of 2 workloads by −1.5 % [−2, +1] (0.5 s): `x`.";
        assert_eq!(text(own), own);
        assert_eq!(text("`a``b` and ``"), "`a``b` and ");
        assert_eq!(Markdown::code("a`b").0, "`a'b`");
    }

    #[test]
    fn a_fence_outlasts_its_content() {
        assert!(Markdown::fenced("a ``` b").0.starts_with("````sh\n"));
    }
}
