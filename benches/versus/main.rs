//! hyperfine and `weigh versus` on the same commands, in turns: which differences each claims, and how long
//! it takes. `docs/versus.md` explains.
//!
//! ```text
//! cargo bench -p benches --bench versus -- [--rounds N] [--budget SECONDS] [--load N] [--only TEXT] \
//!     [--write docs/versus.md]
//! cargo bench -p benches --bench versus -- --rounds 1 --budget 5     # a first impression, in minutes
//! ```
//!
//! `--load N` keeps N threads busy beside it. Without hyperfine, `weigh versus` is asked alone.

use std::path::PathBuf;
use std::process::ExitCode;

mod pairs;
mod tools;

use pairs::{Commands, Pair};
use rand::RngExt;
use support::hogs::Hogs;
use support::{end, machine as here, table};
use table::Table;
use tools::{Answer, Claim, Tool};

/// Options of the command line.
struct Options {
    rounds: usize,
    budget_s: u32,
    /// So many threads are busy beside it.
    load: usize,
    only: Option<String>,
    /// The document whose table is to be replaced.
    write: Option<PathBuf>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { rounds: 8, budget_s: 20, load: 0, only: None, write: None };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            let number = |text: String| text.parse().map_err(|_| format!("`{text}` is no number"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--rounds" => options.rounds = number(value()?)? as usize,
                "--budget" => options.budget_s = number(value()?)?,
                "--load" => options.load = number(value()?)? as usize,
                "--only" => options.only = Some(value()?),
                "--write" => options.write = Some(value()?.into()),
                other => return Err(format!("`{other}` is no option")),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let options = Options::parse(std::env::args().skip(1));
    end::end("versus", options.and_then(|options| compare(&options)))
}

fn compare(options: &Options) -> Result<(), String> {
    let commands = Commands::new()?;
    let version = tools::hyperfine_version();
    let mut tools = vec![Tool::Weigh { budget_s: options.budget_s }];
    tools.extend(version.as_ref().map(|_| Tool::Hyperfine));
    let is_wanted =
        |pair: &Pair| options.only.as_ref().is_none_or(|part| pair.name().contains(part));
    let pairs: Vec<Pair> = commands.pairs()?.into_iter().filter(is_wanted).collect();
    let _hogs = (options.load > 0).then(|| Hogs::anywhere(options.load));
    let mut answers: Vec<Vec<Vec<Answer>>> = Vec::new();
    answers.resize_with(pairs.len(), || tools.iter().map(|_| Vec::new()).collect());
    for round in 0..options.rounds {
        for (pair, answers) in pairs.iter().zip(&mut answers) {
            // What is always the same is asked once.
            if round > 0 && pair.is_certain {
                continue;
            }
            let mut order: Vec<usize> = (0..tools.len()).collect();
            if rand::rng().random_bool(0.5) {
                order.reverse();
            }
            for tool in order {
                let answer = tools[tool].ask(pair, commands.directory())?;
                eprintln!(
                    "{} of {}: {}: {}: {}{} in {:.1} s",
                    round + 1,
                    options.rounds,
                    pair.name(),
                    tools[tool].name(),
                    answer.claim.said(),
                    if answer.is_of_cpu_time { " by CPU time" } else { "" },
                    answer.seconds
                );
                answers[tool].push(answer);
            }
        }
    }
    let tables = [claims(&pairs, &tools, &answers), certain(&pairs, &tools, &answers)];
    for one in &tables {
        println!("{}", table::text(one));
    }
    if let Some(path) = &options.write {
        let today = jiff::Zoned::now().date();
        let from = format!(
            "{today}, {}, {}; {} rounds, `weigh versus --budget {}s`, {} busy threads beside it.",
            here::line(),
            version.as_deref().unwrap_or("no hyperfine"),
            options.rounds,
            options.budget_s,
            options.load
        );
        let tables: Vec<String> = tables.iter().map(table::markdown).collect();
        table::write(path, "versus", &format!("{from}\n\n{}", tables.join("\n")))?;
    }
    Ok(())
}

/// Tabulates how often each tool was right about what depends on chance.
fn claims(pairs: &[Pair], tools: &[Tool], answers: &[Vec<Vec<Answer>>]) -> Table {
    let head =
        ["work", "the second does", "tool", "found", "missed", "false", "CPU time", "seconds"];
    let mut rows = Vec::new();
    for (pair, answers) in pairs.iter().zip(answers).filter(|(pair, _)| !pair.is_certain) {
        for (tool, answers) in tools.iter().zip(answers) {
            let count =
                |is_so: &dyn Fn(&&Answer) -> bool| match answers.iter().filter(is_so).count() {
                    0 => "–".to_owned(),
                    times => format!("{times} of {}", answers.len()),
                };
            let is = |outcome| move |answer: &&Answer| outcome_of(pair, &answer.claim) == outcome;
            rows.push(vec![
                pair.work.to_owned(),
                pair.difference.to_owned(),
                tool.name().to_owned(),
                count(&is(Outcome::Found)),
                count(&is(Outcome::Missed)),
                count(&is(Outcome::False)),
                count(&|answer: &&Answer| answer.is_of_cpu_time),
                format!("{:.1}", median_s(answers)),
            ]);
        }
    }
    Table {
        title: "Answers about the second command".into(),
        head: head.map(str::to_owned).to_vec(),
        rows,
    }
}

/// Value of an answer, as the truth is known.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Found,
    Missed,
    False,
}

fn outcome_of(pair: &Pair, claim: &Claim) -> Outcome {
    let is_less = pair.difference.contains("less");
    match (claim, pair.is_equal) {
        (Claim::NoDifference, true) => Outcome::Found,
        (Claim::Slower, false) if !is_less => Outcome::Found,
        (Claim::Faster, false) if is_less => Outcome::Found,
        (Claim::Slower | Claim::Faster, _) => Outcome::False,
        _ => Outcome::Missed,
    }
}

/// Tabulates the answers for pairs whose result is certain, where there is nothing to measure.
fn certain(pairs: &[Pair], tools: &[Tool], answers: &[Vec<Vec<Answer>>]) -> Table {
    let mut rows = Vec::new();
    for (pair, answers) in pairs.iter().zip(answers).filter(|(pair, _)| pair.is_certain) {
        for (tool, answers) in tools.iter().zip(answers) {
            let said = answers.first().map_or("–".into(), |answer| answer.claim.said());
            let seconds = format!("{:.1}", median_s(answers));
            rows.push(vec![pair.difference.to_owned(), tool.name().to_owned(), said, seconds]);
        }
    }
    Table {
        title: "Commands that cannot be compared".into(),
        head: ["second command", "tool", "answer", "seconds"].map(str::to_owned).to_vec(),
        rows,
    }
}

fn median_s(answers: &[Answer]) -> f64 {
    let seconds: Vec<f64> = answers.iter().map(|answer| answer.seconds).collect();
    paired::estimate::median(&seconds).unwrap_or(f64::NAN)
}
