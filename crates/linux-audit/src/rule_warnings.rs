//! Rules that load and yet do not do what they seem to: the pitfalls of `auditctl(8)` and
//! `audit.rules(7)`.

use std::path::Path;

use super::rule::field;
use super::rule_fields::{Decoded, Field, Operator, RuleList};
use super::rule_kind::is_of_another_abi;
use super::rule_set::RuleLine;

const UNSET: u32 = u32::MAX;

/// Adds to every loaded line what is to be said about it.
pub fn add_warnings(report: &mut [RuleLine]) {
    let decoded: Vec<Vec<Decoded>> =
        report.iter().map(|line| line.rules.iter().map(|rule| rule.decode()).collect()).collect();
    let of_other_abi: Vec<&Decoded> =
        decoded.iter().flatten().filter(|rule| rule.fields.iter().any(is_of_another_abi)).collect();
    for (line, rules) in report.iter_mut().zip(&decoded) {
        for rule in rules {
            line.warnings.extend(about_paths(rule, &line.text));
            line.warnings.extend(about_abi(rule, &of_other_abi));
            line.warnings.extend(about_loginuid(rule));
        }
    }
}

fn about_paths(rule: &Decoded, text: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for field in &rule.fields {
        let Some(path) = field.text.as_deref().map(Path::new) else { continue };
        let is_missing = matches!(path.try_exists(), Ok(false));
        match field.kind {
            // Whether the line meant a directory: the kernel's list has lost its last slash.
            field::WATCH if is_missing && text.contains(&format!("{}/", path.display())) => {
                warnings.push(
                    "the directory does not exist: it is watched as a single file, and files created \
                     in it later are not watched"
                        .into(),
                );
            }
            field::WATCH | field::DIR if is_missing => {
                warnings.push("the path does not exist".into());
            }
            field::WATCH if path.is_dir() => warnings.push(
                "`path=` of a directory watches its own entry only; use `dir=` for all below it"
                    .into(),
            ),
            field::EXE if is_missing => warnings.push("the program does not exist".into()),
            _ => {}
        }
    }
    warnings
}

fn about_abi(rule: &Decoded, of_other_abi: &[&Decoded]) -> Option<String> {
    if rule.list != RuleList::Exit || rule.syscalls.is_all() {
        return None;
    }
    let Some(arch) = rule.field(field::ARCH) else {
        return Some(
            "no `arch=`: in 32-bit processes the same numbers mean different calls, which match as well"
                .into(),
        );
    };
    if is_of_another_abi(arch) {
        return None;
    }
    let others = |rule: &Decoded| -> Vec<Field> {
        rule.fields.iter().filter(|field| field.kind != field::ARCH).cloned().collect()
    };
    let is_covered = |other: &&Decoded| other.syscalls.is_all() || others(other) == others(rule);
    (!of_other_abi.iter().any(is_covered))
        .then(|| "32-bit processes are not covered: add this rule with `arch=b32` too".into())
}

fn about_loginuid(rule: &Decoded) -> Option<String> {
    let fields = || rule.fields.iter().filter(|field| field.kind == field::LOGINUID);
    let lower = fields().find(|field| {
        matches!(field.operator, Operator::Greater | Operator::GreaterOrEqual)
            && field.number != UNSET
    })?;
    let is_bounded = fields().any(|field| {
        let excludes_unset = field.operator == Operator::NotEqual && field.number == UNSET;
        excludes_unset || matches!(field.operator, Operator::Less | Operator::LessOrEqual)
    });
    let asks_for_login = rule.field(field::LOGINUID_SET).is_some();
    (!is_bounded && !asks_for_login).then(|| {
        format!(
            "services have no login uid, which counts as the largest number, so they match `auid` from {} \
             up; add `-F auid!=unset`",
            lower.number
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Rule;

    #[test]
    fn what_is_not_there_is_named() {
        let missing = Path::new("/nonexistent/x");
        let mut report = [
            RuleLine::loaded("-w /nonexistent/x -p r", Rule::watch(missing, "k")),
            RuleLine::loaded("-w /nonexistent/x/ -p r", Rule::watch(missing, "k")),
            RuleLine::loaded(
                "-a always,exit -F exe=/nonexistent/x",
                Rule::always_exit_of_program(missing),
            ),
            RuleLine::loaded(
                "-w /proc/self/stat -p r",
                Rule::watch(Path::new("/proc/self/stat"), "k"),
            ),
            RuleLine::loaded("-a always,exit -F path=/proc", Rule::watch(Path::new("/proc"), "k")),
            RuleLine::loaded(
                "-a always,exit -F exe=/proc/self/exe",
                Rule::always_exit_of_program(Path::new("/proc/self/exe")),
            ),
        ];
        add_warnings(&mut report);
        let said: Vec<String> = report.iter().map(|line| line.warnings.join("|")).collect();
        assert_eq!(said[0], "the path does not exist");
        assert!(said[1].starts_with("the directory does not exist"), "{said:?}");
        assert_eq!(said[2], "the program does not exist");
        assert_eq!(said[3], "");
        assert!(said[4].contains("use `dir=`"), "{said:?}");
        assert_eq!(said[5], "");
    }

    #[test]
    fn a_rule_for_system_calls_without_an_abi_is_named() {
        let mut report =
            [RuleLine::loaded("-a always,exit -S 39 -F auid=7", Rule::always_exit_of(&[39], 7))];
        add_warnings(&mut report);
        assert!(report[0].warnings[0].contains("no `arch=`"), "{report:?}");
    }

    fn condition(kind: u32, operator: Operator, number: u32) -> Field {
        Field { kind, name: "", operator, number, text: None }
    }

    /// A rule for one system call, with these conditions.
    fn rule(fields: &[Field]) -> Decoded {
        Decoded { fields: fields.to_vec(), ..Rule::always_exit_of(&[39], 7).decode() }
    }

    #[test]
    fn a_lower_limit_of_login_uids_that_lets_services_in_is_named() {
        let auid = |operator, number| condition(field::LOGINUID, operator, number);
        let from = auid(Operator::GreaterOrEqual, 1000);
        let warning = |fields: &[Field]| about_loginuid(&rule(fields));
        assert!(warning(std::slice::from_ref(&from)).unwrap().contains("from 1000 up"));
        assert!(warning(&[auid(Operator::Greater, 999)]).is_some());
        for limit in [
            auid(Operator::NotEqual, UNSET),
            auid(Operator::Less, UNSET),
            auid(Operator::LessOrEqual, 60_000),
            condition(field::LOGINUID_SET, Operator::Equal, 1),
        ] {
            assert_eq!(warning(&[from.clone(), limit.clone()]), None, "{limit:?}");
        }
        for no_limit in [
            auid(Operator::NotEqual, 5),
            auid(Operator::Equal, UNSET),
            condition(field::PID, Operator::Less, 60_000),
        ] {
            assert!(warning(&[from.clone(), no_limit.clone()]).is_some(), "{no_limit:?}");
        }
        for other in [
            auid(Operator::Equal, 1000),
            auid(Operator::GreaterOrEqual, UNSET),
            condition(field::PID, Operator::GreaterOrEqual, 1000),
        ] {
            assert_eq!(warning(std::slice::from_ref(&other)), None, "{other:?}");
        }
    }

    #[test]
    fn calls_of_64_bit_processes_want_the_same_rule_for_32_bit_processes() {
        const I386: u32 = 0x4000_0003;
        let [auid, other_auid] =
            [7, 8].map(|number| condition(field::LOGINUID, Operator::Equal, number));
        let native = rule(&[condition(field::ARCH, Operator::NotEqual, I386), auid.clone()]);
        let of_i386 = condition(field::ARCH, Operator::Equal, I386);
        let same = rule(&[of_i386.clone(), auid]);
        let another = rule(&[of_i386, other_auid]);
        let every =
            Decoded { syscalls: Rule::always_exit(7, "").decode().syscalls, ..another.clone() };
        assert!(about_abi(&native, &[]).unwrap().contains("are not covered"));
        assert!(about_abi(&native, &[&another]).is_some());
        assert_eq!(about_abi(&native, &[&another, &same]), None);
        assert_eq!(about_abi(&native, &[&every]), None);
        assert_eq!(about_abi(&same, &[]), None, "it is that of 32-bit processes");
        let of_all = Decoded { syscalls: every.syscalls.clone(), ..native.clone() };
        let of_task = Decoded { list: RuleList::Task, ..native };
        assert_eq!((about_abi(&of_all, &[]), about_abi(&of_task, &[])), (None, None));
    }
}
