//! The options of what users do in a multi-user load.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::{output, value};
use weigh_model::workload::mix;
use weigh_model::workload::mix::{JobPace, JobSizes, MixFromFile, PREFIX};
use weigh_model::workload::mix_label::{block_kib, share_pct};
use weigh_model::workload::reaim_config::ReaimConfig;
use weigh_model::workload::workfile::size_kib;

/// Heading of the options of mixes.
const MIXES: &str = "Mixes of users (load:NAME)";

#[derive(Debug, Args)]
pub struct Mixes {
    /// Jobs of each user of a mix (load:NAME), approximately [default: as the mix says, or 100]
    #[arg(help_heading = MIXES, hide_short_help = true, long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    jobs: Option<u32>,
    /// Time for which each user of a mix repeats its jobs, such as 10s [default: its list of jobs
    /// once]
    #[arg(help_heading = MIXES, hide_short_help = true)]
    #[arg(long, value_name = "TIME", value_parser = value::period)]
    period: Option<Duration>,
    /// Size of the file of each user for the disk jobs of a mix, such as 10k or 2m [default: as the mix
    /// says, or 10k]
    #[arg(help_heading = MIXES, hide_short_help = true, long, value_name = "SIZE", value_parser = size)]
    file_size: Option<u64>,
    /// Size that is added to these files, in total for all users: with 1m and 4 users each file grows by 256k
    /// [default: as the mix says, or 1m]
    #[arg(help_heading = MIXES, hide_short_help = true, long, value_name = "SIZE", value_parser = size)]
    pool_size: Option<u64>,
    /// Size of the blocks that the disk jobs of a mix read and write, such as 4k, at most 1m; a file has
    /// whole blocks. The rows are called NAME@block-4k [default: 1k]
    #[arg(help_heading = MIXES, hide_short_help = true, long, value_name = "SIZE", value_parser = block)]
    block_size: Option<u64>,
    /// Time that each user of a mix waits after each job, such as 10ms [default: none]
    #[arg(help_heading = MIXES, hide_short_help = true)]
    #[arg(long, value_name = "TIME", value_parser = value::pause)]
    #[arg(conflicts_with = "rate")]
    think: Option<Duration>,
    /// Start this many jobs per second, over all users of a mix, such as 200, even if earlier jobs are not
    /// finished. The time of a job counts from the moment when it was due [default: each user starts its next
    /// job after the previous one]
    #[arg(help_heading = MIXES, hide_short_help = true, long, value_name = "JOBS/s", value_parser = rate)]
    rate: Option<u64>,
    /// Directory for the files of the disk jobs of a mix; may be repeated, then each job takes the next one
    /// [default: in the --fixture, or below $TMPDIR]
    #[arg(help_heading = MIXES, hide_short_help = true, long = "disk-dir", value_name = "DIR")]
    #[arg(value_parser = disk_directory)]
    disk_directories: Vec<PathBuf>,
    /// Directory tree whose files the job `disk_src` of a mix examines, such as /usr/share/doc; weigh writes
    /// nothing there [default: a tree that weigh makes]
    #[arg(help_heading = MIXES, hide_short_help = true, long, value_name = "DIR", value_parser = directory)]
    disk_tree: Option<PathBuf>,
    /// Size of the file that the disk jobs of a mix read, as a share of the memory, such as 150%. The rows
    /// are called NAME@beyond-cache-150%
    #[arg(help_heading = MIXES, hide_short_help = true, long, value_name = "SHARE", value_parser = share)]
    beyond_cache: Option<f64>,
    /// Before the jobs of each sample, drop their input files from the page cache: those of the disk jobs of
    /// a mix, or of a workload that reads files, such as disk_brd. The rows are called NAME@cold
    #[arg(help_heading = MIXES, hide_short_help = true, long)]
    cold: bool,
    /// Memory that each process keeps if the mix has the job `resident`, such as 64m [default: as the mix
    /// says, or 8m]
    #[arg(help_heading = MIXES, hide_short_help = true, long, value_name = "SIZE", value_parser = mebibytes)]
    resident: Option<u64>,
}

impl Mixes {
    /// The files among these names; says what is doubtful in them.
    pub fn read(&self, names: &[String]) -> Result<Vec<MixFromFile>, String> {
        let (files, doubts) = mix::from_files(names)?;
        doubts.iter().for_each(|doubt| output::note(doubt));
        self.tell_what_is_of_mixes_alone(names);
        Ok(files)
    }

    pub fn check_of_command(&self) -> Result<(), String> {
        match self.sizes() == JobSizes::default() {
            true => Ok(()),
            false => {
                Err("a command is no mix: leave the options of mixes out (--jobs, --file-size, \
                          --cold and so on)"
                    .into())
            }
        }
    }

    /// Where a mix has these, and a workload that also works on files or memory has not.
    fn tell_what_is_of_mixes_alone(&self, names: &[String]) {
        let given = [
            ("--file-size", self.file_size.is_some()),
            ("--pool-size", self.pool_size.is_some()),
            ("--block-size", self.block_size.is_some()),
            ("--disk-dir", !self.disk_directories.is_empty()),
            ("--disk-tree", self.disk_tree.is_some()),
            ("--beyond-cache", self.beyond_cache.is_some()),
            ("--resident", self.resident.is_some()),
        ];
        let given: Vec<&str> = given.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
        let (mixes, others): (Vec<&String>, Vec<&String>) =
            names.iter().partition(|name| name.starts_with(PREFIX));
        if given.is_empty() || mixes.is_empty() || others.is_empty() {
            return;
        }
        let others: Vec<&str> = others.iter().map(|name| name.as_str()).collect();
        output::note(&format!(
            "Warning: {}: used only by mixes (load:NAME), ignored by {}.",
            given.join(", "),
            others.join(", ")
        ));
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
        JobSizes {
            jobs: self.jobs,
            file_kib: self.file_size,
            pool_kib: self.pool_size,
            block_kib: self.block_size,
            pace,
            period_ms: self.period.map(value::whole_ms),
            resident_mib: self.resident,
            disk_directories: self.disk_directories.clone(),
            disk_tree: self.disk_tree.clone(),
            beyond_cache_pct: self.beyond_cache,
            is_cold: self.cold,
            ..JobSizes::default()
        }
    }

    /// Returns the job sizes of a run. If the clients take a rate, the jobs have none; clients do
    /// not think.
    pub fn sizes_of_run(&self, is_of_clients: bool) -> JobSizes {
        let sizes = self.sizes();
        let pace = match sizes.pace {
            JobPace::Arriving(_) if is_of_clients => JobPace::AtOnce,
            pace => pace,
        };
        JobSizes { pace, ..sizes }
    }

    /// Returns the job sizes. A configuration of re-aim fills in the values that the command line
    /// leaves open.
    pub fn sizes_with(&self, config: &ReaimConfig) -> JobSizes {
        let sizes = self.sizes();
        let directories = match sizes.disk_directories.is_empty() {
            true => config.disk_directories.clone(),
            false => sizes.disk_directories,
        };
        JobSizes {
            jobs: sizes.jobs.or(config.jobs),
            usual_file_kib: config.file_kib,
            usual_pool_kib: config.pool_kib,
            disk_directories: directories,
            ..sizes
        }
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

fn block(text: &str) -> Result<u64, String> {
    block_kib(text).ok_or_else(|| "takes a size from 1k to 1m, such as 4k".into())
}

fn mebibytes(text: &str) -> Result<u64, String> {
    let mib = size_kib(text).filter(|kib| kib % 1024 == 0).map(|kib| kib / 1024);
    mib.filter(|mib| (1..=1_000_000).contains(mib)).ok_or_else(|| "takes whole MiB: 64m".into())
}

fn share(text: &str) -> Result<f64, String> {
    share_pct(text).ok_or_else(|| "takes a share of memory: 150%".into())
}

/// One that is there: a user of the load would not find it either.
fn disk_directory(text: &str) -> Result<PathBuf, String> {
    mix::disk_directory(Path::new(text))
}

fn directory(text: &str) -> Result<PathBuf, String> {
    let path = std::path::absolute(Path::new(text)).map_err(|error| error.to_string())?;
    match path.is_dir() {
        true => Ok(path),
        false => Err("there is no such directory".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        mixes: Mixes,
    }

    #[test]
    fn of_clients_that_ask_for_so_long_the_rate_is_theirs_and_nothing_else() {
        let pace = |words: &[&str], is_of_clients| {
            let line = Line::try_parse_from([&["weigh"], words].concat()).unwrap();
            line.mixes.sizes_of_run(is_of_clients).pace
        };
        assert_eq!(pace(&["--rate", "5"], true), JobPace::AtOnce);
        assert_eq!(pace(&["--rate", "5"], false), JobPace::Arriving(5000));
        // So it is refused where nothing uses it.
        assert_eq!(pace(&["--think", "10ms"], true), JobPace::Thinking(10_000));
    }
}
