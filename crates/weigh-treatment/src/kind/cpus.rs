//! `cpus`: the CPUs on which the workload may run.

use crate::{Kind, Launch, Parameter, Probe, Reach, Treatment, TreatmentError, TreatmentKind};
use weigh_model::cpu_share::cpus_of;
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_workload::setup::kind::allowed_cpus::AllowedCpus;
use weigh_workload::setup::{Act, Setup};

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "cpus",
        summary: "the CPUs on which the workload may run",
        parameters: &[Parameter { form: "LIST", help: "as in cpus:0, cpus:0-1, cpus:0,2-3" }],
        probe: || Probe::Available,
    },
    build,
);

/// Makes the treatment without checking that the CPUs exist: the launcher may be on another machine.
fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let list = parameters.iter().map(|(part, _)| part).collect::<Vec<_>>().join(",");
    match cpus_of(&list) {
        Some(cpus) => Ok(Box::new(Confined { cpus, others: None })),
        None => Err(format!("`cpus:{list}`: takes a list of CPUs, such as cpus:0,2-3")),
    }
}

struct Confined {
    cpus: Vec<usize>,
    /// CPUs of processes that are not confined, as first seen.
    others: Option<Vec<usize>>,
}

impl Treatment for Confined {
    fn reach(&self) -> Reach {
        Reach::Processes
    }

    fn check_inputs(&mut self) -> Result<(), String> {
        AllowedCpus { cpus: self.cpus.clone() }.in_launcher()
    }

    fn setup(&self, is_treated: bool) -> Setup {
        let cpus = if is_treated { self.cpus.clone() } else { Vec::new() };
        Setup::default().with(AllowedCpus { cpus })
    }

    /// A program may choose among the CPUs that it is given, also before anybody looks: so what was seen of
    /// it is some of them.
    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let own = launch.setup.get::<AllowedCpus>().map_or(&[][..], |step| &step.cpus);
        if launch.is_treated && own != self.cpus {
            let problem = "weigh did not set the CPUs of the treated process";
            return Err(TreatmentError::NotInForce(problem.into()));
        }
        for inherited in launch.seen(AllowedCpus::SEEN_OF_LAUNCHER)? {
            let others = self.others.get_or_insert_with(|| cpus_of(inherited).unwrap_or_default());
            if cpus_of(inherited).as_ref() != Some(others) {
                return Err(TreatmentError::NotInForce(format!(
                    "the CPUs of weigh's own processes were changed during the measurement: {inherited} \
                     instead of {}",
                    shown(others)
                )));
            }
        }
        let others = self.others.as_deref().unwrap_or_default();
        let wanted = if own.is_empty() { others } else { own };
        for (name, when) in
            AllowedCpus::SEEN.into_iter().zip(["when it was executed", "at its end"])
        {
            // Members do not end with a sample.
            let all = match name == AllowedCpus::SEEN[0] {
                true => launch.seen(name)?,
                false => vec![launch.launched.seen(name)?],
            };
            let is_within = |found: &&str| {
                let cpus = cpus_of(found).unwrap_or_default();
                !cpus.is_empty() && cpus.iter().all(|cpu| wanted.contains(cpu))
            };
            if let Some(found) = all.into_iter().find(|found| !is_within(found)) {
                return Err(TreatmentError::NotInForce(format!(
                    "the {} process should have had the CPUs {}, but had {found} {when}",
                    launch.whose(),
                    shown(wanted)
                )));
            }
        }
        Ok(Evidence::default())
    }

    fn facts(&self) -> Vec<String> {
        let are = if self.cpus.len() == 1 { "CPU" } else { "the CPUs" };
        vec![format!("The processes of this arm run on {are} {} only.", shown(&self.cpus))]
    }
}

fn shown(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use weigh_workload::launcher::Launched;

    #[test]
    fn a_sample_on_other_cpus_is_no_evidence() {
        let mut treatment = parse("cpus:0,2-3").unwrap().treatment;
        let mut is_believed = |is_treated, cpus: &[usize], seen: [&str; 3]| {
            let setup = Setup::default().with(AllowedCpus { cpus: cpus.to_vec() });
            let names = [AllowedCpus::SEEN_OF_LAUNCHER, AllowedCpus::SEEN[0], AllowedCpus::SEEN[1]];
            let seen = names.into_iter().zip(seen).map(|(n, v)| (n.into(), v.into()));
            let launched = Launched { seen: seen.collect(), ..Launched::default() };
            treatment.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).is_ok()
        };
        let own = [0, 2, 3];
        assert!(is_believed(true, &own, ["0-3", "0,2-3", "0,2-3"]));
        assert!(is_believed(true, &own, ["0-3", "0,2-3", "2"]), "a workload that pins itself");
        assert!(!is_believed(true, &own, ["0-3", "0-3", "0,2-3"]));
        assert!(!is_believed(true, &own, ["0-3", "0,2-3", "1"]));
        assert!(!is_believed(true, &own, ["0-3", "0,2-3", ""]));
        assert!(!is_believed(true, &[0], ["0-3", "0", "0"]), "set up as another");
        assert!(is_believed(false, &[], ["0-3", "0-3", "1"]));
        assert!(!is_believed(false, &[], ["0,2-3", "0,2-3", "0"]), "not as the first was");
        assert!(is_believed(false, &[1], ["0-3", "1", "1"]), "another arm");
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for label in ["cpus", "cpus:a", "cpus:3-1", "cpus:-1"] {
            assert!(parse(label).err().unwrap().contains("takes a list of CPUs"), "{label}");
        }
        assert!(parse("cpus:0=1").err().unwrap().contains("does not take `0=`"));
    }
}
