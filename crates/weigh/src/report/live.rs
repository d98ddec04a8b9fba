//! The view while measuring: every row's interval as it shrinks, and the time left.
//!
//! On a terminal it redraws itself in place; elsewhere it writes a line when a row has its verdict
//! and now and then one of progress. It goes to stderr, so that the report alone is on stdout.
//! A stderr that cannot be written must not stop an experiment: such errors are dropped.

use std::io::{self, Stderr, Write};
use std::time::{Duration, Instant};

use super::countdown::Countdown;
use super::live_frame as frame;
use super::live_view::{LiveRow, RowProgress, Size, Stage, View};
use crate::format;
use crate::printable;

/// Redrawing costs CPU time that the workloads should have.
const REDRAW_EVERY: Duration = Duration::from_millis(200);
const REPORT_EVERY: Duration = Duration::from_secs(10);

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";

/// The live view; dropping it takes it off the screen and gives the cursor back.
pub struct Live<W: Write = Stderr> {
    out: W,
    /// Asked before every redraw, since windows change their size; `None` is no terminal.
    size: fn() -> Option<Size>,
    view: View,
    countdown: Countdown,
    /// Lines of the frame that is on the screen.
    drawn: usize,
    last: Option<Instant>,
}

impl Live {
    /// A view on stderr.
    pub fn new(rows: Vec<LiveRow>, margin_pct: f64, budget: Duration, colour: bool) -> Live {
        Live::on(io::stderr(), stderr_size, rows, margin_pct, budget, colour)
    }
}

impl<W: Write> Live<W> {
    fn on(
        out: W,
        size: fn() -> Option<Size>,
        rows: Vec<LiveRow>,
        margin_pct: f64,
        budget: Duration,
        colour: bool,
    ) -> Live<W> {
        let view = View {
            rows,
            margin_pct,
            budget,
            elapsed: Duration::ZERO,
            left: None,
            current: None,
            colour,
        };
        Live { out, size, view, countdown: Countdown::new(budget), drawn: 0, last: None }
    }

    /// Takes what is now known of a row; a number that is no row is ignored.
    pub fn update(&mut self, row: usize, progress: RowProgress) {
        let Some(row) = self.view.rows.get_mut(row) else {
            return;
        };
        // A verdict may be taken back and come again while a row is still measured: said once is enough.
        let news = progress.stage != Stage::Measuring && row.said.as_ref() != Some(&progress.stage);
        row.progress = progress;
        if news && (self.size)().is_none() {
            row.said = Some(row.progress.stage.clone());
            let line = frame::verdict_line(row, self.view.elapsed, self.view.margin_pct);
            self.write(&printable::text(&format!("{line}\n")));
        }
        self.show();
    }

    /// Takes which row is measured from now on.
    pub fn begins(&mut self, row: usize) {
        self.view.current = Some(row);
        self.show();
    }

    /// Takes the time measured so far, and the estimate of the time left.
    pub fn clock(&mut self, elapsed: Duration, left: Option<Duration>) {
        self.view.elapsed = elapsed;
        self.view.left = left.map(|left| self.countdown.left(elapsed, left));
        self.show();
    }

    fn show(&mut self) {
        let size = (self.size)();
        let every = if size.is_some() { REDRAW_EVERY } else { REPORT_EVERY };
        if self.last.is_some_and(|last| last.elapsed() < every) {
            return;
        }
        // Nothing is known at the start that would be worth a line in a log.
        let first = self.last.replace(Instant::now()).is_none();
        match size {
            Some(size) => self.redraw(size),
            None if first => {}
            None => {
                let elapsed = format::seconds(self.view.elapsed.as_secs_f64());
                let line = format!("[{elapsed}] {}\n", frame::status(&self.view));
                self.write(&line);
            }
        }
    }

    fn redraw(&mut self, size: Size) {
        let lines = frame::lines(&self.view, size);
        let mut text = if self.drawn == 0 { HIDE_CURSOR.to_owned() } else { self.home() };
        for line in &lines {
            // Each line erases what was to its right; the last one erases what was below.
            text += &format!("{}\x1b[K\n", printable::styled(line));
        }
        text += "\x1b[J";
        self.drawn = lines.len();
        self.write(&text);
    }

    /// To the first line of the frame on the screen.
    fn home(&self) -> String {
        format!("\r\x1b[{}A", self.drawn)
    }

    fn write(&mut self, text: &str) {
        let written = self.out.write_all(text.as_bytes());
        drop(written.and_then(|()| self.out.flush()));
    }
}

impl<W: Write> Drop for Live<W> {
    fn drop(&mut self) {
        if self.drawn > 0 {
            let text = format!("{}\x1b[J{SHOW_CURSOR}", self.home());
            self.write(&text);
        }
    }
}

/// The size of the terminal that stderr is, if it is one.
pub fn stderr_size() -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    let or = |value: u16, usual: usize| if value == 0 { usual } else { usize::from(value) };
    Some(Size { columns: or(size.ws_col, 80), rows: or(size.ws_row, 24) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use paired::Verdict;

    fn rows(count: usize) -> Vec<LiveRow> {
        let row = |i| LiveRow::new(format!("w{i}"), "ops/s".to_owned(), "audit".to_owned());
        (0..count).map(row).collect()
    }

    fn slower() -> RowProgress {
        RowProgress {
            effect_pct: Some(-6.1),
            low_pct: Some(-9.7),
            high_pct: Some(-3.5),
            pairs: 8,
            stage: Stage::Decided { verdict: Verdict::Slower, within_margin: false },
            is_narrowing: false,
        }
    }

    fn run(size: fn() -> Option<Size>, act: impl FnOnce(&mut Live<&mut Vec<u8>>)) -> String {
        let mut out = Vec::new();
        let mut live = Live::on(&mut out, size, rows(12), 1.0, Duration::from_secs(60), false);
        act(&mut live);
        drop(live);
        String::from_utf8(out).expect("a view is text")
    }

    #[test]
    fn without_a_terminal_each_verdict_is_a_line_and_nothing_else() {
        let text = run(
            || None,
            |live| {
                live.clock(Duration::from_millis(800), None);
                live.update(3, slower());
                live.update(3, slower());
                live.update(99, slower());
                live.update(4, RowProgress::default());
            },
        );
        assert_eq!(text, "[800 ms] w3 under audit: −6.10 % [−9.70, −3.50], slower, 8 pairs\n");
    }

    #[test]
    fn a_terminal_gets_its_cursor_and_its_lines_back() {
        let size = || Some(Size { columns: 60, rows: 10 });
        let text = run(size, |live| live.clock(Duration::from_secs(1), None));
        assert!(text.starts_with(HIDE_CURSOR) && text.ends_with(SHOW_CURSOR));
        let frame = text.matches('\n').count();
        assert!(text.contains(&format!("\r\x1b[{frame}A\x1b[J")), "{text:?}");
    }

    #[test]
    fn redraws_are_few() {
        let size = || Some(Size { columns: 60, rows: 10 });
        let text = run(size, |live| {
            for i in 0..1000 {
                live.clock(Duration::from_millis(i), None);
            }
        });
        assert!(text.matches("\x1b[J").count() <= 4);
    }
}
