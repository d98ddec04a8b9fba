//! Line on stderr that shows what a command is doing: the step that is under way, how long it has lasted, and
//! how far all of it is.

use std::io::{Stderr, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::display::Display;
use super::pulse::{self, BEAT, lock};
use weigh_model::format;

/// The line of the present step; dropping it takes the line off the screen.
pub struct Activity<W: Write = Stderr> {
    /// Shared with the thread that shows it while a step lasts.
    shown: Arc<Mutex<Shown<W>>>,
}

struct Shown<W: Write> {
    display: Display<W>,
    /// The step that is under way, and since when.
    step: Option<(String, Instant)>,
    /// How far all steps are.
    progress: Option<String>,
    /// When a line was last written.
    last: Instant,
}

/// The thread may hold what is shown for a moment longer, and draws nothing any more.
impl<W: Write> Drop for Activity<W> {
    fn drop(&mut self) {
        self.ends();
    }
}

impl Activity {
    /// A line on stderr, which a thread shows again once a second.
    pub fn on_stderr() -> Activity {
        let activity = Activity::on(Display::on_stderr());
        pulse::start(&activity.shown, Shown::beat);
        activity
    }
}

impl<W: Write> Activity<W> {
    fn on(display: Display<W>) -> Activity<W> {
        let (step, progress, last) = (None, None, Instant::now());
        Activity { shown: Arc::new(Mutex::new(Shown { display, step, progress, last })) }
    }

    /// A step begins. It is shown if it lasts, or if nothing else was shown for a while.
    pub fn begins(&mut self, step: &str) {
        let mut shown = lock(&self.shown);
        shown.step = Some((step.to_owned(), Instant::now()));
        shown.beat();
    }

    /// Shows how far all steps are, with the last one that ended, if it is time for that.
    pub fn progress(&mut self, progress: String, ended: &str) {
        let mut shown = lock(&self.shown);
        if shown.display.progress(&format!("{progress} · {ended}")) {
            shown.last = Instant::now();
        }
        shown.progress = Some(progress);
    }

    /// Shows that something was reached, which a log has in any case.
    pub fn milestone(&mut self, line: &str) {
        let mut shown = lock(&self.shown);
        shown.display.milestone(line);
        shown.progress = None;
        shown.last = Instant::now();
    }

    /// Has something written above the line.
    pub fn above(&mut self, write: impl FnOnce()) {
        let mut shown = lock(&self.shown);
        shown.display.clear();
        write();
    }

    /// Nothing is under way any more: the line is taken away until the next step begins.
    pub fn ends(&mut self) {
        let mut shown = lock(&self.shown);
        (shown.step, shown.progress) = (None, None);
        shown.display.clear();
    }
}

impl<W: Write> Shown<W> {
    /// Shows the step with the time that it has lasted, unless something else was shown just now.
    fn beat(&mut self) {
        if self.last.elapsed() < BEAT {
            return;
        }
        let Some((step, began)) = &self.step else { return };
        let line = line(self.progress.as_deref(), step, began.elapsed());
        if self.display.progress(&line) {
            self.last = Instant::now();
        }
    }
}

/// A step that began just now has no time yet.
fn line(progress: Option<&str>, step: &str, lasted: Duration) -> String {
    let progress = progress.map_or(String::new(), |progress| format!("{progress} · "));
    match lasted < BEAT {
        true => format!("{progress}{step}"),
        false => format!("{progress}{step}, for {}", format::clock(lasted.as_secs_f64())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::display::Size;
    use super::*;

    /// Text on a terminal, or in a log, after these acts.
    fn written(
        size: fn() -> Option<Size>,
        act: impl FnOnce(&mut Activity<&mut Vec<u8>>),
    ) -> String {
        let mut out = Vec::new();
        let mut activity = Activity::on(Display::new(&mut out, size));
        act(&mut activity);
        drop(activity);
        String::from_utf8(out).expect("a line is text")
    }

    /// Makes so much time pass, and then lets the thread look.
    fn wait(activity: &Activity<&mut Vec<u8>>, seconds: u64) {
        let mut shown = lock(&activity.shown);
        let time = Duration::from_secs(seconds);
        shown.last -= time;
        shown.display.let_pass(time);
        if let Some((_, began)) = &mut shown.step {
            *began -= time;
        }
        shown.beat();
    }

    fn terminal() -> Option<Size> {
        Some(Size { columns: 60, rows: 10 })
    }

    #[test]
    fn a_step_that_lasts_is_shown_with_its_time() {
        let text = written(terminal, |activity| {
            activity.begins("applying `vm:selinux`");
            wait(activity, 7);
            activity.begins("measuring getppid");
            activity.progress("3 of 9 samples".into(), "getppid 1/3");
            wait(activity, 65);
        });
        assert!(text.contains("applying `vm:selinux`, for 7 s\x1b[K"), "{text:?}");
        let measuring = "3 of 9 samples · measuring getppid, for 1 min 05 s\x1b[K";
        assert!(text.contains(measuring), "{text:?}");
    }

    #[test]
    fn short_steps_one_after_the_other_are_shown_too() {
        let text = written(terminal, |activity| {
            for number in 1..=30 {
                activity.begins(&format!("trying: {number} of 30"));
                let mut shown = lock(&activity.shown);
                shown.last -= Duration::from_millis(100);
                shown.display.let_pass(Duration::from_millis(100));
            }
        });
        assert_eq!(text.matches("trying: ").count(), 2, "{text:?}");
    }

    #[test]
    fn a_log_has_a_line_every_ten_seconds_and_none_when_nothing_is_under_way() {
        let text = written(
            || None,
            |activity| {
                activity.begins("sizing the transfers");
                (0..35).for_each(|_| wait(activity, 1));
                activity.ends();
                (0..35).for_each(|_| wait(activity, 1));
            },
        );
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.starts_with("sizing the transfers, for "), "{text}");
    }
}
