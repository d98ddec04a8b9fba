//! re-aim's workfiles: `HITS TEST` a line, `#` before a comment, `FILESIZE:` and `POOLSIZE:` for the files of
//! its disk tests (classic-suites.md, 3.1).

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workfile {
    pub hits: BTreeMap<String, f64>,
    /// Sum of all lines: a test that is named twice counts twice here.
    pub total: f64,
    pub file_kib: Option<u64>,
    pub pool_kib: Option<u64>,
    /// Sentences on what is read as re-aim does and perhaps not as it was meant.
    pub doubts: Vec<String>,
}

pub fn parse(file: &str, text: &str) -> Result<Workfile, String> {
    let mut workfile = Workfile::default();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let wrong = |why: &str| Err(format!("{file}:{}: {why}", number + 1));
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            [key, size @ ..] if is_size(key) => {
                let Some(kib) = size_kib(&size.concat()) else {
                    return wrong(&format!("{key} takes a number and K or M"));
                };
                match key.to_ascii_uppercase().starts_with("FILE") {
                    true => workfile.file_kib = Some(kib),
                    false => workfile.pool_kib = Some(kib),
                }
            }
            [hits, test] => match hits.parse::<u32>() {
                Ok(hits) => workfile.add(file, number + 1, f64::from(hits), test),
                Err(_) => return wrong(&format!("`{hits}` is not a number of hits")),
            },
            _ => return wrong("a line is HITS TEST, such as `10 add_double`"),
        }
    }
    Ok(workfile)
}

impl Workfile {
    /// re-aim keeps the last hits of a test that is named again, but adds up the total of all.
    fn add(&mut self, file: &str, line: usize, hits: f64, test: &str) {
        self.total += hits;
        if self.hits.insert(test.to_owned(), hits).is_some() {
            self.doubts.push(format!(
                "{file}:{line}: `{test}` is named twice. As in re-aim, only the last weight counts, but the \
                 total includes both"
            ));
        }
    }
}

fn is_size(key: &str) -> bool {
    let key = key.trim_end_matches(':');
    key.eq_ignore_ascii_case("FILESIZE") || key.eq_ignore_ascii_case("POOLSIZE")
}

/// `10k`, `1M`.
pub fn size_kib(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    match text[digits.len()..].to_ascii_lowercase().as_str() {
        "k" | "kb" => Some(number),
        "m" | "mb" => number.checked_mul(1024),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_workfile_is_read_as_re_aim_reads_it() {
        let text = "# a comment\nFILESIZE: 10 K\nPOOLSIZE: 1M\n20 string_rtns\n\n10 add_int # more\n30 \
                    string_rtns\n";
        let workfile = parse("workfile.x", text).unwrap();
        let hits = [("add_int", 10.0), ("string_rtns", 30.0)].map(|(test, n)| (test.to_owned(), n));
        assert_eq!((&workfile.hits, workfile.total), (&BTreeMap::from(hits), 60.0));
        assert_eq!((workfile.file_kib, workfile.pool_kib), (Some(10), Some(1024)));
        assert_eq!(workfile.doubts.len(), 1);
        assert!(workfile.doubts[0].starts_with("workfile.x:7: `string_rtns` is named twice"));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (line, why) in [
            ("ten add_int", "x:2: `ten` is not a number"),
            ("-1 add_int", "x:2: `-1` is not a number"),
            ("add_int", "x:2: a line is HITS TEST"),
            ("1 2 3", "x:2: a line is HITS TEST"),
            ("FILESIZE: big", "x:2: FILESIZE: takes a number"),
        ] {
            let problem = parse("x", &format!("10 add_int\n{line}\n")).unwrap_err();
            assert!(problem.starts_with(why), "{problem}");
        }
    }

    proptest! {
        #[test]
        fn foreign_text_never_panics(text in "(?s).{0,200}") {
            let _ = parse("x", &text);
            let _ = size_kib(&text);
        }
    }
}
