//! `ptrace`: a tracer of weigh stops each process at some system calls only, once per call.
//!
//! Sandboxes without seccomp-notify, debuggers and `strace --seccomp-bpf` stop processes so.

use super::seccomp::probe_action;
use super::seccomp_notify::supervised;
use crate::{Kind, Parameter, TreatmentKind};

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "ptrace",
        summary: "a tracer that stops each process at some system calls only",
        parameters: &[
            Parameter {
                form: "calls=NAMES",
                help: "the calls that stop it, such as calls=\"openat,close\"; default openat",
            },
            Parameter { form: "off", help: "no filter and no tracer: two identical arms" },
        ],
        probe: || probe_action(libc::SECCOMP_RET_TRACE),
    },
    |parameters| supervised(parameters, "ptrace", true),
);

#[cfg(test)]
mod tests {
    use crate::parse;
    use weigh_workload::setup::kind::notified_calls::NotifiedCalls;

    #[test]
    fn its_calls_stop_the_process_and_a_second_tracer_is_refused() {
        let treatment = parse("ptrace:calls=\"openat,close\"").unwrap().treatment;
        let setup = treatment.setup(true);
        let step = setup.get::<NotifiedCalls>().unwrap();
        assert!(step.is_traced && step.calls.len() == 2);
        assert!(parse("ptrace:off,calls=openat").err().unwrap().contains("`ptrace` takes calls="));
        for arm in ["ptrace+strace", "seccomp-notify+ptrace"] {
            assert!(parse(arm).err().unwrap().contains("cannot be in one arm"), "{arm}");
        }
        assert!(parse("ptrace+seccomp").is_ok() && parse("ptrace:off+strace").is_ok());
    }
}
