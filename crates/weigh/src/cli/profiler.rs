//! `--profiler`, of the commands that have something to look at.

use clap::Args;

/// What looks at the processes of a launch.
#[derive(Debug, Default, Args)]
pub struct ProfilerOption {
    /// When all is measured, launch each workload once more in each arm and run this with `sh` meanwhile, for
    /// example `perf record -p {pids}`: {pid} is its process, {pids} are all of them (of a mix, the users).
    /// The report has the functions of the kernel that took the most where `perf record` left a file, and
    /// otherwise what was printed. It gets SIGINT when the launch ends, and is killed if it does not end
    #[arg(long, value_name = "LINE", value_parser = filled)]
    profiler: Option<String>,
}

impl ProfilerOption {
    /// What is run.
    pub fn line(&self) -> Option<String> {
        self.profiler.clone()
    }
}

fn filled(line: &str) -> Result<String, String> {
    match line.trim().is_empty() {
        true => Err("there is no command; is a shell variable unset?".into()),
        false => Ok(line.to_owned()),
    }
}
