//! What a person at the terminal sees while an experiment runs.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::ColorChoice;

use super::output;
use crate::experiment::log_ratio::{bound, percent};
use crate::experiment::platform::Observer;
use crate::experiment::request::{Audience, Printout, Sampled};
use crate::experiment::row::Row;
use crate::experiment::run_progress::Progress;
use crate::format;
use crate::report::live::{Live, stderr_size};
use crate::report::live_view::{LiveRow, RowProgress, Stage};
use crate::report::text::wrap;
use crate::result::work_name::WorkName;
use paired::Verdict;

/// A person, or a log.
pub struct Terminal {
    pub color: ColorChoice,
    pub margin_pct: f64,
    pub budget: Duration,
    pub sets: usize,
}

impl Audience for Terminal {
    fn announce(&mut self, sentence: &str) {
        // A terminal would break the words.
        let width = stderr_size().map_or(usize::MAX, |size| size.columns);
        output::note(&wrap(sentence, width, 0).join("\n"));
    }

    fn set_begins(
        &mut self,
        set: usize,
        rows: &[(String, String, String)],
    ) -> Box<dyn Observer + '_> {
        if self.sets > 1 {
            output::note(&format!("Set {} of {}", set + 1, self.sets));
        }
        let rows = rows
            .iter()
            .cloned()
            .map(|(workload, unit, treatment)| LiveRow::new(workload, unit, treatment))
            .collect();
        let colour = output::wants_colour(self.color, &io::stderr());
        let live = Live::new(rows, self.margin_pct, self.budget, colour);
        Box::new(Watching { live, end: None })
    }

    fn shows(&mut self, printed: &Printout) {
        let Printout { arm, stdout, stderr } = printed;
        let arm = format::label(arm);
        for (stream, text) in [("stdout", stdout), ("stderr", stderr)] {
            match text.trim_end() {
                "" => output::note(&format!("{arm}: nothing on {stream}")),
                text => output::note(&format!("{arm}: on {stream}\n{text}")),
            }
        }
    }

    fn swept(&mut self, sweep: usize, progress: &Progress) {
        let (samples, of_samples) = (progress.samples, progress.of_samples);
        if let Some(size) = stderr_size() {
            let left = format::clock(progress.left().as_secs_f64());
            let line = format!("sweep {sweep}: {samples} of {of_samples} cells, about {left} left");
            let line = format::shorten(&line, size.columns.saturating_sub(1));
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        } else if samples == of_samples {
            output::note(&format!("sweep {sweep}: {}", format::plural(samples, "cell")));
        }
    }

    fn load_point(&mut self, name: &WorkName, jobs_per_min: f64, is_fresh: bool) {
        let users = name.users().map_or_else(String::new, |users| format::plural(users, "user"));
        let rate = format::rate(jobs_per_min, "jobs/min");
        let after = if is_fresh { ", at the peak" } else { "" };
        let line = format!("{users}: {rate} jobs/min{after}");
        match stderr_size() {
            Some(_) => drop(write!(io::stderr(), "\r\x1b[K{line}")),
            None => output::note(&line),
        }
    }

    fn searched(&mut self, name: &WorkName, jobs_per_min: [Option<f64>; 2]) {
        let users = name.users().map_or_else(String::new, |users| format::plural(users, "user"));
        let said = |(rate, arm): (Option<f64>, &str)| {
            Some(format!("{} jobs/min {arm}", format::rate(rate?, "jobs/min")))
        };
        let arms: Vec<String> =
            jobs_per_min.into_iter().zip(["without", "with"]).filter_map(said).collect();
        let line = format!("{users}: {}", arms.join(", "));
        match stderr_size() {
            Some(_) => drop(write!(io::stderr(), "\r\x1b[K{line}")),
            None => output::note(&line),
        }
    }

    fn sampled(&mut self, sample: &Sampled) {
        let Sampled { work, pass, passes, progress } = sample;
        if let Some(size) = stderr_size() {
            let (samples, of_samples) = (progress.samples, progress.of_samples);
            let left = format::clock(progress.left().as_secs_f64());
            let line = format!(
                "{samples} of {of_samples} samples, about {left} left · {} {pass}/{passes}",
                format::label(work)
            );
            // A line that is wrapped cannot be taken back.
            let line = format::shorten(&line, size.columns.saturating_sub(1));
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        } else if pass == passes {
            output::note(&format!("{work}: {passes} passes"));
        }
    }
}

impl Terminal {
    /// Takes the line of progress off the screen.
    pub fn end_of_samples(&self) {
        if io::stderr().is_terminal() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

struct Watching {
    live: Live,
    /// When it will probably end, from the last round.
    end: Option<Duration>,
}

impl Observer for Watching {
    fn begins(&mut self, row: usize) {
        self.live.begins(row);
    }

    fn pair(&mut self, row: usize, state: &Row, elapsed: Duration) {
        self.live.update(row, progress(state));
        self.live.clock(elapsed, self.end.map(|end| end.saturating_sub(elapsed)));
    }

    fn round(&mut self, rows: &[Row], elapsed: Duration, left: Option<Duration>) {
        for (index, row) in rows.iter().enumerate() {
            self.live.update(index, progress(row));
        }
        self.end = left.map(|left| elapsed + left);
        self.live.clock(elapsed, left);
    }
}

fn progress(row: &Row) -> RowProgress {
    let judgement = &row.judgement;
    let is_decided = judgement.verdict != Verdict::Inconclusive;
    RowProgress {
        is_narrowing: row.failure.is_none() && is_decided && !judgement.precise,
        effect_pct: (row.betting.pairs() > 0).then(|| percent(judgement.estimate)),
        low_pct: bound(judgement.interval.low),
        high_pct: bound(judgement.interval.high),
        pairs: row.betting.pairs(),
        stage: match (&row.failure, judgement.verdict) {
            (Some(reason), _) => Stage::Failed(reason.clone()),
            (None, Verdict::Inconclusive) => Stage::Measuring,
            (None, verdict) => Stage::Decided { verdict, within_margin: judgement.within_margin },
        },
    }
}
