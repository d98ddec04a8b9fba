//! Command lines with quotes: shown so that they can be typed again, and taken apart without a shell.

/// A command line that a shell splits into just these words.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    let quote = |word: &str| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// The words of a command line, as a shell splits them: at blanks that are not in quotes or behind a
/// backslash. Nothing else has a meaning, not `$` nor `*`.
///
/// # Errors
/// Where a quote is not closed, or a backslash is last.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' | '"' => quoted(c, &mut chars, word.get_or_insert_default())?,
            '\\' => {
                let next = chars.next().ok_or("a backslash is last")?;
                word.get_or_insert_default().push(next);
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Takes what is up to the closing quote.
fn quoted(quote: char, chars: &mut std::str::Chars, word: &mut String) -> Result<(), String> {
    while let Some(c) = chars.next() {
        match c {
            c if c == quote => return Ok(()),
            '\\' if quote == '"' => match chars.next() {
                Some(c) if c == '"' || c == '\\' => word.push(c),
                Some(c) => word.extend(['\\', c]),
                None => break,
            },
            c => word.push(c),
        }
    }
    Err(format!("the quote {quote} is not closed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_by_a_shell_and_nothing_is_expanded() {
        let split = |line: &str| words(line).unwrap();
        assert_eq!(split("  -O3\t-march=native "), ["-O3", "-march=native"]);
        assert_eq!(split(r#"-DX="a b" -DY='"c"' \"z\" """#), ["-DX=a b", "-DY=\"c\"", "\"z\"", ""]);
        assert_eq!(split("$HOME *.c a;b `id`"), ["$HOME", "*.c", "a;b", "`id`"]);
        assert_eq!(split(r#""a\"b\c\\""#), [r#"a"b\c\"#]);
        assert_eq!(split(""), [""; 0]);
        for unclosed in ["'a", "\"a", "a\\", "\"a\\"] {
            assert!(words(unclosed).is_err(), "{unclosed}");
        }
        let hard = ["it's", "", "a b", "\\", "\"x"];
        assert_eq!(words(&command_line(hard)).unwrap(), hard);
    }

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(command_line(["weigh", "--budget", "5m"]), "weigh --budget 5m");
        assert_eq!(command_line(["echo", "it's", ""]), "echo 'it'\\''s' ''");
    }
}
