//! What about this machine disturbs a measurement, and what to do about it.

use super::Facts;

/// Others use the CPUs when this share of them is loaded before the experiment has begun.
const LOAD_PER_CPU: f64 = 0.5;

/// Per cent of the time in which a task waited for a CPU that shows in the intervals.
const WAITING_PERCENT: f64 = 5.0;

/// Share of the CPUs' time that a host may take before it is worth a word.
const STOLEN_SHARE: f64 = 0.001;

/// Clocks that are read by a slow access to a device, and not in user space.
const SLOW_CLOCKS: [&str; 4] = ["hpet", "acpi_pm", "refined-jiffies", "jiffies"];

impl Facts {
    /// Whole sentences: what was found, what that does to a measurement, and what to do. Empty when
    /// nothing is known to disturb.
    pub fn warnings(&self) -> Vec<String> {
        [
            self.competition(),
            self.clock_rate(),
            self.steal(),
            self.slow_clock(),
            self.fixed_layout(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn competition(&self) -> Option<String> {
        let cpus = match self.cpus_online {
            0 => return None,
            1 => "1 CPU".to_string(),
            several => format!("{several} CPUs"),
        };
        let todo = "other programs compete for the CPUs, so intervals get wider. Stop them, or \
                    give the experiment more time.";
        let load = self.load_1min.filter(|load| *load >= LOAD_PER_CPU * self.cpus_online as f64);
        if let Some(load) = load {
            return Some(format!("The load average is {load:.1} on {cpus}: {todo}"));
        }
        let waiting = self.psi_cpu_avg10.filter(|percent| *percent >= WAITING_PERCENT)?;
        Some(format!("Tasks waited for a CPU in {waiting:.0} % of the last ten seconds: {todo}"))
    }

    fn clock_rate(&self) -> Option<String> {
        let governor = self.governor.as_deref().filter(|governor| *governor != "performance")?;
        Some(format!(
            "The CPU frequency governor is {governor}: the clock rate follows the load, so samples \
             vary more, and a treatment that lets the CPU idle can look dearer than it is. Set it \
             to performance while measuring: cpupower frequency-set -g performance."
        ))
    }

    fn steal(&self) -> Option<String> {
        let hypervisor = self.hypervisor.as_deref()?;
        let uptime_s = self.uptime_s.filter(|seconds| *seconds > 0.0)?;
        let stolen_s = self.steal_ticks? as f64 / 100.0;
        let share = stolen_s / (uptime_s * self.cpus_online.max(1) as f64);
        (share >= STOLEN_SHARE).then(|| {
            format!(
                "This is a virtual machine ({hypervisor}), and its host has taken {:.1} % of its \
                 CPU time since it booted: stolen time makes samples slow at random, so intervals \
                 get wider. Use a host that is not shared, or give the experiment more time.",
                100.0 * share
            )
        })
    }

    fn slow_clock(&self) -> Option<String> {
        let clock = self.clocksource.as_deref().filter(|clock| SLOW_CLOCKS.contains(clock))?;
        Some(format!(
            "The clock source is {clock}, which is slow to read: programs that ask for the time \
             often are slower than on most machines, in both arms. Find in the kernel's log why it \
             does not use a faster one."
        ))
    }

    fn fixed_layout(&self) -> Option<String> {
        (self.aslr == Some(0)).then(|| {
            "Address-space randomisation is off: all samples of an arm have the same memory \
             layout, whose luck looks like an effect of the treatment. Turn it on: sysctl \
             kernel.randomize_va_space=2."
                .to_string()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::root_with;
    use super::*;

    fn only_warning(files: &[(&str, &str)]) -> String {
        let root = root_with(files);
        let mut warnings = Facts::read_from(root.path()).warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        warnings.remove(0)
    }

    #[test]
    fn a_quiet_or_unknown_machine_has_no_warnings() {
        let root = root_with(&[
            ("/sys/devices/system/cpu/online", "0-7"),
            ("/proc/loadavg", "0.31 0.2 0.1 1/85 7814"),
            ("/proc/stat", "cpu 1 2 3 4 5 6 7 99 0 0"),
            ("/proc/pressure/cpu", "some avg10=0.00 avg60=0.25 avg300=1.21 total=1"),
            ("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance"),
            ("/proc/sys/kernel/randomize_va_space", "2"),
        ]);
        assert_eq!(Facts::read_from(root.path()).warnings(), [""; 0]);
        assert_eq!(Facts::default().warnings(), [""; 0]);
    }

    #[test]
    fn competition_is_told_once() {
        let online = ("/sys/devices/system/cpu/online", "0-1");
        let load = ("/proc/loadavg", "3.10 2.0 1.0 4/85 7814");
        let waiting = ("/proc/pressure/cpu", "some avg10=12.40 avg60=0 avg300=0 total=1");
        let warning = only_warning(&[online, load, waiting]);
        assert!(warning.starts_with("The load average is 3.1 on 2 CPUs: "), "{warning}");
        let warning = only_warning(&[online, waiting]);
        assert!(warning.starts_with("Tasks waited for a CPU in 12 % of"), "{warning}");
    }

    #[test]
    fn stolen_time_is_told_of_virtual_machines() {
        let online = ("/sys/devices/system/cpu/online", "0-1");
        let guest = ("/proc/cpuinfo", "flags : fpu hypervisor");
        let uptime = ("/proc/uptime", "1000.00 900.00");
        let warning =
            only_warning(&[online, guest, uptime, ("/proc/stat", "cpu 1 2 3 4 5 6 7 4000 0 0")]);
        assert!(warning.contains("(unknown)") && warning.contains(" 2.0 % "), "{warning}");
        let little =
            root_with(&[online, guest, uptime, ("/proc/stat", "cpu 1 2 3 4 5 6 7 35 0 0")]);
        assert_eq!(Facts::read_from(little.path()).warnings(), [""; 0]);
    }

    #[test]
    fn governor_clock_and_layout_are_told() {
        let governor = "/sys/devices/system/cpu/cpufreq/policy1/scaling_governor";
        assert!(only_warning(&[(governor, "powersave\n")]).contains("is powersave: "));
        let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        assert!(only_warning(&[(clock, "hpet\n")]).contains("is hpet, "));
        let warning = only_warning(&[("/proc/sys/kernel/randomize_va_space", "0\n")]);
        assert!(warning.contains("kernel.randomize_va_space=2"));
    }
}
