//! The reports that `weigh compare` writes: on the terminal, and into the files asked for.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::again::OUTPUT;
use super::formats::FormatFiles;
use super::show::Privacy;
use super::{Context, documents, github, output};
use trust::owner;
use weigh_model::result::summary::Summary;
use weigh_report::ReportFormat;
use weigh_report::dialect::{self, Dialect, Sheet};
use weigh_report::formats::html;
use weigh_report::terminal::{self, Screen};

/// Where reports go.
#[derive(Debug, Args)]
#[command(next_help_heading = OUTPUT)]
pub struct Files {
    #[command(flatten)]
    formats: FormatFiles,
    /// Add the report to the summary of a GitHub Actions job, and annotate what fails [default file:
    /// $GITHUB_STEP_SUMMARY]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    github_summary: Option<Option<PathBuf>>,
    /// Print in the form of a well-known table, without verdicts: unixbench, lmbench, nitzberg, smalley,
    /// whitcher or reaim
    #[arg(long = "as", value_name = "TABLE", conflicts_with = "verbose")]
    dialect: Option<Dialect>,
    /// Show everything: latencies, evidence, what each treatment did, warnings in full, the machine
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    privacy: Privacy,
}

impl Files {
    /// Whether any other report is asked for than the usual ones.
    pub fn are_asked_for(&self) -> bool {
        !self.formats.0.is_empty() || self.github_summary.is_some() || self.dialect.is_some()
    }

    /// Better now than after two minutes of measuring.
    ///
    /// # Errors
    /// A sentence that names the file that cannot be written.
    pub fn check(&self) -> Result<(), String> {
        let files = self.formats.0.iter().map(|(format, path)| (format.name, Some(path.as_path())));
        documents::check(files)?;
        self.github_summary.iter().try_for_each(|path| github::place(path.as_deref()).map(drop))
    }

    /// Writes all files, and the terminal's report unless a file goes to stdout. What cannot be written, as
    /// on a full disk, keeps nothing else from being shown.
    ///
    /// # Errors
    /// Sentences that name the files that could not be written.
    pub fn write(&self, summary: &Summary, context: &Context) -> Result<(), String> {
        let summary = &self.privacy.of_summary(summary.clone())?;
        let mut problems = Vec::new();
        let formats = &self.formats.0;
        let mut html = None;
        for (format, path) in formats {
            match write(path, format, summary) {
                Ok(()) if is_html(format) => html = Some(path.clone()),
                Ok(()) => {}
                Err(problem) => problems.push(problem),
            }
        }
        if let Some(path) = &self.github_summary {
            let written =
                github::place(path.as_deref()).and_then(|path| github::write(&path, summary));
            problems.extend(written.err());
        }
        if !formats.iter().any(|(format, _)| is_html(format)) {
            let written = default_html(context, &summary.id)
                .and_then(|path| write(&path, &html::FORMAT, summary).map(|()| path));
            html = written.map_err(|problem| problems.push(problem)).ok();
        }
        // Where a report goes to stdout, nothing else may.
        if !formats.iter().any(|(_, path)| documents::is_stdout(path)) {
            problems.extend(self.print(summary, html.as_deref(), context).err());
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }

    /// The report on the terminal.
    fn print(
        &self,
        summary: &Summary,
        html: Option<&Path>,
        context: &Context,
    ) -> Result<(), String> {
        let html = html.map(|path| path.display().to_string());
        let on_screen = Screen {
            width: output::width(),
            colour: output::wants_colour(context.color, &io::stdout()),
            is_verbose: self.verbose,
            html: html.as_deref(),
        };
        // What was measured is worth more than the form that it was wanted in.
        let as_wanted = self.dialect.map(|dialect| dialect::render(dialect, &Sheet::of(summary)));
        let text = match as_wanted {
            Some(Ok(table)) => {
                let html = html.map(|html| format!("HTML:  {html}\n")).unwrap_or_default();
                format!("{table}\n{html}more:  weigh show {}\n", summary.id)
            }
            Some(Err(problem)) => {
                output::problem(&format!("not as wanted: {problem}"));
                terminal::screen(summary, &on_screen)
            }
            None => terminal::screen(summary, &on_screen),
        };
        output::print(&text)
    }
}

fn is_html(format: &ReportFormat) -> bool {
    format.name == html::FORMAT.name
}

fn write(path: &Path, format: &ReportFormat, summary: &Summary) -> Result<(), String> {
    output::write_format(format, path, &(format.compared)(summary)?)
}

/// Beside the database.
pub fn default_html(context: &Context, id: &str) -> Result<PathBuf, String> {
    let directory = context.data_directory()?.join("reports");
    owner::create_directory(&directory, 0o755)
        .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    Ok(directory.join(format!("{id}.html")))
}
