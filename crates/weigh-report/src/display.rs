//! Progress display on stderr, so that stdout has only the report. On a terminal, lines are redrawn
//! in place. Elsewhere, a log line is written now and then.
//!
//! A stderr that cannot be written must not stop an experiment: such errors are dropped.

use std::io::{self, Stderr, Write};
use std::time::{Duration, Instant};

use weigh_host::interruption;
use weigh_model::format;
use weigh_model::printable;

/// Redrawing costs CPU time that the workloads should have.
const REDRAW_EVERY: Duration = Duration::from_millis(200);
const LOG_EVERY: Duration = Duration::from_secs(10);

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

/// The size of the terminal that stderr is, if it is one.
pub fn stderr_size() -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    let or = |value: u16, usual: usize| if value == 0 { usual } else { usize::from(value) };
    Some(Size { columns: or(size.ws_col, 80), rows: or(size.ws_row, 24) })
}

/// For a process that ends without dropping its display.
fn show_cursor() {
    if stderr_size().is_some() {
        let _ = io::stderr().write_all(SHOW_CURSOR.as_bytes());
    }
}

/// Dropping it takes its lines off the screen and gives the cursor back.
pub struct Display<W: Write = Stderr> {
    out: W,
    /// Asked before every redraw, since windows change their size; `None` is no terminal.
    size: fn() -> Option<Size>,
    /// Lines that are on the screen.
    drawn: usize,
    last: Option<Instant>,
}

impl Display {
    pub fn on_stderr() -> Display {
        interruption::before_the_end(show_cursor);
        Display::new(io::stderr(), stderr_size)
    }
}

impl<W: Write> Display<W> {
    /// Shows how far something is, if it is time for that: in a line. Returns true if it was.
    pub fn progress(&mut self, line: &str) -> bool {
        let is_due = self.is_due();
        if is_due {
            self.show(line);
        }
        is_due
    }

    /// Shows that something was reached, which a log tells in any case.
    pub fn milestone(&mut self, line: &str) {
        self.last = Some(Instant::now());
        self.show(line);
    }

    fn show(&mut self, line: &str) {
        match self.size() {
            Some(size) => self.redraw(&[format::shorten(&printable::line(line), size.columns)]),
            None => self.log(line),
        }
    }

    pub(super) fn new(out: W, size: fn() -> Option<Size>) -> Display<W> {
        Display { out, size, drawn: 0, last: None }
    }

    /// `None` where there is no terminal.
    pub(super) fn size(&self) -> Option<Size> {
        (self.size)()
    }

    /// Returns true if the display is due again. At the start nothing is known yet that would be
    /// worth a log line.
    pub(super) fn is_due(&mut self) -> bool {
        let is_terminal = self.size().is_some();
        let every = if is_terminal { REDRAW_EVERY } else { LOG_EVERY };
        if self.last.is_some_and(|last| last.elapsed() < every) {
            return false;
        }
        let is_first = self.last.replace(Instant::now()).is_none();
        is_terminal || !is_first
    }

    /// Makes a terminal show what comes next, however short a time ago it was redrawn.
    pub(super) fn make_due(&mut self) {
        self.last = None;
    }

    /// Puts these lines, which fit the terminal, in the place of those that are on it.
    pub(super) fn redraw(&mut self, lines: &[String]) {
        let mut text = if self.drawn == 0 { HIDE_CURSOR.to_owned() } else { self.home() };
        for line in lines {
            // Each line erases what was to its right; the last one erases what was below.
            text += &format!("{}\x1b[K\n", printable::styled(line));
        }
        text += "\x1b[J";
        self.drawn = lines.len();
        self.write(&text);
    }

    pub(super) fn log(&mut self, line: &str) {
        self.write(&printable::text(&format!("{line}\n")));
    }

    /// Takes the lines off the screen, so that something else can be written.
    pub fn clear(&mut self) {
        if self.drawn > 0 {
            let text = format!("{}\x1b[J{SHOW_CURSOR}", self.home());
            self.write(&text);
            self.drawn = 0;
        }
    }

    /// Makes so much time pass since the last line.
    #[cfg(test)]
    pub(super) fn let_pass(&mut self, time: Duration) {
        self.last = self.last.map(|last| last - time);
    }

    /// To the first line on the screen.
    fn home(&self) -> String {
        format!("\r\x1b[{}A", self.drawn)
    }

    fn write(&mut self, text: &str) {
        let written = self.out.write_all(text.as_bytes());
        drop(written.and_then(|()| self.out.flush()));
    }
}

impl<W: Write> Drop for Display<W> {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_its_cursor_and_its_lines_back() {
        let mut out = Vec::new();
        let mut display = Display::new(&mut out, || Some(Size { columns: 60, rows: 10 }));
        display.redraw(&["one".to_owned(), "two".to_owned()]);
        drop(display);
        let text = String::from_utf8(out).expect("what is shown is text");
        assert_eq!(
            text, "\x1b[?25lone\x1b[K\ntwo\x1b[K\n\x1b[J\r\x1b[2A\x1b[J\x1b[?25h",
            "the lines, and back to the first"
        );
    }

    #[test]
    fn redraws_are_few_and_the_first_line_of_a_log_comes_late() {
        let due = |size: fn() -> Option<Size>| {
            let mut display = Display::new(Vec::new(), size);
            (0..1000).filter(|_| display.is_due()).count()
        };
        assert!((1..=4).contains(&due(|| Some(Size { columns: 60, rows: 10 }))));
        assert_eq!(due(|| None), 0);
    }
}
