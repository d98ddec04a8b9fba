//! Which audit rule costs what: rules are put on and taken off while a process of ours does the same
//! operations over and over.
//!
//! Everything is additive: the rules that a host had stay, and only processes of ours are weighed. A
//! rule that would match them is weighed by a copy that asks for a login uid which nobody has, besides;
//! what it takes where it does match is measured apart.

pub mod apart;
mod assemble;
pub mod attribute;
#[cfg(test)]
mod attribute_tests;
pub mod bridge;
pub mod certain;
pub mod confirm;
pub mod counter;
pub mod exec_calls;
pub mod keys;
pub mod ledger;
pub mod levels;
pub mod matched;
pub mod matching;
pub mod mix;
pub mod notes;
pub mod operation;
pub mod places;
pub mod pools;
pub mod prober;
pub mod prober_process;
pub mod processes;
pub mod refused;
pub mod rewritten;
pub mod run;
pub mod scale;
pub mod screen;
pub mod session;
pub mod whole;
