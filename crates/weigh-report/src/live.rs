//! The view while measuring: every row's interval as it shrinks, and the time left.
//!
//! On a terminal it redraws itself in place; elsewhere it writes a line when a row has its verdict
//! and now and then one of progress.

use std::io::{Stderr, Write};
use std::time::Duration;

use super::countdown::Countdown;
use super::display::Display;
use super::live_frame as frame;
use super::live_view::{LiveRow, RowProgress, Stage, View};
use weigh_model::format;

/// The live view; dropping it takes it off the screen.
pub struct Live<W: Write = Stderr> {
    display: Display<W>,
    view: View,
    countdown: Countdown,
}

impl Live {
    /// A view on stderr.
    pub fn new(rows: Vec<LiveRow>, margin_pct: f64, budget: Duration, colour: bool) -> Live {
        Live::on(Display::on_stderr(), rows, margin_pct, budget, colour)
    }
}

impl<W: Write> Live<W> {
    fn on(
        display: Display<W>,
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
        Live { display, view, countdown: Countdown::new(budget) }
    }

    /// Takes what is now known of a row; a number that is no row is ignored.
    pub fn update(&mut self, row: usize, progress: RowProgress) {
        let Some(row) = self.view.rows.get_mut(row) else {
            return;
        };
        // A verdict may be taken back and come again while a row is still measured: said once is enough.
        let news = progress.stage != Stage::Measuring && row.said.as_ref() != Some(&progress.stage);
        row.progress = progress;
        if news && self.display.size().is_none() {
            row.said = Some(row.progress.stage.clone());
            let line = frame::verdict_line(row, self.view.elapsed, self.view.margin_pct);
            self.display.log(&line);
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
        if !self.display.is_due() {
            return;
        }
        match self.display.size() {
            Some(size) => self.display.redraw(&frame::lines(&self.view, size)),
            None => {
                let elapsed = format::seconds(self.view.elapsed.as_secs_f64());
                self.display.log(&format!("[{elapsed}] {}", frame::status(&self.view)));
            }
        }
    }
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
            preliminary: None,
            pairs: 8,
            stage: Stage::Decided { verdict: Verdict::Slower, within_margin: false },
            is_narrowing: false,
        }
    }

    fn without_terminal(act: impl FnOnce(&mut Live<&mut Vec<u8>>)) -> String {
        let mut out = Vec::new();
        let display = Display::new(&mut out, || None);
        let mut live = Live::on(display, rows(12), 1.0, Duration::from_secs(60), false);
        act(&mut live);
        drop(live);
        String::from_utf8(out).expect("a view is text")
    }

    #[test]
    fn without_a_terminal_each_verdict_is_a_line_and_nothing_else() {
        let text = without_terminal(|live| {
            live.clock(Duration::from_millis(800), None);
            live.update(3, slower());
            live.update(3, slower());
            live.update(99, slower());
            live.update(4, RowProgress::default());
        });
        assert_eq!(text, "[800 ms] w3 under audit: −6.10 % [−9.70, −3.50], slower, 8 pairs\n");
    }
}
