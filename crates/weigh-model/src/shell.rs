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

/// Splits a command line into words as a shell does: at blanks that are not in quotes or behind a backslash.
/// `$` and `*` have no meaning; a word that begins with `#` begins a comment.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    shlex::split(line).ok_or_else(|| "a quote is not closed, or a backslash is last".to_owned())
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
