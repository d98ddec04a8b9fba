//! Costs that hide from whoever times the main thread, or a median of slices: in threads, children, signal
//! handlers, the kernel's own threads, or once in many slices. `weigh compare` may be undecided about them,
//! or call them slower. It must never deny them (docs/hidden-costs.md).

use std::path::Path;

use crate::support::busy::{Busy, load_average};
use crate::support::hidden::{COSTS, Cost, Said, control, cost, weigh};
use crate::support::processes::signal;
use crate::support::{Home, Turn, number};
use rustix::process::Signal;

/// Tries one cost of each kind: in the slices of the partner, in a thread, in a child, in few slices, late.
#[test]
fn a_hidden_cost_is_never_denied() {
    let _turn = Turn::share();
    let home = Home::new();
    for name in ["deferred-380", "thread", "child", "every-5000", "later"] {
        // The cost `later` begins late in a process, so weigh needs longer to find it.
        let said = weigh(&home, cost(name), if name == "later" { "30s" } else { "15s" });
        assert!(said.lies(cost(name)).is_empty(), "{name}: {:#}", said.row);
        // The first interleaved pair shows the additional task.
        if ["deferred-380", "thread", "child"].contains(&name) {
            assert_eq!(said.row["scheme"], "sequential", "{name}: {:#}", said.row);
            let warnings = home.json()["warnings"].to_string();
            assert!(warnings.contains(" tasks (threads and children)"), "{name}: {warnings}");
        }
    }
}

/// Within a margin that every machine keeps, equal arms are equivalent; and then a pair was taken whose
/// processes had run for a second.
#[test]
fn equivalent_takes_a_pair_of_old_processes() {
    let _turn = Turn::share();
    let home = Home::new();
    let compare = ["compare", "none", "-w", "getppid", "--margin", "45%", "--no-detail"];
    let outcome = home.run(&[&compare[..], &["--budget", "60s", "--json", "-"]].concat());
    assert_eq!(outcome.json()["results"][0]["verdict"], "equivalent", "{outcome:#?}");
    let old = "SELECT CAST(count(*) AS TEXT) FROM sample WHERE role = 'aged'";
    assert_eq!(home.query_text(old), "2");
}

/// All of them, or those that `WEIGH_COSTS` names, with blanks between.
fn chosen() -> Vec<&'static Cost> {
    match std::env::var("WEIGH_COSTS") {
        Ok(names) => names.split_whitespace().map(cost).collect(),
        Err(_) => COSTS.iter().collect(),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// `WEIGH_TIMES` experiments of each (6), beside so many hogs as `LOAD` says (0).
#[test]
#[ignore = "a table of many experiments: an hour"]
fn no_hidden_cost_is_denied() {
    let _turn = Turn::take();
    let home = Home::new();
    let times = number("WEIGH_TIMES", 6);
    let _busy = Busy::start(&home, number("LOAD", 0));
    let verdicts = "faster | equivalent | bound too low | gate passed | slower | open";
    println!("| cost | {verdicts} | effects, % | pairs | load |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut lies = Vec::new();
    for cost in chosen() {
        let said: Vec<Said> = (0..times).map(|_| weigh(&home, cost, "20s")).collect();
        print_row(cost, &said);
        lies.extend(said.iter().map(|said| (cost.name, said.lies(cost))));
    }
    lies.retain(|(_, lies)| !lies.is_empty());
    assert!(lies.is_empty(), "{} of {}: {lies:?}", lies.len(), times * chosen().len());
}

fn print_row(cost: &Cost, said: &[Said]) {
    let count = |holds: &dyn Fn(&Said) -> bool| said.iter().filter(|said| holds(said)).count();
    let of_verdict = |verdict: &str| count(&|said| said.verdict() == verdict);
    let mut effects: Vec<f64> =
        said.iter().map(|said| said.row["effect_pct"].as_f64().unwrap()).collect();
    effects.sort_by(f64::total_cmp);
    println!(
        "| `{}` | {} | {} | {} | {} | {} | {} | {:+.1} … {:+.1} | {} | {} |",
        cost.name,
        of_verdict("faster"),
        of_verdict("equivalent"),
        count(&|said| said.bounds_too_low(cost)),
        count(&|said| said.has_passed_the_gate),
        of_verdict("slower"),
        of_verdict("inconclusive"),
        effects[0],
        effects[effects.len() - 1],
        median(said.iter().map(|said| said.pairs() as f64).collect()),
        load_average(),
    );
}

/// The rate over all time and the CPU time of an operation on the last CPU, without `weigh compare`: pairs of
/// long samples, one after the other. For root, as that CPU is taken from all others.
#[test]
#[ignore = "a table of true costs: five minutes"]
fn print_true_costs() {
    let _turn = Turn::take();
    let home = Home::new();
    let program = home.workloads();
    println!("| cost | what | workload | rate, % | CPU time of the process, % | load |");
    println!("|---|---|---|---|---|---|");
    let mut cheap = Vec::new();
    for cost in chosen() {
        let pair = |number: usize| {
            let libraries = [cost.library(), control()];
            let order = if number.is_multiple_of(2) { [0, 1] } else { [1, 0] };
            let mut found = [(0.0, 0.0); 2];
            for arm in order {
                found[arm] = sample(&home, &program, &libraries[arm], cost);
            }
            ((found[0].0 / found[1].0).ln(), (found[0].1 / found[1].1).ln())
        };
        let pairs: Vec<(f64, f64)> = (0..number("WEIGH_TIMES", 12)).map(pair).collect();
        let percent = |logs: Vec<f64>| 100.0 * median(logs).exp_m1();
        let rate = percent(pairs.iter().map(|pair| pair.0).collect());
        let cpu_time = percent(pairs.iter().map(|pair| pair.1).collect());
        let Cost { name, what, workload, .. } = cost;
        println!(
            "| `{name}` | {what} | {workload} | {rate:+.1} | {cpu_time:+.1} | {} |",
            load_average()
        );
        if rate > -cost.at_least_pct {
            cheap.push((name, rate));
        }
    }
    assert!(cheap.is_empty(), "these cost less than the table says, in %: {cheap:?}");
}

/// For a session of its own, which has the CPU before all others: sched(7), "The autogroup feature".
const ALONE: &str = "echo -19 >/proc/self/autogroup; exec nice -n -15 taskset -c \"$@\"";

/// Rate and CPU time per operation.
fn sample(home: &Home, program: &Path, library: &Path, cost: &Cost) -> (f64, f64) {
    let last = std::thread::available_parallelism().map_or(0, |cpus| cpus.get() - 1).to_string();
    let mut command = home.command("setsid");
    command.args(["--wait", "sh", "-c", ALONE, "sh", &last, "env"]);
    command.arg(format!("LD_PRELOAD={}", library.display())).arg(program);
    command.args(["run", cost.workload, "--target-ms", &cost.truth_ms.to_string()]);
    let sample = home.start(command).finish().json();
    for child_that_lives_on in home.processes() {
        signal(child_that_lives_on, Signal::KILL);
    }
    let of = |field: &str| sample[field].as_f64().unwrap();
    (of("rate"), (of("user_ns") + of("system_ns")) / of("operations"))
}
