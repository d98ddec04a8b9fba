//! Parse, dispatch, exit code. The hidden roles of this program come first: they are started by
//! `weigh` itself and have no arguments to explain.

use std::process::ExitCode;

use clap::Parser;
use weighbridge::attribution::{prober, prober_process};
use weighbridge::audit::sink;
use weighbridge::cli::{self, Cli};
use weighbridge::treatment::audit::stream;
use weighbridge::treatment::guard;
use weighbridge::workload::{launcher, launcher_process, paced};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let role = arguments.next();
    let result = match role.as_ref().and_then(|role| role.to_str()) {
        Some(launcher::SUBCOMMAND) => launcher_process::run().map_err(|error| error.to_string()),
        Some(stream::SUBCOMMAND) => sink::run().map_err(|error| error.to_string()),
        Some(paced::SUBCOMMAND) => paced::run(arguments),
        Some(prober::SUBCOMMAND) => prober_process::run().map_err(|error| error.to_string()),
        Some(guard::SUBCOMMAND) => match arguments.next() {
            Some(journal) => guard::run(journal.as_ref()),
            None => Err("the guard needs a journal".into()),
        },
        _ => return cli::run(Cli::parse()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("weigh: {}: {problem}", role.unwrap_or_default().display());
            ExitCode::from(cli::ERROR)
        }
    }
}
