//! Calls of SELinux's functions per operation, in words for a report.

use std::collections::BTreeMap;

use weigh_model::format;
use weigh_workload::launcher::Launched;
use weigh_workload::setup::kind::guest_state::{GuestSeen, GuestState};
use weigh_workload::setup::kind::hook_calls::HookCalls;

/// More names than this are a list that nobody reads.
const MOST_NAMES: usize = 12;
/// Fewer calls per operation may be those of other processes of the guest.
const LEAST: f64 = 0.5;
/// The kernel looks up some permissions outside the functions that are traced.
const MOST_MISSED: f64 = 0.1;

/// Lists the calls per operation, the most frequent first, from two launches: the second does so many
/// operations more.
///
/// # Errors
/// Why they are unknown. The tracer must have seen as many look-ups as the kernel's counter, and that must
/// count.
pub fn in_words(launches: &[Launched; 2], operations: u64) -> Result<String, String> {
    let [few, many] = launches;
    let [start, all] = [HookCalls::found(few)?, HookCalls::found(many)?];
    let per_op = |many: u64, few: u64| (many as f64 - few as f64) / operations as f64;
    let of_few = lookups(few)?;
    // Each start of a program looks some up. Two counts of nothing would agree.
    if of_few == 0 {
        return Err("the kernel counted no look-up of a permission during a launch".into());
    }
    let lookups = per_op(lookups(many)?, of_few);
    agree(per_op(HookCalls::checks(&all), HookCalls::checks(&start)), lookups)?;
    let of = |(name, calls): (&String, &u64)| {
        let few = start.get(name).copied().unwrap_or(0);
        (name.clone(), per_op(*calls, few))
    };
    let calls: BTreeMap<String, f64> = all.iter().map(of).collect();
    Ok(sentence(&calls, lookups))
}

fn lookups(launched: &Launched) -> Result<u64, String> {
    let read = |moment: &str| -> Result<u64, String> {
        let seen = launched.seen(moment).map_err(|error| error.to_string())?;
        let seen: GuestSeen = serde_json::from_str(seen).map_err(|error| error.to_string())?;
        Ok(seen.avc_lookups)
    };
    Ok(read(GuestState::AFTER)?.saturating_sub(read(GuestState::BEFORE)?))
}

/// Checks that the tracer saw the look-ups per operation that the kernel counted.
fn agree(traced: f64, counted: f64) -> Result<(), String> {
    match (traced - counted).abs() <= LEAST + MOST_MISSED * counted {
        true => Ok(()),
        false => Err(format!(
            "the tracer saw {} look-ups of permissions per operation, but the kernel counted {}",
            format::per_op(traced),
            format::per_op(counted)
        )),
    }
}

fn sentence(calls: &BTreeMap<String, f64>, lookups: f64) -> String {
    let mut calls: Vec<(&String, f64)> =
        calls.iter().map(|(name, n)| (name, *n)).filter(|(_, n)| *n >= LEAST).collect();
    calls.sort_by(|one, other| other.1.total_cmp(&one.1));
    let shown = calls.iter().take(MOST_NAMES);
    let mut words: Vec<String> =
        shown.map(|(name, n)| format!("`{name}` {}", format::per_op(*n))).collect();
    if calls.len() > MOST_NAMES {
        words.push(format::plural(calls.len() - MOST_NAMES, "other"));
    }
    let words = if words.is_empty() { "none".to_owned() } else { words.join(", ") };
    format!("{words}; {} AVC look-ups per operation", format::per_op(lookups.max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(lookups: u64, calls: &[(&str, u64)]) -> Launched {
        let mut launched = Launched::default();
        for (moment, avc_lookups) in [(GuestState::BEFORE, 100), (GuestState::AFTER, 100 + lookups)]
        {
            let seen = GuestSeen { avc_lookups, ..GuestSeen::default() };
            launched.seen.insert(moment.into(), serde_json::to_string(&seen).unwrap());
        }
        let told = |calls: &[(&str, u64)]| {
            let calls: BTreeMap<&str, u64> = calls.iter().copied().collect();
            serde_json::to_string(&Ok::<_, String>(calls)).unwrap()
        };
        launched.seen.insert(HookCalls::SEEN.into(), told(calls));
        launched
    }

    #[test]
    fn calls_of_the_operations_are_those_beyond_a_start() {
        let few = launch(40, &[("avc_has_perm", 40), ("selinux_inode_permission", 20)]);
        let many =
            [("avc_has_perm", 60), ("selinux_inode_permission", 20), ("selinux_task_alloc", 10)];
        let found = in_words(&[few.clone(), launch(60, &many)], 10).unwrap();
        assert_eq!(found, "`avc_has_perm` 2, `selinux_task_alloc` 1; 2 AVC look-ups per operation");
        let none = in_words(&[few.clone(), few], 10).unwrap();
        assert_eq!(none, "none; 0 AVC look-ups per operation");
    }

    #[test]
    fn a_tracer_that_misses_look_ups_gives_no_count() {
        let launches = [launch(40, &[("avc_has_perm", 40)]), launch(60, &[("avc_has_perm", 50)])];
        let problem = in_words(&launches, 10).unwrap_err();
        let told =
            "the tracer saw 1 look-ups of permissions per operation, but the kernel counted 2";
        assert_eq!(problem, told);
        let twice = [launch(40, &[("avc_has_perm", 80)]), launch(60, &[("avc_has_perm", 120)])];
        assert!(in_words(&twice, 10).is_err());
    }

    #[test]
    fn a_kernel_that_counts_no_look_ups_proves_nothing() {
        let problem = in_words(&[launch(0, &[]), launch(0, &[])], 10).unwrap_err();
        assert_eq!(problem, "the kernel counted no look-up of a permission during a launch");
    }
}
