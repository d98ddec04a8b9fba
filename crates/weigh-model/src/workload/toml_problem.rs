//! Errors of a user's TOML file, with their line, in words that do not come from Rust.

/// Names of types, as `toml` has them from serde.
const WORDS: [(&str, &str); 9] = [
    ("expected f64", "expected a number"),
    ("expected u8", "expected a whole number"),
    ("expected u16", "expected a whole number"),
    ("expected u32", "expected a whole number"),
    ("expected u64", "expected a whole number"),
    ("expected usize", "expected a whole number"),
    ("expected a borrowed string", "expected a string"),
    ("expected a sequence", "expected a list"),
    ("expected a map", "expected a table"),
];

/// A sentence with the file, the line and what is wrong there.
pub fn sentence(file: &str, text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map_or(0, |span| line_at(text, span.start));
    let mut message = error.message().to_owned();
    for (serde, plain) in WORDS {
        if let Some(begin) = message.strip_suffix(serde) {
            message = format!("{begin}{plain}");
        }
    }
    format!("{file}:{line}: {message}")
}

pub fn line_at(text: &str, index: usize) -> usize {
    text[..index].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_wrong_type_is_told_in_plain_words_with_its_line() {
        let text = "stat = 1\npipe = \"a\"\n";
        let error = toml::from_str::<BTreeMap<String, f64>>(text).unwrap_err();
        let said = "mix.toml:2: invalid type: string \"a\", expected a number";
        assert_eq!(sentence("mix.toml", text, &error), said);
        let error = toml::from_str::<BTreeMap<String, u32>>(text).unwrap_err();
        assert!(sentence("x", text, &error).ends_with("expected a whole number"));
    }
}
