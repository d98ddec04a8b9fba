//! Extra work of the kernel: guards against the hardware, security modules, auditing, counting.

use crate::machine::check::{AUDITING, CheckInput};
use weigh_model::finding::Finding;
use weigh_model::finding::Severity::{Good, Note, Warning};

pub(super) fn mitigations(seen: &CheckInput) -> Option<Finding> {
    let states = &seen.facts.mitigations;
    let vulnerable: Vec<&str> = states
        .iter()
        .filter(|(_, state)| state.starts_with("Vulnerable"))
        .map(|(name, _)| name.as_str())
        .collect();
    let mitigated = states.values().filter(|state| state.starts_with("Mitigation")).count();
    let found = |severity, now, effect| Finding::new("Mitigations", severity, now, effect);
    if states.is_empty() {
        return None;
    }
    Some(if vulnerable.is_empty() {
        found(
            Good,
            format!("{mitigated} in force"),
            "System calls cost as much as on any fully mitigated machine.",
        )
    } else {
        found(
            Note,
            format!("{mitigated} in force, none for {}", vulnerable.join(", ")),
            "System calls may be cheaper here than on a machine with all mitigations, so the cost of a \
             treatment looks larger in per cent.",
        )
    })
}

pub(super) fn security_modules(seen: &CheckInput) -> Option<Finding> {
    let modules = &seen.facts.lsm;
    let effect = "The checks of these modules cost time in every sample, so a result holds for machines with \
        the same modules.";
    (!modules.is_empty())
        .then(|| Finding::new("Security modules", Good, modules.join(", "), effect))
}

/// The effect of auditing on each system call of a new process, once it was switched on. How large it is
/// depends on the machine; `audit` and `audit:residual` measure it.
const SLOW_CALLS: &str = "Every process that began since then has an audit context, which slows down each \
    system call: `weigh compare audit:residual` measures by how much. So a treatment's cost is a smaller \
    percentage than on a machine where auditing was never on.";

pub(super) fn audit(seen: &CheckInput) -> Option<Finding> {
    let found = |severity, now: String, effect| Finding::new(AUDITING, severity, now, effect);
    let daemon = seen.probes.audit.map(|audit| match audit.daemon_pid {
        0 => "no audit daemon",
        _ => "an audit daemon",
    });
    let daemon = daemon.unwrap_or_default();
    let reboot = "Reboot without switching auditing on.";
    Some(match (seen.probes.audit.map(|audit| audit.enabled), seen.probes.audit_contexts) {
        (None, Some(true)) => {
            found(Warning, "was on since the boot".into(), SLOW_CALLS).fix(reboot)
        }
        (None, _) => {
            let effect = "If auditing is on, or was since the boot, it costs time in every sample.";
            found(Note, "not visible without root".into(), effect)
        }
        (Some(0), Some(true)) => {
            let now = format!("off now, but it was on since the boot; {daemon} runs");
            found(Warning, now, SLOW_CALLS).fix(reboot)
        }
        (Some(0), Some(false)) => {
            let now = format!("off since the boot; {daemon} runs");
            found(Good, now, "Auditing costs no time in any sample.")
        }
        (Some(0), None) => found(
            Note,
            format!("off now; unknown here whether it was on since the boot; {daemon} runs"),
            "If auditing was on, each system call takes longer.",
        ),
        (Some(enabled), _) => found(
            Warning,
            format!("on{}; {daemon} runs", if enabled == 2 { " and locked" } else { "" }),
            "Audit rules and contexts cost time in every sample. Only `weigh compare audit` avoids \
             this, for its samples without auditing.",
        )
        .fix("List the rules: `auditctl -l`."),
    })
}

pub(super) fn counters(seen: &CheckInput) -> Option<Finding> {
    let found = |severity, now: String, effect| Finding::new("CPU counters", severity, now, effect);
    Some(match seen.probes.counters.as_ref()? {
        Ok(()) => found(Good, "available".into(), "Instructions and cycles can be counted."),
        Err(reason) => found(
            Note,
            format!("not available: {reason}"),
            "Instructions and cycles cannot be counted, so only time is measured.",
        )
        .fix(
            "On hardware, `sysctl kernel.perf_event_paranoid=1` allows counting. A virtual machine needs a \
             virtual PMU from its host.",
        ),
    })
}

/// Checks for the packages that virtual machines need. A missing package disturbs no measurement,
/// so only this check reports it.
pub(super) fn guests(seen: &CheckInput) -> Option<Finding> {
    let lacking = seen.probes.guests_lack.as_ref()?;
    let found = |now: String, effect| Finding::new("Virtual machines", Good, now, effect);
    Some(match lacking.is_empty() {
        true => found(
            "can be built and booted".into(),
            "SELinux, kernels and boot options can be measured in guests (vm).",
        ),
        false => found(
            format!("cannot be booted without {}", lacking.join(", ")),
            "SELinux, kernels and boot options cannot be measured in guests (vm).",
        )
        .fix("`sudo weigh doctor --install vm` installs what is missing."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Probes;
    use crate::machine::check::tests::found;
    use crate::machine::probes::AuditProbe;
    use weigh_model::facts::Facts;

    fn with(probes: Probes, name: &str) -> Option<Finding> {
        let findings = crate::machine::check::check(&Facts::default(), &probes);
        findings.into_iter().find(|finding| finding.name == name)
    }

    #[test]
    fn a_vulnerability_without_mitigation_is_named() {
        let directory = "/sys/devices/system/cpu/vulnerabilities";
        let (meltdown, l1tf) = (format!("{directory}/meltdown"), format!("{directory}/l1tf"));
        let safe = [(meltdown.as_str(), "Mitigation: PTI"), (l1tf.as_str(), "Not affected")];
        let finding = found(&safe, "Mitigations").unwrap();
        assert_eq!((finding.severity, finding.now.as_str()), (Good, "1 in force"));
        let open = [safe[0], (l1tf.as_str(), "Vulnerable: no microcode")];
        assert_eq!(found(&open, "Mitigations").unwrap().now, "1 in force, none for l1tf");
    }

    #[test]
    fn what_guests_lack_is_told_with_what_installs_it() {
        let of =
            |guests_lack| with(Probes { guests_lack, ..Probes::default() }, "Virtual machines");
        assert_eq!(of(None), None);
        assert_eq!(of(Some(Vec::new())).unwrap().fix, None);
        let lacking = of(Some(vec!["qemu-system-x86", "mmdebstrap"])).unwrap();
        assert!(lacking.now.ends_with("qemu-system-x86, mmdebstrap") && lacking.fix.is_some());
    }

    #[test]
    fn auditing_is_good_only_where_it_never_was_on() {
        let audit = |status: Option<(u32, u32)>, audit_contexts| {
            let audit = status.map(|(enabled, daemon_pid)| AuditProbe { enabled, daemon_pid });
            with(Probes { audit, audit_contexts, ..Probes::default() }, "Auditing").unwrap()
        };
        let severity = |status, contexts| audit(status, contexts).severity;
        assert_eq!(severity(Some((0, 0)), Some(false)), Good);
        assert_eq!(severity(Some((0, 0)), None), Note);
        assert_eq!(severity(Some((0, 0)), Some(true)), Warning);
        // The size differs between machines: it is measured, and not quoted from another one.
        let was_on = audit(Some((0, 0)), Some(true)).effect;
        assert!(was_on.contains("`weigh compare audit:residual` measures by how much"), "{was_on}");
        assert_eq!(
            [severity(Some((1, 7)), None), severity(Some((1, 7)), Some(true))],
            [Warning; 2]
        );
        assert_eq!([severity(None, None), severity(None, Some(true))], [Note, Warning]);
        assert_eq!(audit(Some((2, 7)), None).now, "on and locked; an audit daemon runs");
    }

    #[test]
    fn counters_that_are_missing_say_why() {
        let counters = |counters| {
            with(Probes { counters: Some(counters), ..Probes::default() }, "CPU counters").unwrap()
        };
        assert_eq!(counters(Ok(())).severity, Good);
        assert!(counters(Err("ENOENT".into())).now.contains("ENOENT"));
    }
}
