//! `hyperfine --export-json`: one or several commands, and the time of each of their runs.

use serde::Deserialize;

use crate::import::{Document, ForeignFormat, ImportedResults, Problem, figure};
use paired::estimate::median;
use weigh_model::format;
use weigh_model::result::imported::Figure;

pub static IMPORT: ForeignFormat = ForeignFormat {
    name: "hyperfine",
    what: "hyperfine --export-json",
    rank: 7,
    is_json: true,
    is_it,
    read: |text| read(text).map(Document::of),
};

#[derive(Deserialize)]
struct HyperfineExport {
    results: Vec<TimedCommand>,
}

#[derive(Deserialize)]
struct TimedCommand {
    command: String,
    /// Seconds; absent in exports of versions before 1.0.
    #[serde(default)]
    times: Option<Vec<f64>>,
    mean: f64,
    /// Exit code of each run; `None` for a run that a signal ended. Absent in older exports.
    #[serde(default)]
    exit_codes: Option<Vec<Option<i32>>>,
}

impl TimedCommand {
    /// Where runs failed, which `hyperfine --ignore-failure` lets pass: they may well have done nothing, and
    /// quickly.
    fn problem(&self) -> Option<String> {
        let codes = self.exit_codes.as_ref()?;
        let failed: Vec<&Option<i32>> = codes.iter().filter(|code| **code != Some(0)).collect();
        let how = match failed.first()? {
            Some(code) => format!("exit code {code}"),
            None => "ended by a signal".into(),
        };
        Some(format!(
            "{:?} failed in {} of {} ({how}), so its times are not valid: leave the command out, or time \
             one that exits with 0",
            self.command,
            failed.len(),
            format::plural(codes.len(), "run")
        ))
    }
}

/// Returns true if a text is a hyperfine export, however long it is.
fn is_it(text: &str) -> bool {
    serde_json::from_str::<HyperfineExport>(text).is_ok()
}

/// Reads the export: each command is a result by itself, called like the command.
fn read(text: &str) -> Result<Vec<ImportedResults>, Problem> {
    let export: HyperfineExport = serde_json::from_str(text).map_err(|error| {
        (Some(error.line()), format!("not the JSON of hyperfine --export-json: {error}"))
    })?;
    let several = export.results.len() > 1;
    let results = export.results.into_iter().map(|command| {
        if let Some(problem) = command.problem() {
            return Err((None, problem));
        }
        let runs = command.times.unwrap_or_default();
        let value = median(&runs).unwrap_or(command.mean);
        if !(value > 0.0 && value.is_finite() && runs.iter().all(|run| *run > 0.0)) {
            return Err((None, format!("{:?} has a time of 0 or less", command.command)));
        }
        // Several commands in one file are alternatives: the same test, done in another way.
        let test = if several { "command" } else { command.command.as_str() };
        Ok(ImportedResults {
            format: "hyperfine".into(),
            label: several.then(|| command.command.clone()),
            figures: vec![Figure { runs, ..figure(test, value, "s") }],
        })
    });
    results.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_failed_is_refused() {
        let of = |codes: &str| {
            read(&format!(
                r#"{{"results":[{{"command":"true","mean":0.1,"times":[0.1,0.1]}},
                {{"command":"make x","mean":0.1,"times":[0.1,0.1]{codes}}}]}}"#
            ))
        };
        for sound in ["", r#","exit_codes":null"#, r#","exit_codes":[0,0]"#] {
            assert_eq!(of(sound).map(|results| results.len()), Ok(2), "{sound}");
        }
        let refused = |codes: &str| of(codes).unwrap_err().1;
        let problem = refused(r#","exit_codes":[127,127]"#);
        assert!(
            problem.starts_with("\"make x\" failed in 2 of 2 runs (exit code 127)"),
            "{problem}"
        );
        let problem = refused(r#","exit_codes":[0,null]"#);
        assert!(problem.contains("failed in 1 of 2 runs (ended by a signal)"), "{problem}");
    }
}
