//! Parallel work on the rows of an experiment: on all CPUs, if the rows are long.

use std::sync::Mutex;
use std::thread;

/// With fewer pairs than this in all rows together, a thread would cost more than it saves.
const LONG: usize = 20_000;

/// Applies `work` to each row, and returns the results in the order of the rows. `pairs` returns
/// the length of a row.
pub fn map_rows<T: Send, R: Send>(
    rows: impl IntoIterator<Item = T>,
    pairs: impl Fn(&T) -> usize,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let rows: Vec<T> = rows.into_iter().collect();
    if rows.iter().map(pairs).sum::<usize>() < LONG {
        return rows.into_iter().map(work).collect();
    }
    let helpers = thread::available_parallelism().map_or(1, |cpus| cpus.get()).min(rows.len()) - 1;
    let open = Mutex::new(rows.into_iter().enumerate());
    // The lock is given back before the work begins.
    let next = || open.lock().expect("no thread works while it holds the lock").next();
    let take_turns = || -> Vec<(usize, R)> {
        std::iter::from_fn(next).map(|(number, row)| (number, work(row))).collect()
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        // One that cannot be made leaves its rows to the others, of which this thread is one.
        let start = |_| thread::Builder::new().spawn_scoped(scope, take_turns).ok();
        let helpers: Vec<_> = (0..helpers).filter_map(start).collect();
        let mut done = take_turns();
        done.extend(helpers.into_iter().flat_map(|thread| thread.join().expect("a row's work")));
        done
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rows_keep_their_order() {
        let double = |row: usize| 2 * row;
        for pairs in [1, LONG] {
            let found = map_rows(0..100_usize, |_| pairs, double);
            assert_eq!(found, (0..100).map(double).collect::<Vec<_>>());
        }
    }
}
