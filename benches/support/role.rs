//! `main` of a bench that launches workloads: the library starts its launcher as the same program, in a
//! hidden role.

use std::process::ExitCode;

use weigh_workload::{launcher, launcher_process};

/// Plays the hidden role, or gives `bench` the arguments; what went wrong is told under this `name`.
pub fn play(
    name: &str,
    bench: impl FnOnce(&mut dyn Iterator<Item = String>) -> Result<(), String>,
) -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let result = match arguments.peek().map(String::as_str) {
        Some(launcher::SUBCOMMAND) => launcher_process::run().map_err(|error| error.to_string()),
        _ => bench(&mut arguments),
    };
    crate::end::end(name, result)
}
