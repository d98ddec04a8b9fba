//! `weigh compare`: what does a change cost?

use std::time::Duration;

use clap::{Arg, Args};

use super::endurance::EnduranceOptions;
use super::files::Files;
use super::formats::csv_of;
use super::go_on::{ContinueOption, settled_by_continue};
use super::hooks::{AROUND, HookArgs};
use super::interleaving::{Interleave, Interleaving};
use super::list;
use super::measuring::{BesideOptions, FixtureOption, WorkloadOption, also, defaults_to};
use super::mixes::Mixes;
use super::net;
use super::net_machines::NetMachines;
use super::pairing::Pairing;
use super::profiler::ProfilerOption;
use super::reproduce::ReproduceCommand;
use super::run::RATE_OF_CLIENTS;
use super::{Context, boots, copies, doses, output, value};
use weigh_engine::boots::SAMPLE_MS;
use weigh_engine::request::{self, Common, Compared, Comparison, Plan, Request, Workloads};
use weigh_model::result::factorial::{MOST_FACTORS, subsets};
use weigh_model::result::summary::NOTHING;
use weigh_model::result::work_name::WorkName;
use weigh_model::workload::metric::Metric;
use weigh_model::workload::suite;
use weigh_station::client::WhoIsTreated;
use weigh_treatment as treatment;
use weigh_treatment::boot::{Mechanism, are_boots};
use weigh_treatment::placebo::DefaultBaseline;

/// Each pair has a boot of each arm, beside which this costs little. In a sample of 20 ms a thread of the
/// kernel that comes once is 0.3 % of the instructions.
const SAMPLE_OF_GUESTS: Duration = Duration::from_millis(200);

/// Its servers are new and cold for every sample, and all clients are to get answers.
const SAMPLE_OF_GOOD_ANSWERS: Duration = Duration::from_secs(1);

/// Help of `--budget`, whose default depends on what is compared.
const BUDGET_HELP: &str = "Stop after this time: by default 2m, or longer for many rows. Rows may \
                           then have no verdict yet. A time that is too short for a pair of each row \
                           is refused [default: 2m; 10m with net:GRID, 15m with vm, 2h with boot; at \
                           least 8s per row, 16s with a server]";
const OF_COMMANDS: &str = ". A command after `--` runs in both arms at the same time on one CPU, if it is \
                           CPU-bound and writes no files, and its CPU time is compared (docs/versus.md)";
const IN_ALL_ARMS: &str = ". All arms run in it; to measure a fixture, name it as a treatment";
const TIMEOUTS: &str = "2m plus twice the sample length; for a command 24h";

/// Refused with --for: options about pairs, and about samples that are no passes.
const NOT_WITH_FOR: [&str; 15] = [
    "command",
    "sample",
    "pairs",
    "fdr",
    "margin",
    "sets",
    "metrics",
    "fail_above",
    "budget",
    "interleave",
    "good_answers",
    "factorial",
    "profiler",
    "reboot_by",
    "inconclusive_ok",
];

/// The options `--for` and `--pass` as `compare` has them.
fn of_pairs(lasting: Arg) -> Arg {
    let both = ". Each arm has one start of its servers, asked in pairs of passes in random order, so the \
                report has each arm's first error and hang and no verdict (docs/applications-load.md)";
    also(lasting, both).conflicts_with_all(NOT_WITH_FOR).hide_short_help(true)
}

const EXAMPLES: &str = "\
Examples:
  sudo weigh compare audit
      Audit every system call of ten workloads, for at most two minutes.
  sudo weigh compare audit:rules=/etc/audit/rules.d -w unixbench --budget 6m
      Measure your own rules with UnixBench's twelve workloads.
  weigh compare seccomp:profile=docker.json -- ./my-server-bench --quick
      Run your own command under your own profile. If its last line of output is
      {\"operations\":N,\"elapsed_ns\":N}, weigh compares that rate, otherwise the
      run time.
  weigh compare seccomp -w stat --fail-above 3% --github-summary
      For CI: exit status 1 if `stat` is shown to be more than 3 % slower.
  weigh compare seccomp --metric latency_p99 --metric peak_memory -w pipe
      Judge the 99th percentile of operation times and the memory, too.
  weigh compare --continue k3f9qx --budget 5m
      Continue an experiment that has no verdict yet or was interrupted.
  weigh compare seccomp --prepare 'make clean' -- make -j2
      Measure a build: without --prepare, only the first run has work to do.
  sudo weigh compare fs:ext4 --base fs:xfs -w fstime
      Compare two file systems, with a new one for every sample.
  weigh compare --factorial seccomp nice:5 -w getppid
      Show the effect of each treatment, and their interaction.
  weigh compare seccomp:compares=10..1000 -w getppid
      Measure 10, 32, 100, 316 and 1000 comparisons, and the cost of each one more.
  sudo weigh compare boot:cmdline=init_on_alloc=1 -w memory
      Compare boots of this machine: weigh prints its plan, asks, and reboots
      again and again until it can report.
  weigh compare server:mariadb.max_connections=10 -w app:web.cookie --for 2h
      Do both still answer after two hours?
  weigh compare none
      Compare two identical arms (an A/A test): any difference is a false alarm.

Environment:
  WEIGH_WORKLOADS=FILE  measure this file instead of the embedded workloads,
                        such as a build by another compiler (docs/workloads.md)

`weigh list treatments` and `weigh list workloads` list what you can name.

Exit status: 0 done, 1 a cost above --fail-above, 2 error or no result,
3 inconclusive (no verdict for a row, or --fail-above undecided), 130 interrupted.";

const USAGE: &str = "weigh compare [OPTIONS] [TREATMENT]...
       weigh compare [OPTIONS] [TREATMENT]... -- <COMMAND> [ARGUMENT]...
       weigh compare [OPTIONS] --continue <ID>";

/// Measure what treatments (changes such as audit rules) cost against a baseline
///
/// A treatment is a change to measure, such as audit rules or a seccomp filter. An arm is one of the
/// variants that are compared: the baseline, or a treatment. A row of the report is one workload with one
/// treatment.
///
/// Runs every workload in pairs, once without and once with the treatment, in random order. Stops when
/// each row has a verdict (slower, faster, or equivalent within the margin) and a narrow interval, or when
/// the budget is spent. Verifies with every sample that the treatment was in force, and restores the system
/// at the end.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[command(mut_arg("budget", |budget| budget.help(BUDGET_HELP)))]
#[command(mut_arg("csv", |csv| csv_of(csv, "pair")))]
#[command(mut_arg("timeout", |timeout| defaults_to(timeout, TIMEOUTS)))]
#[command(mut_arg("fixtures", |fixtures| also(fixtures, IN_ALL_ARMS)))]
#[command(mut_arg("setup", |setup| also(setup, ". It has no treatment")))]
#[command(mut_arg("lasting", of_pairs))]
#[command(mut_arg("rate", |rate| also(rate, RATE_OF_CLIENTS)))]
#[command(mut_arg("interleave", |interleave| also(interleave, OF_COMMANDS)))]
#[command(mut_arg("beside", |beside| beside.conflicts_with("command")))]
#[command(mut_arg("client", |client| client.conflicts_with("command")))]
#[command(mut_args(settled_by_continue))]
pub struct CompareArgs {
    /// Treatments, such as audit:rules=my.rules, by default audit. Each is NAME or NAME:PARAMETER=VALUE,…
    /// (docs/labels.md) [default: audit; seccomp if auditing cannot be changed here]
    #[arg(value_name = "TREATMENT")]
    treatments: Vec<String>,
    #[command(flatten)]
    wanted: WorkloadOption,
    /// Treatment to compare with, such as audit [default: none. For build, cgroup and rootfs it is their
    /// placebo: the same procedure without the effect (docs/before-a-sample.md)]
    #[arg(long, value_name = "TREATMENT")]
    base: Option<String>,
    /// Measure two to four treatments in all combinations. Show the effect of each, and their interaction:
    /// what the combination costs beyond the costs of the single treatments (docs/treatments.md)
    #[arg(long, conflicts_with = "base")]
    factorial: bool,
    #[command(flatten)]
    fixtures: FixtureOption,
    #[command(flatten)]
    beside: BesideOptions,
    /// Length of the timed part of a sample, such as 100ms [default: chosen from the first pairs, 10ms to
    /// 250ms (audit: 50ms to 250ms). Fixed lengths: 20ms with --pairs (audit: 70ms), 70ms with --metric
    /// latency_…, 200ms with vm, 1s with boot or --good-answers]
    #[arg(long, value_name = "TIME", value_parser = value::sample_length)]
    #[arg(conflicts_with = "command", hide_short_help = true)]
    sample: Option<Duration>,
    #[command(flatten)]
    endurance: EnduranceOptions,
    #[command(flatten)]
    interleaving: Interleaving,
    #[command(flatten)]
    pairing: Pairing,
    /// Side that gets the treatment, for workloads that send requests to a server; the other side is
    /// exempt. With --client it is the server. A treatment of the whole system, such as sysctl (but not
    /// audit), affects both sides in any case
    #[arg(long, value_enum, default_value_t = WhoIsTreated::Server, conflicts_with = "command")]
    #[arg(hide_short_help = true)]
    treat: WhoIsTreated,
    /// Compare the good answers per second of a web server that also gives wrong ones, and show the wrong
    /// ones by kind. Without it, wrong answers fail the workload (docs/applications-load.md)
    #[arg(long, conflicts_with = "command", hide_short_help = true)]
    good_answers: bool,
    /// Skip the last step: measuring the latency of single operations (p50, p99) after the pairs
    #[arg(long, hide_short_help = true)]
    no_detail: bool,
    #[command(flatten)]
    later: ContinueOption,
    /// Copies of each workload to run at once, or clients of each server. Each copy is pinned to a CPU; `all`
    /// runs one per CPU that weigh may use (docs/doctor.md). For workloads that send requests to a server, it
    /// is the number of clients
    #[arg(long, visible_alias = "clients", value_name = "N", default_value = "1")]
    #[arg(value_parser = value::copies, conflicts_with = "command")]
    copies: usize,
    #[command(flatten)]
    profiler: ProfilerOption,
    #[command(flatten)]
    mixes: Mixes,
    /// Do not ask before running more than 16 copies per CPU, or before rebooting this machine (boot:…)
    #[arg(long, hide_short_help = true)]
    yes: bool,
    /// How to reboot this machine for each pair, for treatments boot:… only (docs/boot.md) [default: kexec]
    #[arg(long, value_enum, hide_short_help = true)]
    reboot_by: Option<Mechanism>,
    /// Command to measure instead of workloads, such as `-- make -j2`. It is measured from its start to its
    /// end. Put options of weigh before `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Shell line before every run, such as 'make clean'. It is neither timed nor treated. If it
    /// fails, there is no result. weigh kills processes that it leaves running
    #[arg(long, value_name = "LINE", requires = "command", help_heading = AROUND)]
    prepare: Option<String>,
    #[command(flatten)]
    hooks: HookArgs,
    #[command(flatten)]
    machines: NetMachines,
    #[command(flatten)]
    files: Files,
}

impl CompareArgs {
    pub fn run(mut self, context: &Context) -> Result<u8, String> {
        if !self.command.is_empty() && !self.wanted.workloads.is_empty() {
            return Err("give workloads with -w or a command after `--`, not both".into());
        }
        if self.command.is_empty()
            && std::env::args_os().next_back().is_some_and(|last| last == "--")
        {
            return Err("there is no command after `--`; is a shell variable unset?".into());
        }
        if self.command.first().is_some_and(String::is_empty) {
            return Err("the command after `--` is empty; is a shell variable unset?".into());
        }
        if !self.command.is_empty() {
            self.mixes.check_of_command()?;
        }
        copies::confirm(&[self.copies], &self.wanted.workloads, self.yes)?;
        if self.beside.client.is_some() && self.treat != WhoIsTreated::Server {
            return Err(
                "--client has the client on another machine, where no treatment is: leave --treat \
                 out"
                .into(),
            );
        }
        if self.beside.client.is_some() && self.pairing.metrics.contains(&Metric::CpuTime) {
            return Err(
                "a client on another machine does not know the servers' CPU time, so there is no \
                        verdict on cpu_time: leave it or --client out"
                    .into(),
            );
        }
        if self.treatments.is_empty() && self.later.go_on.is_none() {
            self.treatments.push(default_treatment());
        }
        self.treatments = doses::expanded(&self.treatments)?;
        let labels: Vec<String> = self.base.iter().chain(&self.treatments).cloned().collect();
        if self.later.go_on.is_none() && are_boots(&labels) {
            return self.by_boots(context);
        }
        if self.reboot_by.is_some() {
            return Err("--reboot-by is for arms that are boots of this machine (boot:…), and there is none: \
                        leave it out"
                .into());
        }
        self.treatments.iter().try_for_each(|label| check_no_workload(label))?;
        self.check_endurance(&labels)?;
        let request = || self.request(&context.again);
        self.pairing.measure(self.later.go_on.as_deref(), request, &self.files, context)
    }

    /// Refuses arms whose servers cannot be asked in pairs of passes.
    fn check_endurance(&self, labels: &[String]) -> Result<(), String> {
        self.endurance.check()?;
        if self.endurance.lasting.is_none() {
            return Ok(());
        }
        if self.treatments.len() > 1 {
            return Err(format!(
                "--for compares one treatment with one baseline, and here are {} treatments: use one command \
                 for each",
                self.treatments.len()
            ));
        }
        match labels.iter().find(|label| treatment::is_of_guest(label)) {
            Some(label) => Err(format!(
                "--for needs arms that measure time, and `{label}` counts instructions"
            )),
            None => Ok(()),
        }
    }

    /// With boots of this machine as arms, the normal one by default as the baseline.
    fn by_boots(mut self, context: &Context) -> Result<u8, String> {
        if self.base.as_deref().is_none_or(|base| base == NOTHING) {
            self.base = Some("boot".into());
        }
        if self.files.are_asked_for() {
            return Err("no report can be written now, as this machine goes down before there is one: leave \
                        --json and its like out, and write it afterwards (weigh export)"
                .into());
        }
        if self.interleaving.interleave == Interleave::On {
            return Err(
                "--interleave=on: two boots of this machine cannot run at the same time".into()
            );
        }
        self.interleaving.interleave = Interleave::Off;
        self.no_detail = true;
        self.sample.get_or_insert(Duration::from_millis(SAMPLE_MS));
        let mechanism = self.reboot_by.unwrap_or_default();
        boots::begin(&self.request(&context.again)?, mechanism, self.yes, context)
    }

    /// The baseline: the user's, or else the placebo of the treatments.
    fn baseline(&self) -> Result<DefaultBaseline, String> {
        let given = |label: &str| DefaultBaseline { label: label.to_owned(), warning: None };
        match &self.base {
            Some(base) => Ok(given(base)),
            // Each effect is a contrast of arms with and without it.
            None if self.factorial => Ok(given(NOTHING)),
            None => DefaultBaseline::of(&self.treatments),
        }
    }

    /// How long a sample is, unless the first pairs choose it.
    fn sample_ms(&self, arms: &[String]) -> Option<u64> {
        let of_guests = || arms.iter().any(|label| treatment::is_of_guest(label));
        let sample = self.sample.or_else(|| self.endurance.pass_length());
        let sample = sample.or_else(|| self.good_answers.then_some(SAMPLE_OF_GOOD_ANSWERS));
        let sample = sample.or_else(|| of_guests().then_some(SAMPLE_OF_GUESTS));
        sample.map(value::whole_ms)
    }

    fn request(&self, typed: &ReproduceCommand) -> Result<Request, String> {
        let DefaultBaseline { label: base, warning } = self.baseline()?;
        let labels = match self.factorial {
            true => combinations(&base, &self.treatments)?,
            false => std::iter::once(&base).chain(&self.treatments).cloned().collect(),
        };
        let arms: Vec<String> =
            labels.iter().map(|label| treatment::canonical(label)).collect::<Result<_, _>>()?;
        let pairing = &self.pairing;
        let seed = pairing.measuring.seed()?;
        // What was drawn, and what depends on the machine.
        let again = typed.clone().of_these(&self.treatments).with("--seed", seed);
        let again = if base == NOTHING { again } else { again.with("--base", &base) };
        let again = match self.copies {
            1 => again.without("--copies"),
            copies => again.with("--copies", copies),
        };
        let workloads = self.wanted.or_quick();
        let names = WorkName::names_of(&workloads)?;
        let sample_ms = self.sample_ms(&arms);
        let endurance = self.endurance.passes(self.mixes.per_1000s());
        // The passes end by themselves.
        let budget = match endurance {
            Some(_) => Duration::ZERO,
            None => pairing.budget(&arms, &workloads),
        };
        let common = Common {
            arms,
            budget,
            warnings: warning.into_iter().collect(),
            ..pairing.measuring.common(&again, seed)
        };
        let command = self.command.clone();
        let interleave = match command.is_empty() {
            true => self.interleaving.requested(),
            false => self.interleaving.of_commands()?,
        };
        let workloads = Workloads {
            suites: suite::from_files(&names)?,
            mixes: self.mixes.read(&names)?,
            job_sizes: self.mixes.sizes_of_run(endurance.is_some()),
            copies: vec![self.copies],
            beside: self.beside.beside.clone(),
            client: self.beside.client.clone(),
            names: workloads,
        };
        let comparison = Comparison {
            further_metrics: net::with_scores(pairing.metrics.clone(), &workloads.names)?,
            compared: match command.is_empty() {
                true => Compared::Workloads(workloads),
                false => Compared::Command(command),
            },
            fixtures: self.fixtures.labels()?,
            around: self.hooks.around(self.prepare.clone(), Vec::new()),
            profiler: self.profiler.line(),
            far_hosts: self.machines.far_hosts()?,
            sample_ms,
            interleave,
            takes_old_pairs: true,
            detail: !self.no_detail,
            treated: self.treat,
            counts_good_answers: self.good_answers,
            endurance,
            ..pairing.comparison()
        };
        let comparison = if endurance.is_some() { of_passes(comparison) } else { comparison };
        Ok(Request { common, plan: Plan::Compare(comparison) })
    }
}

/// Refuses a workload or suite in the place of a treatment. Whatever else is wrong is reported later.
fn check_no_workload(label: &str) -> Result<(), String> {
    if label.contains([':', '+']) || treatment::parse(label).is_ok() {
        return Ok(());
    }
    let is_suite = suite::embedded()?.iter().any(|suite| suite.name == label);
    match is_suite || list::read_workloads()?.iter().any(|one| one.name == label) {
        true => Err(format!("`{label}` is a workload or suite, not a treatment: use -w {label}")),
        false => Ok(()),
    }
}

/// The labels of all combinations, the baseline first.
fn combinations(base: &str, treatments: &[String]) -> Result<Vec<String>, String> {
    if !(2..=MOST_FACTORS).contains(&treatments.len()) {
        return Err(format!(
            "--factorial takes two to four treatments, and measures all their combinations; here are {}",
            treatments.len()
        ));
    }
    let labels = subsets(treatments).skip(1).map(|combination| combination.join("+"));
    Ok(std::iter::once(base.to_owned()).chain(labels).collect())
}

/// Auditing is what most come for; who cannot change it gets an answer all the same.
fn default_treatment() -> String {
    let obstacle =
        treatment::find("audit").and_then(|kind| (kind.probe)().obstacle().map(str::to_owned));
    match obstacle {
        None => "audit".into(),
        Some(why) => {
            output::note(&format!("Weighing `seccomp` instead of `audit`: {why}."));
            "seccomp".into()
        }
    }
}

/// The comparison without what needs pairs of short samples: over hours, a pass is one sample.
fn of_passes(comparison: Comparison) -> Comparison {
    Comparison {
        interleave: request::Interleave::Never,
        takes_old_pairs: false,
        detail: false,
        budget_per_row: Duration::ZERO,
        ..comparison
    }
}
