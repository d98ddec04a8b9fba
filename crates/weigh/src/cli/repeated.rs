//! Measures several requests one after the other, each as an experiment of its own. What they show together
//! is one more report, which is stored as a document.

use super::files::Files;
use super::progress_sink::Terminal;
use super::{Context, ERROR, INCONCLUSIVE, INTERRUPTED, exit_status, output};
use weigh_engine::request::Request;
use weigh_engine::run_report;
use weigh_engine::session::execute;
use weigh_host::interruption::listen_for_signals;
use weigh_model::result::repeated::{RepeatedReport, SCHEMA};
use weigh_model::result::run::RunReport;
use weigh_model::result::summary::State;
use weigh_store::Store;

/// Runs that were measured.
struct Repeated {
    reports: Vec<RunReport>,
    /// Time of all of them.
    elapsed_s: f64,
    state: State,
    status: u8,
}

/// Measures the requests, and stores and writes what `answers` finds in them. `is_decided` is false of a run
/// without the answer that was asked for. Returns the exit status.
pub fn run(
    requests: &[Request],
    is_decided: impl Fn(&RunReport) -> bool,
    answers: impl FnOnce(&[RunReport]) -> RepeatedReport,
    files: &Files,
    context: &Context,
) -> Result<u8, String> {
    let Some(first) = requests.first() else { return Ok(0) };
    let store = context.open_store_for(first)?;
    let Repeated { mut reports, elapsed_s, state, status } =
        measure(requests, is_decided, &store, context)?;
    let found = answers(&reports);
    // What could not even begin has said so.
    let Some(last) = reports.pop() else { return Ok(status) };
    let failures = reports.into_iter().flat_map(|report| report.failures).chain(last.failures);
    let report = RepeatedReport {
        schema: SCHEMA.into(),
        command: context.again.to_string(),
        machine: last.machine,
        failure: last.failure,
        failures: failures.collect(),
        ..found
    };
    files.keep(report.into(), (elapsed_s, state), &store, context)?;
    Ok(status)
}

/// Measures one request after the other, until a run does not end as it should. What was measured until then
/// is kept.
fn measure(
    requests: &[Request],
    is_decided: impl Fn(&RunReport) -> bool,
    store: &Store,
    context: &Context,
) -> Result<Repeated, String> {
    let interrupted = listen_for_signals()?;
    let mut sink = Terminal::of_run(context.color);
    let mut repeated =
        Repeated { reports: Vec::new(), elapsed_s: 0.0, state: State::Complete, status: 0 };
    for (at, request) in requests.iter().enumerate() {
        output::note(&format!("Experiment {} of {}", at + 1, requests.len()));
        let done = match execute(request, store, &mut sink, &interrupted) {
            Ok(done) => done,
            Err(problem) => {
                output::problem(&String::from(problem));
                (repeated.state, repeated.status) = (State::Failed, ERROR);
                break;
            }
        };
        let is_as_before = output::tell_what_is_left(done.left.as_deref());
        let stored = done.load(store)?;
        repeated.elapsed_s += stored.elapsed_s;
        let mut report = run_report::report(&stored);
        if !done.is_stored() {
            report.id.clear();
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
        (repeated.state, repeated.status) = (done.state, exit_status(is_as_before, status));
        repeated.reports.push(report);
        if done.state != State::Complete || done.not_kept.is_some() {
            break;
        }
    }
    Ok(repeated)
}
