//! The part of the CPUs that `weigh` may use: under `taskset`, and in a control group with a quota.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support::{Home, Outcome, Turn, skip, wait_until};
use serde_json::Value;
use weigh_host::machine::hierarchies::{GroupPlace, Hierarchies};
use weigh_workload::start_cpu::allowed_cpus;

const LONG: Duration = Duration::from_secs(30);

/// A group with half a CPU, until it is dropped.
struct HalfCpu {
    group: PathBuf,
}

impl HalfCpu {
    fn new() -> Option<HalfCpu> {
        let place = Hierarchies::read("/".as_ref()).place_for("cpu");
        let made = place.and_then(|GroupPlace { parent, is_version_2 }| {
            let group = parent.join(format!("share-of-weigh-{}", std::process::id()));
            let quota = match is_version_2 {
                true => ("cpu.max", "50000 100000"),
                false => ("cpu.cfs_quota_us", "50000"),
            };
            let made =
                fs::create_dir(&group).and_then(|()| fs::write(group.join(quota.0), quota.1));
            made.map(|()| HalfCpu { group }).map_err(|error| error.to_string())
        });
        made.map_err(|why| skip("a quota", &why)).ok()
    }

    /// Runs `weigh` in it.
    fn run(&self, home: &Home, arguments: &str) -> Outcome {
        let weigh = home.weigh(arguments);
        let mut command = home.command("sh");
        command.args(["-c", r#"echo $$ > "$0/cgroup.procs" && exec "$@""#]).arg(&self.group);
        home.start(with_command_of(command, &weigh)).finish()
    }
}

impl Drop for HalfCpu {
    fn drop(&mut self) {
        let removed = wait_until(LONG, || fs::remove_dir(&self.group).is_ok());
        assert!(removed || std::thread::panicking(), "{} is left", self.group.display());
    }
}

fn with_command_of(mut command: Command, other: &Command) -> Command {
    command.arg(other.get_program()).args(other.get_args());
    command
}

fn finding<'a>(doctor: &'a Value, name: &str) -> &'a Value {
    let findings = doctor["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["name"] == name).unwrap()
}

#[test]
fn a_quota_is_in_every_report_and_all_copies_fit_into_it() {
    let Some(half) = HalfCpu::new() else { return };
    let _turn = Turn::share();
    let home = Home::new();
    let doctor = half.run(&home, "doctor --json").json();
    let quota = finding(&doctor, "CPU quota");
    assert_eq!(quota["severity"], "warning");
    assert!(quota["now"].as_str().unwrap().starts_with("0.5 CPUs for weigh"), "{quota:#}");
    let ran = half.run(&home, "run getppid --copies all --budget 3s");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.assert_says(&["CPU quota: 0.5 CPUs"]);
    let run = home.json();
    assert_eq!(run["machine"]["cpu_share"]["quota_cpus"], 0.5);
    let copies = |row: &Value| row["load"]["value"].as_u64();
    let rows = run["results"].as_array().unwrap();
    assert_eq!(rows.iter().filter_map(copies).max().unwrap_or(1), 1, "{run:#}");
    let shown = home.succeed("show -v");
    shown.assert_says(&["quota 0.5 CPUs"]);
}

#[test]
fn affinity_is_in_every_report_and_all_copies_fit_into_it() {
    let allowed = allowed_cpus().unwrap();
    let (Some(last), true) = (allowed.last(), allowed.len() > 1) else {
        return skip("affinity", "needs two CPUs");
    };
    let _turn = Turn::share();
    let home = Home::new();
    let bound = |arguments: &str| {
        let mut command = home.command("taskset");
        command.args(["-c", &last.to_string()]);
        home.start(with_command_of(command, &home.weigh(arguments))).finish()
    };
    let doctor = bound("doctor --json").json();
    let affinity = finding(&doctor, "CPU affinity");
    assert_eq!(affinity["severity"], "note");
    assert!(affinity["now"].as_str().unwrap().starts_with(&format!("CPU {last} only, 1 of ")));
    let ran = bound("run getppid --copies all --budget 3s");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let run = home.json();
    assert_eq!(run["machine"]["cpu_share"]["allowed"], last.to_string());
    home.succeed("show -v").assert_says(&["1 of ", "CPUs"]);
}
