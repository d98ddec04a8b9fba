//! `hyperfine --export-json`: one or several commands, and the time of each of their runs.

use serde::Deserialize;

use crate::{Content, Document, ForeignFormat, ImportedResults, Problem, figure};
use paired::estimate::median;
use weigh_model::format;
use weigh_model::result::imported::Figure;

pub static IMPORT: ForeignFormat = ForeignFormat {
    name: "hyperfine",
    what: "hyperfine --export-json",
    rank: 7,
    is_json: true,
    is_it,
    read,
};

#[derive(Deserialize)]
struct HyperfineExport {
    results: Vec<TimedCommand>,
}

#[derive(Deserialize)]
struct TimedCommand {
    command: String,
    /// Seconds; absent in exports of versions before 1.0.
    times: Option<Vec<f64>>,
    mean: f64,
    /// Exit code of each run; `None` for a run that a signal ended. Absent in older exports.
    exit_codes: Option<Vec<Option<i32>>>,
    /// Codes besides 0 that `weigh versus --expect-exit` or `-i` allowed; hyperfine writes none.
    #[serde(default)]
    allowed_exit_codes: Vec<i32>,
}

impl TimedCommand {
    /// Where runs failed, which `hyperfine --ignore-failure` lets pass: they may well have done nothing, and
    /// quickly.
    fn problem(&self) -> Option<String> {
        let codes = self.exit_codes.as_ref()?;
        let is_allowed = |code: i32| code == 0 || self.allowed_exit_codes.contains(&code);
        let failed: Vec<&Option<i32>> =
            codes.iter().filter(|code| !code.is_some_and(is_allowed)).collect();
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

/// Reads the export: each command is a result by itself, called like the command. One that failed costs
/// just itself, if others did not.
fn read(text: &str) -> Result<Document, Problem> {
    let export: HyperfineExport = serde_json::from_str(text).map_err(|error| {
        (Some(error.line()), format!("not the JSON of hyperfine --export-json: {error}"))
    })?;
    let several = export.results.len() > 1;
    let (mut results, mut warnings) = (Vec::new(), Vec::new());
    for command in export.results {
        if let Some(problem) = command.problem() {
            warnings.push(problem);
            continue;
        }
        let runs = command.times.unwrap_or_default();
        let value = median(&runs).unwrap_or(command.mean);
        if !(value > 0.0 && value.is_finite() && runs.iter().all(|run| *run > 0.0)) {
            return Err((None, format!("{:?} has a time of 0 or less", command.command)));
        }
        // Several commands in one file are alternatives: the same test, done in another way.
        let test = if several { "command" } else { command.command.as_str() };
        results.push(ImportedResults {
            format: "hyperfine".into(),
            label: several.then(|| command.command.clone()),
            figures: vec![Figure { runs, ..figure(test, value, "s") }],
            ..Default::default()
        });
    }
    match results.is_empty() && !warnings.is_empty() {
        true => Err((None, warnings.swap_remove(0))),
        false => {
            let warnings = warnings.iter().map(|problem| format!("Not imported: {problem}."));
            let warnings = warnings.collect();
            Ok(Document { content: Content::Results(results), warnings })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(first: &str, second: &str) -> Result<(usize, Vec<String>), String> {
        let text = format!(
            r#"{{"results":[{{"command":"true","mean":0.1,"times":[0.1,0.1]{first}}},
            {{"command":"make x","mean":0.1,"times":[0.1,0.1]{second}}}]}}"#
        );
        let document = read(&text).map_err(|(_, problem)| problem)?;
        let Content::Results(results) = document.content else { panic!("an experiment") };
        Ok((results.len(), document.warnings))
    }

    #[test]
    fn a_command_that_failed_is_refused_and_the_others_are_read() {
        for sound in ["", r#","exit_codes":null"#, r#","exit_codes":[0,0]"#] {
            assert_eq!(of("", sound), Ok((2, Vec::new())), "{sound}");
        }
        let (results, warnings) = of("", r#","exit_codes":[127,127]"#).unwrap();
        assert!(
            results == 1
                && warnings[0].starts_with(
                    "Not imported: \"make x\" failed in 2 of 2 runs (exit code 127), so"
                ),
            "{warnings:?}"
        );
        let (_, warnings) = of("", r#","exit_codes":[0,null]"#).unwrap();
        assert!(warnings[0].contains("failed in 1 of 2 runs (ended by a signal)"), "{warnings:?}");
        let codes = r#","exit_codes":[1,1]"#;
        assert!(of(codes, codes).unwrap_err().starts_with("\"true\" failed in 2 of 2 runs"));
    }

    #[test]
    fn codes_that_weigh_versus_was_told_to_allow_are_no_failure() {
        let allowed = r#","exit_codes":[1,1],"allowed_exit_codes":[1]"#;
        assert_eq!(of("", allowed), Ok((2, Vec::new())));
        let other = r#","exit_codes":[1,2],"allowed_exit_codes":[1]"#;
        assert!(of("", other).unwrap().1[0].contains("failed in 1 of 2 runs (exit code 2)"));
    }
}
