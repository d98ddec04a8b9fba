//! Deaths, full disks, interrupts and failed calls: what is stored, put back and reported.

#[path = "../support/mod.rs"]
mod support;

mod accounting;
mod agent;
mod around;
mod ended;
mod failing_calls;
mod faults;
mod full_disk;
mod kill;
mod kill_any;
mod kill_audit;
mod listener;
mod process_events;
mod sensor;
mod tracer;
mod tracing;
