//! Speaks the kernel's audit protocol (`include/uapi/linux/audit.h`): rules, status, records, receivers.
//!
//! The crate does not depend on Weighbridge; Weighbridge's treatment `audit` uses it. Start with
//! [`netlink::Client`].
//!
//! - [`netlink`] is a client of the audit socket: it reads and sets the [`status`] and the [`features`],
//!   lists, adds and deletes [rules](rule), sends text of its own, and joins the multicast of records.
//! - [`rule`] is a rule in the kernel's own bytes; [`rule_fields`] decodes its fields, and [`rule_kind`]
//!   says what the kernel does with it at one system call.
//! - [`rule_set`] reads rule files and directories as `augenrules` does; [`rule_load`] loads them line by
//!   line through `auditctl`, and finds the kernel's rules for each line; [`rewrite`] proposes other ways
//!   to write them.
//! - [`event_classes`] has the event classes of HP-UX with today's system calls, and their rules.
//! - [`record`] reads the text of a record, [`mod@tally`] adds up the records of some processes.
//! - [`config_diff`] tells whether settings and rules are as they were, and puts rules back.
//! - [`sink`] is a process that receives records as a daemon would, [`auditd`] starts the real one with a
//!   configuration of its own.
//!
//! ```
//! use linux_audit::record;
//! use linux_audit::rule::Rule;
//! use linux_audit::rule_fields::{Action, Operator, RuleList};
//!
//! // -a always,exit -S all -F auid=1000 -k mine
//! let rule = Rule::always_exit(1000, "mine").decode();
//! assert_eq!((rule.list, rule.action), (RuleList::Exit, Action::Always));
//! assert!(rule.syscalls.is_all());
//! let login = &rule.fields[0];
//! assert_eq!((login.name, login.operator, login.number), ("auid", Operator::Equal, 1000));
//!
//! let text = b"audit(1732222222.519:8431): arch=c000003e syscall=110 pid=42 auid=1000 key=\"mine\"";
//! assert_eq!(record::serial(text), Some(8431));
//! assert_eq!(record::number(text, "pid"), Some(42));
//! assert_eq!(record::field(text, "key"), Some(&b"mine"[..]));
//! ```
//!
//! A change needs `CAP_AUDIT_CONTROL` in the initial user and PID namespaces. Without it the kernel answers
//! `EPERM` or `ECONNREFUSED`:
//!
//! ```no_run
//! use linux_audit::netlink::Client;
//!
//! let mut client = Client::open()?;
//! let status = client.status()?;
//! println!("{} rules, {} records lost", client.rules()?.len(), status.lost);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! We wrote a client because other crates have the 40-byte status of older kernels, without
//! `backlog_wait_time_actual`. No foreign bytes or text make this crate panic.

#![warn(missing_docs)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod auditd;
pub mod config_diff;
pub mod event_classes;
pub mod features;
mod file_order;
mod foreign_line;
mod log_file;
mod merged_rules;
pub mod netlink;
mod perm_calls;
pub mod record;
pub mod rewrite;
pub mod rule;
pub mod rule_fields;
pub mod rule_kind;
pub mod rule_load;
mod rule_owner;
pub mod rule_set;
mod rule_warnings;
mod rule_words;
pub mod shipping;
pub mod sink;
pub mod status;
pub mod tally;

/// Message types of `include/uapi/linux/audit.h`.
pub mod message {
    /// Asks for the status, or answers with it.
    pub(crate) const GET: u16 = 1000;
    /// Sets a field of the status.
    pub const SET: u16 = 1001;
    /// Adds a rule.
    pub(crate) const ADD_RULE: u16 = 1011;
    /// Deletes a rule.
    pub(crate) const DEL_RULE: u16 = 1012;
    /// Asks for all rules, or is one of them.
    pub(crate) const LIST_RULES: u16 = 1013;
    /// Sets or locks a feature.
    pub const SET_FEATURE: u16 = 1018;
    /// Asks for the features, or answers with them.
    pub(crate) const GET_FEATURE: u16 = 1019;
    /// The first of those that are records; what is below is the protocol's own.
    pub(crate) const FIRST_USER_MSG: u16 = 1100;
    /// The last that programs write themselves.
    pub(crate) const LAST_USER_MSG: u16 = 1199;
    /// A message of a trusted application: what we send through the queue as a marker.
    pub(crate) const TRUSTED_APP: u16 = 1121;
    /// A record of a system call.
    pub const SYSCALL: u16 = 1300;
    /// A record of a path that it named.
    pub const PATH: u16 = 1302;
    /// A record of a change to the audit configuration.
    pub const CONFIG_CHANGE: u16 = 1305;
    /// The end of an event of several records.
    pub(crate) const EOE: u16 = 1320;
    /// The last of the records that the kernel makes.
    pub(crate) const LAST_KERNEL_ANOM_MSG: u16 = 1799;
}
