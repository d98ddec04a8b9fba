//! Parser of the output of `perf report --stdio --sort sym`: the functions of the kernel, and the
//! share of each.

use weigh_model::result::profiled::HotSymbol;

/// More of them say nothing that the first do not.
const MOST: usize = 20;
/// A name in the kernel is shorter: KSYM_NAME_LEN.
const LONGEST: usize = 512;

/// The functions of the kernel, those that took the most first.
pub fn kernel_symbols(report: &str) -> Vec<HotSymbol> {
    let mut found: Vec<HotSymbol> = report.lines().filter_map(symbol).collect();
    found.sort_by(|a, b| b.share_pct.total_cmp(&a.share_pct));
    found.truncate(MOST);
    found
}

/// `    12.34%  [k] clear_page_erms`
fn symbol(line: &str) -> Option<HotSymbol> {
    let (share, rest) = line.trim().split_once('%')?;
    let share_pct: f64 = share.parse().ok().filter(|share| (0.0..=100.0).contains(share))?;
    let symbol = rest.trim_start().strip_prefix("[k]")?.trim();
    let is_name = !symbol.is_empty() && symbol.len() <= LONGEST;
    is_name.then(|| HotSymbol { symbol: symbol.to_owned(), share_pct })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn functions_of_the_kernel_are_read_and_those_of_the_program_are_not() {
        let report = "# Overhead  Symbol\n#\n    25.15%  [.] handle_amd\n     2.93%  [k] exc_page_fault\n\
                      \u{20}    3.11%  [k] next_uptodate_folio\n   nan%  [k] x\n  300%  [k] y\n";
        let found = kernel_symbols(report);
        let names: Vec<&str> = found.iter().map(|one| one.symbol.as_str()).collect();
        assert_eq!(names, ["next_uptodate_folio", "exc_page_fault"]);
        assert_eq!(found[0].share_pct, 3.11);
    }

    proptest! {
        #[test]
        fn whatever_it_prints_is_read(text in "([0-9.% \\[\\]k#a-z]{0,20}\n){0,5}") {
            let found = kernel_symbols(&text);
            prop_assert!(found.iter().all(|one| one.share_pct <= 100.0 && !one.symbol.is_empty()));
        }
    }
}
