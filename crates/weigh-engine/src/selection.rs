//! Request for measurements, in the names that a user gave.

use super::surroundings::Surroundings;
use weigh_model::workload::mix::{JobSizes, MixFromFile};
use weigh_model::workload::suite::FromFile;
use weigh_station::client::WhoIsTreated;

/// Names that a user gave, with the contents of the files that they name.
#[derive(Clone)]
pub struct Selection<'a> {
    /// Workloads, suites, mixes, or files with a suite or mix.
    pub names: &'a [String],
    pub suites: &'a [FromFile],
    pub mixes: &'a [MixFromFile],
    /// Copies of each workload that is named without a load of its own.
    pub copies: &'a [usize],
    pub sizes: &'a JobSizes,
    /// Activities alongside each workload; each workload is measured alone as well.
    pub beside: &'a [String],
    /// True if the peak of a mix that is named without users is sought.
    pub seeks_peaks: bool,
    pub surroundings: Surroundings,
    /// Treated side: the servers, the clients or both.
    pub treated: WhoIsTreated,
}

impl<'a> Selection<'a> {
    /// One copy of each, and no files.
    pub fn of(names: &'a [String], sizes: &'a JobSizes) -> Selection<'a> {
        Selection {
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
