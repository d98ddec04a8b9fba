//! How a bench ends.

use std::process::ExitCode;

/// What went wrong is told under this name.
pub fn end(bench: &str, result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{bench}: {problem}");
            ExitCode::FAILURE
        }
    }
}
