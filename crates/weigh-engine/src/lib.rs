//! Runs experiments: pairs in random order, judged during measurement, until each row has its verdict.
//!
//! Every treatment and every workload goes through this one engine. It ends when all rows are decided or the
//! budget is spent. The crate prints nothing and does not know reports; a [`request::ProgressSink`] shows
//! progress.
//!
//! - [`request::Request`] is what to measure, and [`request::Plan`] how; [`resolve`] finds the workloads;
//! - [`session`] begins and ends an experiment; [`measure`] goes through its sets;
//! - [`engine`] chooses the next pair and asks a [`platform::Platform`] for it: this machine or a simulation;
//! - [`plan`]: what is measured next where there are no pairs, and the loop that drives these plans;
//! - [`row`], [`schedule`] and [`order`]: the state of a row, the scheme of its pairs, the coins;
//! - [`summarise`], [`run_report`] and [`atlas`] make the results, from stored samples alone;
//!   [`atlas_session`] measures a list of treatments.
//!
//! Start with [`session::execute`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod abnormal;
pub mod atlas;
pub mod atlas_session;
pub mod background_load;
pub mod boots;
pub mod calibration;
mod capacity;
#[cfg(test)]
mod choice_simulation;
mod classic;
pub mod command_comparison;
mod command_template;
mod command_times;
pub mod detail;
pub mod diff;
pub mod diff_imported;
pub mod effects;
mod endurance;
pub mod engine;
#[cfg(test)]
mod example;
#[cfg(test)]
mod forecast_simulation;
mod further_readings;
pub mod hooks;
mod host;
mod interpreters;
mod job_options;
pub mod length;
mod load_protocol;
pub mod measure;
pub mod net_answers;
pub mod net_cells;
pub mod net_work;
mod next_rows;
mod nothing_left;
pub mod order;
pub mod parse_sample;
mod peaks;
mod perf_report;
pub mod plan;
#[cfg(test)]
mod planted;
pub mod platform;
pub mod prior_sessions;
mod profiling;
mod programs;
pub mod provenance;
#[cfg(test)]
mod ramp_simulation;
mod ranking;
mod readings;
pub mod report;
pub mod request;
pub mod resolve;
pub mod row;
pub mod run_progress;
pub mod run_report;
pub mod selection;
pub mod session;
#[cfg(test)]
pub(crate) mod simulation;
mod stored_design;
mod stored_document;
mod suite_report;
pub mod summarise;
mod surroundings;
mod sweep;
mod time_limit;
mod times;
mod too_little;
mod unused_options;
pub mod work;
