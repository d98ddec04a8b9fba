//! `weigh calibrate`: what does this machine call different that is the same, and how much must a
//! change cost before it is seen here?

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::documents::Documents;
use super::interleaving::Interleaving;
use super::measuring::{Measuring, WorkloadOption, defaults_to};
use super::progress_sink::Terminal;
use super::reproduce::{OUTPUT, ReproduceCommand};
use super::{Context, INTERRUPTED, copies, exit_status, output};
use weigh_engine::calibration::planted::{planted_experiments, why_not_planted};
use weigh_engine::calibration::{calibration, history};
use weigh_engine::request::{Common, Compared, Comparison, Plan, ProgressSink, Request, Workloads};
use weigh_engine::session::execute;
use weigh_host::interruption::listen_for_signals;
use weigh_model::format;
use weigh_model::ids::ExperimentId;
use weigh_model::printable;
use weigh_model::record::Stored;
use weigh_model::result::summary::State;
use weigh_model::result::work_name::WorkName;
use weigh_model::workload::suite;
use weigh_report::calibration as calibration_text;
use weigh_store::Store;
use weigh_treatment::kind::planted;

const EXAMPLES: &str = "\
Examples:
  weigh calibrate
      Show the noise and the smallest detectable effect of the suite quick.
  weigh calibrate -w unixbench --repeat 20 --budget 60s
      Run 20 experiments without a difference: how many find one?
  weigh calibrate -w getppid -w stat --budget 20s --json calibration.json
  weigh calibrate -w getppid -w stat --planted 1% --repeat 20 --budget 20s
      Also run 20 experiments with 1 % more work in one arm: how many find it?
      And 20 with a cost in every fifth time slice: does a verdict miss it?

Exit status: 0 done, 2 error or no result, 130 interrupted.";

/// Measure the noise of this machine and the smallest change that it can detect (A/A test)
///
/// Compares every workload with itself, as `weigh compare none` does, but without latencies. Every verdict
/// `slower` or `faster` is a false alarm. Combines all calibrations of the same machine (host name, CPU,
/// kernel). The next `weigh compare` starts from the noise that they measured.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("budget", |budget| budget.help("Time of each experiment").default_value("60s")))]
#[command(mut_arg("timeout", |timeout| defaults_to(timeout, "2m plus twice the sample length")))]
pub struct CalibrateArgs {
    #[command(flatten)]
    wanted: WorkloadOption,
    /// Number of experiments, run one after the other, each with the next seed
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    repeat: u32,
    /// After each experiment, run two more in which one of the two arms (sides) has a known cost. In the
    /// first, it does this much more work, such as 1%. In the second, it always does 5% more work in total,
    /// all of it in every fifth time slice (docs/calibration.md)
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = planted::share_ppm,
        allow_hyphen_values = true
    )]
    planted: Option<u32>,
    #[command(flatten)]
    interleaving: Interleaving,
    #[command(flatten)]
    measuring: Measuring,
    /// Write the results as JSON; `-` is stdout
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    json: Option<PathBuf>,
}

impl CalibrateArgs {
    pub fn run(mut self, context: &Context) -> Result<u8, String> {
        let again = context.again.clone().with("--seed", self.measuring.fix_seed()?);
        let workloads = self.wanted.or_quick();
        if let Some(path) = &self.json {
            output::check_writable(path)?;
        }
        copies::refuse_many(&workloads)?;
        let suites = suite::from_files(&WorkName::names_of(&workloads)?)?;
        let workloads = Workloads { names: workloads, suites, ..Workloads::default() };
        let first = self.request(1, SecondArm::Identical, &workloads, &context.again)?;
        let store = context.open_store_for(&first)?;
        let made = self.make(context, &workloads, &store)?;
        if made.identical.is_empty() {
            return Ok(made.without_result());
        }
        let all = history(&store, &weigh_host::machine::facts::read(), None)?;
        let mut calibration = calibration(&all, &made.identical)
            .ok_or("the database lacks the experiments that were just measured")?;
        if let Some(ppm) = self.planted {
            let Made { planted, periodic, .. } = &made;
            calibration.planted =
                Some(planted_experiments(planted, periodic, ppm, calibration.alpha));
        }
        let mut documents = Documents::default();
        documents.json(self.json.as_deref(), || Ok(calibration.json()));
        let written = documents.print(|| {
            let colour = output::wants_colour(context.color, &std::io::stdout());
            let text = calibration_text::render(&calibration, output::room(), colour);
            format!("{text}again: {}\n", format::label(&again.to_string()))
        });
        made.tell_failures();
        made.not_kept.map_or(Ok(()), Err).and(written)?;
        let status = match made.last {
            Some(State::Failed) => super::ERROR,
            Some(State::Interrupted) => INTERRUPTED,
            _ if !made.failed.is_empty() => super::ERROR,
            _ => 0,
        };
        Ok(exit_status(!made.has_left, status))
    }

    /// All experiments, until one does not end as it should.
    fn make(
        &self,
        context: &Context,
        workloads: &Workloads,
        store: &Store,
    ) -> Result<Made, String> {
        let interrupted = listen_for_signals()?;
        let mut progress_sink = Terminal::of_pairs(context.color, 1.0, 1);
        let mut made = Made::default();
        let arms = || {
            let planted = self.planted.map(|ppm| [SecondArm::Planted(ppm), SecondArm::Periodic]);
            [SecondArm::Identical].into_iter().chain(planted.into_iter().flatten())
        };
        let of = self.repeat as usize * arms().count();
        if let Some(sentence) = takes(of, self.measuring.budget) {
            progress_sink.announce(&sentence);
        }
        let all = (1..=self.repeat).flat_map(|n| arms().map(move |arm| (n, arm)));
        for (which, (number, second)) in all.enumerate() {
            if of > 1 {
                output::note(&format!("Experiment {} of {of}: {}", which + 1, second.named()));
            }
            let request = self.request(number, second, workloads, &context.again)?;
            let done = match execute(&request, store, &mut progress_sink, &interrupted) {
                Ok(done) => done,
                Err(problem) => {
                    (made.failure, made.last) = (Some(problem.into()), Some(State::Failed));
                    break;
                }
            };
            made.has_left |= !output::tell_what_is_left(done.left.as_deref());
            made.add(done.load(store)?, second, done.is_stored());
            made.not_kept = done.not_kept;
            if made.last != Some(State::Complete) {
                break;
            }
        }
        Ok(made)
    }

    fn request(
        &self,
        number: u32,
        second: SecondArm,
        workloads: &Workloads,
        typed: &ReproduceCommand,
    ) -> Result<Request, String> {
        // The experiments of `--repeat` have seeds of their own, which follow from the first.
        let seed = self.measuring.seed_of(number - 1)?;
        let again = typed.clone().without("--repeat").without("--planted");
        let again = match self.planted {
            Some(ppm) if second != SecondArm::Identical => {
                again.with("--planted", planted::percent(ppm))
            }
            _ => again,
        };
        let common = Common {
            arms: vec!["none".into(), second.label()],
            ..self.measuring.common(&again.with("--seed", seed), seed)
        };
        let comparison = Comparison {
            compared: Compared::Workloads(workloads.clone()),
            // As `weigh compare` does.
            interleave: self.interleaving.requested(),
            is_calibration: true,
            is_announced: number > 1 || second != SecondArm::Identical,
            ..Comparison::default()
        };
        Ok(Request { common, plan: Plan::Compare(comparison) })
    }
}

/// How long all experiments take, where there are several; each has the budget.
fn takes(experiments: usize, budget: Option<Duration>) -> Option<String> {
    let each = budget.filter(|_| experiments > 1)?.as_secs_f64();
    Some(format!(
        "{experiments} experiments of at most {} each take up to {}.",
        format::clock(each),
        format::clock(each * experiments as f64)
    ))
}

/// Content of an experiment's second arm.
#[derive(Clone, Copy, PartialEq)]
enum SecondArm {
    Identical,
    /// So many millionths in each slice.
    Planted(u32),
    Periodic,
}

impl SecondArm {
    /// Names the experiment with this arm, above its live table.
    fn named(self) -> String {
        match self {
            SecondArm::Identical => "identical arms".into(),
            SecondArm::Planted(ppm) => {
                format!("one arm does {} more work in each slice", planted::percent(ppm))
            }
            SecondArm::Periodic => "one arm does 5% more work, all in every fifth slice".into(),
        }
    }

    fn label(self) -> String {
        match self {
            SecondArm::Identical => "none".into(),
            SecondArm::Planted(ppm) => planted::label(ppm),
            SecondArm::Periodic => planted::periodic_label(),
        }
    }
}

/// The experiments of one command.
#[derive(Default)]
struct Made {
    /// Experiments with identical arms.
    identical: Vec<ExperimentId>,
    planted: Vec<Stored>,
    periodic: Vec<Stored>,
    /// Workloads that failed, but for those in which nothing can be planted, each with a reason.
    failed: BTreeMap<WorkName, String>,
    /// Why the latest was not even stored.
    failure: Option<String>,
    /// How the latest ended.
    last: Option<State>,
    has_left: bool,
    not_kept: Option<String>,
}

impl Made {
    fn add(&mut self, stored: Stored, second: SecondArm, is_stored: bool) {
        let baseline = stored.header.arms.first();
        let is_at_fault = |arm| second == SecondArm::Identical || Some(arm) == baseline;
        let at_fault = stored.failures.iter().filter(|one| is_at_fault(&one.arm));
        let reasons = at_fault.map(|failure| (failure.workload.clone(), failure.reason.clone()));
        self.failed.extend(reasons);
        self.last = Some(stored.state);
        match second {
            SecondArm::Identical if !is_stored => self.failure = stored.failure,
            SecondArm::Identical => self.identical.push(stored.id),
            _ if stored.state == State::Failed => output::problem(&why_failed(&stored)),
            // Interrupted before anything was measured.
            _ if !is_stored => {}
            SecondArm::Planted(_) => self.planted.push(stored),
            SecondArm::Periodic => self.periodic.push(stored),
        }
    }

    fn tell_failures(&self) {
        for (workload, reason) in &self.failed {
            output::problem(&format!("{workload} failed: {}", printable::line(reason)));
        }
        self.failure.iter().for_each(|problem| output::problem(problem));
    }

    /// The exit status where nothing was measured.
    fn without_result(&self) -> u8 {
        self.tell_failures();
        let status = match self.last {
            Some(State::Interrupted) => {
                output::problem("interrupted before anything was measured");
                INTERRUPTED
            }
            _ => super::ERROR,
        };
        exit_status(!self.has_left, status)
    }
}

/// Why an experiment with a planted effect has no result, with what to do where nothing could be planted.
fn why_failed(stored: &Stored) -> String {
    let mut reasons = stored.failures.iter().map(|failure| why_not_planted(&failure.reason));
    match reasons.next().flatten().filter(|_| reasons.all(|why| why.is_some())) {
        Some(why) => format!(
            "no effect was planted in any of these workloads ({why}): use a larger --planted, or workloads \
             with shorter operations, such as -w getppid"
        ),
        None => format!(
            "the experiment with the planted effect failed: {}",
            stored.failure.as_deref().unwrap_or("no reason was recorded")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_experiments_together_are_announced_with_their_length() {
        let each = Some(Duration::from_secs(20));
        let said = takes(60, each).unwrap();
        assert_eq!(said, "60 experiments of at most 20 s each take up to 20 min 00 s.");
        assert_eq!(takes(1, each), None);
    }
}
