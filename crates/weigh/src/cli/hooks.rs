//! `--prepare`, `--setup`, `--cleanup` and `--warmup`, with the meanings that hyperfine gave them.

use clap::Args;

use weigh_engine::hooks::Hooks;

/// The heading of these options, and of `--prepare`, which one command has once and the other for each of its
/// commands.
pub const AROUND: &str = "Around a command";

/// Commands to run around a command. They are neither timed nor treated. Each ends as a launch
/// does: after --timeout, with all processes that it started.
#[derive(Debug, Args)]
#[command(next_help_heading = AROUND)]
pub struct HookArgs {
    /// Shell line before the first run, such as 'make config'. With --sets it runs once for each set.
    /// It is not timed. If it fails, there is no result. The report lists what it added
    #[arg(long, value_name = "LINE")]
    setup: Option<String>,
    /// Shell line after the last run, such as 'rm -rf out'. With --sets it runs once for each set.
    /// After Ctrl-C it runs as well, for at most 10 s. weigh warns of what --setup added and this left
    #[arg(long, value_name = "LINE")]
    cleanup: Option<String>,
    /// Runs that are not timed, to fill caches. Each arm has this many before the first pair
    #[arg(long, value_name = "N", default_value_t = 0, requires = "command")]
    warmup: u32,
}

impl HookArgs {
    /// With what is run before each launch: one line for all arms, or one for each.
    pub fn around(&self, prepare: Option<String>, prepare_arms: Vec<String>) -> Hooks {
        Hooks {
            prepare,
            prepare_arms,
            setup: self.setup.clone(),
            cleanup: self.cleanup.clone(),
            warm_ups: self.warmup,
        }
    }
}
