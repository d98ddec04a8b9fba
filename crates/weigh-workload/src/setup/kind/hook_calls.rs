//! How often a workload makes the kernel call each function of SELinux in a guest: for launches that are not
//! measured.
//!
//! The kernel's function tracer records the calls. It lengthens the path, so it is on for these launches
//! alone: the last launch takes it back.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde::{Deserialize, Serialize};

use crate::launcher::Launched;
use crate::setup::Act;

const TRACEFS: &str = "/sys/kernel/tracing";
const SELINUX: &str = "/sys/fs/selinux";
/// Functions of SELinux's cache: which of them call which, the compiler decides.
const CACHE: &str = "avc_*";
/// Function that looks a permission up. Where the compiler put it into its callers, these are counted.
const LOOKUP: &str = "avc_lookup";
const CALLERS: [&str; 3] = ["avc_has_perm", "avc_has_perm_noaudit", "avc_has_extended_perms"];
/// Pattern of SELinux's other functions.
const OWN: &str = "selinux_*";
/// Room for two million calls.
const BUFFER_KB: &str = "65536";

/// Counts in this many workers of the launcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookCalls {
    pub workers: u32,
}

/// Calls by function.
type Calls = BTreeMap<String, u64>;

/// Calls in a launch, by function; those that were not called are missing. Or why they are unknown.
pub type Found = Result<Calls, String>;

/// Workers that have ended.
static ENDED: AtomicU32 = AtomicU32::new(0);

impl HookCalls {
    /// Name of the observation: a [`Found`] as JSON.
    pub const SEEN: &str = "hook calls";

    /// Calls in a launch of such a launcher.
    pub fn found(launched: &Launched) -> Found {
        let seen = launched.seen(HookCalls::SEEN).map_err(|error| error.to_string())?;
        serde_json::from_str(seen).map_err(|error| error.to_string())?
    }

    /// Returns the calls that look permissions up, of all these calls.
    pub fn checks(calls: &Calls) -> u64 {
        let of_callers = || CALLERS.iter().filter_map(|name| calls.get(*name)).sum();
        calls.get(LOOKUP).copied().unwrap_or_else(of_callers)
    }
}

impl Act for HookCalls {
    fn in_launcher(&self) -> Result<(), String> {
        if !Path::new(SELINUX).join("enforce").exists() {
            return Err("SELinux is not in force".into());
        }
        trace().map_err(|error| format!("cannot trace SELinux's functions: {error}"))
    }

    fn holds(&self) -> bool {
        true
    }

    /// Forgets what was called before.
    fn look(&self, _: u32, _: &mut BTreeMap<String, String>) -> io::Result<()> {
        File::create(within("trace")).map(drop)
    }

    fn look_back(&self, _: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        fs::write(within("tracing_on"), "0")?;
        let read = File::open(within("trace")).and_then(|file| counted(BufReader::new(file)));
        let found = read.map_err(|error| error.to_string());
        seen.insert(HookCalls::SEEN.into(), serde_json::to_string(&found)?);
        fs::write(within("tracing_on"), "1")
    }

    fn after_worker(&self, _: &mut BTreeMap<String, String>) -> io::Result<Option<u32>> {
        if ENDED.fetch_add(1, Ordering::Relaxed) + 1 >= self.workers {
            take_back()?;
        }
        Ok(None)
    }
}

fn within(file: &str) -> String {
    format!("{TRACEFS}/{file}")
}

/// Begins anew where an earlier launcher of this boot failed before it took the tracer back.
fn trace() -> io::Result<()> {
    match unmount(TRACEFS, UnmountFlags::empty()) {
        // Nothing is mounted there.
        Err(Errno::INVAL) => {}
        unmounted => unmounted?,
    }
    mount("tracefs", TRACEFS, "tracefs", MountFlags::empty(), None)?;
    fs::write(within("current_tracer"), "nop")?;
    fs::write(within("tracing_on"), "1")?;
    fs::write(within("set_ftrace_filter"), OWN)?;
    let mut filter = File::options().append(true).open(within("set_ftrace_filter"))?;
    filter.write_all(CACHE.as_bytes())?;
    drop(filter);
    fs::write(within("buffer_size_kb"), BUFFER_KB)?;
    fs::write(within("current_tracer"), "function")
}

/// Reads a trace: comments, and lines such as `sh-1 [000] d..1. 1.0: selinux_sk_free <-security_sk_free`.
fn counted(trace: impl BufRead) -> io::Result<Calls> {
    let mut calls = Calls::new();
    let mut has_header = false;
    for line in trace.lines() {
        let line = line?;
        if let Some((_, numbers)) = line.split_once("entries-in-buffer/entries-written: ") {
            let numbers = numbers.split_whitespace().next().unwrap_or_default();
            if numbers.split_once('/').is_none_or(|(kept, written)| kept != written) {
                let problem = format!("the kernel lost calls ({numbers} were kept)");
                return Err(io::Error::other(problem));
            }
            has_header = true;
        }
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let called =
            line.split_once(" <-").and_then(|(called, _)| called.split_whitespace().last());
        let called =
            called.ok_or_else(|| io::Error::other(format!("trace: cannot read `{line}`")))?;
        *calls.entry(called.to_owned()).or_default() += 1;
    }
    match has_header {
        true => Ok(calls),
        false => Err(io::Error::other("the kernel does not say whether it lost calls")),
    }
}

/// Takes the tracer back, and checks that it is gone.
fn take_back() -> io::Result<()> {
    fs::write(within("current_tracer"), "nop")?;
    File::create(within("set_ftrace_filter"))?;
    if !fs::read_to_string(within("enabled_functions"))?.is_empty() {
        return Err(io::Error::other("some functions are still traced"));
    }
    Ok(unmount(TRACEFS, UnmountFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "# tracer: function\n#\n# entries-in-buffer/entries-written: 3/3   #P:1\n#\n\
        sh-84  [000] d..1.  1.25: selinux_task_alloc <-security_task_alloc\n\
        a b-84 [000] .....  1.26: avc_has_perm <-selinux_task_alloc\n\
        sh-84  [000] .....  1.27: avc_has_perm_noaudit <-selinux_inode_permission\n";

    #[test]
    fn calls_are_counted_by_function() {
        let calls = counted(TRACE.as_bytes()).unwrap();
        assert_eq!((calls.len(), calls["selinux_task_alloc"]), (3, 1));
        assert_eq!(HookCalls::checks(&calls), 2);
    }

    #[test]
    fn a_trace_that_lost_calls_is_no_count() {
        let lost = counted(TRACE.replace("3/3", "3/9").as_bytes()).unwrap_err().to_string();
        assert_eq!(lost, "the kernel lost calls (3/9 were kept)");
        let cut = counted("CPU:0 [LOST 7 EVENTS]\n".as_bytes()).unwrap_err().to_string();
        assert!(cut.contains("cannot read"), "{cut}");
        let unsaid = counted(TRACE.replace("entries-in-buffer", "entries").as_bytes()).unwrap_err();
        assert_eq!(unsaid.to_string(), "the kernel does not say whether it lost calls");
    }
}
