//! `weigh net rank`: machines by what their network gives programs.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::documents::{self, Documents};
use super::{Context, output};
use trust::user_file;
use weigh_engine::run_report;
use weigh_model::result::net_rank::{Candidate, NetRank, RunDocument};
use weigh_store::Store;

/// Documents of runs, with every cell in them.
const LONGEST_FILE: u64 = 256 << 20;
/// The suite whose index the table has, with one copy.
const INDEX: &str = "unixbench";

const EXAMPLES: &str = "\
Examples:
  weigh net --json mine.json          measure, on each machine
  weigh net rank k3f9qx ./other.json  rank this machine and another one
  weigh net rank ./a.json ./b.json --price ./a.json=2900 --machine ./a.json='SPARC 10'
  weigh net rank ./a.json ./b.json --again ./a2.json --again ./b2.json
      Compare the ranking with that on another testbed.
  weigh net rank ./a.json ./b.json --index ./a.json=./a-unixbench.json
      Show the index that `weigh run unixbench` measured on that machine.

Exit status: 0 done, 2 error.";

/// Rank machines by BTU ("bits to the user"): their mean rate of transfers while busy, in Mb/s
///
/// Shows intervals and ties, penalties, UnixBench's index (--index) and the price that you give (--price), as
/// in Table 1 and Figures 2 and 3 of Maly, Gupta and Mynam (1996). All results must come from the same grid.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RankArgs {
    /// Results of `weigh net` to rank: ids, beginnings of ids, names, or files that `--json` or `weigh export
    /// --json` wrote on any machine, such as ./other.json. A file has a `/` or `.json` in its name
    #[arg(required = true, value_name = "ID")]
    runs: Vec<String>,
    /// Name of a machine in the tables and figures, such as ./a.json='SPARC 10'; may be repeated [default:
    /// the file's name or the ID]
    #[arg(long, value_name = "ID=NAME", value_parser = assigned)]
    machine: Vec<(String, String)>,
    /// Price of a machine, in any currency, such as ./a.json=2900; may be repeated
    #[arg(long, value_name = "ID=PRICE", value_parser = assigned)]
    price: Vec<(String, String)>,
    /// Result of `weigh run unixbench` on a machine, an experiment or a file, for its index; may be repeated
    #[arg(long, value_name = "ID=RUN", value_parser = assigned)]
    index: Vec<(String, String)>,
    /// Result of a machine on a second testbed; give one per machine, in the same order. Shows whether both
    /// testbeds rank the machines alike
    #[arg(long, value_name = "ID", conflicts_with_all = ["json", "html"])]
    again: Vec<String>,
    /// Print the ranking as JSON
    #[arg(long)]
    json: bool,
    /// Write the ranking as one HTML file, with the figures; `-` is stdout
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl RankArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        let json = self.json.then_some(Path::new("-"));
        let html = self.html.as_deref();
        documents::check([("json", json), ("html", html)])?;
        for (of, _) in self.price.iter().chain(&self.index).chain(&self.machine) {
            if !self.runs.contains(of) {
                return Err(format!("`{of}` is none of what is ranked: {}", self.runs.join(", ")));
            }
        }
        let candidates = self.runs.iter().map(|run| self.candidate(run, context));
        let rank = NetRank::of(candidates.collect::<Result<_, _>>()?)?;
        let beside = self.on_another_testbed(context)?;
        let mut documents = Documents::default();
        documents.report(html, || weigh_report::net_rank::html(&rank));
        documents.json(json, || {
            let text = serde_json::to_string_pretty(&rank).map_err(|error| error.to_string())?;
            Ok(text + "\n")
        });
        documents.print(|| weigh_report::net_rank::text(&rank, output::room()))?;
        if let Some(other) = beside {
            let text = weigh_report::net_rank::text(&other, output::room());
            output::print(&format!("\n{text}\n{}\n", rank.beside(&other)))?;
        }
        Ok(0)
    }

    /// Ranks the same machines by their results on another testbed.
    fn on_another_testbed(&self, context: &Context) -> Result<Option<NetRank>, String> {
        if self.again.is_empty() {
            return Ok(None);
        }
        if self.again.len() != self.runs.len() {
            return Err("--again takes one result for each machine, in the same order".into());
        }
        let candidates = self.runs.iter().zip(&self.again).map(|(run, again)| {
            let Candidate { name, index, price, .. } = self.candidate(run, context)?;
            Ok(Candidate { name, run: document(again, context)?, index, price })
        });
        NetRank::of(candidates.collect::<Result<_, String>>()?).map(Some)
    }

    fn candidate(&self, run: &str, context: &Context) -> Result<Candidate, String> {
        let price = self.price.iter().find(|(of, _)| of == run).map(|(_, price)| price);
        let price = price.map(|text| match text.parse::<f64>() {
            Ok(price) if price.is_finite() && price > 0.0 => Ok(price),
            _ => Err(format!("`{text}` is no price")),
        });
        let index = self.index.iter().find(|(of, _)| of == run).map(|(_, of_it)| {
            let document = document(of_it, context)?;
            let found = document.indices.iter().find(|one| one.suite == INDEX && one.copies == 1);
            found.map(|one| one.index).ok_or(format!(
                "{of_it} has no index of {INDEX} with one copy: `weigh run {INDEX}` measures it"
            ))
        });
        let given = self.machine.iter().find(|(of, _)| of == run);
        let name = match (given, is_file(run)) {
            (Some((_, name)), _) => name.clone(),
            (None, true) => {
                Path::new(run).file_stem().unwrap_or_default().to_string_lossy().into_owned()
            }
            (None, false) => run.to_owned(),
        };
        let run = document(run, context)?;
        Ok(Candidate { name, run, index: index.transpose()?, price: price.transpose()? })
    }
}

/// `ID=VALUE`; a path may have more of it.
fn assigned(text: &str) -> Result<(String, String), String> {
    let (of, value) = text.rsplit_once('=').ok_or("it has the form ID=VALUE")?;
    Ok((of.to_owned(), value.to_owned()))
}

fn is_file(run: &str) -> bool {
    run.contains('/') || run.ends_with(".json")
}

fn document(run: &str, context: &Context) -> Result<RunDocument, String> {
    if is_file(run) {
        let text = user_file::read_text(Path::new(run), LONGEST_FILE)
            .map_err(|error| format!("cannot read {run}: {error}"))?;
        return serde_json::from_str(&text)
            .map_err(|error| format!("{run}: it is no document of a run: {error}"));
    }
    let value = stored(&context.read_store()?, run)?;
    serde_json::from_value(value).map_err(|error| format!("{run}: {error}"))
}

fn stored(store: &Store, run: &str) -> Result<Value, String> {
    let id = store.find(Some(run)).map_err(|error| error.to_string())?;
    let stored = store.load(&id).map_err(|error| error.to_string())?;
    serde_json::to_value(run_report::report(&stored)).map_err(|error| error.to_string())
}
