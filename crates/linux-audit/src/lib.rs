//! The kernel's audit protocol (`include/uapi/linux/audit.h`): rules, status, records.
//!
//! Our own client, because the crates for it carry the 40-byte status of older kernels and lose
//! `backlog_wait_time_actual`. This room knows nothing of experiments: the audit treatment does.

pub mod auditd;
pub mod features;
mod file_order;
pub mod log_file;
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
pub mod sink;
pub mod status;
pub mod tally;

/// Message types of `include/uapi/linux/audit.h`.
pub mod message {
    pub const GET: u16 = 1000;
    pub const SET: u16 = 1001;
    pub const ADD_RULE: u16 = 1011;
    pub const DEL_RULE: u16 = 1012;
    pub const LIST_RULES: u16 = 1013;
    pub const SET_FEATURE: u16 = 1018;
    pub const GET_FEATURE: u16 = 1019;
    pub const FIRST_USER_MSG: u16 = 1100;
    /// A message of a trusted application: what we send through the queue as a marker.
    pub const TRUSTED_APP: u16 = 1121;
    pub const SYSCALL: u16 = 1300;
    pub const PATH: u16 = 1302;
    pub const CONFIG_CHANGE: u16 = 1305;
    pub const EOE: u16 = 1320;
    pub const LAST_KERNEL_ANOM_MSG: u16 = 1799;
}
