//! What is to be measured, as a user named it.

use super::surroundings::Surroundings;
use weigh_model::workload::mix::{JobSizes, MixFromFile};
use weigh_model::workload::suite::FromFile;
use weigh_station::client::WhoIsTreated;

/// What a user named, with the files that this named, which were read already.
#[derive(Clone)]
pub struct AskedFor<'a> {
    /// Workloads, suites, mixes, or files with a suite or mix.
    pub names: &'a [String],
    pub suites: &'a [FromFile],
    pub mixes: &'a [MixFromFile],
    /// Of each workload that is named without a load of its own, so many copies.
    pub copies: &'a [usize],
    pub sizes: &'a JobSizes,
    /// What is done beside each; each is measured alone as well.
    pub beside: &'a [String],
    /// Whether the peak of a mix that is named without users is sought.
    pub seeks_peaks: bool,
    pub surroundings: Surroundings,
    /// Of servers and of who asks them.
    pub treated: WhoIsTreated,
}

impl<'a> AskedFor<'a> {
    /// One copy of each, and no files.
    pub fn of(names: &'a [String], sizes: &'a JobSizes) -> AskedFor<'a> {
        AskedFor {
            names,
            suites: &[],
            mixes: &[],
            copies: &[1],
            sizes,
            beside: &[],
            seeks_peaks: false,
            surroundings: Surroundings::default(),
            treated: WhoIsTreated::Both,
        }
    }
}
