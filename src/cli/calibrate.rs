//! `weigh calibrate`: what does this machine call different that is the same, and how much must a
//! change cost before it is seen here?

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::audience::Terminal;
use super::compare::listen_for_signals;
use super::{Context, INTERRUPTED, output, value};
use crate::experiment::calibration::{Calibration, WorkloadNoise, history};
use crate::experiment::request::{Plan, Request};
use crate::experiment::session::execute;
use crate::machine::Facts;
use crate::report::format;
use crate::report::summary::State;
use crate::report::table::{Align, Table};
use crate::report::text::{emphasise, wrap};
use crate::shell::command_line;
use crate::stats::binomial::Tally;
use crate::stats::design::Design;
use crate::store::record::Kind;
use crate::workload::suite::{self, FromFile};

const EXAMPLES: &str = "\
Examples:
  weigh calibrate
      The suite quick, for a minute: noise and the smallest effect of every workload.
  weigh calibrate -w unixbench --repeat 20 --budget 60s
      Twenty experiments with nothing to find: how many find something?
  weigh calibrate -w getppid -w stat --budget 20s --json calibration.json";

/// Weigh nothing: how noisy is this machine, and what will it show?
///
/// Compares every workload with itself, as `weigh compare none --no-detail` does. Whatever comes out
/// slower or faster is a false alarm. Calibrations of the same machine (host name, CPU, kernel) add
/// up, and the next `weigh compare` expects the noise that they found.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Calibrate {
    /// A workload, a suite, or a file with a suite; may be repeated [default: quick]
    #[arg(short, long = "workload", value_name = "WORKLOAD|SUITE")]
    workloads: Vec<String>,
    /// This many experiments, one after the other
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    repeat: u32,
    /// Each experiment ends after this time, whether or not every row has its verdict
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        value_parser = value::duration,
        allow_hyphen_values = true
    )]
    budget: Duration,
    /// Decides the order of everything in the first experiment; the next has the next number
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write the results as JSON; `-` is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Calibrate {
    pub fn run(mut self, context: &Context) -> Result<u8, String> {
        if self.workloads.is_empty() {
            self.workloads.push("quick".into());
        }
        let own = suite::from_files(&self.workloads)?;
        let store = context.open_store()?;
        let interrupted = listen_for_signals()?;
        let mut audience =
            Terminal { color: context.color, margin_pct: 1.0, budget: self.budget, sets: 1 };
        let (mut last, mut is_as_before) = (State::Complete, true);
        let mut failed = BTreeSet::new();
        for number in 1..=self.repeat {
            if self.repeat > 1 {
                output::note(&format!("Experiment {number} of {}", self.repeat));
            }
            let done = execute(&self.request(number, &own), &store, &mut audience, &interrupted)?;
            last = done.state;
            is_as_before &= output::tell_what_is_left(done.left.as_deref());
            let stored = store.load(&done.id).map_err(|error| error.to_string())?;
            failed.extend(stored.failures.into_iter().map(|failure| failure.workload));
            if last != State::Complete {
                break;
            }
        }
        let all = history(&store, &Facts::read(), None)?;
        let calibration = Calibration::of(&all)
            .ok_or("the experiment failed: `weigh show` tells why; there is no calibration")?;
        if let Some(path) = &self.json {
            output::write_report(path, &calibration.json())?;
        }
        if self.json.as_deref() != Some(Path::new("-")) {
            let colour = output::wants_colour(context.color, &std::io::stdout());
            output::print(&render(&calibration, output::width(), colour))?;
        }
        for workload in &failed {
            output::problem(&format!("{workload} failed; `weigh show` tells why"));
        }
        Ok(match last {
            State::Failed => super::ERROR,
            State::Interrupted => INTERRUPTED,
            _ if !is_as_before || !failed.is_empty() => super::ERROR,
            _ => 0,
        })
    }

    fn request(&self, number: u32, suites: &[FromFile]) -> Request {
        let seed = match self.seed {
            Some(first) => first.wrapping_add(u64::from(number - 1)),
            None => rand::random::<u32>().into(),
        };
        let mut words: Vec<String> = ["weigh", "calibrate"].map(String::from).to_vec();
        words.extend(self.workloads.iter().flat_map(|name| ["-w".into(), name.clone()]));
        words.extend(["--budget".into(), format!("{}s", self.budget.as_secs())]);
        words.extend(["--seed".into(), seed.to_string()]);
        Request {
            kind: Kind::Calibrate,
            arms: vec!["none".into(); 2],
            workloads: self.workloads.clone(),
            suites: suites.to_vec(),
            command: None,
            copies: vec![1],
            again: command_line(words.iter().map(String::as_str)),
            seed,
            budget: self.budget,
            margin: 0.01,
            design: Design::default(),
            sample_ms: None,
            timeout: None,
            plan: Plan::Compare { sets: 1 },
            detail: false,
        }
    }
}

fn render(calibration: &Calibration, width: usize, colour: bool) -> String {
    let mut lines = Vec::new();
    for sentence in [sentence(&calibration.workloads), alarms(calibration)] {
        lines.extend(wrap(&sentence, width, 0));
    }
    lines.push(String::new());
    lines.extend(table(&calibration.workloads).to_lines(width));
    lines.push(String::new());
    let rows = &calibration.row_alarms;
    let notes = [
        "noise: standard deviation of one pair (1.4826 · MAD of its log-ratios). shown in …: the \
         smallest effect that half of all experiments show when this workload is measured for so \
         long."
            .to_owned(),
        format!(
            "Each row by itself: {} of {} raised a false alarm{}.",
            rows.alarms,
            rows.of,
            judged(rows, calibration.alpha)
        ),
        format!(
            "Machine: {}, {}, Linux {}. `weigh compare` expects this noise from now on.",
            calibration.hostname, calibration.cpu_model, calibration.kernel
        ),
    ];
    for note in notes {
        lines.extend(wrap(&note, width, 0));
    }
    emphasise(&(lines.join("\n") + "\n"), colour)
}

/// What it will show in a minute: the best and the worst workload.
fn sentence(workloads: &[WorkloadNoise]) -> String {
    let mut shown: Vec<(f64, &str)> = workloads
        .iter()
        .filter_map(|row| Some((row.smallest_effect_pct[1]?, row.workload.as_str())))
        .collect();
    shown.sort_by(|a, b| a.0.total_cmp(&b.0));
    match &shown[..] {
        [] => "Too few pairs were measured to tell what this machine shows: give it a larger \
               --budget."
            .to_owned(),
        [(only, name)] => {
            format!("In a minute this machine shows a change of {} in `{name}`.", pct(*only))
        }
        [(least, best), .., (most, worst)] => format!(
            "In a minute for one workload this machine shows a change of {} in `{best}`, and of {} \
             in `{worst}`{}.",
            pct(*least),
            pct(*most),
            if shown.len() > 2 { "; the others lie between" } else { "" }
        ),
    }
}

fn alarms(calibration: &Calibration) -> String {
    let tally = &calibration.experiment_alarms;
    format!(
        "{} of {} raised a false alarm{}.",
        tally.alarms,
        format::plural(tally.of, "experiment"),
        judged(tally, calibration.alpha)
    )
}

/// The number of alarms against the promised rate.
fn judged(tally: &Tally, alpha: f64) -> String {
    let promise = format::margin(100.0 * alpha);
    if tally.is_within() {
        format!(", and chance alone explains up to {} where {promise} is promised", tally.allowed)
    } else {
        format!(
            ", more than the {} that chance explains where {promise} is promised (probability {}): \
             do not believe small differences on this machine",
            tally.allowed,
            format::unsigned(tally.chance)
        )
    }
}

fn table(workloads: &[WorkloadNoise]) -> Table {
    let columns = vec![
        ("workload", Align::Left),
        ("noise", Align::Right),
        ("a pair takes", Align::Right),
        ("shown in 10 s", Align::Right),
        ("1 min", Align::Right),
        ("5 min", Align::Right),
        ("pairs", Align::Right),
        ("false alarms", Align::Right),
    ];
    let rows = workloads
        .iter()
        .map(|row| {
            let mut cells =
                vec![row.workload.clone(), pct(row.noise_pct), format::seconds(row.pair_s)];
            let shown = |effect: Option<f64>| effect.map_or_else(|| "–".to_owned(), pct);
            cells.extend(row.smallest_effect_pct.map(shown));
            cells.push(format::integer(row.pairs as u64));
            cells.push(format!("{} of {}", row.alarms, row.experiments));
            cells
        })
        .collect();
    Table::new(columns, rows)
}

fn pct(value: f64) -> String {
    format!("{} %", format::unsigned(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(alarms: usize, allowed: usize) -> Calibration {
        let row = |workload: &str, shown: [Option<f64>; 3]| WorkloadNoise {
            workload: workload.into(),
            noise_pct: 1.4,
            pair_s: 0.18,
            smallest_effect_pct: shown,
            experiments: 20,
            pairs: 640,
            alarms,
        };
        let tally = |of| Tally { alarms, of, allowed, chance: 0.0159 };
        Calibration {
            schema: "",
            hostname: "scales".into(),
            cpu_model: "a CPU".into(),
            kernel: "6.1".into(),
            alpha: 0.05,
            experiments: vec!["abcdef".into(); 20],
            workloads: vec![
                row("fsdisk", [None, Some(4.2), Some(1.9)]),
                row("getppid", [Some(0.9), Some(0.31), Some(0.14)]),
            ],
            experiment_alarms: tally(20),
            row_alarms: tally(40),
        }
    }

    #[test]
    fn it_says_what_is_shown_and_that_the_promise_is_kept() {
        let text = render(&calibration(1, 3), 100, false).replace('\n', " ");
        assert!(text.contains("a change of 0.31 % in `getppid`, and of 4.20 %"), "{text}");
        assert!(text.contains("1 of 20 experiments raised a false alarm, and chance"), "{text}");
        assert!(text.contains('–') && !text.contains("do not believe"), "{text}");
    }

    #[test]
    fn too_many_false_alarms_are_a_warning() {
        let text = render(&calibration(4, 3), 100, false).replace('\n', " ");
        assert!(text.contains("more than the 3") && text.contains("do not believe"), "{text}");
    }
}
