//! How much of the machine is ours: affinity, quota, niceness, and CPUs of different speed.

use crate::machine::check::CheckInput;
use weigh_model::cpu_share::quota_text;
use weigh_model::finding::Finding;
use weigh_model::finding::Severity::{Good, Note, Warning};
use weigh_model::format;

pub(super) fn affinity(seen: &CheckInput) -> Option<Finding> {
    let share = &seen.facts.cpu_share;
    let (allowed, list) = (share.allowed_count()?, share.allowed.as_deref()?);
    let online = seen.facts.cpus_online;
    let found = |severity, now, effect| Finding::new("CPU affinity", severity, now, effect);
    if allowed >= online {
        return Some(found(Good, "none".into(), "Programs may run on every CPU."));
    }
    let now = format!("CPU {list} only, {allowed} of {online}");
    let effect = "Weigh and its workloads use only these CPUs; so do `--copies all` and loads.";
    let fix = "To use more, start it without `taskset` and outside of the cpuset.";
    Some(found(Note, now, effect).fix(fix))
}

pub(super) fn quota(seen: &CheckInput) -> Option<Finding> {
    let share = &seen.facts.cpu_share;
    let found = |severity, now, effect| Finding::new("CPU quota", severity, now, effect);
    let Some(quota) = share.limiting_quota() else {
        // Without this file nothing is known of quotas.
        share.allowed.as_ref()?;
        return Some(found(Good, "none".into(), "Programs may use the whole time of their CPUs."));
    };
    let file = share.quota_file.as_deref().unwrap_or("its control group");
    let now = format!("{} for weigh and all it starts ({file})", quota_text(quota));
    let effect = "When the quota of a period is used up, the kernel stops all these processes until the \
        next period. Samples vary more, and their times include the stops.";
    let fix = "Remove or raise the limit, such as `docker run --cpus` or `resources.limits.cpu`.";
    Some(found(Warning, now, effect).fix(fix))
}

pub(super) fn niceness(seen: &CheckInput) -> Option<Finding> {
    let nice = seen.facts.cpu_share.niceness?;
    let found = |severity, effect| Finding::new("Niceness", severity, nice.to_string(), effect);
    Some(match nice {
        0 => found(Good, "Weigh and its workloads have the usual priority."),
        ..0 => found(Note, "Weigh and its workloads take the CPUs from programs of usual priority."),
        _ => found(
            Warning,
            "Programs of usual priority take the CPUs from weigh and its workloads, so samples vary more.",
        )
        .fix("Start weigh without `nice`, or lower the shell's niceness as root: `renice -n 0 -p $$`."),
    })
}

pub(super) fn kinds(seen: &CheckInput) -> Option<Finding> {
    let kinds = &seen.facts.cpu_share.kinds;
    let fastest = kinds.first()?;
    let now =
        format!("{} of different speed: {}", format::plural(kinds.len(), "kind"), kinds.join("; "));
    let effect = "The speed of a process depends on its CPU. Weigh runs both samples of a pair on one \
        randomly chosen kind. Exceptions: `--copies`, loads, servers, and treatments that choose CPUs use \
        every allowed CPU, of any kind.";
    let fix = format!("Bind the experiment to one kind: `taskset -c {fastest} weigh compare …`.");
    Some(Finding::new("CPU kinds", Warning, now, effect).fix(&fix))
}

pub(super) fn unreadable(seen: &CheckInput) -> Option<Finding> {
    let unreadable = &seen.facts.cpu_share.unreadable;
    if unreadable.is_empty() {
        return None;
    }
    let effect = "Weigh cannot determine its share of the CPUs.";
    let fix = "Mount /proc and /sys, and allow weigh to read these files.";
    Some(
        Finding::new(
            "CPU share",
            Warning,
            format!("cannot read {}", unreadable.join("; ")),
            effect,
        )
        .fix(fix),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::check::tests::found;
    use crate::machine::hierarchies::example::SYSTEMD;

    const ONLINE: (&str, &str) = ("/sys/devices/system/cpu/online", "0-1");

    fn status(list: &str) -> String {
        format!("Cpus_allowed_list:\t{list}\n")
    }

    #[test]
    fn a_part_of_the_cpus_is_a_note() {
        let affinity =
            |list| found(&[ONLINE, ("/proc/self/status", &status(list))], "CPU affinity").unwrap();
        assert_eq!(affinity("0-127").severity, Good);
        let bound = affinity("1");
        assert_eq!((bound.severity, bound.now.as_str()), (Note, "CPU 1 only, 1 of 2"));
        assert_eq!(found(&[ONLINE], "CPU affinity"), None);
    }

    #[test]
    fn a_quota_below_the_allowed_cpus_is_a_warning() {
        let all = status("0-1");
        let quota = |text| {
            let files =
                [ONLINE, ("/proc/self/status", &all), ("sys/fs/cgroup/user.slice/cpu.max", text)];
            found(&[&SYSTEMD[..], &files].concat(), "CPU quota").unwrap()
        };
        let half = quota("50000 100000");
        assert_eq!(half.severity, Warning);
        assert!(half.now.starts_with("0.5 CPUs for weigh"), "{half:?}");
        assert!(half.now.contains("/sys/fs/cgroup/user.slice/cpu.max"), "{half:?}");
        assert_eq!(["max 100000", "200000 100000"].map(|text| quota(text).severity), [Good; 2]);
    }

    #[test]
    fn a_lower_priority_is_a_warning() {
        let nice = |nice: i32| {
            let stat =
                format!("7 (a) S 2 7 7 0 -1 4194560 5 6 2 62 100 3 46 18 20 {nice} 1 0 208988");
            found(&[("/proc/self/stat", &stat)], "Niceness").unwrap().severity
        };
        assert_eq!([0, -5, 5].map(nice), [Good, Note, Warning]);
    }

    #[test]
    fn unequal_cpus_are_a_warning_with_a_command_for_one_kind() {
        let hybrid =
            [("/sys/devices/cpu_core/cpus", "0-3"), ("/sys/devices/cpu_atom/cpus", "4-11")];
        let kinds = found(&hybrid, "CPU kinds").unwrap();
        assert!(kinds.fix.unwrap().contains("`taskset -c 0-3 weigh compare …`"));
        assert_eq!(kinds.now, "2 kinds of different speed: 0-3; 4-11");
    }

    #[test]
    fn an_unreadable_file_is_a_warning() {
        let odd = found(&[("/proc/self/stat", "odd")], "CPU share").unwrap();
        assert!(odd.now.contains("cannot read /proc/self/stat: it lacks the niceness"), "{odd:?}");
        assert_eq!(found(&[ONLINE], "CPU share"), None);
    }
}
