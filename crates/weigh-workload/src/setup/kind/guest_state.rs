//! Tells what the kernel of a guest was started with, and what its security modules say and do, for the
//! proof.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use linux_audit::netlink::Client;
use rustix::process::{Pid, WaitOptions, waitpid};
use serde::{Deserialize, Serialize};

use crate::setup::Act;

/// Context that a process may not take under an enforcing policy that confines nobody else.
const FORBIDDEN_CONTEXT: &str = "system_u:system_r:init_t:s0";
const SELINUX: &str = "/sys/fs/selinux";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuestState {
    /// True if the calls of SELinux's functions are counted, in launches that are not measured.
    pub counts_hooks: bool,
}

/// State of a worker and its kernel, as seen in a guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GuestSeen {
    pub boot: String,
    /// Which kernel it is, with its build.
    #[serde(default)]
    pub version: String,
    pub cmdline: String,
    /// Number of the device that `/` is on (`st_dev`).
    #[serde(default)]
    pub root_device: u64,
    /// Security modules in force.
    pub modules: Vec<String>,
    /// True if SELinux enforces; `None` without SELinux.
    pub enforces: Option<bool>,
    /// Security context of the worker, in the words of the security module that is in force.
    pub context: String,
    pub avc_lookups: u64,
    pub avc_misses: u64,
    /// Audit state of the kernel (`enabled`); `None` if the kernel lacks auditing.
    pub audit: Option<u32>,
}

impl GuestState {
    /// When the worker has executed its program, and when it has ended.
    pub const BEFORE: &str = "guest before";
    pub const AFTER: &str = "guest after";
    /// Outcome of a step that an enforcing policy forbids: `denied`, `allowed` or `failed (errno N)`.
    pub const CANARY: &str = "selinux canary";
    pub const DENIED: &str = "denied";
}

impl GuestSeen {
    fn of(worker: u32) -> io::Result<GuestSeen> {
        let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let (avc_lookups, avc_misses) = avc();
        let own = format!("/proc/{worker}/attr/current");
        Ok(GuestSeen {
            boot: read("/proc/sys/kernel/random/boot_id")?,
            version: read("/proc/version")?,
            cmdline: read("/proc/cmdline")?,
            root_device: fs::metadata("/")?.dev(),
            modules: read("/sys/kernel/security/lsm")
                .unwrap_or_default()
                .split(',')
                .map(str::to_owned)
                .collect(),
            enforces: present(read(&format!("{SELINUX}/enforce")))?.map(|text| text == "1"),
            // Without a module that has contexts it cannot be read.
            context: read(&own).unwrap_or_default().trim_end_matches('\0').to_owned(),
            avc_lookups,
            avc_misses,
            audit: audit()?,
        })
    }
}

/// `None` where there is no such file.
fn present<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// `None` if the kernel lacks auditing.
fn audit() -> io::Result<Option<u32>> {
    match Client::open() {
        Err(error) if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) => Ok(None),
        client => Ok(Some(client?.status()?.enabled)),
    }
}

/// How often permissions were looked up, and how often they were not in the cache, over all CPUs.
fn avc() -> (u64, u64) {
    let text = fs::read_to_string(format!("{SELINUX}/avc/cache_stats")).unwrap_or_default();
    let lines = text.lines().skip(1).map(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        (numbers.first().copied().unwrap_or(0), numbers.get(2).copied().unwrap_or(0))
    });
    lines.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

fn put(name: &str, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
    let text = serde_json::to_string(&GuestSeen::of(worker)?)?;
    seen.insert(name.into(), text);
    Ok(())
}

impl Act for GuestState {
    /// On one CPU, who looks while it is measured would be measured.
    fn holds(&self) -> bool {
        true
    }

    fn look(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        put(GuestState::BEFORE, worker, seen)
    }

    fn look_back(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        put(GuestState::AFTER, worker, seen)
    }

    /// Tries what an enforcing policy forbids.
    fn after_worker(&self, seen: &mut BTreeMap<String, String>) -> io::Result<Option<u32>> {
        if !Path::new(SELINUX).join("enforce").exists() {
            return Ok(None);
        }
        // SAFETY: the launcher has one thread, so the forked child may use the heap.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let tried = fs::write("/proc/self/attr/current", FORBIDDEN_CONTEXT);
                let error = tried.err().map_or(0, |error| error.raw_os_error().unwrap_or(255));
                // SAFETY: ends the child at once, without the parent's clean-up.
                unsafe { libc::_exit(error) }
            }
            pid => {
                let ended = waitpid(Pid::from_raw(pid), WaitOptions::empty())?;
                let code = ended.and_then(|(_, status)| status.exit_status());
                let became = match code {
                    Some(0) => "allowed".to_owned(),
                    Some(libc::EACCES | libc::EPERM) => GuestState::DENIED.to_owned(),
                    // EINVAL means that the policy lacks this context: that is no denial.
                    other => format!("failed (errno {})", other.unwrap_or_default()),
                };
                seen.insert(GuestState::CANARY.into(), became);
                Ok(Some(pid as u32))
            }
        }
    }
}
