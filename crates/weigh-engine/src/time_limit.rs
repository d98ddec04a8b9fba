//! The budget as a limit, for all plans: what cannot fit into it is refused before anything is stored, and
//! what still runs when it is spent is killed soon after.
//!
//! Where something was measured, a sample is begun only if it will probably end in time (`next_rows.rs`). So
//! the limit ends first samples, and those that take much longer than the ones before.

use std::time::Duration;

use super::host::Host;
use super::length::start_ms;
use super::measure::{Session, fewest_pairs};
use super::platform::Stop;
use super::request::{Plan, ProgressSink, Request};
use super::work::{LoadRole, Work};
use paired::looks;
use weigh_model::format;
use weigh_model::ids::{ArmId, SetId, WorkId};
use weigh_model::record::Stored;
use weigh_model::result::warning::{Milestone, Warning};
use weigh_treatment::boot::are_boots;
use weigh_verdict::pairs::gather;

/// Times that are low for any machine: a budget that might do is not refused. A launch is that of a process
/// with its launcher; a server stores its first data before it answers.
const LAUNCH: Duration = Duration::from_millis(5);
const SERVER_START: Duration = Duration::from_millis(300);
const GUEST_BOOT: Duration = Duration::from_secs(3);

/// Checks that the budget has room for one result of each row.
///
/// # Errors
/// A sentence with a budget that would do.
pub fn check_budget(request: &Request, works: &[Work]) -> Result<(), String> {
    let budget = request.common.budget;
    if budget.is_zero() || are_boots(&request.common.arms) {
        return Ok(());
    }
    let Some(least) = LeastTime::of(request, works).filter(|least| least.first > budget) else {
        return Ok(());
    };
    let LeastTime { what, first, goal } = least;
    let clock = |time: Duration| format::clock(time.as_secs_f64());
    let (and_goal, enough) = match goal {
        Some(Goal { what, all, .. }) => {
            (format!(" {what} needs about {} in total.", clock(all)), all)
        }
        None => (String::new(), first),
    };
    Err(format!(
        "--budget {} is too short: {what} takes about {}.{and_goal} Use --budget {} or more, or measure less",
        clock(budget),
        clock(first),
        format::budget(enough.as_secs_f64()),
    ))
}

/// Says before anything is begun that the budget is too short for a verdict, where that is sure.
pub fn no_verdict_within(request: &Request, works: &[Work]) -> Option<String> {
    let budget = request.common.budget;
    if budget.is_zero() || are_boots(&request.common.arms) {
        return None;
    }
    let Goal { what, least, all } =
        LeastTime::of(request, works)?.goal.filter(|goal| goal.least > budget)?;
    let clock = |time: Duration| format::clock(time.as_secs_f64());
    Some(format!(
        "{what} needs at least {}, so --budget {} gives none. Use --budget {} or more.",
        clock(least),
        clock(budget),
        format::budget(all.as_secs_f64())
    ))
}

/// How long a plan takes at least.
#[derive(Debug, PartialEq)]
struct LeastTime {
    /// The part that gives the first results.
    what: String,
    first: Duration,
    goal: Option<Goal>,
}

/// Gain of more time.
#[derive(Debug, PartialEq)]
struct Goal {
    what: &'static str,
    /// Time until the first row has it, and until all rows have it.
    least: Duration,
    all: Duration,
}

impl LeastTime {
    /// Estimates the least time, except of plans whose first samples are chosen while they run.
    fn of(request: &Request, works: &[Work]) -> Option<LeastTime> {
        match &request.plan {
            Plan::Compare(_) => Some(LeastTime::of_pairs(request, works)),
            Plan::Run(run) => {
                let sample = |work: &Work| {
                    let timed = if work.has_length() { work.at_least(run.sample_ms) } else { 0 };
                    2 * launch(work) + Duration::from_millis(timed)
                };
                let (what, first) =
                    ("one sample of each workload".into(), works.iter().map(sample).sum());
                Some(LeastTime { what, first, goal: None })
            }
            Plan::Net(sweeps) => {
                let sweep = sweeps.grid.predicted_sweep();
                let sizing = sweeps.grid.predicted_sizing();
                let all = sizing + sweep * looks::FIRST as u32;
                Some(LeastTime {
                    what: format!("one sweep over grid {}, with its sizing,", sweeps.grid.name),
                    first: sizing + sweep,
                    goal: Some(Goal { what: "An interval", least: all, all }),
                })
            }
            Plan::Ramp(_) => None,
        }
    }

    fn of_pairs(request: &Request, works: &[Work]) -> LeastTime {
        let treated = request.common.arms.len().saturating_sub(1).max(1) as u32;
        let sample_ms = request.plan.sample_ms().unwrap_or(start_ms(false));
        let judged = || works.iter().filter(|work| work.role() == LoadRole::Named);
        let trial: Duration = judged().map(|work| launch(work) * (treated + 1)).sum();
        let sample = |work: &Work| match work {
            Work::Net(net) => net.grid.predicted_pair() / 2,
            _ if work.has_length() => launch(work) + Duration::from_millis(sample_ms),
            _ => launch(work),
        };
        let pairs: Duration = judged().map(|work| sample(work) * 2 * treated).sum();
        let shortest = judged().map(|work| sample(work) * 2).min().unwrap_or_default();
        let boots = if request.has_guests() { GUEST_BOOT * (treated + 1) } else { Duration::ZERO };
        let sizing = judged().filter_map(|work| match work {
            Work::Net(net) => Some(net.grid.predicted_sizing()),
            _ => None,
        });
        let (trial, round) = (trial + sizing.max().unwrap_or_default(), pairs + boots);
        let rows = judged().count() * treated as usize;
        let more = fewest_pairs(request, works) as u32 - 1;
        let goal = Goal {
            what: "A verdict",
            least: trial + round + (shortest + boots) * more,
            all: trial + round * (more + 1),
        };
        LeastTime {
            what: match rows {
                1 => "a pair of samples".to_owned(),
                rows => format!("a pair of samples for each of {}", format::plural(rows, "row")),
            },
            first: trial + round,
            goal: Some(goal),
        }
    }
}

/// Time that a launch takes beside its timed part. Nothing is known of a command.
fn launch(work: &Work) -> Duration {
    match work {
        Work::Net(_) | Work::Command { .. } | Work::CommandComparison { .. } => Duration::ZERO,
        _ if work.asks() => SERVER_START,
        _ => LAUNCH,
    }
}

impl Session<'_> {
    /// When the budget is spent, since the experiment began; `None` where there is none. Boots count theirs
    /// by themselves.
    pub(super) fn end(&self) -> Option<Duration> {
        let budget = self.request.common.budget;
        let is_limited = !budget.is_zero() && !are_boots(&self.request.common.arms);
        is_limited.then(|| self.earlier.elapsed + budget)
    }

    /// Ends an experiment whose plan wants more than there was time for.
    ///
    /// # Errors
    /// Where it has no result: what is `unfinished`, with a budget that would do.
    pub(super) fn end_in_time(
        &self,
        host: &Host,
        unfinished: &str,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let stored = self.store.load(self.id).map_err(Stop::from)?;
        let (rows, measured) = self.unmeasured(&stored);
        if rows.is_empty() {
            return Ok(());
        }
        let budget = self.request.common.budget.as_secs_f64();
        let enough = self.launches_wanted() as f64 * host.mean_launch().as_secs_f64();
        let enough = format::budget(enough.max(2.0 * budget));
        match self.request.plan {
            // It chooses its points while it runs, and has warned of what it did not reach.
            Plan::Ramp(_) if measured > 0 => return Ok(()),
            _ if measured > 0 => {
                return self.warn(progress_sink, &Warning::BudgetTooSmall { rows, enough });
            }
            _ => {}
        }
        Err(Stop::Failed(format!(
            "--budget {} is too short: {unfinished}. Use --budget {enough} or more, or measure less",
            format::clock(budget)
        )))
    }

    /// Warns of what was asked for beside the samples of this set and is not done, as the budget is spent.
    pub(super) fn warn_of_skipped(
        &self,
        set: SetId,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let plan = &self.request.plan;
        let (next, of) = (set.0 + 2, self.earlier.sets.end);
        let has_trace = matches!(plan, Plan::Net(sweeps) if sweeps.trace.is_some());
        let skipped = [
            (next <= of).then_some(Milestone::Set { set: next, of }),
            plan.profiler().map(|_| Milestone::Profiler),
            has_trace.then_some(Milestone::Trace),
        ];
        skipped.into_iter().flatten().try_for_each(|milestone| {
            self.warn(progress_sink, &Warning::BudgetEndedBefore { milestone })
        })
    }

    /// The rows that neither have a result nor failed, and how many rows have one.
    fn unmeasured(&self, stored: &Stored) -> (Vec<String>, usize) {
        let arms = &self.request.common.arms;
        let is_compared = arms.len() > 1;
        let treated = if is_compared { 1..arms.len() } else { 0..1 };
        let named = self.works.iter().enumerate();
        let named = named.filter(|(_, work)| work.role() != LoadRole::Candidate);
        let rows: Vec<(WorkId, ArmId)> = named
            .flat_map(|(work, _)| treated.clone().map(move |arm| (WorkId(work), ArmId(arm))))
            .collect();
        let pairs = gather(stored);
        let has_result = |(work, arm): &(WorkId, ArmId)| match is_compared {
            true => pairs
                .iter()
                .any(|row| (row.work, row.arm) == (*work, *arm) && !row.series.is_empty()),
            false => {
                let of_work = stored.samples.iter().filter(|((of, _), _)| of == work);
                of_work.map(|(_, row)| row.points.len()).sum::<usize>() > 0
            }
        };
        let has_failed = |(work, arm): &(WorkId, ArmId)| {
            stored.has_no_result_in(&self.works[*work].name(), *arm)
        };
        let open = rows.iter().filter(|row| !has_result(row) && !has_failed(row));
        let name = |(work, arm): &(WorkId, ArmId)| match self.request.plan.contest() {
            Some(_) => format!("`{}`", arms[arm.0]),
            None if arms.len() > 2 => {
                format!("`{}` under `{}`", self.works[*work].name(), arms[arm.0])
            }
            None => format!("`{}`", self.works[*work].name()),
        };
        (open.map(name).collect(), rows.iter().filter(|row| has_result(row)).count())
    }

    /// How many launches give the first verdicts, or the first results where there are none.
    fn launches_wanted(&self) -> usize {
        let treated = self.request.common.arms.len().saturating_sub(1);
        let of_work = match &self.request.plan {
            Plan::Compare(_) => 1 + treated + 2 * self.least_pairs() * treated,
            Plan::Run(_) => 2,
            Plan::Ramp(_) => 1,
            Plan::Net(_) => looks::FIRST,
        };
        self.works.len() * of_work
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net_work::NetWork;
    use crate::request::{Common, Comparison, Run, Sweeps};
    use weigh_net::grid::Grid;

    fn request(plan: Plan, arms: &[&str], budget_s: u64) -> Request {
        let arms = arms.iter().map(|arm| (*arm).to_owned()).collect();
        let budget = Duration::from_secs(budget_s);
        Request { common: Common { arms, budget, ..Common::default() }, plan }
    }

    fn grid(name: &str, budget_s: u64) -> Result<(), String> {
        let plan = Plan::Net(Sweeps::over(Grid::find(name).unwrap()));
        check_budget(&request(plan, &["none"], budget_s), &[])
    }

    #[test]
    fn a_grid_takes_one_sweep_and_eight_for_an_interval() {
        let refused = grid("1996", 15).unwrap_err();
        assert!(
            refused.starts_with(
                "--budget 15 s is too short: one sweep over grid 1996, with its sizing, takes "
            ),
            "{refused}"
        );
        assert!(grid("quick", 5).is_err());
        let named = grid("quick", 5).unwrap_err();
        let (_, named) = named.split_once("Use --budget ").unwrap();
        let minutes: u64 = named.split_once("m or more").unwrap().0.parse().unwrap();
        assert_eq!(grid("quick", minutes * 60), Ok(()), "what it names will do");
        let quick = Grid::find("quick").unwrap();
        let first = quick.predicted_sizing() + quick.predicted_sweep();
        assert_eq!(grid("quick", first.as_secs() + 1), Ok(()), "without an interval");
    }

    fn works(count: usize, needs: Option<&str>) -> Vec<Work> {
        let workload = serde_json::json!({
            "name": "a", "summary": "", "group": "ipc", "unit": "ops/s", "units_per_op": 1.0,
            "source": "", "needs": needs,
        });
        let workload = Box::new(serde_json::from_value(workload).unwrap());
        let work = Work::Builtin { workload, member: None, copies: 1, server: None, beside: None };
        vec![work; count]
    }

    fn compare(works: &[Work], arms: &[&str], budget_s: u64) -> Result<(), String> {
        check_budget(&request(Plan::Compare(Comparison::default()), arms, budget_s), works)
    }

    #[test]
    fn a_pair_of_each_row_fits_or_is_refused() {
        let arms = ["none", "none"];
        assert_eq!(compare(&works(10, None), &arms, 1), Ok(()));
        assert!(compare(&works(10, Some("database")), &arms, 5).is_err(), "of servers that start");
        let refused = compare(&works(1000, None), &arms, 5).unwrap_err();
        assert!(
            refused.contains("a pair of samples for each of 1,000 rows takes about"),
            "{refused}"
        );
        let refused = compare(&works(1, None), &["vm", "vm:selinux"], 1).unwrap_err();
        assert!(refused.contains("a pair of samples takes about"), "{refused}");
        let net =
            |part| NetWork { label: "net:today".into(), grid: Grid::find("today").unwrap(), part };
        let sweep = net(crate::net_work::NetPart::Sweep { class_bytes: None });
        assert!(compare(&[Work::Net(Box::new(sweep))], &arms, 10).is_err());
    }

    #[test]
    fn a_budget_of_one_pair_of_a_network_is_said_to_give_no_verdict() {
        let part = crate::net_work::NetPart::Sweep { class_bytes: None };
        let grid = Grid::find("quick").unwrap();
        let pair = grid.predicted_sizing() + grid.predicted_pair();
        let works = [Work::Net(Box::new(NetWork { label: "net:quick".into(), grid, part }))];
        let said = |budget_s| {
            let plan = Plan::Compare(Comparison::default());
            let request = request(plan, &["none", "none"], budget_s);
            assert_eq!(check_budget(&request, &works), Ok(()));
            no_verdict_within(&request, &works)
        };
        let told = said(pair.as_secs() + 2).unwrap();
        assert!(told.starts_with("A verdict needs at least "), "{told}");
        assert!(told.contains(" gives none. Use --budget "), "{told}");
        assert_eq!(said(8 * pair.as_secs() + 10), None);
    }

    #[test]
    fn a_first_verdict_of_many_rows_takes_less_than_all_but_more_than_eight_pairs() {
        let (request, goal) = {
            let request = request(Plan::Compare(Comparison::default()), &["none", "none"], 5);
            let goal = |count| LeastTime::of(&request, &works(count, None)).unwrap().goal.unwrap();
            let goals = [1, 100].map(goal);
            (request, goals)
        };
        assert_eq!(goal[0].least, goal[0].all);
        let pairs = fewest_pairs(&request, &works(100, None)) as u32;
        assert!(pairs > fewest_pairs(&request, &works(1, None)) as u32);
        // One launch per arm, and then pairs of 50 ms.
        let (trial, pair) = (Duration::from_millis(10), Duration::from_millis(50));
        assert_eq!(goal[1].least, (trial + pair) * 100 + pair * (pairs - 1));
        assert_eq!(goal[1].all, (trial + pair * pairs) * 100);
    }

    #[test]
    fn a_command_may_be_short_and_no_budget_is_no_limit() {
        let argv = vec!["sleep".to_owned(), "60".to_owned()];
        let command = Work::Command { argv, directory: "/".into() };
        assert_eq!(compare(std::slice::from_ref(&command), &["none", "none"], 1), Ok(()));
        let run = request(Plan::Run(Run::default()), &["none"], 0);
        assert_eq!(check_budget(&run, &vec![command; 1000]), Ok(()));
    }
}
