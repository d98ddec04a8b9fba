//! Measures several requests one after the other, each as an experiment of its own.

use super::files::Files;
use super::progress_sink::Terminal;
use super::{Context, ERROR, INCONCLUSIVE, INTERRUPTED, exit_status, output};
use weigh_engine::request::Request;
use weigh_engine::run_report;
use weigh_engine::session::execute;
use weigh_host::interruption::listen_for_signals;
use weigh_model::result::run::RunReport;
use weigh_model::result::summary::State;

/// Runs that were measured.
pub struct Repeated {
    pub reports: Vec<RunReport>,
    pub status: u8,
}

/// Refuses files and tables, which show one experiment.
pub fn refuse_files(files: &Files, option: &str) -> Result<(), String> {
    match files.are_asked_for() {
        true => {
            Err(format!("{option} measures several experiments: write each with `weigh export ID`"))
        }
        false => Ok(()),
    }
}

/// Measures one request after the other, until a run does not end as it should. What was measured until then
/// is kept. `is_decided` is false of a report without the answer that was asked for.
pub fn measure(
    requests: &[Request],
    is_decided: impl Fn(&RunReport) -> bool,
    context: &Context,
) -> Result<Repeated, String> {
    let interrupted = listen_for_signals()?;
    let mut sink = Terminal::of_run(context.color);
    let mut repeated = Repeated { reports: Vec::new(), status: 0 };
    for (at, request) in requests.iter().enumerate() {
        let store = context.open_store_for(request)?;
        output::note(&format!("Experiment {} of {}", at + 1, requests.len()));
        let done = match execute(request, &store, &mut sink, &interrupted) {
            Ok(done) => done,
            Err(problem) => {
                output::problem(&problem);
                repeated.status = ERROR;
                break;
            }
        };
        let is_as_before = output::tell_what_is_left(done.left.as_deref());
        let mut report = run_report::report(&done.load(&store)?);
        if !done.is_stored() {
            report.id.clear();
        }
        for failure in &report.failures {
            output::problem_of_report(&format!("{}: {}", failure.name(), failure.reason));
        }
        let status = match done.state {
            State::Failed => ERROR,
            State::Interrupted => INTERRUPTED,
            _ if !report.failures.is_empty() || done.not_kept.is_some() => ERROR,
            _ if !is_decided(&report) => INCONCLUSIVE,
            _ => repeated.status,
        };
        if let Some(problem) = &done.not_kept {
            output::problem(problem);
        }
        repeated.status = exit_status(is_as_before, status);
        repeated.reports.push(report);
        if done.state != State::Complete || done.not_kept.is_some() {
            break;
        }
    }
    Ok(repeated)
}
