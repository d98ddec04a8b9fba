//! Kernel auditing. For root: each test has the kernel's audit configuration to itself.

#[path = "../support/mod.rs"]
mod support;

mod audit_live;
mod audit_sets;
mod audit_untouched;
mod budget;
mod compare_audit;
mod rule_files;
mod rules;
mod rules_files;
mod sinks;
mod stalled_sink;
mod stopped;
mod switched_off;
