//! The backlog limit that is needed: found by search with a burst and nobody made to wait for room.

use std::time::{Duration, Instant};

use super::subject::burst;
use super::treated::Treated;
use linux_audit::status::{AuditSetting, Status, jiffies_to_s};
use weigh_engine::platform::Stop;
use weigh_engine::work::Work;
use weigh_model::result::budget::{Backlog, Common, PerOperation, Tried};
use weigh_treatment::audit::needs;

const TRIES: usize = 3;
/// The longer a burst, the more it is a load; and a search takes forty of them.
const BURST_S: f64 = 0.1;
const MOST_BURST_RECORDS: f64 = 100_000.0;
/// A kernel's own limit, and that of Debian's and Red Hat's rule files.
const COMMON: [u32; 2] = [64, 8192];
const SMALLEST: u32 = 8;
/// Precision of the limit, as a divisor: the search stops within 1/16 of it. The tries themselves
/// differ by more.
const PRECISION: u32 = 16;
const DRAIN_LIMIT: Duration = Duration::from_secs(60);

/// Operations of a burst, where the user does not say: what the workload does in 100 ms.
pub fn usual_burst(per_operation: &PerOperation) -> u64 {
    let most = MOST_BURST_RECORDS / per_operation.records.max(f64::MIN_POSITIVE);
    (per_operation.full_speed * BURST_S).min(most).max(1.0) as u64
}

/// Searches. The settings are changed, and are the treatment's to put back; none of its own proofs
/// may follow.
pub fn search(
    treated: &mut Treated,
    work: &Work,
    per_operation: &PerOperation,
    operations: u64,
) -> Result<Backlog, Stop> {
    let rules = treated.client.rules().map_err(needs)?;
    let usual_wait = treated.status()?.backlog_wait_time;
    let burst_records = operations as f64 * per_operation.records;
    let mut common = Vec::new();
    for limit in COMMON {
        let (lost, waited_s) = attempt(treated, work, operations, limit, usual_wait)?;
        let (lost_without_wait, _) = attempt(treated, work, operations, limit, 0)?;
        common.push(Common { limit, waited_s, lost, lost_without_wait });
    }
    // With the records of its start, and of whoever else is audited.
    let most = (burst_records * 1.25).min(f64::from(u32::MAX / 4)) as u32 + 4096;
    let enough = bisect(SMALLEST, most, |limit| {
        let tried = try_limit(treated, work, operations, limit)?;
        Ok(tried.lost.iter().all(|lost| *lost == 0))
    })?;
    let (enough, half) = match enough {
        Some(limit) => {
            let (enough, half) = confirm_both(treated, work, operations, limit, most)?;
            (Some(enough), Some(half))
        }
        None => (None, None),
    };
    if treated.client.rules().map_err(needs)? != rules {
        return Err(Stop::Failed("the audit rules were changed during the measurement".into()));
    }
    Ok(Backlog { burst: operations, burst_records, enough, half, common })
}

/// The smallest of the numbers for which it holds, to one part in [`PRECISION`]; `None` where it does
/// not hold for the largest.
fn bisect(
    smallest: u32,
    largest: u32,
    mut holds: impl FnMut(u32) -> Result<bool, Stop>,
) -> Result<Option<u32>, Stop> {
    if !holds(largest)? {
        return Ok(None);
    }
    let (mut low, mut high) = (smallest, largest.max(smallest));
    while high - low > (high / PRECISION).max(1) {
        // Limits differ by factors: the middle of 8 and 100 000 is about 900.
        let middle = (f64::from(low) * f64::from(high)).sqrt() as u32;
        let middle = middle.clamp(low + 1, high - 1);
        if holds(middle)? { high = middle } else { low = middle }
    }
    Ok(Some(high))
}

/// A limit that is enough, and what becomes of half of it. One burst that something else held up has the
/// search end too high; then half of it is enough, and is tried in its place.
fn confirm_both(
    treated: &mut Treated,
    work: &Work,
    operations: u64,
    found: u32,
    most: u32,
) -> Result<(Tried, Tried), Stop> {
    let mut enough = confirm(treated, work, operations, found, most)?;
    loop {
        let half = try_limit(treated, work, operations, (enough.limit / 2).max(1))?;
        if half.lost.iter().any(|lost| *lost > 0) || half.limit < SMALLEST {
            return Ok((enough, half));
        }
        enough = half;
    }
}

/// Bursts are not alike: a limit that was enough by chance is raised until it is enough again.
fn confirm(
    treated: &mut Treated,
    work: &Work,
    operations: u64,
    found: u32,
    most: u32,
) -> Result<Tried, Stop> {
    let mut limit = found;
    loop {
        let tried = try_limit(treated, work, operations, limit)?;
        if limit >= most || tried.lost.iter().all(|lost| *lost == 0) {
            return Ok(tried);
        }
        limit = (limit + limit / 4 + 1).min(most);
    }
}

/// A loss ends it: further tries would say nothing more.
fn try_limit(
    treated: &mut Treated,
    work: &Work,
    operations: u64,
    limit: u32,
) -> Result<Tried, Stop> {
    let mut lost = Vec::new();
    while lost.len() < TRIES && lost.iter().all(|lost| *lost == 0) {
        lost.push(attempt(treated, work, operations, limit, 0)?.0);
    }
    Ok(Tried { limit, lost })
}

/// A burst with these settings: records lost, and seconds waited.
fn attempt(
    treated: &mut Treated,
    work: &Work,
    operations: u64,
    limit: u32,
    wait_jiffies: u32,
) -> Result<(u64, f64), Stop> {
    drained(treated)?;
    treated.client.set(AuditSetting::BacklogWaitTime(wait_jiffies)).map_err(needs)?;
    treated.client.set(AuditSetting::BacklogLimit(limit)).map_err(needs)?;
    let before = drained(treated)?;
    burst(treated, work, operations)?;
    let after = drained(treated)?;
    let waited = after.backlog_wait_time_actual.zip(before.backlog_wait_time_actual);
    let waited_s = waited.map_or(0.0, |(now, then)| jiffies_to_s(now.wrapping_sub(then)));
    Ok((after.lost.wrapping_sub(before.lost).into(), waited_s))
}

/// Waits until no record waits.
pub fn drained(treated: &mut Treated) -> Result<Status, Stop> {
    let deadline = Instant::now() + DRAIN_LIMIT;
    loop {
        let status = treated.status()?;
        if status.backlog == 0 {
            return Ok(status);
        }
        if Instant::now() > deadline {
            return Err(Stop::Failed("the audit records are no longer drained".into()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_burst_is_a_tenth_of_a_second_and_of_bounded_records() {
        let of = |records, full_speed| {
            usual_burst(&PerOperation { records, full_speed, ..PerOperation::default() })
        };
        assert_eq!(of(3.0, 50_000.0), 5_000);
        assert_eq!(of(100.0, 50_000.0), 1_000);
        assert_eq!(of(100.0, 0.5), 1);
    }

    proptest! {
        #[test]
        fn the_smallest_that_holds_is_found(wanted in 8u32..200_000) {
            let mut asked = 0;
            let found = bisect(8, 200_000, |limit| { asked += 1; Ok(limit >= wanted) });
            let found = found.unwrap().unwrap();
            prop_assert!(found >= wanted && found - wanted <= found / PRECISION + 1);
            prop_assert!(asked < 20, "{}", asked);
        }
    }

    #[test]
    fn where_nothing_is_enough_nothing_is_found() {
        assert_eq!(bisect(8, 1000, |_| Ok(false)), Ok(None));
        assert!(bisect(8, 1000, |_| Err(Stop::Interrupted)).is_err());
    }
}
