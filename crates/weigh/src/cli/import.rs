//! `weigh import`: results that were not measured here.

use std::io;
use std::path::PathBuf;

use clap::Args;

use super::reproduce::ReproduceCommand;
use super::{Context, output};
use trust::user_file;
use weigh_engine::diff_imported;
use weigh_import::compare::summary;
use weigh_import::labels::Labels;
use weigh_import::{Document, ForeignFormat};
use weigh_model::format;
use weigh_model::result::summary::Summary;
use weigh_report::{self, terminal};
use weigh_store::Store;

/// No result is nearly as long; a wrong file may be.
const LONGEST_FILE: u64 = 64 << 20;

const EXAMPLES: &str = "\
Examples:
  weigh import before.txt after.txt  reports of UnixBench, the baseline first
  weigh import off.txt on.txt --as off,on --base off
  weigh import RUN1 RUN2 RUN3 RUN4 --as on,off --base off
      Import two sets of on and off; `weigh show --as nitzberg` shows them.
  weigh import both.json             hyperfine --export-json, or one per command
  weigh import base.csv patched.csv  perf stat -x, -o FILE
  weigh import summary.txt           lmbench's summary or result files: each host is a result
  weigh import reaim.csv             re-aim's table: one row per number of users
  weigh import experiment.json       weigh compare --json, from another machine
  weigh import a.json b.json         such files of two machines, compared
  weigh import l1.json l2.json       weigh load --json: each load point, compared
  weigh import table9.csv            table of a paper: test,unit,Base,SELinux

docs/import.md shows for each format which conclusions are possible.";

/// Import results of other programs, or of weigh on another machine, as an experiment
///
/// Shows differences but no verdicts, because one number per side does not show the noise. Detects the format
/// from the content.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ImportArgs {
    /// Files to import: reports of UnixBench (also .log, .csv), lmbench's summary or result files, tables of
    /// re-aim, JSON of hyperfine or weigh, CSV of perf stat, or a CSV table
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Labels of the results, in order, such as off,on; weigh repeats the list until every result has a
    /// label. One label other than --base stands for both: the baseline comes first. Results with the same
    /// label are sets of one arm [default: the file names]
    #[arg(long = "as", value_name = "LABEL,…", value_delimiter = ',')]
    labels: Vec<String>,
    /// Label of the baseline, such as off [default: the first label]
    #[arg(long, value_name = "LABEL")]
    base: Option<String>,
    #[arg(long, value_name = "NAME", help = format_help(), value_parser = ForeignFormat::named)]
    format: Option<&'static ForeignFormat>,
}

fn format_help() -> String {
    let names: Vec<&str> = weigh_import::IMPORTS.iter().map(|format| format.name).collect();
    format!("Format of all files: {} [default: detected for each file]", names.join(", "))
}

impl ImportArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        let mut documents = Vec::new();
        for path in &self.files {
            let name = path.display().to_string();
            let bytes = user_file::read(path, LONGEST_FILE)
                .map_err(|error| format!("cannot read {name}: {error}"))?;
            let document = weigh_import::read(&name, &bytes, self.format);
            documents.push((name, document.map_err(|error| error.to_string())?));
        }
        if documents.len() > 1 && documents.iter().all(|(_, document)| document.is_experiment()) {
            return self.side_by_side(context, documents);
        }
        let imported = self.summarised(context, documents)?;
        let imported = keep(imported, &context.open_store()?)?;
        let colour = output::wants_colour(context.color, &io::stdout());
        output::print(&format!(
            "{}\nStored: `weigh show {}` shows this again\n",
            terminal::render(&imported, output::room(), colour),
            imported.id
        ))?;
        Ok(0)
    }

    fn summarised(
        &self,
        context: &Context,
        documents: Vec<(String, Document)>,
    ) -> Result<Summary, String> {
        let labels = Labels { labels: self.labels.clone(), base: self.base.clone() };
        let mut imported = summary(documents, &labels)?;
        complete(&mut imported, &context.again);
        Ok(imported)
    }

    /// Stores whole experiments of several machines, and compares the first with each of the others.
    fn side_by_side(
        &self,
        context: &Context,
        documents: Vec<(String, Document)>,
    ) -> Result<u8, String> {
        if !self.labels.is_empty() || self.base.is_some() {
            return Err(
                "whole experiments have names for their arms: leave out --as and --base".into()
            );
        }
        let files: Vec<String> = documents.iter().map(|(file, _)| file.clone()).collect();
        let imported = documents.into_iter().map(|one| self.summarised(context, vec![one]));
        let imported: Vec<Summary> = imported.collect::<Result<_, _>>()?;
        let store = context.open_store()?;
        let kept = imported.into_iter().map(|one| keep(one, &store));
        let kept: Vec<Summary> = kept.collect::<Result<_, _>>()?;
        let colour = output::wants_colour(context.color, &io::stdout());
        let mut text = String::new();
        for other in &kept[1..] {
            let diff = diff_imported::diff(&kept[0], other)?;
            text += &weigh_report::diff::text(&diff, output::room(), colour);
            text.push('\n');
        }
        for (file, imported) in files.iter().zip(&kept) {
            let (file, id) = (format::label(file), &imported.id);
            text += &format!("Stored: `weigh show {id}` shows all of {file}\n");
        }
        output::print(&text)?;
        Ok(0)
    }
}

fn keep(imported: Summary, store: &Store) -> Result<Summary, String> {
    let id = store.add_import(&imported).map_err(|error| error.to_string())?;
    Ok(Summary { id: id.to_string(), ..imported })
}

/// An experiment of weigh says itself when it began, and how to do it again.
fn complete(imported: &mut Summary, again: &ReproduceCommand) {
    if !imported.command.is_empty() {
        return;
    }
    imported.started = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    imported.command = again.to_string();
}
