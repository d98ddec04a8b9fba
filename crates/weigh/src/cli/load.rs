//! `weigh load`: how many users does this machine carry?

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;

use super::files::Files;
use super::formats::csv_of;
use super::measuring::{FixtureOption, MEASURING, Measuring, defaults_to};
use super::mixes::Mixes;
use super::profiler::ProfilerOption;
use super::reproduce::ReproduceCommand;
use super::user_list::{MOST_POINTS, UserList, users};
use super::{Context, repeated, run, value};
use weigh_engine::request::{LoadRamp, Plan, Request};
use weigh_host::interruption::listen_for_signals;
use weigh_model::result::load::{CROSSOVER_JOBS, QUICK_CROSSOVER_JOBS};
use weigh_model::result::repeated::RepeatedReport;
use weigh_model::result::run::RunReport;
use weigh_model::result::work_name::MOST_USERS;
use weigh_model::workload::mix::PREFIX;
use weigh_model::workload::reaim_config::ReaimConfig;
use weigh_verdict::ramp::{Ramp, RampGoal, RampPlan, RampStride, default_points};
use weigh_verdict::repeated::{further, sets};

const BUDGET_HELP: &str =
    "Stop measuring after this time. The interval may then be wider than --precision";

/// The most users of a ramp without a list of its own.
const MOST_BY_DEFAULT: usize = 1 << 14;
/// With re-aim's increment any number of users may be next, and each of them is prepared for.
const MOST_ADAPTED: usize = 2000;

const EXAMPLES: &str = "\
Examples:
  weigh load                          find the peak throughput of `shared`
  weigh load compute --budget 1m
  weigh load fserver --to crossover --budget 20m
  weigh load shared --users 1,2,4,8,16,100..500:100
  weigh load ./workfile.mine --jobs 50
      Use a workfile of re-aim, or your own mix in TOML (docs/load-mixes.md).
  weigh load --workfile workfile.shared --config reaim.config
      Read both files as re-aim does; add --increment adaptive for re-aim's
      steps and its rule for stopping (docs/load-reaim.md).
  weigh load disk --cold --disk-dir /mnt/a --disk-dir /mnt/b
  weigh load memory --budget 10m      how many users fit into memory?
  sudo weigh compare audit -w load:high_systime
      Compare the peak with and without a treatment.

`weigh list mixes` lists the mixes.

Exit status: 0 done, 2 error or no result, 3 no peak confirmed within --budget,
130 interrupted.";

/// Find out how many simulated users this machine can serve
///
/// Each user is a process that does about a hundred jobs (small pieces of work, such as a file copy), in
/// random order. A mix says which jobs, and how often, as in the benchmarks AIM Suite VII and re-aim. A load
/// point is the mix with one number of users.
///
/// Doubles the users until the throughput no longer grows. Then measures all load points that may be the
/// peak, in rounds, until the interval of the best one is narrow. docs/load.md explains the report.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("budget", |budget| budget.help(BUDGET_HELP).default_value("3m")))]
#[command(mut_arg("csv", |csv| csv_of(csv, "sample")))]
#[command(mut_arg("timeout", |timeout| defaults_to(timeout, "2m plus 10s per user")))]
pub struct LoadArgs {
    /// Mix of jobs to measure, or a file: a mix (./my.toml) or a workfile of re-aim [default: shared]
    #[arg(conflicts_with = "workfile")]
    mix: Option<String>,
    /// File with the mix; `--workfile FILE` means the same as `./FILE` alone
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    workfile: Option<String>,
    /// Configuration file of re-aim: FILESIZE, POOLSIZE, DISKDIR, STARTUSERS, ENDUSERS, INCREMENT, JOBS,
    /// CROSSOVER. The command line and a workfile take precedence
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Numbers of users to measure, such as 1,2,4 or 10..50:10. With this option weigh does not search for
    /// the peak
    #[arg(long, value_name = "LIST", value_parser = UserList::parse)]
    #[arg(conflicts_with_all = ["to", "increment"])]
    users: Option<UserList>,
    /// Stop adding users at GOAL, such as peak or 500 (users). The goals are `peak` (the throughput no longer
    /// grows), `crossover` (10 jobs a minute per user), `quick` (60), `classic` (1), or a number of users
    /// (docs/load.md) [default: peak]
    #[arg(long, value_name = "GOAL", value_parser = Goal::parse)]
    to: Option<Goal>,
    /// Users to add per step, such as 10. `adaptive` uses re-aim's steps. With this option weigh stops adding
    /// users where re-aim would stop; the peak is the best of all points (docs/load.md) [default: double the
    /// users]
    #[arg(long, value_name = "N", value_parser = Increment::parse)]
    increment: Option<Increment>,
    /// Minimum number of samples per number of users
    #[arg(long, value_name = "N", default_value_t = Ramp::TO_CHOOSE as u8)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=26))]
    #[arg(help_heading = MEASURING)]
    repeat: u8,
    /// Repeat the whole search this many times, each with its own --budget and as an experiment of its own,
    /// and compare the peaks
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    #[arg(help_heading = MEASURING)]
    sets: u32,
    #[command(flatten)]
    mixes: Mixes,
    #[command(flatten)]
    measuring: Measuring,
    /// Stop when the peak throughput is known to ±PERCENT
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = value::percentage)]
    #[arg(help_heading = MEASURING)]
    precision: f64,
    #[command(flatten)]
    fixtures: FixtureOption,
    #[command(flatten)]
    profiler: ProfilerOption,
    #[command(flatten)]
    files: Files,
}

impl LoadArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        self.files.check()?;
        if self.sets > 1 {
            return self.repeat(context);
        }
        let request = self.request(&context.again, 0)?;
        let store = context.open_store_for(&request)?;
        let interrupted = listen_for_signals()?;
        run::measure(&request, &store, &self.files, context, &interrupted)
    }

    fn repeat(&self, context: &Context) -> Result<u8, String> {
        self.files.check_without_table()?;
        let typed = context.again.clone().without("--sets");
        let requests = (0..self.sets).map(|set| self.request(&typed, set));
        let requests = requests.collect::<Result<Vec<_>, _>>()?;
        let is_decided =
            |report: &RunReport| requests.iter().all(|it| run::has_its_answer(it, report));
        let answers = |runs: &[RunReport]| {
            let sets = sets(runs);
            RepeatedReport { further: further(&sets), sets, ..RepeatedReport::default() }
        };
        repeated::run(&requests, is_decided, answers, &self.files, context)
    }

    fn request(&self, typed: &ReproduceCommand, set: u32) -> Result<Request, String> {
        let config = self.config.as_deref().map(ReaimConfig::read).transpose()?;
        let config = config.unwrap_or_default();
        let mix = format!("{PREFIX}{}", self.mix_name());
        let (users, plan) = self.ramp(&config)?;
        let seed = self.measuring.seed_of(set)?;
        let common = self.measuring.common(&typed.clone().with("--seed", seed), seed);
        let ramp = LoadRamp {
            mixes: self.mixes.read(std::slice::from_ref(&mix))?,
            mix,
            users,
            job_sizes: self.mixes.sizes_with(&config),
            fixtures: self.fixtures.labels()?,
            ramp: RampPlan { seed, ..plan },
            profiler: self.profiler.line(),
        };
        Ok(Request { common, plan: Plan::Ramp(ramp) })
    }

    /// A file in this directory is told from a mix of ours by its name: ./NAME or NAME.toml.
    fn mix_name(&self) -> String {
        match &self.workfile {
            Some(file) if file.contains(['/', '.']) => file.clone(),
            Some(file) => format!("./{file}"),
            None => self.mix.clone().unwrap_or_else(|| "shared".into()),
        }
    }

    /// The load points, and how the ramp goes over them.
    fn ramp(&self, config: &ReaimConfig) -> Result<(Vec<NonZero<usize>>, RampPlan), String> {
        let goal = self.to.unwrap_or(match config.to_crossover {
            true => Goal::Rule(RampGoal::JobsPerUser(CROSSOVER_JOBS)),
            false => Goal::Rule(RampGoal::Peak),
        });
        let plan = RampPlan::doubling(goal.rule(), self.precision);
        let plan = RampPlan { samples: self.repeat.into(), ..plan };
        if let Some(UserList(users)) = &self.users {
            let (goal, stride) = (RampGoal::AllPoints, RampStride::Each);
            return Ok((users.clone(), RampPlan { goal, stride, ..plan }));
        }
        let start = config.start_users.map_or(1, |users| users as usize);
        let end = goal.users().or(config.end_users.map(|users| users as usize));
        let first = config.increment.map_or(1, |step| step as usize);
        // A configuration that has a range, or an increment, is one of fixed steps.
        let is_stepped = config.increment.or(config.start_users.and(config.end_users)).is_some();
        let increment = self.increment.or(is_stepped.then_some(Increment::Steps(first)));
        let (users, stride) = match increment {
            None => (doubled(start, end), RampStride::Doubling),
            Some(Increment::Steps(step)) => {
                let end = end.unwrap_or(start.saturating_add(step.saturating_mul(MOST_POINTS - 1)));
                let points = (start..=end.min(MOST_USERS)).step_by(step);
                (points.take(MOST_ADAPTED + 1).collect(), RampStride::Each)
            }
            Some(Increment::Adaptive) => {
                let end = end.unwrap_or(start.saturating_add(MOST_ADAPTED - 1));
                ((start..=end).take(MOST_ADAPTED + 1).collect(), RampStride::Adaptive(first))
            }
        };
        if users.is_empty() || users.len() > MOST_ADAPTED {
            let end = end.unwrap_or(start);
            return Err(format!(
                "from {start} to {end} users there are 1 to {MOST_ADAPTED} load points"
            ));
        }
        // As with re-aim, the last number of users is where it ends.
        let goes_to_end = self.to.is_none() && config.end_users.is_some() && !config.to_crossover;
        let goal = if goes_to_end { RampGoal::AllPoints } else { plan.goal };
        let users = users.into_iter().filter_map(NonZero::new).collect();
        Ok((users, RampPlan { goal, stride, ..plan }))
    }
}

/// Points of our own search, from one number of users to another, both of them included.
fn doubled(start: usize, end: Option<usize>) -> Vec<usize> {
    let last = end.unwrap_or(MOST_BY_DEFAULT);
    let within = |users: &usize| *users > start && *users < last;
    let between = default_points(last).into_iter().filter(within);
    std::iter::once(start).chain(between).chain(end.filter(|end| *end > start)).collect()
}

/// By how many users the next load point has more.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Increment {
    Adaptive,
    Steps(usize),
}

impl Increment {
    fn parse(text: &str) -> Result<Increment, String> {
        match text {
            "adaptive" => Ok(Increment::Adaptive),
            _ => users(text)
                .map(|users| Increment::Steps(users.get()))
                .ok_or_else(|| "takes `adaptive`, or a number of users".into()),
        }
    }
}

/// Where a ramp ends: by a rule, or with a number of users.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Goal {
    Rule(RampGoal),
    Users(usize),
}

impl Goal {
    fn parse(text: &str) -> Result<Goal, String> {
        let rule = match text {
            "peak" => RampGoal::Peak,
            "crossover" => RampGoal::JobsPerUser(CROSSOVER_JOBS),
            "quick" => RampGoal::JobsPerUser(QUICK_CROSSOVER_JOBS),
            "classic" => RampGoal::Classic,
            _ => {
                let why = "it is one of peak, crossover, quick, classic, or a number of users";
                return users(text).map(|users| Goal::Users(users.get())).ok_or_else(|| why.into());
            }
        };
        Ok(Goal::Rule(rule))
    }

    fn rule(self) -> RampGoal {
        match self {
            Goal::Rule(rule) => rule,
            Goal::Users(_) => RampGoal::AllPoints,
        }
    }

    fn users(self) -> Option<usize> {
        match self {
            Goal::Rule(_) => None,
            Goal::Users(users) => Some(users),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadArgs,
    }

    fn ramp(line: &str, config: &ReaimConfig) -> (Vec<usize>, RampPlan) {
        let words = std::iter::once("weigh").chain(line.split_whitespace());
        let (users, plan) = Line::try_parse_from(words).unwrap().load.ramp(config).unwrap();
        (users.into_iter().map(NonZero::get).collect(), plan)
    }

    #[test]
    fn the_points_are_what_the_options_say() {
        let none = ReaimConfig::default();
        let (users, plan) = ramp("--to 100", &none);
        assert_eq!((&users[users.len() - 2..], plan.goal), (&[96, 100][..], RampGoal::AllPoints));
        let (users, plan) = ramp("--increment 10 --to crossover", &none);
        assert_eq!((&users[..3], users.len()), (&[1, 11, 21][..], MOST_POINTS));
        assert_eq!((plan.goal, plan.stride), (RampGoal::JobsPerUser(10.0), RampStride::Each));
        let (users, plan) = ramp("--increment adaptive --to 50", &none);
        assert_eq!((users.len(), plan.stride), (50, RampStride::Adaptive(1)));
    }

    #[test]
    fn a_configuration_says_what_the_command_line_does_not() {
        let config = ReaimConfig {
            start_users: Some(2),
            end_users: Some(20),
            increment: Some(3),
            jobs: Some(50),
            ..ReaimConfig::default()
        };
        let (users, plan) = ramp("", &config);
        assert_eq!((users, plan.goal), (vec![2, 5, 8, 11, 14, 17, 20], RampGoal::AllPoints));
        assert_eq!(ramp("--increment adaptive", &config).1.stride, RampStride::Adaptive(3));
        assert_eq!(ramp("--users 4,8", &config).0, [4, 8]);
        assert_eq!(ramp("--to 5", &config).0, [2, 5]);
        let crossing = ReaimConfig { to_crossover: true, ..ReaimConfig::default() };
        assert_eq!(ramp("", &crossing).1.goal, RampGoal::JobsPerUser(10.0));
    }
}
