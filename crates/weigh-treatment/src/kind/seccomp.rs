//! `seccomp`: a system-call filter that every treated process installs on itself; needs no root.
//!
//! The default filter reads an argument and compares it. One that looked at numbers only would
//! cost almost nothing: the kernel precomputes those it always allows (`seccomp_cache_prepare()`).

use std::path::{Path, PathBuf};

use crate::{
    Kind, Launch, Parameter, Probe, Reach, Treatment, TreatmentError, TreatmentKind, absolute,
};
use weigh_model::evidence::Evidence;
use weigh_model::format;
use weigh_model::label::Parameters;
use weigh_policy::oci_profile::{self, Compiled, Layout};
use weigh_workload::launcher::status_number;
use weigh_workload::seccomp_instructions;
use weigh_workload::seccomp_program::Instruction;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::notified_calls::NotifiedCalls;
use weigh_workload::setup::kind::seccomp_filter::SeccompFilter;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "seccomp",
        summary: "a seccomp filter that reads an argument of every system call, or your own profile",
        parameters: &[
            Parameter {
                form: "compares=N",
                help: "comparisons per system call, 1 to 2000; default 50",
            },
            Parameter {
                form: "profile=FILE",
                help: "a profile in the OCI's JSON format, as used for containers; or a policy of \
                       minijail; or @system-service, the calls that systemd's SystemCallFilter= of \
                       that name allows",
            },
            Parameter {
                form: "layout=WORD",
                help: "order of comparisons: chain (one by one, default) or tree (binary search, as in \
                       runc)",
            },
            Parameter {
                form: "filters=N",
                help: "how often the filter is installed, 0 to 32; default 1",
            },
        ],
        probe,
    },
    build,
);

/// About what a container's profile makes of the average system call.
const DEFAULT_COMPARES: u32 = 50;
/// A service of systemd has about a dozen.
const MOST_FILTERS: u32 = 32;
/// `MAX_INSNS_PER_PATH` of kernel/seccomp.c, which counts each filter as four instructions longer.
const MOST_INSTRUCTIONS: usize = (1 << 18) / 8;
const FILTER_PENALTY: usize = 4;
/// All filters of a process have at most 32768 instructions of eBPF (`MAX_INSNS_PER_PATH` in
/// kernel/seccomp.c), and the kernel makes four of each comparison.
const MOST_STACKED_COMPARES: u32 = 200;
/// `SECCOMP_MODE_FILTER`.
const FILTER_MODE: u32 = 2;
/// `SECCOMP_MODE_DEAD`: of a process that its filter has killed.
const DEAD_MODE: u32 = 3;

fn probe() -> Probe {
    probe_action(libc::SECCOMP_RET_ALLOW)
}

/// Asks whether filters may return this action: that changes nothing, where installing a filter would.
pub(super) fn probe_action(action: u32) -> Probe {
    // SAFETY: the operation reads one u32 at the address given.
    let status = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action)
    };
    if status == 0 {
        return Probe::Available;
    }
    let error = std::io::Error::last_os_error();
    Probe::Broken(format!("this kernel lacks seccomp filters (CONFIG_SECCOMP_FILTER): {error}"))
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let compares = parameters.number("compares", 1..=2000)?;
    let filter = match parameters.value("profile") {
        Some(_) if compares.is_some() => {
            return Err("seccomp takes compares= or profile=, not both".into());
        }
        Some(path) => {
            let layout = layout(parameters)?.unwrap_or_default();
            let compiled = oci_profile::read(Path::new(path), layout)?;
            let is_embedded = path == oci_profile::SYSTEM_SERVICE;
            let path = if is_embedded { path.into() } else { absolute(path)? };
            Filter::Profile(compiled, path)
        }
        None if layout(parameters)?.is_some() => {
            return Err(
                "layout= needs profile=: the filter of plain `seccomp` is always a chain".into()
            );
        }
        None => Filter::Compares(compares.unwrap_or(DEFAULT_COMPARES)),
    };
    let times = parameters.number("filters", 0..=MOST_FILTERS)?.unwrap_or(1);
    if times > 1 && compares.is_some_and(|compares| compares > MOST_STACKED_COMPARES) {
        return Err(format!(
            "filters={times} takes at most compares={MOST_STACKED_COMPARES}: the kernel limits the length \
             of all filters of a process together"
        ));
    }
    if let Filter::Profile(compiled, path) = &filter
        && is_too_long(compiled.program.len(), times)
    {
        return Err(format!(
            "filters={times} is too many for {}: it compiles to {} instructions, and the kernel allows \
             {MOST_INSTRUCTIONS} in all filters of a process together",
            path.display(),
            compiled.program.len()
        ));
    }
    Ok(Box::new(Filtering { filter, times, own: own_seccomp() }))
}

fn layout(parameters: &Parameters) -> Result<Option<Layout>, String> {
    match parameters.value("layout") {
        None => Ok(None),
        Some("chain") => Ok(Some(Layout::Chain)),
        Some("tree") => Ok(Some(Layout::Tree)),
        Some(other) => Err(format!("layout={other}: takes `chain` or `tree`")),
    }
}

/// Returns true if the kernel cannot hold so many filters, for certain: what it makes of each may be longer.
fn is_too_long(instructions: usize, times: u32) -> bool {
    times as usize * (instructions + FILTER_PENALTY) > MOST_INSTRUCTIONS
}

enum Filter {
    Compares(u32),
    Profile(Compiled, PathBuf),
}

struct Filtering {
    filter: Filter,
    /// Number of times that it is installed; with 0 the arm is the baseline.
    times: u32,
    /// Mode and number of filters of `weigh` itself, which every worker inherits. Kernels before
    /// 5.9 do not tell the number.
    own: (u32, Option<u32>),
}

impl Filtering {
    fn program(&self) -> Vec<Instruction> {
        match &self.filter {
            Filter::Compares(compares) => seccomp_instructions::compare_first_argument(*compares),
            Filter::Profile(compiled, _) => compiled.program.clone(),
        }
    }
}

impl Treatment for Filtering {
    fn can_interleave(&self) -> bool {
        true
    }

    fn reach(&self) -> Reach {
        Reach::Processes
    }

    fn setup(&self, is_treated: bool) -> Setup {
        match is_treated && self.times > 0 {
            true => {
                Setup::default().with(SeccompFilter { program: self.program(), times: self.times })
            }
            false => Setup::default(),
        }
    }

    fn content(&self) -> Vec<u8> {
        format!("{:?}", self.program()).into_bytes()
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let (own_mode, own_filters) = self.own;
        // The other arm may have a filter too: of another treatment, or of the baseline.
        let times = launch.setup.get::<SeccompFilter>().map_or(0, |step| step.times);
        let notifying = launch.setup.get::<NotifiedCalls>();
        let installed = times + u32::from(notifying.is_some_and(|step| !step.calls.is_empty()));
        let mode = if installed > 0 { FILTER_MODE } else { own_mode };
        let filters = own_filters.map(|own| own + installed);
        let numbers = |name| launch.status_numbers(name);
        let in_force = |mode| if mode == DEAD_MODE { FILTER_MODE } else { mode };
        let modes = numbers("Seccomp").map(|mode| mode.map(in_force));
        let mut found = modes.zip(numbers("Seccomp_filters"));
        let differing = found.find(|found| *found != (Some(mode), filters));
        let is_set_up = !launch.is_treated || times == self.times;
        if is_set_up && differing.is_none() {
            let mut evidence = Evidence::default();
            if let Some(filters) = filters.filter(|_| launch.is_treated) {
                evidence.amounts.set("seccomp_filters", &*filters.to_string());
            }
            return Ok(evidence);
        }
        let show = |number: Option<u32>| number.map_or("unknown".into(), |n: u32| n.to_string());
        Err(TreatmentError::NotInForce(format!(
            "the {} process should have had seccomp mode {mode} with {} filters, but had mode {} with {}",
            if launch.is_treated { "treated" } else { "other" },
            show(filters),
            show(differing.and_then(|found| found.0)),
            show(differing.and_then(|found| found.1)),
        )))
    }

    fn facts(&self) -> Vec<String> {
        if self.times == 0 {
            return vec!["No filter is installed.".into()];
        }
        let what = match &self.filter {
            Filter::Compares(compares) => format!(
                "Every system call of the treated processes passes a filter that compares its first \
                 argument {} and allows it.",
                format::plural(*compares as usize, "time")
            ),
            Filter::Profile(compiled, path) => format!(
                "Every system call of the treated processes passes the filter of {}: {}.",
                path.display(),
                compiled.description
            ),
        };
        let length = format!("The filter has {} BPF instructions.", self.program().len());
        let stacked = (self.times > 1).then(|| {
            format!("It is installed {} times: each call passes all of them.", self.times)
        });
        [what, length].into_iter().chain(stacked).collect()
    }
}

fn own_seccomp() -> (u32, Option<u32>) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let number = |name| status_number(&status, name);
    (number("Seccomp").unwrap_or(0), number("Seccomp_filters"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters_of;
    use weigh_workload::launcher::Launched;
    use weigh_workload::member::{MemberDuring, MemberSeen};

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        let build = |text| (KIND.build)(&parameters_of(text)).err();
        assert!(build("seccomp:compares=0").unwrap().contains("from 1 to 2000"));
        assert!(build("seccomp:compares=5,profile=x").unwrap().contains("not both"));
        assert!(build("seccomp:profile=/nonexistent").unwrap().contains("/nonexistent"));
        assert!(build("seccomp:filters=2,compares=201").unwrap().contains("at most compares=200"));
        assert!(build("seccomp:filters=1,compares=2000").is_none());
        assert!(is_too_long(1021, 32) && !is_too_long(1020, 32) && !is_too_long(4096, 1));
        assert!(build("seccomp:layout=tree").unwrap().contains("needs profile=:"));
        let wrong = build("seccomp:profile=@system-service,layout=bush");
        assert!(wrong.unwrap().contains("takes `chain` or `tree`"));
        assert!(build("seccomp:profile=@system-service,layout=tree").is_none());
        assert!(build("seccomp:filters=33").unwrap().contains("from 0 to 32"));
        assert!(build("seccomp").is_none());
    }

    #[test]
    fn all_of_several_filters_must_be_there() {
        let is_believed = |times, mode, filters| {
            let mut treatment = Filtering { filter: Filter::Compares(1), times, own: (0, Some(0)) };
            let setup = treatment.setup(true);
            let launched = launched(Some(mode), Some(filters));
            treatment.verify_sample(&Launch::of_worker(true, &setup, &launched)).is_ok()
        };
        assert!(is_believed(4, 2, 4));
        assert!(!is_believed(4, 2, 3) && !is_believed(4, 2, 1));
        assert!(is_believed(0, 0, 0) && !is_believed(0, 2, 1));
    }

    fn launched(mode: Option<u32>, filters: Option<u32>) -> Launched {
        let line = |(name, number): (&str, u32)| format!("{name}:\t{number}\n");
        let lines = [("Seccomp", mode), ("Seccomp_filters", filters)].into_iter();
        let status = lines.filter_map(|(name, number)| Some(line((name, number?)))).collect();
        Launched { status, ..Launched::default() }
    }

    #[test]
    fn a_sample_without_the_filter_is_no_evidence() {
        let treatment = |own| Filtering { filter: Filter::Compares(1), times: 1, own };
        let is_believed = |own, is_treated, seccomp_mode, seccomp_filters| {
            let mut treatment = treatment(own);
            let setup = treatment.setup(is_treated);
            let launched = launched(seccomp_mode, seccomp_filters);
            treatment.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).is_ok()
        };
        let (none, unknown) = ((0, Some(0)), (0, None));
        assert!(is_believed(none, true, Some(2), Some(1)));
        assert!(!is_believed(none, true, Some(0), Some(0)));
        assert!(!is_believed(none, false, Some(2), Some(1)));
        assert!(is_believed(none, false, Some(0), Some(0)));
        assert!(!is_believed(none, true, None, None));
        assert!(is_believed(unknown, true, Some(2), None), "a kernel before 5.9");
        assert!(is_believed(none, true, Some(3), Some(1)), "its filter has killed it");
        assert!(!is_believed(none, false, Some(3), Some(1)));
        assert!(!is_believed((2, Some(1)), true, Some(2), Some(1)), "only what was inherited");
    }

    #[test]
    fn a_server_without_the_filter_is_no_evidence_either() {
        let mut treatment = Filtering { filter: Filter::Compares(1), times: 1, own: (0, Some(0)) };
        let (setup, launched) = (treatment.setup(true), launched(Some(2), Some(1)));
        let mut is_believed = |status: &str| {
            let status = status.to_owned();
            let seen = MemberSeen { status, ..MemberSeen::default() };
            let members = &[MemberDuring { before: seen.clone(), after: seen, is_away: false }];
            let (setup, launched) = (&setup, &launched);
            treatment.verify_sample(&Launch { is_treated: true, setup, launched, members }).is_ok()
        };
        assert!(is_believed("Seccomp:\t2\nSeccomp_filters:\t1\n"));
        assert!(!is_believed("Seccomp:\t0\nSeccomp_filters:\t0\n"));
    }

    #[test]
    fn the_baseline_may_have_a_filter_of_its_own() {
        let mut treatment = Filtering { filter: Filter::Compares(1), times: 1, own: (0, Some(0)) };
        let setup = treatment.setup(true);
        let launched = launched(Some(2), Some(1));
        let launch = Launch::of_worker(false, &setup, &launched);
        assert!(treatment.verify_sample(&launch).is_ok());
    }
}
