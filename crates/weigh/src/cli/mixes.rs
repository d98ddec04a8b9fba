//! The options of what users do in a multi-user load.

use clap::Args;

use super::output;
use crate::workload::mix::{self, JobSizes, MixFromFile};
use crate::workload::workfile::size_kib;

#[derive(Debug, Args)]
pub struct Mixes {
    /// Of a mix (load:NAME), about how many jobs each user does
    #[arg(long, value_name = "N", default_value_t = JobSizes::default().jobs)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    jobs: u32,
    /// Of a mix, the size of each file of a disk job: a number and k or m
    #[arg(long, value_name = "SIZE", default_value = "10k", value_parser = size)]
    file_size: u64,
    /// Of a mix, what all users share: each file grows by this over the number of users
    #[arg(long, value_name = "SIZE", default_value = "1m", value_parser = size)]
    pool_size: u64,
}

impl Mixes {
    /// The files among these names; says what is doubtful in them.
    pub fn read(&self, names: &[String]) -> Result<Vec<MixFromFile>, String> {
        let (files, doubts) = mix::from_files(names)?;
        doubts.iter().for_each(|doubt| output::note(doubt));
        Ok(files)
    }

    /// How much each user does.
    pub fn sizes(&self) -> JobSizes {
        JobSizes { jobs: self.jobs, file_kib: self.file_size, pool_kib: self.pool_size }
    }
}

/// In KiB.
fn size(text: &str) -> Result<u64, String> {
    const MOST_KIB: u64 = 1 << 30;
    size_kib(text).filter(|kib| *kib <= MOST_KIB).ok_or_else(|| "takes a number and k or m".into())
}
