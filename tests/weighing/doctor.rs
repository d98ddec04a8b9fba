//! `weigh doctor`, on made-up files: virtual machines have no governor to change.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::audit::Audit;
use crate::support::{Home, Turn, wait_until};
use linux_audit::netlink::Client;
use linux_audit::status::AuditSetting;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

/// A machine whose governor follows the load and whose boost is on.
struct Machine {
    home: Home,
    governor: PathBuf,
    boost: PathBuf,
    root: String,
}

impl Machine {
    fn new() -> Machine {
        let home = Home::new();
        let cpufreq = home.path("root/sys/devices/system/cpu/cpufreq");
        fs::create_dir_all(cpufreq.join("policy0")).unwrap();
        let governor = cpufreq.join("policy0/scaling_governor");
        fs::write(&governor, "powersave\n").unwrap();
        fs::write(cpufreq.join("policy0/scaling_available_governors"), "performance powersave\n")
            .unwrap();
        let boost = cpufreq.join("boost");
        fs::write(&boost, "1\n").unwrap();
        let root = home.path("root").display().to_string();
        Machine { home, governor, boost, root }
    }

    fn settings(&self) -> (String, String) {
        let word = |path| fs::read_to_string(path).unwrap().trim().to_owned();
        (word(&self.governor), word(&self.boost))
    }

    fn is_as_found(&self) -> bool {
        self.settings() == ("powersave".into(), "1".into())
    }

    fn is_fixed(&self) -> bool {
        self.settings() == ("performance".into(), "0".into())
    }

    /// Starts a command that outlasts the test, and waits until the settings are changed.
    fn start_fixed(&self) -> crate::support::Running {
        let fix = ["doctor", "--root", &self.root, "--fix", "--", "sleep", "600"];
        let mut running = self.home.start(self.home.weigh(&fix));
        assert!(wait_until(LIMIT, || self.is_fixed() || running.has_ended()));
        assert!(self.is_fixed(), "{}", running.said());
        // Weigh, its guard, and the command, which comes last.
        assert!(wait_until(LIMIT, || self.home.processes().len() >= 3), "{}", running.said());
        running
    }
}

#[test]
fn it_says_what_disturbs_and_how_to_mend_it() {
    let machine = Machine::new();
    let doctor = ["doctor", "--root", &machine.root];
    let outcome = machine.home.run(&doctor);
    assert_eq!(outcome.code, Some(1), "{outcome:#?}");
    outcome.assert_says(&["CPU governor: powersave", "cpupower frequency-set -g performance"]);
    let json = machine.home.run(&[&doctor[..], &["--json"]].concat()).json();
    assert_eq!(json["schema"], "weighbridge/doctor/1");
    assert_eq!(json["findings"][0]["name"], "CPU governor");
    assert_eq!(json["findings"][0]["severity"], "warning");
    assert!(machine.is_as_found());
}

#[test]
fn this_machine_is_looked_at_without_being_changed() {
    let home = Home::new();
    let outcome = home.run("doctor --json");
    let json = outcome.json();
    let findings = json["findings"].as_array().unwrap();
    let disturbs = findings.iter().any(|finding| finding["severity"] == "warning");
    assert_eq!(outcome.code, Some(i32::from(disturbs)), "{outcome:#?}");
    let names: Vec<&str> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["name"].as_str().unwrap())
        .collect();
    for name in ["Load", "Memory layout", "Auditing", "CPU counters", "Free space"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

/// The audit status too, which root can see: without it every report said that it is not visible.
#[test]
fn an_experiment_keeps_what_the_doctor_finds() {
    // Others switch auditing on and off.
    let _turn = Turn::with("audit");
    let home = Home::new();
    let noted = |json: Value| -> Vec<String> {
        let findings = json["findings"].as_array().unwrap().clone();
        let notes = findings.iter().filter(|finding| {
            finding["severity"] == "note"
                || finding["name"] == "Auditing" && finding["severity"] == "warning"
        });
        // A clock that is being corrected may be right a moment later.
        let names = notes.map(|note| note["name"].as_str().unwrap().to_owned());
        names.filter(|name| name != "Clock corrections").collect()
    };
    let doctor = home.run("doctor --json").json();
    let html = home.path("report.html");
    let compare =
        ["compare", "none", "-w", "getppid", "--pairs", "8", "--no-detail", "--json", "-"];
    let outcome = home.run(&[&compare[..], &["--html", html.to_str().unwrap()]].concat());
    let kept = outcome.json()["machine"]["worth_knowing"].clone();
    let page = fs::read_to_string(html).unwrap();
    let notes = noted(doctor);
    for name in &notes {
        assert!(kept[name].is_string(), "{name} is not in {kept:#}");
        assert!(page.contains(&format!("worth knowing.{name}")), "{name} is not in the HTML");
    }
    assert_eq!(kept.get("Auditing").is_some(), notes.contains(&"Auditing".into()), "{kept:#}");
}

/// The contexts of processes stay when auditing is off again, and each of their system calls pays for them.
#[test]
fn auditing_that_was_on_since_the_boot_is_not_called_good() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let found = || -> Value {
        let json = home.run("doctor --json").json();
        let findings = json["findings"].as_array().unwrap().clone();
        findings.into_iter().find(|finding| finding["name"] == "Auditing").unwrap()
    };
    let set = |enabled| {
        Client::open().unwrap().set(AuditSetting::Enabled(enabled)).unwrap();
    };
    set(1);
    assert_eq!(
        (&found()["severity"], &found()["now"]),
        (&"warning".into(), &"on; no audit daemon runs".into())
    );
    set(0);
    let now = found();
    assert_eq!(now["severity"], "warning", "{now:#}");
    assert!(now["now"].as_str().unwrap().contains("was on since the boot"), "{now:#}");
    let compare =
        ["compare", "none", "-w", "getppid", "--pairs", "8", "--no-detail", "--json", "-"];
    let warned = |json: Value, said: &str| {
        let warnings = json["warnings"].as_array().unwrap().clone();
        assert!(warnings.iter().any(|one| one.as_str().unwrap().contains(said)), "{warnings:#?}");
    };
    warned(home.run(&compare).json(), "was on since the boot");
    // Somebody switches it on while a workload is measured.
    let experiment = home.weigh("run getppid --samples 40 --copies 1 --json -");
    let before = home.samples();
    let mut running = home.start(experiment);
    home.wait_for_samples(before + 1, &mut running);
    set(1);
    let outcome = running.finish();
    set(0);
    warned(outcome.json(), "Auditing was switched on by a different program");
    audit.assert_restored();
}

#[test]
fn a_fix_lasts_as_long_as_the_command_and_its_status_is_kept() {
    let machine = Machine::new();
    let script = format!("cat {} {}; exit 7", machine.governor.display(), machine.boost.display());
    let outcome =
        machine.home.run(&["doctor", "--root", &machine.root, "--fix", "--", "sh", "-c", &script]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(7), "performance0"), "{outcome:#?}");
    assert!(machine.is_as_found());
    assert_eq!(machine.home.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn killed_it_puts_the_settings_back_and_ends_the_command() {
    let machine = Machine::new();
    let mut running = machine.start_fixed();
    running.kill();
    assert_eq!(running.finish().signal, Some(9));
    assert!(wait_until(LIMIT, || machine.is_as_found()), "{:?}", machine.settings());
    let nobody = wait_until(LIMIT, || machine.home.processes().is_empty());
    assert!(nobody, "{:#?}", machine.home.describe_processes());
    assert!(wait_until(LIMIT, || machine.home.leftovers().is_empty()));
}

/// Weigh, its guard and the command.
fn kill_everything(machine: &Machine, running: crate::support::Running) {
    // Stopped first, so that the guard does not see the death of the other; and weigh killed last: the kernel
    // continues the stopped processes of a group whose parent dies (setpgid(2), "orphaned process group").
    let (weigh, others): (Vec<i32>, Vec<i32>) =
        machine.home.processes().into_iter().partition(|pid| *pid == running.pid());
    let processes = [others, weigh].concat();
    for signal in [Signal::STOP, Signal::KILL] {
        for pid in &processes {
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), signal);
        }
    }
    running.finish();
    // The guard has the claim on the settings until it is gone.
    assert!(wait_until(LIMIT, || machine.home.processes().is_empty()));
}

#[test]
fn with_the_guard_killed_as_well_restore_puts_them_back() {
    let machine = Machine::new();
    let running = machine.start_fixed();
    kill_everything(&machine, running);
    assert!(machine.is_fixed(), "nobody was left to restore anything");
    let other = machine.home.run("restore");
    other.assert_error(&["is not a setting that weigh changes"]);
    assert!(machine.is_fixed(), "a setting below another root was changed");
    let restore = ["restore", "--root", &machine.root];
    machine.home.succeed(&restore).assert_says(&["Put back", ".journal"]);
    assert!(machine.is_as_found());
    assert_eq!(machine.home.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn the_next_fix_puts_back_what_a_dead_one_left() {
    let machine = Machine::new();
    kill_everything(&machine, machine.start_fixed());
    let fix = ["doctor", "--root", &machine.root, "--fix", "--", "cat"];
    let governor = machine.governor.display().to_string();
    let outcome = machine.home.succeed(&[&fix[..], &[&governor]].concat());
    outcome.assert_says(&["Undid the changes of an earlier experiment", "was powersave"]);
    assert_eq!(outcome.stdout, "performance");
    assert!(machine.is_as_found());
    assert_eq!(machine.home.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn sigterm_ends_the_command_and_the_settings_go_back() {
    let machine = Machine::new();
    let running = machine.start_fixed();
    kill_process(Pid::from_raw(running.pid()).unwrap(), Signal::TERM).unwrap();
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(128 + 15), "{outcome:#?}");
    assert!(machine.is_as_found());
}

#[test]
fn two_at_a_time_are_refused_and_a_setting_that_cannot_be_changed_is_named() {
    let machine = Machine::new();
    let running = machine.start_fixed();
    fs::write(&machine.boost, "1\n").unwrap();
    let fix = ["doctor", "--root", &machine.root, "--fix", "--", "true"];
    machine.home.run(&fix).assert_error(&["another experiment on this host is using the settings"]);
    drop(running);
    let other = Machine::new();
    fs::remove_file(&other.boost).unwrap();
    let outcome =
        other.home.run(&["doctor", "--root", &other.root, "--fix", "--", "no-such-program"]);
    outcome.assert_error(&["cannot run no-such-program"]);
    assert_eq!(fs::read_to_string(&other.governor).unwrap().trim(), "powersave");
}
