//! Writing to the terminal: colours, widths, and readers that close the pipe.

use std::io::{self, IsTerminal, Write};

use clap::ColorChoice;

/// Whether stdout or stderr gets colour.
pub fn wants_colour(choice: ColorChoice, stream: &impl anstream::stream::RawStream) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never,
    }
}

/// Columns of the terminal, or what fits in a mail where there is none.
pub fn width() -> usize {
    const WITHOUT_TERMINAL: usize = 100;
    const WIDEST_READABLE: usize = 120;
    if !io::stdout().is_terminal() {
        return WITHOUT_TERMINAL;
    }
    rustix::termios::tcgetwinsize(io::stdout())
        .map(|size| usize::from(size.ws_col))
        .ok()
        .filter(|columns| *columns > 0)
        .unwrap_or(WITHOUT_TERMINAL)
        .min(WIDEST_READABLE)
}

/// Prints a text; a reader who has seen enough (`| head`) is no error.
///
/// # Errors
/// A sentence, where stdout is, say, a file on a full disk.
pub fn print(text: &str) -> Result<(), String> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| format!("cannot write the output: {error}")),
    }
}

/// Tells what went wrong.
pub fn problem(text: &str) {
    let _ = writeln!(io::stderr(), "weigh: {text}");
}

/// Tells something on the way.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Says what could not be put back; whether that is nothing.
pub fn tell_what_is_left(left: Option<&str>) -> bool {
    if let Some(left) = left {
        problem(&format!("the system is not as it was: {left}\n`weigh restore` tries again"));
    }
    left.is_none()
}

/// Creates a file that a report will go to.
///
/// # Errors
/// A sentence with the file.
pub fn check_writable(path: &std::path::Path) -> Result<(), String> {
    if path.as_os_str() == "-" {
        return Ok(());
    }
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
    opened.map(drop).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Writes a report to a file, or to stdout for `-`.
///
/// # Errors
/// A sentence with the file.
pub fn write_report(path: &std::path::Path, text: &str) -> Result<(), String> {
    if path.as_os_str() == "-" {
        return print(text);
    }
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
