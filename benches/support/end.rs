//! How a bench ends.

use std::process::ExitCode;

/// Prints an error under the name of the bench, and returns the exit code.
pub fn end(bench: &str, result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{bench}: {problem}");
            ExitCode::FAILURE
        }
    }
}
