//! Work that is launched for a sample: one of our workloads, or any command as a whole.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use super::background_load::BackgroundLoad;
use super::command_comparison::CommandComparison;
use super::detail::{self, Look};
use super::net_work::NetWork;
use weigh_fixture::Service;
use weigh_host::undo::guard::Guard;
use weigh_model::ids::ArmId;
use weigh_model::result::curve::OnCurve;
use weigh_model::result::versus::WORK;
use weigh_model::result::work_name::{BESIDE, WorkName};
use weigh_model::shell::command_line;
use weigh_model::workload::metric::WHOLE_RUNS;
use weigh_model::workload::mix::{JobMix, JobPace, JobSizes};
use weigh_model::workload::suite::Member;
use weigh_workload::catalogue::Workload;
use weigh_workload::executable::{Executable, Length};
use weigh_workload::interpreted::{self, Interpreted, WorkAmount};
use weigh_workload::launcher::Job;
use weigh_workload::place::LaunchPlace;
use weigh_workload::start_cpu::Range;

/// A workload that takes longer than this for a sample hangs, where `--timeout` says nothing else.
const KERNEL_TIMEOUT_MS: u64 = 120_000;

/// re-aim gives each user ten seconds.
const MS_PER_USER: u64 = 10_000;

/// The unit of the sample that a command prints without one.
pub const OWN_OPERATIONS: &str = "ops/s";

#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    Builtin {
        workload: Box<Workload>,
        member: Option<Member>,
        copies: usize,
        /// Server of the workload, if it is started for this workload alone.
        server: Option<&'static Service>,
        /// Activity alongside the workload.
        beside: Option<BackgroundLoad>,
    },
    Interpreted(Interpreted),
    Command {
        argv: Vec<String>,
        directory: PathBuf,
    },
    /// Commands against each other.
    CommandComparison {
        contest: Box<CommandComparison>,
        /// Per arm.
        argvs: Vec<Vec<String>>,
        directory: PathBuf,
    },
    Load(Box<UserLoad>),
    /// Cells of a grid; how they are launched, the testbed says.
    Net(Box<NetWork>),
}

/// Users who do the jobs of a mix at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct UserLoad {
    /// As it was asked for: `load:shared`.
    pub label: String,
    pub mix: JobMix,
    pub users: NonZero<usize>,
    pub sizes: JobSizes,
    pub role: LoadRole,
}

/// Why there is a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadRole {
    /// It was asked for.
    Named,
    /// Where a peak is sought, one of the load points that may be it.
    Candidate,
    /// The peak: whichever of those is chosen for an arm.
    Peak,
}

impl UserLoad {
    /// The unit of its rate.
    pub const UNIT: &str = "jobs/min";

    pub fn all_jobs(&self) -> u64 {
        self.mix.all_jobs_per_user(self.sizes.jobs_of(&self.mix)) * self.users.get() as u64
    }

    /// Returns true if a launch did its work: all jobs of all users, or at least one of each for a
    /// period.
    pub fn is_done(&self, jobs: f64) -> bool {
        match self.sizes.period_ms {
            Some(_) => jobs >= self.users.get() as f64,
            None => jobs == self.all_jobs() as f64,
        }
    }

    fn pace_ms(&self) -> u64 {
        self.sizes.pace_ms(self.users.get(), &self.mix)
    }

    /// How many times as long as the launch all times of jobs together may be: users work at the same time,
    /// and where jobs begin when they are to, they wait at the same time too.
    pub fn times_at_once(&self) -> u64 {
        match self.sizes.pace_of(&self.mix) {
            // In a period jobs may be done more often than once.
            JobPace::Arriving(_) if self.sizes.period_ms.is_some() => u64::MAX,
            JobPace::Arriving(_) => self.all_jobs(),
            JobPace::AtOnce | JobPace::Thinking(_) => self.users.get() as u64,
        }
    }

    fn argv(&self, executable: &Executable, order: u64) -> Vec<String> {
        executable.load_argv(self.users.get(), order, &self.sizes, &self.mix)
    }
}

/// Gives the disk jobs a private directory in each directory of `--disk-dir`. It goes with the experiment,
/// also with the files of a worker that was killed.
pub fn make_disk_directories(works: &mut [Work], guard: &mut Guard) -> Result<(), String> {
    let mut made: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for work in works {
        let Work::Load(load) = work else { continue };
        for directory in &mut load.sizes.disk_directories {
            if !made.contains_key(directory) {
                let own = guard.private_directory(directory);
                let own = own.map_err(|error| format!("{}: {error}", directory.display()))?;
                made.insert(directory.clone(), own);
            }
            directory.clone_from(&made[directory]);
        }
    }
    Ok(())
}

impl Work {
    /// Ours to give up on a command, which may well run for hours.
    pub const COMMAND_TIMEOUT_MS: u64 = 24 * 3600 * 1000;

    pub fn name(&self) -> WorkName {
        match self {
            Work::Builtin { workload, copies, server, beside, .. } => {
                let server = server.map(|server| format!("@{}", server.name));
                let beside = beside.as_ref().map(|beside| format!("{BESIDE}{}", beside.name));
                let [server, beside] = [server, beside].map(Option::unwrap_or_default);
                WorkName::of_copies(&format!("{}{server}{beside}", workload.name), *copies)
            }
            Work::Interpreted(one) => (*one.name()).into(),
            Work::Command { argv, .. } => (*command_line(argv.iter().map(String::as_str))).into(),
            Work::CommandComparison { .. } => WORK.into(),
            Work::Load(load) if load.role == LoadRole::Peak => (*load.label).into(),
            Work::Load(load) => WorkName::of_users(&load.label, load.users.get()),
            Work::Net(net) => net.name(),
        }
    }

    /// The unit of the rate. A command that prints a sample of its own may have another.
    pub fn unit(&self) -> String {
        match self {
            Work::Builtin { workload, .. } => workload.unit.clone(),
            Work::Interpreted(one) => one.unit().into(),
            Work::Command { .. } | Work::CommandComparison { .. } => WHOLE_RUNS.into(),
            Work::Load(_) => UserLoad::UNIT.into(),
            Work::Net(net) => net.unit().into(),
        }
    }

    /// Where it is a point of a curve, as the workload declares.
    pub fn on_curve(&self) -> Option<OnCurve> {
        let Work::Builtin { workload, server, beside, .. } = self else { return None };
        let (mut series, x) = workload.series.clone().zip(workload.x)?;
        let around = [server.map(|server| server.name), beside.as_ref().map(|one| &*one.name)];
        around.into_iter().flatten().for_each(|name| series = format!("{series}, {name}"));
        Some(OnCurve { series, x, x_unit: workload.x_unit.clone().unwrap_or_default() })
    }

    pub fn syscalls_per_op(&self) -> Option<f64> {
        match self {
            Work::Builtin { workload, .. } => workload.syscalls_per_op,
            _ => None,
        }
    }

    /// The launch of one sample of about this length in an arm; a command or a load takes what it takes. What
    /// is done in an order of chance draws that from `order`.
    pub fn job(
        &self,
        arm: ArmId,
        place: &LaunchPlace,
        length: Length,
        order: u64,
    ) -> Result<Job, String> {
        let length = Length { target_ms: self.at_least(length.target_ms), ..length };
        Ok(match self {
            Work::Builtin { workload, copies, .. } => {
                let has_latencies = length.has_latencies && !workload.only_in_batches;
                let length = Length { has_latencies, ..length };
                let mut argv = place.executable.sample_argv(&workload.name, *copies, length);
                if length.per_1000s > 0 {
                    argv.extend(["--seed".to_owned(), order.to_string()]);
                }
                let timeout_ms = KERNEL_TIMEOUT_MS + 2 * length.target_ms;
                Job::new(argv, &place.work_directory, timeout_ms)
            }
            Work::Interpreted(one) => Work::interpreted(one, place, {
                let Length { target_ms, warm_up_ms, .. } = length;
                WorkAmount::Time { target_ms, warm_up_ms }
            }),
            // The directory of here is not there.
            Work::Command { argv, .. } if !place.is_here() => {
                Job::new(argv.clone(), &place.work_directory, Work::COMMAND_TIMEOUT_MS)
            }
            Work::Command { argv, directory } => {
                Job::new(argv.clone(), directory, Work::COMMAND_TIMEOUT_MS)
            }
            Work::CommandComparison { argvs, directory, .. } => match argvs.get(arm.0) {
                Some(argv) => Job::new(argv.clone(), directory, Work::COMMAND_TIMEOUT_MS),
                None => return Err(format!("arm {arm} has no command")),
            },
            Work::Net(net) => {
                return Err(format!("{} is launched by its testbed, cell by cell", net.name()));
            }
            Work::Load(load) => {
                let of_users_ms = load.users.get() as u64 * MS_PER_USER + 2 * load.pace_ms();
                let argv = load.argv(&place.executable, order);
                Job::new(argv, &place.work_directory, KERNEL_TIMEOUT_MS + of_users_ms)
            }
        })
    }

    /// How long a sample is that should be so long.
    pub fn at_least(&self, target_ms: u64) -> u64 {
        match self {
            Work::Builtin { workload, .. } => target_ms.max(workload.least_ms.unwrap_or_default()),
            _ => target_ms,
        }
    }

    fn interpreted(one: &Interpreted, place: &LaunchPlace, amount: WorkAmount) -> Job {
        let executable = &place.executable;
        let interpreter = executable.interpreter(one.language);
        let timeout_ms = match amount {
            WorkAmount::Time { target_ms, .. } => KERNEL_TIMEOUT_MS + 2 * target_ms,
            WorkAmount::Operations(_) => KERNEL_TIMEOUT_MS,
        };
        let argv = one.argv(executable.directory(), interpreter, amount);
        Job {
            environment: interpreted::environment(place.is_here()),
            if_missing: (interpreter == one.language.program).then(|| one.language.how_to_get_it()),
            ..Job::new(argv, &place.work_directory, timeout_ms)
        }
    }

    /// How far both samples of a pair may go from the CPU drawn for them: work about one CPU stays there.
    /// Copies and users are as many as the whole machine is to bear.
    pub fn range(&self) -> Range {
        match self {
            Work::Builtin { workload, copies: 1, server: None, beside: None, .. }
                if !workload.is_of_several_cpus() =>
            {
                Range::ThatCpu
            }
            Work::Interpreted(one) if !one.language.parallel => Range::ThatCpu,
            Work::Builtin { copies: 2.., .. } | Work::Load(_) => Range::All,
            _ => Range::ThatKind,
        }
    }

    /// Returns true if the work is a command that is launched as a whole.
    pub fn is_command(&self) -> bool {
        matches!(self, Work::Command { .. } | Work::CommandComparison { .. })
    }

    /// Returns true if the work sends requests to a server, be it its own or one that all arms
    /// have.
    pub fn asks(&self) -> bool {
        matches!(self, Work::Builtin { workload, .. } if workload.needs.is_some())
    }

    /// The fixture that is started for it alone.
    pub fn server(&self) -> Option<&'static Service> {
        match self {
            Work::Builtin { server, .. } => *server,
            _ => None,
        }
    }

    /// The labels of the fixtures that are there for it alone.
    pub fn needs(&self) -> Vec<&str> {
        let Work::Builtin { server, beside, .. } = self else { return Vec::new() };
        let server = server.map(|server| server.label);
        server.into_iter().chain(beside.as_ref().map(|beside| &*beside.label)).collect()
    }

    /// Adds an activity that runs alongside the work.
    pub fn beside(self, activity: &BackgroundLoad) -> Result<Work, String> {
        match self {
            Work::Builtin { workload, member, copies, server, .. } => {
                let beside = Some(activity.clone());
                Ok(Work::Builtin { workload, member, copies, server, beside })
            }
            other => Err(format!(
                "no activity can run alongside `{}`: programs of `interp:`, mixes, grids and commands do not \
                 allow one",
                other.name()
            )),
        }
    }

    pub fn role(&self) -> LoadRole {
        match self {
            Work::Load(load) => load.role,
            _ => LoadRole::Named,
        }
    }

    pub fn users(&self) -> Option<NonZero<usize>> {
        match self {
            Work::Load(load) => Some(load.users),
            _ => None,
        }
    }

    pub fn directory(&self) -> Option<&Path> {
        match self {
            Work::Command { directory, .. } | Work::CommandComparison { directory, .. } => {
                Some(directory)
            }
            _ => None,
        }
    }

    /// The commands that are held against each other.
    pub fn contest(&self) -> Option<&CommandComparison> {
        match self {
            Work::CommandComparison { contest, .. } => Some(contest),
            _ => None,
        }
    }

    /// Returns true if a sample is about as long as requested.
    pub fn has_length(&self) -> bool {
        match self {
            Work::Builtin { .. } => true,
            Work::Interpreted(one) => one.times_itself(),
            _ => false,
        }
    }

    /// A launch that does as good as nothing, for telling a workload's start from its operations.
    pub fn startup_job(&self, place: &LaunchPlace) -> Option<Job> {
        self.operations_job(place, 1)
    }

    /// A launch of so many operations.
    pub fn operations_job(&self, place: &LaunchPlace, operations: u64) -> Option<Job> {
        let (workload, copies) = match self {
            Work::Builtin { workload, copies, .. } => (workload, copies),
            Work::Interpreted(one) if one.times_itself() => {
                return Some(Work::interpreted(one, place, WorkAmount::Operations(operations)));
            }
            _ => return None,
        };
        let argv = place.executable.operations_argv(&workload.name, *copies, operations);
        Some(Job::new(argv, &place.work_directory, KERNEL_TIMEOUT_MS))
    }

    /// A launch of the detail pass. A command has none, as nothing is known of its operations, and copies
    /// have none, as each would need a histogram of its own.
    pub fn detail_job(&self, place: &LaunchPlace, look: Look) -> Option<Job> {
        let Work::Builtin { workload, copies: 1, .. } = self else { return None };
        if look == Look::Latencies && workload.only_in_batches {
            return None;
        }
        let option = match look {
            Look::Latencies => "--latencies",
            Look::Counters => "--count-instructions",
        };
        let argv = place.executable.detail_argv(&workload.name, detail::TARGET_MS, option);
        Some(Job::new(argv, &place.work_directory, KERNEL_TIMEOUT_MS))
    }

    /// Returns true if the detail pass launches the work.
    pub fn has_detail(&self) -> bool {
        matches!(self, Work::Builtin { copies: 1, .. })
    }

    /// Sets the number of simultaneous copies; a command stays alone.
    pub fn with_copies(self, wanted: usize) -> Work {
        match self {
            Work::Builtin { workload, member, server, beside, .. } => {
                Work::Builtin { workload, member, copies: wanted, server, beside }
            }
            command => command,
        }
    }
}
