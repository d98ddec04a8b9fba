//! Background activity beside the programs: power, interrupts, the clock's corrections.

use crate::machine::check::CheckInput;
use weigh_model::finding::Finding;
use weigh_model::finding::Severity::{Good, Note, Warning};

pub(super) fn power(seen: &CheckInput) -> Option<Finding> {
    let found = |severity, now: &str, effect| Finding::new("Power", severity, now, effect);
    Some(match seen.facts.on_battery? {
        true => found(
            Warning,
            "from a battery",
            "To save the battery, firmware and kernel lower clock rates as it drains: samples vary more.",
        )
        .fix("Plug the machine in."),
        false => found(Good, "mains", "Nothing lowers clock rates to save a battery."),
    })
}

pub(super) fn interrupts(seen: &CheckInput) -> Option<Finding> {
    let found = |severity, now: &str, effect| Finding::new("Interrupts", severity, now, effect);
    Some(match seen.facts.irqbalance? {
        true => found(
            Note,
            "moved by irqbalance",
            "Every ten seconds irqbalance may move interrupts to a different CPU: workloads that use network \
             or disk get slower or faster for a while.",
        )
        .fix("Stop irqbalance while measuring: `systemctl stop irqbalance`."),
        false => found(Good, "no irqbalance", "Interrupts stay on their CPUs."),
    })
}

/// Checks the errors that the hardware reported: a part that corrects or repeats is slow at random moments.
pub(super) fn hardware_errors(seen: &CheckInput) -> Option<Finding> {
    let errors = &seen.facts.hardware_errors;
    let counted = || errors.keys().cloned().collect::<Vec<_>>().join(", ");
    let found =
        |severity, now: &str, effect| Finding::new("Hardware errors", severity, now, effect);
    let bad = errors.iter().filter(|(_, count)| **count > 0);
    let bad: Vec<String> = bad.map(|(part, count)| format!("{part}: {count}")).collect();
    (!errors.is_empty()).then(|| match bad[..] {
        [] => found(Good, &format!("none ({})", counted()), "The hardware reported no error since the boot."),
        _ => found(
            Warning,
            &bad.join(", "),
            "The hardware reported errors since the boot. Correcting or repeating takes time, so \
             samples have outliers.",
        )
        .fix("See `dmesg`; repeat a known test (`weigh run --name known`, later `weigh diff known latest`)."),
    })
}

/// Checks the clock that samples are timed with: corrections that an NTP daemon requests bend it
/// too.
pub(super) fn corrections(seen: &CheckInput) -> Option<Finding> {
    let correction = seen.probes.clock_correction?;
    let now =
        format!("offset {} µs, frequency {:+.1} ppm", correction.offset_us, correction.rate_ppm);
    let found = |severity, effect| Finding::new("Clock corrections", severity, now, effect);
    Some(match correction.offset_us.unsigned_abs() {
        0..1000 => found(Good, "The clock runs at a steady rate."),
        _ => found(
            Note,
            "The clock is being slewed by up to 0.05 %. Samples are timed with this clock, so their rates \
             drift by up to 0.05 %.",
        )
        .fix("Wait until the clock is synchronised (`chronyc tracking`, `timedatectl timesync-status`)."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Probes;
    use crate::machine::check::check;
    use crate::machine::check::tests::found;
    use crate::machine::probes::ClockCorrection;
    use weigh_model::facts::Facts;

    const SUPPLY: &str = "/sys/class/power_supply";

    #[test]
    fn errors_of_the_hardware_are_a_warning() {
        let name = "/sys/devices/system/edac/mc/mc0/ce_count";
        let errors = |count: &str| found(&[(name, count)], "Hardware errors");
        assert_eq!(errors("0").unwrap().severity, Good);
        let bad = errors("7").unwrap();
        assert!(
            bad.severity == Warning && bad.without_name().contains("memory (ECC): 7"),
            "{bad:?}"
        );
        assert!(found(&[], "Hardware errors").is_none());
    }

    #[test]
    fn a_battery_that_feeds_the_machine_is_a_warning() {
        let power = |files: &[(&str, &str)]| {
            let paths: Vec<String> =
                files.iter().map(|(file, _)| format!("{SUPPLY}/{file}")).collect();
            let files: Vec<(&str, &str)> =
                paths.iter().zip(files).map(|(path, (_, text))| (path.as_str(), *text)).collect();
            found(&files, "Power").map(|finding| finding.severity)
        };
        let battery = ("BAT0/type", "Battery\n");
        assert_eq!(power(&[battery, ("BAT0/status", "Discharging\n")]), Some(Warning));
        assert_eq!(power(&[battery, ("BAT0/status", "Not charging")]), Some(Good));
        assert_eq!(power(&[("AC/type", "Mains"), ("AC/online", "1")]), None);
        let mouse = [("m/type", "Battery"), ("m/scope", "Device"), ("m/status", "Discharging")];
        assert_eq!(power(&mouse), None);
    }

    #[test]
    fn irqbalance_is_found_among_the_processes() {
        let other = ("/proc/1/comm", "init\n");
        let daemon = ("/proc/812/comm", "irqbalance\n");
        let interrupts = |files: &[(&str, &str)]| found(files, "Interrupts").map(|f| f.severity);
        assert_eq!(interrupts(&[other, daemon]), Some(Note));
        assert_eq!(interrupts(&[other, ("/proc/sys/comm", "irqbalance")]), Some(Good));
        assert_eq!(interrupts(&[]), None);
    }

    #[test]
    fn a_clock_that_is_set_right_is_worth_knowing() {
        let corrections = |offset_us| {
            let clock_correction = Some(ClockCorrection { offset_us, rate_ppm: -3.25 });
            let probes = Probes { clock_correction, ..Probes::default() };
            let findings = check(&Facts::default(), &probes);
            findings.into_iter().find(|finding| finding.name == "Clock corrections").unwrap()
        };
        assert_eq!((corrections(12).severity, corrections(-40_000).severity), (Good, Note));
        assert_eq!(corrections(12).now, "offset 12 µs, frequency -3.2 ppm");
    }
}
