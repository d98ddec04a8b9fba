//! What becomes of a run: measured, written to files, and shown.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;

use super::again::OUTPUT;
use super::audience::Terminal;
use super::files::default_html;
use super::show::{self, Privacy};
use super::{Context, INTERRUPTED, documents, exit_status, output};
use weigh_engine::request::Request;
use weigh_engine::run_report;
use weigh_engine::session::{Done, execute};
use weigh_model::record::Stored;
use weigh_model::result::summary::State;
use weigh_report::dialect::Dialect;
use weigh_report::failed;
use weigh_report::terminal::Screen;
use weigh_report::{run_page, run_text};
use weigh_store::Store;

/// Where the results go.
#[derive(Debug, Args)]
pub struct RunOutput {
    /// Write the results as JSON; `-` is stdout
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    json: Option<PathBuf>,
    /// Print in the form of a well-known table: unixbench, lmbench, smalley, whitcher or reaim
    #[arg(long = "as", value_name = "TABLE", conflicts_with = "verbose", help_heading = OUTPUT)]
    dialect: Option<Dialect>,
    /// Write the report as one HTML file, with charts [default: in the XDG data directory]
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    html: Option<PathBuf>,
    /// Show the warnings in full
    #[arg(short, long, help_heading = OUTPUT)]
    verbose: bool,
    #[command(flatten, next_help_heading = OUTPUT)]
    privacy: Privacy,
}

impl RunOutput {
    /// Before anything is measured.
    pub fn check(&self) -> Result<(), String> {
        documents::check([("json", self.json.as_deref()), ("html", self.html.as_deref())])
    }

    /// Measures, and gives the exit status.
    pub fn measure(
        &self,
        request: &Request,
        store: &Store,
        context: &Context,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<u8, String> {
        let done = execute(request, store, &mut Terminal::of_run(context.color), interrupted)?;
        self.end(done, store, context)
    }

    /// What becomes of a run that was measured.
    pub fn end(&self, done: Done, store: &Store, context: &Context) -> Result<u8, String> {
        let is_as_before = output::tell_what_is_left(done.left.as_deref());
        let stored = self.privacy.of_run(done.load(store)?)?;
        let written = self.write(&stored, context);
        done.not_kept.map_or(Ok(()), Err).and(written)?;
        tell_errors(&stored);
        let status = match done.state {
            State::Failed => super::ERROR,
            State::Interrupted => INTERRUPTED,
            _ if !stored.failures.is_empty() => super::ERROR,
            _ => 0,
        };
        Ok(exit_status(is_as_before, status))
    }

    /// The files, and the report on the terminal unless one of them goes to stdout.
    fn write(&self, stored: &Stored, context: &Context) -> Result<(), String> {
        let report = &run_report::report(stored);
        let json = self.json.as_ref().map(|path| output::write_json(path, &report.json()));
        let html = match &self.html {
            Some(path) => Ok(path.clone()),
            None => default_html(context, &report.id),
        };
        let html = html.and_then(|path| {
            output::write_report(&path, &run_page::render(report)?).map(|()| path)
        });
        let mut problems: Vec<String> = json.and_then(Result::err).into_iter().collect();
        if ![&self.json, &self.html].into_iter().flatten().any(|path| documents::is_stdout(path)) {
            let colour = output::wants_colour(context.color, &std::io::stdout());
            let path = html.as_ref().ok().map(|path| path.display().to_string());
            let (width, is_verbose) = (output::width(), self.verbose);
            let screen = Screen { width, colour, is_verbose, html: path.as_deref() };
            let usual = || run_text::render(report, &screen);
            // What was measured is worth more than the form that it was wanted in.
            let text = match self.dialect.map(|dialect| show::run_as(stored, dialect)) {
                Some(Ok(table)) => {
                    let html = path.as_ref().map(|html| format!("HTML:  {html}\n"));
                    format!(
                        "{table}\n{}more:  weigh show {}\n",
                        html.unwrap_or_default(),
                        report.id
                    )
                }
                Some(Err(problem)) => {
                    output::problem(&format!("not as wanted: {problem}"));
                    usual()
                }
                None => usual(),
            };
            problems.extend(output::print(&text).err());
        }
        problems.extend(html.err());
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }
}

/// What makes the exit status that of an error, also where stdout goes elsewhere.
fn tell_errors(stored: &Stored) {
    if let Some(reason) = &stored.failure {
        output::problem_of_report(&format!("the run failed: {reason}"));
    }
    if !stored.failures.is_empty() {
        let names: BTreeSet<String> =
            stored.failures.iter().map(|failure| failure.workload.to_string()).collect();
        let names: Vec<String> = names.into_iter().collect();
        output::problem_of_report(&format!(
            "there is no result for {}; the report says why",
            failed::some(&names)
        ));
    }
}
