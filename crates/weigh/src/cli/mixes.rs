//! The options of what users do in a multi-user load.

use clap::Args;

use super::output;
use crate::workload::mix::{self, DEFAULT_JOBS, MixFromFile};

#[derive(Debug, Args)]
pub struct Mixes {
    /// Of a mix (load:NAME), about how many jobs each user does
    #[arg(long, value_name = "N", default_value_t = DEFAULT_JOBS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub jobs: u32,
}

impl Mixes {
    /// The files among these names; says what is doubtful in them.
    pub fn read(&self, names: &[String]) -> Result<Vec<MixFromFile>, String> {
        let (files, doubts) = mix::from_files(names)?;
        doubts.iter().for_each(|doubt| output::note(doubt));
        Ok(files)
    }
}
