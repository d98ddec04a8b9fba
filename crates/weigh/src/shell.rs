//! Showing a command so that it can be typed again.

/// A command line that a shell splits into just these words.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    let quote = |word: &str| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(command_line(["weigh", "--budget", "5m"]), "weigh --budget 5m");
        assert_eq!(command_line(["echo", "it's", ""]), "echo 'it'\\''s' ''");
    }
}
