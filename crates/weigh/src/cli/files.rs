//! The reports that `weigh compare` writes: on the terminal, and into the files asked for.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::show::Privacy;
use super::{Context, github, output};
use crate::report::dialect::{self, Dialect, Sheet};
use crate::report::terminal::{self, Screen};
use crate::report::{self, Format};
use crate::result::summary::Summary;
use trust::owner;

/// Where reports go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Files {
    /// Write the results as JSON; `-` is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report as one HTML file [default: in the XDG data directory]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write every pair as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the report as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write the rows as tests in JUnit's XML, for CI: a row above --fail-above fails
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Add the report to the summary of a GitHub Actions job, and annotate what fails [default file:
    /// $GITHUB_STEP_SUMMARY]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    github_summary: Option<Option<PathBuf>>,
    /// Print in the form of a well-known table, without verdicts: unixbench, lmbench, nitzberg or smalley
    #[arg(long = "as", value_name = "TABLE")]
    dialect: Option<Dialect>,
    /// Show everything: latencies, evidence, what each treatment did, warnings in full, the machine
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    privacy: Privacy,
}

impl Files {
    /// Better now than after two minutes of measuring.
    ///
    /// # Errors
    /// A sentence that names the file that cannot be written.
    pub fn check(&self) -> Result<(), String> {
        [&self.json, &self.html, &self.csv, &self.markdown, &self.junit]
            .into_iter()
            .flatten()
            .try_for_each(|path| output::check_writable(path))?;
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
        let files = [
            (&self.json, Format::Json),
            (&self.csv, Format::Csv),
            (&self.markdown, Format::Markdown),
            (&self.junit, Format::Junit),
        ];
        for (path, format) in files {
            if let Some(path) = path {
                problems.extend(write(path, format, summary).err());
            }
        }
        if let Some(path) = &self.github_summary {
            let written =
                github::place(path.as_deref()).and_then(|path| github::write(&path, summary));
            problems.extend(written.err());
        }
        let html = match &self.html {
            Some(path) => Ok(path.clone()),
            None => default_html(context, &summary.id),
        };
        let html = html.and_then(|path| write(&path, Format::Html, summary).map(|()| path));
        // Where a report goes to stdout, nothing else may.
        let to_stdout = files.iter().any(|(path, _)| path.as_deref() == Some(Path::new("-")));
        if !to_stdout && self.html.as_deref() != Some(Path::new("-")) {
            problems.extend(self.print(summary, html.as_deref().ok(), context).err());
        }
        problems.extend(html.err());
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

fn write(path: &Path, format: Format, summary: &Summary) -> Result<(), String> {
    let text = report::render(format, summary).map_err(|error| error.to_string())?;
    match format {
        Format::Json => output::write_json(path, &text),
        _ => output::write_report(path, &text),
    }
}

/// Beside the database.
pub fn default_html(context: &Context, id: &str) -> Result<PathBuf, String> {
    let directory = context.data_directory()?.join("reports");
    owner::create_directory(&directory, 0o755)
        .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    Ok(directory.join(format!("{id}.html")))
}
