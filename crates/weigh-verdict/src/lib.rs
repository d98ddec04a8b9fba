//! Which pairs of an experiment count, and what a row may claim from them.
//!
//! The engine applies these rules while it measures, and to the stored samples afterwards, so both give the
//! same verdict. The crate starts nothing and reads no files: it knows only samples
//! ([`weigh_model::samples`]) and the statistics of [`paired`].
//!
//! - [`schedule`]: whether the next pair is interleaved; [`pair_roles`] computes it from the stored pairs;
//! - [`pairs`] joins the samples of each pair; [`sets`], [`effects`] and [`family`] list a test's claims;
//! - [`outside`], [`interleaved`], [`late`] and [`gate`] withhold claims that pairs do not support;
//! - [`disturbed`], [`drift`] and [`notes`]: warnings and notes; [`metrics`]: results besides the rate;
//! - [`ramp`] and [`peak_search`]: which load point is next, and which may be the peak;
//! - [`doses`]: the cost over a number in which arms differ;
//! - [`run_row`], [`load_answers`] and [`load_compared`]: results of one machine alone, and of loads;
//!   [`repeated`]: of several runs together.
//!
//! Start with [`pairs::gather`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod disturbed;
pub mod doses;
pub mod drift;
pub mod effect_doubts;
pub mod effects;
pub mod evidence;
pub mod family;
pub mod gate;
pub mod interleaved;
pub mod late;
pub mod load_answers;
pub mod load_compared;
pub mod log_ratio;
pub mod metrics;
pub mod notes;
pub mod outside;
pub mod pair_roles;
pub mod pairs;
pub mod peak_search;
pub mod prior_row;
pub mod ramp;
mod reaim_rules;
pub mod repeated;
pub mod run_row;
pub mod schedule;
pub mod sets;
pub mod stored_guards;
