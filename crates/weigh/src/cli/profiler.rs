//! `--profiler`, of the commands that have something to look at.

use clap::Args;

/// Option for the profiler, which looks at the processes of a launch.
#[derive(Debug, Default, Args)]
pub struct ProfilerOption {
    /// When all is measured, launch each workload once more in each arm, and meanwhile run this line with
    /// `sh`, such as `perf record -p {pids}`: {pid} is the workload's process, {pids} are all of its
    /// processes (of a mix, the users). If that was a `perf record`, the report has the kernel's functions
    /// that took the most; otherwise it has what the line printed. The line gets SIGINT when the launch
    /// ends, and is killed if it goes on
    #[arg(long, value_name = "LINE", value_parser = filled)]
    profiler: Option<String>,
}

impl ProfilerOption {
    /// Returns the command line of the profiler.
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
