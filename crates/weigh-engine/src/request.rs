//! What is to be measured, and who watches.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::around::Around;
use super::asked_for::AskedFor;
use super::contest::Contest;
use super::effects;
use super::platform::Observer;
use super::ramp::RampPlan;
use super::run_progress::Progress;
use super::schedule::{Schedule, SchemePilot};
use super::surroundings::Surroundings;
use paired::design::Design;
use weigh_model::record::ExperimentKind;
use weigh_model::result::scheme::Scheme;
use weigh_model::result::work_name::WorkName;
use weigh_model::workload::metric::Metric;
use weigh_model::workload::mix::{JobSizes, MixFromFile};
use weigh_model::workload::suite::FromFile;
use weigh_net::far_host::FarHosts;
use weigh_net::grid::Grid;
use weigh_station::client::WhoIsTreated;
use weigh_store::names::Naming;
use weigh_treatment::{self as treatment, Named, Occupied};

/// What is to be measured. It is stored with the experiment, so that a later session can go on with it: a
/// field that is added later needs `#[serde(default)]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub kind: ExperimentKind,
    /// Labels of treatments, the baseline's first.
    pub arms: Vec<String>,
    /// Labels of what all arms have around their samples.
    #[serde(default)]
    pub fixtures: Vec<String>,
    /// What is done beside the workloads, each of which is measured alone too.
    #[serde(default)]
    pub beside: Vec<String>,
    /// Workloads, suites, files with suites.
    pub workloads: Vec<String>,
    /// Those of them that are files.
    pub suites: Vec<FromFile>,
    /// Files with mixes.
    #[serde(default)]
    pub mixes: Vec<MixFromFile>,
    #[serde(default)]
    pub job_sizes: JobSizes,
    /// A command to weigh as a whole.
    pub command: Option<Vec<String>>,
    /// Commands to weigh against each other, one per arm.
    #[serde(default)]
    pub contest: Option<Contest>,
    /// What is run around it.
    #[serde(default)]
    pub around: Around,
    /// The machines that are black boxes for cells of a grid; they are on this one without.
    #[serde(default)]
    pub far_hosts: Option<FarHosts>,
    /// Of each workload, at the same time. With several numbers, each workload is measured with each.
    pub copies: Vec<usize>,
    /// The command line that measures the same again.
    pub again: String,
    pub seed: u64,
    pub budget: Duration,
    /// How long it takes at least for each row, where nobody gave a budget; zero where somebody did.
    #[serde(skip)]
    pub budget_per_row: Duration,
    /// The margin of equivalence as a fraction.
    pub margin: f64,
    pub design: Design,
    /// Length of a sample of a workload; with `None` the first pairs choose it.
    pub sample_ms: Option<u64>,
    /// How long a launch may last, where the user says so.
    pub timeout: Option<Duration>,
    pub plan: Plan,
    /// What is judged besides the rate and CPU time.
    #[serde(default)]
    pub further_metrics: Vec<Metric>,
    /// Whether the first pairs of each row choose how the others are taken. Without, they take turns where
    /// the rate over all time is among what is judged.
    #[serde(default)]
    pub pilot_chooses_scheme: bool,
    /// Whether rows take pairs of processes that have lived for a second, before a good word is said of them.
    #[serde(default)]
    pub takes_old_pairs: bool,
    /// Whether a detail pass follows the pairs.
    pub detail: bool,
    /// Of servers and of who asks them.
    #[serde(default)]
    pub treated: WhoIsTreated,
    /// The machine that the client is on, where it is another: what --client takes.
    #[serde(default)]
    pub client: Option<String>,
    /// What the user calls this experiment; another session of it may be called otherwise.
    #[serde(skip)]
    pub naming: Naming,
    /// What no row may be shown to cost more than, as a share of the rate.
    #[serde(skip)]
    pub fail_above: Option<f64>,
    /// What the report says of what was asked for, in whole sentences.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

impl Request {
    /// Makes the treatments of its arms.
    ///
    /// # Errors
    /// As [`build_treatments`].
    pub fn treatments(&self) -> Result<Vec<Named>, String> {
        match &self.contest {
            Some(contest) => contest.treatments(),
            None => build_treatments(&self.arms, &self.fixtures),
        }
    }

    /// What is to be measured, where it is no command.
    pub fn asked_for(&self) -> AskedFor<'_> {
        AskedFor {
            names: &self.workloads,
            suites: &self.suites,
            mixes: &self.mixes,
            copies: &self.copies,
            sizes: &self.job_sizes,
            beside: &self.beside,
            // Effects of factors are made of the same load points in all arms.
            surroundings: Surroundings::of(&self.arms, &self.fixtures),
            treated: self.treated,
            seeks_peaks: self.kind == ExperimentKind::Compare
                && effects::factorial(&self.arms).is_none(),
        }
    }

    /// What is judged of each row, the rate first.
    pub fn metrics(&self) -> Vec<Metric> {
        let mut judged = Metric::judged(self.design.fixed_pairs, &self.further_metrics);
        // Of a guest that counts instructions it is no time, a client elsewhere does not know the server's,
        // and each claim more makes the others harder.
        if self.client.is_some() || self.arms.iter().any(|label| treatment::is_of_guest(label)) {
            let is_asked_for = self.further_metrics.contains(&Metric::CpuTime);
            judged.retain(|metric| *metric != Metric::CpuTime || is_asked_for);
        }
        judged
    }

    /// With a budget for so many rows, where nobody gave one.
    pub fn with_time_for(self, rows: usize) -> Request {
        Request { budget: self.budget.max(self.budget_per_row * rows as u32), ..self }
    }

    /// The same where something can take turns, or nothing can.
    ///
    /// Nothing is chosen where the number of pairs is fixed, where effects are made of pairs of several
    /// rows, or where each operation is timed, which is longer than a slice with its clock.
    pub fn with_choice_of_scheme(&self, can_take_turns: bool) -> Request {
        let has_choice = self.pilot_chooses_scheme
            && can_take_turns
            && self.design.fixed_pairs.is_none()
            && effects::factorial(&self.arms).is_none()
            && !self.wants_latencies();
        let all_time = has_choice.then_some(Metric::AllTime);
        let further = all_time.into_iter().chain(self.further_metrics.iter().cloned());
        let further_metrics = match self.pilot_chooses_scheme {
            true => further.collect(),
            false => self.further_metrics.clone(),
        };
        Request { pilot_chooses_scheme: has_choice, further_metrics, ..self.clone() }
    }

    /// Without old pairs where a number of pairs is fixed, or instructions are counted.
    pub fn with_old_pairs_where_they_tell(self) -> Request {
        let counts_instructions = self.arms.iter().any(|label| treatment::is_of_guest(label));
        let takes_old_pairs = self.takes_old_pairs
            && self.design.fixed_pairs.is_none()
            && !counts_instructions
            && !treatment::boot::are_boots(&self.arms)
            && effects::factorial(&self.arms).is_none();
        Request { takes_old_pairs, ..self }
    }

    /// Whether the rows of this work take old pairs.
    pub fn takes_old_pairs_of(&self, work: &super::work::Work) -> bool {
        self.takes_old_pairs && work.has_length()
    }

    /// How the pairs of a row are taken that can take turns, or cannot.
    pub fn schedule(&self, can_take_turns: bool) -> Schedule {
        match self.metrics().contains(&Metric::AllTime) && can_take_turns {
            true if self.pilot_chooses_scheme => Schedule::Open(SchemePilot::default()),
            true => Schedule::Fixed(Scheme::InTurns),
            false => Schedule::Fixed(Scheme::InSequence),
        }
    }

    /// Whether the operations of each sample are to be timed one by one.
    pub fn wants_latencies(&self) -> bool {
        self.further_metrics.iter().any(|metric| matches!(metric, Metric::Latency(_)))
    }
}

/// How samples are taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Plan {
    /// Pairs of arms, in this many complete and separate sets.
    Compare { sets: usize },
    /// One arm alone, this many passes over all workloads.
    Run { passes: usize },
    /// One arm alone, this many passes over each work, with the same servers in all of them; where not 0,
    /// operations begin so many times in 1000 s.
    Endure { passes: usize, per_1000s: u64 },
    /// One arm alone: the highest rate of each work, in an open loop, with a p99 of so much at the most.
    Capacity { p99_ns: f64 },
    /// The same with the durations and passes of the suite's original.
    Classic,
    /// One arm alone, the load points of one mix, as many as it takes.
    Ramp(RampPlan),
    /// One arm alone, all cells of a grid, until the interval of the BTU has this half width.
    /// With `trace`, all of them once more, not scored, with what W_test's interfaces carried in a file each
    /// in this directory.
    Net {
        grid: Box<Grid>,
        precision: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<PathBuf>,
    },
}

impl Plan {
    /// How many sets it has; without pairs there is one.
    pub fn sets(&self) -> usize {
        match self {
            Plan::Compare { sets } => *sets,
            Plan::Run { .. }
            | Plan::Endure { .. }
            | Plan::Capacity { .. }
            | Plan::Classic
            | Plan::Ramp(_)
            | Plan::Net { .. } => 1,
        }
    }
}

/// What a person watches.
pub trait Audience {
    /// A sentence before the system is changed, or about what was put back.
    fn announce(&mut self, sentence: &str);
    /// The rows of a set that is about to be measured: workload, unit and treatment.
    ///
    /// All sets of all sessions end when so much time was used for measuring.
    fn set_begins(
        &mut self,
        set: usize,
        deadline: Duration,
        rows: &[(String, String, String)],
    ) -> Box<dyn Observer + '_>;
    /// What a command printed, where that is to be shown.
    fn shows(&mut self, printed: &Printout);
    /// A sample of a run without pairs.
    fn sampled(&mut self, sample: &Sampled);
    /// Cells of a sweep over a grid, the first of which is number 1.
    fn swept(&mut self, sweep: usize, progress: &Progress);
    /// A sample of a ramp, at this load: jobs per minute, and whether it was taken at the peak after that was
    /// chosen.
    fn load_point(&mut self, name: &WorkName, jobs_per_min: f64, is_fresh: bool);
    /// Samples by which a peak is chosen: jobs per minute without the treatment and with it, where both were
    /// taken.
    fn searched(&mut self, name: &WorkName, jobs_per_min: [Option<f64>; 2]);
}

/// What a command printed in a launch; the end of it, where it is long.
#[derive(Debug)]
pub struct Printout {
    pub arm: String,
    pub stdout: String,
    pub stderr: String,
}

/// A sample of a run.
#[derive(Debug)]
pub struct Sampled<'a> {
    pub work: &'a str,
    /// From 1, of `passes` over this work.
    pub pass: usize,
    pub passes: usize,
    /// How far the whole run is.
    pub progress: &'a Progress,
}

/// Makes the treatments of an experiment's arms, which all have these fixtures too.
///
/// # Errors
/// A sentence: what is wrong with a label, which two exclude each other, what is missing here.
pub fn build_treatments(labels: &[String], fixtures: &[String]) -> Result<Vec<Named>, String> {
    let build = |label: &String| treatment::furnished(label, fixtures);
    let named: Vec<Named> = labels.iter().map(build).collect::<Result<_, _>>()?;
    for (index, one) in named.iter().enumerate() {
        if index > 1 && labels[1..index].contains(&one.label) {
            return Err(format!("`{}` is given twice", one.label));
        }
        let mut conflicts = named[..index].iter().filter_map(|other| {
            let theirs = other.treatment.occupies();
            let excludes = |own: &Occupied| {
                let same = theirs.iter().find(|their| their.what == own.what);
                same.is_some_and(|their| !(their.takes_turns && own.takes_turns))
            };
            Some((other, one.treatment.occupies().into_iter().find(excludes)?.what))
        });
        if let Some((other, what)) = conflicts.next() {
            return Err(format!(
                "`{}` and `{}` both need {what}, in different ways: weigh them in two experiments",
                other.label, one.label
            ));
        }
        let mut probes = one.kinds.iter().map(|kind| kind.probe());
        if let Some(obstacle) = probes.find_map(|probe| probe.obstacle().map(str::to_owned)) {
            return Err(format!("cannot weigh `{}` here: {obstacle}", one.label));
        }
    }
    Ok(named)
}
