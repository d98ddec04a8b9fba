//! The view while measuring: every row's interval as it shrinks, and the time left.
//!
//! On a terminal it redraws itself in place, now and then and when a row has its verdict. Elsewhere it
//! writes a line when a row has its verdict, and now and then one of progress.

use std::io::{Stderr, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::countdown::Countdown;
use super::display::Display;
use super::live_frame as frame;
use super::live_view::{LiveRow, RowProgress, Stage, View};
use super::pulse::{self, BEAT, lock};
use weigh_model::format;

/// The live view; dropping it takes it off the screen.
pub struct Live<W: Write = Stderr> {
    /// Shared with the thread that shows it while a sample lasts.
    shown: Arc<Mutex<Shown<W>>>,
}

struct Shown<W: Write> {
    display: Display<W>,
    view: View,
    countdown: Countdown,
    /// When `view.elapsed` was true.
    clock: Instant,
    is_over: bool,
}

/// The thread may hold what is shown for a moment longer, and draws nothing any more.
impl<W: Write> Drop for Live<W> {
    fn drop(&mut self) {
        let mut shown = lock(&self.shown);
        shown.is_over = true;
        shown.display.clear();
    }
}

impl Live {
    /// A view on stderr, which a thread shows again once a second.
    pub fn new(rows: Vec<LiveRow>, margin_pct: f64, budget: Duration, colour: bool) -> Live {
        let live = Live::on(Display::on_stderr(), rows, margin_pct, budget, colour);
        pulse::start(&live.shown, Shown::go_on);
        live
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
        let (countdown, clock, is_over) = (Countdown::new(budget), Instant::now(), false);
        Live { shown: Arc::new(Mutex::new(Shown { display, view, countdown, clock, is_over })) }
    }

    /// Takes what is now known of a row; a number that is no row is ignored.
    pub fn update(&mut self, row: usize, progress: RowProgress) {
        lock(&self.shown).update(row, progress);
    }

    /// Takes which row is measured from now on.
    pub fn begins(&mut self, row: usize) {
        let mut shown = lock(&self.shown);
        shown.view.current = Some(row);
        shown.show();
    }

    /// Has something written above the view.
    pub fn above(&mut self, write: impl FnOnce()) {
        let mut shown = lock(&self.shown);
        shown.display.clear();
        write();
        shown.show();
    }

    /// Takes the time measured so far, and the estimate of the time left.
    pub fn clock(&mut self, elapsed: Duration, left: Option<Duration>) {
        lock(&self.shown).clock(elapsed, left);
    }
}

impl<W: Write> Shown<W> {
    fn update(&mut self, row: usize, progress: RowProgress) {
        let Some(row) = self.view.rows.get_mut(row) else {
            return;
        };
        // A verdict may be taken back and come again while a row is still measured: said once is enough.
        let news = progress.stage != Stage::Measuring && row.said.as_ref() != Some(&progress.stage);
        row.progress = progress;
        if news {
            row.said = Some(row.progress.stage.clone());
            match self.display.size() {
                Some(_) => self.display.make_due(),
                None => {
                    let line = frame::verdict_line(row, self.view.elapsed, self.view.margin_pct);
                    self.display.log(&line);
                }
            }
        }
        self.show();
    }

    fn clock(&mut self, elapsed: Duration, left: Option<Duration>) {
        self.clock = Instant::now();
        self.view.elapsed = elapsed;
        self.view.left = left.map(|left| self.countdown.left(elapsed, left));
        self.show();
    }

    /// Shows the time that has passed since the last news.
    fn go_on(&mut self) {
        let since = self.clock.elapsed();
        if self.is_over || since < BEAT {
            return;
        }
        self.clock += since;
        self.view.elapsed += since;
        self.view.left = self.view.left.map(|left| left.saturating_sub(since));
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
    use super::super::display::Size;
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

    #[test]
    fn a_terminal_shows_a_verdict_at_once() {
        let mut out = Vec::new();
        let display = Display::new(&mut out, || Some(Size { columns: 100, rows: 20 }));
        let mut live = Live::on(display, rows(1), 1.0, Duration::from_secs(60), false);
        live.update(0, RowProgress { pairs: 7, ..RowProgress::default() });
        live.update(0, slower());
        drop(live);
        let text = String::from_utf8(out).expect("a view is text");
        assert!(text.contains("−6.10 %"), "it waited for the next redraw: {text}");
    }

    #[test]
    fn the_clock_goes_on_while_a_sample_lasts() {
        let display = Display::new(Vec::new(), || Some(Size { columns: 60, rows: 10 }));
        let mut live = Live::on(display, rows(1), 1.0, Duration::from_secs(60), false);
        live.clock(Duration::from_secs(5), Some(Duration::from_secs(20)));
        let mut shown = lock(&live.shown);
        shown.go_on();
        assert_eq!(shown.view.elapsed, Duration::from_secs(5), "there was news just now");
        let left = shown.view.left.unwrap();
        shown.clock -= Duration::from_secs(7);
        shown.go_on();
        assert_eq!(shown.view.elapsed.as_secs(), 12);
        assert_eq!(left.as_secs() - shown.view.left.unwrap().as_secs(), 8, "7 s and a moment");
    }
}
