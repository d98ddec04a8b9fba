//! `--profiler`, of the commands that have something to look at.

use clap::Args;

/// Option for the profiler, which looks at the processes of a launch.
#[derive(Debug, Default, Args)]
pub struct ProfilerOption {
    /// After measuring, run this line with `sh` while each workload runs once more (in every arm, if arms are
    /// compared), such as 'perf record -p {pids}'. The report shows its output; for perf record, the kernel
    /// functions that took most time.
    ///
    /// {pid} is the process of the workload, {pids} are all its processes, separated by commas; for a mix
    /// they are the driver, the users, and a process that cleans up after them. The line gets SIGINT when the
    /// workload ends; if it continues for 20 s, it is killed.
    #[arg(long, value_name = "LINE", value_parser = filled, hide_short_help = true)]
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
