//! `weigh export`: an experiment as a file, or several as one page.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use super::formats::{ChosenFormat, exportable, table_help};
use super::show::Privacy;
use super::{Context, output};
use weigh_dialect::{self as dialect, Dialect};
use weigh_engine::report;
use weigh_model::format::quoted;
use weigh_model::result::report::Report;
use weigh_report::html::pages::{self, ReportPage};
use weigh_report::{ReportFormat, outcome};
use weigh_store::Store;

const EXAMPLES: &str = "\
Examples:
  weigh export k3f9qx --html -o report.html
  weigh export k3f9qx m2abcd --html -o study.html     # one page: headlines, then all reports
  weigh export k3f9qx --csv | head
  weigh export k3f9qx --as smalley
  weigh export k3f9qx --as nitzberg --html -o table2.html
  weigh export k3f9qx --html --anonymise -o to-share.html
  weigh export k3f9qx --json | jq '.results[] | {workload, effect_pct}'";

/// In other commands, formats take a file.
const NO_FILE: &str = "`-` is not an experiment. In `weigh export` the formats take no file: it prints to \
                       stdout, or to the FILE of --output. For example: weigh export latest --json";
const USAGE: &str = "weigh export [OPTIONS] <ID> --json (or another format) [--output <FILE>]
       weigh export [OPTIONS] <ID> <ID>... --html [--output <FILE>]
       weigh export [OPTIONS] <ID> --as <TABLE> [--output <FILE>]";

/// Write a stored experiment in another format
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct ExportArgs {
    /// Experiment: its id or the beginning of it, a name, or latest. Several make one page, with --html
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    format: ChosenFormat,
    #[arg(long = "as", value_name = "TABLE", value_parser = dialect::named)]
    #[arg(help = table_help("Write in the form of") + ". With nitzberg, --html adds Figure 4 of his thesis")]
    dialect: Option<&'static Dialect>,
    /// File to write, such as report.html [default: stdout]
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
    #[command(flatten)]
    privacy: Privacy,
}

impl ExportArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        if self.ids.iter().any(|id| id == "-") {
            return Err(NO_FILE.to_owned());
        }
        let form = Form::of(self.dialect, self.format.0)?;
        if self.ids.len() > 1 {
            return self.page(&form, context);
        }
        let report = &self.load(&context.read_store()?, &self.ids[0])?;
        match form {
            Form::Report(format) => {
                output::write_format(format, &self.output, &(format.render)(report)?)?
            }
            Form::Table(dialect) => {
                output::write_report(&self.output, &dialect::render(dialect, report)?)?
            }
            Form::Page(dialect) => {
                output::write_report(&self.output, &dialect::page(dialect, report)?)?
            }
        }
        Ok(0)
    }

    fn load(&self, store: &Store, id: &str) -> Result<Report, String> {
        let id = store.find(Some(id)).map_err(|error| error.to_string())?;
        self.privacy.of(report::load(store, &id)?)
    }

    /// Returns the error for several experiments in a form that takes one: the last may be meant as a file.
    fn one_only(&self, form: &str) -> String {
        let (first, last) = (&self.ids[0], &self.ids[self.ids.len() - 1]);
        format!(
            "{} is read as an experiment. For a file: {}. For several experiments on one page, use --html \
             without --as",
            quoted(last),
            quoted(&format!("weigh export {first} {form} --output {last}"))
        )
    }

    /// Writes one page of several experiments.
    fn page(&self, form: &Form, context: &Context) -> Result<u8, String> {
        let format = match form {
            Form::Report(format) if format.name == "html" => format,
            Form::Report(format) => return Err(self.one_only(&format!("--{}", format.name))),
            Form::Table(dialect) => return Err(self.one_only(&format!("--as {}", dialect.name))),
            Form::Page(dialect) => {
                return Err(self.one_only(&format!("--as {} --html", dialect.name)));
            }
        };
        let store = context.read_store()?;
        let page = |id: &String| {
            let report = self.load(&store, id)?;
            let (id, result) = (report.id().to_owned(), outcome::words(&report));
            Ok(ReportPage { id, result, html: (format.render)(&report)? })
        };
        let pages: Vec<ReportPage> = self.ids.iter().map(page).collect::<Result<_, String>>()?;
        let mut ids = BTreeSet::new();
        if let Some(twice) = pages.iter().find(|page| !ids.insert(&*page.id)) {
            return Err(format!("experiment `{}` is named twice; remove one", twice.id));
        }
        output::write_format(format, &self.output, &pages::join(&pages)?)?;
        Ok(0)
    }
}

/// Requested form of an export.
enum Form {
    Report(&'static ReportFormat),
    Table(&'static Dialect),
    Page(&'static Dialect),
}

impl Form {
    fn of(
        dialect: Option<&'static Dialect>,
        format: Option<&'static ReportFormat>,
    ) -> Result<Form, String> {
        match (dialect, format) {
            (None, Some(format)) => Ok(Form::Report(format)),
            (None, None) => {
                let names = exportable().map(|format| format!("--{}, ", format.name));
                Err(format!("say in which format: {}or --as TABLE", names.collect::<String>()))
            }
            (Some(dialect), None) => Ok(Form::Table(dialect)),
            (Some(dialect), Some(format)) => match format.name {
                "text" => Ok(Form::Table(dialect)),
                "html" => Ok(Form::Page(dialect)),
                name => Err(format!("--as TABLE is text, or with --html a page, and no {name}")),
            },
        }
    }
}
