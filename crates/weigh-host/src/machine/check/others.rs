//! Who else is there: other programs, other guests of the same host, and what they leave free.

use crate::machine::check::CheckInput;
use crate::machine::probes::Space;
use weigh_model::finding::Finding;
use weigh_model::finding::Severity::{Good, Note, Warning};

/// Others use the CPUs when this share of them is loaded before the experiment has begun.
const LOAD_PER_CPU: f64 = 0.5;

/// Per cent of the time in which a task waited for a CPU that shows in the rates.
const WAITING_PERCENT: f64 = 5.0;

/// Share of the CPUs' time that a host may take before it is worth a word.
const STOLEN_SHARE: f64 = 0.001;

/// The workloads, a worker's files and the records of an experiment need less; SQLite needs room too.
const LEAST_FREE_BYTES: u64 = 1 << 30;

pub(super) fn load(seen: &CheckInput) -> Option<Finding> {
    let cpus = match seen.facts.cpus_online {
        0 => return None,
        1 => "1 CPU".to_string(),
        several => format!("{several} CPUs"),
    };
    let average = seen.facts.load_1min?;
    let waiting = seen.facts.psi_cpu_avg10.unwrap_or(0.0);
    let found = |severity, now, effect| Finding::new("Load", severity, now, effect);
    let busy = "Other programs compete for the CPUs, so samples vary more.";
    let fix = "Stop these programs (`top` shows them), or give the experiment more time.";
    Some(if average >= LOAD_PER_CPU * seen.facts.cpus_online as f64 {
        found(Warning, format!("the load average is {average:.1} on {cpus}"), busy).fix(fix)
    } else if waiting >= WAITING_PERCENT {
        let now = format!("tasks waited for a CPU in {waiting:.0} % of the last ten seconds");
        found(Warning, now, busy).fix(fix)
    } else {
        let quiet = "No other program competes for the CPUs now.";
        found(Good, format!("the load average is {average:.1} on {cpus}"), quiet)
    })
}

pub(super) fn stolen_time(seen: &CheckInput) -> Option<Finding> {
    seen.facts.hypervisor.as_ref()?;
    let uptime_s = seen.facts.uptime_s.filter(|seconds| *seconds > 0.0)?;
    let stolen_s = seen.facts.steal_ticks? as f64 / 100.0;
    let share = stolen_s / (uptime_s * seen.facts.cpus_online.max(1) as f64);
    let now = format!("the host took {:.1} % of the CPU time since the boot", 100.0 * share);
    let found = |severity, effect| Finding::new("Stolen time", severity, now, effect);
    Some(if share >= STOLEN_SHARE {
        found(Warning, "Stolen time slows samples at random, so they vary more.")
            .fix("Use a host that is not shared, or give the experiment more time.")
    } else {
        found(Good, "The host leaves the CPUs to this machine.")
    })
}

pub(super) fn hypervisor(seen: &CheckInput) -> Option<Finding> {
    let found = |severity, now: &str, effect| Finding::new("Hypervisor", severity, now, effect);
    Some(match seen.facts.hypervisor.as_deref() {
        Some(name) => found(
            Note,
            name,
            "A virtual machine: operations that exit to the host (timers, interrupts, page tables) cost \
             more than on hardware, and unseen neighbours share the caches.",
        ),
        None if seen.facts.cpu_model.is_empty() => return None,
        None => found(Good, "none", "No hypervisor was detected."),
    })
}

pub(super) fn free_space(space: &Space) -> Finding {
    let now = format!("{} has {} MiB", space.place.display(), space.free_bytes >> 20);
    let found = |severity, effect| Finding::new("Free space", severity, now, effect);
    if space.free_bytes >= LEAST_FREE_BYTES {
        return found(Good, "There is enough space for an experiment.");
    }
    found(
        Warning,
        "An experiment ends when the disk is full, and file systems get slow when they are nearly full.",
    )
    .fix("Free some space, or set TMPDIR (for the database: --database FILE).")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::check::tests::found;

    const ONLINE: (&str, &str) = ("/sys/devices/system/cpu/online", "0-1");

    #[test]
    fn competition_is_told_once() {
        let load = ("/proc/loadavg", "3.10 2.0 1.0 4/85 7814");
        let waiting = ("/proc/pressure/cpu", "some avg10=12.40 avg60=0 avg300=0 total=1");
        let busy = found(&[ONLINE, load, waiting], "Load").unwrap();
        assert_eq!(
            (busy.severity, busy.now.as_str()),
            (Warning, "the load average is 3.1 on 2 CPUs")
        );
        let idle = ("/proc/loadavg", "0.10 2.0 1.0 4/85 7814");
        let waited = found(&[ONLINE, idle, waiting], "Load").unwrap();
        assert!(waited.severity == Warning && waited.now.contains("in 12 % of"), "{waited:?}");
        assert_eq!(found(&[ONLINE, idle], "Load").unwrap().severity, Good);
    }

    #[test]
    fn stolen_time_is_told_of_virtual_machines() {
        let guest = ("/proc/cpuinfo", "model name : x\nflags : fpu hypervisor");
        let uptime = ("/proc/uptime", "1000.00 900.00");
        let steal = |stat| found(&[ONLINE, guest, uptime, ("/proc/stat", stat)], "Stolen time");
        let much = steal("cpu 1 2 3 4 5 6 7 4000 0 0").unwrap();
        assert!(much.severity == Warning && much.now.contains(" 2.0 % "), "{much:?}");
        assert_eq!(steal("cpu 1 2 3 4 5 6 7 35 0 0").unwrap().severity, Good);
        assert_eq!(found(&[guest], "Hypervisor").unwrap().severity, Note);
        let hardware = [("/proc/cpuinfo", "model name : x\nflags : fpu")];
        assert_eq!(found(&hardware, "Hypervisor").unwrap().severity, Good);
        assert_eq!(
            found(&[ONLINE, uptime, ("/proc/stat", "cpu 1 2 3 4 5 6 7 9 0 0")], "Stolen time"),
            None
        );
    }
}
