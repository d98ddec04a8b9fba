//! The one experiment engine: pairs in random order, judged while they are measured, until every
//! row has its verdict or the budget is spent. Every treatment and every workload goes through it.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod abnormal;
pub mod around;
pub mod asked_for;
pub mod beside;
pub mod boots;
pub mod calibration;
mod capacity;
#[cfg(test)]
mod choice_simulation;
mod classic;
mod climb;
pub mod contest;
pub mod detail;
pub mod diff;
pub mod diff_imported;
mod disturbed;
mod drift;
pub mod earlier;
pub mod effects;
mod endurance;
pub mod engine;
pub mod evidence;
#[cfg(test)]
mod example;
mod family;
mod filled;
mod gate;
mod host;
mod how_taken;
mod interleaved;
mod interpreters;
mod job_options;
mod late;
pub mod length;
pub mod load_answers;
mod load_compared;
pub mod log_ratio;
pub mod measure;
mod metrics;
pub mod net_answers;
pub mod net_cells;
pub mod net_work;
mod next_rows;
mod notes;
pub mod order;
pub mod origin;
pub mod outcome;
mod outside;
pub mod pairs;
mod past;
mod peak_search;
mod peaks;
mod perf_report;
#[cfg(test)]
mod planted;
pub mod platform;
mod profiling;
mod programs;
pub mod ramp;
#[cfg(test)]
mod ramp_simulation;
mod ranking;
mod reaim_rules;
pub mod request;
pub mod resolve;
pub mod row;
pub mod run_progress;
pub mod run_report;
pub mod run_row;
pub mod schedule;
pub mod session;
mod sets;
#[cfg(test)]
pub(crate) mod simulation;
mod stored_design;
mod stored_effects;
mod stored_guards;
pub mod summarise;
mod surroundings;
mod sweep;
mod taken;
mod times;
mod too_little;
mod unused_options;
pub mod work;
mod wrong;
