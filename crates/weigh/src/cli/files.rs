//! Shows a report on the terminal and writes it into the files asked for, whichever command made it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::formats::{FormatFiles, table_help};
use super::reproduce::OUTPUT;
use super::show::Privacy;
use super::{Context, documents, github, output};
use trust::owner;
use weigh_dialect::{self as dialect, Dialect};
use weigh_model::format;
use weigh_model::result::gate::NamedRow;
use weigh_model::result::report::{Report, ReportHeader};
use weigh_model::result::summary::{Failure, State};
use weigh_model::result::versus::name_in_arm;
use weigh_report::formats::{html, json};
use weigh_report::terminal::{self, Screen};
use weigh_report::{ReportFormat, failed};
use weigh_store::{About, Store};

/// Where reports go.
#[derive(Debug, Args)]
#[command(next_help_heading = OUTPUT)]
pub struct Files {
    #[command(flatten)]
    formats: FormatFiles,
    /// Add the report to the summary of a GitHub Actions job, with an annotation for each failure [default
    /// file: $GITHUB_STEP_SUMMARY]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, hide_short_help = true)]
    github_summary: Option<Option<PathBuf>>,
    #[arg(long = "as", value_name = "TABLE", conflicts_with = "verbose", hide_short_help = true)]
    #[arg(value_parser = dialect::named, help = table_help("Print in the form of"))]
    dialect: Option<&'static Dialect>,
    /// Show everything. This includes latencies, evidence, the steps of each treatment, full warnings, and
    /// the machine
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    privacy: Privacy,
    /// Rows of audit rules on the terminal.
    #[arg(skip)]
    pub rules: Option<usize>,
}

impl Files {
    /// Adds files of other formats than those of every command.
    pub fn add(&mut self, files: Vec<(&'static ReportFormat, PathBuf)>) {
        self.formats.0.extend(files);
    }

    /// Returns true if a report other than the usual ones is requested.
    pub fn are_asked_for(&self) -> bool {
        !self.formats.0.is_empty() || self.github_summary.is_some() || self.dialect.is_some()
    }

    /// Better now than after two minutes of measuring.
    pub fn check(&self) -> Result<(), String> {
        let files = self.formats.0.iter().map(|(format, path)| (format.name, Some(path.as_path())));
        documents::check(files)?;
        self.github_summary.iter().try_for_each(|path| github::place(path.as_deref()).map(drop))
    }

    /// Checks the same for a command whose results belong into no well-known table.
    pub fn check_without_table(&self) -> Result<(), String> {
        match self.dialect {
            Some(table) => Err(format!(
                "--as {}: this command's results belong into no such table",
                table.name
            )),
            None => self.check(),
        }
    }

    /// Stores a report that is one document, and writes it even if it cannot be stored, as on a full disk.
    pub fn keep(
        &self,
        mut report: Report,
        how: (f64, State),
        store: &Store,
        context: &Context,
    ) -> Result<(), String> {
        let stored = keep(&mut report, how, store);
        let written = self.write(report, context);
        stored.and(written)
    }

    /// Writes all files, and the terminal's report unless a file goes to stdout; then says on stderr what
    /// makes the exit status an error. What cannot be written, as on a full disk, keeps nothing else from
    /// being shown.
    pub fn write(&self, report: Report, context: &Context) -> Result<(), String> {
        let report = &self.privacy.of(report)?;
        let mut problems = Vec::new();
        let formats = &self.formats.0;
        let mut html = None;
        for (format, path) in formats {
            match write(path, format, report) {
                Ok(()) if is_html(format) => html = Some(path.clone()),
                Ok(()) => {}
                Err(problem) => problems.push(problem),
            }
        }
        if let Some(path) = &self.github_summary {
            let written =
                github::place(path.as_deref()).and_then(|path| github::write(&path, report));
            problems.extend(written.err());
        }
        // What could not be stored has no id, and no place of its own.
        let is_stored = !report.id().is_empty();
        if is_stored && !formats.iter().any(|(format, _)| is_html(format)) {
            let written = default_html(context, report.id())
                .and_then(|path| write(&path, &html::FORMAT, report).map(|()| path));
            html = written.map_err(|problem| problems.push(problem)).ok();
        }
        // Where a report goes to stdout, nothing else may.
        if !formats.iter().any(|(_, path)| documents::is_stdout(path)) {
            problems.extend(self.print(report, html.as_deref(), context).err());
        }
        tell_errors(report);
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }

    /// The report on the terminal. Where it has no such table, it is shown all the same: what was measured is
    /// worth more than the form that it was wanted in.
    fn print(&self, report: &Report, html: Option<&Path>, context: &Context) -> Result<(), String> {
        let html = html.map(|path| path.display().to_string());
        let on_screen = Screen {
            room: output::room(),
            colour: output::wants_colour(context.color, &io::stdout()),
            is_verbose: self.verbose,
            html: html.as_deref(),
            rules: self.rules,
        };
        let shown = || output::print(&terminal::show(report, &on_screen));
        let Some(dialect) = self.dialect else { return shown() };
        match dialect::render(dialect, report) {
            Ok(table) => {
                let html = html.map(|html| format!("HTML:  {html}\n")).unwrap_or_default();
                output::print(&format!("{table}\n{html}more:  weigh show {}\n", report.id()))
            }
            Err(problem) => {
                shown()?;
                Err(format!("--as {}: {problem}", dialect.name))
            }
        }
    }
}

/// Stores a report that is one document, and gives it its id.
pub fn keep(
    report: &mut Report,
    (elapsed_s, state): (f64, State),
    store: &Store,
) -> Result<(), String> {
    let document = (json::FORMAT.render)(report)?;
    let ReportHeader { kind, command, machine, .. } = report.header();
    let about = About { kind, command, machine, elapsed_s, state };
    let id = store.add_document(&about, &document).map_err(|error| error.to_string())?;
    report.set_id(id.to_string());
    Ok(())
}

fn is_html(format: &ReportFormat) -> bool {
    format.name == html::FORMAT.name
}

fn write(path: &Path, format: &ReportFormat, report: &Report) -> Result<(), String> {
    output::write_format(format, path, &(format.render)(report)?)
}

/// Beside the database.
fn default_html(context: &Context, id: &str) -> Result<PathBuf, String> {
    let directory = context.data_directory()?.join("reports");
    owner::create_directory(&directory, 0o755)
        .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    Ok(directory.join(format!("{id}.html")))
}

/// Prints the errors that make the exit status an error, even if stdout goes elsewhere.
fn tell_errors(report: &Report) {
    let ReportHeader { failure, failures, .. } = report.header();
    if let Some(reason) = failure {
        let what = if matches!(report, Report::Run(_)) { "run" } else { "experiment" };
        output::problem_of_report(&format!("the {what} failed: {reason}"));
    }
    let names: BTreeSet<String> = failures.iter().map(Failure::name).collect();
    if !names.is_empty() {
        let names = failed::some(&names.into_iter().collect::<Vec<_>>());
        output::problem_of_report(&format!("there is no result for {names}; the report says why"));
    }
    let Report::Compared(summary) = report else { return };
    if let Some(gate) = summary.gate.as_ref().filter(|gate| !gate.above.is_empty()) {
        let limit = format::margin(gate.fail_above_pct);
        let name = |row: &NamedRow| name_in_arm(&row.workload, &row.treatment);
        let rows: Vec<String> = gate.above.iter().map(name).collect();
        output::problem_of_report(&format!("shown to cost more than {limit}: {}", rows.join(", ")));
    }
}
