//! Rules that the kernel treats alike when a system call ends, told apart by what it has to look at
//! before it knows that a rule does not match (`kernel/auditsc.c`, `kernel/auditfilter.c`).

use super::rule::{NATIVE_ARCH, field};
use super::rule_fields::{Action, Decoded, Field, Operator, RuleList};

/// How the kernel treats a rule at the end of one system call of a 64-bit process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleKind {
    /// Found by the hash of an inode's number: looked at only when such a file is touched.
    FileWatch,
    /// The call's bit in the rule's mask is not set, and that is all the kernel looks at.
    OtherSyscalls,
    /// The kernel walks through the fields up to the first that does not hold.
    Fields {
        /// Names in the kernel's order, without the key, up to the first that can never hold in a
        /// 64-bit process, else all.
        names: Vec<&'static str>,
        /// True if the rule names every system call.
        is_every_syscall: bool,
        /// Where it matches, the rules behind it are passed over.
        is_never: bool,
    },
    /// In a list that the end of a system call does not come by.
    OtherList(RuleList),
}

impl Decoded {
    /// How the kernel treats the rule at the end of this system call of a 64-bit process.
    pub fn kind_for(&self, syscall: u32) -> RuleKind {
        if self.list != RuleList::Exit {
            return RuleKind::OtherList(self.list);
        }
        if self.field(field::WATCH).or(self.field(field::INODE)).is_some() {
            return RuleKind::FileWatch;
        }
        if !self.syscalls.contains(syscall) {
            return RuleKind::OtherSyscalls;
        }
        let decisive = self.fields.iter().position(is_of_another_abi);
        let looked_at = decisive.map_or(self.fields.len(), |index| index + 1);
        let fields = self.fields[..looked_at].iter();
        RuleKind::Fields {
            names: fields.filter(|f| f.kind != field::FILTERKEY).map(|f| f.name).collect(),
            is_every_syscall: self.syscalls.is_all(),
            is_never: self.action == Action::Never,
        }
    }
}

impl Decoded {
    /// Returns true if the kernel records this call of a 64-bit process, whoever makes it and
    /// whatever its result.
    pub fn records_always(&self, syscall: u32) -> bool {
        let holds_anyway = |f: &Field| {
            f.kind == field::FILTERKEY || (f.kind == field::ARCH && !is_of_another_abi(f))
        };
        self.list == RuleList::Exit
            && self.action == Action::Always
            && self.syscalls.contains(syscall)
            && self.fields.iter().all(holds_anyway)
    }
}

/// Returns true if the field asks for an ABI other than this program's.
pub(crate) fn is_of_another_abi(condition: &Field) -> bool {
    condition.kind == field::ARCH
        && match condition.operator {
            Operator::Equal => condition.number != NATIVE_ARCH,
            Operator::NotEqual => condition.number == NATIVE_ARCH,
            _ => false,
        }
}

impl RuleKind {
    /// As `directory watches` or `every system call, arch= auid=`.
    pub fn title(&self) -> String {
        match self {
            RuleKind::FileWatch => "file watches".into(),
            RuleKind::OtherSyscalls => "rules for other system calls".into(),
            RuleKind::OtherList(RuleList::Filesystem) => "exempt file systems".into(),
            RuleKind::OtherList(RuleList::Exclude) => "exempt record types".into(),
            RuleKind::OtherList(RuleList::User) => "rules for messages of programs".into(),
            RuleKind::OtherList(RuleList::UringExit) => "rules for io_uring".into(),
            RuleKind::OtherList(_) => "rules for the start of processes".into(),
            RuleKind::Fields { names, is_every_syscall, is_never } => {
                fields_title(names, *is_every_syscall, *is_never)
            }
        }
    }
}

fn fields_title(names: &[&str], is_every_syscall: bool, is_never: bool) -> String {
    let is_plain_watch = matches!(names, ["dir", "perm"] | ["dir"]);
    if is_plain_watch && is_every_syscall && !is_never {
        return "directory watches".into();
    }
    let calls = if is_every_syscall { "every system call" } else { "listed system calls" };
    let fields: Vec<String> = names.iter().map(|name| format!("{name}=")).collect();
    let fields = if fields.is_empty() { String::new() } else { format!(", {}", fields.join(" ")) };
    format!("{}{calls}{fields}", if is_never { "exemptions: " } else { "" })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::rule::Rule;

    #[test]
    fn rules_are_told_apart_by_what_the_kernel_looks_at() {
        let title = |rule: Rule| rule.decode().kind_for(39).title();
        assert_eq!(title(Rule::watch(Path::new("/x"), "k")), "file watches");
        assert_eq!(title(Rule::never_task(7)), "rules for the start of processes");
        assert_eq!(title(Rule::always_exit_of(&[40], 7)), "rules for other system calls");
        assert_eq!(title(Rule::always_exit_of(&[39], 7)), "listed system calls, auid=");
        assert_eq!(title(Rule::always_exit(7, "k")), "every system call, auid=");
        let exe = Rule::always_exit_of_program(Path::new("/x"));
        assert_eq!(title(exe), "every system call, exe=");
    }

    #[test]
    fn fields_behind_a_foreign_abi_are_never_looked_at() {
        let condition = |kind, name, number| Field {
            kind,
            name,
            operator: Operator::Equal,
            number,
            text: None,
        };
        let mut rule = Rule::always_exit(7, "k").decode();
        assert!(!rule.records_always(1), "it depends on who calls");
        rule.fields.remove(0);
        assert!(rule.records_always(1));
        rule = Rule::always_exit(7, "k").decode();
        rule.fields.insert(0, condition(field::ARCH, "arch", NATIVE_ARCH));
        assert_eq!(rule.kind_for(1).title(), "every system call, arch= auid=");
        rule.fields[0].number = 0x4000_0003;
        assert_eq!(rule.kind_for(1).title(), "every system call, arch=");
        rule.fields = vec![condition(field::DIR, "dir", 4), condition(field::PERM, "perm", 2)];
        assert_eq!(rule.kind_for(1).title(), "directory watches");
        assert!(!rule.records_always(1));
        rule.action = Action::Never;
        assert_eq!(rule.kind_for(1).title(), "exemptions: every system call, dir= perm=");
    }

    #[test]
    fn other_lists_and_exemptions_have_titles_of_their_own() {
        let lists = [
            RuleList::Filesystem,
            RuleList::Exclude,
            RuleList::User,
            RuleList::UringExit,
            RuleList::Task,
        ];
        let titles = [
            "exempt file systems",
            "exempt record types",
            "rules for messages of programs",
            "rules for io_uring",
            "rules for the start of processes",
        ];
        assert_eq!(lists.map(|list| RuleKind::OtherList(list).title()), titles);
        let watch = ["dir", "perm"];
        assert_eq!(fields_title(&watch, false, false), "listed system calls, dir= perm=");
        assert_eq!(fields_title(&watch, true, true), "exemptions: every system call, dir= perm=");
        assert_eq!(fields_title(&[], true, false), "every system call");
    }

    #[test]
    fn what_is_recorded_whoever_calls_is_known_by_list_action_call_and_abi() {
        let mut rule = Rule::always_exit_of(&[39], 7).decode();
        rule.fields = Rule::always_exit(7, "k").decode().fields.split_off(1);
        assert!(rule.records_always(39) && !rule.records_always(40));
        for arch in [
            (Operator::Equal, NATIVE_ARCH, true),
            (Operator::Equal, 0x4000_0003, false),
            (Operator::NotEqual, NATIVE_ARCH, false),
            (Operator::NotEqual, 0x4000_0003, true),
            (Operator::Greater, 0x4000_0003, true),
        ] {
            let (operator, number, records) = arch;
            let condition = Field { kind: field::ARCH, name: "arch", operator, number, text: None };
            let mut rule = rule.clone();
            rule.fields.push(condition);
            assert_eq!(rule.records_always(39), records, "{arch:?}");
        }
        let never = Decoded { action: Action::Never, ..rule.clone() };
        let task = Decoded { list: RuleList::Task, ..rule };
        assert!(!never.records_always(39) && !task.records_always(39));
    }
}
