//! Decoded form of a rule in the kernel's bytes: its list, its system calls, and its fields in the
//! kernel's order (`include/uapi/linux/audit.h`).

use super::rule::{Rule, field};

const OPERATORS: u32 = 0x7800_0000;
const WORD_BITS: u32 = 32;

/// Which of the kernel's lists a rule stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleList {
    /// Records that programs send.
    User,
    /// When a process is created.
    Task,
    /// When a system call ends.
    Exit,
    /// Which types of records are not made at all.
    Exclude,
    /// Which file systems' paths are not recorded.
    Filesystem,
    /// When an operation of io_uring ends.
    UringExit,
    /// One that this version does not know, by its number.
    Other(u32),
}

/// Action of a rule that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing is recorded.
    Never,
    /// Action in older kernels: as if the rule were absent.
    Possible,
    /// It is recorded.
    Always,
    /// One that this version does not know, by its number.
    Other(u32),
}

/// How a field is compared with the rule's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// Any of these bits.
    BitMask,
    /// All of these bits.
    BitTest,
    /// One that this version does not know, by its bits.
    Other(u32),
}

/// The system calls of a rule, as the bits of its mask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Syscalls(Vec<u32>);

impl Syscalls {
    /// Returns true if the kernel looks at the rule's fields when this call ends.
    pub fn contains(&self, number: u32) -> bool {
        let word = self.0.get((number / WORD_BITS) as usize);
        word.is_some_and(|word| word & (1 << (number % WORD_BITS)) != 0)
    }

    /// Returns true if the kernel looks at rules with either mask when some call ends.
    pub(crate) fn share_a_call(&self, other: &Syscalls) -> bool {
        self.0.iter().zip(&other.0).any(|(one, other)| one & other != 0)
    }

    /// Returns true if the mask has every system call, as with `-S all` or without `-S`.
    pub fn is_all(&self) -> bool {
        // The last word names classes of calls: some programs fill it for "all", others leave it out,
        // and no call has such a number.
        let (_, others) = self.0.split_last().expect("a rule's mask has 64 words");
        others.iter().all(|word| *word == u32::MAX)
    }
}

/// A condition of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// `AUDIT_*` of the kernel's header.
    pub kind: u32,
    /// As `auditctl -F` writes it; `unknown` where this version does not know it.
    pub name: &'static str,
    /// How the two are compared.
    pub operator: Operator,
    /// Its value, or the length of its text in bytes.
    pub number: u32,
    /// Text of a path, key or label; bytes that are not UTF-8 are shown as such.
    pub text: Option<String>,
}

/// A rule in words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decoded {
    /// When it is looked at.
    pub list: RuleList,
    /// Action of the rule when it matches.
    pub action: Action,
    /// At which calls it is looked at; means something on the list exit alone.
    pub syscalls: Syscalls,
    /// In the order in which the kernel looks at them.
    pub fields: Vec<Field>,
}

impl Rule {
    /// The rule in words. Never fails: what a foreign rule lacks is missing from the answer.
    pub fn decode(&self) -> Decoded {
        let mut strings = self.strings();
        let fields = self.raw_fields().map(|(kind, number, operator)| Field {
            kind,
            name: name(kind),
            operator: decode_operator(operator),
            number,
            text: has_text(kind).then(|| take_text(&mut strings, number)),
        });
        Decoded {
            list: decode_list(self.flags()),
            action: decode_action(self.action()),
            fields: fields.collect(),
            syscalls: Syscalls(self.mask()),
        }
    }
}

impl Decoded {
    /// The first field of this kind.
    pub fn field(&self, kind: u32) -> Option<&Field> {
        self.fields.iter().find(|field| field.kind == kind)
    }
}

fn take_text(strings: &mut &[u8], bytes: u32) -> String {
    let (text, rest) = strings.split_at(strings.len().min(bytes as usize));
    *strings = rest;
    String::from_utf8_lossy(text).into_owned()
}

fn decode_list(flags: u32) -> RuleList {
    match flags & 0xf {
        0 => RuleList::User,
        1 => RuleList::Task,
        4 => RuleList::Exit,
        5 => RuleList::Exclude,
        6 => RuleList::Filesystem,
        7 => RuleList::UringExit,
        other => RuleList::Other(other),
    }
}

fn decode_action(action: u32) -> Action {
    match action {
        0 => Action::Never,
        1 => Action::Possible,
        2 => Action::Always,
        other => Action::Other(other),
    }
}

fn decode_operator(flags: u32) -> Operator {
    match flags & OPERATORS {
        0x4000_0000 => Operator::Equal,
        0x3000_0000 => Operator::NotEqual,
        0x1000_0000 => Operator::Less,
        0x5000_0000 => Operator::LessOrEqual,
        0x2000_0000 => Operator::Greater,
        0x6000_0000 => Operator::GreaterOrEqual,
        0x0800_0000 => Operator::BitMask,
        0x4800_0000 => Operator::BitTest,
        _ => Operator::Other(flags),
    }
}

/// Returns true if the field's value is the length of a string behind the fixed part.
fn has_text(kind: u32) -> bool {
    matches!(
        kind,
        13..=17 | 19..=23 | field::WATCH | field::DIR | field::EXE | field::FILTERKEY
    )
}

/// The names of `auditctl(8)`.
fn name(kind: u32) -> &'static str {
    match kind {
        0 => "pid",
        1 => "uid",
        2 => "euid",
        3 => "suid",
        4 => "fsuid",
        5 => "gid",
        6 => "egid",
        7 => "sgid",
        8 => "fsgid",
        field::LOGINUID => "auid",
        10 => "pers",
        field::ARCH => "arch",
        12 => "msgtype",
        13 => "subj_user",
        14 => "subj_role",
        15 => "subj_type",
        16 => "subj_sen",
        17 => "subj_clr",
        18 => "ppid",
        19 => "obj_user",
        20 => "obj_role",
        21 => "obj_type",
        22 => "obj_lev_low",
        23 => "obj_lev_high",
        field::LOGINUID_SET => "loginuid_set",
        25 => "sessionid",
        field::FSTYPE => "fstype",
        100 => "devmajor",
        101 => "devminor",
        field::INODE => "inode",
        103 => "exit",
        104 => "success",
        field::WATCH => "path",
        field::PERM => "perm",
        field::DIR => "dir",
        108 => "filetype",
        109 => "obj_uid",
        110 => "obj_gid",
        111 => "field_compare",
        field::EXE => "exe",
        113 => "saddr_fam",
        200 => "a0",
        201 => "a1",
        202 => "a2",
        203 => "a3",
        field::FILTERKEY => "key",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_rule_is_told_in_words() {
        let decoded = Rule::watch(Path::new("/etc/shadow"), "secret").prepended().decode();
        assert_eq!((decoded.list, decoded.action), (RuleList::Exit, Action::Always));
        assert!(decoded.syscalls.is_all() && decoded.syscalls.contains(2015));
        assert!(!decoded.syscalls.contains(2048));
        let names: Vec<&str> = decoded.fields.iter().map(|field| field.name).collect();
        assert_eq!(names, ["path", "perm", "key"]);
        let text = |kind| decoded.field(kind).and_then(|field| field.text.as_deref());
        assert_eq!(text(field::WATCH), Some("/etc/shadow"));
        assert_eq!(text(field::FILTERKEY), Some("secret"));
        assert_eq!(text(field::PERM), None);
    }

    #[test]
    fn system_calls_are_the_bits_of_the_mask() {
        let syscalls = Rule::always_exit_of(&[0, 39, 2047], 7).decode().syscalls;
        let set: Vec<u32> = (0..4096).filter(|number| syscalls.contains(*number)).collect();
        assert_eq!(set, [0, 39, 2047]);
        assert!(!syscalls.is_all());
        let share = |calls: &[u32]| {
            syscalls.share_a_call(&Rule::always_exit_of(calls, 8).decode().syscalls)
        };
        assert!(share(&[1, 39]) && share(&[0, 39, 2047]) && !share(&[1, 38]));
    }

    #[test]
    fn lists_actions_and_operators_have_the_kernels_numbers() {
        let lists = [
            RuleList::User,
            RuleList::Task,
            RuleList::Other(2),
            RuleList::Other(3),
            RuleList::Exit,
            RuleList::Exclude,
            RuleList::Filesystem,
            RuleList::UringExit,
            RuleList::Other(8),
        ];
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7, 8].map(decode_list), lists);
        assert_eq!(decode_list(0x14), RuleList::Exit, "for the front of its list");
        let actions = [Action::Never, Action::Possible, Action::Always, Action::Other(3)];
        assert_eq!([0, 1, 2, 3].map(decode_action), actions);
        for (bits, operator) in [
            (0x4000_0000, Operator::Equal),
            (0x3000_0000, Operator::NotEqual),
            (0x1000_0000, Operator::Less),
            (0x5000_0000, Operator::LessOrEqual),
            (0x2000_0000, Operator::Greater),
            (0x6000_0000, Operator::GreaterOrEqual),
            (0x0800_0000, Operator::BitMask),
            (0x4800_0000, Operator::BitTest),
            (0, Operator::Other(0)),
        ] {
            assert_eq!(decode_operator(bits), operator);
        }
    }

    #[test]
    fn fields_have_the_numbers_of_the_kernels_header_and_the_names_of_auditctl() {
        assert_eq!([200, 201, 202, 203].map(name), ["a0", "a1", "a2", "a3"]);
        let Ok(header) = std::fs::read_to_string("/usr/include/linux/audit.h") else {
            needs::skip("headers", "linux/audit.h is not installed");
            return;
        };
        let defined = header.lines().filter_map(|line| {
            let mut words = line.strip_prefix("#define")?.split_whitespace();
            Some((words.next()?.strip_prefix("AUDIT_")?, words.next()?.parse::<u32>().ok()?))
        });
        let fields: Vec<(&str, u32)> = defined
            .skip_while(|(name, _)| *name != "PID")
            // A later header may have more.
            .filter(|(_, kind)| matches!(kind, 0..=26 | 100..=113 | 210))
            .take(42)
            .collect();
        assert_eq!(fields.last(), Some(&("FILTERKEY", 210)), "{fields:?}");
        for (defined, kind) in fields {
            let expected = match defined {
                "LOGINUID" => "auid".to_owned(),
                "WATCH" => "path".to_owned(),
                "FILTERKEY" => "key".to_owned(),
                other => other.to_lowercase(),
            };
            assert_eq!(name(kind), expected, "{kind}");
        }
        assert_eq!(name(114), "unknown");
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(
            head in proptest::collection::vec(any::<u32>(), 0..12),
            bytes in proptest::collection::vec(any::<u8>(), 0..2400),
        ) {
            let head = head.iter().flat_map(|word| word.to_ne_bytes());
            let rule = Rule::from_bytes(head.chain(bytes).collect());
            let decoded = rule.decode();
            prop_assert!(decoded.fields.len() <= 64);
            let _ = (decoded.kind_for(1).title(), rule.prepended(), decoded.syscalls.is_all());
        }
    }
}
