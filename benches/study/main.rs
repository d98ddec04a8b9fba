//! Cost of auditing on this kernel, measured by the `weigh` that is built here. It makes the tables
//! of docs/evidence/study-audit.md, for readers who have to decide about auditing.
//!
//! ```text
//! sudo cargo bench -p benches --bench study -- [--write docs/evidence/study-audit.md] [--quick]
//! ```
//!
//! It takes about twenty-five minutes and needs root, auditd's example rules, and a machine that
//! has nothing else to do.

use std::path::PathBuf;
use std::process::ExitCode;

mod calls;
mod rules;
mod sets;
mod storage;
mod weigh;

use support::{end, machine as here, table};
use weigh::Weigh;

/// Options of the command line.
struct Options {
    /// The document whose tables are to be replaced.
    write: Option<PathBuf>,
    /// A quarter of the time: to see whether it works.
    is_quick: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { write: None, is_quick: false };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--quick" => options.is_quick = true,
                "--write" => {
                    options.write = Some(arguments.next().ok_or("--write needs a file")?.into());
                }
                other => return Err(format!("`{other}` is no option")),
            }
        }
        Ok(options)
    }
}

/// A part of the study: sentences that its numbers allow, and its tables.
struct Part {
    sentences: Vec<String>,
    tables: Vec<table::Table>,
}

fn main() -> ExitCode {
    let options = Options::parse(std::env::args().skip(1));
    end::end("study", options.and_then(|options| study(&options)))
}

fn study(options: &Options) -> Result<(), String> {
    let weigh = Weigh::new(options.is_quick)?;
    let mut document = provenance(options.is_quick);
    for measure in [calls::measure, storage::measure, sets::measure, rules::measure] {
        let part: Part = measure(&weigh)?;
        let sentences: String =
            part.sentences.iter().map(|sentence| format!("- {sentence}\n")).collect();
        let tables: Vec<String> = part.tables.iter().map(table::markdown).collect();
        println!("{sentences}");
        part.tables.iter().for_each(|one| println!("{}", table::text(one)));
        document.push_str(&format!("\n{sentences}\n{}", tables.join("\n")));
    }
    match &options.write {
        Some(path) => table::write(path, "study", &document),
        None => Ok(()),
    }
}

/// Where and when.
fn provenance(is_quick: bool) -> String {
    format!(
        "{}; {}.{}\n",
        here::line(),
        weigh_host::machine::facts::read()
            .distribution
            .unwrap_or_else(|| "distribution not known".into()),
        if is_quick { " A quick run: the intervals are wide." } else { "" },
    )
}
