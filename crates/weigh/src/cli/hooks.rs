//! `--prepare`, `--setup`, `--cleanup` and `--warmup`, with the meanings that hyperfine gave them.

use clap::Args;

use crate::experiment::around::Around;

/// What is run around a command. Neither timed nor treated, and ended like a launch: after --timeout, with
/// all that it started.
#[derive(Debug, Args)]
#[command(next_help_heading = "Around a command")]
pub struct Hooks {
    /// Run this with `sh` before every launch of the command, for example `make clean`. It is neither timed
    /// nor treated. If it fails, there is no result. Processes that it leaves running are killed
    #[arg(long, value_name = "LINE", requires = "command")]
    prepare: Option<String>,
    /// Run this before the first launch of each set, in the same way
    #[arg(long, value_name = "LINE", requires = "command")]
    setup: Option<String>,
    /// Run this after the last launch of each set, in the same way; also after Ctrl-C, for at most 10 s
    #[arg(long, value_name = "LINE", requires = "command")]
    cleanup: Option<String>,
    /// Launch the command this many times in each arm before the first pair, to warm caches
    #[arg(long, value_name = "N", default_value_t = 0, requires = "command")]
    warmup: u32,
}

impl Hooks {
    pub fn around(&self) -> Around {
        Around {
            prepare: self.prepare.clone(),
            setup: self.setup.clone(),
            cleanup: self.cleanup.clone(),
            warm_ups: self.warmup,
        }
    }
}
