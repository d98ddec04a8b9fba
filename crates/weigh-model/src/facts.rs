//! Facts of a machine, one field each.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::cpu_share::CpuShare;
use crate::disk_speed::DiskSpeed;
use crate::hardware_speed::HardwareSpeed;

/// As many characters as a fact may have that somebody else tells; a list has as many entries.
pub const LONGEST_FACT: usize = 200;
/// Most characters in a fact that is a whole line or sentence.
const LONGEST_LINE: usize = 4096;
const LINES: [&str; 3] = ["cmdline", "cpu_share", "worth_knowing"];

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
    /// The part of these CPUs that `weigh` and its workloads may use.
    pub cpu_share: CpuShare,
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
    /// Container type, e.g. `docker`; with the only evidence where that is no proof.
    pub container: Option<String>,
    /// `PRETTY_NAME` of `/etc/os-release` or `/usr/lib/os-release`.
    pub distribution: Option<String>,
    /// C library, by the name in its own file, because `weigh` may be linked to another C library.
    pub libc: Option<String>,
    /// `/sys/devices/system/clocksource/clocksource0/current_clocksource`.
    pub clocksource: Option<String>,
    /// Governors of the CPUs' frequencies, with commas when they differ:
    /// `/sys/devices/system/cpu/cpufreq/policy*/scaling_governor`.
    pub governor: Option<String>,
    /// True if the clock may exceed its nominal rate: `/sys/devices/system/cpu/cpufreq/boost` or
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
    /// Number of terminals that a session of processes has, as of logins: `/proc/*/stat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interactive_users: Option<usize>,
    /// Average number of running and waiting tasks over the last minute: `/proc/loadavg`.
    pub load_1min: Option<f64>,
    /// Per cent of the last ten seconds in which a task waited for a CPU: `/proc/pressure/cpu`,
    /// `some`.
    pub psi_cpu_avg10: Option<f64>,
    /// Where the workloads' files are, e.g. `ext4 (/tmp)`; the experiment fills it in.
    pub scratch: Option<String>,
    /// Room in that file system. The experiment fills it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch_free_bytes: Option<u64>,
    /// Target of the link `/bin/sh`, e.g. `dash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// Speed of the device below that directory, where `weigh doctor --disk` has measured it. The
    /// experiment fills it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskSpeed>,
    /// Rates of the machine's parts, where `weigh run hardware` has measured them. The experiment
    /// fills it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareSpeed>,
    /// Time that the hypervisor took since the boot, in 1/100 s over all CPUs: `cpu` of `/proc/stat`.
    pub steal_ticks: Option<u64>,
    /// How often heat lowered the clock rate of a core since the boot, over all CPUs:
    /// `/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count`.
    pub thermal_throttles: Option<u64>,
    /// Errors that the hardware has reported since the boot, by part; parts without a count are left out:
    /// `/sys/devices/system/edac/mc`, `aer_dev_*` of `/sys/bus/pci/devices`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hardware_errors: BTreeMap<String, u64>,
    /// True if a daemon moves interrupts from CPU to CPU: a process `irqbalance`, `/proc/*/comm`.
    pub irqbalance: Option<bool>,
    /// True if the machine runs on its battery; `None` without a battery:
    /// `/sys/class/power_supply/*/status`.
    pub on_battery: Option<bool>,
    /// Findings of `weigh doctor` worth knowing, by the name of the check. The experiment fills
    /// them in.
    pub worth_knowing: BTreeMap<String, String>,
}

impl Facts {
    /// As many CPUs as `weigh` and its workloads may use; a quota makes it a fraction. 0 when not known.
    pub fn usable_cpus(&self) -> f64 {
        let share = &self.cpu_share;
        let allowed = share.allowed_count().unwrap_or(self.cpus_online) as f64;
        share.quota_cpus.map_or(allowed, |quota| quota.min(allowed))
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
