//! The options of what users do in a multi-user load.

use std::time::Duration;

use clap::Args;

use super::{output, value};
use crate::workload::mix::{self, JobPace, JobSizes, MixFromFile};
use crate::workload::workfile::size_kib;

#[derive(Debug, Args)]
pub struct Mixes {
    /// Of a mix (load:NAME), about how many jobs each user does
    #[arg(long, value_name = "N", default_value_t = JobSizes::default().jobs)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    jobs: u32,
    /// Of a mix, the size of each file of a disk job: a number and k or m [default: the mix's own, or 10k]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    file_size: Option<u64>,
    /// Of a mix, what all users share: each file grows by this over the number of users [default: the mix's
    /// own, or 1m]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pool_size: Option<u64>,
    /// Of a mix, how long each user waits after a job
    #[arg(long, value_name = "TIME", value_parser = value::pause, conflicts_with = "rate")]
    think: Option<Duration>,
    /// Of a mix, how many jobs all users together begin in a second, whether those before are done or not;
    /// the time of each counts from when it was to begin. The same of the clients of `weigh run --for`
    #[arg(long, value_name = "JOBS/s", value_parser = rate)]
    rate: Option<u64>,
}

impl Mixes {
    /// The files among these names; says what is doubtful in them.
    pub fn read(&self, names: &[String]) -> Result<Vec<MixFromFile>, String> {
        let (files, doubts) = mix::from_files(names)?;
        doubts.iter().for_each(|doubt| output::note(doubt));
        Ok(files)
    }

    /// Jobs in 1000 s, where they begin whether others are done or not; otherwise 0.
    pub fn per_1000s(&self) -> u64 {
        self.rate.unwrap_or_default()
    }

    /// How much each user does.
    pub fn sizes(&self) -> JobSizes {
        let pace = match (self.think, self.rate) {
            (Some(time), _) => JobPace::Thinking(time.as_micros() as u64),
            (None, Some(per_1000s)) => JobPace::Arriving(per_1000s),
            (None, None) => JobPace::AtOnce,
        };
        JobSizes { jobs: self.jobs, file_kib: self.file_size, pool_kib: self.pool_size, pace }
    }
}

/// Jobs a second, in 1000 s.
fn rate(text: &str) -> Result<u64, String> {
    let number: f64 = text.trim_end_matches("/s").parse().unwrap_or(f64::NAN);
    let is_rate = (0.001..=1e9).contains(&number);
    is_rate
        .then(|| (number * 1000.0).round() as u64)
        .ok_or_else(|| "takes a number of jobs a second, from 0.001 to 1000000000".into())
}

/// In KiB.
fn size(text: &str) -> Result<u64, String> {
    const MOST_KIB: u64 = 1 << 30;
    size_kib(text).filter(|kib| *kib <= MOST_KIB).ok_or_else(|| "takes a number and k or m".into())
}
