//! What is to be measured, as a user named it.

use crate::workload::mix::{DEFAULT_JOBS, MixFromFile};
use crate::workload::suite::FromFile;

/// What a user named, with the files that this named, which were read already.
pub struct AskedFor<'a> {
    /// Workloads, suites, mixes, or files with a suite or mix.
    pub names: &'a [String],
    pub suites: &'a [FromFile],
    pub mixes: &'a [MixFromFile],
    /// Of each workload that is named without a load of its own, so many copies.
    pub copies: &'a [usize],
    /// About how many jobs a user of a mix does.
    pub jobs: u32,
}

impl<'a> AskedFor<'a> {
    /// One copy of each, and no files.
    pub fn of(names: &'a [String]) -> AskedFor<'a> {
        AskedFor { names, suites: &[], mixes: &[], copies: &[1], jobs: DEFAULT_JOBS }
    }
}
