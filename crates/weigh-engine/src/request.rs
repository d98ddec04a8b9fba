//! Request for an experiment, and the audience that watches it.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::command_comparison::CommandComparison;
use super::effects;
use super::further_readings::{of_cells, of_points};
use super::hooks::Hooks;
use super::length::LONG_START_MS;
use super::platform::Observer;
use super::run_progress::Progress;
use super::selection::Selection;
use super::surroundings::Surroundings;
use paired::design::Design;
use weigh_host::machine::check;
use weigh_model::ids::SetId;
use weigh_model::record::ExperimentKind;
use weigh_model::result::scheme::Scheme;
use weigh_model::result::warning::Warning;
use weigh_model::result::work_name::{NET, WorkName};
use weigh_model::workload::metric::Metric;
use weigh_model::workload::mix::{JobPace, JobSizes, MixFromFile};
use weigh_model::workload::suite::FromFile;
use weigh_model::workload::wrong_answers::OnWrong;
use weigh_net::far_host::FarHosts;
use weigh_net::grid::Grid;
use weigh_station::client::WhoIsTreated;
use weigh_store::names::Naming;
use weigh_treatment::{self as treatment, Named, Occupied};
use weigh_verdict::ramp::{RampGoal, RampPlan};
use weigh_verdict::schedule::{Schedule, SchemePilot};

/// How narrow the interval at a peak or of a BTU is to be, to either side.
pub const PRECISION: f64 = 0.05;

/// As many as `weigh run` takes samples.
const RUNS_OF_ONE_COMMAND: usize = 20;

/// Request for measurements. It is stored with the experiment, so that a later session can continue
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    #[serde(flatten)]
    pub common: Common,
    #[serde(flatten)]
    pub plan: Plan,
}

/// The fields that every plan uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Common {
    /// Labels of treatments, or of the commands of a contest; the baseline's first.
    pub arms: Vec<String>,
    /// The command line that measures the same again.
    pub again: String,
    pub seed: u64,
    /// How long is measured; zero where the plan itself says when it ends.
    pub budget: Duration,
    /// How long a launch may last, where the user says so.
    pub timeout: Option<Duration>,
    /// The name and tags of this experiment; a later session may change them.
    #[serde(skip)]
    pub naming: Naming,
    /// Warnings of the report about the request.
    #[serde(skip)]
    pub warnings: Vec<Warning>,
    /// How long to wait for another experiment on this host; not at all without.
    #[serde(skip)]
    pub wait: Option<Duration>,
}

impl Default for Common {
    /// One arm without any treatment.
    fn default() -> Common {
        Common {
            arms: vec!["none".into()],
            again: String::new(),
            seed: 0,
            budget: Duration::ZERO,
            timeout: None,
            naming: Naming::default(),
            warnings: Vec::new(),
            wait: None,
        }
    }
}

/// How samples are taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "plan")]
pub enum Plan {
    /// Pairs of arms.
    Compare(Comparison),
    /// One arm alone: passes over workloads.
    Run(Run),
    /// One arm alone: the load points of one mix.
    Ramp(LoadRamp),
    /// One arm alone: sweeps over the cells of a grid.
    Net(Sweeps),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub compared: Compared,
    /// Labels of the fixtures of all arms.
    pub fixtures: Vec<String>,
    /// Complete and separate repetitions of the experiment.
    pub sets: usize,
    /// The margin of equivalence as a fraction.
    pub margin: f64,
    pub design: Design,
    /// Metrics that are judged besides the rate and CPU time.
    pub further_metrics: Vec<Metric>,
    /// Lines to run around each command.
    pub around: Hooks,
    pub profiler: Option<String>,
    /// The machines of the black boxes of a grid; `None` for this machine.
    pub far_hosts: Option<FarHosts>,
    /// Length of a sample of a workload; with `None` the first pairs choose it.
    pub sample_ms: Option<u64>,
    pub interleave: Interleave,
    /// True if rows take pairs of processes that have lived for a second, before they are called
    /// equivalent or faster.
    pub takes_old_pairs: bool,
    /// True if a detail pass follows the pairs.
    pub detail: bool,
    /// Treated side: the servers, their clients or both.
    pub treated: WhoIsTreated,
    /// True if wrong answers of a server fail no workload, and its good answers are compared.
    #[serde(default)]
    pub counts_good_answers: bool,
    /// Passes over servers that each arm keeps, in place of pairs of new ones.
    #[serde(default)]
    pub endurance: Option<Endurance>,
    /// True if the arms' effects are known, and the machine is judged by them.
    pub is_calibration: bool,
    /// True if an earlier experiment of the same command has said how long this one takes.
    #[serde(skip)]
    pub is_announced: bool,
    /// How long it takes at least for each row, where nobody gave a budget; zero where somebody did.
    #[serde(skip)]
    pub budget_per_row: Duration,
    /// Cost limit that no row may be shown to exceed, as a share of the rate.
    #[serde(skip)]
    pub fail_above: Option<f64>,
}

impl Default for Comparison {
    fn default() -> Comparison {
        Comparison {
            compared: Compared::Workloads(Workloads::default()),
            fixtures: Vec::new(),
            sets: 1,
            margin: 0.01,
            design: Design::default(),
            further_metrics: Vec::new(),
            around: Hooks::default(),
            profiler: None,
            far_hosts: None,
            sample_ms: None,
            interleave: Interleave::Never,
            takes_old_pairs: false,
            detail: false,
            treated: WhoIsTreated::Both,
            counts_good_answers: false,
            endurance: None,
            is_calibration: false,
            is_announced: false,
            budget_per_row: Duration::ZERO,
            fail_above: None,
        }
    }
}

/// Choice between pairs whose two processes alternate on one CPU, and sequential pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interleave {
    Never,
    WherePossible,
    /// As the first pairs of each row choose, where possible.
    PilotChooses,
}

/// Programs that the arms of a comparison run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "an experiment has one")]
pub enum Compared {
    Workloads(Workloads),
    /// One command as a whole, in all arms.
    Command(Vec<String>),
    /// One command per arm.
    CommandComparison(CommandComparison),
}

/// Workloads of ours, as a user named them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workloads {
    /// Workloads, suites, mixes, files with suites or mixes.
    pub names: Vec<String>,
    /// The suites of the files among them.
    pub suites: Vec<FromFile>,
    /// The mixes of the files among them.
    pub mixes: Vec<MixFromFile>,
    pub job_sizes: JobSizes,
    /// Copies of each workload to run at once; several values measure each.
    pub copies: Vec<usize>,
    /// Activities alongside the workloads, each of which is measured alone too.
    pub beside: Vec<String>,
    /// The machine of the client, where that is another: what --client takes.
    pub client: Option<String>,
}

impl Default for Workloads {
    /// None yet, each in one copy.
    fn default() -> Workloads {
        Workloads {
            names: Vec::new(),
            suites: Vec::new(),
            mixes: Vec::new(),
            job_sizes: JobSizes::default(),
            copies: vec![1],
            beside: Vec::new(),
            client: None,
        }
    }
}

/// Workloads that are measured alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub workloads: Workloads,
    pub fixtures: Vec<String>,
    /// Length of a sample, or of a pass.
    pub sample_ms: u64,
    pub passes: Passes,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            workloads: Workloads::default(),
            fixtures: Vec::new(),
            sample_ms: LONG_START_MS,
            passes: Passes::Planned { plan: "samples".into(), value: "20".into() },
        }
    }
}

/// The passes over each workload of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Passes {
    /// A plan in `plan/kind/`, with the value of its option.
    Planned { plan: String, value: String },
    /// With the same servers in all of them.
    Endure(Endurance),
    /// As many as find the highest rate in an open loop with a p99 of so much at the most.
    Capacity { p99_ns: f64 },
    /// With the durations and passes of the suite's original.
    Classic,
}

/// Passes over servers that are never started anew.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Endurance {
    pub passes: usize,
    /// Requests that begin in 1000 s, whether or not there were answers; 0 if each client waits for its own.
    pub per_1000s: u64,
}

/// A mix under growing load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRamp {
    /// With `load:` before it.
    pub mix: String,
    /// The mix, if it is a file.
    pub mixes: Vec<MixFromFile>,
    /// The users of each load point, ascending.
    pub users: Vec<NonZero<usize>>,
    pub job_sizes: JobSizes,
    pub fixtures: Vec<String>,
    pub ramp: RampPlan,
    pub profiler: Option<String>,
}

impl Default for LoadRamp {
    fn default() -> LoadRamp {
        LoadRamp {
            mix: "load:shared".into(),
            mixes: Vec::new(),
            users: Vec::new(),
            job_sizes: JobSizes::default(),
            fixtures: Vec::new(),
            ramp: RampPlan::doubling(RampGoal::Peak, PRECISION),
            profiler: None,
        }
    }
}

/// Sweeps over the cells of a grid, until the interval of the BTU is narrow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweeps {
    pub grid: Grid,
    /// Half the width that the interval is to have, as a share.
    pub precision: f64,
    /// Where one more sweep, which is not scored, writes what W_test's interfaces carried.
    pub trace: Option<PathBuf>,
    /// The machines of the black boxes; `None` for this machine.
    pub far_hosts: Option<FarHosts>,
}

impl Sweeps {
    pub fn over(grid: Grid) -> Sweeps {
        Sweeps { grid, precision: PRECISION, trace: None, far_hosts: None }
    }

    pub fn label(&self) -> String {
        format!("{NET}{}", self.grid.name)
    }
}

impl Plan {
    pub fn comparison(&self) -> Option<&Comparison> {
        match self {
            Plan::Compare(comparison) => Some(comparison),
            Plan::Run(_) | Plan::Ramp(_) | Plan::Net(_) => None,
        }
    }

    /// Returns the passes over servers that are never started anew, if the plan has them.
    pub fn endurance(&self) -> Option<Endurance> {
        match self {
            Plan::Compare(comparison) => comparison.endurance,
            Plan::Run(Run { passes: Passes::Endure(endurance), .. }) => Some(*endurance),
            Plan::Run(_) | Plan::Ramp(_) | Plan::Net(_) => None,
        }
    }

    /// Returns the workloads, if the plan measures workloads that a user named.
    pub fn workloads(&self) -> Option<&Workloads> {
        match self {
            Plan::Compare(comparison) => match &comparison.compared {
                Compared::Workloads(workloads) => Some(workloads),
                Compared::Command(_) | Compared::CommandComparison(_) => None,
            },
            Plan::Run(run) => Some(&run.workloads),
            Plan::Ramp(_) | Plan::Net(_) => None,
        }
    }

    pub fn command(&self) -> Option<&[String]> {
        match &self.comparison()?.compared {
            Compared::Command(argv) => Some(argv),
            Compared::Workloads(_) | Compared::CommandComparison(_) => None,
        }
    }

    pub fn contest(&self) -> Option<&CommandComparison> {
        match &self.comparison()?.compared {
            Compared::CommandComparison(contest) => Some(contest),
            Compared::Workloads(_) | Compared::Command(_) => None,
        }
    }

    /// How often one command is run, if there is no other to compare it with.
    pub fn runs_of_one_command(&self) -> Option<usize> {
        let is_one = self.contest().is_some_and(|contest| contest.lines.len() == 1);
        is_one.then(|| self.design().fixed_pairs.unwrap_or(RUNS_OF_ONE_COMMAND))
    }

    pub fn fixtures(&self) -> &[String] {
        match self {
            Plan::Compare(comparison) => &comparison.fixtures,
            Plan::Run(run) => &run.fixtures,
            Plan::Ramp(ramp) => &ramp.fixtures,
            Plan::Net(_) => &[],
        }
    }

    pub fn far_hosts(&self) -> Option<&FarHosts> {
        match self {
            Plan::Compare(comparison) => comparison.far_hosts.as_ref(),
            Plan::Net(sweeps) => sweeps.far_hosts.as_ref(),
            Plan::Run(_) | Plan::Ramp(_) => None,
        }
    }

    /// The line that looks at the processes of one more launch.
    pub fn profiler(&self) -> Option<&str> {
        match self {
            Plan::Compare(comparison) => comparison.profiler.as_deref(),
            Plan::Ramp(ramp) => ramp.profiler.as_deref(),
            Plan::Run(_) | Plan::Net(_) => None,
        }
    }

    /// Length of a sample, if it is given.
    pub fn sample_ms(&self) -> Option<u64> {
        match self {
            Plan::Compare(comparison) => comparison.sample_ms,
            Plan::Run(run) => Some(run.sample_ms),
            Plan::Ramp(_) | Plan::Net(_) => None,
        }
    }

    /// The machine of the client, where that is another.
    pub fn client(&self) -> Option<&str> {
        self.workloads()?.client.as_deref()
    }

    /// Side that has the treatment: servers, their clients, or both.
    pub fn treated(&self) -> WhoIsTreated {
        match self {
            Plan::Compare(comparison) => comparison.treated,
            Plan::Run(_) if self.client().is_some() => WhoIsTreated::Server,
            Plan::Run(_) | Plan::Ramp(_) | Plan::Net(_) => WhoIsTreated::Both,
        }
    }

    /// When users of a mix begin their jobs.
    pub fn pace(&self) -> JobPace {
        match self {
            Plan::Ramp(ramp) => ramp.job_sizes.pace,
            _ => self.workloads().map(|workloads| workloads.job_sizes.pace).unwrap_or_default(),
        }
    }

    /// Returns the metrics that are kept and judged besides the rate and CPU time.
    pub fn further_metrics(&self) -> Vec<Metric> {
        match self {
            Plan::Compare(comparison) => {
                // Of interleaved pairs, the rate over all time backs the verdict. A run of a command has no
                // slices of its own that a median could leave out.
                let is_of_commands = self.contest().is_some() || self.command().is_some();
                let has_slices = self.may_interleave() && !is_of_commands;
                let all_time = has_slices.then_some(Metric::OverallRate);
                all_time.into_iter().chain(comparison.further_metrics.iter().cloned()).collect()
            }
            Plan::Run(_) => Vec::new(),
            Plan::Ramp(_) => of_points(),
            Plan::Net(_) => of_cells(),
        }
    }

    /// Returns the choice of interleaved pairs; without pairs, `Never`.
    pub fn interleave(&self) -> Interleave {
        self.comparison().map_or(Interleave::Never, |comparison| comparison.interleave)
    }

    /// Returns the effect of wrong answers of a server on its workload.
    pub fn on_wrong(&self) -> OnWrong {
        match self.comparison().is_some_and(|comparison| comparison.counts_good_answers) {
            true => OnWrong::Count,
            false => OnWrong::Fail,
        }
    }

    pub fn may_interleave(&self) -> bool {
        self.interleave() != Interleave::Never
    }

    /// How many sets it has; without pairs there is one.
    pub fn sets(&self) -> usize {
        self.comparison().map_or(1, |comparison| comparison.sets)
    }

    /// The margin of equivalence as a fraction; without pairs, the usual one.
    pub fn margin(&self) -> f64 {
        self.comparison().map_or(Comparison::default().margin, |comparison| comparison.margin)
    }

    /// The design of its pairs; without pairs, the usual one.
    pub fn design(&self) -> Design {
        self.comparison().map(|comparison| comparison.design.clone()).unwrap_or_default()
    }

    /// The labels of what is measured, as a user might write them.
    pub fn names(&self) -> Vec<String> {
        match self {
            Plan::Ramp(ramp) => {
                let point = |users: &NonZero<usize>| WorkName::of_users(&ramp.mix, users.get());
                ramp.users.iter().map(|users| point(users).to_string()).collect()
            }
            Plan::Net(sweeps) => vec![sweeps.label()],
            _ => self.workloads().map(|workloads| workloads.names.clone()).unwrap_or_default(),
        }
    }

    pub fn kind(&self) -> ExperimentKind {
        match self {
            Plan::Compare(comparison) => match &comparison.compared {
                Compared::CommandComparison(_) => ExperimentKind::Versus,
                _ if comparison.is_calibration => ExperimentKind::Calibrate,
                _ => ExperimentKind::Compare,
            },
            Plan::Run(_) | Plan::Ramp(_) | Plan::Net(_) => ExperimentKind::Run,
        }
    }
}

impl Request {
    pub fn treatments(&self) -> Result<Vec<Named>, String> {
        match self.plan.contest() {
            Some(contest) => contest.treatments(),
            None => build_treatments(&self.common.arms, self.plan.fixtures()),
        }
    }

    /// Returns the surroundings that arms provide for their samples.
    pub fn surroundings(&self) -> Surroundings {
        Surroundings::of(&self.common.arms, self.plan.fixtures())
    }

    /// These workloads, as all else of it has them.
    pub fn asked_for<'a>(&self, workloads: &'a Workloads) -> Selection<'a> {
        Selection {
            names: &workloads.names,
            suites: &workloads.suites,
            mixes: &workloads.mixes,
            copies: &workloads.copies,
            sizes: &workloads.job_sizes,
            beside: &workloads.beside,
            surroundings: self.surroundings(),
            treated: self.plan.treated(),
            // Effects of factors are made of the same load points in all arms.
            seeks_peaks: self.plan.kind() == ExperimentKind::Compare
                && effects::factorial(&self.common.arms).is_none(),
        }
    }

    /// Returns true if an arm is a guest that counts instructions.
    pub(super) fn has_guests(&self) -> bool {
        self.common.arms.iter().any(|label| treatment::is_of_guest(label))
    }

    /// Returns false for a warning about auditing by this kernel if any arm is a guest.
    pub(super) fn is_affected_by(&self, warning: &Warning) -> bool {
        !self.has_guests() || !check::is_about_auditing(warning)
    }

    /// Returns the metrics that are judged for each row, the rate first.
    pub fn metrics(&self) -> Vec<Metric> {
        let further = self.plan.further_metrics();
        let mut judged = Metric::judged(self.plan.design().fixed_pairs, &further);
        // Of a guest that counts instructions it is no time, a client elsewhere does not know the server's,
        // and each claim more makes the others harder.
        if self.plan.client().is_some() || self.has_guests() {
            let is_asked_for = further.contains(&Metric::CpuTime);
            judged.retain(|metric| *metric != Metric::CpuTime || is_asked_for);
        }
        judged
    }

    /// With a budget for so many rows, where nobody gave one.
    pub fn with_time_for(mut self, rows: usize) -> Request {
        if let Plan::Compare(comparison) = &self.plan {
            let least = comparison.budget_per_row * rows as u32;
            self.common.budget = self.common.budget.max(least);
        }
        self
    }

    /// Keeps the choice of a scheme only if something can be interleaved.
    ///
    /// Nothing is interleaved if the number of pairs is fixed, or if each operation is timed, which takes
    /// longer than a slice with its clock.
    pub fn with_choice_of_scheme(mut self, can_interleave: bool) -> Request {
        let can_interleave = can_interleave && !self.wants_latencies();
        if let Plan::Compare(comparison) = &mut self.plan
            && comparison.interleave == Interleave::PilotChooses
            && (!can_interleave || comparison.design.fixed_pairs.is_some())
        {
            comparison.interleave = Interleave::Never;
        }
        self
    }

    /// Without old pairs where a number of pairs is fixed, or instructions are counted.
    pub fn with_old_pairs_where_they_tell(mut self) -> Request {
        let may_tell = !self.has_guests()
            && !treatment::boot::are_boots(&self.common.arms)
            && effects::factorial(&self.common.arms).is_none();
        if let Plan::Compare(comparison) = &mut self.plan {
            comparison.takes_old_pairs &= may_tell && comparison.design.fixed_pairs.is_none();
        }
        self
    }

    /// Returns true if the operations of each sample are to be timed one by one.
    pub fn wants_latencies(&self) -> bool {
        self.plan.further_metrics().iter().any(|metric| matches!(metric, Metric::Latency(_)))
    }

    pub fn takes_old_pairs_of(&self, work: &super::work::Work) -> bool {
        self.plan.comparison().is_some_and(|comparison| comparison.takes_old_pairs)
            && work.has_length()
    }

    /// How the pairs of a row are taken, depending on whether they can be interleaved.
    pub fn schedule(&self, can_interleave: bool) -> Schedule {
        match self.plan.interleave() {
            Interleave::PilotChooses if can_interleave => Schedule::Open(SchemePilot::default()),
            Interleave::WherePossible if can_interleave => Schedule::Fixed(Scheme::Interleaved),
            _ => Schedule::Fixed(Scheme::Sequential),
        }
    }
}

/// Person who watches an experiment.
pub trait ProgressSink {
    /// A sentence before the system is changed, or about what was put back.
    fn announce(&mut self, sentence: &str);
    /// A step begins that may take seconds: it is under way until the next one, or the rows of a set.
    fn begins(&mut self, step: &str);
    /// Another experiment is waited for, as a sentence has announced: a log needs no more of it.
    fn waits(&mut self) {
        self.begins("waiting for another experiment");
    }
    /// The last step has ended.
    fn ends(&mut self);
    /// The rows of a set that is about to be measured: workload, unit and treatment.
    ///
    /// All sets of all sessions end when so much time was used for measuring.
    fn set_begins(
        &mut self,
        set: SetId,
        deadline: Duration,
        rows: &[(String, String, String)],
    ) -> Box<dyn Observer + '_>;
    /// Shows the output of a command, if it is to be shown.
    fn shows(&mut self, printed: &Printout);
    /// Shows a sample that is no part of a judged pair.
    fn took(&mut self, taken: &Taken);
}

/// Output of a command in a launch; only the end of a long output.
#[derive(Debug)]
pub struct Printout {
    pub arm: String,
    pub stdout: String,
    pub stderr: String,
}

/// A sample that is no part of a judged pair, as it is shown.
#[derive(Clone, Debug)]
pub enum Taken {
    /// A sample of a run: the pass counts from 1, of `passes` over this work.
    Sample { work: String, pass: usize, passes: usize, progress: Progress },
    /// A cell of a sweep over a grid. The first sweep is number 1.
    Cell { sweep: usize, progress: Progress },
    /// A sample of a ramp at this load; a fresh one was taken after a peak was chosen.
    LoadPoint { name: WorkName, jobs_per_min: f64, is_fresh: bool },
    /// Samples by which a peak is chosen, without the treatment and with it, as far as they were taken.
    Searched { name: WorkName, jobs_per_min: [Option<f64>; 2] },
}

/// The sentence about an arm that cannot be measured, with its label, which tells it from the others.
pub(super) fn of_arm(label: &str, problem: String) -> String {
    let is_named = problem.contains(label);
    if is_named { problem } else { format!("`{label}`: {problem}") }
}

/// Makes the treatments of an experiment's arms, which all have these fixtures too.
pub fn build_treatments(labels: &[String], fixtures: &[String]) -> Result<Vec<Named>, String> {
    let build = |label: &String| {
        treatment::furnished(label, fixtures).map_err(|problem| of_arm(label, problem))
    };
    let named: Vec<Named> = labels.iter().map(build).collect::<Result<_, _>>()?;
    for (index, one) in named.iter().enumerate() {
        if index > 1 && labels[1..index].contains(&one.label) {
            return Err(format!("`{}` is given twice: remove one", one.label));
        }
        let mut conflicts = named[..index].iter().filter_map(|other| {
            let theirs = other.treatment.occupies();
            let excludes = |own: &Occupied| {
                let same = theirs.iter().find(|their| their.what == own.what);
                same.is_some_and(|their| !(their.can_alternate && own.can_alternate))
            };
            Some((other, one.treatment.occupies().into_iter().find(excludes)?.what))
        });
        if let Some((other, what)) = conflicts.next() {
            return Err(format!(
                "`{}` and `{}` both need {what}, in different ways: measure them in two experiments",
                other.label, one.label
            ));
        }
        let mut probes = one.kinds.iter().map(|kind| (kind.probe)());
        if let Some(obstacle) = probes.find_map(|probe| probe.obstacle().map(str::to_owned)) {
            return Err(format!("cannot weigh `{}` here: {obstacle}", one.label));
        }
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_request_is_read_back() {
        let comparison = Comparison {
            compared: Compared::Command(vec!["make".into()]),
            interleave: Interleave::PilotChooses,
            takes_old_pairs: true,
            ..Comparison::default()
        };
        let sweeps = Sweeps::over(Grid::find("1996").unwrap());
        let ramp = LoadRamp { users: vec![NonZero::<usize>::MIN], ..LoadRamp::default() };
        let plans = [
            Plan::Compare(comparison),
            Plan::Run(Run::default()),
            Plan::Ramp(ramp),
            Plan::Net(sweeps),
        ];
        for plan in plans {
            let common =
                Common { seed: u64::MAX, timeout: Some(Duration::MAX), ..Common::default() };
            let request = Request { common, plan };
            let text = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request, "{text}");
        }
    }

    #[test]
    fn auditing_by_this_kernel_concerns_no_guest() {
        let with = |label: &str| Request {
            common: Common { arms: vec![label.into()], ..Common::default() },
            plan: Plan::Run(Run::default()),
        };
        let auditing = Warning::AuditingChanged { change: "switched on".into() };
        assert!(with("seccomp").is_affected_by(&auditing));
        assert!(!with("vm:selinux").is_affected_by(&auditing));
        assert!(with("vm:selinux").is_affected_by(&Warning::Swapped { bytes: 1 }));
    }

    #[test]
    fn rows_choose_their_scheme_where_something_can_be_interleaved() {
        let chosen = |arms: &[&str], can_interleave, fixed_pairs| {
            let design = Design { fixed_pairs, ..Design::default() };
            let interleave = Interleave::PilotChooses;
            let plan = Plan::Compare(Comparison { design, interleave, ..Comparison::default() });
            let arms = arms.iter().map(|arm| (*arm).to_owned()).collect();
            let request = Request { common: Common { arms, ..Common::default() }, plan };
            request.with_choice_of_scheme(can_interleave).plan.interleave()
        };
        let factorial = ["none", "seccomp", "env:A=1", "seccomp+env:A=1"];
        for arms in [&factorial[..], &factorial[..2]] {
            assert_eq!(chosen(arms, true, None), Interleave::PilotChooses);
            assert_eq!(chosen(arms, false, None), Interleave::Never);
            assert_eq!(chosen(arms, true, Some(8)), Interleave::Never);
        }
    }
}
