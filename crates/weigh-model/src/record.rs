//! A stored experiment, as the other crates see it.

use serde::{Deserialize, Serialize};

use crate::disturbance::Disturbance;
use crate::evidence::Evidence;
use crate::facts::Facts;
use crate::ids::{ArmId, ExperimentId, PairId, SetId, WorkId};
use crate::result::curve::OnCurve;
use crate::result::load::{DISK_READINGS, LOAD_READINGS};
use crate::result::profiled::Profiled;
use crate::result::quantity::EvidenceQuantity;
use crate::result::scheme::{Scheme, StartScales};
use crate::result::summary::{Failure, State};
use crate::result::warning::Warning;
use crate::result::work_name::{APP, WorkName};
use crate::role::SampleRole;
use crate::samples::{RowSamples, Samples};
use crate::workload::detail::Detail;
use crate::workload::metric::{Metric, Percentile};
use crate::workload::mix;
use crate::workload::sample::{PEAK_MEMORY, Sample};
use crate::workload::suite::FromFile;
use paired::multiplicity::Multiplicity;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExperimentKind {
    /// Pairs of two arms.
    #[default]
    Compare,
    /// Pairs of two commands.
    Versus,
    /// One arm: this machine alone.
    Run,
    /// Pairs of two identical arms.
    Calibrate,
    /// Not measured here: it has no samples, and its summary is stored instead.
    Import,
    /// Costs of audit rules: stored as a document, without arms or samples.
    Rules,
    /// Log volume of audit rules: stored as a document, without arms or samples.
    Budget,
    /// The system calls of a program: likewise.
    Profile,
    /// List of treatments: stored as a document. Its measurements are experiments of their own, which have
    /// its tag.
    Atlas,
    /// Results of several runs together: stored as a document. The runs are experiments of their own.
    Repeated,
}

impl ExperimentKind {
    /// The commands that make such experiments, as in a sentence.
    pub fn commands(self) -> &'static str {
        match self {
            ExperimentKind::Run => "`weigh run`, `load` or `net`",
            ExperimentKind::Compare => "`weigh compare`",
            ExperimentKind::Versus => "`weigh versus`",
            ExperimentKind::Calibrate => "`weigh calibrate`",
            ExperimentKind::Import => "`weigh import`",
            ExperimentKind::Rules => "`weigh rules`",
            ExperimentKind::Budget => "`weigh budget`",
            ExperimentKind::Profile => "`weigh profile`",
            ExperimentKind::Atlas => "`weigh atlas`",
            ExperimentKind::Repeated => "`weigh load --sets` or `run --lengths`",
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            ExperimentKind::Compare => "compare",
            ExperimentKind::Versus => "versus",
            ExperimentKind::Run => "run",
            ExperimentKind::Calibrate => "calibrate",
            ExperimentKind::Import => "import",
            ExperimentKind::Rules => "rules",
            ExperimentKind::Budget => "budget",
            ExperimentKind::Profile => "profile",
            ExperimentKind::Atlas => "atlas",
            ExperimentKind::Repeated => "repeated",
        }
    }

    /// The kind of this name; `None` for one that only a newer weigh knows.
    pub fn from_name(name: &str) -> Option<ExperimentKind> {
        [
            ExperimentKind::Compare,
            ExperimentKind::Versus,
            ExperimentKind::Run,
            ExperimentKind::Calibrate,
            ExperimentKind::Import,
            ExperimentKind::Rules,
            ExperimentKind::Budget,
            ExperimentKind::Profile,
            ExperimentKind::Atlas,
            ExperimentKind::Repeated,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == name)
    }
}

/// Facts about an experiment that are known before it starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    pub kind: ExperimentKind,
    /// The command line that measures the same again.
    pub command: String,
    pub seed: u64,
    pub budget_s: f64,
    pub alpha: f64,
    /// As a fraction: 0.01.
    pub margin: f64,
    pub fixed_pairs: Option<usize>,
    pub multiplicity: Multiplicity,
    /// Metrics judged in each row, the rate first.
    pub metrics: Vec<Metric>,
    /// How many pairs the budget was to allow a row; `None` where that could not be known.
    pub planned_pairs: Option<f64>,
    /// Complete, separate sets that were planned.
    pub sets: usize,
    pub machine: Facts,
    /// Labels; the first is the baseline.
    pub arms: Vec<String>,
    /// Workloads, suites and files with suites that the user asked for.
    pub asked_for: Vec<String>,
    /// True if it was measured and scored as the suite's original does.
    pub is_classic: bool,
    /// The user's own that were asked for: the files may be gone when a report is made.
    pub suites: Vec<FromFile>,
    pub works: Vec<StoredWork>,
    /// True if the first pairs of each row choose how the others are taken.
    pub pilot_chooses_scheme: bool,
    /// True if rows also need pairs of aged processes ([`SampleRole::Aged`]).
    pub takes_old_pairs: bool,
    /// JSON: what a later session needs to go on with it; `None` in an import and
    /// in experiments that are stored as a document.
    pub origin: Option<String>,
}

impl Header {
    pub fn work_ids(&self) -> impl Iterator<Item = WorkId> + use<> {
        (0..self.works.len()).map(WorkId)
    }

    /// Returns true for the row of a mix's peak, whichever load point it is measured at.
    pub fn is_peak(&self, work: WorkId) -> bool {
        let WorkName { name, load } = &self.works[work].name;
        name.starts_with(mix::PREFIX) && load.is_none()
    }

    /// Returns true for the row of a mix's peak, and for each point that may be the peak.
    pub fn is_of_search(&self, work: WorkId) -> bool {
        let is_its = |other: WorkId| self.works[other].name.name == self.works[work].name.name;
        self.work_ids().any(|other| is_its(other) && self.is_peak(other))
    }

    pub fn seeks_peaks(&self) -> bool {
        self.work_ids().any(|work| self.is_peak(work))
    }

    /// Lists the metrics that reports show besides the judged ones. For a curve over users these
    /// are job times and the machine's readings. For work on files they are what the device
    /// transferred, and for commands their memory.
    pub fn shown_besides(&self) -> Vec<Metric> {
        let has_load = |work: &StoredWork| work.name.users().is_some();
        let runs_load = self.kind == ExperimentKind::Run && self.works.iter().any(has_load);
        if self.seeks_peaks() || runs_load {
            let latencies = [Percentile::P90, Percentile::P99].map(Metric::Latency);
            let named = LOAD_READINGS.iter().map(|name| Metric::Named((*name).into()));
            return latencies.into_iter().chain(named).collect();
        }
        match self.kind {
            ExperimentKind::Run => DISK_READINGS.map(|name| Metric::Named(name.into())).to_vec(),
            ExperimentKind::Versus => vec![Metric::Named(PEAK_MEMORY.into())],
            _ => Vec::new(),
        }
    }

    /// Where a work is a point of a curve: over its load where that varies, otherwise as it declares.
    pub fn on_curve(&self, work: WorkId) -> Option<OnCurve> {
        let StoredWork { name, on_curve, .. } = &self.works[work];
        if self.is_peak(work) {
            return None;
        }
        if let Some(over_clients) = self.of_clients(work) {
            return Some(over_clients);
        }
        let of_it = || self.works.iter().map(|w| &w.name).filter(|other| other.name == name.name);
        let load = name.load.as_ref().or_else(|| of_it().find_map(|other| other.load.as_ref()));
        let Some(axis) = load.map(|load| &load.axis) else { return on_curve.clone() };
        let is_on_it = |name: &WorkName| name.load.as_ref().is_none_or(|load| load.axis == *axis);
        if !of_it().any(|other| is_on_it(other) && other.load != name.load) {
            return on_curve.clone();
        }
        let x = name.load.as_ref().map_or(1.0, |load| load.value);
        Some(OnCurve { series: name.name.clone(), x, x_unit: axis.clone() })
    }

    /// Returns the curve of a server workload whose own parameter varies as well as the number of
    /// clients. There is one curve over the parameter for each number of clients.
    fn of_clients(&self, work: WorkId) -> Option<OnCurve> {
        let StoredWork { name, on_curve, .. } = &self.works[work];
        let own = on_curve.as_ref().filter(|_| name.name.starts_with(APP))?;
        let of_series = || {
            let others = self.works.iter().filter_map(|w| Some((&w.name, w.on_curve.as_ref()?)));
            others.filter(|(_, on)| on.series == own.series)
        };
        let is_curve = of_series().any(|(other, on)| other.load == name.load && on.x != own.x);
        let are_several = of_series().any(|(other, _)| other.load != name.load);
        let clients = match name.copies() {
            1 => "1 client".to_owned(),
            several => format!("{several} clients"),
        };
        (is_curve && are_several)
            .then(|| OnCurve { series: format!("{}, {clients}", own.series), ..own.clone() })
    }
}

/// Choice of the search for a mix's peak, for one treatment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenPeak {
    /// The row of the peak.
    pub work: WorkId,
    pub treated_arm: ArmId,
    /// The load point that it is measured at, without the treatment and with it.
    pub at: [WorkId; 2],
    /// The other load points that are rows.
    pub points: Vec<WorkId>,
}

/// How many rows are judged: of a mix whose peak is sought, those that its search chose.
pub fn planned_rows(works: impl Iterator<Item = bool>, arms: usize, peaks: &[ChosenPeak]) -> usize {
    let named = works.filter(|is_of_search| !is_of_search).count();
    named * arms.saturating_sub(1) + peaks.iter().map(|peak| 1 + peak.points.len()).sum::<usize>()
}

#[derive(Clone, Debug, PartialEq)]
pub struct StoredWork {
    pub name: WorkName,
    pub unit: String,
    pub syscalls_per_op: Option<f64>,
    /// Length of its samples; that of the later ones where the first chose it. `None` for a
    /// command.
    pub sample_ms: Option<u64>,
    /// Expected scale of its pairs, before the first is measured.
    pub start_scale: StartScales,
    /// Where it is a point of a curve as the workload declares it. As it was then: the workloads of a later
    /// weigh may say otherwise.
    pub on_curve: Option<OnCurve>,
}

/// One sample, with its place in the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub work: WorkId,
    pub arm: ArmId,
    /// The arm of the treatment that this pair weighs; 0 in a run without one.
    pub treated_arm: ArmId,
    pub role: SampleRole,
    pub scheme: Scheme,
    pub set: SetId,
    pub pair: PairId,
    /// 0: the first of its pair.
    pub position: usize,
    /// From the start of the experiment.
    pub started_s: f64,
    /// How much longer its environment was made.
    pub padding_bytes: usize,
    /// The CPU that was drawn for the pair to begin on.
    pub cpu: Option<usize>,
    pub sample: Sample,
    pub evidence: Evidence,
    /// CPU time that others took meanwhile; `None` for a sweep over the cells of a grid.
    pub disturbance: Option<Disturbance>,
}

/// Evidence that one launch produced besides its operations, measured once per workload and arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Startup {
    pub work: WorkId,
    pub arm: ArmId,
    pub operations: f64,
    pub evidence: Evidence,
}

/// One launch of the detail pass, with its place in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Detailed {
    pub work: WorkId,
    pub arm: ArmId,
    /// The arm of the treatment that this pair weighs.
    pub treated_arm: ArmId,
    pub pair: PairId,
    /// 0: the first of its pair.
    pub position: usize,
    pub detail: Detail,
}

/// How many pairs a row will probably have, n*, as known after its pilot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowPlan {
    pub work: WorkId,
    /// The treated one.
    pub arm: ArmId,
    pub pairs: f64,
}

#[derive(Clone, Debug)]
pub struct Stored {
    pub id: ExperimentId,
    pub header: Header,
    /// RFC 3339, UTC.
    pub started: String,
    pub elapsed_s: f64,
    pub state: State,
    /// In how many sessions it was measured so far.
    pub sessions: usize,
    pub failure: Option<String>,
    pub baseline_state: Option<String>,
    /// Highest cost that the gate accepts in any row, as a share of the rate (`--fail-above`).
    pub fail_above: Option<f64>,
    pub warnings: Vec<Warning>,
    /// Chosen peak of each mix whose peak is sought, once it is found.
    pub peaks: Vec<ChosenPeak>,
    /// Plans of rows whose number of pairs could not be known before the first pair, once their
    /// pilot is over.
    pub plans: Vec<RowPlan>,
    pub profiles: Vec<Profiled>,
    /// Per arm.
    pub facts: Vec<Vec<String>>,
    /// Quantities that each arm's treatment declares, per arm.
    pub quantities: Vec<Vec<EvidenceQuantity>>,
    pub samples: Samples,
    pub startups: Vec<Startup>,
    /// In the order measured.
    pub details: Vec<Detailed>,
    pub failures: Vec<Failure>,
}

impl Stored {
    /// How many rows are judged.
    pub fn planned_rows(&self) -> usize {
        let works = self.header.work_ids().map(|work| self.header.is_of_search(work));
        planned_rows(works, self.header.arms.len(), &self.peaks)
    }

    /// The samples of a work in a run, which has one arm.
    pub fn samples_of_run(&self, work: WorkId) -> Option<&RowSamples> {
        self.samples.get(&(work, ArmId::BASELINE))
    }

    /// The samples of a work in a run, unless it failed: what failed once has no result.
    pub fn result_of_run(&self, work: WorkId) -> Option<&RowSamples> {
        let name = &self.header.works.get(work.0)?.name;
        self.samples_of_run(work).filter(|_| !self.has_failed(name))
    }

    /// Returns true if a workload failed in any arm.
    pub fn has_failed(&self, workload: &WorkName) -> bool {
        self.failures.iter().any(|failure| failure.workload == *workload)
    }

    /// Returns true if a workload failed in this arm or in the baseline's: it has no result there.
    pub fn has_no_result_in(&self, workload: &WorkName, arm: ArmId) -> bool {
        let labels = [ArmId::BASELINE, arm].map(|arm| &self.header.arms[arm]);
        let is_its = |one: &Failure| one.workload == *workload && labels.contains(&&one.arm);
        self.failures.iter().any(is_its)
    }

    /// n* of a row, where it was known after its pilot alone.
    pub fn planned_after_pilot(&self, work: WorkId, arm: ArmId) -> Option<f64> {
        let mut plans = self.plans.iter();
        plans.find(|plan| (plan.work, plan.arm) == (work, arm)).map(|plan| plan.pairs)
    }
}

/// A line of the history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    pub id: ExperimentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub tags: Vec<String>,
    /// `None` for one that only a newer weigh knows.
    pub kind: Option<ExperimentKind>,
    pub started: String,
    pub state: State,
    /// Its result in a few words; `None` until they are derived from its samples, and while it runs.
    pub result: Option<String>,
    pub command: String,
    /// Labels of the arms but the baseline.
    pub treatments: Vec<String>,
    pub workloads: Vec<String>,
    pub samples: usize,
    /// How often it was begun or continued.
    #[serde(skip)]
    pub sessions: usize,
}
