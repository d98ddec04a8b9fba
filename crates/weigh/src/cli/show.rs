//! `weigh show`: an experiment again.

use std::io;

use clap::Args;

use super::{Context, output};
use weigh_engine::run_report;
use weigh_engine::summarise::summarise;
use weigh_model::record::{ExperimentKind, Stored};
use weigh_model::result::rules::RuleReport;
use weigh_model::result::summary::Summary;
use weigh_report::ReportFormat;
use weigh_report::anonymise;
use weigh_report::anonymise::Scrubber;
use weigh_report::dialect::{self, Dialect, Sheet};
use weigh_report::rules;
use weigh_report::run_text;
use weigh_report::terminal::{self, Screen};
use weigh_store::Store;

const EXAMPLES: &str = "\
Examples:
  weigh show            the latest experiment
  weigh show -v         with every table: latencies, evidence, and what was done
  weigh show k3f9qx     by its id from `weigh history`; the beginning is enough
  weigh show before-upgrade   by its name, given with --name
  weigh show --as unixbench   as UnixBench's table of indices
  weigh show --as nitzberg    an experiment with two sets as Delta-1, Delta-2, Delta-3";

/// Show an experiment, evaluated again from its stored samples
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// The experiment: its id or the beginning of it, a name, latest, or latest~1 for the one before
    /// [default: latest]
    id: Option<String>,
    /// In the form of a well-known table: unixbench, lmbench, nitzberg, smalley, whitcher or reaim
    #[arg(long = "as", value_name = "TABLE", conflicts_with = "verbose")]
    dialect: Option<Dialect>,
    /// Show everything: latencies, evidence, what each treatment did, warnings in full, the machine
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    privacy: Privacy,
}

/// Whether what names the machine is shown: the same option for every command that writes reports.
#[derive(Debug, Args)]
pub struct Privacy {
    /// Leave out what identifies the machine or a person: host name, boot id, kernel command line, user
    /// names, and the directories of paths
    #[arg(long, alias = "anonymize")]
    anonymise: bool,
}

impl Privacy {
    /// The summary as it may be shown.
    ///
    /// # Errors
    /// A sentence.
    pub fn of_summary(&self, summary: Summary) -> Result<Summary, String> {
        if !self.anonymise {
            return Ok(summary);
        }
        anonymise::summary(&summary)
            .map_err(|error| format!("cannot anonymise {}: {error}", summary.id))
    }

    /// Anonymises the report of `weigh rules` if asked to.
    ///
    /// # Errors
    /// If the report cannot be written or read back.
    fn of_rules(&self, report: RuleReport) -> Result<RuleReport, String> {
        if !self.anonymise {
            return Ok(report);
        }
        anonymise::rules(&report)
            .map_err(|error| format!("cannot anonymise {}: {error}", report.id))
    }

    /// The run as it may be shown.
    ///
    /// # Errors
    /// A sentence.
    pub fn of_run(&self, mut stored: Stored) -> Result<Stored, String> {
        if self.anonymise {
            anonymise_run(&mut stored)
                .map_err(|error| format!("cannot anonymise {}: {error}", stored.id))?;
        }
        Ok(stored)
    }
}

/// Number of rules shown without --verbose: the default of `weigh rules --top`.
const RULES_SHOWN: usize = 20;
/// Width of a report in a file, which has no terminal.
const FILE_WIDTH: usize = 100;

/// What the store has of an experiment.
pub enum Shown {
    Run(Box<Stored>),
    /// The result of `weigh rules`.
    Rules(Box<RuleReport>),
    /// An experiment that compares, or an import.
    Compared(Box<Summary>),
}

impl Shown {
    /// Loads an experiment, and judges it anew.
    ///
    /// # Errors
    /// A sentence.
    pub fn load(store: &Store, id: &str, privacy: &Privacy) -> Result<Shown, String> {
        let compared = |summary| Ok(Shown::Compared(Box::new(privacy.of_summary(summary)?)));
        if let Some(imported) = store.import(id).map_err(|error| error.to_string())? {
            return compared(imported);
        }
        let stored = store.load(id).map_err(|error| error.to_string())?;
        match stored.header.kind {
            ExperimentKind::Run => Ok(Shown::Run(Box::new(privacy.of_run(stored)?))),
            ExperimentKind::Rules => {
                let document = store.document(id).map_err(|error| error.to_string())?;
                let text = document.ok_or_else(|| format!("the store has no result of {id}"))?;
                let report: RuleReport = serde_json::from_str(&text)
                    .map_err(|error| format!("cannot read the result of {id}: {error}"))?;
                let report = RuleReport { id: id.into(), ..report };
                Ok(Shown::Rules(Box::new(privacy.of_rules(report)?)))
            }
            _ => compared(summarise(&stored)),
        }
    }

    /// The same in one of the formats.
    ///
    /// # Errors
    /// A sentence, where it has no such form.
    pub fn render(&self, format: &ReportFormat) -> Result<String, String> {
        match self {
            Shown::Compared(summary) => (format.compared)(summary),
            Shown::Run(stored) => (format.run)(&run_report::report(stored), stored),
            Shown::Rules(report) => match format.name {
                "json" => rules::json::write(report).map_err(|error| error.to_string()),
                "html" => rules::html::page(report).map_err(|error| error.to_string()),
                "text" => Ok(rules::terminal::show(report, usize::MAX, FILE_WIDTH, false)),
                name => Err(format!(
                    "{} is a result of `weigh rules`, not available as {name}: use --json, --html or --text",
                    report.id
                )),
            },
        }
    }

    /// The same as a well-known table.
    ///
    /// # Errors
    /// A sentence, where nothing in it belongs into that.
    pub fn dialect(&self, dialect: Dialect) -> Result<String, String> {
        dialect::render(dialect, &self.sheet()?)
    }

    /// The same as a page, with the figure that belongs to the table.
    ///
    /// # Errors
    /// Likewise, and where the table has no page.
    pub fn dialect_page(&self, dialect: Dialect) -> Result<String, String> {
        dialect::page(dialect, &self.sheet()?)
    }

    fn sheet(&self) -> Result<Sheet, String> {
        match self {
            Shown::Compared(summary) => Ok(Sheet::of(summary)),
            Shown::Run(stored) => Ok(run_sheet(stored)),
            Shown::Rules(report) => Err(format!(
                "{} is a result of `weigh rules`, which no table of another tool can show: leave out --as",
                report.id
            )),
        }
    }
}

/// A run as a well-known table.
///
/// # Errors
/// A sentence, where nothing in it belongs into that.
pub fn run_as(stored: &Stored, dialect: Dialect) -> Result<String, String> {
    dialect::render(dialect, &run_sheet(stored))
}

fn run_sheet(stored: &Stored) -> Sheet {
    let label = stored.header.arms.first().map_or("none", String::as_str);
    Sheet::of_report(run_report::report(stored), label)
}

/// The report that was written when it was measured, if it is still there.
fn existing_html(context: &Context, id: &str) -> Option<String> {
    let path = context.data_directory().ok()?.join("reports").join(format!("{id}.html"));
    path.is_file().then(|| path.display().to_string())
}

impl ShowArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        let store = context.read_store()?;
        let id = store.find(self.id.as_deref()).map_err(|error| error.to_string())?;
        let shown = Shown::load(&store, &id, &self.privacy)?;
        let colour = output::wants_colour(context.color, &io::stdout());
        let html = existing_html(context, &id);
        let width = output::width();
        let screen = Screen { width, colour, is_verbose: self.verbose, html: html.as_deref() };
        let text = match (&shown, self.dialect) {
            (shown, Some(dialect)) => shown.dialect(dialect)?,
            (Shown::Rules(report), None) => {
                let rows = if self.verbose { usize::MAX } else { RULES_SHOWN };
                rules::terminal::show(report, rows, width, colour)
            }
            (Shown::Run(stored), None) => run_text::render(&run_report::report(stored), &screen),
            (Shown::Compared(summary), None) => terminal::screen(summary, &screen),
        };
        output::print(&text)?;
        Ok(0)
    }
}

/// Takes out of a stored run what names the machine, its boot or its people.
///
/// # Errors
/// Where a fact of the machine is no JSON, which is our fault.
fn anonymise_run(stored: &mut Stored) -> Result<(), serde_json::Error> {
    let scrubber = Scrubber::new(&stored.header.machine);
    stored.header.machine = scrubber.machine(&stored.header.machine)?;
    let failures = stored.failures.iter_mut().map(|failure| &mut failure.reason);
    let files = stored.header.suites.iter_mut().map(|suite| &mut suite.file);
    let profiles = stored.profiles.iter_mut().flat_map(|profiled| &mut profiled.arms);
    let profiles = profiles.map(|arm| &mut arm.printed);
    let warnings = stored.warnings.iter_mut();
    let texts = warnings.chain(&mut stored.failure).chain(failures).chain(files).chain(profiles);
    for text in texts.chain([&mut stored.header.command]) {
        *text = scrubber.text(text);
    }
    Ok(())
}
