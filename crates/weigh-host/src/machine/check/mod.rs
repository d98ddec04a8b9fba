//! Checks for anything about this machine that disturbs a measurement. Each check is one small
//! function, with its finding, the effect on a measurement, and the fix. `weigh doctor` shows all
//! findings. Warnings are also in every report, and notes in its JSON and HTML.

use std::collections::BTreeMap;

use weigh_model::facts::Facts;
use weigh_model::finding::{Finding, Severity};
use weigh_model::result::warning::Warning;

use crate::machine::Probes;

mod background;
mod cpu;
mod kernel;
mod memory;
mod others;
mod share;

/// Name of the check whose change during a measurement is also reported.
const AUDITING: &str = "Auditing";

struct CheckInput<'a> {
    facts: &'a Facts,
    probes: &'a Probes,
}

/// A check; `None` where there is nothing to look at.
type Check = fn(&CheckInput) -> Option<Finding>;

const CHECKS: &[Check] = &[
    others::load,
    others::stolen_time,
    share::affinity,
    share::quota,
    share::niceness,
    share::kinds,
    share::unreadable,
    cpu::governor,
    cpu::boost,
    cpu::smt,
    cpu::isolation,
    cpu::throttling,
    cpu::clock,
    background::corrections,
    background::power,
    background::interrupts,
    background::hardware_errors,
    memory::layout,
    memory::huge_pages,
    memory::swap,
    kernel::mitigations,
    kernel::security_modules,
    kernel::audit,
    kernel::counters,
    others::hypervisor,
    kernel::guests,
];

/// The checks that may warn. Documents have their warnings as sentences, which begin with these.
const WARN: [&str; 13] = [
    "Load",
    "Stolen time",
    "CPU quota",
    "Niceness",
    "CPU kinds",
    "CPU share",
    "CPU governor",
    "Clock source",
    "Power",
    "Hardware errors",
    "Memory layout",
    AUDITING,
    "Free space",
];

pub fn check(facts: &Facts, probes: &Probes) -> Vec<Finding> {
    let seen = CheckInput { facts, probes };
    let findings = CHECKS.iter().filter_map(|check| check(&seen));
    findings.chain(probes.space.iter().map(others::free_space)).collect()
}

pub fn warnings(findings: &[Finding]) -> Vec<Warning> {
    of(findings, Severity::Warning).cloned().map(Warning::Machine).collect()
}

/// Returns true if a report's warning comes from these checks: it is about the machine, whatever is
/// measured.
pub fn is_about_machine(warning: &Warning) -> bool {
    match warning {
        Warning::Machine(_) | Warning::AuditingChanged { .. } => true,
        Warning::Sentence(text) => {
            text.split_once(": ").is_some_and(|(name, _)| WARN.contains(&name))
        }
        _ => false,
    }
}

/// Returns true if a warning is about auditing by this kernel, which a guest's kernel does not see.
pub fn is_about_auditing(warning: &Warning) -> bool {
    match warning {
        Warning::AuditingChanged { .. } => true,
        Warning::Machine(finding) => finding.name == AUDITING,
        _ => false,
    }
}

/// The notes among the findings, by the names of their checks. Includes a warning about auditing, as
/// experiments before and after it was switched on differ.
pub fn worth_knowing(findings: &[Finding]) -> BTreeMap<String, String> {
    let is_kept = |found: &&Finding| match found.severity {
        Severity::Note => true,
        Severity::Warning => found.name == AUDITING,
        Severity::Good => false,
    };
    let kept = findings.iter().filter(is_kept);
    kept.map(|found| (found.name.clone(), found.without_name())).collect()
}

fn of(findings: &[Finding], severity: Severity) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(move |finding| finding.severity == severity)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::machine::probes::Space;
    use crate::machine::source::tests::root_with;

    /// Returns the finding of a check on a machine with these files.
    pub(in crate::machine) fn found(files: &[(&str, &str)], name: &str) -> Option<Finding> {
        let facts = crate::machine::facts::read_from(root_with(files).path());
        let findings = check(&facts, &Probes::default());
        let as_in_document = |warning: &Warning| Warning::Sentence(warning.to_string());
        let warnings = warnings(&findings);
        assert!(
            warnings.iter().map(as_in_document).all(|it| is_about_machine(&it)),
            "{warnings:?}"
        );
        findings.into_iter().find(|finding| finding.name == name)
    }

    #[test]
    fn an_unknown_machine_has_no_warnings() {
        assert_eq!(warnings(&check(&Facts::default(), &Probes::default())), []);
    }

    #[test]
    fn a_full_disk_is_a_warning_that_names_the_place() {
        let space = |free_bytes| Space { place: "/scratch".into(), free_bytes };
        let probes = Probes { space: vec![space(1 << 20), space(1 << 40)], ..Probes::default() };
        let warnings = warnings(&check(&Facts::default(), &probes));
        let [Warning::Machine(finding)] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(finding.now.contains("/scratch has 1 MiB"), "{finding:?}");
        assert!(is_about_machine(&warnings[0]));
        assert!(!is_about_machine(&Warning::Sentence("`a`: b.".into())));
    }

    /// The reports of `weigh run`, which compares nothing, have them too.
    #[test]
    fn no_finding_speaks_of_what_only_a_comparison_has() {
        let files = concat!(
            include_str!("background.rs"),
            include_str!("cpu.rs"),
            include_str!("kernel.rs"),
            include_str!("memory.rs"),
            include_str!("others.rs"),
            include_str!("share.rs")
        );
        for word in ["both arms", "pairs", "baseline", "verdict", "intervals"] {
            assert!(!files.contains(word), "{word}");
        }
    }

    #[test]
    fn a_finding_is_one_line_in_a_report() {
        let finding = Finding::new("A", Severity::Warning, "b", "C.").fix("Do `d`.");
        assert_eq!(finding.sentence(), "A: b. C. Do `d`.");
    }

    #[test]
    fn what_is_worth_knowing_is_found_by_name() {
        let found = |severity| Finding::new("A", severity, "b", "C.");
        let findings = [found(Severity::Good), found(Severity::Warning), found(Severity::Note)];
        let notes = worth_knowing(&findings);
        assert_eq!(notes.into_iter().collect::<Vec<_>>(), [("A".into(), "b. C.".into())]);
    }

    #[test]
    fn this_machine_is_checked_without_failing() {
        let findings =
            check(&crate::machine::facts::read(), &Probes::read(&[std::env::temp_dir()]));
        assert!(findings.iter().any(|finding| finding.name == "Memory layout"));
        assert!(findings.iter().any(|finding| finding.name == "Free space"));
    }
}
