//! Rewrites in words: what one saves, and what it gives up.

use super::words::{amount, interval, number, share};
use super::{Line, Rewrite, RuleReport};
use crate::report::format;

/// What a rewrite saves, with its interval and per operation.
pub fn saving(r: &RuleReport, rewrite: &Rewrite) -> String {
    let saving = rewrite.saving_per_syscall;
    let per_operation = r.operations.iter().zip(&rewrite.saving_per_operation);
    let per_operation: Vec<String> = per_operation
        .map(|(operation, saved)| {
            format!("{} {}", format::label(&operation.name), number(saved.value))
        })
        .collect();
    let per_operation = match per_operation.is_empty() {
        true => String::new(),
        false => format!(" ({})", per_operation.join(", ")),
    };
    let saved = amount(saving.value, r.metric);
    let bounds = interval(saving);
    match (saving.low, saving.high) {
        (low, _) if low > 0.0 => {
            let of_total = share(100.0 * saving.value / r.total.value);
            format!("saves {saved} per call {bounds}, {of_total} of the whole{per_operation}")
        }
        (_, high) if high < 0.0 => {
            let more = amount(-saving.value, r.metric);
            format!("does not save, but costs {more} more per call{per_operation}")
        }
        _ => format!("a saving cannot be told from nothing: {saved} per call {bounds}"),
    }
}

/// The lines that it takes the place of.
pub fn replaced<'a>(r: &'a RuleReport, rewrite: &Rewrite) -> Vec<&'a Line> {
    rewrite.replaces.iter().filter_map(|&i| r.lines.get(i)).collect()
}

/// What is no longer recorded, a phrase.
pub fn given_up(rewrite: &Rewrite) -> String {
    rewrite.gives_up.as_deref().map_or_else(|| "nothing".to_owned(), format::label)
}
