//! Display for a person at the terminal while an experiment runs.

use std::io;
use std::num::NonZero;
use std::time::Duration;

use clap::ColorChoice;

use super::output;
use paired::Verdict;
use weigh_engine::platform::Observer;
use weigh_engine::request::{Printout, ProgressSink, Taken};
use weigh_engine::row::RowState;
use weigh_engine::run_progress::Progress;
use weigh_model::format;
use weigh_model::ids::SetId;
use weigh_model::result::work_name::WorkName;
use weigh_report::activity::Activity;
use weigh_report::display::stderr_size;
use weigh_report::live::Live;
use weigh_report::live_view::{LiveRow, RowProgress, Stage};
use weigh_report::text::wrap;
use weigh_verdict::log_ratio::{bound, percent, preliminary};

/// A person, or a log.
pub struct Terminal {
    color: ColorChoice,
    margin_pct: f64,
    sets: usize,
    /// Line of the step that is under way, but for the pairs of a set, which have a view of their own.
    activity: Activity,
}

impl Terminal {
    /// Creates the display of pairs, in this number of sets.
    pub fn of_pairs(color: ColorChoice, margin_pct: f64, sets: usize) -> Terminal {
        Terminal { color, margin_pct, sets, activity: Activity::on_stderr() }
    }

    /// Creates the display of a run of one arm.
    pub fn of_run(color: ColorChoice) -> Terminal {
        Terminal::of_pairs(color, 0.0, 1)
    }

    /// A sentence, which stays, above what is redrawn.
    fn note(&mut self, text: &str) {
        self.activity.above(|| output::note(text));
    }
}

impl ProgressSink for Terminal {
    fn announce(&mut self, sentence: &str) {
        self.note(&wrapped(sentence));
    }

    fn set_begins(
        &mut self,
        set: SetId,
        deadline: Duration,
        rows: &[(String, String, String)],
    ) -> Box<dyn Observer + '_> {
        self.activity.ends();
        if self.sets > 1 {
            self.note(&format!("Set {} of {}", set.0 + 1, self.sets));
        }
        let rows = rows
            .iter()
            .cloned()
            .map(|(workload, unit, treatment)| LiveRow::new(workload, unit, treatment))
            .collect();
        let colour = output::wants_colour(self.color, &io::stderr());
        let live = Live::new(rows, self.margin_pct, deadline, colour);
        Box::new(Watching { live, end: None })
    }

    fn begins(&mut self, step: &str) {
        self.activity.begins(step);
    }

    fn waits(&mut self) {
        match stderr_size() {
            Some(_) => self.activity.begins("waiting for another experiment"),
            None => self.activity.ends(),
        }
    }

    fn ends(&mut self) {
        self.activity.ends();
    }

    fn shows(&mut self, printed: &Printout) {
        let Printout { arm, stdout, stderr } = printed;
        let arm = format::label(arm);
        for (stream, text) in [("stdout", stdout), ("stderr", stderr)] {
            match text.trim_end() {
                "" => self.note(&format!("{arm}: nothing on {stream}")),
                text => self.note(&format!("{arm}: on {stream}\n{text}")),
            }
        }
    }

    fn took(&mut self, taken: &Taken) {
        let left = |progress: &Progress| format::clock(progress.left().as_secs_f64());
        match taken {
            Taken::Sample { work, pass, passes, .. } if pass == passes => {
                let noun = if *passes == 1 { "pass" } else { "passes" };
                self.activity.milestone(&format!("{work}: {passes} {noun}"));
            }
            Taken::Sample { work, pass, passes, progress } => {
                let (samples, left) = (progress.samples, left(progress));
                let of_samples = format::plural(progress.of_samples, "sample");
                let all = format!("{samples} of {of_samples}, about {left} left");
                self.activity.progress(all, &format!("{work} {pass}/{passes}"));
            }
            Taken::Cell { sweep, progress } if progress.samples == progress.of_samples => {
                let cells = format::plural(progress.samples, "cell");
                self.activity.milestone(&format!("sweep {sweep}: {cells}"));
            }
            Taken::Cell { sweep, progress } => {
                let (samples, left) = (progress.samples, left(progress));
                let cells = format::plural(progress.of_samples, "cell");
                let all = format!("{samples} of {cells}, about {left} left");
                self.activity.progress(all, &format!("sweep {sweep}"));
            }
            Taken::LoadPoint { name, jobs_per_min, is_fresh } => {
                let after = if *is_fresh { ", in a round" } else { "" };
                let line = format!("{}{}{after}", users(name), jobs(*jobs_per_min));
                self.activity.milestone(&line);
            }
            Taken::Searched { name, jobs_per_min } => {
                let arms = jobs_per_min.iter().zip(["without", "with"]);
                let said = arms.filter_map(|(rate, arm)| Some(format!("{} {arm}", jobs((*rate)?))));
                let said: Vec<String> = said.collect();
                self.activity.milestone(&format!("{}{}", users(name), said.join(", ")));
            }
        }
    }
}

fn users(name: &WorkName) -> String {
    let users = |users: NonZero<usize>| format!("{}: ", format::plural(users.get(), "user"));
    name.users().map_or_else(String::new, users)
}

fn jobs(per_min: f64) -> String {
    format!("{} jobs/min", format::rate(per_min, "jobs/min"))
}

/// The sentence in lines of the terminal, which would break its words.
fn wrapped(sentence: &str) -> String {
    let width = stderr_size().map_or(usize::MAX, |size| size.columns);
    wrap(sentence, width, 0).join("\n")
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

    fn pair(&mut self, row: usize, state: &RowState, elapsed: Duration) {
        self.live.update(row, progress(state));
        self.live.clock(elapsed, self.end.map(|end| end.saturating_sub(elapsed)));
    }

    fn round(&mut self, rows: &[RowState], elapsed: Duration, left: Option<Duration>) {
        for (index, row) in rows.iter().enumerate() {
            self.live.update(index, progress(row));
        }
        self.end = left.map(|left| elapsed + left);
        self.live.clock(elapsed, left);
    }

    fn announce(&mut self, sentence: &str) {
        self.live.above(|| output::note(&wrapped(sentence)));
    }
}

fn progress(row: &RowState) -> RowProgress {
    let judgement = &row.judgement;
    let is_decided = judgement.verdict != Verdict::Inconclusive;
    RowProgress {
        is_narrowing: row.failure.is_none() && is_decided && !judgement.precise,
        effect_pct: (row.betting.pairs() > 0).then(|| percent(judgement.estimate)),
        low_pct: bound(judgement.interval.low),
        high_pct: bound(judgement.interval.high),
        preliminary: preliminary(&row.betting, judgement),
        pairs: row.betting.pairs(),
        stage: match (&row.failure, judgement.verdict) {
            (Some(reason), _) => Stage::Failed(reason.clone()),
            (None, Verdict::Inconclusive) => Stage::Measuring,
            (None, verdict) => Stage::Decided { verdict, within_margin: judgement.within_margin },
        },
    }
}
