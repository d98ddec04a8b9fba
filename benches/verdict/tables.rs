//! Each rule given each noise, and what came of it, as tables of text and of Markdown.

use std::cmp::Ordering;

use paired::Verdict;
use paired::estimate::median;

use crate::in_time::{InTime, TIME_SCALES_MS};
use crate::machine::{Machine, NOISES, Replay, SIMULATED_S, Simulated, Trace};
use crate::ours::{Outcome, weigh};
use crate::sequential::TOOLS;
use crate::table::Table;

/// The effects that are looked for, as changes of the rate.
const EFFECTS: [f64; 4] = [0.0, -0.003, -0.01, -0.03];

/// Time budget of one row, in seconds: 100 pairs of the simulated machine.
const ROW_BUDGET_S: f64 = 20.0;

/// A tenth of the wall time of UnixBench's two runs, 56 minutes.
pub const SUITE_BUDGET_S: f64 = 336.0;

/// How often each experiment is repeated.
#[derive(Clone, Copy, Debug)]
pub struct Repetitions {
    /// Per noise, rule and effect.
    pub per_cell: u64,
    /// Repetitions of the whole suite.
    pub suites: u64,
}

/// A noise by name, and how to get a machine that has it.
struct Source<'a> {
    name: String,
    sample_s: f64,
    /// Samples that there are; more are these again.
    available: usize,
    /// True if the samples are interleaved pairs, which only our own rule accepts.
    interleaved: bool,
    machine: Box<dyn Fn(u64) -> Box<dyn Machine + 'a> + 'a>,
}

/// The noises of `crates/paired/src/simulated.rs` under every rule.
pub fn simulated(repetitions: Repetitions) -> Table {
    let sources = NOISES.map(|(name, noise)| Source {
        name: name.into(),
        sample_s: SIMULATED_S,
        available: usize::MAX,
        interleaved: false,
        machine: Box::new(move |seed| Box::new(Simulated::new(noise, seed))),
    });
    table("Simulated noise", &sources, repetitions.per_cell)
}

/// Noise with a time scale, in sequence under every rule, and in turns under ours.
pub fn in_time(repetitions: Repetitions) -> Table {
    let sources: Vec<Source> = TIME_SCALES_MS
        .iter()
        .flat_map(|ms| [(*ms, false), (*ms, true)])
        .map(|(ms, interleaved)| Source {
            name: format!("lasts {ms} ms"),
            sample_s: InTime::new(ms, interleaved, 0).sample_s(),
            available: usize::MAX,
            interleaved,
            machine: Box::new(move |seed| Box::new(InTime::new(ms, interleaved, seed))),
        })
        .collect();
    table("Simulated noise with a time scale", &sources, repetitions.per_cell)
}

/// The traces of this machine under every rule.
pub fn recorded(traces: &[Trace], repetitions: Repetitions) -> Table {
    let sources: Vec<Source> = traces.iter().map(source).collect();
    table("Traces of this machine", &sources, repetitions.per_cell)
}

fn source(trace: &Trace) -> Source<'_> {
    // A prime step visits all starts, neighbouring repetitions far from each other.
    let start = |seed: u64| (seed * 7919) as usize;
    Source {
        name: trace.workload.clone(),
        sample_s: trace.sample_s,
        available: trace.rates.len(),
        interleaved: trace.interleaved,
        machine: Box::new(move |seed| Box::new(Replay::new(trace, start(seed)))),
    }
}

fn table(title: &str, sources: &[Source], repetitions: u64) -> Table {
    let mut rows = Vec::new();
    for source in sources {
        eprintln!("judging {}", source.name);
        for tool in TOOLS.iter().filter(|_| !source.interleaved) {
            let samples = tool.samples_per_pass(source.sample_s, source.available);
            let cells = EFFECTS.map(|effect| {
                let said = |seed| {
                    let mut machine = (source.machine)(seed);
                    let (said, seconds) = tool.compare(machine.as_mut(), samples, effect.ln_1p());
                    is_counted(said, effect).then_some(seconds)
                };
                cell(&(0..repetitions).map(said).collect::<Vec<_>>(), effect)
            });
            rows.push([vec![source.name.clone(), tool.name.into()], cells.to_vec()].concat());
        }
        let cells = EFFECTS.map(|effect| {
            let said = |seed| {
                let outcome = weigh(vec![(source.machine)(seed)], effect, seed, ROW_BUDGET_S)[0];
                counted_seconds(&outcome, effect)
            };
            cell(&(0..repetitions).map(said).collect::<Vec<_>>(), effect)
        });
        let ours = if source.interleaved { "weigh, in turns" } else { "weigh, in sequence" };
        rows.push([vec![source.name.clone(), ours.into()], cells.to_vec()].concat());
    }
    let head = ["noise", "rule", "false alarms", "finds −0.3 %", "finds −1 %", "finds −3 %"];
    Table { title: title.into(), head: head.map(String::from).to_vec(), rows }
}

/// Returns true if an answer counts: any difference where the effect is 0, else the answer
/// "slower".
fn is_counted(said: Option<Ordering>, effect: f64) -> bool {
    if effect == 0.0 { said.is_some() } else { said == Some(Ordering::Less) }
}

fn counted_seconds(outcome: &Outcome, effect: f64) -> Option<f64> {
    let is_counted =
        if effect == 0.0 { outcome.ever_differed } else { outcome.verdict == Verdict::Slower };
    is_counted.then_some(outcome.seconds)
}

/// The share that is counted, and for an effect the median of its seconds.
fn cell(seconds: &[Option<f64>], effect: f64) -> String {
    let counted: Vec<f64> = seconds.iter().copied().flatten().collect();
    let share = 100.0 * counted.len() as f64 / seconds.len() as f64;
    match median(&counted) {
        Some(typical) if effect != 0.0 => format!("{share:.0} % in {typical:.1} s"),
        _ => format!("{share:.1} %"),
    }
}

/// The whole suite as one experiment, judged together with Holm's method, every workload slower by each of
/// the effects; and again without any difference. In sequence, or in turns where the workloads can.
pub fn suite(traces: &[Trace], interleaved: bool, repetitions: Repetitions) -> Table {
    let can_interleave =
        |name: &str| traces.iter().any(|one| one.interleaved && one.workload == name);
    let wanted = |trace: &&Trace| match interleaved {
        true => trace.interleaved || !can_interleave(&trace.workload),
        false => !trace.interleaved,
    };
    let traces: Vec<&Trace> = traces.iter().filter(wanted).collect();
    let run = |effect: f64, repetition: u64| {
        let machines = (0..)
            .zip(&traces)
            .map(|(row, trace)| (source(trace).machine)(repetition * 31 + row))
            .collect();
        weigh(machines, effect, repetition, SUITE_BUDGET_S)
    };
    let all = |effect: f64| -> Vec<Vec<Outcome>> {
        (0..repetitions.suites).map(|repetition| run(effect, repetition)).collect()
    };
    let scheme = if interleaved { "in turns" } else { "in sequence" };
    eprintln!("judging the whole suite {scheme}");
    let outcomes = EFFECTS.map(all);
    let mut rows: Vec<Vec<String>> = (0..traces.len())
        .map(|row| {
            let cells = EFFECTS.iter().zip(&outcomes).map(|(effect, of)| {
                let seconds: Vec<_> =
                    of.iter().map(|rows| counted_seconds(&rows[row], *effect)).collect();
                cell(&seconds, *effect)
            });
            let name = &traces[row].workload;
            let how = if traces[row].interleaved { "in turns" } else { "in sequence" };
            [name.clone(), how.into()].into_iter().chain(cells).collect()
        })
        .collect();
    rows.push(whole(&outcomes));
    let head = ["workload", "pairs", "false alarms", "finds −0.3 %", "finds −1 %", "finds −3 %"];
    Table {
        title: format!("The unixbench suite as one experiment, {scheme}"),
        head: head.map(String::from).to_vec(),
        rows,
    }
}

/// In how many repetitions any row was called different, or all were found.
fn whole(outcomes: &[Vec<Vec<Outcome>>; EFFECTS.len()]) -> Vec<String> {
    let any = |rows: &Vec<Outcome>| rows.iter().any(|row| row.ever_differed).then_some(0.0);
    let cells = EFFECTS.iter().zip(outcomes).map(|(effect, of)| {
        let every = |rows: &Vec<Outcome>| {
            let seconds = rows.iter().map(|row| counted_seconds(row, *effect));
            seconds.collect::<Option<Vec<f64>>>().map(|all| all.into_iter().fold(0.0, f64::max))
        };
        let of_suites: Vec<_> =
            of.iter().map(|rows| if *effect == 0.0 { any(rows) } else { every(rows) }).collect();
        cell(&of_suites, *effect)
    });
    ["any (false alarms), all (finds)".into(), String::new()].into_iter().chain(cells).collect()
}
