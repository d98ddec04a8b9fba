//! The link in user space: how exactly it delays beside busy CPUs, whether it meets a rate, and what it
//! carries when it does nothing, against a plain pair of `veth`. `docs/link.md` has the tables. It needs
//! root.
//!
//! ```text
//! cargo bench -p benches --bench link -- [--pairs N] [--only delay|rate|bulk] [--write docs/link.md]
//! ```

mod bulk;
mod delays;
#[path = "../../crates/wire/tests/support/hosts.rs"]
mod hosts;
mod rates;

use std::path::PathBuf;
use std::process::ExitCode;

use support::{end, hogs, table};
use table::Table;
use wire::Scheduling;

/// Options of the command line.
struct Options {
    pairs: usize,
    only: Option<String>,
    /// The document whose tables are to be replaced.
    write: Option<PathBuf>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { pairs: 30, only: None, write: None };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--pairs" => {
                    let text = value()?;
                    options.pairs = text.parse().map_err(|_| format!("`{text}` is no number"))?;
                }
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
    end::end("link", options.and_then(|options| measure(&options)))
}

fn measure(options: &Options) -> Result<(), String> {
    let is_wanted = |part: &str| options.only.as_ref().is_none_or(|only| only == part);
    wire::lock_memory().map_err(|error| format!("memory cannot be locked: {error}"))?;
    let mut tables = Vec::new();
    if is_wanted("delay") {
        tables.push(delays::table()?);
    }
    if is_wanted("rate") {
        tables.push(rates::table()?);
    }
    if is_wanted("bulk") {
        tables.push(bulk::table(options.pairs)?);
    }
    let markdown: Vec<String> = tables.iter().map(table::markdown).collect();
    for table in &tables {
        println!("{}", table::text(table));
    }
    let generated = format!("{}\n\n{}", machine(), markdown.join("\n"));
    options.write.as_ref().map_or(Ok(()), |path| table::write(path, "link", &generated))
}

/// Where the figures are from.
fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    format!(
        "{}, {} CPUs, Linux {}.",
        model.map_or("an unknown processor", |(_, name)| name),
        cpus.lines().filter(|line| line.starts_with("processor")).count(),
        read("/proc/sys/kernel/osrelease").trim(),
    )
}

/// As the testbed runs it.
const LINK_PRIORITY: i32 = 50;

fn real_time() -> Scheduling {
    Scheduling { priority: Some(LINK_PRIORITY), cpus: Vec::new() }
}

/// Its numbers as a row.
fn row(cells: &[String]) -> Vec<String> {
    cells.to_vec()
}

/// A table of these columns.
fn table_of(title: &str, head: &[&str]) -> Table {
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    Table { title: title.to_owned(), head, rows: Vec::new() }
}
