//! Preconditions for changing a host's audit configuration, and configurations that we leave alone.

use std::io;

use super::{LOGINUIDS, needs};
use crate::Probe;
use linux_audit::netlink::Client;
use linux_audit::rule::Rule;
use linux_audit::status::Status;

/// Advice for a host that must stay as it is.
const ELSEWHERE: &str = "weigh the same rules with `audit:rules=FILE` on a similar machine";

/// Asks the kernel for the preconditions of auditing here.
pub fn probe() -> Probe {
    match Client::open().and_then(|mut client| conflict(&mut client)) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            Probe::NeedsRoot(needs(error).to_string())
        }
        Err(error) => Probe::Broken(needs(error).to_string()),
        Ok(Some(why)) => Probe::Conflict(why),
        Ok(None) if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) => Probe::Available,
        Ok(None) => Probe::Broken("weigh measures auditing on x86-64 and AArch64 only".into()),
    }
}

/// Finds the part of this host's configuration that is in the way, and gives a remedy.
pub fn conflict(client: &mut Client) -> io::Result<Option<String>> {
    let status = client.status()?;
    let rules = client.rules()?;
    // Kernels that know no features forbid nothing.
    let is_fixed = client.features().is_ok_and(|features| features.forbid_another_loginuid());
    Ok(of_status(&status).or_else(|| of_loginuid(is_fixed)).or_else(|| of_rules(&rules)))
}

fn of_status(status: &Status) -> Option<String> {
    match (status.enabled, status.failure) {
        (2, _) => Some(format!(
            "the audit configuration is locked (`enabled 2`) until the next boot: remove `-e 2` from the \
             rule files and reboot, or {ELSEWHERE}"
        )),
        (_, 2) => Some(format!(
            "this host panics when an audit record is lost (`failure 2`): set `auditctl -f 1` first, or \
             {ELSEWHERE}"
        )),
        _ => None,
    }
}

fn of_loginuid(is_fixed: bool) -> Option<String> {
    is_fixed.then(|| {
        format!(
            "this host forbids changing a login uid (`loginuid_immutable`, see `auditctl -s`), but the \
             arms need different login uids: remove `--loginuid-immutable` from the rule files and \
             reboot, or {ELSEWHERE}"
        )
    })
}

fn of_rules(rules: &[Rule]) -> Option<String> {
    // One of ours is of an experiment that died, and goes before the next begins.
    rules.iter().any(|rule| rule.is_never_task() && !is_about_ours(rule)).then(|| {
        format!(
            "this host has a rule that exempts processes from auditing when they start (`-a never,task`, \
             see `auditctl -l`), so treated processes would not be audited: remove this rule first, or \
             {ELSEWHERE}"
        )
    })
}

/// Returns true if a rule matches one of the login uids that only processes of ours have.
pub fn is_about_ours(rule: &Rule) -> bool {
    rule.loginuid().is_some_and(|loginuid| LOGINUIDS.contains(&loginuid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{BASELINE_LOGINUID, treated_loginuid};

    #[test]
    fn configurations_in_the_way_are_named_with_what_can_be_done() {
        let status = |enabled, failure| Status { enabled, failure, ..Status::default() };
        let sentences = [
            (of_status(&status(2, 1)), "locked"),
            (of_status(&status(0, 2)), "panics"),
            (of_loginuid(true), "loginuid_immutable"),
            (of_rules(&[Rule::never_task(1000)]), "never,task"),
        ];
        for (sentence, what) in sentences {
            let sentence = sentence.unwrap();
            assert!(sentence.contains(what) && sentence.contains("audit:rules=FILE"), "{sentence}");
        }
        assert_eq!(of_status(&status(1, 1)).or(of_loginuid(false)), None);
        let left = [BASELINE_LOGINUID, treated_loginuid(7).unwrap()].map(Rule::never_task);
        assert_eq!(of_rules(&[&left[..], &[Rule::always_exit(7, "")]].concat()), None);
        assert!(treated_loginuid(998).is_err() && treated_loginuid(usize::MAX).is_err());
    }
}
