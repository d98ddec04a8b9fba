//! `seccomp`: a system-call filter that every treated process installs on itself; needs no root.
//!
//! The default filter reads an argument and compares it. One that looked at numbers only would
//! cost almost nothing: the kernel precomputes those it always allows (`seccomp_cache_prepare()`).

use std::path::{Path, PathBuf};

use crate::treatment::label::Parameters;
use crate::treatment::seccomp::bpf::{self, Instruction};
use crate::treatment::seccomp::oci_profile::{self, Compiled};
use crate::treatment::{Error, Evidence, Kind, Parameter, Probe, Treatment, absolute};
use crate::workload::launcher::{Launched, Setup};

pub static KIND: Seccomp = Seccomp;

/// About what a container's profile makes of the average system call.
const DEFAULT_COMPARES: u32 = 50;

pub struct Seccomp;

impl Kind for Seccomp {
    fn name(&self) -> &'static str {
        "seccomp"
    }

    fn summary(&self) -> &'static str {
        "a seccomp filter that reads an argument of every system call, or your own profile"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                form: "compares=N",
                help: "comparisons per system call, 1 to 2000; default 50",
            },
            Parameter {
                form: "profile=FILE",
                help: "a profile in the OCI's JSON, as containers use",
            },
        ]
    }

    fn probe(&self) -> Probe {
        // Asking for the action's availability changes nothing, where installing a filter would.
        let action: u32 = libc::SECCOMP_RET_ALLOW;
        // SAFETY: the operation reads one u32 at the address given.
        let status = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action)
        };
        if status == 0 {
            return Probe::Available;
        }
        let error = std::io::Error::last_os_error();
        Probe::Broken(format!(
            "this kernel has no seccomp filters (CONFIG_SECCOMP_FILTER): {error}"
        ))
    }

    fn build(&self, parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
        let compares = parameters.number("compares", 1..=2000)?;
        let filter = match parameters.value("profile") {
            Some(_) if compares.is_some() => {
                return Err("seccomp takes compares= or profile=, not both".into());
            }
            Some(path) => Filter::Profile(oci_profile::read(Path::new(path))?, absolute(path)?),
            None => Filter::Compares(compares.unwrap_or(DEFAULT_COMPARES)),
        };
        Ok(Box::new(Filtering { filter, own: own_seccomp() }))
    }
}

enum Filter {
    Compares(u32),
    Profile(Compiled, PathBuf),
}

struct Filtering {
    filter: Filter,
    /// Mode and number of filters of `weigh` itself, which every worker inherits.
    own: (u32, u32),
}

impl Filtering {
    fn program(&self) -> Vec<Instruction> {
        match &self.filter {
            Filter::Compares(compares) => bpf::compare_first_argument(*compares),
            Filter::Profile(compiled, _) => compiled.program.clone(),
        }
    }
}

impl Treatment for Filtering {
    fn setup(&self, is_treated: bool) -> Setup {
        Setup { seccomp: is_treated.then(|| self.program()), ..Setup::default() }
    }

    fn after(&mut self, is_treated: bool, launched: &Launched) -> Result<Evidence, Error> {
        let (own_mode, own_filters) = self.own;
        let expected = if is_treated { (2, own_filters + 1) } else { (own_mode, own_filters) };
        let found = launched.seccomp_mode.zip(launched.seccomp_filters);
        if found == Some(expected) {
            return Ok(Evidence::default());
        }
        Err(Error::NotInForce(format!(
            "the {} process should have had seccomp mode {} with {} filters, and had {}",
            if is_treated { "treated" } else { "baseline" },
            expected.0,
            expected.1,
            found.map_or("none that could be read".into(), |(mode, filters)| format!(
                "mode {mode} with {filters}"
            )),
        )))
    }

    fn facts(&self) -> Vec<String> {
        let what = match &self.filter {
            Filter::Compares(compares) => format!(
                "Every system call of the treated processes passes a filter that compares its first \
                 argument {compares} times and allows it."
            ),
            Filter::Profile(compiled, path) => format!(
                "Every system call of the treated processes passes the filter of {}: {}.",
                path.display(),
                compiled.description
            ),
        };
        vec![what, format!("The filter has {} BPF instructions.", self.program().len())]
    }
}

fn own_seccomp() -> (u32, u32) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let number = |name| crate::workload::launcher::status_number(&status, name).unwrap_or(0);
    (number("Seccomp"), number("Seccomp_filters"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::treatment::label;

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        let build = |text| KIND.build(&label::split(text).unwrap().1).err();
        assert!(build("seccomp:compares=0").unwrap().contains("from 1 to 2000"));
        assert!(build("seccomp:compares=5,profile=x").unwrap().contains("not both"));
        assert!(build("seccomp:profile=/nonexistent").unwrap().contains("/nonexistent"));
        assert!(build("seccomp").is_none());
    }

    #[test]
    fn a_sample_without_the_filter_is_no_evidence() {
        let mut treatment = Filtering { filter: Filter::Compares(1), own: (0, 0) };
        let launched = |mode, filters| Launched {
            seccomp_mode: Some(mode),
            seccomp_filters: Some(filters),
            ..Launched::default()
        };
        assert!(treatment.after(true, &launched(2, 1)).is_ok());
        assert!(treatment.after(true, &launched(0, 0)).is_err());
        assert!(treatment.after(false, &launched(2, 1)).is_err());
        assert!(treatment.after(true, &Launched::default()).is_err());
    }
}
