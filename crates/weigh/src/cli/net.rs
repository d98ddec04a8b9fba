//! `weigh net`: what does the network give a program while the machine is busy?

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Arg, Args, Subcommand};
use rustix::fs::{Access, access};

use super::files::Files;
use super::go_on::{ContinueOption, settled_by_continue};
use super::measuring::{Measuring, defaults_to};
use super::net_machines::NetMachines;
use super::net_rank::RankArgs;
use super::reproduce::ReproduceCommand;
use super::{Context, go_on, output, run, value};
use weigh_engine::net_answers::{ACTIVITY_SLOWDOWN, class_metric};
use weigh_engine::request::{PRECISION, Plan, Request, Sweeps};
use weigh_engine::session::More;
use weigh_host::interruption::listen_for_signals;
use weigh_model::printable;
use weigh_model::result::work_name::{NET, WorkName};
use weigh_model::workload::metric::Metric;
use weigh_net::grid::Grid;
use weigh_net::spec::Spec;

const EXAMPLES: &str = "\
Examples:
  weigh net                           one number, and both penalties, in about four minutes
  weigh net --grid today --budget 1h  longer cells, delays to 100 ms
  weigh net --grid 1996 --budget 8h   as the paper of 1996; then weigh net --continue ID
  weigh net --beside arith-double     another activity of the host
  weigh net --active root@a.lab --passive root@p.lab
                                      three machines; the other two are reached by ssh
  weigh net --spec testbed.toml       write it down; --from-spec testbed.toml replicates it
  weigh net rank k3f9qx ./other.json  machines by their BTU, with intervals and ties
  weigh compare audit -w net:btu-quick
      The same with a treatment and without: verdicts on BTU, penalties and classes.

Exit status: 0 done, 2 error or no result, 130 interrupted.";

/// Find out what the network gives programs while the host is busy, and what it takes from the host
///
/// Three hosts as network namespaces on this machine, payload of five sizes in six components beside
/// activities of the host, as Maly, Gupta and Mynam (1996) have it: one number (bits to the user), and
/// penalties in both directions. No traffic leaves the machine, unless the black boxes are other machines.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[command(mut_arg("budget", |budget| budget.default_value("4m")))]
#[command(mut_arg("timeout", |timeout| defaults_to(timeout, "2m, and more with a delay")))]
#[command(mut_args(settled_by_continue), mut_args(without_spec))]
pub struct NetArgs {
    #[command(subcommand)]
    command: Option<NetCommand>,
    /// Which cells, and how each is measured: quick, btu-quick, today, 1996, or a file (.toml)
    #[arg(long, value_name = "GRID", default_value = "quick")]
    grid: String,
    /// Write this testbed and the grid to a file, for others to replicate, and measure nothing; `-` is stdout
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Measure the grid of such a file, and say what of the testbed is different here
    #[arg(long, value_name = "FILE", conflicts_with_all = ["grid", "beside", "active"])]
    from_spec: Option<String>,
    /// An activity of the host in place of the grid's, any workload; may be repeated
    #[arg(long, value_name = "WORKLOAD")]
    beside: Vec<String>,
    #[command(flatten)]
    measuring: Measuring,
    /// How narrow the interval of the BTU is to be, to either side [default: 5%, with --continue as before]
    #[arg(long, value_name = "PERCENT", value_parser = value::percentage)]
    precision: Option<f64>,
    #[command(flatten)]
    later: ContinueOption,
    /// Afterwards, measure every cell once more, not scored, and write what W_test's interfaces carried into
    /// this directory: a pcap file each, with the headers of every packet
    #[arg(long, value_name = "DIRECTORY")]
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
            return output::write_report(path, &spec.text()).map(|()| 0);
        }
        let store = context.open_store()?;
        if let Some(id) = &self.later.go_on {
            let budget = self.measuring.budget.unwrap_or_default();
            let (budget_per_row, precision) = (Duration::ZERO, self.precision);
            let more = |_: &Request| More { budget, budget_per_row, precision };
            let done = go_on::run(id, more, &store, context)?;
            store
                .set_naming(&done.id, &self.measuring.naming())
                .map_err(|error| error.to_string())?;
            return run::end(&done, &store, &self.files, context);
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
        run::measure(&request, &store, &self.files, context, &interrupted)
    }

    fn grid(&self) -> Result<Grid, String> {
        let mut grid = match &self.from_spec {
            Some(path) => Spec::read(path)?.grid,
            None => Grid::find(&self.grid)?,
        };
        if !self.beside.is_empty() {
            grid.activities.clone_from(&self.beside);
        }
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

/// # Errors
/// A sentence, where scores of this testbed would be others.
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
