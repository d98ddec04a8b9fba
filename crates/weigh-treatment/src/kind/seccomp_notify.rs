//! `seccomp-notify`: a filter hands some system calls of each process to a supervisor, which lets each go on.
//!
//! Supervisors of containers do so with the calls that they do not emulate.

use crate::{Kind, Launch, Parameter, Probe, Treatment, TreatmentError, TreatmentKind};
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_model::result::quantity::{QuantityKind::Made, QuantityUnit::Count};
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::notified_calls::NotifiedCalls;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "seccomp-notify",
        summary: "a supervisor that is asked about system calls and lets each go on",
        parameters: &[
            Parameter {
                form: "calls=NAMES",
                help: "the calls it is asked about, such as calls=\"openat,close\"; default openat",
            },
            Parameter { form: "off", help: "no filter and no supervisor: two identical arms" },
        ],
        probe,
    },
    build,
);

/// Calls that the supervisor answered, also those of processes that the workload started.
const ANSWERED: EvidenceQuantity =
    EvidenceQuantity::new("notified_calls", "answered calls", Count, Made, None);
/// Stops of the process and of those that it started.
const STOPS: EvidenceQuantity = EvidenceQuantity::new("ptrace_stops", "stops", Count, Made, None);
/// `SECCOMP_MODE_FILTER`.
const FILTER_MODE: u32 = 2;

fn probe() -> Probe {
    // Asking for the action's availability changes nothing, where installing a filter would.
    let action: u32 = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: the operation reads one u32 at the address given.
    let status = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action)
    };
    let error = match status {
        // The action is older than the rest; pidfd_getfd(2) came with Linux 5.6. A descriptor of nothing
        // changes nothing.
        // SAFETY: it takes numbers.
        0 => match unsafe { libc::syscall(libc::SYS_pidfd_getfd, -1, -1, 0) } {
            _ if std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS) => {
                return Probe::Available;
            }
            _ => std::io::Error::from_raw_os_error(libc::ENOSYS),
        },
        _ => std::io::Error::last_os_error(),
    };
    Probe::Broken(format!("this kernel cannot notify of calls, which needs Linux 5.9: {error}"))
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    supervised(parameters, "seccomp-notify", false)
}

/// A treatment of this name whose supervisor is asked about calls, or stops the process at them.
pub(super) fn supervised(
    parameters: &Parameters,
    treatment: &str,
    is_traced: bool,
) -> Result<Box<dyn Treatment>, String> {
    let calls = parameters.value("calls");
    if parameters.has("off") {
        return match calls {
            Some(_) => Err(format!("`{treatment}` takes calls= or `off`, not both")),
            None => Ok(Box::new(Notified { names: String::new(), calls: Vec::new(), is_traced })),
        };
    }
    let names = calls.unwrap_or("openat").to_owned();
    let number = |name: &str| match name.trim().parse::<syscalls::Sysno>() {
        Ok(call) => Ok(call.id() as u32),
        Err(_) => Err(format!("calls={names}: this machine has no system call `{}`", name.trim())),
    };
    let calls = names.split(',').map(number).collect::<Result<_, _>>()?;
    Ok(Box::new(Notified { names, calls, is_traced }))
}

struct Notified {
    names: String,
    /// Numbers of the calls; empty for two identical arms.
    calls: Vec<u32>,
    is_traced: bool,
}

impl Notified {
    fn quantity(&self) -> EvidenceQuantity {
        if self.is_traced { STOPS } else { ANSWERED }
    }

    /// The step of a launch's own arm is in force. That may be another arm with a supervisor.
    fn prove(&self, launch: &Launch) -> Result<Option<u64>, TreatmentError> {
        let not_in_force = |problem: &str| Err(TreatmentError::NotInForce(problem.into()));
        let step = launch.setup.get::<NotifiedCalls>();
        let calls = step.map_or(&[][..], |step| &step.calls);
        let is_own = step.is_some_and(|step| step.is_traced == self.is_traced);
        if launch.is_treated && (calls != self.calls || !is_own) {
            return not_in_force("the treated process lacks the filter of its supervisor");
        }
        let answered = launch.launched.seen.get(NotifiedCalls::ANSWERED);
        if calls.is_empty() {
            return match answered {
                None => Ok(None),
                Some(_) => not_in_force("a supervisor answered calls of the other process"),
            };
        }
        if launch.status_numbers("Seccomp").any(|mode| mode != Some(FILTER_MODE)) {
            return not_in_force("the treated process has no seccomp filter");
        }
        match answered.map(|answered| answered.parse()) {
            Some(Ok(answered)) => Ok(Some(answered)),
            _ if launch.launched.exit_code.is_some() => not_in_force(
                "the supervisor or tracer did not stay until the process ended: somebody killed it",
            ),
            _ => Err(launch.launched.seen(NotifiedCalls::ANSWERED).map_or_else(Into::into, |_| {
                TreatmentError::NotInForce("the number of calls is not a number".into())
            })),
        }
    }
}

impl Treatment for Notified {
    fn setup(&self, is_treated: bool) -> Setup {
        let calls = if is_treated { self.calls.clone() } else { Vec::new() };
        Setup::default().with(NotifiedCalls { calls, is_traced: self.is_traced })
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        if !launch.members.is_empty() {
            return Err(TreatmentError::NoInstance(
                "it needs a server, and weigh does not supervise the calls of a server".into(),
            ));
        }
        let answered = self.prove(launch)?;
        Ok(Evidence::default().with(&self.quantity(), answered.filter(|_| launch.is_treated)))
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        vec![self.quantity()]
    }

    fn facts(&self) -> Vec<String> {
        let what = match (self.calls.is_empty(), self.is_traced) {
            (true, false) => return vec!["No supervisor is asked about calls.".into()],
            (true, true) => return vec!["No process of this arm is traced.".into()],
            (false, false) => "wait for a supervisor, which lets them go on",
            (false, true) => "stop the process once, until its tracer lets it go on",
        };
        vec![format!(
            "These calls of the treated processes {what}: {}. The CPU times exclude the {}.",
            self.names,
            if self.is_traced { "tracer" } else { "supervisor" }
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use weigh_workload::launcher::Launched;

    #[test]
    fn calls_have_names_and_without_any_the_arms_are_identical() {
        let refused = |label: &str| parse(label).err().unwrap();
        assert!(refused("seccomp-notify:calls=nonsense").contains("no system call `nonsense`"));
        assert!(refused("seccomp-notify:off,calls=openat").contains("not both"));
        assert!(parse("seccomp-notify:calls=\"openat, close\"").is_ok());
        let off = parse("seccomp-notify:off").unwrap().treatment;
        assert_eq!(off.setup(true), off.setup(false));
    }

    #[test]
    fn a_sample_counts_if_its_supervisor_answered_until_its_end() {
        let treatment = Notified { names: "openat".into(), calls: vec![257], is_traced: false };
        let is_believed = |is_treated, is_set_up, mode: u32, answered: Option<&str>| {
            let setup = treatment.setup(is_set_up);
            let seen = answered.map(|it| (NotifiedCalls::ANSWERED.into(), it.into()));
            let launched = Launched {
                seen: seen.into_iter().collect(),
                status: format!("Seccomp:\t{mode}\n"),
                exit_code: Some(0),
                ..Launched::default()
            };
            treatment.prove(&Launch::of_worker(is_treated, &setup, &launched)).ok()
        };
        assert_eq!(is_believed(true, true, 2, Some("9")), Some(Some(9)));
        assert_eq!(is_believed(true, true, 2, None), None, "it was killed");
        assert_eq!(is_believed(true, true, 0, Some("9")), None);
        assert_eq!(is_believed(true, false, 2, Some("9")), None);
        assert_eq!(is_believed(false, false, 0, None), Some(None));
        assert_eq!(is_believed(false, false, 0, Some("0")), None);
        let traced = Notified { is_traced: true, ..treatment };
        let setup = Setup::default().with(NotifiedCalls { calls: vec![257], is_traced: false });
        let launched = Launched::default();
        let notified = traced.prove(&Launch::of_worker(true, &setup, &launched));
        assert!(notified.unwrap_err().to_string().contains("lacks the filter"));
    }
}
