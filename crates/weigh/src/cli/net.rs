//! `weigh net`: what does the network give a program while the machine is busy?

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Arg, Args, Subcommand};
use rustix::fs::{Access, access};

use super::files::Files;
use super::formats::csv_of;
use super::go_on::{ContinueOption, settled_by_continue};
use super::list::read_workloads;
use super::measuring::{MEASURING, Measuring};
use super::net_machines::NetMachines;
use super::net_rank::RankArgs;
use super::reproduce::ReproduceCommand;
use super::{Context, go_on, output, run, value};
use weigh_engine::net_answers::{ACTIVITY_SLOWDOWN, class_metric};
use weigh_engine::request::{PRECISION, Plan, Request, Sweeps};
use weigh_engine::resolve::check_activity;
use weigh_engine::session::More;
use weigh_host::interruption::listen_for_signals;
use weigh_model::printable;
use weigh_model::result::work_name::{NET, WorkName};
use weigh_model::workload::metric::Metric;
use weigh_net::grid::Grid;
use weigh_net::spec::Spec;

const EXAMPLES: &str = "\
Examples:
  weigh net
      Show how fast programs get data while this host is busy (BTU), and how
      much the work and the transfers slow each other. Takes 6 to 7 minutes.
  weigh net --grid today --budget 4h
      Use longer transfers, and delays up to 100 ms.
  weigh net --grid 1996 --budget 8h
      Measure as the paper of 1996; continue it with `weigh net --continue ID`.
  weigh net --beside arith-double
      Keep the host busy with this workload.
  sudo weigh net --active root@a.lab --passive root@p.lab
      Put the two peers on other machines, which weigh reaches by ssh.
  weigh net --spec testbed.toml
      Write the testbed to a file; --from-spec testbed.toml replicates it.
  weigh net rank k3f9qx ./other.json
      Rank machines by their BTU, with intervals and ties.
  sudo weigh compare audit -w net:btu-quick
      Compare with and without a treatment: give verdicts on the BTU, on the
      penalty of the host, and on the BTU of each class.

Exit status: 0 done, 2 error or no result, 3 no complete sweep, 130 interrupted.";

/// Time for the sweeps of `quick` that an interval needs: see the test below.
const BUDGET: &str = "7m";
const BUDGET_HELP: &str = "Stop measuring after this time. The interval may then be wider than --precision. \
                           A time that is too short for one sweep is refused";
const TIMEOUT_HELP: &str = "Kill the processes of a cell after this time, and report no BTU [default: 2m, \
                            and 500 round trips more for cells with a delay]";
const CONTINUE_HELP: &str = "Continue this stored experiment. Measures for the time of --budget, and judges \
                             stored and new sweeps (passes over all cells) together";

const USAGE: &str = "weigh net [OPTIONS]
       weigh net [OPTIONS] --continue <ID>
       weigh net rank [OPTIONS] <ID>...";

/// Measure the rate of transfers over simulated links while this host is busy, and how much
/// the transfers slow its other work
///
/// Builds three hosts as network namespaces on this machine: the host under test (W_test) and two peers.
/// W_active takes part in every transfer; W_passive joins in those with two connections. No traffic leaves
/// the machine without --active and --passive.
///
/// A component is a kind of TCP transfer: sending, receiving, both at once, sending or receiving over a link
/// with delay, or sending over a link that drops packets. An activity is the work that keeps the host busy:
/// arithmetic, file copies or FTP. A cell is one transfer: a component, a class (bytes per write, 100 to
/// 65536), and an activity or no activity.
///
/// BTU (bits to the user) is the geometric mean of the rates of the cells with an activity, in Mb/s; each
/// component counts once, with the mean over its delays or drops. A penalty is the extra time that a transfer
/// takes alongside an activity, or an activity alongside a transfer. The method is that of Maly, Gupta and
/// Mynam (1996); docs/net.md explains it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE, args_conflicts_with_subcommands = true)]
#[command(mut_arg("budget", |budget| budget.help(BUDGET_HELP).default_value(BUDGET)))]
#[command(mut_arg("csv", |csv| csv_of(csv, "measured transfer")))]
#[command(mut_arg("timeout", |timeout| timeout.help(TIMEOUT_HELP)))]
#[command(mut_arg("go_on", |go_on| go_on.help(CONTINUE_HELP)))]
#[command(mut_args(settled_by_continue), mut_args(without_spec))]
pub struct NetArgs {
    #[command(subcommand)]
    command: Option<NetCommand>,
    /// Name of a list of transfers to measure (a grid), or a file with your own list, such as ./my.toml. The
    /// names are quick, btu-quick, today and 1996 (docs/net.md)
    #[arg(long, value_name = "GRID", default_value = "quick")]
    grid: String,
    /// Write the grid and the network's settings to FILE, and measure nothing. With FILE, others can repeat
    /// the experiment (--from-spec). `-` is stdout
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Measure the grid in a FILE that --spec wrote. Report the differences between the two testbeds
    #[arg(long, value_name = "FILE", conflicts_with_all = ["grid", "beside", "active"])]
    from_spec: Option<String>,
    /// Keep the host busy with this workload. It replaces the activities of the grid. May be repeated
    #[arg(long, value_name = "WORKLOAD")]
    beside: Vec<String>,
    #[command(flatten)]
    measuring: Measuring,
    /// Stop when the BTU is known to ±PERCENT [default: 5%]. With --continue, the default is the
    /// value of the stored experiment
    #[arg(long, value_name = "PERCENT", value_parser = value::percentage)]
    #[arg(help_heading = MEASURING)]
    precision: Option<f64>,
    #[command(flatten)]
    later: ContinueOption,
    /// After measuring, run every cell once more without counting it, and write the packet headers at the
    /// interfaces of the host under test (W_test) to this directory, one pcap file per cell
    #[arg(long, value_name = "DIRECTORY", hide_short_help = true)]
    trace: Option<PathBuf>,
    #[command(flatten)]
    machines: NetMachines,
    #[command(flatten)]
    files: Files,
}

#[derive(Debug, Subcommand)]
enum NetCommand {
    Rank(RankArgs),
}

impl NetArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        if let Some(NetCommand::Rank(rank)) = self.command {
            return rank.run(context);
        }
        self.files.check()?;
        if let Some(path) = &self.spec {
            output::check_writable(path)?;
            let interrupted = listen_for_signals()?;
            let spec = Spec::of_this_machine(self.grid()?, &interrupted)?;
            output::write_report(path, &spec.text())?;
            if path != Path::new("-") {
                output::note(&format!(
                    "Wrote {path}; `weigh net --from-spec {path}` measures the same grid elsewhere.",
                    path = path.display()
                ));
            }
            return Ok(0);
        }
        if let Some(id) = &self.later.go_on {
            let budget = self.measuring.budget.unwrap_or_default();
            let (precision, wait) = (self.precision, self.measuring.queue.wait);
            let more = |_: &Request| More {
                budget,
                budget_per_row: Duration::ZERO,
                fail_above: None,
                precision,
                wait,
            };
            let store = context.open_store()?;
            let done = go_on::run(id, more, &store, context)?;
            store
                .set_naming(&done.id, &self.measuring.naming())
                .map_err(|error| error.to_string())?;
            return run::end(&done, run::is_swept, &store, &self.files, context);
        }
        if let Some(directory) = self.trace.as_ref().filter(|directory| !directory.is_dir()) {
            return Err(format!("--trace {}: there is no such directory", directory.display()));
        }
        if let Some(directory) = &self.trace {
            let can_write = access(directory, Access::WRITE_OK | Access::EXEC_OK);
            can_write.map_err(|error| format!("--trace {}: {error}", directory.display()))?;
        }
        let interrupted = listen_for_signals()?;
        let grid = self.grid()?;
        if let Some(path) = &self.from_spec {
            check_against(path, &grid, &interrupted)?;
        }
        let request = self.request(grid, &context.again)?;
        let store = context.open_store_for(&request)?;
        run::measure(&request, &store, &self.files, context, &interrupted)
    }

    fn grid(&self) -> Result<Grid, String> {
        let workloads = read_workloads()?;
        let check = |activity: &str| check_activity(activity, &workloads);
        if !self.beside.is_empty() {
            let checked = self.beside.iter().try_for_each(|activity| check(activity));
            checked.map_err(|problem| format!("--beside: {problem}"))?;
            let grid = Grid::find(&self.grid)?;
            return Ok(Grid { activities: self.beside.clone(), ..grid });
        }
        let Some(path) = &self.from_spec else { return Grid::find_if(&self.grid, &check) };
        let grid = Spec::read(path)?.grid;
        let checked = grid.activities.iter().try_for_each(|activity| check(activity));
        checked.map_err(|problem| format!("{path}: {problem}"))?;
        Ok(grid)
    }

    fn request(&self, grid: Grid, typed: &ReproduceCommand) -> Result<Request, String> {
        let seed = self.measuring.seed()?;
        let common = self.measuring.common(&typed.clone().with("--seed", seed), seed);
        let sweeps = Sweeps {
            precision: self.precision.unwrap_or(PRECISION),
            trace: self.trace.clone(),
            far_hosts: self.machines.far_hosts()?,
            ..Sweeps::over(grid)
        };
        Ok(Request { common, plan: Plan::Net(sweeps) })
    }
}

/// Only the grid is written to a file, and nothing is measured then.
fn without_spec(option: Arg) -> Arg {
    match ["spec", "grid", "beside"].contains(&option.get_id().as_str()) {
        true => option,
        false => option.conflicts_with("spec"),
    }
}

fn check_against(path: &str, grid: &Grid, interrupted: &AtomicBool) -> Result<(), String> {
    let here = Spec::of_this_machine(grid.clone(), interrupted)?;
    let found = Spec::read(path)?.differences(&here);
    if !found.forbidden.is_empty() {
        return Err(format!("{path} cannot be replicated here: {}", found.forbidden.join("; ")));
    }
    match found.told.is_empty() {
        true => output::note(&format!("This testbed is as {path} has it.")),
        false => {
            output::note(&format!("Unlike in {path}: {}.", printable::line(&found.told.join("; "))))
        }
    }
    Ok(())
}

/// Adds the metrics of a grid that are judged besides its BTU: the host's penalty, and each class.
/// COMM's own slowdown takes nearly as many cells again, so it is judged only on request.
pub fn with_scores(mut metrics: Vec<Metric>, workloads: &[String]) -> Result<Vec<Metric>, String> {
    for work in WorkName::parse_all(workloads)? {
        let Some(grid) = work.name.strip_prefix(NET) else { continue };
        let mut grid = Grid::find(grid)?;
        // The BTU of one class is the row's own.
        grid.classes.retain(|_| work.bytes().is_none());
        let classes =
            grid.classes.iter().map(|class| Metric::Named(class_metric(class.bytes).into()));
        let penalty = Metric::Named(ACTIVITY_SLOWDOWN.into());
        for metric in std::iter::once(penalty).chain(classes) {
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
    }
    Ok(metrics)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paired::looks;

    /// With fewer sweeps, each run would end with a warning that the interval is not known.
    #[test]
    fn the_default_budget_lasts_for_the_first_look_at_the_default_grid() {
        let grid = Grid::find("quick").unwrap();
        let needed = grid.predicted_sizing() + grid.predicted_sweep() * looks::FIRST as u32;
        let budget = value::duration(BUDGET).unwrap();
        assert!(needed * 6 / 5 <= budget, "{needed:?} and a fifth more");
    }
}
