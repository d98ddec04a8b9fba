//! Suffixes of a mix's name that state how its jobs use files: the size of a block, and how what is read
//! is cached. `load:disk@block-4k@beyond-cache-150%@cold` is another row than `load:disk`, so the two
//! are never compared.

use std::fmt;

use super::workfile::size_kib;

/// Suffix of a mix whose files are not in the page cache when they are read.
pub const COLD: &str = "@cold";
/// Suffix of a mix whose jobs read parts of a large file; the size of the file follows, as a share
/// of memory.
const BEYOND_CACHE: &str = "@beyond-cache-";
/// Suffix of a mix whose jobs read and write blocks of another size than 1 KiB; the size follows.
const BLOCK: &str = "@block-";
/// As much as the driver takes.
const MOST_BLOCK_KIB: u64 = 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixLabel<'a> {
    pub name: &'a str,
    /// In KiB, if not 1.
    pub block_kib: Option<u64>,
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
        let block = name.rsplit_once(BLOCK);
        let block = block.and_then(|(name, size)| Some((name, block_kib(size)?)));
        let (name, block_kib) = match block {
            Some((name, kib)) => (name, Some(kib)),
            None => (name, None),
        };
        MixLabel { name, block_kib, beyond_cache_pct, is_cold }
    }
}

impl fmt::Display for MixLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some(kib) = self.block_kib {
            write!(f, "{BLOCK}{kib}k")?;
        }
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

/// Parses a size as `4k` or `1m`, in KiB; `None` unless it is one that a block may have.
pub fn block_kib(text: &str) -> Option<u64> {
    size_kib(text).filter(|kib| (1..=MOST_BLOCK_KIB).contains(kib))
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
        let blocks = MixLabel::of("load:disk@block-4k@beyond-cache-150%@cold");
        assert_eq!(blocks.to_string(), "load:disk@block-4k@beyond-cache-150%@cold");
        assert_eq!((blocks.name, blocks.block_kib), ("load:disk", Some(4)));
        assert_eq!(
            MixLabel::of("load:disk@block-2m").block_kib,
            None,
            "larger than a block may be"
        );
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
