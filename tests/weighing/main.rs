//! `weigh compare` and its relatives: treatments, workloads, pairs and their verdicts.

#[path = "../support/mod.rs"]
mod support;

mod aim;
mod atlas;
mod before_a_sample;
mod budget_kept;
mod build;
mod busy_machine;
mod calibrate;
mod ci;
mod combined;
mod compare;
mod copies;
mod detail;
mod diff;
mod doctor;
mod doses;
mod factorial;
mod feel;
mod go_on;
mod hidden;
mod in_force;
mod interleaved;
mod interp;
mod launcher;
mod metrics;
mod our_share;
mod placebos;
mod planted;
mod profile;
mod reports;
mod sampling;
mod sensors;
mod shared_cpu;
mod stored;
mod treatments;
mod versus;
mod white;
mod workload_contract;
mod workloads;
