//! `weigh load`: how many users does this machine carry?

use std::time::Duration;

use clap::Args;

use super::again::Again;
use super::mixes::Mixes;
use super::naming::Names;
use super::pairing::listen_for_signals;
use super::run_output::RunOutput;
use super::{Context, value};
use crate::experiment::around::Around;
use crate::experiment::ramp::{RampGoal, default_points};
use crate::experiment::request::{Plan, Request};
use crate::result::load::CROSSOVER_JOBS;
use crate::result::work_name::{MOST_USERS, WorkName};
use crate::store::record::ExperimentKind;
use crate::treatment;
use crate::workload::metric::{Metric, Percentile};
use crate::workload::mix::PREFIX;
use paired::design::Design;

/// The most users of a ramp without a list of its own.
const MOST_BY_DEFAULT: usize = 1 << 14;
/// re-aim's quick crossover: one job per second and user.
const QUICK_JOBS: f64 = 60.0;

const EXAMPLES: &str = "\
Examples:
  weigh load                          the mix `shared`: finds the peak, in about three minutes
  weigh load compute --budget 1m
  weigh load fserver --to crossover --budget 20m
  weigh load shared --users 1,2,4,8,16,100..500:100
  weigh load ./workfile.mine --jobs 50
      A workfile of re-aim, or a mix of your own in TOML (docs/load.md).
  weigh compare audit -w load:high_systime
      The same load points with a treatment and without.

`weigh list mixes` shows what there is.

Exit status: 0 done, 2 error or no result, 130 interrupted.";

/// Find out how many users a machine carries
///
/// Every user does about a hundred jobs of a mix, in an order of its own, as AIM's Suite VII and re-aim
/// have it. Measures the throughput with more and more users until it no longer grows, then takes fresh
/// samples at the peak until its interval is narrow.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LoadArgs {
    /// A mix, or a file with one (.toml, or a workfile of re-aim)
    #[arg(default_value = "shared")]
    mix: String,
    /// Measure these numbers of users instead of searching: 1,2,4 or FROM..TO:STEP
    #[arg(long, value_name = "LIST", value_parser = UserList::parse, conflicts_with = "to")]
    users: Option<UserList>,
    /// Where to stop adding users: peak; crossover, where each user gets 10 jobs a minute; quick, 60 jobs a
    /// minute; classic, as many users as jobs a minute
    #[arg(long, value_name = "GOAL", default_value = "peak", value_parser = goal)]
    to: RampGoal,
    #[command(flatten)]
    mixes: Mixes,
    /// Stop measuring after this time
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = value::duration)]
    budget: Duration,
    /// How narrow the interval at the peak is to be, to either side
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = value::percentage)]
    precision: f64,
    /// Kill a load point that lasts longer; the ramp ends before it [default: 2m and 10s per user]
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    timeout: Option<Duration>,
    /// What the users have around them (`weigh list fixtures`), such as fs:xfs; may be repeated
    #[arg(long = "fixture", value_name = "FIXTURE")]
    fixtures: Vec<String>,
    /// Seed of the order in which users do their jobs; the same seed gives the same order
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    output: RunOutput,
}

impl LoadArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        self.output.check()?;
        let store = context.open_store()?;
        let request = self.request(&context.again)?;
        let interrupted = listen_for_signals()?;
        self.output.measure(&request, &store, context, &interrupted)
    }

    fn request(&self, typed: &Again) -> Result<Request, String> {
        // A file in this directory is told from a mix of ours by its name: ./NAME or NAME.toml.
        let name = format!("{PREFIX}{}", self.mix);
        let users = match &self.users {
            Some(UserList(users)) => users.clone(),
            None => default_points(MOST_BY_DEFAULT),
        };
        let seed = self.seed.unwrap_or_else(|| rand::random::<u32>().into());
        Ok(Request {
            kind: ExperimentKind::Run,
            arms: vec!["none".into()],
            workloads: users.iter().map(|n| WorkName::of_users(&name, *n).to_string()).collect(),
            suites: Vec::new(),
            mixes: self.mixes.read(&[name])?,
            job_sizes: self.mixes.sizes(),
            fixtures: treatment::canonical_fixtures(&self.fixtures)?,
            beside: Vec::new(),
            command: None,
            contest: None,
            around: Around::default(),
            agents: None,
            copies: vec![1],
            again: typed.clone().with("--seed", seed).to_string(),
            seed,
            budget: self.budget,
            margin: 0.01,
            design: Design::default(),
            sample_ms: None,
            timeout: self.timeout,
            plan: Plan::Ramp {
                goal: if self.users.is_some() { RampGoal::AllPoints } else { self.to },
                precision: self.precision,
            },
            further_metrics: vec![
                Metric::Latency(Percentile::P99),
                Metric::Latency(Percentile::P90),
                Metric::Named("job_timing_index".into()),
                Metric::Named("finish_deviation".into()),
            ],
            detail: false,
            naming: self.names.naming(),
            fail_above: None,
        })
    }
}

fn goal(text: &str) -> Result<RampGoal, String> {
    match text {
        "peak" => Ok(RampGoal::Peak),
        "crossover" => Ok(RampGoal::JobsPerUser(CROSSOVER_JOBS)),
        "quick" => Ok(RampGoal::JobsPerUser(QUICK_JOBS)),
        "classic" => Ok(RampGoal::Classic),
        _ => Err("it is one of peak, crossover, quick, classic".into()),
    }
}

/// Numbers of users, ascending.
#[derive(Clone, Debug, PartialEq)]
struct UserList(Vec<usize>);

impl UserList {
    /// `1,2,4`, `10..500:10`.
    fn parse(text: &str) -> Result<UserList, String> {
        let mut users = Vec::new();
        for part in text.split(',') {
            users.extend(range(part).ok_or_else(|| {
                format!(
                    "`{part}` is no number of users from 1 to {MOST_USERS}, and no FROM..TO:STEP"
                )
            })?);
            if users.len() > 1000 {
                return Err("these are more than 1000 load points".into());
            }
        }
        users.sort_unstable();
        users.dedup();
        Ok(UserList(users))
    }
}

fn range(text: &str) -> Option<Vec<usize>> {
    let number = |text: &str| text.parse().ok().filter(|n| (1..=MOST_USERS).contains(n));
    let Some((from, to)) = text.split_once("..") else { return Some(vec![number(text)?]) };
    let (to, step) = to.split_once(':').unwrap_or((to, "1"));
    let (from, to, step) = (number(from)?, number(to)?, number(step)?);
    (from <= to).then(|| (from..=to).step_by(step).take(1001).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_listed_or_in_steps() {
        let read = |text: &str| UserList::parse(text).map(|list| list.0);
        assert_eq!(read("4,1,2,2"), Ok(vec![1, 2, 4]));
        assert_eq!(read("1,10..30:10"), Ok(vec![1, 10, 20, 30]));
        assert_eq!(read("2..4"), Ok(vec![2, 3, 4]));
        for bad in ["", "0", "x", "4..2", "1..5:0", "1,,2", "1..1000000"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
