//! `cgroup`: a private control group for the processes of the treated arm, with limits of the user's choice.

use std::path::Path;

use rustix::fs::{Access, access};

use crate::control_group::{PlannedGroup, remove};
use crate::{
    ApplyContext, Kind, Launch, Parameter, Placebo, Probe, Treatment, TreatmentError, TreatmentKind,
};
use weigh_host::machine::hierarchies::Hierarchies;
use weigh_host::undo::guard::Guard;
use weigh_host::undo::scratch;
use weigh_model::cpu_share::cpus_of;
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::control_group::ControlGroup;

pub static KIND: TreatmentKind = TreatmentKind {
    placebo,
    ..TreatmentKind::of(
        Kind {
            name: "cgroup",
            summary: "a private control group with limits on CPU time, memory, processes or disks",
            parameters: &[
                Parameter {
                    form: "FILE=VALUE",
                    help: "a setting of version 2: cpu.max=\"5000 10000\", memory.max=100M, pids.max=50",
                },
                Parameter {
                    form: "CONTROLLER",
                    help: "a group without a limit: cpu, cpuset, io, memory or pids; the default baseline \
                           for limits of that controller",
                },
            ],
            probe,
        },
        build,
    )
};

/// Controllers that limit or share something.
const CONTROLLERS: [&str; 5] = ["cpu", "cpuset", "io", "memory", "pids"];
const CPUS: &str = "cpuset.cpus";

fn probe() -> Probe {
    let hierarchies = Hierarchies::read(Path::new("/"));
    let (places, problems): (Vec<_>, Vec<_>) =
        CONTROLLERS.iter().map(|name| hierarchies.place_for(name)).partition(Result::is_ok);
    if places.iter().flatten().any(|place| access(&place.parent, Access::WRITE_OK).is_ok()) {
        return Probe::Available;
    }
    match problems.into_iter().find_map(Result::err) {
        _ if hierarchies.is_empty() => Probe::Broken("no control groups are mounted here".into()),
        Some(problem) if places.is_empty() => Probe::Broken(problem),
        _ => Probe::NeedsRoot("only root can create control groups".into()),
    }
}

/// A group of the same controllers without limits: a process is also moved there, waits for the move, and
/// is accounted in one more group.
fn placebo(parameters: &Parameters) -> Placebo {
    Placebo::Of(Parameters::of_words(parameters.iter().map(|(key, _)| controller_of(key))))
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let pair = |(key, value): (&str, Option<&str>)| {
        let (controller, rest) = key.split_once('.').unwrap_or((key, ""));
        if value.is_none() && CONTROLLERS.contains(&key) {
            return Ok((key.to_owned(), None));
        }
        let is_file = rest.bytes().all(|byte| byte.is_ascii_lowercase() || b"._".contains(&byte));
        if !CONTROLLERS.contains(&controller) || rest.is_empty() || !is_file {
            return Err(format!(
                "`{key}` is not a setting of a control group: its name must begin with {}",
                CONTROLLERS.join("., ") + "."
            ));
        }
        let value = value.unwrap_or_default().trim();
        if value.is_empty() || value.contains(char::is_control) {
            return Err(format!("{key}= takes one line of text"));
        }
        if key == "cpu.max" && !is_quota(value) {
            return Err(format!(
                "cpu.max={value}: takes microseconds per period, each at least 1000, such as \
                 cpu.max=\"50000 100000\" for half a CPU"
            ));
        }
        Ok((key.to_owned(), Some(value.to_owned())))
    };
    let settings: Vec<_> = parameters.iter().map(pair).collect::<Result<_, _>>()?;
    match settings.is_empty() {
        true => Err("`cgroup` needs a limit: cgroup:memory.max=100M".into()),
        false => Ok(Box::new(Grouped { settings, ..Grouped::default() })),
    }
}

/// Returns true if the kernel accepts this as `cpu.max`: a time or `max`, and perhaps a period.
fn is_quota(value: &str) -> bool {
    let is_time = |word: &str| word.parse::<u64>().is_ok_and(|time| time >= 1000);
    match *value.split_whitespace().collect::<Vec<_>>() {
        [quota] => quota == "max" || is_time(quota),
        [quota, period] => (quota == "max" || is_time(quota)) && is_time(period),
        _ => false,
    }
}

/// The controller whose file this is.
fn controller_of(key: &str) -> &str {
    key.split_once('.').map_or(key, |(controller, _)| controller)
}

#[derive(Default)]
struct Grouped {
    /// Files with what is written to them; a controller alone has no limit.
    settings: Vec<(String, Option<String>)>,
    /// Nobody else has a group of this name.
    name: String,
    planned: PlannedGroup,
    /// Content of each of its files since the group was made.
    in_force: Vec<String>,
}

impl Grouped {
    /// In how many hierarchies a process is in the group, by its `/proc/PID/cgroup`; of version 2 alone where
    /// it has ended.
    fn memberships(&self, seen: &str, has_ended: bool) -> usize {
        let is_ours = |line: &&str| {
            let is_told = !has_ended || line.starts_with("0::");
            is_told && line.rsplit('/').next() == Some(&self.name)
        };
        seen.lines().filter(is_ours).count()
    }

    /// The group of this name, as it is to be made.
    fn plan(&self, name: &str) -> Result<PlannedGroup, String> {
        let hierarchies = Hierarchies::read(Path::new("/"));
        let settings = self.settings.iter().map(|(key, value)| (&**key, value.as_deref()));
        PlannedGroup::new(&hierarchies, name, settings)
    }

    fn prove_process(&self, launch: &Launch) -> Result<(), TreatmentError> {
        let directories = &self.planned.directories;
        let of_version_2 = directories.iter().filter(|(_, is_version_2)| *is_version_2).count();
        let wanted = |count: usize| if launch.is_treated { count } else { 0 };
        let at_end = launch.launched.seen(ControlGroup::SEEN_AT_END)?;
        let at_start = launch.seen(ControlGroup::SEEN)?.into_iter();
        let of_living =
            at_start.map(|seen| self.memberships(seen, false) == wanted(directories.len()));
        let of_ended = self.memberships(at_end, true) == wanted(of_version_2);
        if of_living.chain([of_ended]).all(|is_so| is_so) {
            return Ok(());
        }
        let should = if launch.is_treated { "should" } else { "should not" };
        Err(TreatmentError::NotInForce(format!(
            "the {} process {should} have been in the control group {}: something moved it",
            launch.whose(),
            self.name
        )))
    }

    /// The CPUs that it leaves its processes; empty where that is no part of it.
    fn cpus(&self) -> Vec<usize> {
        let is_asked = self.settings.iter().any(|(key, _)| key == CPUS);
        let mut files = self.planned.files.iter().zip(&self.in_force).rev();
        let found = files.find(|((file, _), _)| is_asked && file.ends_with(CPUS));
        found.and_then(|(_, now)| cpus_of(now)).unwrap_or_default()
    }

    fn prove_settings(&self) -> Result<(), TreatmentError> {
        let now = self.planned.read().map_err(TreatmentError::NotInForce)?;
        let both = self.in_force.iter().zip(&now);
        for ((was, now), (file, _)) in both.zip(&self.planned.files) {
            if was != now {
                return Err(TreatmentError::NotInForce(format!(
                    "{} was changed during the measurement: it should be {was}, but is {now}",
                    file.display()
                )));
            }
        }
        Ok(())
    }
}

impl Treatment for Grouped {
    fn check_inputs(&mut self) -> Result<(), String> {
        self.plan("weigh").map(drop)
    }

    fn prepare(&mut self, _: &ApplyContext, _: &mut Guard) -> Result<Vec<String>, TreatmentError> {
        self.name = scratch::name(std::process::id())
            .map_err(|error| TreatmentError::Unavailable(error.to_string()))?;
        self.planned = self.plan(&self.name).map_err(TreatmentError::Unavailable)?;
        Ok(Vec::new())
    }

    fn apply(&mut self, _: &ApplyContext, guard: &mut Guard) -> Result<(), TreatmentError> {
        self.in_force =
            self.planned.make(&self.name, guard).map_err(TreatmentError::Unavailable)?;
        Ok(())
    }

    fn setup(&self, is_treated: bool) -> Setup {
        let directories = self.planned.directories.iter().filter(|_| is_treated);
        let directories = directories.map(|(directory, _)| directory.clone()).collect();
        let cpus = if is_treated { self.cpus() } else { Vec::new() };
        Setup::default().with(ControlGroup { directories, cpus })
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        self.prove_process(launch)?;
        self.prove_settings()?;
        Ok(Evidence::default())
    }

    fn facts(&self) -> Vec<String> {
        let asked = self.settings.iter().map(|(key, value)| match value {
            Some(value) => format!("{key} = {value}"),
            None => format!("the controller {key} without a limit"),
        });
        let written = self.planned.files.iter().zip(&self.in_force).map(|((file, _), now)| {
            format!("{} is {now}", file.file_name().unwrap_or_default().to_string_lossy())
        });
        let written = match written.collect::<Vec<_>>().join(", ") {
            nothing if nothing.is_empty() => nothing,
            files => format!(" ({files})"),
        };
        vec![format!(
            "The processes of this arm are in a control group of their own with {}{written}.",
            asked.collect::<Vec<_>>().join(", ")
        )]
    }

    fn restore(&mut self, guard: &mut Guard) -> Result<(), TreatmentError> {
        remove(&self.name, guard).map_err(TreatmentError::Unavailable)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::parse;
    use weigh_workload::launcher::Launched;

    #[test]
    fn a_process_outside_of_the_group_is_no_evidence() {
        let is_believed = |is_treated, at_start: &str, at_end: &str| {
            let directories =
                vec![(PathBuf::from("/a/own"), true), (PathBuf::from("/b/own"), false)];
            let planned = PlannedGroup { directories, files: Vec::new() };
            let mut arm = Grouped { name: "own".into(), planned, ..Grouped::default() };
            let names = [ControlGroup::SEEN, ControlGroup::SEEN_AT_END];
            let seen = names.into_iter().zip([at_start, at_end]);
            let seen = seen.map(|(name, seen)| (name.into(), seen.into())).collect();
            let launched = Launched { seen, ..Launched::default() };
            let setup = &Setup::default();
            arm.verify_sample(&Launch::of_worker(is_treated, setup, &launched)).is_ok()
        };
        let (inside, ended) = ("4:cpu:/x/own\n0::/own\n", "4:cpu:/\n0::/own\n");
        assert!(is_believed(true, inside, ended));
        assert!(!is_believed(true, "4:cpu:/x\n0::/own\n", ended));
        assert!(!is_believed(true, inside, "4:cpu:/\n0::/\n"), "moved while it ran");
        assert!(!is_believed(true, "4:cpu:/x/owner\n0::/own\n", ended));
        assert!(is_believed(false, "4:cpu:/\n0::/other\n", "4:cpu:/\n0::/other\n"));
        assert!(!is_believed(false, inside, ended));
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        let refused = |label: &str| parse(label).err().unwrap();
        assert!(refused("cgroup").contains("cgroup:memory.max=100M"));
        for label in
            ["cgroup:cgroup.procs=1", "cgroup:memory=1", "cgroup:cpu.=1", "cgroup:cpu.a/b=1"]
        {
            assert!(refused(label).contains("not a setting of a control group"), "{label}");
        }
        assert!(refused("cgroup:memory.max").contains("memory.max= takes one line of text"));
        for limit in ["50", "half", "max 50", "50000 100000 1", "-1"] {
            let label = format!("cgroup:cpu.max=\"{limit}\"");
            assert!(refused(&label).contains("cpu.max=\"50000 100000\" for half a CPU"), "{label}");
        }
        assert!(parse("cgroup:cpu.max=\"max 100000\"").is_ok(), "the kernel's default");
        assert!(parse("cgroup:cpu.max=5000").is_ok(), "of the period that the kernel has");
        assert!(parse("cgroup:cpu,memory").is_ok(), "without limits");
        assert!(parse("cgroup:cpu.max=\"50000 100000\",memory.max=100M").is_ok());
    }
}
