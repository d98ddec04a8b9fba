//! `struct audit_rule_data` of `include/uapi/linux/audit.h`, kept as the bytes the kernel speaks:
//! what it lists can be sent back unchanged, also for fields that this version does not know.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const MAX_FIELDS: usize = 64;
const FIELD_COUNT_AT: usize = 8;
const MASK_AT: usize = 12;
const FIELDS_AT: usize = MASK_AT + MAX_FIELDS * 4;
const VALUES_AT: usize = FIELDS_AT + MAX_FIELDS * 4;
const OPERATORS_AT: usize = VALUES_AT + MAX_FIELDS * 4;
const STRINGS_BYTES_AT: usize = OPERATORS_AT + MAX_FIELDS * 4;
const FIXED_BYTES: usize = STRINGS_BYTES_AT + 4;

const FILTER_TASK: u32 = 0x01;
const FILTER_EXIT: u32 = 0x04;
const FILTER_PREPEND: u32 = 0x10;
const ACTION_NEVER: u32 = 0;
const ACTION_ALWAYS: u32 = 2;
const FIELD_LOGINUID: u32 = 9;
const FIELD_WATCH: u32 = 105;
const FIELD_PERM: u32 = 106;
const FIELD_FILTERKEY: u32 = 210;
const PERM_READ: u32 = 4;
const OPERATOR_EQUAL: u32 = 0x4000_0000;

/// A loaded or loadable audit rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule(Vec<u8>);

impl Rule {
    /// The kernel's bytes, as `LIST_RULES` gives them.
    pub fn from_bytes(bytes: Vec<u8>) -> Rule {
        Rule(bytes)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// `-A never,task -F auid=LOGINUID`: processes forked under this login uid get no audit context.
    pub fn never_task(loginuid: u32) -> Rule {
        let mut rule = Rule::new(FILTER_TASK | FILTER_PREPEND, ACTION_NEVER);
        rule.every_syscall();
        rule.field(FIELD_LOGINUID, loginuid);
        rule
    }

    /// `-a always,exit -S all -F auid=LOGINUID -k KEY`, for the system calls of every ABI.
    pub fn always_exit(loginuid: u32, key: &str) -> Rule {
        let mut rule = Rule::new(FILTER_EXIT, ACTION_ALWAYS);
        rule.every_syscall();
        rule.field(FIELD_LOGINUID, loginuid);
        rule.text_field(FIELD_FILTERKEY, OsStr::new(key));
        rule
    }

    /// `-A always,exit -F path=PATH -F perm=r -k KEY`: opening this one file makes a record, and
    /// other system calls hardly notice (the kernel finds file watches by inode hash).
    pub fn watch(path: &Path, key: &str) -> Rule {
        let mut rule = Rule::new(FILTER_EXIT | FILTER_PREPEND, ACTION_ALWAYS);
        rule.every_syscall();
        rule.text_field(FIELD_WATCH, path.as_os_str());
        rule.field(FIELD_PERM, PERM_READ);
        rule.text_field(FIELD_FILTERKEY, OsStr::new(key));
        rule
    }

    /// Whether processes that it matches are born without an audit context.
    pub fn is_never_task(&self) -> bool {
        self.0.len() >= FIXED_BYTES
            && self.word(0) & !FILTER_PREPEND == FILTER_TASK
            && self.word(4) == ACTION_NEVER
    }

    /// The login uid that it asks for by equality.
    pub fn loginuid(&self) -> Option<u32> {
        let fields = (self.word(FIELD_COUNT_AT) as usize).min(MAX_FIELDS);
        let index = (0..fields).find(|index| {
            self.word(FIELDS_AT + index * 4) == FIELD_LOGINUID
                && self.word(OPERATORS_AT + index * 4) == OPERATOR_EQUAL
        })?;
        Some(self.word(VALUES_AT + index * 4))
    }

    fn new(flags: u32, action: u32) -> Rule {
        let mut rule = Rule(vec![0; FIXED_BYTES]);
        rule.set_word(0, flags);
        rule.set_word(4, action);
        rule
    }

    fn every_syscall(&mut self) {
        self.0[MASK_AT..FIELDS_AT].fill(0xff);
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
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_part_has_the_kernels_size() {
        assert_eq!(FIXED_BYTES, 1040);
        assert_eq!(Rule::never_task(1).as_bytes().len(), 1040);
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
            let _ = (foreign.is_never_task(), foreign.loginuid());
        }
    }

    #[test]
    fn strings_follow_the_fixed_part_in_the_order_of_their_fields() {
        let rule = Rule::watch(Path::new("/tmp/c"), "weigh");
        assert_eq!(&rule.as_bytes()[FIXED_BYTES..], b"/tmp/cweigh");
        assert_eq!(rule.word(STRINGS_BYTES_AT), 11);
        assert_eq!(rule.word(FIELD_COUNT_AT), 3);
    }
}
