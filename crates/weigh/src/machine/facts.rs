//! The facts, one field each.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::disk_speed::DiskSpeed;
use super::pressure::{Pressure, psi_some};
use super::source::Source;
use super::surroundings::{container, distribution, hypervisor, libc_name, on_battery, runs};

/// As many characters as a fact may have that somebody else tells; a list has as many entries.
pub const LONGEST_FACT: usize = 200;
/// The same of the facts that are whole lines or sentences.
const LONGEST_LINE: usize = 4096;
const LINES: [&str; 2] = ["cmdline", "worth_knowing"];

/// Facts of the machine, read once at the start of an experiment. Empty or `None`: not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct Facts {
    /// `/proc/sys/kernel/hostname`.
    pub hostname: String,
    /// Release of the kernel, e.g. `6.1.0-18-amd64`: `/proc/sys/kernel/osrelease`.
    pub kernel: String,
    /// Which build of it, e.g. `#1 SMP PREEMPT_DYNAMIC …`: `/proc/sys/kernel/version`.
    pub kernel_build: String,
    /// As `uname -m` says, e.g. `x86_64`: uname(2), which is not below the root directory.
    pub architecture: String,
    /// `model name` of `/proc/cpuinfo`; elsewhere than on x86 `/proc/device-tree/model`.
    pub cpu_model: String,
    /// `/sys/devices/system/cpu/online`; 0 when not known.
    pub cpus_online: usize,
    /// `MemTotal` of `/proc/meminfo`, in bytes; 0 when not known.
    pub memory_bytes: u64,
    /// `SwapTotal` of `/proc/meminfo`, in bytes.
    pub swap_bytes: Option<u64>,
    /// `SwapFree` of `/proc/meminfo`, in bytes.
    pub swap_free_bytes: Option<u64>,
    /// Whose virtual machine this is, e.g. `QEMU` or `kvm`; `None` on hardware.
    /// `/sys/hypervisor/type`, the flag `hypervisor` of `/proc/cpuinfo`,
    /// `/sys/class/dmi/id/sys_vendor`, the clocks that exist.
    pub hypervisor: Option<String>,
    /// What marks the file system as a container's, e.g. `docker`: `/run/systemd/container`,
    /// `/.dockerenv`, `/run/.containerenv`.
    pub container: Option<String>,
    /// `PRETTY_NAME` of `/etc/os-release` or `/usr/lib/os-release`.
    pub distribution: Option<String>,
    /// What the C library calls itself, found in its own file, as `weigh` may be linked to another.
    pub libc: Option<String>,
    /// `/sys/devices/system/clocksource/clocksource0/current_clocksource`.
    pub clocksource: Option<String>,
    /// Governors of the CPUs' frequencies, with commas when they differ:
    /// `/sys/devices/system/cpu/cpufreq/policy*/scaling_governor`.
    pub governor: Option<String>,
    /// Whether the clock may exceed its nominal rate: `/sys/devices/system/cpu/cpufreq/boost` or
    /// `/sys/devices/system/cpu/intel_pstate/no_turbo`.
    pub boost: Option<bool>,
    /// `on`, `off`, `notsupported`, …: `/sys/devices/system/cpu/smt/control`.
    pub smt: Option<String>,
    /// State by name of a hardware vulnerability: `/sys/devices/system/cpu/vulnerabilities/*`.
    pub mitigations: BTreeMap<String, String>,
    /// Security modules in force, in the order of their calls: `/sys/kernel/security/lsm`.
    pub lsm: Vec<String>,
    /// `/proc/cmdline`.
    pub cmdline: String,
    /// 0 none, 1 without the heap, 2 full: `/proc/sys/kernel/randomize_va_space`.
    pub aslr: Option<u8>,
    /// `always`, `madvise` or `never`: `/sys/kernel/mm/transparent_hugepage/enabled`.
    pub transparent_hugepages: Option<String>,
    /// Ticks of the kernel's timer per second, where `/boot/config-RELEASE` says so.
    pub hz: Option<u32>,
    /// Changes with every boot: `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Seconds since the boot: `/proc/uptime`.
    pub uptime_s: Option<f64>,
    /// Average number of running and waiting tasks over the last minute: `/proc/loadavg`.
    pub load_1min: Option<f64>,
    /// Per cent of the last ten seconds in which a task waited for a CPU: `/proc/pressure/cpu`,
    /// `some`.
    pub psi_cpu_avg10: Option<f64>,
    /// Where the workloads' files are, e.g. `ext4 (/tmp)`; the experiment fills it in.
    pub scratch: Option<String>,
    /// What the device below that can do, where `weigh doctor --disk` has measured it; the experiment fills
    /// it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskSpeed>,
    /// Ticks that the hypervisor took since the boot: see [`Pressure::steal_ticks`].
    pub steal_ticks: Option<u64>,
    /// How often heat lowered the clock rate of a core since the boot, over all CPUs:
    /// `/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count`.
    pub thermal_throttles: Option<u64>,
    /// Whether a daemon moves interrupts from CPU to CPU: a process `irqbalance`, `/proc/*/comm`.
    pub irqbalance: Option<bool>,
    /// Whether a battery feeds the machine, where it has one: `/sys/class/power_supply/*/status`.
    pub on_battery: Option<bool>,
    /// What `weigh doctor` found worth knowing, by the name of the check; the experiment fills it in.
    pub worth_knowing: BTreeMap<String, String>,
}

impl Facts {
    /// The facts of this machine now. Takes a few milliseconds and never fails.
    pub fn read() -> Facts {
        Facts::read_from(Path::new("/"))
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
            load_1min: first_number(&text("/proc/loadavg")),
            psi_cpu_avg10: psi_some(source, "cpu", "avg10"),
            scratch: None,
            disk: None,
            steal_ticks: Pressure::read_from(root).steal_ticks,
            thermal_throttles: thermal_throttles(source),
            irqbalance: runs(source, "irqbalance"),
            on_battery: on_battery(source),
            worth_knowing: BTreeMap::new(),
            kernel,
        }
    }
}

impl Serialize for Facts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Facts::serialize(self, serializer)
    }
}

/// Another machine or another's database may tell anything: what is too long is cut before anybody has it.
impl<'de> Deserialize<'de> for Facts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Facts, D::Error> {
        let mut told = Value::deserialize(deserializer)?;
        for (name, fact) in told.as_object_mut().into_iter().flatten() {
            let is_line = LINES.contains(&name.as_str());
            cut(fact, if is_line { LONGEST_LINE } else { LONGEST_FACT });
        }
        Facts::deserialize(told).map_err(D::Error::custom)
    }
}

fn cut(fact: &mut Value, most: usize) {
    let short = |text: &str| text.chars().take(most).collect::<String>();
    match fact {
        Value::String(text) => *text = short(text),
        Value::Array(all) => {
            all.truncate(LONGEST_FACT);
            all.iter_mut().for_each(|one| cut(one, most));
        }
        Value::Object(all) => {
            let told = std::mem::take(all).into_iter().take(LONGEST_FACT);
            all.extend(told.map(|(name, mut one)| {
                cut(&mut one, most);
                (short(&name), one)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn first_number(text: &str) -> Option<f64> {
    text.split(' ').next()?.parse().ok()
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
    use super::super::source::tests::root_with;
    use super::*;

    fn read(files: &[(&str, &str)]) -> Facts {
        Facts::read_from(root_with(files).path())
    }

    #[test]
    fn an_empty_root_gives_facts_all_the_same() {
        let expected = Facts { architecture: read(&[]).architecture, ..Facts::default() };
        assert_eq!(read(&[]), expected);
        assert!(!expected.architecture.is_empty());
    }

    #[test]
    fn this_machine_has_the_facts_that_every_linux_has() {
        let facts = Facts::read();
        assert!(!facts.kernel.is_empty() && !facts.boot_id.is_empty());
        assert_eq!(facts.boot_id, super::super::boot_id().unwrap());
        assert!(facts.cpus_online >= 1 && facts.memory_bytes > 0);
        let document = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<Facts>(&document).unwrap(), facts);
    }

    #[test]
    fn what_another_machine_tells_is_cut_when_it_is_read() {
        let long = "x".repeat(2 * LONGEST_LINE);
        let mut told = Facts { hostname: long.clone(), cmdline: long.clone(), ..Facts::default() };
        told.hypervisor = Some(long.clone());
        told.lsm = vec![long.clone(); 300];
        told.mitigations.insert(long.clone(), long);
        let read: Facts = serde_json::from_str(&serde_json::to_string(&told).unwrap()).unwrap();
        assert_eq!((read.hostname.len(), read.cmdline.len()), (LONGEST_FACT, LONGEST_LINE));
        let short = Some("x".repeat(LONGEST_FACT));
        assert_eq!((read.hypervisor, read.lsm.len()), (short.clone(), LONGEST_FACT));
        assert_eq!(read.mitigations.into_iter().next(), short.clone().zip(short));
    }

    #[test]
    fn files_of_the_kernel_are_understood() {
        let facts = read(&[
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
