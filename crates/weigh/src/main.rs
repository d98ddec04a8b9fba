//! Parse, dispatch, exit code. The hidden roles of this program come first: they are started by
//! `weigh` itself and have no arguments to explain.

#![deny(clippy::disallowed_methods)]

use std::process::ExitCode;
use std::sync::Arc;

use linux_audit::sink;
use weigh::cli;
use weigh_audit::attribution::{prober, prober_process};
use weigh_host::undo::{guard, program_keeper};
use weigh_model::printable;
use weigh_sensor::bpf::sensor;
use weigh_sensor::events::listener;
use weigh_testbed as testbed;
use weigh_treatment as treatment;
use weigh_treatment::audit::stream;
use weigh_treatment::guest::{confined, inside, port};
use weigh_treatment::remote::{handshake, lease};
use weigh_workload::{inside_root, launcher, launcher_process, paced};

fn main() -> ExitCode {
    trust::start::keep_open_files();
    // Ignored by whoever started us, children could not be waited for.
    // SAFETY: the default disposition runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    if let Err(error) = see_file_limits() {
        eprintln!("error: cannot install the handler of SIGXFSZ: {error}");
        return ExitCode::from(cli::ERROR);
    }
    let mut arguments = std::env::args_os().skip(1);
    let role = arguments.next();
    let result = match role.as_ref().and_then(|role| role.to_str()) {
        Some(launcher::SUBCOMMAND) => launcher_process::run().map_err(|error| error.to_string()),
        Some(stream::SUBCOMMAND) => sink::run().map_err(|error| error.to_string()),
        Some(listener::SUBCOMMAND) => listener::run().map_err(|error| error.to_string()),
        Some(sensor::SUBCOMMAND) => sensor::run().map_err(|error| error.to_string()),
        Some(handshake::SUBCOMMAND) => handshake::run(arguments),
        Some(lease::SUBCOMMAND) => lease::run().map_err(|error| error.to_string()),
        Some(inside::SUBCOMMAND) => inside::run(),
        Some(confined::SUBCOMMAND) => confined::run(arguments),
        Some(port::SUBCOMMAND) => port::run(arguments),
        Some(inside_root::SUBCOMMAND) => inside_root::run(arguments),
        Some(paced::SUBCOMMAND) => paced::run(arguments),
        Some(prober::SUBCOMMAND) => prober_process::run().map_err(|error| error.to_string()),
        Some(testbed::SUBCOMMAND) => testbed::process::run().map_err(|error| error.to_string()),
        Some(program_keeper::SUBCOMMAND) => {
            program_keeper::run().map_err(|error| error.to_string())
        }
        Some(guard::SUBCOMMAND) => guard::run(arguments, &treatment::undoings()),
        _ => return command(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let role = role.unwrap_or_default();
            eprintln!("{}", printable::text(&format!("error: {}: {problem}", role.display())));
            ExitCode::from(cli::ERROR)
        }
    }
}

/// A file that grows beyond `ulimit -f` is then an error of `write(2)`, which can be reported; the signal
/// would end us without a word. No program that we execute inherits the handler.
fn see_file_limits() -> std::io::Result<()> {
    signal_hook::flag::register(libc::SIGXFSZ, Arc::default()).map(drop)
}

/// Runs the command of a user. A bug is an error too, and the manual has no other status for one.
fn command() -> ExitCode {
    if let Err(error) = see_cut_files() {
        eprintln!("error: cannot install the handler of SIGBUS: {error}");
        return ExitCode::from(cli::ERROR);
    }
    std::panic::catch_unwind(cli::main).unwrap_or(ExitCode::from(cli::ERROR))
}

/// SQLite maps `weigh.db-shm`; truncating it raises SIGBUS. Prints a message and exits with status 2. The
/// samples are in the `-wal` file.
fn see_cut_files() -> std::io::Result<()> {
    const SAID: &[u8] =
        b"error: SIGBUS: another program truncated a file that was mapped, probably weigh.db-shm\n  \
        The samples so far are kept: see `weigh show`\n";
    let end = || {
        // SAFETY: both are async-signal-safe (signal-safety(7)); the bytes are static.
        unsafe {
            libc::write(libc::STDERR_FILENO, SAID.as_ptr().cast(), SAID.len());
            libc::_exit(i32::from(cli::ERROR))
        }
    };
    // SAFETY: `end` calls what a signal handler may.
    unsafe { signal_hook::low_level::register(libc::SIGBUS, end) }.map(drop)
}
