//! `struct audit_rule_data` of `include/uapi/linux/audit.h`, kept as the bytes the kernel speaks:
//! what it lists can be sent back unchanged, also for fields that this version does not know.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::message;

const MAX_FIELDS: usize = 64;
const FIELD_COUNT_AT: usize = 8;
const MASK_AT: usize = 12;
/// Offset of the last of the mask's 64 words, which names classes of system calls. The kernel
/// replaces classes by their members. So `auditctl -S all` leaves the word out, and the kernel
/// lists a rule as it was given.
const CLASSES_AT: usize = FIELDS_AT - 4;
const FIELDS_AT: usize = MASK_AT + MAX_FIELDS * 4;
const VALUES_AT: usize = FIELDS_AT + MAX_FIELDS * 4;
const OPERATORS_AT: usize = VALUES_AT + MAX_FIELDS * 4;
const STRINGS_BYTES_AT: usize = OPERATORS_AT + MAX_FIELDS * 4;
const FIXED_BYTES: usize = STRINGS_BYTES_AT + 4;

const FILTER_USER: u32 = 0x00;
const FILTER_TASK: u32 = 0x01;
const FILTER_EXIT: u32 = 0x04;
const FILTER_EXCLUDE: u32 = 0x05;
const FILTER_PREPEND: u32 = 0x10;
const ACTION_NEVER: u32 = 0;
const ACTION_ALWAYS: u32 = 2;
const PERM_READ: u32 = 4;
const OPERATOR_EQUAL: u32 = 0x4000_0000;

/// `AUDIT_ARCH_*` of the ABI that this program itself uses.
pub(crate) const NATIVE_ARCH: u32 =
    if cfg!(target_arch = "aarch64") { 0xc000_00b7 } else { 0xc000_003e };

/// The key of our rules, so that whoever lists them knows whose they are; one that excludes records has none.
pub const KEY: &str = "weigh";

/// Fields that the program itself looks at, as the kernel numbers them.
pub mod field {
    /// Process id.
    pub const PID: u32 = 0;
    /// Login uid; `auid` of `auditctl`.
    pub const LOGINUID: u32 = 9;
    /// ABI of the system call, `AUDIT_ARCH_*`.
    pub const ARCH: u32 = 11;
    /// Type of the record, on the lists user and exclude.
    pub const MSGTYPE: u32 = 12;
    /// Field that tests whether a login uid is set at all.
    pub const LOGINUID_SET: u32 = 24;
    /// Magic number of the file system, on the list filesystem.
    pub const FSTYPE: u32 = 26;
    /// Inode of a file.
    pub const INODE: u32 = 102;
    /// Path of a file; text.
    pub const WATCH: u32 = 105;
    /// Kinds of access, as bits: what `-p` gives.
    pub const PERM: u32 = 106;
    /// Path of a directory, with all below it; text.
    pub const DIR: u32 = 107;
    /// Path of the program; text.
    pub const EXE: u32 = 112;
    /// Key of the rule; text.
    pub const FILTERKEY: u32 = 210;
}

/// A loaded or loadable audit rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule(Vec<u8>);

impl Rule {
    /// The kernel's bytes, as `LIST_RULES` gives them: a message is padded to whole words.
    pub fn from_bytes(bytes: Vec<u8>) -> Rule {
        let mut rule = Rule(bytes);
        let strings_bytes = rule.word(STRINGS_BYTES_AT) as usize;
        rule.0.truncate(FIXED_BYTES.saturating_add(strings_bytes));
        rule
    }

    /// The kernel's bytes: `struct audit_rule_data`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// `-A never,task -F auid=LOGINUID -k weigh`: processes forked under this login uid get no audit
    /// context.
    pub fn never_task(loginuid: u32) -> Rule {
        let mut rule = Rule::new(FILTER_TASK | FILTER_PREPEND, ACTION_NEVER);
        rule.every_syscall();
        rule.field(field::LOGINUID, loginuid);
        rule.text_field(field::FILTERKEY, OsStr::new(KEY));
        rule
    }

    /// `-A never,user -F auid=LOGINUID`: records that these processes write themselves are dropped. The
    /// kernel takes no key there.
    pub fn never_user(loginuid: u32) -> Rule {
        let mut rule = Rule::new(FILTER_USER | FILTER_PREPEND, ACTION_NEVER);
        rule.every_syscall();
        rule.field(field::LOGINUID, loginuid);
        rule
    }

    /// `-a always,exit -S all -F auid=LOGINUID -k KEY`, for the system calls of every ABI.
    pub fn always_exit(loginuid: u32, key: &str) -> Rule {
        let mut rule = Rule::new(FILTER_EXIT, ACTION_ALWAYS);
        rule.every_syscall();
        rule.field(field::LOGINUID, loginuid);
        rule.text_field(field::FILTERKEY, OsStr::new(key));
        rule
    }

    /// `-A always,exit -F path=PATH -F perm=r -k KEY`: opening this one file makes a record, and
    /// other system calls hardly notice (the kernel finds file watches by inode hash).
    pub fn watch(path: &Path, key: &str) -> Rule {
        let mut rule = Rule::new(FILTER_EXIT | FILTER_PREPEND, ACTION_ALWAYS);
        rule.every_syscall();
        rule.text_field(field::WATCH, path.as_os_str());
        rule.field(field::PERM, PERM_READ);
        rule.text_field(field::FILTERKEY, OsStr::new(key));
        rule
    }

    /// As the kernel lists it: where it was put in its list is no part of a rule that is loaded.
    pub fn listed(mut self) -> Rule {
        self.set_word(0, self.filter());
        self
    }

    /// The number of the kernel's list that it is in: task, exit and so on.
    pub fn filter(&self) -> u32 {
        self.word(0) & !FILTER_PREPEND
    }

    /// `-a always,exit -S NUMBER… -F auid=LOGINUID`, for the calls of every ABI.
    pub fn always_exit_of(syscalls: &[u32], loginuid: u32) -> Rule {
        let mut rule = Rule::new(FILTER_EXIT, ACTION_ALWAYS);
        syscalls.iter().for_each(|number| rule.syscall(*number));
        rule.field(field::LOGINUID, loginuid);
        rule
    }

    /// `-a always,exit -F arch=b64 -S NUMBER… -F auid=LOGINUID -k KEY`, for the calls of the native ABI.
    pub fn always_exit_of_calls(syscalls: &[u32], loginuid: u32, key: &str) -> Rule {
        let mut rule = Rule::new(FILTER_EXIT, ACTION_ALWAYS);
        syscalls.iter().for_each(|number| rule.syscall(*number));
        rule.field(field::ARCH, NATIVE_ARCH);
        rule.field(field::LOGINUID, loginuid);
        rule.text_field(field::FILTERKEY, OsStr::new(key));
        rule
    }

    /// `-a always,exit -S all -F exe=PATH`.
    pub fn always_exit_of_program(path: &Path) -> Rule {
        let mut rule = Rule::new(FILTER_EXIT, ACTION_ALWAYS);
        rule.every_syscall();
        rule.text_field(field::EXE, path.as_os_str());
        rule
    }

    /// `-a always,exclude -F msgtype=CONFIG_CHANGE -F pid=PID`: what this process does to the rules makes
    /// no records.
    pub fn silent_changes(pid: u32) -> Rule {
        let mut rule = Rule::new(FILTER_EXCLUDE, ACTION_ALWAYS);
        rule.every_syscall();
        rule.field(field::MSGTYPE, message::CONFIG_CHANGE.into());
        rule.field(field::PID, pid);
        rule
    }

    /// Returns the rule with one more condition, its last, that no process meets. The kernel checks
    /// all other conditions first. `None` if the rule already has as many conditions as a rule may
    /// have.
    pub fn for_nobody(&self, loginuid: u32) -> Option<Rule> {
        let mut rule = self.clone();
        if rule.0.len() < FIXED_BYTES || rule.word(FIELD_COUNT_AT) as usize >= MAX_FIELDS {
            return None;
        }
        rule.field(field::LOGINUID, loginuid);
        Some(rule)
    }

    /// Returns the rule in the form that is added at the front of its list, as with `-A`. A rule is
    /// deleted as it is listed, without this mark.
    pub fn prepended(&self) -> Rule {
        let mut rule = self.clone();
        if rule.0.len() >= FIXED_BYTES {
            rule.set_word(0, rule.word(0) | FILTER_PREPEND);
        }
        rule
    }

    /// The list that it stands in, and whether it is for the front.
    pub(crate) fn flags(&self) -> u32 {
        self.word(0)
    }

    pub(crate) fn action(&self) -> u32 {
        self.word(4)
    }

    pub(crate) fn mask(&self) -> Vec<u32> {
        (MASK_AT..FIELDS_AT).step_by(4).map(|at| self.word(at)).collect()
    }

    /// Kind, value and operator of every field, in order.
    pub(crate) fn raw_fields(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        let count = (self.word(FIELD_COUNT_AT) as usize).min(MAX_FIELDS);
        (0..count).map(|index| {
            let at = |start: usize| self.word(start + index * 4);
            (at(FIELDS_AT), at(VALUES_AT), at(OPERATORS_AT))
        })
    }

    /// The strings of its fields, one behind the other.
    pub(crate) fn strings(&self) -> &[u8] {
        self.0.get(FIXED_BYTES..).unwrap_or_default()
    }

    /// Returns true if processes that it matches are born without an audit context.
    pub fn is_never_task(&self) -> bool {
        self.0.len() >= FIXED_BYTES && self.filter() == FILTER_TASK && self.word(4) == ACTION_NEVER
    }

    /// The login uid that it asks for by equality.
    pub fn loginuid(&self) -> Option<u32> {
        self.raw_fields()
            .find(|(kind, _, operator)| *kind == field::LOGINUID && *operator == OPERATOR_EQUAL)
            .map(|(_, value, _)| value)
    }

    fn new(flags: u32, action: u32) -> Rule {
        let mut rule = Rule(vec![0; FIXED_BYTES]);
        rule.set_word(0, flags);
        rule.set_word(4, action);
        rule
    }

    fn every_syscall(&mut self) {
        self.0[MASK_AT..CLASSES_AT].fill(0xff);
    }

    fn syscall(&mut self, number: u32) {
        let at = MASK_AT + (number / 32) as usize * 4;
        assert!(at < FIELDS_AT, "a rule knows the system calls up to 2047");
        self.set_word(at, self.word(at) | 1 << (number % 32));
    }

    fn field(&mut self, field: u32, value: u32) {
        let index = self.word(FIELD_COUNT_AT) as usize;
        assert!(index < MAX_FIELDS, "a rule of ours has a handful of fields");
        self.set_word(FIELDS_AT + index * 4, field);
        self.set_word(VALUES_AT + index * 4, value);
        self.set_word(OPERATORS_AT + index * 4, OPERATOR_EQUAL);
        self.set_word(FIELD_COUNT_AT, index as u32 + 1);
    }

    fn text_field(&mut self, field: u32, text: &OsStr) {
        self.field(field, text.len() as u32);
        self.0.extend_from_slice(text.as_bytes());
        self.set_word(STRINGS_BYTES_AT, (self.0.len() - FIXED_BYTES) as u32);
    }

    fn word(&self, at: usize) -> u32 {
        self.0.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |c| u32::from_ne_bytes(*c))
    }

    fn set_word(&mut self, at: usize, value: u32) {
        if let Some(word) = self.0.get_mut(at..at + 4) {
            word.copy_from_slice(&value.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_part_has_the_kernels_size() {
        assert_eq!(FIXED_BYTES, 1040);
        assert_eq!(Rule::never_task(1).as_bytes().len(), 1040 + KEY.len());
    }

    #[test]
    fn a_rule_tells_whom_it_exempts() {
        let rule = Rule::never_task(4243);
        assert!(rule.is_never_task());
        assert_eq!(rule.loginuid(), Some(4243));
        assert!(!Rule::always_exit(4243, "k").is_never_task());
        assert_eq!(Rule::watch(Path::new("/x"), "k").loginuid(), None);
        for length in 0..FIXED_BYTES + 8 {
            let foreign = Rule::from_bytes(vec![0xff; length]);
            let _ = (foreign.is_never_task(), foreign.loginuid(), foreign.prepended());
        }
    }

    #[test]
    fn where_a_rule_goes_in_its_list_is_no_part_of_it() {
        let given = Rule::watch(Path::new("/x"), KEY);
        let listed = given.clone().listed();
        assert!(listed != given && listed.clone().prepended() == given);
        let padded = [listed.as_bytes(), &[0, 0, 0]].concat();
        assert_eq!(Rule::from_bytes(padded), listed);
        assert_eq!((listed.filter(), given.filter()), (FILTER_EXIT, FILTER_EXIT));
    }

    #[test]
    fn strings_follow_the_fixed_part_in_the_order_of_their_fields() {
        let rule = Rule::watch(Path::new("/tmp/c"), "weigh");
        assert_eq!(&rule.as_bytes()[FIXED_BYTES..], b"/tmp/cweigh");
        assert_eq!(rule.word(STRINGS_BYTES_AT), 11);
        assert_eq!(rule.word(FIELD_COUNT_AT), 3);
    }

    #[test]
    fn all_system_calls_leave_the_word_of_their_classes_out() {
        let mask = Rule::always_exit(1, "k").mask();
        assert_eq!((mask.len(), mask[0], mask[62], mask[63]), (64, u32::MAX, u32::MAX, 0));
    }

    #[test]
    fn only_a_whole_rule_of_the_list_task_that_says_never_is_one() {
        for (list, action) in [(FILTER_TASK, ACTION_ALWAYS), (FILTER_EXIT, ACTION_NEVER)] {
            assert!(!Rule::new(list, action).is_never_task(), "{list} {action}");
        }
        let whole = Rule::new(FILTER_TASK, ACTION_NEVER);
        let cut = Rule(whole.0[..FIXED_BYTES - 1].to_vec());
        assert!(whole.is_never_task() && !cut.is_never_task());
    }

    #[test]
    fn a_login_uid_is_asked_for_by_equality_alone() {
        let mut rule = Rule::always_exit(7, "k");
        rule.set_word(OPERATORS_AT, 0x3000_0000);
        assert_eq!(rule.loginuid(), None);
    }

    #[test]
    fn one_more_condition_is_the_last_while_there_is_room_for_it() {
        let rule = Rule::watch(Path::new("/x"), "k");
        let longer = rule.for_nobody(7).unwrap();
        let fields: Vec<(u32, u32, u32)> = longer.raw_fields().collect();
        assert_eq!((fields.len(), fields[3]), (4, (field::LOGINUID, 7, OPERATOR_EQUAL)));
        assert_eq!(longer.strings(), rule.strings());
        let mut full = Rule::new(FILTER_EXIT, ACTION_ALWAYS);
        (1..64).for_each(|number| full.field(field::PID, number));
        full = full.for_nobody(7).unwrap();
        assert_eq!((full.raw_fields().count(), full.for_nobody(7)), (64, None));
        full.set_word(FIELD_COUNT_AT, 65);
        assert_eq!(full.for_nobody(7), None);
        let cut = Rule(Rule::always_exit(7, "").0[..FIXED_BYTES - 1].to_vec());
        assert_eq!((cut.for_nobody(7), cut.prepended()), (None, cut));
        assert_eq!(rule.prepended(), rule, "it is for the front already");
    }

    #[test]
    #[should_panic(expected = "up to 2047")]
    fn a_system_call_beyond_the_mask_is_a_mistake() {
        Rule::always_exit_of(&[2048], 7);
    }

    #[test]
    #[should_panic(expected = "a handful of fields")]
    fn a_field_too_many_is_a_mistake() {
        let mut rule = Rule::new(FILTER_EXIT, ACTION_ALWAYS);
        (0..65).for_each(|number| rule.field(field::PID, number));
    }
}
