//! Writing to the terminal: colours, widths, readers that close the pipe, and foreign text.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use clap::ColorChoice;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::PIPE_BUF;

use trust::owner;
use weigh_model::format;
use weigh_model::printable;
use weigh_report::ReportFormat;
use weigh_report::terminal::Room;

/// Returns true if the stream (stdout or stderr) gets colour.
pub fn wants_colour(choice: ColorChoice, stream: &impl anstream::stream::RawStream) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never,
    }
}

/// The room on stdout: that of the terminal, or of a file.
pub fn room() -> Room {
    const WIDEST_READABLE: usize = 120;
    if !io::stdout().is_terminal() {
        return Room::FILE;
    }
    let columns = match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        // A serial line does not know its size.
        _ => Room::FILE.wrap,
    };
    Room::terminal(columns.min(WIDEST_READABLE))
}

/// Prints a text, in which only weigh's own colours may be; a reader who has seen enough (`| head`) is no
/// error.
pub fn print(text: &str) -> Result<(), String> {
    write_out(&printable::styled(text))
}

/// Prints JSON, which keeps every character.
pub fn print_json(document: &str) -> Result<(), String> {
    write_out(&printable::json(document))
}

fn write_out(text: &str) -> Result<(), String> {
    let cannot = |error: io::Error| format!("cannot write the output: {error}");
    let mut left = text.as_bytes();
    while !left.is_empty() {
        wait_for_room().map_err(cannot)?;
        // A pipe with room takes so much without a wait, in which no signal would end us.
        let part = &left[..left.len().min(PIPE_BUF)];
        match rustix::io::write(rustix::stdio::stdout(), part) {
            Ok(written) => left = &left[written..],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(Errno::PIPE) => return Ok(()),
            Err(error) => return Err(cannot(error.into())),
        }
    }
    Ok(())
}

/// Waits until stdout takes something. Whoever reads it may not do so for ever; then the signals end us that
/// would have ended the experiment, which is over by now.
fn wait_for_room() -> io::Result<()> {
    const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    if has_room(&Timespec::default()) {
        return Ok(());
    }
    // What came before is known to whoever measured.
    let ended = listen_for_end()?;
    while !has_room(&LOOK_AGAIN) {
        if ended.load(Ordering::Relaxed) {
            std::process::exit(i32::from(super::INTERRUPTED));
        }
    }
    Ok(())
}

/// Also where writing is an error.
fn has_room(within: &Timespec) -> bool {
    let stdout = rustix::stdio::stdout();
    let found = poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], Some(within));
    !matches!(found, Ok(0) | Err(Errno::INTR))
}

fn listen_for_end() -> io::Result<&'static AtomicBool> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    static ENDED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(ended) = ENDED.get() {
        return Ok(ended);
    }
    let ended = Arc::default();
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ended))?;
    }
    Ok(ENDED.get_or_init(|| ended))
}

/// Prints an error: what is wrong on the first line, and what to do on the next ones.
pub fn problem(text: &str) {
    const MOST_LINES: usize = 100;
    let mut lines = text.lines();
    let mut said = format!("error: {}", lines.next().unwrap_or_default());
    for line in lines.by_ref().take(MOST_LINES) {
        // CI services take a line that begins with `::` or `##` for a command of ours, also behind blanks.
        // Text that is quoted from a file may have such a line.
        let gutter = if line.trim_start().starts_with([':', '#']) { "| " } else { "" };
        said += &format!("\n  {gutter}{line}");
    }
    let left = lines.count();
    if left > 0 {
        let more = format::plural(left, "more line");
        said += &format!("\n  … ({more})");
    }
    note(&said);
}

/// Tells what the report says too, where that goes elsewhere than to a terminal: on one line, as names and
/// reasons may come from another machine, and what looks like more lines of ours would be believed.
pub fn problem_of_report(text: &str) {
    if !io::stdout().is_terminal() {
        problem(&printable::line(text));
    }
}

/// Tells something on the way. It is never coloured.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable::text(text));
}

/// Says what could not be put back; whether that is nothing.
pub fn tell_what_is_left(left: Option<&str>) -> bool {
    if let Some(left) = left {
        problem(&format!("the system is not as it was: {left}\n`weigh restore` tries again"));
    }
    left.is_none()
}

/// Checks that a report can go to this file. Afterwards the file is absent if it was absent before.
pub fn check_writable(path: &Path) -> Result<(), String> {
    if path.as_os_str() == "-" {
        return Ok(());
    }
    owner::try_to_write(path).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Writes a report as its format has to be.
pub fn write_format(format: &ReportFormat, path: &Path, text: &str) -> Result<(), String> {
    match format.is_json {
        true => write_json(path, text),
        false => write_report(path, text),
    }
}

/// Writes a report without colours to a file, or to stdout for `-`.
pub fn write_report(path: &Path, text: &str) -> Result<(), String> {
    write_as(path, &printable::text(text))
}

/// Writes a JSON document, with every character kept.
pub fn write_json(path: &Path, document: &str) -> Result<(), String> {
    write_as(path, &printable::json(document))
}

fn write_as(path: &Path, text: &str) -> Result<(), String> {
    if path.as_os_str() == "-" {
        return write_out(text);
    }
    owner::write(path, text.as_bytes())
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}
