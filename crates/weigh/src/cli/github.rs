//! GitHub Actions: the report on the page of a job, and a mark at what failed.

use std::path::{Path, PathBuf};

use super::{documents, output};
use trust::owner;
use weigh_model::format;
use weigh_model::printable;
use weigh_model::result::report::Report;
use weigh_model::result::summary::Failure;
use weigh_model::result::versus::name_in_arm;
use weigh_report::formats::markdown;

/// Variable in which a runner names the file that it shows as the step's summary.
const VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// Where the summary goes: to the file that was given, or to that of the runner.
pub fn place(given: Option<&Path>) -> Result<PathBuf, String> {
    let of_runner = || std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    let path = given.map(PathBuf::from).or_else(|| of_runner().map(PathBuf::from)).ok_or_else(|| {
        format!(
            "{VARIABLE} is not set, as it is within GitHub Actions; name a file: --github-summary=FILE"
        )
    })?;
    // As a file it would be one whose name is a dash.
    if documents::is_stdout(&path) {
        return Err(
            "--github-summary adds the report to a file: to have it on stdout, use --markdown - \
                    instead"
                .into(),
        );
    }
    output::check_writable(&path)?;
    Ok(path)
}

/// Adds the report to the summary, and annotates what failed the gate or gave no result.
pub fn write(path: &Path, report: &Report) -> Result<(), String> {
    let text = (markdown::FORMAT.render)(report)?;
    let text = printable::text(&text).into_owned() + "\n";
    owner::append(path, text.as_bytes())
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    annotations(report).iter().for_each(|line| output::note(line));
    Ok(())
}

/// Workflow commands, which a runner takes from what a step prints.
fn annotations(report: &Report) -> Vec<String> {
    let gate = match report {
        Report::Compared(summary) => summary.gate.as_ref(),
        _ => None,
    };
    let above = gate.iter().flat_map(|gate| {
        let limit = format::margin(gate.fail_above_pct);
        let said = move |row: &weigh_model::result::gate::NamedRow| {
            let name = name_in_arm(&row.workload, &row.treatment);
            format!("{name} costs more than {limit}")
        };
        gate.above.iter().map(said).collect::<Vec<_>>()
    });
    let name = |failure: &Failure| match report {
        Report::Run(_) => failure.name(),
        _ => failure.name_in_arm(),
    };
    let failed =
        report.header().failures.iter().map(|one| format!("{}: {}", name(one), one.reason));
    above.chain(failed).map(|said| format!("::error title=weigh::{}", escape(&said))).collect()
}

/// As the runner's own toolkit escapes the text of a command.
fn escape(text: &str) -> String {
    format::label(text).replace('%', "%25")
}
