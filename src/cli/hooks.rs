//! `--prepare`, `--setup`, `--cleanup` and `--warmup`, with the meanings that hyperfine gave them.

use clap::Args;

use crate::experiment::around::Around;

/// What is run around a command. Neither timed nor treated, and ended like a launch: after --timeout, with
/// all that it started.
#[derive(Debug, Args)]
#[command(next_help_heading = "Around a command")]
pub struct Hooks {
    /// Run this by `sh` before every launch of the command, such as `make clean`. It is neither timed nor
    /// treated; where it fails there is no result. What it leaves running is ended
    #[arg(long, value_name = "LINE", requires = "command")]
    prepare: Option<String>,
    /// Run this before the first launch of each set, likewise
    #[arg(long, value_name = "LINE", requires = "command")]
    setup: Option<String>,
    /// Run this after the last launch of each set, likewise; after Ctrl-C too, for 10 s at most
    #[arg(long, value_name = "LINE", requires = "command")]
    cleanup: Option<String>,
    /// Launch the command so often in each arm before the first pair, for caches
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

    /// The same again on a command line.
    pub fn words(&self) -> Vec<String> {
        let lines =
            [("--prepare", &self.prepare), ("--setup", &self.setup), ("--cleanup", &self.cleanup)];
        let mut words = Vec::new();
        for (option, line) in lines {
            words.extend(line.iter().flat_map(|line| [option.to_owned(), line.clone()]));
        }
        if self.warmup > 0 {
            words.extend(["--warmup".to_owned(), self.warmup.to_string()]);
        }
        words
    }
}
