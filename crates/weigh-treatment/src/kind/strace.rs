//! `strace`: each process of the arm is traced by strace, which writes a line per call into a file.
//!
//! The proof is in this file: strace wrote how the process ended, so it traced the process until then.

use std::path::PathBuf;

use trust::program;
use trust::start::{self, Inherited};

use crate::{
    ApplyContext, Kind, Launch, Parameter, Probe, Treatment, TreatmentError, TreatmentKind,
};
use weigh_host::said;
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_model::printable;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_model::result::quantity::{QuantityKind::Made, QuantityUnit::Count};
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::strace_tracer::StraceTracer;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "strace",
        summary: "strace traces each process, and writes a line per system call",
        parameters: &[
            Parameter {
                form: "calls=SET",
                help: "the traced calls, as in `strace -e trace=SET`; default all",
            },
            Parameter {
                form: "seccomp-bpf",
                help: "a filter stops the traced calls only (`strace --seccomp-bpf`)",
            },
            Parameter { form: "off", help: "no strace: two identical arms" },
        ],
        probe,
    },
    build,
);

/// Calls that strace wrote, also those of the processes that the workload started.
const CALLS: EvidenceQuantity =
    EvidenceQuantity::new("strace_calls", "traced calls", Count, Made, None);

fn probe() -> Probe {
    match find() {
        Ok(_) => Probe::Available,
        Err(problem) => Probe::Broken(problem),
    }
}

fn find() -> Result<PathBuf, String> {
    program::find("strace")?
        .ok_or_else(|| "strace is not installed: sudo apt-get install strace".into())
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let (calls, has_filter) = (parameters.value("calls"), parameters.has("seccomp-bpf"));
    if parameters.has("off") {
        return match calls.is_some() || has_filter {
            true => Err("`strace:off` takes no other parameter: nothing is traced".into()),
            false => Ok(Box::new(Traced::of(None))),
        };
    }
    let calls = calls.unwrap_or("all").to_owned();
    if calls.is_empty() {
        return Err("calls= takes system calls, such as calls=openat or calls=%file".into());
    }
    if has_filter && calls == "all" {
        return Err("strace has no filter if it traces all calls: name some with calls=, such as \
                    strace:calls=openat,seccomp-bpf"
            .into());
    }
    Ok(Box::new(Traced::of(Some(Options { calls, has_filter }))))
}

struct Options {
    calls: String,
    has_filter: bool,
}

impl Options {
    /// strace 5.3 and newer has all of them.
    fn words(&self, lines: &str) -> Vec<String> {
        // With its own session, the tracer gets no signal that is sent to the workload's group.
        let words = ["-DDD", "-f", "-q", "-o", lines, "-e"].map(Into::into);
        let calls = format!("trace={}", self.calls);
        let filter = self.has_filter.then(|| "--seccomp-bpf".into());
        words.into_iter().chain([calls]).chain(filter).collect()
    }
}

struct Traced {
    /// `None` for two identical arms.
    options: Option<Options>,
    /// strace with its options; empty where nothing is traced.
    command: Vec<String>,
    /// Where strace writes its lines.
    lines: PathBuf,
}

impl Traced {
    fn of(options: Option<Options>) -> Traced {
        Traced { options, command: Vec::new(), lines: PathBuf::new() }
    }

    /// The step of a launch's own arm is in force. That may be another arm with strace.
    fn prove(&self, launch: &Launch) -> Result<Option<u64>, TreatmentError> {
        let not_in_force = |problem: String| Err(TreatmentError::NotInForce(problem));
        let step = launch.setup.get::<StraceTracer>();
        let command = step.map_or(&[][..], |step| &step.command);
        if launch.is_treated && command != self.command {
            return not_in_force("the treated process was not started by its strace".into());
        }
        if command.is_empty() {
            let tracer = launch.launched.seen(StraceTracer::TRACER)?;
            return match tracer {
                "0" => Ok(None),
                tracer => not_in_force(format!(
                    "process {tracer} traced a process that should not be traced: run weigh itself without \
                     a tracer"
                )),
            };
        }
        match launch.launched.seen(StraceTracer::CALLS) {
            Ok(calls) => calls.parse().map(Some).or_else(|_| {
                not_in_force(format!("the number of calls that strace wrote is not {calls}"))
            }),
            Err(_) if launch.launched.exit_code.is_some() => not_in_force(
                "strace did not trace the process until its end: strace failed, or somebody killed it".into(),
            ),
            Err(missing) => Err(missing.into()),
        }
    }
}

/// Traces a program that does nothing.
fn try_out(options: &Options) -> Result<(), String> {
    let mut command = start::command(find()?, Inherited::Fixed);
    command.args(options.words("/dev/null")).arg(program::named("true")?);
    let done = said::output(command).map_err(|error| format!("cannot run strace: {error}"))?;
    // strace goes on without its filter where that is refused, and only says so.
    match done.status.success() && (!options.has_filter || done.stderr.is_empty()) {
        true => Ok(()),
        false => {
            let problem = printable::line(String::from_utf8_lossy(&done.stderr).trim());
            Err(format!("strace cannot trace calls={} here: {problem}", options.calls))
        }
    }
}

impl Treatment for Traced {
    fn check_inputs(&mut self) -> Result<(), String> {
        self.options.as_ref().map_or(Ok(()), try_out)
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        _: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        self.lines = context.place.scratch.join("strace-lines");
        if let Some(options) = &self.options {
            let strace = find().map_err(TreatmentError::Unavailable)?;
            let words = options.words(&self.lines.display().to_string());
            self.command = [vec![strace.display().to_string()], words].concat();
        }
        Ok(Vec::new())
    }

    fn setup(&self, is_treated: bool) -> Setup {
        let command = if is_treated { self.command.clone() } else { Vec::new() };
        Setup::default().with(StraceTracer { command, lines: self.lines.clone() })
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        if !launch.members.is_empty() {
            return Err(TreatmentError::NoInstance(
                "it needs a server, and weigh does not count the calls of a server under strace"
                    .into(),
            ));
        }
        let calls = self.prove(launch)?;
        Ok(Evidence::default().with(&CALLS, calls.filter(|_| launch.is_treated)))
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        vec![CALLS]
    }

    fn facts(&self) -> Vec<String> {
        let Some(Options { calls, has_filter }) = &self.options else {
            return vec!["No process of this arm is traced.".into()];
        };
        let stops = match has_filter {
            true => "A filter stops these calls only.",
            false => "Each system call stops the process twice.",
        };
        vec![format!(
            "strace traces the processes of this arm (trace={calls}). {stops} The CPU times do not include \
             strace's own."
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use weigh_workload::launcher::Launched;

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        let refused = |label: &str| parse(label).err().unwrap();
        assert!(refused("strace:off,seccomp-bpf").contains("takes no other parameter"));
        assert!(refused("strace:seccomp-bpf").contains("no filter if it traces all calls"));
        assert!(refused("strace:calls=\"\"").contains("such as calls=openat"));
        assert!(parse("strace:calls=\"openat,close\",seccomp-bpf").is_ok());
    }

    #[test]
    fn without_strace_the_arms_go_through_the_same_steps() {
        let treatment = Traced::of(None);
        assert_eq!(treatment.setup(true), treatment.setup(false));
        let command = treatment.setup(true).command_line(&["true".into()]);
        assert_eq!(command, ["true"]);
    }

    #[test]
    fn a_process_counts_if_strace_saw_its_end_and_another_if_nobody_traced_it() {
        let options = Options { calls: "all".into(), has_filter: false };
        let command = vec!["strace".to_owned()];
        let treatment = Traced { command, ..Traced::of(Some(options)) };
        let is_believed = |is_treated, is_set_up, seen: &[(&str, &str)]| {
            let setup = treatment.setup(is_set_up);
            let seen = seen.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            let launched = Launched { seen, exit_code: Some(0), ..Launched::default() };
            treatment.prove(&Launch::of_worker(is_treated, &setup, &launched)).ok()
        };
        let (calls, tracer) = (StraceTracer::CALLS, StraceTracer::TRACER);
        assert_eq!(is_believed(true, true, &[(calls, "9")]), Some(Some(9)));
        assert_eq!(is_believed(true, true, &[(tracer, "7")]), None, "it was killed");
        assert_eq!(is_believed(true, false, &[(calls, "9"), (tracer, "0")]), None);
        assert_eq!(is_believed(false, false, &[(tracer, "0")]), Some(None));
        assert_eq!(is_believed(false, false, &[(tracer, "7")]), None);
        assert_eq!(is_believed(false, true, &[(calls, "9")]), Some(Some(9)), "of another arm");
    }
}
