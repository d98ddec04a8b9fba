//! hyperfine and `weigh versus` on the same commands, in turns: which differences each claims, and how long
//! it takes. `docs/versus.md` explains.
//!
//! ```text
//! cargo bench -p benches --bench versus -- [--rounds N] [--budget SECONDS] [--only TEXT] \
//!     [--write docs/versus.md]
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

mod pairs;
mod tools;

use pairs::{Commands, Pair};
use rand::RngExt;
use support::{end, machine as here, table};
use table::Table;
use tools::{Answer, Claim, Tool};

/// Options of the command line.
struct Options {
    rounds: usize,
    budget_s: u32,
    only: Option<String>,
    /// The document whose table is to be replaced.
    write: Option<PathBuf>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { rounds: 20, budget_s: 20, only: None, write: None };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            let number = |text: String| text.parse().map_err(|_| format!("`{text}` is no number"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--rounds" => options.rounds = number(value()?)? as usize,
                "--budget" => options.budget_s = number(value()?)?,
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
    let tools = [Tool::Hyperfine, Tool::Weigh { budget_s: options.budget_s }];
    let version = tools::hyperfine_version()?;
    let is_wanted = |pair: &Pair| options.only.as_ref().is_none_or(|part| pair.name.contains(part));
    let pairs: Vec<Pair> = commands.pairs().into_iter().filter(is_wanted).collect();
    let mut answers: Vec<[Vec<Answer>; 2]> = pairs.iter().map(|_| Default::default()).collect();
    for round in 0..options.rounds {
        for (pair, answers) in pairs.iter().zip(&mut answers) {
            // What is always the same is asked once.
            if round > 0 && pair.is_certain {
                continue;
            }
            let mut order = [0, 1];
            if rand::rng().random_bool(0.5) {
                order.reverse();
            }
            for tool in order {
                let answer = tools[tool].ask(pair, commands.directory())?;
                eprintln!(
                    "{} of {}: {}: {}: {} in {:.1} s",
                    round + 1,
                    options.rounds,
                    pair.name,
                    tools[tool].name(),
                    answer.claim.said(),
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
            "{today}, {}, {version}; {} rounds, `weigh versus --budget {}s`.",
            here::line(),
            options.rounds,
            options.budget_s
        );
        let tables: Vec<String> = tables.iter().map(table::markdown).collect();
        table::write(path, "versus", &format!("{from}\n\n{}", tables.join("\n")))?;
    }
    Ok(())
}

/// How often each was said of what depends on chance.
fn claims(pairs: &[Pair], tools: &[Tool; 2], answers: &[[Vec<Answer>; 2]]) -> Table {
    let head =
        ["second command", "tool", "slower", "faster", "no difference", "undecided", "seconds"];
    let mut rows = Vec::new();
    for (pair, answers) in pairs.iter().zip(answers).filter(|(pair, _)| !pair.is_certain) {
        for (tool, answers) in tools.iter().zip(answers) {
            let said = |claim: Claim| {
                let times = answers.iter().filter(|answer| answer.claim == claim).count();
                if times == 0 { "–".to_owned() } else { format!("{times} of {}", answers.len()) }
            };
            rows.push(vec![
                pair.name.to_owned(),
                tool.name().to_owned(),
                said(Claim::Slower),
                said(Claim::Faster),
                said(Claim::NoDifference),
                said(Claim::Undecided),
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

/// Tabulates the answers for pairs whose result is certain, where there is nothing to measure.
fn certain(pairs: &[Pair], tools: &[Tool; 2], answers: &[[Vec<Answer>; 2]]) -> Table {
    let mut rows = Vec::new();
    for (pair, answers) in pairs.iter().zip(answers).filter(|(pair, _)| pair.is_certain) {
        for (tool, answers) in tools.iter().zip(answers) {
            let said = answers.first().map_or("–".into(), |answer| answer.claim.said());
            let seconds = format!("{:.1}", median_s(answers));
            rows.push(vec![pair.name.to_owned(), tool.name().to_owned(), said, seconds]);
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
