//! Settings of the kernel below `/proc/sys`: by which name, and which of them nobody should change for a
//! while.

use std::path::Path;

const DIRECTORY: &str = "/proc/sys";

const RUNS: &str = "it names a program that the kernel runs as root";
const STOPS: &str = "it can stop the machine or its services";
const STAYS: &str = "a change of this setting cannot be undone";
const ACTS: &str = "writing to it has an immediate effect that cannot be undone";
const MORE: &str = "it also changes other settings or addresses, and weigh would not restore them";
const NAMES: &str = "it is the name of this machine for other machines";

/// Refused settings by reason, as paths below the directory; a `*` is the rest of a name.
const REFUSED: [(&str, &str); 6] = [
    (
        RUNS,
        "fs/binfmt_misc kernel/core_pattern kernel/hotplug kernel/modprobe kernel/poweroff_cmd \
         kernel/usermodehelper",
    ),
    (
        STOPS,
        "fs/file-max kernel/cad_pid kernel/ctrl-alt-del kernel/hardlockup_panic \
         kernel/hung_task_panic kernel/oops_limit kernel/panic* kernel/pid_max \
         kernel/softlockup_panic kernel/sysrq kernel/threads-max kernel/unknown_nmi_panic \
         kernel/warn_limit vm/panic_on_oom",
    ),
    (
        STAYS,
        "kernel/kexec* kernel/modules_disabled kernel/tainted kernel/unprivileged_bpf_disabled \
         kernel/yama/ptrace_scope",
    ),
    (
        ACTS,
        "kernel/ns_last_pid kernel/random kernel/shm_rmid_forced net/ipv4/route/flush \
         net/ipv6/route/flush vm/compact_memory vm/drop_caches vm/stat_refresh",
    ),
    (
        MORE,
        "net/ipv4/ip_forward net/ipv4/conf/*/forwarding net/ipv6/conf/*/addr_gen_mode \
         net/ipv6/conf/*/disable_ipv6 net/ipv6/conf/*/forwarding net/ipv6/conf/*/mtu",
    ),
    (NAMES, "kernel/domainname kernel/hostname"),
];

/// Pairs of settings of which one is in force; the other is 0, and writing 0 back has no effect.
const EITHER_OR: [[&str; 2]; 3] = [
    ["vm/dirty_bytes", "vm/dirty_ratio"],
    ["vm/dirty_background_bytes", "vm/dirty_background_ratio"],
    ["vm/overcommit_kbytes", "vm/overcommit_ratio"],
];

/// The file of a setting as sysctl(8) names it: with dots, or with slashes where a part has dots itself.
pub fn file_of(key: &str) -> Result<String, String> {
    let path = if key.contains('/') { key.to_owned() } else { key.replace('.', "/") };
    let is_part = |part: &str| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.:@".contains(c);
        !matches!(part, "" | "." | "..") && part.chars().all(is_name)
    };
    if !path.contains('/') || !path.split('/').all(is_part) {
        return Err(format!("`{key}` is not the name of a setting, such as vm.swappiness"));
    }
    let is_refused = |patterns: &str| patterns.split(' ').any(|pattern| is_of(&path, pattern));
    match REFUSED.iter().find(|(_, patterns)| is_refused(patterns)) {
        Some((why, _)) => Err(format!("weigh does not change {key}: {why}")),
        None => Ok(format!("{DIRECTORY}/{path}")),
    }
}

/// Returns true if this is such a file below the root, and the old value is possible for it.
pub fn is_known(file: &str, was: &str) -> bool {
    let path = file.strip_prefix(DIRECTORY).and_then(|path| path.strip_prefix('/'));
    path.is_some_and(|path| file_of(path).is_ok()) && can_be_put_back(Path::new(file), was).is_ok()
}

/// Checks that writing `was` to a setting restores it.
pub fn can_be_put_back(file: &Path, was: &str) -> Result<(), String> {
    let is_plain = |c: char| c == '\t' || (' '..='~').contains(&c);
    if was.is_empty() || was.len() > 4000 || !was.chars().all(is_plain) {
        return Err("cannot save the current value: it is not a single line of text".into());
    }
    let mut pairs = EITHER_OR.iter().flat_map(|[one, other]| [(one, other), (other, one)]);
    match pairs.find(|(one, _)| was == "0" && file.ends_with(one)) {
        None => Ok(()),
        Some((_, other)) => Err(format!(
            "it is 0 because {other} is in force instead, and 0 cannot be put back: change {other}",
            other = other.replace('/', ".")
        )),
    }
}

/// Returns true if the path matches the pattern, or is below a match.
fn is_of(path: &str, pattern: &str) -> bool {
    let mut parts = path.split('/');
    pattern.split('/').all(|wanted| {
        parts.next().is_some_and(|part| match wanted.strip_suffix('*') {
            Some(begin) => part.starts_with(begin),
            None => part == wanted,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_the_name_that_sysctl_gives_it() {
        assert_eq!(file_of("vm.swappiness").unwrap(), "/proc/sys/vm/swappiness");
        assert_eq!(
            file_of("net/ipv4/conf/eth0.100/rp_filter").unwrap(),
            "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"
        );
        for wrong in ["swappiness", "vm..x", "vm/../kernel/x", "/vm/x", "vm.a b", "", "vm/"] {
            assert!(file_of(wrong).unwrap_err().contains("not the name of a setting"), "{wrong}");
        }
    }

    #[test]
    fn what_runs_stops_or_stays_is_refused_with_the_reason() {
        for (key, why) in [
            ("kernel.core_pattern", RUNS),
            ("kernel/core_pattern", RUNS),
            ("kernel.panic", STOPS),
            ("kernel.panic_on_oops", STOPS),
            ("kernel.usermodehelper.bset", RUNS),
            ("fs.binfmt_misc.register", RUNS),
            ("kernel.kexec_load_disabled", STAYS),
            ("vm.drop_caches", ACTS),
            ("net.ipv4.conf.all.forwarding", MORE),
        ] {
            let said = file_of(key).unwrap_err();
            assert!(said.contains(why), "{key}: {said}");
        }
        assert!(file_of("kernel.perf_event_paranoid").is_ok());
        assert!(file_of("net.ipv4.conf.all.rp_filter").is_ok());
    }

    #[test]
    fn only_what_can_be_written_back_is_changed() {
        let can = |file: &str, was| can_be_put_back(Path::new(file), was);
        assert!(
            can("/proc/sys/vm/dirty_bytes", "0").unwrap_err().contains("change vm.dirty_ratio")
        );
        assert!(can("/proc/sys/vm/dirty_bytes", "8192").is_ok());
        assert!(can("/proc/sys/vm/swappiness", "0").is_ok());
        assert!(can("/proc/sys/net/ipv4/tcp_rmem", "1\t2\t3").is_ok());
        assert!(can("/proc/sys/vm/x", "").is_err() && can("/proc/sys/vm/x", "a\nb").is_err());
        assert!(is_known("/proc/sys/vm/swappiness", "60"));
        assert!(!is_known("/proc/sys/kernel/core_pattern", "core"));
        assert!(!is_known("/proc/sys/vm/../../etc/shadow", "x") && !is_known("/etc/shadow", "x"));
    }
}
