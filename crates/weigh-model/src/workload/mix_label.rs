//! Suffixes of a mix's name that state how the files its jobs read are cached.
//! `load:disk@beyond-cache-150%@cold` is another row than `load:disk`, so the two are never
//! compared.

use std::fmt;

/// Suffix of a mix whose files are not in the page cache when they are read.
pub const COLD: &str = "@cold";
/// Suffix of a mix whose jobs read parts of a large file; the size of the file follows, as a share
/// of memory.
const BEYOND_CACHE: &str = "@beyond-cache-";

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixLabel<'a> {
    pub name: &'a str,
    /// In percent of the memory.
    pub beyond_cache_pct: Option<f64>,
    pub is_cold: bool,
}

impl<'a> MixLabel<'a> {
    pub fn of(label: &'a str) -> MixLabel<'a> {
        let (rest, is_cold) = match label.strip_suffix(COLD) {
            Some(rest) => (rest, true),
            None => (label, false),
        };
        let beyond = rest.rsplit_once(BEYOND_CACHE);
        let beyond = beyond.and_then(|(name, share)| Some((name, share_pct(share)?)));
        let (name, beyond_cache_pct) = match beyond {
            Some((name, pct)) => (name, Some(pct)),
            None => (rest, None),
        };
        MixLabel { name, beyond_cache_pct, is_cold }
    }
}

impl fmt::Display for MixLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some(pct) = self.beyond_cache_pct {
            write!(f, "{BEYOND_CACHE}{pct}%")?;
        }
        f.write_str(if self.is_cold { COLD } else { "" })
    }
}

/// Parses a share as `150%`; `None` unless it is a share of memory that a file may have.
pub fn share_pct(text: &str) -> Option<f64> {
    let number: f64 = text.strip_suffix('%').unwrap_or(text).parse().ok()?;
    (0.1..=10_000.0).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_taken_apart_and_put_together() {
        let read = |label: &'static str| {
            let read = MixLabel::of(label);
            assert_eq!(read.to_string(), label);
            (read.name, read.beyond_cache_pct, read.is_cold)
        };
        assert_eq!(read("load:disk"), ("load:disk", None, false));
        assert_eq!(read("load:./a.toml@cold"), ("load:./a.toml", None, true));
        assert_eq!(read("load:disk@beyond-cache-150%"), ("load:disk", Some(150.0), false));
        assert_eq!(read("load:disk@beyond-cache-12.5%@cold"), ("load:disk", Some(12.5), true));
        // No share is part of the name, which there is none of.
        assert_eq!(read("load:disk@beyond-cache-much").1, None);
        assert_eq!(
            MixLabel::of("load:disk@beyond-cache-150").to_string(),
            "load:disk@beyond-cache-150%"
        );
    }

    #[test]
    fn a_share_is_a_number_with_or_without_a_percent_sign() {
        assert_eq!((share_pct("150%"), share_pct("0.5")), (Some(150.0), Some(0.5)));
        for wrong in ["", "%", "0%", "much", "-1%", "nan", "1e9%", "1%%"] {
            assert_eq!(share_pct(wrong), None, "{wrong}");
        }
    }
}
