//! Options of every command that compares arms, and its steps after measuring. They are in one
//! place, so that `compare` and `versus` stay alike.

use std::time::Duration;

use clap::Args;

use super::files::Files;
use super::measuring::{MEASURING, Measuring};
use super::progress_sink::Terminal;
use super::{ABOVE_LIMIT, Context, INCONCLUSIVE, INTERRUPTED, exit_status, go_on, output, value};
use paired::Verdict;
use paired::design::Design;
use paired::judge::MIN_PAIRS;
use paired::multiplicity::Multiplicity;
use weigh_engine::request::{Comparison, Request};
use weigh_engine::session::{Done, More, execute};
use weigh_engine::summarise::summarise;
use weigh_host::interruption::listen_for_signals;
use weigh_model::format;
use weigh_model::ids::ExperimentId;
use weigh_model::result::summary::{Row, State, Summary};
use weigh_model::result::versus::name_in_arm;
use weigh_model::result::warning::Warning;
use weigh_model::result::work_name::{NET, WorkName};
use weigh_model::workload::metric::{Metric, Percentile};
use weigh_model::workload::sample::SAMPLE_METRICS;
use weigh_store::Store;
use weigh_treatment as treatment;
use weigh_treatment::boot::are_boots;

/// How long, how often and how strictly pairs are measured and judged.
#[derive(Debug, Args)]
pub struct Pairing {
    #[command(flatten)]
    pub measuring: Measuring,
    /// Measure N pairs per row, such as 20. Judge once, at the end, with Wilcoxon's test [default: as many as
    /// the verdict needs]
    #[arg(long, value_name = "N", value_parser = value::at_least(MIN_PAIRS as u32))]
    #[arg(help_heading = MEASURING)]
    pairs: Option<u32>,
    /// Limit the expected share of false differences to 5 % (false discovery rate, closed e-BH). Finds more
    /// when there are many rows [default: limit the chance of any false difference to 5 % (Holm)]
    #[arg(long, conflicts_with = "pairs", hide_short_help = true)]
    #[arg(help_heading = MEASURING)]
    fdr: bool,
    /// Differences within PERCENT are equivalent
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = value::percentage)]
    #[arg(allow_hyphen_values = true)]
    #[arg(help_heading = MEASURING)]
    pub margin: f64,
    /// Repeat the whole experiment this many times from scratch, and show how far the results (sets) differ
    /// (docs/table2.md)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10))]
    #[arg(hide_short_help = true)]
    #[arg(help_heading = MEASURING)]
    pub sets: u32,
    #[arg(long = "metric", value_name = "NAME", value_delimiter = ',', value_parser = Metric::parse)]
    #[arg(help = metric_help())]
    #[arg(help_heading = MEASURING)]
    pub metrics: Vec<Metric>,
    /// Exit with 1 if a treatment costs more than PERCENT. Status 1: a row is shown to cost more, with 95 %
    /// confidence over all rows together. Status 0: every row has a verdict and is shown to cost less.
    /// Otherwise status 3
    #[arg(long, value_name = "PERCENT", value_parser = value::percentage)]
    #[arg(help_heading = MEASURING)]
    pub fail_above: Option<f64>,
    /// Exit with status 0 instead of 3 if a row has no verdict, or --fail-above is undecided
    #[arg(long, hide_short_help = true)]
    #[arg(help_heading = MEASURING)]
    inconclusive_ok: bool,
}

fn metric_help() -> String {
    let of_samples: Vec<&str> = SAMPLE_METRICS.iter().map(|metric| metric.name).collect();
    format!(
        "Judge this metric too, such as peak_memory. May be repeated. One of {}, {} (timing each operation \
         of the samples), or a reading of a mix, a network or your program (docs/metrics.md). Each counts as \
         one more row, so name only those that you need",
        of_samples.join(", "),
        Percentile::ALL.map(Percentile::name).join(", ")
    )
}

/// Time for a verdict on most workloads; `BUDGET_OF_GUESTS` is for guests that boot for each pair.
const BUDGET: Duration = Duration::from_secs(120);
const BUDGET_OF_GUESTS: Duration = Duration::from_secs(900);
/// Time for a verdict on whole grids; each pair is one grid in each arm.
const BUDGET_OF_GRIDS: Duration = Duration::from_secs(600);
/// Time for a verdict on boots of this machine, including its firmware's and its services' time.
const BUDGET_OF_BOOTS: Duration = Duration::from_secs(7200);

/// Without, none of fifty rows would have the pairs for a verdict: a dozen or more, of 0.3 s each or, with
/// servers that are started for it, 1 s.
const BUDGET_PER_ROW: Duration = Duration::from_secs(8);

impl Pairing {
    /// How long arms of these labels are measured, on these workloads.
    pub fn budget(&self, arms: &[String], workloads: &[String]) -> Duration {
        let is_grid = |name: &String| name.starts_with(NET);
        let names = WorkName::names_of(workloads).unwrap_or_default();
        let default = if are_boots(arms) {
            BUDGET_OF_BOOTS
        } else if arms.iter().any(|label| treatment::is_of_guest(label)) {
            BUDGET_OF_GUESTS
        } else if names.iter().any(is_grid) {
            BUDGET_OF_GRIDS
        } else {
            BUDGET
        };
        self.measuring.budget.unwrap_or(default)
    }

    /// How pairs are measured and judged.
    pub fn comparison(&self) -> Comparison {
        Comparison {
            sets: self.sets as usize,
            margin: self.margin,
            design: self.design(),
            further_metrics: self.metrics.clone(),
            budget_per_row: self.budget_per_row(),
            fail_above: self.fail_above,
            ..Comparison::default()
        }
    }

    /// How long each row is measured at least, where no budget was given.
    pub fn budget_per_row(&self) -> Duration {
        self.measuring.budget.map_or(BUDGET_PER_ROW, |_| Duration::ZERO)
    }

    pub fn design(&self) -> Design {
        Design {
            margin: self.margin.ln_1p(),
            fixed_pairs: self.pairs.map(|pairs| pairs as usize),
            multiplicity: if self.fdr { Multiplicity::EBh } else { Multiplicity::Holm },
            ..Design::default()
        }
    }

    /// Refuses options about pairs, which one command does not have.
    pub fn check_one_command(&self) -> Result<(), String> {
        let given = [
            ("--pairs", self.pairs.is_some()),
            ("--fdr", self.fdr),
            ("--sets", self.sets > 1),
            ("--metric", !self.metrics.is_empty()),
            ("--fail-above", self.fail_above.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((option, _)) => Err(format!(
                "{option} needs a second command to compare with: add one in quotes, as in weigh versus \
                 'old --x' 'new --x', or remove {option}"
            )),
        }
    }

    /// Measures what is requested, or goes on with the experiment that is named; writes the reports, and
    /// gives the exit status.
    pub fn measure(
        &self,
        go_on: Option<&str>,
        request: impl FnOnce() -> Result<Request, String>,
        files: &Files,
        context: &Context,
    ) -> Result<u8, String> {
        files.check()?;
        let (done, store) = match go_on {
            Some(id) => {
                let store = context.open_store()?;
                let more = |request: &Request| More {
                    budget: self.budget(&request.common.arms, &request.plan.names()),
                    budget_per_row: self.budget_per_row(),
                    fail_above: self.fail_above,
                    precision: None,
                    wait: self.measuring.queue.wait,
                };
                (go_on::run(id, more, &store, context)?, store)
            }
            None => {
                let request = request()?;
                let store = context.open_store_for(&request)?;
                (self.begin(&request, &store, context)?, store)
            }
        };
        if go_on.is_some() {
            self.rename(&store, &done.id).map_err(|error| error.to_string())?;
        }
        self.tell(&done, &store, files, context)
    }

    fn begin(&self, request: &Request, store: &Store, context: &Context) -> Result<Done, String> {
        let interrupted = listen_for_signals()?;
        let (margin_pct, sets) = (self.margin * 100.0, self.sets as usize);
        let mut progress_sink = Terminal::of_pairs(context.color, margin_pct, sets);
        Ok(execute(request, store, &mut progress_sink, &interrupted)?)
    }

    /// Another session may have another name and limit.
    fn rename(&self, store: &Store, id: &ExperimentId) -> Result<(), weigh_store::Error> {
        store.set_naming(id, &self.measuring.naming())?;
        self.fail_above.map_or(Ok(()), |limit| store.set_fail_above(id, limit))
    }

    fn tell(
        &self,
        done: &Done,
        store: &Store,
        files: &Files,
        context: &Context,
    ) -> Result<u8, String> {
        let is_as_before = output::tell_what_is_left(done.left.as_deref());
        let stored = done.load(store)?;
        let mut summary = summarise(&stored);
        if !done.is_stored() {
            summary.id.clear();
        }
        let status = match exit_code(&summary) {
            INCONCLUSIVE if self.inconclusive_ok => 0,
            status => status,
        };
        let problems = match status {
            INCONCLUSIVE => not_reported(&summary),
            _ => Vec::new(),
        };
        let written = files.write(summary.into(), context);
        problems.iter().for_each(|problem| output::problem(problem));
        done.not_kept.clone().map_or(Ok(()), Err).and(written)?;
        Ok(exit_status(is_as_before, status))
    }
}

/// Says, per requested metric, which rows have no reading of it. The exit status depends on it, and no table
/// shows it.
fn not_reported(summary: &Summary) -> Vec<String> {
    let rows = &summary.results;
    let of_metric = |metric: &Metric| {
        let has = |row: &&Row| row.readings.iter().any(|reading| reading.metric == *metric);
        let without: Vec<&Row> = rows.iter().filter(|row| !has(row)).collect();
        let who = match without[..] {
            [] => return None,
            [row] => format::label(&name_in_arm(&row.workload, &row.treatment)),
            [..] if without.len() == rows.len() => "every row".to_owned(),
            [..] => format!("{} of {}", without.len(), format::plural(rows.len(), "row")),
        };
        Some(format!(
            "--metric {0}: {who} has no `{0}`, so the exit status is {INCONCLUSIVE}; `weigh show -v {1}` \
             says why",
            metric.name(),
            summary.id
        ))
    };
    summary.requested_metrics.iter().filter_map(of_metric).collect()
}

/// Returns the exit code. A requested metric without a verdict leaves a row open, even if no sample
/// has it.
fn exit_code(summary: &Summary) -> u8 {
    let is_above = summary.gate.as_ref().is_some_and(|gate| !gate.above.is_empty());
    let is_gate_open = summary.gate.as_ref().is_some_and(|gate| !gate.open.is_empty());
    let has_times = summary.versus.as_ref().is_some_and(|versus| !versus.commands.is_empty());
    // Passes over one start of each arm are asked for without a verdict.
    let is_judged = !summary.warnings.contains(&Warning::OneStartPerArm);
    let is_open = summary.results.iter().any(|row| {
        row.verdict == Verdict::Inconclusive
            || row.open_metric(&summary.requested_metrics).is_some()
    });
    match summary.state {
        State::Failed => super::ERROR,
        State::Interrupted => INTERRUPTED,
        _ if is_above => ABOVE_LIMIT,
        _ if !summary.failures.is_empty() => super::ERROR,
        _ if summary.is_of_one_command() && has_times => 0,
        _ if summary.results.is_empty() => super::ERROR,
        _ if !summary.unmeasured.is_empty() => INCONCLUSIVE,
        _ if is_judged && (is_open || is_gate_open) => INCONCLUSIVE,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;
    use weigh_model::result::gate::NamedRow;

    #[test]
    fn a_row_without_a_pair_leaves_the_question_open() {
        let mut s = example::audit();
        s.failures.clear();
        s.results.retain(|row| row.verdict != Verdict::Inconclusive);
        assert_eq!(exit_code(&s), 0);
        s.unmeasured = vec![NamedRow { workload: "stat".into(), treatment: "audit".into() }];
        assert_eq!(exit_code(&s), INCONCLUSIVE);
    }

    #[test]
    fn a_requested_metric_that_no_row_has_is_named_with_the_exit_status() {
        let mut s = example::audit();
        assert_eq!(not_reported(&s), [""; 0]);
        s.requested_metrics = vec![Metric::Named("jobs".into())];
        let said = |who: &str| {
            let why = "so the exit status is 3; `weigh show -v k3f9` says why";
            [format!("--metric jobs: {who} has no `jobs`, {why}")]
        };
        assert_eq!(not_reported(&s), said("every row"));
        let jobs = example::reading(Metric::Named("jobs".into()), Verdict::Faster);
        s.results.iter_mut().skip(2).for_each(|row| row.readings.push(jobs.clone()));
        assert_eq!(not_reported(&s), said(&format!("2 of {} rows", s.results.len())));
        s.results[0].readings.push(jobs.clone());
        assert_eq!(not_reported(&s), said("dhry2reg under audit"));
        s.results[1].readings.push(jobs);
        assert_eq!(not_reported(&s), [""; 0]);
    }
}
