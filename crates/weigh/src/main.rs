//! Parse, dispatch, exit code. The hidden roles of this program come first: they are started by
//! `weigh` itself and have no arguments to explain.

use std::process::ExitCode;

use linux_audit::sink;
use weighbridge::attribution::{prober, prober_process};
use weighbridge::cli;
use weighbridge::far::{carry, relay};
use weighbridge::printable;
use weighbridge::testbed;
use weighbridge::treatment::audit::stream;
use weighbridge::treatment::elsewhere::arrival;
use weighbridge::treatment::guest::{inside, port};
use weighbridge::treatment::{self, guard};
use weighbridge::workload::{inside_root, launcher, launcher_process, paced};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let role = arguments.next();
    let result = match role.as_ref().and_then(|role| role.to_str()) {
        Some(launcher::SUBCOMMAND) => launcher_process::run().map_err(|error| error.to_string()),
        Some(stream::SUBCOMMAND) => sink::run().map_err(|error| error.to_string()),
        Some(arrival::SUBCOMMAND) => arrival::run(arguments),
        Some(inside::SUBCOMMAND) => inside::run(),
        Some(port::SUBCOMMAND) => port::run(arguments),
        Some(carry::SUBCOMMAND) => carry::run(arguments),
        Some(relay::SUBCOMMAND) => relay::run(arguments),
        Some(inside_root::SUBCOMMAND) => inside_root::run(arguments),
        Some(paced::SUBCOMMAND) => paced::run(arguments),
        Some(prober::SUBCOMMAND) => prober_process::run().map_err(|error| error.to_string()),
        Some(testbed::SUBCOMMAND) => testbed::process::run().map_err(|error| error.to_string()),
        Some(guard::SUBCOMMAND) => guard::run(arguments, &treatment::undoings()),
        _ => return cli::main(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let role = role.unwrap_or_default();
            eprintln!("{}", printable::text(&format!("weigh: {}: {problem}", role.display())));
            ExitCode::from(cli::ERROR)
        }
    }
}
