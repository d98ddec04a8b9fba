//! The facts of this machine, read from where the kernel and the distribution have them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::machine::cpu_share;
use crate::machine::hardware_errors::hardware_errors;
use crate::machine::pressure::{Pressure, psi_some};
use crate::machine::source::Source;
use crate::machine::surroundings::{
    container, distribution, hypervisor, interactive_users, libc_name, on_battery, runs,
};
use weigh_model::facts::Facts;

/// The facts of this machine now. Takes a few milliseconds and never fails.
pub fn read() -> Facts {
    read_from(Path::new("/"))
}

/// The facts below another root directory than `/`, for a test or a file system of its own.
pub fn read_from(root: &Path) -> Facts {
    let source = Source::new(root);
    let text = |file| source.text(file).unwrap_or_default();
    let kernel = text("/proc/sys/kernel/osrelease");
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    Facts {
        hostname: text("/proc/sys/kernel/hostname"),
        kernel_build: text("/proc/sys/kernel/version"),
        architecture: rustix::system::uname().machine().to_string_lossy().into_owned(),
        cpu_model: cpu_model(source),
        cpus_online: cpus(&text("/sys/devices/system/cpu/online")),
        cpu_share: cpu_share::read(root),
        memory_bytes: meminfo(source, "MemTotal").unwrap_or_default(),
        swap_bytes: meminfo(source, "SwapTotal"),
        swap_free_bytes: meminfo(source, "SwapFree"),
        hypervisor: hypervisor(source),
        container: container(source),
        distribution: distribution(source),
        libc: libc_name(source),
        clocksource: source.text(clock),
        governor: governor(source),
        boost: boost(source),
        smt: source.text("/sys/devices/system/cpu/smt/control"),
        mitigations: mitigations(source),
        lsm: text("/sys/kernel/security/lsm")
            .split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_string)
            .collect(),
        cmdline: text("/proc/cmdline"),
        aslr: source.text("/proc/sys/kernel/randomize_va_space").and_then(|s| s.parse().ok()),
        transparent_hugepages: chosen(&text("/sys/kernel/mm/transparent_hugepage/enabled")),
        hz: source
            .value(&format!("/boot/config-{kernel}"), "CONFIG_HZ", '=')
            .and_then(|hz| hz.parse().ok()),
        boot_id: text("/proc/sys/kernel/random/boot_id"),
        uptime_s: first_number(&text("/proc/uptime")),
        interactive_users: interactive_users(source),
        load_1min: first_number(&text("/proc/loadavg")),
        psi_cpu_avg10: psi_some(source, "cpu", "avg10"),
        scratch: None,
        scratch_free_bytes: None,
        shell: shell(source),
        disk: None,
        hardware: None,
        steal_ticks: Pressure::read_from(root).steal_ticks,
        thermal_throttles: thermal_throttles(source),
        hardware_errors: hardware_errors(source),
        irqbalance: runs(source, "irqbalance"),
        on_battery: on_battery(source),
        worth_knowing: BTreeMap::new(),
        kernel,
    }
}

fn first_number(text: &str) -> Option<f64> {
    text.split(' ').next()?.parse().ok()
}

fn shell(source: Source) -> Option<String> {
    let target = std::fs::read_link(source.path("/bin/sh")).ok()?;
    Some(target.to_string_lossy().into_owned())
}

fn cpu_model(source: Source) -> String {
    source
        .value("/proc/cpuinfo", "model name", ':')
        .or_else(|| source.text("/proc/device-tree/model"))
        .map(|model| model.trim_end_matches('\0').to_string())
        .unwrap_or_default()
}

/// How many CPUs a list like `0-3,8` names.
fn cpus(list: &str) -> usize {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    list.split(',').filter_map(count).sum()
}

/// A line of `/proc/meminfo`, whose `kB` are 1024 bytes.
fn meminfo(source: Source, key: &str) -> Option<u64> {
    let value = source.value("/proc/meminfo", key, ':')?;
    let kibibytes: u64 = value.trim_end_matches("kB").trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Kernel memory that cannot be taken back, such as what waits in the audit backlog, in bytes.
pub fn unreclaimable_slab_bytes() -> Option<u64> {
    meminfo(Source::new(Path::new("/")), "SUnreclaim")
}

fn governor(source: Source) -> Option<String> {
    let directory = "/sys/devices/system/cpu/cpufreq";
    let mut governors: Vec<String> = source
        .names(directory)
        .iter()
        .filter(|name| name.starts_with("policy"))
        .filter_map(|policy| source.text(&format!("{directory}/{policy}/scaling_governor")))
        .collect();
    governors.sort();
    governors.dedup();
    (!governors.is_empty()).then(|| governors.join(", "))
}

fn boost(source: Source) -> Option<bool> {
    let boost = source.text("/sys/devices/system/cpu/cpufreq/boost").map(|text| text == "1");
    boost.or_else(|| {
        source.text("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|text| text == "0")
    })
}

fn mitigations(source: Source) -> BTreeMap<String, String> {
    let directory = "/sys/devices/system/cpu/vulnerabilities";
    let state = |name: String| {
        let state = source.text(&format!("{directory}/{name}"))?;
        Some((name, state))
    };
    source.names(directory).into_iter().filter_map(state).collect()
}

fn thermal_throttles(source: Source) -> Option<u64> {
    let directory = "/sys/devices/system/cpu";
    let count = |cpu: String| -> Option<u64> {
        source
            .text(&format!("{directory}/{cpu}/thermal_throttle/core_throttle_count"))?
            .parse()
            .ok()
    };
    source.names(directory).into_iter().filter_map(count).reduce(u64::saturating_add)
}

/// The word in brackets of `always [madvise] never`.
fn chosen(options: &str) -> Option<String> {
    let (_, rest) = options.split_once('[')?;
    Some(rest.split_once(']')?.0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::source::tests::root_with;

    fn read_files(files: &[(&str, &str)]) -> Facts {
        read_from(root_with(files).path())
    }

    #[test]
    fn an_empty_root_gives_facts_all_the_same() {
        let expected = Facts { architecture: read_files(&[]).architecture, ..Facts::default() };
        assert_eq!(read_files(&[]), expected);
        assert!(!expected.architecture.is_empty());
    }

    #[test]
    fn this_machine_has_the_facts_that_every_linux_has() {
        let facts = crate::machine::facts::read();
        assert!(!facts.kernel.is_empty() && !facts.boot_id.is_empty());
        assert_eq!(facts.boot_id, crate::machine::boot_id().unwrap());
        assert!(facts.cpus_online >= 1 && facts.memory_bytes > 0);
        let document = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<Facts>(&document).unwrap(), facts);
    }

    #[test]
    fn files_of_the_kernel_are_understood() {
        let facts = read_files(&[
            ("/proc/sys/kernel/osrelease", "6.1.0\n"),
            ("/boot/config-6.1.0", "# CONFIG_HZ_100 is not set\nCONFIG_HZ=250\n"),
            ("/sys/devices/system/cpu/online", "0-3,8\n"),
            ("/proc/meminfo", "MemTotal:  2048 kB\nSwapTotal: 0 kB\n"),
            ("/sys/kernel/security/lsm", "capability,landlock,selinux"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("/sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"),
            ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
            ("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n"),
            ("/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "powersave\n"),
        ]);
        assert_eq!((facts.hz, facts.cpus_online), (Some(250), 5));
        assert_eq!((facts.memory_bytes, facts.swap_bytes), (2 << 20, Some(0)));
        assert_eq!(facts.lsm, ["capability", "landlock", "selinux"]);
        assert_eq!(facts.transparent_hugepages.as_deref(), Some("madvise"));
        assert_eq!(facts.mitigations["meltdown"], "Mitigation: PTI");
        assert_eq!((facts.boost, facts.governor.as_deref()), (Some(false), Some("powersave")));
    }
}
