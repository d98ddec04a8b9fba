//! Parts of a workload, and the report of one process of it.

pub mod clock;
pub mod detail;
pub mod metric;
pub mod mix;
pub mod mix_label;
pub mod reaim_config;
pub mod sample;
pub mod suite;
pub mod times;
pub mod toml_problem;
pub mod workfile;
pub mod wrong_answers;
