//! The CPUs and their clocks.

use crate::machine::check::CheckInput;
use weigh_model::finding::Finding;
use weigh_model::finding::Severity::{Good, Note, Warning};
use weigh_model::format;

/// Clocks that are read by a slow access to a device, and not in user space.
const SLOW_CLOCKS: [&str; 4] = ["hpet", "acpi_pm", "refined-jiffies", "jiffies"];

pub(super) fn governor(seen: &CheckInput) -> Option<Finding> {
    let found = |severity, now: &str, effect| Finding::new("CPU governor", severity, now, effect);
    Some(match seen.facts.governor.as_deref() {
        None => found(
            Note,
            "not visible here",
            "The owner of the hardware sets the clock rate: samples vary more whenever it changes.",
        ),
        Some("performance") => found(Good, "performance", "The clock rate does not follow the load."),
        Some(other) => found(
            Warning,
            other,
            "The clock rate follows the load, so samples vary more, and a treatment that lets the CPU idle \
             can look more expensive than it is.",
        )
        .fix(
            "Use the governor `performance` while measuring: `weigh doctor --fix -- weigh compare …`, or \
             `cpupower frequency-set -g performance`.",
        ),
    })
}

pub(super) fn boost(seen: &CheckInput) -> Option<Finding> {
    let found = |severity, now: &str, effect| Finding::new("CPU boost", severity, now, effect);
    Some(if seen.facts.boost? {
        found(
            Note,
            "on",
            "The clock rate depends on heat and on how many cores are busy: samples vary more.",
        )
        .fix(
            "Turn boost off while measuring: `weigh doctor --fix -- weigh compare …`, or `echo 0 > \
             /sys/devices/system/cpu/cpufreq/boost` (with intel_pstate: `echo 1 > \
             /sys/devices/system/cpu/intel_pstate/no_turbo`).",
        )
    } else {
        found(Good, "off", "The clock rate stays at its nominal value.")
    })
}

pub(super) fn smt(seen: &CheckInput) -> Option<Finding> {
    let state = seen.facts.smt.as_deref()?;
    let now = match state {
        "notsupported" | "notimplemented" => "none: not supported here",
        "forceoff" => "off until the next boot",
        state => state,
    };
    let found = |severity, effect| Finding::new("SMT", severity, now, effect);
    Some(if state == "on" {
        found(
            Note,
            "Two threads share a core, so a sample is slower while the other thread is busy. Leave SMT on \
             if your programs run with it.",
        )
        .fix("Turn SMT off: `echo off > /sys/devices/system/cpu/smt/control`.")
    } else {
        found(Good, "Each CPU has its own core.")
    })
}

pub(super) fn isolation(seen: &CheckInput) -> Option<Finding> {
    let is_isolating = |word: &&str| {
        ["isolcpus=", "nohz_full="].iter().any(|parameter| word.starts_with(parameter))
    };
    let words: Vec<&str> = seen.facts.cmdline.split_whitespace().filter(is_isolating).collect();
    if words.is_empty() {
        return (!seen.facts.cmdline.is_empty()).then(|| {
            let effect = "The scheduler may use every CPU, as it does for most programs.";
            Finding::new("CPU isolation", Good, "none", effect)
        });
    }
    let effect = "Programs run on these CPUs only if they are bound to them, so weigh and its workloads \
        share the others; entering the kernel costs more on CPUs with nohz_full.";
    let fix = "Bind the experiment to the isolated CPUs: `taskset -c LIST weigh compare …`.";
    Some(Finding::new("CPU isolation", Note, words.join(" "), effect).fix(fix))
}

pub(super) fn throttling(seen: &CheckInput) -> Option<Finding> {
    let found = |severity, now: String, effect| Finding::new("CPU heat", severity, now, effect);
    Some(match seen.facts.thermal_throttles? {
        0 => found(Good, "never throttled since the boot".into(), "Heat has not slowed the CPUs."),
        times => found(
            Note,
            format!("throttled {} since the boot", format::plural(times as usize, "time")),
            "A CPU that is too hot lowers its clock rate: samples get slow for seconds.",
        )
        .fix("Improve the cooling, and check whether the number grows while you measure."),
    })
}

pub(super) fn clock(seen: &CheckInput) -> Option<Finding> {
    let clock = seen.facts.clocksource.as_deref()?;
    let found = |severity, effect| Finding::new("Clock source", severity, clock, effect);
    Some(if SLOW_CLOCKS.contains(&clock) {
        found(
            Warning,
            "This clock source is slow to read: programs that read the time often are slower than on most \
             machines.",
        )
        .fix("Find out why the kernel rejected a faster clock source: `dmesg | grep -i clocksource`.")
    } else {
        found(Good, "Programs read this clock source fast, without a system call.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::check::tests::found;

    const CPU: &str = "/sys/devices/system/cpu";

    fn finding(file: &str, text: &str, name: &str) -> Finding {
        found(&[(&format!("{CPU}/{file}"), text)], name).unwrap()
    }

    #[test]
    fn a_governor_that_follows_the_load_is_a_warning() {
        let slow = finding("cpufreq/policy1/scaling_governor", "powersave\n", "CPU governor");
        assert_eq!((slow.severity, slow.now.as_str()), (Warning, "powersave"));
        assert!(slow.fix.unwrap().contains("cpupower frequency-set -g performance"));
        let fast = finding("cpufreq/policy1/scaling_governor", "performance\n", "CPU governor");
        assert_eq!((fast.severity, fast.fix), (Good, None));
        assert_eq!(found(&[], "CPU governor").unwrap().severity, Note);
    }

    #[test]
    fn boost_is_read_from_both_drivers() {
        assert_eq!(finding("cpufreq/boost", "1", "CPU boost").severity, Note);
        assert_eq!(finding("intel_pstate/no_turbo", "1", "CPU boost").severity, Good);
        assert_eq!(found(&[], "CPU boost"), None);
    }

    #[test]
    fn shared_isolated_and_hot_cores_are_told() {
        assert_eq!(finding("smt/control", "on", "SMT").severity, Note);
        assert_eq!(finding("smt/control", "notsupported", "SMT").severity, Good);
        let isolated = [("/proc/cmdline", "ro isolcpus=2-3 nohz_full=2-3 quiet")];
        assert_eq!(found(&isolated, "CPU isolation").unwrap().now, "isolcpus=2-3 nohz_full=2-3");
        assert_eq!(found(&[("/proc/cmdline", "ro")], "CPU isolation").unwrap().severity, Good);
        let heat = |count| finding("cpu1/thermal_throttle/core_throttle_count", count, "CPU heat");
        assert_eq!((heat("0").severity, heat("7").severity), (Good, Note));
    }

    #[test]
    fn a_slow_clock_is_a_warning() {
        let file = format!("{CPU}/../clocksource/clocksource0/current_clocksource");
        let file = file.replace("cpu/../", "");
        let clock = |name: &str| found(&[(&file, name)], "Clock source").unwrap().severity;
        assert_eq!((clock("hpet"), clock("tsc")), (Warning, Good));
    }
}
