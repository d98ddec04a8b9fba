//! A database table that fills with random keys, as Whitcher (2003) filled his: its time until it has so
//! many records.

use crate::ids::ArmId;
use crate::result::work_name::WorkName;

/// Keys of a table of `app:db.random-fill`.
const KEYS_TO_FILL: f64 = (1u32 << 20) as f64;
/// Rows at which Whitcher stopped the clock: 86 % of his 2²⁰ keys, 90 % of a million.
pub const RECORDS: f64 = 900_000.0;
const KEYS: f64 = 1e6;
/// How full tables of `app:db.random-insert` are at first, in per cent; the last is where the time ends.
pub const FILLS: [u32; 4] = [0, 30, 60, 90];

/// The passes of one arm over a table that fills.
pub struct Filling {
    pub name: WorkName,
    pub arm: ArmId,
    /// The queries and the rate of each pass.
    pub passes: Vec<[f64; 2]>,
}

impl Filling {
    /// The time of the passes until the table of each client has all records; `None` if they end before.
    pub fn seconds_to_records(&self) -> Option<f64> {
        let drawn = KEYS_TO_FILL * (KEYS_TO_FILL / (KEYS_TO_FILL - RECORDS)).ln();
        let mut left = drawn * self.name.copies() as f64;
        let mut seconds = 0.0;
        for [queries, rate] in &self.passes {
            seconds += left.min(*queries) / rate;
            left -= queries;
            if left <= 0.0 {
                return Some(seconds);
            }
        }
        None
    }
}

/// How full a client's table is expected to be: a key stays absent with the chance that no query of this
/// client has drawn it.
pub fn filled_pct(queries_of_client: f64) -> f64 {
    100.0 * (1.0 - (-queries_of_client / KEYS_TO_FILL).exp())
}

/// Returns how many random keys have to be drawn to reach all records.
pub fn queries() -> f64 {
    KEYS * (KEYS / (KEYS - RECORDS)).ln()
}

/// Returns the time to insert all records, from the query rate at each fill level. At fill level f, a further
/// share df takes KEYS·df/(1 − f) queries, because the remaining queries draw keys that exist. A query is a
/// lookup and, with probability 1 − f, an insert. So its time t is linear in f if lookup and insert each take
/// equally long at every fill level.
pub fn seconds_to_the_end(rates: [f64; FILLS.len()]) -> f64 {
    let points: Vec<(f64, f64)> = FILLS
        .iter()
        .zip(rates)
        .map(|(fill, rate)| (f64::from(*fill) / 100.0, 1.0 / rate))
        .collect();
    let part = |[(from, t), (to, t_end)]: [(f64, f64); 2]| {
        let (slope, drawn) = ((t_end - t) / (to - from), ((1.0 - from) / (1.0 - to)).ln());
        t * drawn + slope * ((1.0 - from) * drawn - (to - from))
    };
    KEYS * points.windows(2).map(|two| part([two[0], two[1]])).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_all_records_is_that_of_the_queries_at_each_fill() {
        // What does not depend on the fill takes as many turns as there are keys to draw.
        let flat = seconds_to_the_end([1000.0; 4]);
        assert!((flat - queries() / 1000.0).abs() < 1e-6, "{flat}");
        assert!((queries() - 1e6 * 10_f64.ln()).abs() < 1.0);
        // An insert takes 1 ms and a lookup nothing: then it is the time of the records.
        let inserting = [0.0, 0.3, 0.6, 0.9].map(|fill: f64| 1000.0 / (1.0 - fill));
        let seconds = seconds_to_the_end(inserting);
        assert!((seconds - 900.0).abs() < 1e-6, "{seconds}");
    }

    #[test]
    fn the_time_of_a_run_ends_within_the_pass_that_has_the_last_record() {
        let run = |passes: &[[f64; 2]]| {
            let name = WorkName::of_copies("app:db.random-fill@mariadb", 2);
            Filling { name, arm: ArmId(0), passes: passes.to_vec() }.seconds_to_records()
        };
        // Each client draws 2^20 · ln (2^20 / (2^20 − 900,000)) = 2,049,014 keys.
        let million = [1e6, 1000.0];
        assert_eq!(run(&[million; 4]), None);
        let seconds = run(&[million, million, million, million, [1e6, 500.0]]).unwrap();
        assert!((seconds - (4000.0 + 98_027.0 / 500.0)).abs() < 1.0, "{seconds}");
    }
}
