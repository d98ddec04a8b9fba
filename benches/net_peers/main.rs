//! COMM beside iperf3, nuttcp and netperf: the same transfer over the same pair of `veth`, in random order,
//! with the CPU time of both ends. `docs/evidence/net-peers.md` has the tables. It needs root. It names each
//! tool that is not installed, and leaves it out.
//!
//! ```text
//! cargo bench -p benches --bench net_peers -- [--rounds N] [--seconds S] \
//!     [--write docs/evidence/net-peers.md]
//! ```

#[path = "../../crates/wire/tests/support/hosts.rs"]
mod hosts;
mod peers;
mod process;

use std::path::PathBuf;
use std::process::ExitCode;

use hosts::TwoHosts;
use paired::betting::{Betting, DEFAULT_SCALE};
use paired::{Design, judge_rows};
use peers::{Found, Peer, Task};
use rand::seq::SliceRandom;
use support::{end, table};
use table::Table;
use wire::{Offload, Scheduling};

const SIZES: [u32; 5] = [100, 1024, 1250, 4096, 65536];
/// Size of requests and connects, as in netperf's own: a byte there and a byte back.
const SMALL: u32 = 1;

/// Options of the command line.
struct Options {
    rounds: usize,
    seconds: u32,
    /// The document whose tables are to be replaced.
    write: Option<PathBuf>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { rounds: 12, seconds: 1, write: None };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            let number =
                |text: String| text.parse::<u32>().map_err(|_| format!("`{text}` is no number"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--rounds" => options.rounds = number(value()?)? as usize,
                "--seconds" => options.seconds = number(value()?)?.max(1),
                "--write" => options.write = Some(value()?.into()),
                other => return Err(format!("`{other}` is no option")),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let options = Options::parse(std::env::args().skip(1));
    end::end("net_peers", options.and_then(|options| measure(&options)))
}

fn measure(options: &Options) -> Result<(), String> {
    let hosts = TwoHosts::new(Offload::TcpAndUdp, Scheduling::default()).ok_or("it needs root")?;
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let bench = peers::Bench::new(&hosts, scratch.path(), options.seconds)?;
    let (there, missing): (Vec<Peer>, Vec<Peer>) =
        Peer::ALL.into_iter().partition(|peer| peer.is_installed());
    let bulk = SIZES.map(Task::Bulk);
    let tasks = bulk.into_iter().chain([Task::Requests(SMALL), Task::Connects(SMALL)]);
    let mut rates = new_table("What arrives (default sockets, reno)", "best", &there);
    let mut costs = new_table("CPU time of both ends", "least", &there);
    for task in tasks {
        let able: Vec<Peer> = there.iter().copied().filter(|peer| peer.can(task)).collect();
        let rounds = rounds_of(&bench, task, &able, options.rounds)?;
        rates.rows.push(row(task, &there, &able, &rounds, |found| found.rate, task.unit()));
        costs.rows.push(row(task, &there, &able, &rounds, |found| 1.0 / found.cost, task.cost()));
    }
    for row in &mut costs.rows {
        invert(row);
    }
    let said: String = missing
        .iter()
        .map(|peer| format!("{} is not installed here and left out.\n", peer.name()))
        .collect();
    for table in [&rates, &costs] {
        println!("{}", table::text(table));
    }
    print!("{said}");
    let generated = format!(
        "{}\n\n{}\n{}\n{said}",
        machine(),
        table::markdown(&rates),
        table::markdown(&costs)
    );
    options.write.as_ref().map_or(Ok(()), |path| table::write(path, "net_peers", &generated))
}

/// All peers once, in random order, again and again; by peer.
fn rounds_of(
    bench: &peers::Bench,
    task: Task,
    able: &[Peer],
    rounds: usize,
) -> Result<Vec<Vec<Found>>, String> {
    let mut found = vec![Vec::new(); able.len()];
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..able.len()).collect();
        order.shuffle(&mut rand::rng());
        for at in order {
            let one = bench
                .run(able[at], task)
                .map_err(|problem| format!("{}, {}: {problem}", able[at].name(), task.name()))?;
            found[at].push(one);
        }
        eprintln!("{}: round {} of {rounds}", task.name(), round + 1);
    }
    Ok(found)
}

fn new_table(title: &str, best: &str, there: &[Peer]) -> Table {
    let mut head = vec!["what".to_owned(), "unit".to_owned()];
    head.extend(there.iter().map(|peer| peer.name().to_owned()));
    head.extend([format!("COMM/{best} other"), "95 % interval".into(), "rounds".into()]);
    Table { title: title.into(), head, rows: Vec::new() }
}

/// Geometric means, and COMM against whichever other has the best of them, round by round.
fn row(
    task: Task,
    there: &[Peer],
    able: &[Peer],
    rounds: &[Vec<Found>],
    value: fn(&Found) -> f64,
    unit: &str,
) -> Vec<String> {
    let logs = |at: usize| rounds[at].iter().map(move |found| value(found).ln());
    let mean = |at: usize| logs(at).sum::<f64>() / rounds[at].len() as f64;
    let mut cells = vec![task.name(), unit.to_owned()];
    for peer in there {
        let at = able.iter().position(|other| other == peer);
        cells.push(at.map_or("–".into(), |at| figure(mean(at).exp())));
    }
    let own = able.iter().position(|peer| *peer == Peer::Comm).unwrap_or(0);
    let others = (0..able.len()).filter(|at| *at != own);
    let Some(best) = others.max_by(|a, b| mean(*a).total_cmp(&mean(*b))) else {
        cells.extend(["–".into(), "–".into(), rounds[own].len().to_string()]);
        return cells;
    };
    let mut betting = Betting::new(DEFAULT_SCALE);
    for (own, other) in logs(own).zip(logs(best)) {
        // Of numbers above 0, which `Found` sees to.
        betting.push(own - other).expect("a ratio of what was measured");
    }
    let judged = &judge_rows([&betting], &Design::default())[0];
    cells.push(format!("{:.2}", judged.estimate.exp()));
    cells.push(format!("{:.2} to {:.2}", judged.interval.low.exp(), judged.interval.high.exp()));
    cells.push(rounds[own].len().to_string());
    cells
}

fn figure(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.4}"),
    }
}

/// Inverts the figures of a row that was judged by the inverse, so that more is better: shows the
/// cost.
fn invert(row: &mut [String]) {
    let inverse = |text: &str| text.parse::<f64>().map(|value| 1.0 / value);
    let columns = row.len();
    for cell in &mut row[2..columns - 3] {
        if let Ok(value) = inverse(cell) {
            *cell = figure(value);
        }
    }
    if let Ok(value) = inverse(&row[columns - 3]) {
        row[columns - 3] = format!("{value:.2}");
    }
    let ends: Option<Vec<f64>> =
        row[columns - 2].split(" to ").map(|end| inverse(end).ok()).collect();
    if let Some([low, high]) = ends.as_deref() {
        row[columns - 2] = format!("{high:.2} to {low:.2}");
    }
}

/// Where the figures are from.
fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    format!(
        "{}, {} CPUs, Linux {}, load {} at the end. Sender on CPU 0, receiver on CPU 1.",
        model.map_or("an unknown processor", |(_, name)| name),
        cpus.lines().filter(|line| line.starts_with("processor")).count(),
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').next().unwrap_or_default(),
    )
}
