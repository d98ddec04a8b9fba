//! Other clients and ours at the same servers, in turns: does a server do as much for them as for us?
//! It prints a table; `--write` puts that between the marks of a document.
//!
//! ```text
//! cargo bench -p benches --bench app_peers -- [--seconds N] [--only TEXT]... [--write FILE]
//! ```
//!
//! A server is started anew for each turn, as it is for each sample of an experiment, and both clients work
//! for the same time. Servers have half of the CPUs, and clients the other: what is compared is what a server
//! does, and not which client leaves it more of a CPU.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

mod database;
mod servers;
mod web;

use duel::{Contest, fight};
use support::{duel, machine as here, role, table};
use table::Table;

/// Ours and theirs are to agree within so many percent.
const MARGIN_PCT: f64 = 5.0;

/// A row: what is asked, of which server, by whom.
pub struct Row<'a> {
    pub contest: Contest<'a>,
    pub peer: &'static str,
}

struct Options {
    seconds: f64,
    only: Vec<String>,
    write: Option<PathBuf>,
}

fn options(arguments: &mut dyn Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { seconds: 120.0, only: Vec::new(), write: None };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--bench" => {} // cargo says so
            "--only" => options.only.push(value()?),
            "--write" => options.write = Some(value()?.into()),
            "--seconds" => {
                let text = value()?;
                let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
                options.seconds =
                    seconds.ok_or(format!("--seconds takes a number, not `{text}`"))?;
            }
            other => return Err(format!("`{other}` is no option")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    role::play("app_peers", |arguments| run(&options(arguments)?))
}

fn run(options: &Options) -> Result<(), String> {
    let mut rows = database::rows()?;
    rows.extend(web::rows()?);
    let only = &options.only;
    let is_wanted =
        |row: &Row| only.is_empty() || only.iter().any(|text| row.contest.name.contains(&**text));
    let mut rows: Vec<Row> = rows.into_iter().filter(is_wanted).collect();
    let head = ["what", "peer", "ours ÷ theirs", "95 % interval", "pairs", "verdict"];
    let mut table = Table {
        title: "Other clients and ours".into(),
        head: head.map(String::from).to_vec(),
        rows: Vec::new(),
    };
    for row in &mut rows {
        let budget = Duration::from_secs_f64(options.seconds);
        let outcome = fight(std::slice::from_mut(&mut row.contest), MARGIN_PCT, budget, 16);
        for one in outcome {
            let [ratio, interval] = one.cells();
            let verdict = one.said(MARGIN_PCT, None);
            let name = row.contest.name.clone();
            let cells = [name, row.peer.into(), ratio, interval, one.pairs.to_string(), verdict];
            println!("{}", cells.join("  "));
            table.rows.push(cells.to_vec());
        }
    }
    println!("\n{}", table::text(&table));
    if let Some(path) = &options.write {
        let generated = format!("{}\n{}", here::line(), table::markdown(&table));
        table::write(path, "app_peers", &generated)?;
    }
    Ok(())
}
