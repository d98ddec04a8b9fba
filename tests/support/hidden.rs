//! Treatments whose cost hides: libraries made of `tests/hidden/costs.c`, each with a cost by construction.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Home;

/// A gate lets pass what costs at most this.
pub const GATE_PCT: f64 = 3.0;

/// A library, and what it costs against the control.
pub struct Cost {
    pub name: &'static str,
    /// In words, for tables.
    pub what: &'static str,
    defines: &'static [&'static str],
    pub workload: &'static str,
    /// Further options of `weigh compare`.
    pub options: &'static [&'static str],
    /// How long the samples are by which its true cost is measured.
    pub truth_ms: u32,
    /// Least loss of the rate over all time on one CPU, in per cent. It is well below the loss that
    /// `print_true_costs` measures, and above the limit of the gate.
    pub at_least_pct: f64,
}

const fn of_getppid(
    name: &'static str,
    what: &'static str,
    defines: &'static [&'static str],
    at_least_pct: f64,
) -> Cost {
    Cost { name, what, defines, workload: "getppid", options: &[], truth_ms: 200, at_least_pct }
}

/// The first nine are those of the review that found the fault (docs/hidden-costs.md).
pub const COSTS: [Cost; 19] = [
    of_getppid(
        "deferred-200",
        "each 200 µs, 15 µs put off by 200 µs to a thread",
        &["KIND=deferred", "US=15", "EVERY=200", "DELAY=200"],
        8.0,
    ),
    of_getppid(
        "deferred-260",
        "the same, by 260 µs",
        &["KIND=deferred", "US=15", "EVERY=200", "DELAY=260"],
        8.0,
    ),
    of_getppid(
        "deferred-330",
        "the same, by 330 µs",
        &["KIND=deferred", "US=15", "EVERY=200", "DELAY=330"],
        6.0,
    ),
    of_getppid(
        "deferred-380",
        "the same, by 380 µs",
        &["KIND=deferred", "US=15", "EVERY=200", "DELAY=380"],
        5.0,
    ),
    of_getppid(
        "thread",
        "a thread with a tenth of a CPU",
        &["KIND=thread", "US=200", "EVERY=2000"],
        3.5,
    ),
    of_getppid("alarm", "SIGALRM each 500 µs, 20 µs", &["KIND=alarm", "US=20", "EVERY=500"], 3.5),
    of_getppid(
        "every-5000",
        "200 µs in each 5000th call",
        &["KIND=rare", "US=200", "EVERY=5000"],
        3.1,
    ),
    of_getppid(
        "pollute",
        "4 MiB written in each 1000th call",
        &["KIND=pollute", "US=4096", "EVERY=1000"],
        10.0,
    ),
    Cost {
        name: "leak",
        what: "6 records more in each 100th call, all walked",
        defines: &["KIND=leak", "US=6", "EVERY=100"],
        workload: "getppid",
        options: &[],
        // It costs the more the longer a process lives: here as long as those of `weigh compare`.
        truth_ms: 20,
        at_least_pct: 4.0,
    },
    of_getppid("every-97", "2 µs in each 97th call", &["KIND=rare", "US=2", "EVERY=97"], 3.5),
    of_getppid(
        "child",
        "a child that lives on, with a tenth of a CPU",
        &["KIND=child", "US=200", "EVERY=2000"],
        3.1,
    ),
    of_getppid(
        "profile",
        "SIGPROF each 4 ms of CPU time, 400 µs",
        &["KIND=profile", "US=400", "EVERY=4000"],
        4.0,
    ),
    of_getppid(
        "expiry",
        "a timer each 2 ms, 150 µs in a new thread",
        &["KIND=expiry", "US=150", "EVERY=2000"],
        3.5,
    ),
    of_getppid(
        "poller",
        "io_uring: a kernel thread polls after each 20 ms",
        &["KIND=poller", "US=1000", "EVERY=20000"],
        8.0,
    ),
    of_getppid(
        "worker",
        "a kernel worker carries 400 bytes each 250 µs",
        &["KIND=worker", "US=400", "EVERY=250"],
        4.0,
    ),
    Cost {
        name: "after-1s",
        what: "a thread with a tenth of a CPU, after 1 s",
        defines: &["KIND=thread", "US=200", "EVERY=2000", "DELAY=1000000"],
        workload: "getppid",
        // A sample of the usual 10 ms has ended by then.
        options: &["--sample", "2500ms"],
        truth_ms: 2500,
        at_least_pct: 3.5,
    },
    Cost {
        name: "later",
        what: "1 µs in each 16th call, after 1 s",
        defines: &["KIND=later", "US=1", "DELAY=1000000"],
        workload: "getppid",
        options: &[],
        truth_ms: 2500,
        at_least_pct: 5.0,
    },
    Cost {
        name: "executed",
        what: "100 µs before main() of each program",
        defines: &["KIND=executed", "ON_LOAD", "US=100"],
        workload: "exec",
        options: &[],
        truth_ms: 200,
        at_least_pct: 8.0,
    },
    Cost {
        name: "forked",
        what: "30 µs in each process that is forked",
        defines: &["KIND=forked", "ON_LOAD", "US=30"],
        workload: "fork",
        options: &[],
        truth_ms: 200,
        at_least_pct: 5.0,
    },
];

pub fn cost(name: &str) -> &'static Cost {
    COSTS.iter().find(|cost| cost.name == name).unwrap()
}

impl Cost {
    pub fn library(&self) -> PathBuf {
        build(self.name, self.defines)
    }
}

/// The wrapper without any work.
pub fn control() -> PathBuf {
    build("control", &["KIND=control"])
}

/// The wrapper whose calls wait for 100 µs each from the 2,000th on, which is no hidden cost.
pub fn queue() -> PathBuf {
    build("queue", &["KIND=queue", "US=100", "EVERY=2000"])
}

/// Under a name of this process's own until it is whole, as several tests may build one.
fn build(name: &str, defines: &[&str]) -> PathBuf {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hidden-{name}.so"));
    let unfinished = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let compiled = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", "-o"])
        .arg(unfinished.path())
        .args(defines.iter().map(|define| format!("-D{define}")))
        .arg(concat!(env!("WORKSPACE"), "/tests/hidden/costs.c"))
        .status()
        .unwrap();
    assert!(compiled.success(), "{name}");
    unfinished.persist(&library).unwrap();
    library
}

/// Statements of an experiment about a cost.
pub struct Said {
    pub row: Value,
    pub has_passed_the_gate: bool,
}

/// One experiment with a gate, against the control.
pub fn weigh(home: &Home, cost: &Cost, budget: &str) -> Said {
    let [library, control] = [cost.library(), control()].map(|path| path.display().to_string());
    let gate = format!("{GATE_PCT}%");
    let (treated, base) = (format!("preload:{library}"), format!("preload:{control}"));
    let mut arguments = vec!["compare", &treated, "--base", &base, "-w", cost.workload];
    arguments.extend(["--budget", budget, "--fail-above", &gate, "--no-detail"]);
    arguments.extend(cost.options);
    let outcome = home.run(&arguments);
    let json = home.json();
    assert_eq!(json["gate"]["passed"], outcome.code == Some(0), "{outcome:#?}");
    assert_eq!(json["results"].as_array().map(Vec::len), Some(1), "{json:#}");
    Said { row: json["results"][0].clone(), has_passed_the_gate: outcome.code == Some(0) }
}

impl Said {
    pub fn verdict(&self) -> &str {
        self.row["verdict"].as_str().unwrap()
    }

    pub fn pairs(&self) -> u64 {
        self.row["pairs"].as_u64().unwrap()
    }

    /// Returns the verdict on all time, if the report has one.
    fn all_time(&self) -> Option<&str> {
        let mut readings = self.row["readings"].as_array()?.iter();
        readings.find(|reading| reading["metric"] == "all_time")?["verdict"].as_str()
    }

    pub fn bounds_too_low(&self, cost: &Cost) -> bool {
        self.row["cost_at_most_pct"].as_f64().is_some_and(|bound| bound < cost.at_least_pct)
    }

    /// Lists the statements that are false.
    pub fn lies(&self, cost: &Cost) -> Vec<&'static str> {
        let is_denied = |verdict: &str| ["faster", "equivalent"].contains(&verdict);
        let lies = [
            (is_denied(self.verdict()), "the verdict"),
            (self.all_time().is_some_and(is_denied), "the claim on all time"),
            (self.bounds_too_low(cost), "the bound on the cost"),
            (self.has_passed_the_gate, "the gate"),
        ];
        lies.into_iter().filter(|(is_false, _)| *is_false).map(|(_, what)| what).collect()
    }
}
