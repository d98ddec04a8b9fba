//! Use of swap: memory that the kernel wrote to swap or read back.

use std::path::Path;

use super::source::Source;

const PAGE_BYTES: u64 = 4096;

/// Bytes that were moved since the boot; `None` if the kernel does not count them.
pub fn moved_bytes() -> Option<u64> {
    moved_below(Path::new("/"))
}

fn moved_below(root: &Path) -> Option<u64> {
    let text = Source::new(root).text("proc/vmstat")?;
    let pages = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line?.parse::<u64>().ok()
    };
    let size = rustix::param::page_size().try_into().unwrap_or(PAGE_BYTES);
    Some(pages("pswpin")?.saturating_add(pages("pswpout")?).saturating_mul(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_count() {
        let root = tempfile::tempdir().unwrap();
        let moved = || moved_below(root.path());
        assert_eq!(moved(), None);
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let text = "pgpgin 9\npswpin 2\npswpout 3\npswpin_more 7\n";
        std::fs::write(root.path().join("proc/vmstat"), text).unwrap();
        assert_eq!(moved(), Some(5 * rustix::param::page_size() as u64));
    }
}
